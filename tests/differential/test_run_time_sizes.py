"""Results whose size depends on data: masks, sets and searches, and computations with them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from arrays import DTYPES, ordinary
from harness import check
from tolerance import Ulp

import fusec
from fusec.ir.text.parse import parse_graph

RNG = np.random.default_rng(11)
CLOSE = Ulp(ulp=64, scale=1.0)
DENSITIES = (0.5, 0.1, 0.9, 0.0, 1.0, 0.02, 0.5)


def masks(count: int) -> list[np.ndarray]:
    return [np.random.default_rng(i).random(count) < d for i, d in enumerate(DENSITIES)]


PROGRAMS: dict[str, Callable[..., Any]] = {
    "select": lambda x, m, w: x[m],
    "chain": lambda x, m, w: x[m] * w[m] + 1,
    "equal masks": lambda x, m, w: x[x > 0.5] * w[x > 0.5],
    "sums": lambda x, m, w: (x[m].sum(), (x[m] * w[m]).prod(), x[m].any(), x[m].all()),
    "mean": lambda x, m, w: (x[m].mean(), x[m].std(ddof=1), x[m].var()),
    "extrema": lambda x, m, w: (x[m].max(), w[m].argmin()),
    "min": lambda x, m, w: np.min(x[m]),
    "sizes": lambda x, m, w: (len(x[m]), x[m].size, x[m].shape, 2 * len(x[m]) + 1),
    "average": lambda x, m, w: np.where(len(x[m]) > 0, x[m].sum() / np.float64(len(x[m])), 0.0),
    "standardise": lambda x, m, w: (x[m] - x[m].mean()) / x[m].std(),
    "slices": lambda x, m, w: (x[m][:3], x[m][1:], x[m][:-1], x[m][::-1], x[m][::2], x[m][-4:]),
    "neighbours": lambda x, m, w: (x[m][1:] - x[m][:-1], np.diff(x[m])),
    "elements": lambda x, m, w: (x[m][0], x[m][-1]),
    "order": lambda x, m, w: (np.sort(x[m]), np.argsort(x[m]), np.cumsum(x[m]), np.median(x[m])),
    "gather": lambda x, m, w: x[m][np.argsort(w[m])] * 2,
    "search": lambda x, m, w: np.searchsorted(np.sort(x[m]), x),
    "products": lambda x, m, w: (x[m] @ w[m], np.outer(x[m], x[:3]), x[m][:, None] + w[m]),
    "join": lambda x, m, w: np.concatenate([x[m], x[~m], w[:2]]),
    "append": lambda x, m, w: (np.append(x[m], 3.0), np.roll(x[m], 2), np.flip(x[m])),
    "stack": lambda x, m, w: np.stack([x[m], w[m]], axis=1).T,
    "where": lambda x, m, w: np.where(x[m] > 0.5, w[m], 0.0),
    "new": lambda x, m, w: (np.zeros(len(x[m])), np.ones((len(x[m]), 2)), np.arange(len(x[m]))),
    "broadcast": lambda x, m, w: (
        np.broadcast_to(x[0], x[m].shape), np.broadcast_to(x[:1], x[m].shape) * 2,
        np.broadcast_to(w.sum(), x[m].shape).min(initial=9.0) + w[m], np.broadcast_to(3, len(x[m])),
        np.broadcast_to(w[:2], (*x[m].shape, 2))[1:, ::-1], np.broadcast_to(
            x[m][:, None], (*x[m].shape, *w[~m].shape)) * w[~m]),
    "rows": lambda x, m, w: x.reshape(-1, 2)[m[: x.size // 2]].sum(axis=0),
    "row sums": lambda x, m, w: x.reshape(-1, 2)[m[: x.size // 2]].sum(axis=1),
    "columns": lambda x, m, w: x.reshape(-1, 2)[m[: x.size // 2], 1],
    "centred rows": lambda x, m, w: (x.reshape(-1, 2)[m[: x.size // 2]]
                                     - x.reshape(-1, 2)[m[: x.size // 2]].mean(axis=0)),
    "matrix mask": lambda x, m, w: x.reshape(-1, 2)[m.reshape(-1, 2)] + 1,
    "reshape": lambda x, m, w: x[m].reshape(-1, 1) * w[:3],
    "nonzero": lambda x, m, w: (np.nonzero(m)[0], np.flatnonzero(m), np.argwhere(m), np.where(m)),
    "compress": lambda x, m, w: (np.compress(m, x), np.extract(m, x), x.compress(m)),
    "unique": lambda x, m, w: np.unique(np.floor(x[m] * 9)),
    "unique of all": lambda x, m, w: np.unique(
        np.floor(x * 9), return_index=True, return_inverse=True, return_counts=True),
    "sets": lambda x, m, w: (np.union1d(x[m], w), np.intersect1d(w[m], w), np.setdiff1d(w, w[m])),
    "bincount": lambda x, m, w: np.bincount((w[m]).astype(np.int64)),
    "histogram": lambda x, m, w: np.histogram(x[m], 5, (0, 1))[0],
    "clip": lambda x, m, w: np.clip(x[m], 0.2, 0.8),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_density_without_a_retrace(name: str) -> None:
    f, x, w = PROGRAMS[name], RNG.random(200), np.arange(200.0)
    function = fusec.jit(f)
    for mask in masks(200):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of NumPy's means of nothing
            check(f, x, mask, w, jitted=function, tolerance=CLOSE, source=True)
    assert function.trace_count == 1


def test_a_new_size_compiles_nothing() -> None:
    function = fusec.jit(lambda x, m: (np.exp(x[m]) * 2, x[m].mean()))
    x = RNG.random(1000)
    function(x, x > 0.5)
    with fusec.no_retrace():
        for limit in np.linspace(-1, 2, 40):
            got = function(x, x > limit)
            np.testing.assert_allclose(got[0], np.exp(x[x > limit]) * 2, rtol=1e-13)


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(dtype: str) -> None:
    x = ordinary(dtype, 37)
    for mask in masks(37):
        check(lambda x, m: (x[m], x[m] == x[m], np.sort(x[m])), x, mask, source=True)


def test_a_masked_chain_is_one_kernel() -> None:
    x, mask = RNG.random(100), RNG.random(100) < 0.5
    concrete = fusec.jit(lambda x, m: ((x[m] * 2).prod(), x[m].any())).concrete(x, mask)
    assert len(concrete.kernels) == 1
    assert [e.name for e in concrete.externs] == ["np.nonzero"]


def test_sums_of_what_a_mask_selects_need_no_indices() -> None:
    x, mask = RNG.random(100), RNG.random(100) < 0.5
    concrete = fusec.jit(lambda x, m: ((x[m] * 2).sum(), x[m].mean())).concrete(x, mask)
    assert len(concrete.kernels) == 1
    assert concrete.externs == []


def _updates(x: np.ndarray, m: np.ndarray) -> np.ndarray:
    x[m] += 1
    x[m] = x[m] * 2
    x[~m] = np.sqrt(x[~m])
    return x


def _writes_to_selected(x: np.ndarray, m: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    v = x[m]
    v += 1
    v[1:] = 5
    v[:2] *= 3
    return v, x


def _branch_on_the_size(x: np.ndarray, m: np.ndarray) -> Any:
    v = x[m]
    if len(v) == 0:
        return x.sum()
    return v.sum()


def _loop(x: np.ndarray, m: np.ndarray) -> Any:
    total = 0.0
    for limit in range(4):
        total += x[x > limit / 4].sum()
    return total


@pytest.mark.parametrize("f", [_updates, _writes_to_selected, _branch_on_the_size, _loop])
def test_statements(f: Callable[..., Any]) -> None:
    function = fusec.jit(f)
    for mask in masks(50):
        check(f, RNG.random(50), mask, jitted=function, tolerance=CLOSE)
    assert function.trace_count == 1


def test_two_sizes_that_meet_are_numpys_business() -> None:
    function = fusec.jit(lambda x, a, b: x[a] + x[b])
    x = np.arange(10.0)
    for a, b in [(x < 5, x >= 5), (x < 3, x > 6), (x < 1, x > 5)]:
        np.testing.assert_array_equal(function(x, a, b), x[a] + x[b])
    with pytest.raises(ValueError, match=r"shapes \(3,\) \(4,\)"):
        function(x, x < 3, x > 5)
    assert function.trace_count == 1


def test_a_size_that_python_needs_names_the_line_it_came_from() -> None:
    def f(x: np.ndarray) -> Any:
        return [0] * len(x[x > 0])

    with pytest.raises(fusec.errors.ConcreteValueError):
        fusec.jit(f)(np.ones(3))


def test_a_view_of_a_selection_is_written_through() -> None:
    def f(x: np.ndarray, m: np.ndarray) -> Any:
        v = x.reshape(-1, 2)[m]
        v[0][1] = 7.0
        v.T[0] = 1.0
        return v

    check(f, RNG.random(20), np.arange(10) % 3 == 0)


def test_a_broadcast_view_shows_what_is_written_later() -> None:
    """Of a size that nothing else of the graph needed it was a ``KeyError``."""
    def program(x: Any, m: Any) -> Any:
        y = x * 2
        shown = np.broadcast_to(y[:1], x[m].shape)
        before = shown + 1
        y[0] = 7
        return shown, before, shown.sum(), y

    for mask in masks(9):
        check(program, np.arange(9.0), mask)
    x = np.arange(3.0)
    shown = fusec.jit(lambda x: np.broadcast_to(x[:1], x[x > 0].shape))(x)
    assert np.shares_memory(shown, x) and shown.strides == (0,) and not shown.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        fusec.jit(lambda x: np.broadcast_to(x[0], x[x > 0].shape).fill(1))(x)


def test_graphs_parse_back() -> None:
    x = RNG.random(10)
    concrete = fusec.jit(lambda x: (x[x > 0.5][1:] * 2).mean()).concrete(x)
    for graph in (concrete.graph, concrete.optimized_graph):
        assert str(parse_graph(str(graph))) == str(graph)
    assert "f64[n]" in str(concrete.graph)
    assert "in max(n-1,0):" in concrete.kernels[1].loops


def _last(x: Any) -> Any:
    r = x[x > 0]
    if len(r) == 0:
        return np.float64(0.0)
    return r[-1]


def _third(x: Any) -> Any:
    r, s = x[x > 0], np.float64(0.0)
    if x[0] < 0:
        s = r[2]
    return s


def _last_of_a_part(x: Any) -> Any:
    count, total, k = int(x[0]), np.float64(0.0), 0
    while k < count:
        total += x[:count][-1] + np.cumsum(x[:count])[-2] + (x[:count] * 2).item(0)
        k += 1
    return total


@pytest.mark.parametrize("program", [_last, _third, _last_of_a_part])
@pytest.mark.parametrize("x", [[-1.0, 2, 5, -3], [-1.0, 2, 5, 7], [3.0, 1, 2, 4], [2.0, -1]])
def test_constant_indices_in_branches_and_loops(program: Any, x: list[float]) -> None:
    """They count from an end that only the run knows, and are checked."""
    check(program, np.array(x))


def test_sizes_of_results_that_are_overwritten() -> None:
    """Seed 139037549: nothing of ``np.delete`` but the size is needed, so no check sees a guess."""
    def program(x: Any) -> Any:
        rest = np.delete(x, x, axis=-1)
        rest[:] = 1
        return rest, np.zeros_like(np.repeat(x[0], x[1])), np.ones_like(np.unique(x))

    for numbers in ([1, 1, 1, 1, 2, 1], [0, 0, 0, 0, 0, 0], [0, 1, 2, 2, 1, 0]):
        check(program, np.array(numbers).reshape(2, 3))


MADE = {
    "zeros": lambda x, k: np.zeros(k[1]), "selected": lambda x, k: x[x > k[0] - 3],
    "part": lambda x, k: x[:k[1]] * 2, "copy": lambda x, k: x[:k[1]].copy(),
    "joined": lambda x, k: np.concatenate([x, np.zeros(k[1])]),
}


def _rest(o: Any) -> None:
    o[1:] = 3


def _every_other(o: Any) -> None:
    o[::2] += 4


def _through_a_view(o: Any) -> None:
    rest = o[1:]
    rest[:] = 5


def _masked(o: Any) -> None:
    o[o > 0] = 7


def _shifted(o: Any) -> None:
    o[1:] = o[:-1].copy()


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("write", [_rest, _every_other, _through_a_view, _masked, _shifted])
def test_parts_written_in_branches_and_loops(made: str, write: Any) -> None:
    make = MADE[made]

    def branch(x: Any, k: Any) -> Any:
        o = make(x, k)
        if k[0] == 2:
            write(o)
        return o

    def loop(x: Any, k: Any) -> Any:
        o = make(x, k)
        for _ in range(k[0]):
            write(o)
        return o

    x = np.array([0.3, -1.2, 2.5, 0.7, -0.1])
    for k in ([2, 4], [1, 4], [3, 5]):
        check(branch, x, np.array(k))
        check(loop, x, np.array(k))


def test_slices_by_sizes_of_other_arrays() -> None:
    def padded(x: Any) -> Any:
        v = x[x > 0]
        n = len(v)
        o = np.zeros(len(x))
        o[:n] = v
        o[n:] = 7
        return o, x[:n].sum()

    check(padded, np.array([0.25, -1.5, 2.5, 0.75, -0.125]))
    check(lambda x, p: x[:len(x[p[0]:p[1]])].sum(), np.arange(5.0), np.array([1, 3]))


@pytest.mark.parametrize("ddof", [0.0, 1.0, 1.5, -0.5, 2])
@pytest.mark.parametrize("function", [np.std, np.var])
def test_degrees_of_freedom_as_floats(function: Any, ddof: float) -> None:
    """A float took sizes of data for numbers of its own kind: an internal error."""
    for dtype in (np.float64, np.float32):
        check(lambda x: function(x[x > 2], ddof=ddof), np.arange(7.0).astype(dtype))
