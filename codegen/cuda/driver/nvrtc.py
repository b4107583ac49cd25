"""NVRTC, NVIDIA's run-time compiler: CUDA C++ to PTX and machine code, without a GPU or a driver.

Its library comes with the package ``nvidia-cuda-nvrtc-cu12`` (the extra ``fusec[cuda]``), or with a
CUDA toolkit.  Results are kept in the disk cache under NVRTC's version, the architecture, the
options and the source.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import importlib.util
import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from fusec.core.records import dataclass
from fusec.errors import FusecError, InternalError

from ...machine_code import disk_cache
from ..module import CudaModule

# Machines that CI compiles for: the A100 and the H100.
ARCHITECTURES = ("sm_80", "sm_90")
OPTIONS = ("--std=c++17", "--fmad=false", "--device-int128", "--ptxas-options=-v")
_NAMES = ("libnvrtc.so.12", "libnvrtc.so.13", "libnvrtc.so", "nvrtc64_120_0.dll")


class NoNvrtcError(FusecError):
    """NVRTC is needed, and there is none."""


@dataclass(frozen=True)
class KernelUsage:
    """A kernel's share of a multiprocessor: registers of a thread, bytes of static shared memory
    of a block, bytes of registers that are spilled to memory and read back."""

    registers: int
    shared_bytes: int
    spill_stores: int
    spill_loads: int

    def occupancy(self, threads: int, dynamic_shared: int = 0) -> float:
        """The share of a multiprocessor's 2048 threads that can run at once, in blocks of that
        many threads, on sm_80 and sm_90 (65,536 registers, allotted to warps by 256; 164 KiB of
        shared memory, of which 1 a block is the system's; 32 blocks)."""
        warps = -(-threads // 32)
        of_a_warp = -(-self.registers * 32 // 256) * 256
        by_registers = 65_536 // max(1, of_a_warp) // warps
        by_shared = (164 << 10) // (self.shared_bytes + dynamic_shared + 1024)
        return min(32, by_registers, by_shared, 64 // warps) * warps / 64


@dataclass(frozen=True)
class Compiled:
    """A module for one architecture: PTX, machine code (a cubin), and each kernel's usage."""

    ptx: str
    cubin: bytes
    usage: dict[str, KernelUsage]


def is_available() -> bool:
    """Whether there is a library of NVRTC."""
    return _library() is not None


def status() -> str:
    """A line for people."""
    if is_available():
        return f"{version()}, in use"
    return "not found: pip install nvidia-cuda-nvrtc-cu12, or set CUDA_PATH to a CUDA toolkit"


def version() -> str:
    """``12.9``; raises `NoNvrtcError`."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    _check(_loaded().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)))
    return f"{major.value}.{minor.value}"


def compile(module: CudaModule, architecture: str, options: Sequence[str] = ()) -> Compiled:
    """The module for ``sm_80``, say, with more ``options`` for NVRTC; raises `NoNvrtcError`, and
    `InternalError` with NVRTC's log where it refuses the source."""
    given = (*OPTIONS, *options)
    key = disk_cache.key_of(["nvrtc", version(), architecture, *given, module.source])
    data = disk_cache.load(key)
    if data is None:
        data = _compiled(module.source, architecture, given)
        disk_cache.store(key, data)
    texts, _, cubin = data.partition(b"\0")
    ptx, log = json.loads(texts)
    return Compiled(ptx, cubin, usage_of(log))


def _compiled(source: str, architecture: str, given: Sequence[str]) -> bytes:
    library, program = _loaded(), ctypes.c_void_p()
    _check(library.nvrtcCreateProgram(
        ctypes.byref(program), source.encode(), b"kernels.cu", 0, None, None))
    try:
        options = [f"--gpu-architecture={architecture}".encode(),
                   *(option.encode() for option in _with_figures(given))]
        result = library.nvrtcCompileProgram(
            program, len(options), (ctypes.c_char_p * len(options))(*options))
        log = _part(library, program, "ProgramLog").decode(errors="replace")
        if result:
            raise InternalError("NVRTC refuses the source of a kernel", notes=[log[:4000]])
        ptx = _part(library, program, "PTX").decode()
        return json.dumps([ptx, log]).encode() + b"\0" + _part(library, program, "CUBIN")
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _with_figures(options: Sequence[str]) -> Sequence[str]:
    """NVRTC's own cache, since 12.9, answers without ptxas and so without its figures."""
    major, minor = map(int, version().split("."))
    return (*options, "--no-cache") if (major, minor) >= (12, 9) else options


def _part(library: Any, program: ctypes.c_void_p, name: str) -> bytes:
    """One of a program's results; texts without the zero that ends them."""
    size = ctypes.c_size_t()
    _check(getattr(library, f"nvrtcGet{name}Size")(program, ctypes.byref(size)))
    data = ctypes.create_string_buffer(size.value)
    _check(getattr(library, f"nvrtcGet{name}")(program, data))
    return data.raw if name == "CUBIN" else data.raw.rstrip(b"\0")


# Functions that are called have properties, too, but no registers of their own.
_USED = re.compile(
    r"Function properties for (?P<name>\w+)\n[^\n]*?(?P<stores>\d+) bytes spill stores, "
    r"(?P<loads>\d+) bytes spill loads\n[^\n]*Used (?P<registers>\d+) registers(?P<rest>[^\n]*)")


def usage_of(log: str) -> dict[str, KernelUsage]:
    """The usage of each kernel by ptxas."""
    usage = {}
    for found in _USED.finditer(log):
        shared = re.search(r"(\d+) bytes smem", found["rest"])
        usage[found["name"]] = KernelUsage(
            int(found["registers"]), int(shared[1]) if shared else 0, int(found["stores"]),
            int(found["loads"]))
    return usage


# ------------------------------------------------------------------------------------ the library


def _loaded() -> Any:
    library = _library()
    if library is None:
        raise NoNvrtcError(
            "the CUDA compiler NVRTC is needed, and its library was not found",
            cure="pip install nvidia-cuda-nvrtc-cu12, or set CUDA_PATH to a CUDA toolkit")
    return library


@functools.cache
def _library() -> Any:
    for name in _places():
        try:
            return ctypes.CDLL(name)
        except OSError:  # not there, or of another machine
            continue
    return None


def _places() -> Iterator[str]:
    """Where the library may be: in a Python package, in a toolkit, where the system looks.  Of two
    packages the older goes first: older drivers load its code."""
    package = importlib.util.find_spec("nvidia")
    folders = [Path(p) for p in (package.submodule_search_locations or ())] if package else []
    for folder in folders:
        for pattern in ("*/lib/libnvrtc.so.*", "*/bin/nvrtc64_*.dll", "*/bin/*/nvrtc64_*.dll"):
            found = sorted(folder.glob(pattern), key=lambda path: path.name)
            yield from (str(p) for p in found if "alt" not in p.name)
    toolkit = os.environ.get("CUDA_PATH")
    if toolkit:
        yield from (str(Path(toolkit, "lib64", name)) for name in _NAMES)
    known = ctypes.util.find_library("nvrtc")
    yield from filter(None, (known, *_NAMES))


def _check(result: int) -> None:
    if result:
        text = _loaded().nvrtcGetErrorString
        text.restype = ctypes.c_char_p
        raise InternalError(f"NVRTC failed: {text(result).decode()}")
