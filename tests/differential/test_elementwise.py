"""Every elementwise row of the registry, in every dtype it has in NumPy, on awkward values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from arrays import DTYPES, LAYOUTS, ordinary, pairs, specials
from harness import check
from tolerance import EXACT, Tolerance, Ulp

import fusec
from fusec.ops import Op, all_ops

# Rounded correctly by the hardware or exact by nature; the others have a stated bound in ulp.
FUNCTIONS = {
    "Cbrt", "Exp", "Exp2", "Expm1", "Log", "Log2", "Log10", "Log1p", "Sin", "Cos", "Tan", "Arcsin",
    "Arccos", "Arctan", "Arctan2", "Sinh", "Cosh", "Tanh", "Arcsinh", "Arccosh", "Arctanh",
    "Hypot", "Pow",
}
ROWS = [row for row in all_ops() if row.kind == "elementwise" and row.ufunc is not None]


def is_defined(row: Op, dtype: str) -> bool:
    """Whether NumPy has it for this dtype."""
    ones = [np.ones(1, dtype)] * row.arity
    try:
        row.ufunc.resolve_dtypes((*[a.dtype for a in ones], None))
    except TypeError:
        return False
    integer_power = row.name == "Pow" and np.dtype(dtype).kind in "biu"
    return not integer_power


CASES = [(row, d) for row in ROWS for d in DTYPES if is_defined(row, d)]


def tolerance_of(row: Op) -> Tolerance:
    return Ulp(4, factor=0) if row.name in FUNCTIONS else EXACT


def caller(ufunc: np.ufunc) -> Callable[..., Any]:
    if ufunc.nin == 1:
        return lambda x: ufunc(x)
    return lambda x, y: ufunc(x, y)


@pytest.mark.parametrize(("row", "dtype"), CASES, ids=lambda v: getattr(v, "name", v))
def test_row_in_dtype(row: Op, dtype: str) -> None:
    args = (specials(dtype),) if row.arity == 1 else pairs(dtype, dtype)
    check(caller(row.ufunc), *args, tolerance=tolerance_of(row))


def test_every_defined_dtype_is_covered() -> None:
    covered = {row.name for row, _ in CASES}
    assert covered == {row.name for row in ROWS}


# ---------------------------------------------------------------------------------- mixed dtypes


def arithmetic(x: Any, y: Any) -> Any:
    return x + y, x * y, x / y, np.where(x > y, x, y), np.maximum(x, y), np.minimum(y, x)


def comparisons(x: Any, y: Any) -> Any:
    return x == y, x != y, x < y, x <= y, x > y, x >= y


def divisions(x: Any, y: Any) -> Any:
    return x // y, x % y, x - y


def bits(x: Any, y: Any) -> Any:
    return x & y, x | y, x ^ y


def shifts(x: Any, y: Any) -> Any:
    return x << y, x >> y


@pytest.mark.parametrize("a", DTYPES)
def test_pairs_of_dtypes(a: str) -> None:
    for b in DTYPES:
        args = pairs(a, b)
        check(arithmetic, *args, engines=False)
        check(comparisons, *args, engines=False)
        if a != "?" or b != "?":
            check(divisions, *args, engines=False)
        if "f" not in a + b:
            check(bits, *args, engines=False)
            check(shifts, *args, engines=False)


# --------------------------------------------------------------------------------------- scalars

SCALARS: list[Any] = [
    True, False, 0, 1, 2, -1, 3, 100, 127, 128, 255, 256, -128, -129, 40000, 2**31, 2**40,
    2**63 - 1, 2**63, -(2**63) - 1, 2**70, 0.5, 2.0, -0.0, float("nan"), float("inf"), 1e300,
    np.float32(1.5), np.float64(2.5), np.int8(3), np.uint8(200), np.int64(5), np.uint64(7),
    np.bool_(True),
]


def scalar_programs(s: Any) -> list[Callable[[Any], Any]]:
    return [
        lambda x: (x + s, x * s),
        lambda x: (s - x, np.maximum(x, s)),
        lambda x: (x < s, s == x, x >= s, s != x),
        lambda x: (np.where(x > 0, x, s), np.where(x > 0, s, 0), np.where(x > 0, s, 1.5)),
        lambda x: (x / s, s / x),
    ]


@pytest.mark.parametrize("dtype", DTYPES)
def test_scalar_operands(dtype: str) -> None:
    x = specials(dtype)
    for s in SCALARS:
        for program in scalar_programs(s):
            check(program, x, engines=False)


@pytest.mark.parametrize("dtype", DTYPES)
def test_scalar_arguments(dtype: str) -> None:
    """The same scalars as arguments of one function: run-time floats, ints that may be."""
    function = fusec.jit(lambda x, s: (x * s, x + s, x < s, s))
    for s in SCALARS:
        check(function.python_function, specials(dtype), s, engines=False, jitted=function)


# ------------------------------------------------------------------------------ layouts and casts


def mixture(x: Any) -> Any:
    """Some cheap operations in one kernel."""
    y = x * 2 + 1
    return y, abs(x), x > 1, np.where(x < 3, x, y), np.square(x) + x


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["?", "i1", "u4", "i8", "f4", "f8"])
def test_layouts(layout: str, dtype: str) -> None:
    check(mixture, LAYOUTS[layout](dtype), source=layout != "contiguous", fp="strict")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_two_layouts_together(layout: str) -> None:
    x = LAYOUTS[layout]("f8")
    for other in LAYOUTS:
        y = LAYOUTS[other]("f4")
        check(lambda x, y: (x + y, np.maximum(y, x), x - y.T), x, y, engines=False, fp="strict")


@pytest.mark.parametrize("source", DTYPES)
def test_casts(source: str) -> None:
    x = specials(source) if source[0] != "f" else ordinary(source, 40)
    for target in DTYPES:
        check(lambda x, t=target: (x.astype(t), np.asarray(x, dtype=t)), x, engines=False)


@pytest.mark.parametrize("target", DTYPES)
@pytest.mark.parametrize("source", ["f4", "f8"])
def test_casts_of_what_does_not_fit(source: str, target: str) -> None:
    """Strided, because NumPy's vector loop to uint32 differs from its own scalar loop."""
    check(lambda x: x.astype(target), np.repeat(specials(source), 2)[::2])


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_signs(dtype: str) -> None:
    """Also of one operand given twice: NVRTC made the magnitude of that, for halves."""
    t = np.arange(65536, dtype="u2").view("f2").astype(dtype)
    check(lambda t: np.copysign(t, t), t)
    check(lambda t: (np.copysign(t, -t), np.copysign(t, t[::-1]), np.copysign(1, t)), t)
    check(lambda t, u: np.copysign(t, u), t, t.copy())
