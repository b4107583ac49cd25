"""Iterations that are written out: those that are alike have one graph, and tasks have a short way
to what is carried in no blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusec

da = pytest.importorskip("dask.array")

from fusec.distributed.block_tasks import StageCode  # noqa: E402
from tests.distributed.chunked import compared  # noqa: E402

RNG = np.random.default_rng(0)
X, V = RNG.standard_normal((60, 4)), RNG.standard_normal(60)


def clustered(x: Any, centres: Any, n: int) -> Any:
    for _ in range(n):
        distances = ((x[:, None, :] - centres[None]) ** 2).sum(axis=2)
        chosen = (distances.argmin(axis=1)[:, None] == np.arange(len(centres))).astype(float)
        centres = (chosen.T @ x) / chosen.sum(axis=0)[:, None]
    return centres


def descended(x: Any, y: Any, n: int) -> Any:
    w = np.zeros(x.shape[1])
    for _ in range(n):
        w = w - 0.1 * (x.T @ (x @ w - y)) / len(y)
    return w


def fitted(x: Any, y: Any, tolerance: float) -> Any:
    w, step, k = np.zeros(x.shape[1]), 1.0, 0
    while step > tolerance and k < 30:
        slope = x.T @ (x @ w - y) / len(y)
        w, step, k = w - 0.3 * slope, np.abs(slope).max(), k + 1
    return w, k


def followed(x: Any, n: int) -> Any:
    s = 0.0
    for _ in range(n):
        s = s - 0.1 * (s - x).mean()
    return s


def nested(x: Any, n: int) -> Any:
    s = np.zeros(x.shape[1])
    for _ in range(n):
        for _ in range(5):
            s = s + 0.1 * (x - s).mean(axis=0)
        s = s / (1 + np.abs(x * s).max())
    return s


def spread(u: Any, n: int) -> Any:
    for _ in range(n):
        v = u.copy()
        v[1:-1] = u[1:-1] + 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
        u = v
    return u


ROWS = (20, -1)
PROGRAMS = {  # arguments, their chunks, whether bits are the same, the most graphs
    "clusters": (clustered, (X, X[:3] + 0.1, 30), (ROWS, None, None), False, 4),
    "descent": (descended, (X, V, 30), (ROWS, 20, None), False, 6),
    "until it stands": (fitted, (X, V, 1e-3), (ROWS, 20, None), False, 12),
    "a number": (followed, (V, 30), (20, None), False, 6),
    "nested": (nested, (X, 12), (ROWS, None), False, 24),
    "edges": (spread, (np.tile(V, 4), 100), (80, None), True, 9),
}


def texts_of(lazy: Any) -> list[str]:
    """The texts of all graphs of a lazy array's stages."""
    values = [getattr(task, "value", None) for task in dict(lazy.dask).values()]
    return [text for code in values if isinstance(code, StageCode) for text in code.texts]


@pytest.mark.parametrize("name", PROGRAMS)
def test_iterations_that_are_alike_have_one_graph(name: str) -> None:
    function, arguments, chunks, exact, most = PROGRAMS[name]
    lazy = compared(function, *arguments, chunks=chunks, exact=exact)
    texts = texts_of(lazy[0] if isinstance(lazy, tuple) else lazy)
    assert len({*texts}) <= most < len(texts)


def test_stages_that_are_alike_are_compiled_once() -> None:
    lazy = fusec.jit(followed)(da.from_array(V, chunks=20), 30)
    codes = [task.value for task in dict(lazy.dask).values()
             if isinstance(getattr(task, "value", None), StageCode)]
    functions = {code.texts[0]: code.function(0) for code in codes}
    assert all(code.function(0) is functions[code.texts[0]] for code in codes)


def test_tasks_read_what_is_carried_not_every_iterations_sums() -> None:
    lazy = fusec.jit(followed)(da.from_array(V, chunks=20), 200)
    tasks = dict(lazy.dask).values()
    assert max(len(getattr(task, "dependencies", ())) for task in tasks) < 8
