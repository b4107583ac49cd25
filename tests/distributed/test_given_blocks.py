"""Blocks as tasks give them: at odd addresses, of other classes, without elements."""

from __future__ import annotations

from typing import Any

import dask
import numpy as np
import pytest

import fusec

da = pytest.importorskip("dask.array")
wire = pytest.importorskip("fusec.distributed.cluster.wire")

from tests.distributed.chunked import compared  # noqa: E402

RNG = np.random.default_rng(0)
X, V = RNG.standard_normal((100, 4)), RNG.standard_normal(100)


def at_odd_address(array: np.ndarray) -> np.ndarray:
    """A copy one byte beyond where its numbers would lie, as it may lie in a message."""
    memory = np.empty(array.nbytes + 1, np.uint8)
    part = memory[1:].view(array.dtype).reshape(array.shape)
    part[...] = array
    assert not part.flags.aligned
    return part


def given(block: Any, shape: tuple[int, ...]) -> Any:
    return da.from_delayed(dask.delayed(lambda: block)(), shape, float)


def test_products_have_the_same_bits_wherever_a_message_left_the_block() -> None:
    f = fusec.jit(lambda x, y: x.T @ y)
    want = f(given(X, X.shape), V).compute(scheduler="sync")
    got = f(given(at_odd_address(X), X.shape), V).compute(scheduler="sync")
    np.testing.assert_array_equal(got, want)


def test_values_of_messages_are_at_even_addresses() -> None:
    (got,) = wire.unpacked([["array", at_odd_address(X)]])
    assert got.flags.aligned and np.array_equal(got, X)


@pytest.mark.parametrize("function", (lambda x: x * 2, lambda x: x[1:] - x[:-1]))
@pytest.mark.parametrize("block", (np.ma.masked_greater(V, 0), np.asmatrix(V)))
def test_classes_with_rules_of_their_own_are_refused_in_the_task(
    function: Any, block: Any,
) -> None:
    lazy = fusec.jit(function)(da.concatenate([given(V, V.shape), given(block, V.shape)]))
    with pytest.raises(TypeError, match=f"a block is a .*{type(block).__name__}"):
        lazy.compute(scheduler="sync")


def test_files_and_lists_are_blocks(tmp_path: Any) -> None:
    file = np.memmap(tmp_path / "block", float, "w+", shape=V.shape)
    file[:] = V
    for block in (file, V.tolist()):
        got = fusec.jit(lambda x: x * 2)(given(block, V.shape)).compute(scheduler="sync")
        np.testing.assert_array_equal(got, V * 2)


def moved(u: Any) -> Any:
    v = u.copy()
    v[1:-1] = u[1:-1] + 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
    return v, u[1:] - u[:-1], np.cumsum(u), np.pad(u, 2), np.roll(u, 1), u[40]


@pytest.mark.parametrize("chunks", (
    (40, 0, 60), (0, 50, 50), (50, 50, 0), (40, 0, 0, 60), (0, 30, 0, 30, 0, 40, 0)))
def test_neighbours_across_blocks_without_elements(chunks: tuple[int, ...]) -> None:
    compared(moved, V, chunks=((chunks,),), exact=(True, True, False, True, True, True))


def recorded(x: Any, n: int) -> Any:
    losses, rows, pairs = [], [], []
    for _ in range(n):
        x = x - 0.5 * x.mean(axis=0)
        losses.append((x * x).mean())
        rows.append(x[0] * 2)
        pairs.append((x.max(), x.min()))
    return losses, rows, pairs


@pytest.mark.parametrize("times", (3, 25))
def test_lists_that_loops_fill(times: int) -> None:
    lazy = compared(recorded, X, times, chunks=((30, -1), None), exact=False)
    assert [len(part) for part in lazy] == [times] * 3
    assert all(isinstance(x, da.Array) for x in lazy[0])


class Box:
    """Holds what a program assigns."""

    total: Any = None


def test_assignments_outside_are_refused_with_the_place_and_the_functions_line() -> None:
    box = Box()

    def assigning(x: Any) -> Any:
        box.total = x.sum()
        return x

    with pytest.raises(
            fusec.errors.UnsupportedError,
            match=r"assigns Box.total(.|\n)*cure: return the values(.|\n)*def assigning"):
        fusec.jit(assigning)(da.from_array(V, chunks=20))
    assert box.total is None
