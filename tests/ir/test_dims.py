"""Sizes known only at run time: canonical expressions, bounds, text, evaluation."""

from __future__ import annotations

import pickle
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusec.ir import TensorType, parse_type
from fusec.ir.sizes.bindings import bind, resolve
from fusec.ir.sizes.bounds import range_of
from fusec.ir.sizes.dims import (
    Dim,
    UndecidedSizeError,
    bounds,
    maximum,
    minimum,
    symbol,
    symbols_of,
)
from fusec.ir.text.parse import parse_graph
from fusec.ir.text.parse_dims import parse_dim
from fusec.ir.text.text import print_graph
from fusec.ir.types import DTYPE_NAMES

N, M = symbol("n"), symbol("m")
F64 = DTYPE_NAMES["f64"]


def test_equal_expressions_are_one_object():
    assert N + M is M + N
    assert (N + 1) * 2 - N is N + 2
    assert 2 * N * M is M * (N + N)
    assert maximum(N - 3, 0) is maximum(0, N - 3)


def test_a_range_goes_over_shared_parts_once():
    """Sizes of arrays that shrink again and again: down each way anew took half a minute here."""
    size = N
    for _ in range(6):
        size = maximum(size - minimum(size // 4, size), 0)
    start = time.process_time()
    assert range_of(size, {"n": 30}) == (0, 30)
    assert time.process_time() - start < 3


def test_expressions_without_symbols_are_ints():
    assert N - N == 0 and type(N - N) is int
    assert N * 0 == 0
    assert (6 * N + 3) // 3 is 2 * N + 1
    assert (4 * N) % 2 == 0


def test_bounds_decide_what_they_can():
    assert N >= 0 and N + 1 > 0 and not N < 0
    assert minimum(N, 3) <= 3 and maximum(N - 3, 0) >= 0
    assert bounds(minimum(N, 3)) == (0, 3)
    assert bool(N + 1)
    assert minimum(N, N + 1) is N and maximum(N, N + 2) is N + 2


@pytest.mark.parametrize("ask", [bool, int, range, float, lambda n: n > 3, lambda n: [0] * n])
def test_an_undecided_question_raises_and_names_the_size(ask):
    with pytest.raises(UndecidedSizeError, match="size n"):
        ask(N)


def test_equality_is_of_expressions():
    assert N != 3 and N != M and N != 1
    assert (N == N) and len({N, symbol("n"), M}) == 2


@st.composite
def sizes(draw, depth=3):
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from([N, M, 0, 1, 2, 5]))
    a, b = draw(sizes(depth=depth - 1)), draw(sizes(depth=depth - 1))
    make = draw(st.sampled_from([
        lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, minimum, maximum,
        lambda a, b: a // 3, lambda a, b: b % 4,
    ]))
    return make(a, b)


@given(sizes())
def test_text_and_pickle_round_trip(size):
    assert parse_dim(str(size)) == size
    assert pickle.loads(pickle.dumps(size)) == size


@given(sizes(), st.integers(0, 50), st.integers(0, 50))
def test_bounds_hold_for_every_value(size, n, m):
    value = resolve(size, {"n": n, "m": m})
    low, high = bounds(size)
    assert (low is None or low <= value) and (high is None or value <= high)


@given(sizes(depth=2), sizes(depth=2), st.integers(0, 50), st.integers(0, 50))
def test_arithmetic_agrees_with_ints(a, b, n, m):
    at = {"n": n, "m": m}
    x, y = resolve(a, at), resolve(b, at)
    assert resolve(a + b, at) == x + y
    assert resolve(a - b, at) == x - y
    assert resolve(a * b, at) == x * y
    assert resolve(minimum(a, b), at) == min(x, y)
    assert resolve(maximum(a, b), at) == max(x, y)
    if y:
        assert resolve(a // b, at) == x // y
        assert resolve(a % b, at) == x % y


def test_types_print_and_parse():
    kind = TensorType(F64, (3, N, maximum(N - 1, 0)))
    assert str(kind) == "f64[3,n,max(n-1,0)]"
    assert parse_type(str(kind)) == kind
    assert kind.size == 3 * N * maximum(N - 1, 0) and not kind.is_static


def test_graphs_with_sizes_parse_back():
    text = """graph main(x: f64[n]) {
  %Slice = Slice(%x) {starts=(1,), steps=(1,), sizes=(size("max(n-1,0)"),)} : f64[max(n-1,0)]
  return %Slice
}"""
    graph = parse_graph(text)
    assert print_graph(graph) == text
    assert graph.outputs[0].shape == (maximum(N - 1, 0),)


def test_binding_a_shape_defines_symbols_and_checks_the_rest():
    known: dict[str, int] = {}
    assert bind((N, 3), (5, 3), known) and known == {"n": 5}
    assert bind((N + 1,), (6,), known)
    assert not bind((N,), (4,), known)
    assert not bind((N + 1,), (5,), known)


def test_symbols_of_data():
    assert symbols_of(TensorType(F64, (N, M + 1))) == {"n", "m"}
    assert symbols_of(((1, N), "text")) == {"n"}
    assert isinstance(N, Dim)


def test_an_expression_that_trebles_is_refused_in_time() -> None:
    size = symbol("n")
    with pytest.raises(UndecidedSizeError, match="thousands of terms needs the size n"):
        for _ in range(40):
            size = maximum(size - minimum(size // 4, size), 0)
    assert len(str(size)) < 20_000


def test_bounds_of_lengths_that_a_loop_shrinks_and_grows_do_not_double_with_each_pass() -> None:
    def passes() -> None:
        w = g = symbol("n")
        for _ in range(40):
            g = minimum(g + w, 40)
            w, g = maximum(g - 1, 0), maximum(w - 1, 0)
            assert bounds(w) == (0, 39)

    began = time.process_time()
    with pytest.raises(UndecidedSizeError, match="thousands of terms"):
        passes()
    assert time.process_time() - began < 1  # 0.07 seconds; 3, and 4 times as many for each pass
