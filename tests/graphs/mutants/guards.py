"""Memory that ends, or begins, at a page that nobody may touch: an access beyond is a SIGSEGV."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

import numpy as np
from numpy._core import _multiarray_umath as umath

PAGE = mmap.PAGESIZE
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *(ctypes.c_int,) * 3, ctypes.c_long)
_libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
READ_WRITE, ANONYMOUS = 3, 0x22
_SET_HANDLER = 304  # PyDataMem_SetHandler in NumPy's table of functions


class Guarded:
    """Pages between two that nobody may touch; arrays lie at one of their ends."""

    def __init__(self, pages: int = 16) -> None:
        whole = _libc.mmap(None, (pages + 2) * PAGE, READ_WRITE, ANONYMOUS, -1, 0)
        self.begin, self.nbytes = whole + PAGE, pages * PAGE
        for guard in (whole, self.begin + self.nbytes):
            if _libc.mprotect(guard, PAGE, 0):
                raise OSError(ctypes.get_errno(), "mprotect")

    def array(self, like: np.ndarray, at_end: bool) -> np.ndarray:
        """A copy of a small array at the end of these pages, or at their beginning."""
        if like.nbytes > self.nbytes:
            return like.copy()
        place = self.begin + (self.nbytes - like.nbytes if at_end else 0)
        memory: Any = (ctypes.c_char * like.nbytes).from_address(place)
        array = np.frombuffer(memory, like.dtype).reshape(like.shape) if like.nbytes else (
            np.empty(like.shape, like.dtype))
        array[...] = like
        return array


# NumPy asks this allocator for every array, so also for results: each ends at a guard page.
_ALLOCATOR = """
declare ptr @mmap(ptr, i64, i32, i32, i32, i64)
declare i32 @munmap(ptr, i64)
declare i32 @mprotect(ptr, i64, i32)
declare void @abort()

define i64 @pages(i64 %size) {
  %more = add i64 %size, 4095
  %pages = and i64 %more, -4096
  ret i64 %pages
}
define ptr @guarded_malloc(ptr %context, i64 %size) {
  %data = call i64 @pages(i64 %size)
  %whole = add i64 %data, 4096
  %at = call ptr @mmap(ptr null, i64 %whole, i32 3, i32 34, i32 -1, i64 0)
  %begin = ptrtoint ptr %at to i64
  %full = icmp eq i64 %begin, -1
  br i1 %full, label %none, label %some
none:
  ret ptr null
some:
  %end = add i64 %begin, %data
  %guard = inttoptr i64 %end to ptr
  %failed = call i32 @mprotect(ptr %guard, i64 4096, i32 0)
  %place = sub i64 %end, %size
  %result = inttoptr i64 %place to ptr
  ret ptr %result
}
define ptr @guarded_calloc(ptr %context, i64 %count, i64 %each) {
  %size = mul i64 %count, %each
  %result = call ptr @guarded_malloc(ptr %context, i64 %size)
  ret ptr %result
}
define ptr @guarded_realloc(ptr %context, ptr %old, i64 %size) {
  %new = call ptr @guarded_malloc(ptr %context, i64 %size)
  %full = icmp eq ptr %new, null
  br i1 %full, label %none, label %some
none:
  ret ptr null
some:
  %from = ptrtoint ptr %old to i64
  %page = and i64 %from, 4095
  %left = sub i64 4096, %page
  %small = icmp ult i64 %left, %size
  %count = select i1 %small, i64 %left, i64 %size
  call void @llvm.memcpy.p0.p0.i64(ptr %new, ptr %old, i64 %count, i1 false)
  ret ptr %new
}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define void @guarded_free(ptr %context, ptr %place, i64 %size) {
  %data = call i64 @pages(i64 %size)
  %whole = add i64 %data, 4096
  %begin = ptrtoint ptr %place to i64
  %end = add i64 %begin, %size
  %start = sub i64 %end, %data
  %at = inttoptr i64 %start to ptr
  %failed = call i32 @munmap(ptr %at, i64 %whole)
  ret void
}
"""


def guard_all_arrays() -> None:
    """From now on every array of this process ends at a page that nobody may touch."""
    from fusec.runtime.memory import _Allocator, _Handler
    from fusec.runtime.native import compile_forever

    code = compile_forever(_ALLOCATOR, {})
    functions = [code.address(f"guarded_{name}")
                 for name in ("malloc", "calloc", "realloc", "free")]
    handler = _Handler(b"guarded", 1, _Allocator(None, *functions))
    name = ctypes.create_string_buffer(b"mem_handler")
    make = ctypes.pythonapi.PyCapsule_New
    make.restype = ctypes.py_object
    make.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    capsule = make(ctypes.addressof(handler), ctypes.addressof(name), None)
    _kept.extend((code, handler, name, capsule))
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    table = (ctypes.c_void_p * (_SET_HANDLER + 1)).from_address(get(umath._ARRAY_API, None))
    ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(table[_SET_HANDLER])(capsule)


_kept: list[Any] = []
