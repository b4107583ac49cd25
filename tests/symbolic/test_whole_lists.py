"""Lists that only calls read, as a whole: one trace serves lists of any length; where an item is
looked at by itself, or their length counts, each length has its own trace, and its own result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec

SIZES = (40, 51, 17, 66, 90, 5)


def parts(x: np.ndarray) -> Any:
    pieces = [x[i:i + 4] for i in range(0, len(x) - 3, 2)]
    return np.mean(pieces, axis=0)


def of_parts(x: np.ndarray) -> Any:
    pieces = [x[i:i + 4] for i in range(0, len(x) - 3, 2)]
    return np.array([np.std(p) for p in pieces]), len(pieces)


def filled(x: np.ndarray) -> Any:
    counts = []
    for row in x:
        largest = np.bincount(row.astype(int) % 3).max()
        counts.append(largest)
    return np.array(counts)


def filled_with_pairs(x: np.ndarray) -> Any:
    pairs = []
    for k in range(len(x)):
        pairs.append((x[k, 0], x[k].sum()))
    return np.array(pairs)


def gone_over(x: np.ndarray) -> Any:
    rows = [row * 2 for row in x]
    total = np.zeros(x.shape[1])
    for row in rows:
        total = total + row
    return total


ONE_TRACE: dict[str, Callable[[np.ndarray], Any]] = {
    "array": lambda x: np.array([row.sum() for row in x]),
    "array, dtype": lambda x: np.array([row.sum() for row in x], dtype=np.float32),
    "array of numbers": lambda x: np.array([float(row.sum()) for row in x]),
    "stack": lambda x: np.stack([row * 2 for row in x], axis=1),
    "concatenate": lambda x: np.concatenate([row[:2] for row in x]),
    "vstack": lambda x: np.vstack([row[:2] for row in x]),
    "column_stack": lambda x: np.column_stack([row[:2] for row in x]),
    "mean": lambda x: np.mean([row.max() for row in x]),
    "median": lambda x: np.median([row.max() for row in x]),
    "percentile": lambda x: np.percentile([row.max() for row in x], 30),
    "sum": lambda x: sum([row.max() for row in x]),
    "sum of arrays": lambda x: sum([row * 2 for row in x]),
    "max": lambda x: max([row.sum() for row in x]),
    "len": lambda x: len([row.sum() for row in x]) * x,
    "nested": lambda x: np.array([[abs(a - b).sum() for b in x] for a in x]),
    "pairs": lambda x: np.array([(row.sum(), row.max()) for row in x]),
    "two lists": lambda x: np.array([a + b for a, b in zip(x[:, 0], x[:, 1], strict=True)]),
    "parts": lambda x: parts(x.ravel()),
    "of parts": lambda x: of_parts(x.ravel()),
    "filled": filled, "filled with pairs": filled_with_pairs, "gone over": gone_over,
}


def same(got: Any, expected: Any) -> None:
    assert type(got) is type(expected)
    if isinstance(expected, (list, tuple)):
        assert len(got) == len(expected)
        for one, other in zip(got, expected, strict=True):
            same(one, other)
    elif isinstance(expected, dict):
        assert list(got) == list(expected)
    else:
        np.testing.assert_allclose(got, expected, rtol=1e-12)
        assert getattr(got, "dtype", None) == getattr(expected, "dtype", None)


def rows(n: int) -> np.ndarray:
    return np.random.default_rng(n).integers(-4, 5, (n, 3)).astype(float)


@pytest.mark.parametrize("name", ONE_TRACE)
def test_lists_of_any_length_have_one_trace(name: str) -> None:
    plain = ONE_TRACE[name]
    jitted = fusec.jit(plain)
    for n in SIZES:
        same(jitted(rows(n)), plain(rows(n)))
    assert jitted.trace_count <= 4  # of many items and of few, each for its first size and others


def count(items: list[Any]) -> int:
    n = 0
    for _ in items:
        n += 1
    return n


def kept(x: np.ndarray) -> Any:
    sums = [row.sum() for row in x]
    other = sums
    return len(other) * np.array(sums)


def grown(x: np.ndarray) -> Any:
    sums = [row.sum() for row in x]
    sums.append(x[0, 0])
    return np.array(sums)


def filled_twice(x: np.ndarray) -> Any:
    sums = []
    for row in x:
        sums.append(row.sum())
    for row in x[:5]:
        sums.append(row.max())
    return np.array(sums)


def gone_over_for_nothing(x: np.ndarray) -> Any:
    sums = [row.sum() for row in x]
    n = 0
    for _ in sums:
        n += 1
    return n


def read_inside(x: np.ndarray) -> Any:
    sums = [row.sum() for row in x]
    if x[0, 0] > 0:
        return np.array(sums) + len(sums)
    return np.array(sums)


def written_inside(x: np.ndarray) -> Any:
    copies = [row.copy() for row in x]
    for row in copies:
        row += 1
    return np.array(copies)


def seen_by_locals(x: np.ndarray) -> Any:
    sums = [row.sum() for row in x]
    n = len(locals()["sums"])
    return np.array(sums) * n


def two_appends(x: np.ndarray) -> Any:
    items = []
    for row in x:
        items.append(row.sum())
        items.append(row.max())
    return len(items) * x.sum(), np.array(items)


def two_appends_gone_over(x: np.ndarray) -> Any:
    items = []
    for row in x:
        items.append(row)
        items.append(row * 2)
    return np.array([item.sum() for item in items]), len(items)


def several_loops(x: np.ndarray) -> Any:
    items = []
    for k in range(3):
        for row in x:
            items.append(row.sum() + k)
    return len(items) * 1.5, np.array(items)


def loops_of_several_lengths(x: np.ndarray) -> Any:
    items = []
    for k in range(3):
        for row in x[:len(x) // (k + 1)]:
            items.append(row.sum() + k)
    return len(items) * 1.5, np.mean(items)


def several_loops_gone_over(x: np.ndarray) -> Any:
    items = []
    for k in range(2):
        for row in x:
            items.append(row * k)
    total = 0.0
    for item in items:
        total = total + item.sum()
    return total


def length_in_a_function(x: np.ndarray) -> Any:
    items = []
    for k in range(2):
        for row in x[:len(x) // (1 + 20 * k)]:
            items.append(row.sum())
    return len_of(items) * 2


def len_of(items: list[Any]) -> int:
    return len(items)


def peeled(x: np.ndarray) -> Any:
    items = []
    total = 0
    for row in x:
        total = total + row
        items.append(total.sum())
    return len(items), np.array(items)


def peeled_by_none(x: np.ndarray) -> Any:
    items = []
    total = None
    for row in x:
        total = row if total is None else total + row
        items.append(total)
    return len(items), np.stack(items), sum(items)


def pairs_gone_over(x: np.ndarray) -> Any:
    items = []
    for row in x:
        items.append((row.sum(), row.max()))
    return len(items), np.array([a * b for a, b in items])


LENGTHS_COUNT: dict[str, Callable[[np.ndarray], Any]] = {
    "as result": lambda x: [row.sum() for row in x],
    "of a function": lambda x: count([row.sum() for row in x]),
    "tuple": lambda x: tuple([row.sum() for row in x]),
    "enumerate": lambda x: sum(k for k, _ in enumerate([row.sum() for row in x])),
    "joined lists": lambda x: np.array([row.sum() for row in x] + [1.0]),
    "repeated": lambda x: np.array([row.sum() for row in x] * 2),
    "slice": lambda x: np.array([row.sum() for row in x][2:]),
    "item": lambda x: [row.sum() for row in x][-1],
    "best by key": lambda x: max([row.sum() for row in x], key=lambda t: -t),
    "sorted": lambda x: sorted([row.sum() for row in x]),
    "of none": lambda x: np.array([[] for row in x]),
    "dicts": lambda x: len([{"sum": row.sum()} for row in x]),
    "with positions": lambda x: np.array([(k, row.sum()) for k, row in enumerate(x)]),
    "without items": lambda x: np.array([1.5 for row in x]),
    "starred": lambda x: np.hypot(*[row.sum() for row in x][:2]),
    "condition": lambda x: np.where([row.sum() > 0 for row in x], 1, 2),
    "kept": kept, "grown": grown, "filled twice": filled_twice, "nothing": gone_over_for_nothing,
    "read inside": read_inside, "written inside": written_inside, "locals": seen_by_locals,
    "two appends": two_appends, "two appends gone over": two_appends_gone_over,
    "several loops": several_loops, "loops of several lengths": loops_of_several_lengths,
    "several loops gone over": several_loops_gone_over,
    "length in a function": length_in_a_function, "peeled": peeled,
    "peeled by none": peeled_by_none, "pairs gone over": pairs_gone_over,
}


@pytest.mark.parametrize("name", LENGTHS_COUNT)
def test_what_else_is_done_with_lists_is_right_at_each_length(name: str) -> None:
    plain = LENGTHS_COUNT[name]
    jitted = fusec.jit(plain)
    for n in SIZES:
        same(jitted(rows(n)), plain(rows(n)))
