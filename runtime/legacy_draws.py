"""The normal and exponential numbers of ``np.random.RandomState``, as LLVM IR.

They are older than the methods of generators and hidden in NumPy's module: the polar method of
Marsaglia and Bray, whose second number is kept for the next call, and the logarithm of a uniform
number.  The state is NumPy's ``aug_bitgen_t``: the address of the bit generator, whether there is a
second number, that number.  ``log`` and ``sqrt`` are the C library's, so the bits are NumPy's; the
self-check of `.draws` looks at that.
"""

from __future__ import annotations

import functools

from fusec.codegen.machine_code import llvm
from fusec.runtime.native import libc_addresses

NAMES = ("legacy_gauss", "legacy_normal", "legacy_standard_exponential", "legacy_exponential")

_TEXT = """
declare double @log(double)
declare double @llvm.sqrt.f64(double)

define internal double @uniform(ptr %state) {
  %generator = load ptr, ptr %state
  %place = getelementptr ptr, ptr %generator, i64 NEXT_DOUBLE
  %next = load ptr, ptr %place
  %inner = load ptr, ptr %generator
  %u = call double %next(ptr %inner)
  ret double %u
}

; In (-1, 1).
define internal double @side(ptr %state) {
  %u = call double @uniform(ptr %state)
  %twice = fmul double %u, 2.0
  %x = fsub double %twice, 1.0
  ret double %x
}

define double @legacy_gauss(ptr %state) {
entry:
  %flag = getelementptr i64, ptr %state, i64 1
  %kept = getelementptr i64, ptr %state, i64 2
  %has = load i32, ptr %flag
  %none = icmp eq i32 %has, 0
  br i1 %none, label %try, label %second
second:
  %before = load double, ptr %kept
  store i32 0, ptr %flag
  store double 0.0, ptr %kept
  ret double %before
try:
  %x = call double @side(ptr %state)
  %y = call double @side(ptr %state)
  %xx = fmul double %x, %x
  %yy = fmul double %y, %y
  %r = fadd double %xx, %yy
  %outside = fcmp oge double %r, 1.0
  %centre = fcmp oeq double %r, 0.0
  %again = or i1 %outside, %centre
  br i1 %again, label %try, label %found
found:
  %l = call double @log(double %r)
  %m = fmul double %l, -2.0
  %q = fdiv double %m, %r
  %f = call double @llvm.sqrt.f64(double %q)
  %first = fmul double %f, %x
  store double %first, ptr %kept
  store i32 1, ptr %flag
  %result = fmul double %f, %y
  ret double %result
}

define double @legacy_normal(ptr %state, double %loc, double %scale) {
  %g = call double @legacy_gauss(ptr %state)
  %scaled = fmul double %scale, %g
  %moved = fadd double %loc, %scaled
  ret double %moved
}

define double @legacy_standard_exponential(ptr %state) {
  %u = call double @uniform(ptr %state)
  %rest = fsub double 1.0, %u
  %l = call double @log(double %rest)
  %negative = fneg double %l
  ret double %negative
}

define double @legacy_exponential(ptr %state, double %scale) {
  %e = call double @legacy_standard_exponential(ptr %state)
  %scaled = fmul double %scale, %e
  ret double %scaled
}
"""
NEXT_DOUBLE = 3  # of ``bitgen_t``: the state, then next_uint64, next_uint32, next_double, next_raw


def source() -> str:
    """The functions as LLVM IR text."""
    return _TEXT.replace("NEXT_DOUBLE", str(NEXT_DOUBLE))


@functools.cache
def addresses() -> dict[str, int]:
    """Compiled at first use, where there is a C library that has the logarithm."""
    llvm.add_symbols(libc_addresses("log"))
    code = llvm.compile_ir(source())
    _kept.append(code)
    return {name: code.address(name) for name in NAMES}


_kept: list[llvm.NativeCode] = []  # for as long as the process runs


__all__ = ["NAMES", "addresses", "source"]
