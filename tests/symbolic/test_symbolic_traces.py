"""One trace serves calls that differ in sizes, with the results of a trace for each."""

from __future__ import annotations

import gc
import math
import threading
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.trace.call.symbolic_arguments import symbolic_arguments
from fusec.trace.tracer import trace_function

SIZES = (40, 57, 64, 83, 100)


def vector(n: int) -> np.ndarray:
    return np.random.default_rng(n).normal(size=n)


def matrix(n: int, m: int = 3) -> np.ndarray:
    return np.random.default_rng(n).normal(size=(n, m))


def elementwise(x: Any) -> Any:
    return np.sin(x) * 2 + np.where(x > 0, x, -x)


def normalised(x: Any) -> Any:
    return (x - x.mean(axis=0)) / x.std(axis=0)


def mean_by_hand(x: Any) -> Any:
    return x.sum() / len(x), x.shape, x.size, 1 / len(x), 2 * math.pi / x.size


def differences(x: Any) -> Any:
    y = np.zeros_like(x)
    y[1:-1] = x[2:] - 2 * x[1:-1] + x[:-2]
    return y, x[::-1], x[len(x) // 2:], x[-3:]


def reshaped(x: Any) -> Any:
    return x.reshape(-1), x.T, x.reshape(len(x), 1, 3), x.T.copy()


def layer(x: Any) -> Any:
    return np.maximum(x @ np.ones((3, 4)), 0).sum(axis=1)


def recurrence(x: Any) -> Any:
    out = np.zeros(x.shape)
    for i in range(1, x.shape[0]):
        out[i] = 0.5 * out[i - 1] + x[i]
    return out


def in_place(x: Any) -> Any:
    x[1:] += x[:-1]
    x *= len(x)


def until(x: Any) -> Any:
    total = x[0] * 0
    for i in range(len(x)):
        if x[i] > 2.5:
            break
        total += x[i]
    return total


def grids(x: Any) -> Any:
    n = len(x)
    return np.arange(n) * x, np.linspace(0, 1, n) + x, np.eye(n) @ x, np.zeros((n, 2)), np.ones(n)


def library(x: Any) -> Any:
    return np.sort(x), np.cumsum(x), np.argsort(x), np.convolve(x, np.ones(3)), np.pad(x, 2)


def joined(x: Any) -> Any:
    return np.concatenate([x, x[::-1]]), np.stack([x, x]), np.outer(x, x), np.roll(x, 2)


def selected(x: Any) -> Any:
    return x[x > 0], np.nonzero(x > 0)[0], x[x > 0].sum()


def computed_numbers(x: Any) -> Any:
    n = x.shape[0]
    return (x * math.sqrt(n), n**2 * x, n // 3, n % 7, -n, divmod(n, 4), float(n), max(n, 7),
            round(n / 3, 2), x / (n - 1), math.log(n), np.sqrt(n), np.float32(n) * 2)


ONE_TRACE: list[tuple[Callable[..., Any], Callable[[int], np.ndarray]]] = [
    (elementwise, vector), (normalised, matrix), (mean_by_hand, vector), (differences, vector),
    (reshaped, matrix), (layer, matrix), (recurrence, vector), (in_place, vector), (until, vector),
    (grids, vector), (library, vector), (joined, vector), (selected, vector),
    (computed_numbers, vector), (elementwise, lambda n: matrix(n, 7).T),
    (normalised, lambda n: np.asfortranarray(matrix(n, 5))),
]
NAMES = [f.__name__ for f, _ in ONE_TRACE]


def check_same(got: Any, want: Any) -> None:
    assert type(got) is type(want)
    if isinstance(want, tuple):
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            check_same(a, b)
    elif isinstance(want, np.ndarray):
        assert (got.dtype, got.shape, got.strides) == (want.dtype, want.shape, want.strides)
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-13)
    elif isinstance(want, (float, np.floating)):
        np.testing.assert_allclose(got, want, rtol=1e-12)
    else:
        assert got == want


@pytest.mark.parametrize(("function", "argument"), ONE_TRACE, ids=NAMES)
def test_one_trace_serves_five_sizes(
    function: Callable[..., Any], argument: Callable[[int], np.ndarray],
) -> None:
    jitted = fusec.jit(function)
    for n in SIZES:
        x, y = argument(n), argument(n)
        check_same(jitted(x), function(y))
        check_same(x, y)
    assert jitted.trace_count == 1


def kernels(jitted: Any, x: Any) -> Any:
    concrete = jitted.concrete(x)
    return ([k.loops for k in concrete.kernels], [c.is_native for c in concrete.control],
            [str(e) for e in concrete.externs], str(concrete.optimized_graph))


@pytest.mark.parametrize(("function", "argument"), ONE_TRACE, ids=NAMES)
def test_kernels_are_those_of_a_trace_for_that_size(
    function: Callable[..., Any], argument: Callable[[int], np.ndarray],
) -> None:
    jitted = fusec.jit(function)
    for n in SIZES[:2]:
        jitted(argument(n))
    for n in (SIZES[0], SIZES[3]):  # traced with others, and as a plan
        own = fusec.jit(function, reduce_retracing=False)
        assert kernels(jitted, argument(n)) == kernels(own, argument(n))


def instantiated(function: Callable[..., Any], traced: Any, asked: Any) -> tuple[Any, Any]:
    """The trace for one argument at the sizes of another, and a trace for that one."""
    compiler = fusec.jit(function)._dispatching().compiler
    first, other = (compiler.flatten((x,), {}) for x in (traced, asked))
    symbols, others = symbolic_arguments(first.key), symbolic_arguments(other.key)
    assert symbols is not None and others is not None and symbols.key == others.key
    name, call = function.__name__, replace(first, symbolic=symbols.opened())
    trace = trace_function(function, name, call)
    assert trace.symbolic is not None and trace.symbolic.sizes.hold(others.sizes)
    return trace.at_sizes(others.sizes), trace_function(function, name, other)


@pytest.mark.parametrize(("function", "argument"), ONE_TRACE, ids=NAMES)
def test_a_graph_at_other_sizes_is_what_a_trace_gives(
    function: Callable[..., Any], argument: Callable[[int], np.ndarray],
) -> None:
    got, want = instantiated(function, argument(SIZES[0]), argument(SIZES[3]))
    assert str(got.graph) == str(want.graph)
    assert (got.outputs, got.input_strides, got.output_strides) == (
        want.outputs, want.input_strides, want.output_strides)


# -- what limits a trace ---------------------------------------------------------------------------


def test_a_branch_on_a_size_makes_two_traces() -> None:
    jitted = fusec.jit(lambda x: x + 1 if x.shape[0] > 60 else x - 1)
    for n in (*SIZES, *SIZES):
        np.testing.assert_array_equal(jitted(np.ones(n)), np.full(n, 2.0 if n > 60 else 0.0))
    assert jitted.trace_count == 2
    assert "where s0 > 60" in str(fusec.explain(jitted, np.ones(64)))
    assert "where s0 <= 60" in str(fusec.explain(jitted, np.ones(57)))


def test_a_size_that_python_needs_is_a_constant() -> None:
    jitted = fusec.jit(lambda x: sum([x[:, j] * j for j in range(x.shape[1])]))
    for m in (2, 3, 4):
        for n in SIZES:
            x = matrix(n, m)
            np.testing.assert_allclose(jitted(x), sum(x[:, j] * j for j in range(m)))
    assert jitted.trace_count <= 4  # the first for its own sizes


def test_none_one_and_more_elements_are_three_kinds() -> None:
    jitted = fusec.jit(lambda x: x * 2 + x.sum())
    for n in (0, 1, 2, 3, 5, 8, 13, 1, 0):
        check_same(jitted(np.arange(n) * 1.0), np.arange(n) * 2.0 + np.arange(n).sum())
    assert jitted.trace_count == 3


def test_sizes_that_are_equal_and_such_that_are_not() -> None:
    jitted = fusec.jit(lambda x, y: x[:, None] + y)
    for n, m in ((5, 5), (6, 6), (7, 8), (9, 10), (11, 11), (12, 11)):
        check_same(jitted(np.ones(n), np.ones(m)), np.ones((n, m)) * 2)
    assert jitted.trace_count == 2


def test_operands_that_do_not_fit_raise_as_in_their_own_trace() -> None:
    jitted = fusec.jit(lambda x: x + np.ones(7))
    jitted(np.ones(7))
    jitted(np.ones(1))
    for n in (5, 6):
        with pytest.raises(ValueError, match=rf"shapes \({n},\) \(7,\)\n  left:  f64\[{n}\]"):
            jitted(np.ones(n))


def test_each_shape_may_be_traced() -> None:
    jitted = fusec.jit(elementwise, reduce_retracing=False)
    for n in SIZES:
        jitted(vector(n))
    assert jitted.trace_count == len(SIZES)


# -- what is around a call -------------------------------------------------------------------------

FACTOR = 2.0


def test_a_global_that_changes_is_seen_at_every_size() -> None:
    global FACTOR
    jitted = fusec.jit(lambda x: x * FACTOR)
    for FACTOR in (2.0, 3.0):
        for n in SIZES:
            np.testing.assert_array_equal(jitted(np.ones(n)), np.full(n, FACTOR))
    FACTOR = 2.0


class Meter:
    def __init__(self) -> None:
        self.count, self.sizes, self.last = 0, [], {}

    @fusec.jit
    def take(self, x: Any) -> Any:
        self.count += len(x)
        self.sizes.append(x.shape[0])
        self.last[x.ndim] = x.size
        return x.sum()


def test_sizes_that_are_kept_are_pythons_ints() -> None:
    meter = Meter()
    for n in SIZES:
        meter.take(np.ones(n))
    assert (meter.count, meter.sizes, meter.last) == (sum(SIZES), list(SIZES), {1: SIZES[-1]})
    kept = [meter.count, *meter.sizes, *meter.last, *meter.last.values()]
    assert {type(number) for number in kept} == {int}


RETURNED: dict[str, Callable[[Any], Any]] = {
    "keys": lambda x: {len(x): x.sum(), "all": x.shape, (len(x), 1): [x.size]},
    "text": lambda x: f"{len(x)} of {x.shape}",
    "type": lambda x: (type(len(x)) is int, type(x.size), isinstance(len(x), int)),
    "slice": lambda x: slice(0, len(x)),
    "sorted": lambda x: sorted(x.shape * 2, reverse=True),
    "lookup": lambda x: {40: 1, 57: 2}.get(len(x), 0) * x,
    "in": lambda x: len(x) in {57, 83},
    "list": lambda x: [0] * len(x) + sorted([len(x), 60]),
}


@pytest.mark.parametrize("function", RETURNED.values(), ids=list(RETURNED))
def test_what_python_does_with_a_size(function: Callable[[Any], Any]) -> None:
    jitted = fusec.jit(function)
    for n in SIZES:
        got, want = jitted(np.ones(n)), function(np.ones(n))
        assert repr(got) == repr(want)
    jitted(np.ones(41))


def test_a_new_size_is_no_retrace() -> None:
    jitted = fusec.jit(elementwise)
    for n in SIZES[:2]:
        jitted(vector(n))
    with fusec.no_retrace():
        check_same(jitted(vector(71)), elementwise(vector(71)))


def test_many_shapes_leave_few_plans() -> None:
    jitted = fusec.jit(lambda x: x * 2 + 1)
    with fusec.config.override(plan_cache_bytes=1 << 20):  # of about 18 KiB each
        for n in range(2, 302):
            assert jitted(np.ones(n)).shape == (n,)
    assert jitted.trace_count == 1
    assert len(list(jitted._dispatching().compiler.traces.every())) <= 64


def test_plans_keep_no_arguments() -> None:
    """256 plans kept the arrays of their first calls."""
    jitted, alive = fusec.jit(normalised), []
    for n in range(40, 48):
        x = matrix(n)
        jitted(x)
        alive.append(weakref.ref(x))
    del x
    gc.collect()
    assert jitted.trace_count == 1 and [reference() for reference in alive] == [None] * 8


def test_threads_that_ask_for_different_sizes() -> None:
    jitted, wrong = fusec.jit(normalised), []

    def call(k: int) -> None:
        for n in range(10 + k, 90, 8):
            if not np.allclose(jitted(matrix(n)), normalised(matrix(n))):
                wrong.append(n)

    threads = [threading.Thread(target=call, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert jitted.trace_count == 1


def test_an_open_size_in_a_signature_is_a_symbol_at_once() -> None:
    specs = (fusec.TensorSpec((None, 3)), fusec.TensorSpec((3,)))
    jitted = fusec.jit(lambda x, w: (x * w).sum(axis=1), input_signature=specs)
    jitted(matrix(4), np.ones(3))
    assert "traced once for sizes x[s0,s1], w[s1]" in jitted.traces[0].as_text()
    for n in SIZES:
        check_same(jitted(matrix(n), np.ones(3)), matrix(n).sum(axis=1))
    assert jitted.trace_count == 1


def test_a_size_that_must_be_known_leaves_few_traces_behind() -> None:
    jitted = fusec.jit(lambda x: np.array([float(k) for k in range(len(x))]) * x)
    for n in range(2, 300):
        jitted(np.ones(n))
    (family,) = jitted._dispatching().compiler.symbolic._families.values()
    assert family.constants == {"s0"} and len(family.seen) <= 256


def test_a_call_that_fails_says_nothing_of_symbols() -> None:
    jitted = fusec.jit(lambda x, y: x + y)
    jitted(np.ones(5), np.ones(6)[:5].copy())
    with pytest.raises(ValueError, match="could not be broadcast"):
        jitted(np.ones(5), np.ones(7))
    with pytest.raises(ValueError, match="could not be broadcast"):
        jitted(np.ones(6), np.ones(8))
    for n in SIZES:
        jitted(np.ones(n), np.ones(n))
    assert jitted.trace_count == 1


def test_why_each_size_is_traced_is_told() -> None:
    jitted = fusec.jit(lambda x: (x, slice(0, len(x))))
    for n in SIZES:
        assert jitted(np.ones(n))[1] == slice(0, n)
    assert "each size has its own trace: UnsupportedError: returning a slice" in str(
        fusec.explain(jitted, np.ones(SIZES[-1])))


def test_the_size_that_pins_a_trace_is_named_with_its_line() -> None:
    def most(votes: Any) -> Any:
        return [np.bincount(row).argmax() for row in votes]

    jitted = fusec.jit(most)
    for n in SIZES:
        jitted(np.ones((n, 3), int))
    told = str(fusec.explain(jitted, np.ones((SIZES[-1], 3), int)))
    assert "each size has its own trace: it has the value of votes.shape[0], asked at" in told
    assert f"{__file__}:{most.__code__.co_firstlineno + 1}" in told


def summed_columns(x: Any, m: Any) -> Any:
    return np.cumsum(x[:, m], axis=0)


def places_of_all(x: Any, m: Any) -> Any:
    return np.searchsorted(np.sort(x[0, m]), x[0])


@pytest.mark.parametrize("program", [summed_columns, places_of_all], ids=lambda f: f.__name__)
def test_sizes_of_the_run_are_not_taken_for_those_of_arguments(program: Any) -> None:
    """The stand-ins of both had one size: results of library calls got the other's."""
    jitted = fusec.jit(program)
    for rows, columns, chosen in ((4, 6, 2), (5, 7, 3), (6, 9, 6), (5, 7, 0)):
        x, m = np.arange(rows * columns * 1.0).reshape(rows, columns), np.arange(columns) < chosen
        np.testing.assert_array_equal(jitted(x, m), program(x, m))
    assert jitted.trace_count <= 2
