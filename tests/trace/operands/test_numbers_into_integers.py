"""Python's numbers of the run, and NumPy's scalars, that become integers of a dtype: as NumPy.

Each program is compiled by calls with numbers that fit, and then given those that may not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec

DTYPES = ["u1", "i2", "i8", "u8"]
MASK, PLACES = np.array([True, False, True]), np.array([0, 2])
FITTING = [(1.5, 0), (2.5, 1), (7.25, 2)]
NUMBERS = [np.nan, np.inf, -np.inf, 1e20, 300.0, -3.5, 255.9, -0.5]


def element(a: Any, v: Any, i: int) -> None:
    a[i] = v


def row(a: Any, v: Any, i: int) -> None:
    a.reshape(3, 1)[i, 0] = v


def where(a: Any, v: Any, i: int) -> None:
    a[a == 0] = v


def masked(a: Any, v: Any, i: int) -> None:
    a[MASK] = v


def listed(a: Any, v: Any, i: int) -> None:
    a[[0, 2]] = v


def indexed(a: Any, v: Any, i: int) -> None:
    a[PLACES] = v


def list_at_indices(a: Any, v: Any, i: int) -> None:
    a[PLACES] = [v, 1]


def list_in_mask(a: Any, v: Any, i: int) -> None:
    a[MASK] = [v, v]


def rest(a: Any, v: Any, i: int) -> None:
    a[i:] = v


def fixed(a: Any, v: Any, i: int) -> None:
    a[1] = v


def looped(a: Any, v: Any, i: int) -> None:
    for k in range(i + 1):
        a[k] = v


def branched(a: Any, v: Any, i: int) -> None:
    if a.sum() == 0:
        a[i] = v


def negated(a: Any, v: Any, i: int) -> None:
    a[i] = -v


def filled(a: Any, v: Any, i: int) -> None:
    a.fill(v)


def put(a: Any, v: Any, i: int) -> None:
    np.put(a, [0], v)


def put_masked(a: Any, v: Any, i: int) -> None:
    np.putmask(a, a == 0, v)


def placed(a: Any, v: Any, i: int) -> None:
    np.place(a, a == 0, v)


def along_axis(a: Any, v: Any, i: int) -> None:
    np.put_along_axis(a, PLACES, v, 0)


def made(a: Any, v: Any, i: int) -> Any:
    return np.array(v, dtype=a.dtype), np.asarray([v, v], dtype=a.dtype)


def full(a: Any, v: Any, i: int) -> Any:
    return np.full(3, v, dtype=a.dtype), np.full_like(a, v)


def copied(a: Any, v: Any, i: int) -> None:
    np.copyto(a, v, casting="unsafe")


def copied_where(a: Any, v: Any, i: int) -> None:
    np.copyto(a, v, casting="unsafe", where=MASK)


def from_array(a: Any, v: Any, i: int) -> None:
    a[PLACES] = np.array([v, v])


def constructed(a: Any, v: Any, i: int) -> Any:
    return np.int8(v), np.uint16(v), np.int64(v), np.uint64(v)


PROGRAMS = [element, row, where, masked, listed, indexed, list_at_indices, list_in_mask, rest,
            fixed, looped, branched, negated, filled, put, put_masked, placed, along_axis, made,
            full, copied, copied_where, from_array, constructed]


def outcome(program: Callable[..., Any], dtype: str, v: Any, i: int) -> tuple[str, ...]:
    a = np.zeros(3, dtype)
    try:
        with np.errstate(all="ignore"):
            result = program(a, v, i)
    except (TypeError, ValueError, OverflowError) as error:
        kinds = {"TypeError", "ValueError", "OverflowError"}
        return tuple(c.__name__ for c in type(error).__mro__ if c.__name__ in kinds)[-1:]
    return str(a.tolist()), str([np.asarray(r).tolist() for r in result or ()])


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("program", PROGRAMS)
def test_floats_of_python(program: Any, dtype: str) -> None:
    compiled = fusec.jit(program)
    for v, i in [*FITTING, *((v, 1) for v in NUMBERS), *FITTING]:
        if dtype[0] == "u" and not 0 <= v < 255 and program in (full, copied, copied_where,
                                                                from_array):
            continue  # what a cast gives is of the processor's choice
        assert outcome(compiled, dtype, v, i) == outcome(program, dtype, v, i), (v, i)


@pytest.mark.parametrize("convert", [np.float64, np.float32, np.array])
@pytest.mark.parametrize("dtype", ["i2", "i8"])
@pytest.mark.parametrize("program", [p for p in PROGRAMS if p is not constructed])
@pytest.mark.filterwarnings("ignore:invalid value")
def test_scalars_of_numpy(program: Any, dtype: str, convert: Any) -> None:
    compiled = fusec.jit(program)
    for v, i in [*FITTING, *((v, 1) for v in NUMBERS), *FITTING]:
        v = convert(v)
        assert outcome(compiled, dtype, v, i) == outcome(program, dtype, v, i), (v, i)


@pytest.mark.repeats
@pytest.mark.filterwarnings("ignore:Casting complex")
@pytest.mark.parametrize("dtype", [*DTYPES, "f4", "f8", "?", "c8"])
@pytest.mark.parametrize("program", [p for p in PROGRAMS if p is not negated])
def test_complex_numbers(program: Any, dtype: str) -> None:
    compiled = fusec.jit(program)
    for v, i in ((1j, 0), (2 + 1j, 1), (0j, 2)):
        assert outcome(compiled, dtype, v, i) == outcome(program, dtype, v, i), (v, i)


@pytest.mark.parametrize("program", [made, put_masked, placed, list_at_indices])
def test_ints_of_python(program: Any) -> None:
    for dtype in DTYPES:
        compiled = fusec.jit(program)
        for v, i in ((1, 0), (2, 1), (300, 1), (-1, 1), (7, 2)):
            assert outcome(compiled, dtype, v, i) == outcome(program, dtype, v, i), (dtype, v)


@pytest.mark.parametrize("function", [np.putmask, np.place])
def test_arrays_are_placed_where_they_convert_safely(function: Any) -> None:
    def placed_array(a: Any, v: Any, i: int) -> None:
        function(a, MASK, v)

    for dtype, source in (("i4", "i8"), ("f4", "f8"), ("i4", "u4"), ("i8", "i4"), ("f8", "i4")):
        for v in (np.ones(3, source), np.ones((), source), np.ones(1, source)[0]):
            compiled = fusec.jit(placed_array)
            for _ in range(3):
                assert outcome(compiled, dtype, v, 0) == outcome(placed_array, dtype, v, 0)


@pytest.mark.parametrize("kind", [int, float])
def test_complex_arrays_are_no_python_number(kind: Any) -> None:
    def number(a: Any, v: Any, i: int) -> Any:
        return (kind(v),)

    compiled = fusec.jit(number)
    for _ in range(2):
        assert outcome(compiled, "f8", np.array(1j), 0) == outcome(number, "f8", np.array(1j), 0)
