"""CUDA C++ as a shared library of this process: compiled, or read from the disk cache."""

from __future__ import annotations

import ctypes
import functools
import os
import re
import subprocess
import weakref
from collections.abc import Sequence
from importlib import resources
from typing import Any

from fusec.codegen.cuda.module import CudaModule

from ...machine_code import disk_cache
from ...machine_code.llvm import host_features
from . import toolchain as tools

# CUDA's word for memory of a size that the launch says has no counterpart in C++.
_DYNAMIC = re.compile(
    r"\bextern\s+__shared__\s+(?:__align__\s*\(\s*\d+\s*\)\s*)?([\w\s:]+?)\s*\b(\w+)\s*\[\s*\]\s*;")
# Where the back end's kernels lie; others may lie outside of it.
_VISIBLE = "namespace fusec {}\nusing namespace fusec;\n"


class EmulatedModule:
    """A module's kernels as functions of this process."""

    def __init__(self, module: CudaModule, library: bytes) -> None:
        self.module, self._bytes = module, library
        self._library = _opened(library)
        weakref.finalize(self, _close, self._library._handle).atexit = False
        self.run = self._library.fusec_host_run  # a slice of the launch at an address: its phase
        self.run.restype, self.run.argtypes = ctypes.c_uint64, (ctypes.c_void_p,)
        self.shadow_bytes = self._library.fusec_host_shadow_bytes
        self.shadow_bytes.restype, self.shadow_bytes.argtypes = ctypes.c_uint64, (ctypes.c_uint64,)
        self.shadow: Any = None  # who has used the module's shared memory, kept between launches

    def address(self, kernel: str) -> int:
        """Of the function that calls the kernel for one thread."""
        function = getattr(self._library, f"fusec_kernel_{kernel}")
        return ctypes.cast(function, ctypes.c_void_p).value or 0

    def lines_at(self, code: int) -> tuple[int, ...]:
        """The line of the source whose code lies before this place of the library, then those that
        call it; none where that is not known."""
        program = tools.addr2line()
        if program is None or not code:
            return ()
        try:
            with tools.temporary_folder() as folder:
                path = folder / "module.so"
                path.write_bytes(self._bytes)
                done = subprocess.run([program, "-i", "-e", str(path), hex(code - 1)],
                                      capture_output=True, text=True, check=False)
        except tools.NoFolderError:  # what is to be reported is a kernel's fault
            return ()
        return tuple(map(int, re.findall(r"kernels\.cu:(\d+)", done.stdout)))


def _close(handle: int) -> None:
    """Unload a library: a process has room for some ten thousand."""
    close = ctypes.CDLL(None).dlclose
    close.argtypes = (ctypes.c_void_p,)
    close(handle)


def load(module: CudaModule) -> EmulatedModule:
    """The module, loaded; compiled if neither this process nor the disk cache has it.

    Raises `NoCompilerError`, and `CompilationError` with the compiler's message.
    """
    compiler = tools.toolchain()
    text = kernels_text(module)
    key = disk_cache.key_of(["cuda host module", *_common(compiler), text])
    library = disk_cache.load(key)
    if library is None:
        library = compiler.module(text, _runtime(compiler))
        disk_cache.store(key, library)
    return EmulatedModule(module, library)


def kernels_text(module: CudaModule) -> str:
    """The module as C++: the header, the source, and an entry for each kernel."""
    entries = "".join(f"FUSEC_KERNEL({kernel.name})\n" for kernel in module.kernels)
    source = _DYNAMIC.sub(_pointer, module.source)
    return f"{_part('cuda_host.h')}\n{tools.FIRST_LINE}{source}\n{_VISIBLE}{entries}"


def _pointer(found: re.Match[str]) -> str:
    type_, name = found.groups()
    lines = "\n" * found.group().count("\n")  # the lines below keep their numbers
    return f"static {type_} *const {name} = ({type_} *)fusec_host_dynamic_shared;{lines}"


def _common(compiler: tools.Toolchain) -> Sequence[str]:
    return compiler.key, host_features(), _part("cuda_host.cpp")


@functools.cache
def _runtime(compiler: tools.Toolchain) -> bytes:
    """The object code that all modules share."""
    key = disk_cache.key_of(["cuda host runtime", *_common(compiler)])
    code = disk_cache.load(key)
    if code is None:
        code = compiler.runtime(_part("cuda_host.cpp"))
        disk_cache.store(key, code)
    return code


@functools.cache
def _part(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _opened(library: bytes) -> ctypes.CDLL:
    """The library in this process; its file is gone when this returns."""
    with tools.temporary_folder() as folder:
        path = folder / "module.so"
        path.write_bytes(library)
        path.chmod(0o700)
        return ctypes.CDLL(str(path), mode=getattr(os, "RTLD_NOW", 0))
