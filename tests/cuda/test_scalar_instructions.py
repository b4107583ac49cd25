"""LLVM's instructions in scalar functions, one function for each, on the CPU and as CUDA C++."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_cuda_vectorized_functions import same_bits

from fusec.api.vectorize import Vectorized
from fusec.codegen.cuda.scalars import scalar_functions
from fusec.codegen.machine_code.scalar_ir import defined
from fusec.ops.calls.scalar_calls import FunctionName, ScalarFunction

I64, F64 = np.dtype(np.int64), np.dtype(np.float64)
# Each sets %r, an i64, from i64 %a and %b, double %x and %y.
INTEGERS = {
    "divisions": """
        %z = icmp eq i64 %b, 0
        %d = select i1 %z, i64 7, i64 %b
        %m = icmp eq i64 %d, -1
        %e = select i1 %m, i64 3, i64 %d
        %q = sdiv i64 %a, %e
        %s = srem i64 %a, %e
        %u = udiv i64 %a, %e
        %v = urem i64 %a, %e
        %1 = xor i64 %q, %s
        %2 = xor i64 %u, %v
        %r = add nsw i64 %1, %2""",
    "odd widths": """
        %1 = trunc i64 %a to i33
        %2 = trunc i64 %b to i33
        %3 = mul i33 %1, %2
        %4 = ashr i33 %3, 3
        %5 = icmp slt i33 %4, %1
        %6 = sext i33 %4 to i64
        %7 = zext i1 %5 to i64
        %8 = sext i1 %5 to i64
        %9 = add i64 %6, %7
        %r = xor i64 %9, %8""",
    "bytes": """
        %1 = trunc i64 %a to i8
        %2 = trunc i64 %b to i8
        %3 = mul i8 %1, %2
        %4 = lshr i8 %3, 2
        %5 = sub i8 %4, %1
        %6 = ashr i8 %5, 1
        %r = sext i8 %6 to i64""",
    "128 bits": """
        %1 = sext i64 %a to i128
        %2 = sext i64 %b to i128
        %3 = mul i128 %1, %2
        %4 = lshr i128 %3, 61
        %5 = add i128 %4, 36893488147419103237
        %r = trunc i128 %5 to i64""",
    "counts": """
        %1 = call i64 @llvm.ctpop.i64(i64 %a)
        %2 = call i64 @llvm.ctlz.i64(i64 %b, i1 true)
        %3 = call i64 @llvm.cttz.i64(i64 %b, i1 false)
        %h = trunc i64 %a to i16
        %4 = call i16 @llvm.cttz.i16(i16 %h, i1 false)
        %5 = call i16 @llvm.ctlz.i16(i16 %h, i1 false)
        %6 = add i16 %4, %5
        %7 = zext i16 %6 to i64
        %8 = shl i64 %2, 8
        %9 = shl i64 %3, 16
        %10 = add i64 %1, %8
        %11 = add i64 %9, %7
        %r = xor i64 %10, %11""",
    "extrema": """
        %1 = call i64 @llvm.smax.i64(i64 %a, i64 %b)
        %2 = call i64 @llvm.umin.i64(i64 %a, i64 %b)
        %3 = call i64 @llvm.abs.i64(i64 %1, i1 true)
        %4 = call i64 @llvm.usub.sat.i64(i64 %2, i64 %b)
        %5 = call i8 @llvm.scmp.i8.i64(i64 %a, i64 %b)
        %6 = sext i8 %5 to i64
        %7 = add i64 %3, %4
        %r = mul i64 %7, %6""",
    "rotations": """
        %1 = call i64 @llvm.fshl.i64(i64 %a, i64 %b, i64 13)
        %t = trunc i64 %b to i16
        %2 = call i16 @llvm.fshr.i16(i16 %t, i16 %t, i16 %t)
        %3 = zext i16 %2 to i64
        %r = xor i64 %1, %3""",
    "overflow": """
        %1 = call { i64, i1 } @llvm.smul.with.overflow.i64(i64 %a, i64 %b)
        %2 = extractvalue { i64, i1 } %1, 0
        %3 = extractvalue { i64, i1 } %1, 1
        %4 = call { i64, i1 } @llvm.uadd.with.overflow.i64(i64 %a, i64 %b)
        %5 = extractvalue { i64, i1 } %4, 1
        %6 = call { i64, i1 } @llvm.ssub.with.overflow.i64(i64 %a, i64 %b)
        %7 = extractvalue { i64, i1 } %6, 1
        %8 = select i1 %3, i64 1, i64 %2
        %9 = select i1 %5, i64 2, i64 4
        %10 = select i1 %7, i64 8, i64 16
        %11 = add i64 %8, %9
        %r = add i64 %11, %10""",
    "shifts": """
        %1 = shl nuw i64 %a, %b
        %2 = lshr exact i64 %a, %b
        %3 = ashr i64 %a, %b
        %4 = xor i64 %1, %2
        %t = trunc i64 %b to i8
        %5 = shl i8 %t, %t
        %6 = zext i8 %5 to i64
        %7 = add i64 %3, %6
        %r = sub i64 %4, %7""",
    "casts": """
        %1 = fptosi double %x to i8
        %2 = fptosi double %x to i32
        %3 = fptoui double %y to i64
        %4 = fptoui double %y to i16
        %5 = sext i8 %1 to i64
        %6 = sext i32 %2 to i64
        %7 = zext i16 %4 to i64
        %8 = add i64 %5, %6
        %9 = xor i64 %3, %7
        %r = sub i64 %8, %9""",
    "classes": """
        %1 = call i1 @llvm.is.fpclass.f64(double %x, i32 519)
        %2 = call i1 @llvm.is.fpclass.f64(double %y, i32 144)
        %3 = call i1 @llvm.is.fpclass.f64(double %x, i32 40)
        %4 = call i1 @llvm.is.fpclass.f64(double %x, i32 64)
        %5 = zext i1 %1 to i64
        %6 = select i1 %2, i64 2, i64 0
        %7 = select i1 %3, i64 4, i64 %5
        %8 = select i1 %4, i64 16, i64 %6
        %r = add i64 %7, %8""",
    "comparisons": """
        %1 = fcmp ult double %x, %y
        %2 = fcmp one double %x, %y
        %3 = fcmp ueq double %x, %y
        %4 = fcmp ord double %x, %y
        %5 = fcmp oge double %x, %y
        %6 = fcmp une double %x, %y
        %7 = xor i1 %1, %2
        %8 = select i1 %3, i64 3, i64 5
        %9 = select i1 %4, i64 7, i64 11
        %10 = select i1 %5, i64 13, i64 17
        %11 = select i1 %6, i64 19, i64 23
        %12 = select i1 %7, i64 29, i64 31
        %13 = mul i64 %8, %9
        %14 = mul i64 %10, %11
        %15 = mul i64 %13, %14
        %r = mul i64 %15, %12""",
}
# Each sets %r, a double.
FLOATS = {
    "rounding": """
        %1 = call double @llvm.floor.f64(double %x)
        %2 = call double @llvm.trunc.f64(double %y)
        %3 = call double @llvm.rint.f64(double %x)
        %4 = call double @llvm.roundeven.f64(double %y)
        %5 = call double @llvm.copysign.f64(double %1, double %y)
        %6 = call double @llvm.fabs.f64(double %2)
        %7 = call double @llvm.fma.f64(double %x, double %y, double %5)
        %8 = fsub nnan double %3, %4
        %9 = fadd fast double %6, %7
        %r = fadd double %8, %9""",
    "remainders": """
        %1 = frem double %x, %y
        %2 = fneg double %1
        %3 = call double @fmod(double %y, double %x)
        %r = fdiv double %2, %3""",
    "single": """
        %1 = fptrunc double %x to float
        %2 = fmul float %1, 0x3FB99999A0000000
        %3 = fcmp ogt float %2, 1.000000e+00
        %4 = call float @expf(float %2)
        %5 = select i1 %3, float %4, float 0x7FF0000000000000
        %6 = call float @llvm.sqrt.f32(float %5)
        %7 = bitcast float %6 to i32
        %8 = add i32 %7, 1
        %9 = bitcast i32 %8 to float
        %r = fpext float %9 to double""",
    "bits": """
        %1 = bitcast double %x to i64
        %2 = xor i64 %1, -9223372036854775808
        %3 = bitcast i64 %2 to double
        %4 = uitofp i64 %a to double
        %5 = sitofp i64 %b to double
        %6 = fadd double %4, %5
        %r = fadd double %6, %3""",
    "of nothing": """
        %1 = fadd double %x, undef
        %2 = freeze double %1
        %r = fadd double %2, poison""",
}
DECLARED = """
declare i64 @llvm.ctpop.i64(i64)
declare i64 @llvm.ctlz.i64(i64, i1)
declare i64 @llvm.cttz.i64(i64, i1)
declare i16 @llvm.cttz.i16(i16, i1)
declare i16 @llvm.ctlz.i16(i16, i1)
declare i64 @llvm.smax.i64(i64, i64)
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.abs.i64(i64, i1)
declare i64 @llvm.usub.sat.i64(i64, i64)
declare i8 @llvm.scmp.i8.i64(i64, i64)
declare i64 @llvm.fshl.i64(i64, i64, i64)
declare i16 @llvm.fshr.i16(i16, i16, i16)
declare { i64, i1 } @llvm.smul.with.overflow.i64(i64, i64)
declare { i64, i1 } @llvm.uadd.with.overflow.i64(i64, i64)
declare { i64, i1 } @llvm.ssub.with.overflow.i64(i64, i64)
declare i1 @llvm.is.fpclass.f64(double, i32)
declare double @llvm.floor.f64(double)
declare double @llvm.trunc.f64(double)
declare double @llvm.rint.f64(double)
declare double @llvm.roundeven.f64(double)
declare double @llvm.copysign.f64(double, double)
declare double @llvm.fabs.f64(double)
declare double @llvm.fma.f64(double, double, double)
declare double @fmod(double, double)
declare float @expf(float)
declare float @llvm.sqrt.f32(float)
"""
HEAD = "ptr %out, ptr %exception, i64 %a, i64 %b, double %x, double %y"


class Given(Vectorized):
    """A function whose IR is written here."""

    def __init__(self, name: str, body: str, result: np.dtype) -> None:
        def f(a: int, b: int, x: float, y: float) -> Any:
            raise AssertionError("it is not called")

        f.__name__ = name
        super().__init__(f)
        kind, symbol = "double" if result == F64 else "i64", f"user.{name.replace(' ', '_')}.given"
        text = body if "%r =" not in body else (
            f"begin:\n{body}\n  store {kind} %r, ptr %out\n  ret i32 0")
        ir = defined(f"{DECLARED}\ndefine i32 @{symbol}({HEAD}) {{\n{text}\n}}\n".replace(
            "\n        ", "\n  "))
        self.given = ScalarFunction(symbol, f, (I64, I64, F64, F64), result, "ret i32 1" in ir, ir)

    def compiled(self, dtypes: Any, loc: Any = None) -> ScalarFunction:
        return self.given


def operands() -> tuple[np.ndarray, ...]:
    whole = np.array([0, 1, -1, 2, 5, 63, 64, 65, -100, 2**31, 2**40 + 3, -(2**63), 2**63 - 1])
    real = np.array([0.0, -0.0, 1.5, -2.5, 0.5, 1e300, 5e-324, -1e-310, np.inf, -np.inf, np.nan,
                     300.7, -(2.0**63)])
    rng = np.random.default_rng(7)
    return (*(rng.choice(whole, 150) for _ in range(2)), *(rng.choice(real, 150) for _ in range(2)))


def test_instructions() -> None:
    functions = [Given(name, body, I64) for name, body in INTEGERS.items()]
    functions += [Given(name, body, F64) for name, body in FLOATS.items()]
    for f in functions:
        name = FunctionName.of(f.given)
        assert not scalar_functions.refusal(name), f.python.__name__
    found = same_bits(lambda *args: tuple(f(*args) for f in functions), *operands())
    np.testing.assert_array_equal(found[-1], operands()[2])  # what is nothing is 0


SWITCHED = """
begin:
  %n = and i64 %a, 7
  switch i64 %n, label %other [
    i64 0, label %first
    i64 3, label %second
    i64 5, label %first
  ]
first:
  %p = phi i64 [ %b, %begin ], [ %b, %begin ]
  %more = icmp sgt i64 %p, 4
  br i1 %more, label %second, label %other
second:
  %q = phi i64 [ %a, %begin ], [ %n, %first ]
  %half = ashr i64 %q, 1
  br label %other
other:
  %r.all = phi i64 [ 99, %begin ], [ %p, %first ], [ %half, %second ]
  store i64 %r.all, ptr %out
  ret i32 0"""


def test_values_change_places_at_once() -> None:
    """Values that blocks begin with are set from those before."""
    swapped = """
begin:
  br label %loop
loop:
  %k = phi i64 [ 0, %begin ], [ %next, %loop ]
  %p = phi i64 [ %a, %begin ], [ %q, %loop ]
  %q = phi i64 [ %b, %begin ], [ %p, %loop ]
  %next = add i64 %k, 1
  %c = and i64 %a, 7
  %more = icmp ult i64 %next, %c
  br i1 %more, label %loop, label %done
done:
  %t = shl i64 %p, 1
  %v = sub i64 %t, %q
  store i64 %v, ptr %out
  ret i32 0"""
    f = Given("swapped", swapped, I64)
    (found,) = same_bits(lambda *args: (f(*args),), *operands())
    a, b, *_ = operands()
    times = np.maximum(a & 7, 1) - 1
    p, q = np.where(times % 2 == 0, (a, b), (b, a))
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(found, 2 * p - q)


def test_switches() -> None:
    f = Given("switched", SWITCHED, I64)
    (found,) = same_bits(lambda *args: (f(*args),), *operands())
    a, b, *_ = operands()
    n = a & 7
    first = (n == 0) | (n == 5)
    second = np.where((n == 3), a, n) >> 1
    np.testing.assert_array_equal(found, np.where(
        first & (b <= 4), b, np.where(first | (n == 3), second, 99)))


@pytest.mark.parametrize(("body", "reason"), [
    ("%1 = call <2 x i64> @pair(i64 %a)\n  %r = extractelement <2 x i64> %1, i64 0", "vectors"),
    ("%1 = call i64 @unknown(i64 %a)\n  %r = add i64 %1, 1", "a call of unknown"),
    ("%1 = inttoptr i64 %a to ptr\n  %r = load i64, ptr %1", "LLVM's instruction inttoptr"),
    ("%1 = sext i64 %a to i256\n  %2 = mul i256 %1, %1\n  %3 = udiv i256 %2, 10\n  "
     "%r = trunc i256 %3 to i64", "values of LLVM's type i256"),
    ("%1 = alloca [4 x i64]\n  %2 = getelementptr i64, ptr %1, i64 %a\n"
     "  store volatile i64 %b, ptr %2\n  %r = load volatile i64, ptr %2", "memory"),
])
def test_what_has_no_rule_is_refused(body: str, reason: str) -> None:
    f = Given(f"refused {abs(hash(body))}", f"  {body}", I64)
    f.given.ir += "declare <2 x i64> @pair(i64)\ndeclare i64 @unknown(i64)\n"
    found = scalar_functions.refusal(FunctionName.of(f.given))
    assert " of fusec.vectorize has no CUDA C++: " in found and reason in found, found
