"""Libraries of `fusec.export_cuda` on the emulated device: the header is compiled for a stand-in of
the CUDA driver, whose functions ask `EmulatedDriver` for copies and launches."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fusec.codegen.cuda.emulated_backend import DRIVER
from fusec.codegen.exported.parts import ExportedFunction
from fusec.compiled.exports.c_header import parameter_text

from .calling import number

CUDA_H = """#pragma once
#include <cstddef>
typedef enum { CUDA_SUCCESS = 0, CUDA_ERROR_INVALID_VALUE = 1 } CUresult;
typedef unsigned long long CUdeviceptr;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
struct StandIn {
  int (*load)(const char *), (*function)(const char *);
  int (*launch)(long long, unsigned, unsigned, unsigned, unsigned, int, void *, void **);
  int (*allocate)(unsigned long long *, size_t), (*release)(unsigned long long);
  int (*in)(unsigned long long, const void *, size_t);
  int (*out)(void *, unsigned long long, size_t);
  int (*copy)(unsigned long long, unsigned long long, size_t);
  int (*fill)(unsigned long long, unsigned char, size_t);
  int (*synchronize)();
};
extern "C" StandIn stand_in;
#define STAND_IN(name, ...) static inline CUresult name(__VA_ARGS__)
STAND_IN(cuModuleLoadData, CUmodule *m, const void *image) {
  *m = CUmodule(1);
  return CUresult(stand_in.load(static_cast<const char *>(image)));
}
STAND_IN(cuModuleUnload, CUmodule) { return CUDA_SUCCESS; }
STAND_IN(cuModuleGetFunction, CUfunction *f, CUmodule, const char *name) {
  const int k = stand_in.function(name);
  *f = CUfunction(size_t(k + 1));
  return k < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
STAND_IN(cuLaunchKernel, CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned x,
         unsigned y, unsigned z, unsigned shared, CUstream stream, void **words, void **) {
  if (gy != 1 || gz != 1 || z != 1) return CUDA_ERROR_INVALID_VALUE;
  return CUresult(stand_in.launch((long long)(f) - 1, gx, x, y, shared, 0, stream, words));
}
STAND_IN(cuLaunchCooperativeKernel, CUfunction f, unsigned gx, unsigned, unsigned, unsigned x,
         unsigned y, unsigned, unsigned shared, CUstream stream, void **words) {
  return CUresult(stand_in.launch((long long)(f) - 1, gx, x, y, shared, 1, stream, words));
}
typedef int CUdevice;
typedef enum { CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16 } CUdevice_attribute;
STAND_IN(cuCtxGetDevice, CUdevice *d) { *d = 0; return CUDA_SUCCESS; }
STAND_IN(cuDeviceGetAttribute, int *n, CUdevice_attribute, CUdevice) {
  *n = 2;
  return CUDA_SUCCESS;
}
STAND_IN(cuOccupancyMaxActiveBlocksPerMultiprocessor, int *n, CUfunction, int threads, size_t) {
  *n = threads > 512 ? 1 : 2;
  return CUDA_SUCCESS;
}
STAND_IN(cuMemAlloc, CUdeviceptr *p, size_t n) { return CUresult(stand_in.allocate(p, n)); }
STAND_IN(cuMemFree, CUdeviceptr p) { return CUresult(stand_in.release(p)); }
STAND_IN(cuMemcpyHtoD, CUdeviceptr p, const void *from, size_t n) {
  return CUresult(stand_in.in(p, from, n));
}
STAND_IN(cuMemcpyDtoHAsync, void *to, CUdeviceptr p, size_t n, CUstream) {
  return CUresult(stand_in.out(to, p, n));
}
STAND_IN(cuMemcpyDtoDAsync, CUdeviceptr to, CUdeviceptr p, size_t n, CUstream) {
  return CUresult(stand_in.copy(to, p, n));
}
STAND_IN(cuMemsetD8Async, CUdeviceptr p, unsigned char x, size_t n, CUstream) {
  return CUresult(stand_in.fill(p, x, n));
}
STAND_IN(cuStreamSynchronize, CUstream) { return CUresult(stand_in.synchronize()); }
"""
_P, _I, _N = ctypes.c_uint64, ctypes.c_int, ctypes.c_size_t
_V = ctypes.c_void_p
_KINDS = {
    "load": (ctypes.c_char_p,), "function": (ctypes.c_char_p,),
    "launch": (ctypes.c_longlong, *[ctypes.c_uint] * 4, _I, _V, ctypes.POINTER(_V)),
    "allocate": (ctypes.POINTER(_P), _N), "release": (_P,), "in": (_P, _V, _N),
    "out": (_V, _P, _N), "copy": (_P, _P, _N), "fill": (_P, ctypes.c_ubyte, _N),
    "synchronize": ()}
_WORDS: dict[str, Any] = {"pointer": _P, "int32": ctypes.c_int32, "int64": ctypes.c_int64}


def bytes_at(address: int, nbytes: int) -> np.ndarray:
    """Memory of the host's as an array."""
    return np.ctypeslib.as_array((ctypes.c_ubyte * nbytes).from_address(address)) if nbytes else (
        np.empty(0, np.uint8))


class CudaProgram:
    """A program that includes the header, in this process; ``launched`` are names of kernels."""

    def __init__(self, made: Any, flags: Sequence[str] = ()) -> None:
        self.made, self.launched, self.error = made, list[str](), None
        path = _compiled(made, flags)
        self.program = ctypes.CDLL(str(path))
        self.callbacks = {name: ctypes.CFUNCTYPE(_I, *kinds)(getattr(self, f"_{name}"))
                          for name, kinds in _KINDS.items()}
        table = (_V * len(self.callbacks)).in_dll(self.program, "stand_in")
        for k, callback in enumerate(self.callbacks.values()):
            table[k] = ctypes.cast(callback, _V).value
        code = self.program.t_load(made.module.source.encode())
        assert code == 0, (code, self.error)

    def close(self) -> None:
        """Unload it: of a file that is gone another may have the number, which is then taken for
        the same library."""
        self.program.t_unload()
        handle = ctypes.c_void_p(self.program._handle)
        ctypes.CDLL(None).dlclose(handle)

    # -- the driver's functions

    def _guarded(self, run: Any, *args: Any) -> int:
        try:
            run(*args)
        except Exception as error:
            self.error = error
            return 1
        return 0

    def _load(self, image: bytes) -> int:
        def load() -> None:
            assert image.decode() == self.made.module.source
            self.loaded = DRIVER.compile(self.made.module)

        return self._guarded(load)

    def _function(self, name: bytes) -> int:
        names = [kernel.name for kernel in self.made.module.kernels]
        return names.index(name.decode()) if name.decode() in names else -1

    def _launch(self, number: int, grid: int, x: int, y: int, shared: int, is_cooperative: int,
                stream: int, words: Any) -> int:
        kernel = self.made.module.kernels[number]
        self.launched.append(kernel.name)
        args = [ctypes.cast(words[k], ctypes.POINTER(_WORDS[param.kind]))[0]
                for k, param in enumerate(kernel.params)]
        return self._guarded(DRIVER.launch, self.loaded, kernel, (grid, 1, 1), (x, y, 1), shared,
                             args)

    def _allocate(self, to: Any, nbytes: int) -> int:
        to[0] = DRIVER.allocate(nbytes)
        return 0

    def _release(self, address: int) -> int:
        return self._guarded(DRIVER.free, address)

    def _in(self, address: int, source: int, nbytes: int) -> int:
        return self._guarded(DRIVER.copy_in, address, bytes_at(source, nbytes))

    def _out(self, to: int, address: int, nbytes: int) -> int:
        return self._guarded(DRIVER.copy_out, bytes_at(to, nbytes), address)

    def _copy(self, to: int, address: int, nbytes: int) -> int:
        def copy() -> None:
            data = np.empty(nbytes, np.uint8)
            DRIVER.copy_out(data, address)
            DRIVER.copy_in(to, data)

        return self._guarded(copy)

    def _fill(self, address: int, value: int, nbytes: int) -> int:
        return self._guarded(DRIVER.copy_in, address, np.full(nbytes, value, np.uint8))

    def _synchronize(self) -> int:
        return self._guarded(DRIVER.synchronize)

    # -- calls

    def call(
        self, function: ExportedFunction, leaves: Sequence[Any]
    ) -> tuple[int, list[np.ndarray], dict[int, np.ndarray]]:
        """The code, the results, and arguments that it writes, by leaf."""
        arguments = [np.array(leaves[k], p.dtype) for k, p in zip(
            function.leaves, function.arguments, strict=True)]
        sizes = [ctypes.c_int64(arguments[k].shape[axis]) for k, axis in function.axes]
        tell = self.program[f"t_{function.name}_workspace_bytes"]
        tell.restype = ctypes.c_int64
        workspace, count = tell(*sizes), len(function.results)
        if workspace < 0:
            return workspace, [], {}
        told = (ctypes.c_size_t * max(count, 1))()
        if count:
            assert self.program[f"t_{function.name}_sizes"](*sizes, told) == 0
        nbytes = [*(a.nbytes for a in arguments), *[*told][:count], workspace]
        memory = [DRIVER.allocate(max(n, 1)) for n in nbytes]
        try:
            return self._run(function, arguments, sizes, nbytes, memory)
        finally:
            for address in memory:
                DRIVER.free(address)

    def _run(
        self, function: ExportedFunction, arguments: list[np.ndarray], sizes: list[Any],
        nbytes: list[int], memory: list[int],
    ) -> tuple[int, list[np.ndarray], dict[int, np.ndarray]]:
        passed: list[Any] = [*sizes]
        for parameter, array, address in zip(
                function.arguments, arguments, memory, strict=False):
            if array.nbytes:
                DRIVER.copy_in(address, array)
            passed += [_V(address)] if parameter.is_array else number(parameter, array)
        first = len(arguments)
        passed += map(_V, memory[first:])
        name = f"t_{function.name}"
        code = self.program[name](*passed, ctypes.c_size_t(nbytes[-1]), None)
        code = code or self.program[f"{name}_wait"](_V(memory[-1]), None)
        if code < 0:
            return code, [], {}
        every = []
        for n, address in zip(nbytes, memory, strict=True):
            data = np.empty(n, np.uint8)
            if n:
                DRIVER.copy_out(data, address)
            every.append(data)
        results = [self._result(function, k, data.view(p.dtype), sizes) for k, (p, data) in
                   enumerate(zip(function.results, every[first:], strict=False))]
        written = {leaf: every[k].view(p.dtype).reshape(arguments[k].shape) for k, (leaf, p) in
                   enumerate(zip(function.leaves, function.arguments, strict=True))
                   if p.is_written}
        return code, results, written

    def _result(
        self, function: ExportedFunction, k: int, data: np.ndarray, sizes: list[Any]
    ) -> np.ndarray:
        ranks = [len(p.shape) for p in function.results]
        told = (ctypes.c_int64 * max(sum(ranks), 1))()
        if any(ranks):
            assert self.program[f"t_{function.name}_shapes"](*sizes, told) == 0
        first = sum(ranks[:k])
        return data.reshape([*told][first: first + ranks[k]])


def _compiled(made: Any, flags: Sequence[str]) -> Path:
    name = made.name
    (made.folder / "cuda.h").write_text(CUDA_H)
    lines = [f'#include "{name}.hpp"', 'extern "C" {', "StandIn stand_in;",
             f"{name}::Library library;",
             f"int t_load(const void *image) {{ return {name}::load(&library, image); }}",
             f"int t_unload() {{ return {name}::unload(&library); }}"]
    for f in made.functions:
        sizes = [f"int64_t {n}" for n in f.sizes]
        memory = ["void *workspace", "size_t bytes", "CUstream stream"]
        lines.append(_forward("int", name, f.name, [
            *sizes, *map(parameter_text, f.parameters), *memory], "library"))
        lines.append(_forward("int64_t", name, f"{f.name}_workspace_bytes", sizes))
        if f.results:
            lines.append(_forward("int", name, f"{f.name}_sizes", [*sizes, "size_t *out"]))
        if f.has_shapes:
            lines.append(_forward("int", name, f"{f.name}_shapes", [*sizes, "int64_t *out"]))
        lines.append(_forward("int", name, f"{f.name}_wait", ["const void *p", "CUstream s"]))
        lines.append(f"const char *t_{f.name}_error(int code, int *line) {{ {name}::failure f = "
                     f"{name}::failure(); if ({name}::{f.name}_error(code, &f)) return nullptr; "
                     "*line = f.line; return f.text; }")
    source, target = made.folder / "program.cpp", made.folder / "program.so"
    source.write_text("\n".join([*lines, "}"]))
    compiler = shutil.which("g++")
    assert compiler is not None
    subprocess.run([compiler, "-std=c++11", "-Wall", "-Wextra", "-Werror", "-O1", "-fPIC",
                    "-shared", *flags, "-I", str(made.folder), str(source), "-o",
                    str(target)], check=True)
    return target


def _forward(result: str, space: str, name: str, declared: Sequence[str], first: str = "") -> str:
    parts = [part for each in declared for part in each.split(", ")]
    names = [re.split(r"[ *]", part)[-1] for part in parts]
    return (f"{result} t_{name}({', '.join(parts)}) {{ return {space}::{name}("
            f"{', '.join(filter(None, [first, *names]))}); }}")
