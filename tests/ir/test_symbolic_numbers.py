"""Numbers that follow from sizes: where all questions have the same answers, so has the program."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusec.ir.sizes.bounds import bounds
from fusec.ir.sizes.dims import Dim, argument_size, symbol
from fusec.ir.sizes.instantiate import Instantiation
from fusec.ir.sizes.size_questions import SizesClosedError
from fusec.ir.sizes.symbolic_numbers import Sizes, Symbolic, applied
from fusec.ir.sizes.symbolic_sizes import length_of_range, position, slice_indices
from fusec.ir.types import parse_type

SIZES = st.integers(2, 60)
BINARY = [operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod,
          operator.truediv, min, max, np.add, np.floor_divide]
UNARY = [operator.neg, abs, int, float, math.sqrt, np.float64, np.int64, round, np.sqrt]
QUESTIONS = [operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge]


@st.composite
def programs(draw: Any) -> list[tuple[Any, ...]]:
    """Steps on a list of numbers: an operator, the places of its operands, a constant."""
    steps = []
    for _ in range(draw(st.integers(1, 8))):
        kind = draw(st.sampled_from(["binary", "unary", "question", "range", "slice"]))
        table = {"binary": BINARY, "unary": UNARY, "question": QUESTIONS}.get(kind, [None])
        steps.append((kind, draw(st.sampled_from(table)), draw(st.integers(0, 50)),
                      draw(st.integers(0, 50)), draw(st.integers(-5, 9))))
    return steps


def run(steps: Any, sizes: list[Any], call: Any) -> list[Any]:
    """The numbers that the program computes; the first that Python refuses ends it."""
    values: list[Any] = list(sizes)
    for kind, fn, a, b, constant in steps:
        x, y = values[a % len(values)], values[b % len(values)]
        try:
            if kind == "binary":
                values.append(call(fn, x, y if constant < 0 else constant))
            elif kind == "unary":
                values.append(call(fn, x))
            elif kind == "question":
                values.append(y if fn(x, constant) else call(operator.add, x, 1))
            elif kind == "range":
                values.append(length_of_range(0, values[a % len(sizes)], constant or 1))
            else:
                key = slice(constant, None if b % 2 else values[b % len(sizes)], (b % 3) or None)
                values.extend(slice_indices(key, values[a % len(sizes)]))
        except (ZeroDivisionError, ValueError, OverflowError, TypeError) as error:
            return [*values, type(error).__name__]
    return values


def plainly(fn: Any, *args: Any) -> Any:
    with np.errstate(all="ignore"):
        return fn(*args)


def symbolically(fn: Any, *args: Any) -> Any:
    with np.errstate(all="ignore"):
        return applied(fn, *args)


@settings(max_examples=600, deadline=None, derandomize=True)
@given(programs(), st.tuples(SIZES, SIZES), st.lists(st.tuples(SIZES, SIZES), max_size=6))
def test_equal_answers_are_equal_programs(steps: Any, hints: Any, others: Any) -> None:
    sizes = Sizes.of({"s0": hints[0], "s1": hints[1]})
    traced = run(steps, list(sizes.symbols().values()), symbolically)
    sizes.is_open = False
    for asked in (hints, *others):
        named = {"s0": asked[0], "s1": asked[1]}
        if not sizes.hold(named):
            assert asked != hints
            continue
        want = run(steps, list(asked), plainly)
        with np.errstate(all="ignore"):
            got = [Instantiation(named).data(value) for value in traced]
        assert repr(got) == repr(want)  # types, zeros' signs and nan too


@settings(max_examples=300, deadline=None, derandomize=True)
@given(programs(), st.tuples(SIZES, SIZES))
def test_bounds_hold(steps: Any, at: Any) -> None:
    sizes = Sizes.of({"s0": 7, "s1": 11})
    for value in run(steps, list(sizes.symbols().values()), symbolically):
        if type(value) is Symbolic and type(value.expression) is Dim:
            low, high = bounds(value.expression)
            number = value.expression.evaluate({"s0": at[0], "s1": at[1]})
            assert (low is None or low <= number) and (high is None or number <= high)


def test_bounds_of_expressions() -> None:
    n, m = argument_size("s0"), argument_size("s1")
    assert bounds(n) == (2, 1 << 47)
    assert bounds(n * m - n)[0] == 2
    assert bounds(n - n // 3)[0] == 2
    assert bounds((n - 1) // 2 - (n - 3) // 2) == (1, 1)
    assert bounds(symbol("n") - 1)[0] == -1  # that the run decides: it may be nothing


def number(hint: int = 40) -> tuple[Sizes, Any]:
    sizes = Sizes.of({"s0": hint})
    return sizes, sizes.symbols()["s0"]


def test_what_bounds_decide_is_not_asked() -> None:
    sizes, n = number()
    assert n > 1 and n != 0 and n - 1 >= 1 and n * n >= n and not n - n and -1 % n == n - 1
    assert position(-1, n) == n - 1
    assert not sizes.questions


READ = {
    "index": operator.index, "int in C": lambda n: [0] * n, "range": range, "hash": hash,
    "text": str, "format": lambda n: f"{n:3d}", "numpy": np.zeros, "float": float,
    "key": lambda n: {40: 1}.get(n), "attribute": lambda n: n.bit_length(), "pickle": round,
    "array": np.asarray, "shift": lambda n: range(n >> 1),
}


@pytest.mark.parametrize("read", READ.values(), ids=list(READ))
def test_a_number_that_is_read_is_the_same_in_all_calls(read: Any) -> None:
    sizes, n = number()
    if read is round:
        import pickle

        assert pickle.loads(pickle.dumps(n)) == 40
    else:
        read(n)
    assert sizes.hold({"s0": 40})
    assert not sizes.hold({"s0": 41}) or read is READ["shift"]  # 40 >> 1 is 41 >> 1
    assert sizes.constants().keys() == {"s0"}


def test_it_says_that_it_is_an_int() -> None:
    _, n = number()
    assert isinstance(n, int) and n.__class__ is int and not isinstance(n, float)
    assert isinstance(n / 2, float)


def test_questions_read_well() -> None:
    sizes, n = number()
    assert not n > 100 and n * 2 != 7 and n % 3 == 1
    assert list(map(str, sizes.questions)) == ["s0 <= 100", "2*s0 != 7", "(s0%3) == 1"]


def test_a_number_that_outlives_its_trace_is_an_internal_error() -> None:
    sizes, n = number()
    sizes.is_open = False
    with pytest.raises(SizesClosedError, match="outlived its trace"):
        hash(n)


@pytest.mark.parametrize("text", ["f64[s0]", "f64[3,s12-1]", "f64[max(s1,2)]"])
def test_no_text_says_that_a_size_is_at_least_two(text: str) -> None:
    with pytest.raises(ValueError, match="which no text can name"):
        parse_type(text)
    assert parse_type("f64[size]").shape[0] == symbol("size")
