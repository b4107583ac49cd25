"""Compiles one function as a loop over arrays, to test and measure it alone."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable

import numpy as np

from .. import vecmath
from ..machine_code.llvm import NativeCode, compile_ir

WIDTH = {"float64": 8, "float32": 16}
Kernel = Callable[..., np.ndarray]

LOOP = """
define void @{entry}(ptr %x, ptr %y, ptr %out, i64 %n, i64 %times) {{
entry:
  br label %again
again:
  %time = phi i64 [ 0, %entry ], [ %later, %finished ]
  br label %loop
loop:
  %i = phi i64 [ 0, %again ], [ %next, %loop ]
  %px = getelementptr {element}, ptr %x, i64 %i
  %py = getelementptr {element}, ptr %y, i64 %i
  %po = getelementptr {element}, ptr %out, i64 %i
  %a = load {vector}, ptr %px, align {align}
  %b = load {vector}, ptr %py, align {align}
  %r = call fastcc {vector} @{symbol}({args})
  store {vector} %r, ptr %po, align {align}
  %next = add i64 %i, {lanes}
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %finished
finished:
  %later = add i64 %time, 1
  %repeat = icmp ult i64 %later, %times
  br i1 %repeat, label %again, label %done
done:
  ret void
}}
"""


def loop_text(name: str, dtype: np.dtype, lanes: int, entry: str) -> str:
    """A loop over arrays around one function, run ``times`` times; ``n`` divides by ``lanes``."""
    element = "double" if dtype == np.float64 else "float"
    vector = element if lanes == 1 else f"<{lanes} x {element}>"
    args = ", ".join(f"{vector} {v}" for v in ("%a", "%b")[: vecmath.ARITY[name]])
    return LOOP.format(
        entry=entry, element=element, vector=vector, align=dtype.itemsize,
        symbol=vecmath.symbol(name, dtype, lanes), args=args, lanes=lanes,
    )


class ArrayFunction:
    """One function at one lane count as ``f(x[, y]) -> array`` of the same dtype."""

    def __init__(self, code: NativeCode, entry: str, lanes: int):
        self.code, self.lanes = code, lanes
        signature = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 2)
        self.raw = signature(code.address(entry))

    def __call__(self, x: np.ndarray, y: np.ndarray | None = None) -> np.ndarray:
        x, y = np.broadcast_arrays(x, x if y is None else y)
        count = x.size + -x.size % self.lanes
        a, b = (np.resize(v.ravel(), count) for v in (x, y))
        out = np.empty_like(a)
        self.raw(a.ctypes.data, b.ctypes.data, out.ctypes.data, count, 1)
        return out[: x.size].reshape(x.shape)


@functools.cache
def compiled(dtype: np.dtype, lanes: int, name: str) -> ArrayFunction:
    """Compile one function for arrays of ``dtype``."""
    text = vecmath.module_text([(name, dtype, lanes)])
    code = compile_ir(text + loop_text(name, dtype, lanes, "kernel"))
    return ArrayFunction(code, "kernel", lanes)
