"""Scans along rows: packs, warps, rounds; and long rows, whose tiles blocks share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import optree
import pytest

import fusec
from fusec import config
from fusec.codegen.cuda.kernels.reductions import long_scans
from fusec.codegen.cuda.kernels.reductions.long_scans import is_long_scan
from fusec.codegen.kernels.specialise import specialise

HOST = "/device:CUDAHOST:0"
RNG = np.random.default_rng(0)
PROGRAMS: dict[str, Callable[..., Any]] = {
    "sums": lambda x: np.cumsum(x, -1),
    "several": lambda x: (np.cumsum(x * 2, -1) + x, np.maximum.accumulate(x, -1)),
    "of a scan": lambda x: np.cumsum(np.cumsum(x, -1) / 100, -1),
    "with sums": lambda x: np.cumsum(x, -1) / x.sum(-1, keepdims=True)}


def check(name: str, x: np.ndarray) -> None:
    near = 1e-4 if x.dtype == "f4" else 1e-11
    got, want = fusec.jit(PROGRAMS[name], device=HOST)(x.copy()), PROGRAMS[name](x)
    for one, other in zip(*map(optree.tree_leaves, (got, want)), strict=True):
        np.testing.assert_allclose(one, other, rtol=near, atol=near * 10)


@pytest.mark.parametrize("shape", [(3, 5), (2, 1027), (3, 2, 260)],
                         ids=str)
def test_results_are_numpys(shape: tuple[int, ...]) -> None:
    x = RNG.normal(size=(*shape[:-1], shape[-1] + 8))
    for name in PROGRAMS:
        check(name, x[..., 4:4 + shape[-1]].astype("f4"))
        check(name, x[..., 1:1 + shape[-1]])
        check(name, np.asfortranarray(x[..., 4:4 + shape[-1]]))


@pytest.mark.parametrize("program", [
    lambda x: np.cumsum(x), lambda x: np.cumprod(x), lambda x: np.cumsum(x > 0),
    lambda x: np.logical_and.accumulate(x != 0, -1), lambda x: np.minimum.accumulate(x, -1)],
    ids=["sum", "product", "count", "and", "minimum"])
def test_integers_have_numpys_bits(
    program: Callable[..., Any], few_tiles: Callable[[int], None]
) -> None:
    """In a row of its own, and in many tiles and groups."""
    x = RNG.integers(-9, 10, (2, 1550)) | 1
    for few in (0, 64):
        few_tiles(few)
        for given in (x, x.astype("i4"), x[:, 1:]):
            np.testing.assert_array_equal(fusec.jit(program, device=HOST)(given), program(given))


@pytest.fixture
def few_tiles(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """Rows of short tiles, of few a group; none are shared where there are to be no ``rows``."""
    fusec.clear_caches()
    yield lambda rows: _set(monkeypatch, rows)
    monkeypatch.undo()
    fusec.clear_caches()


def _set(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    fusec.clear_caches()
    for name, value in (("FEW_ROWS", rows), ("LONG_ROW", 8), ("PACKS_OF_A_TILE", 70),
                        ("GROUP", 3)):
        monkeypatch.setattr(long_scans, name, value)


@pytest.mark.parametrize("name", ["sums", "several"])
@pytest.mark.parametrize("length", [280, 841, 5003])
def test_tiles_and_groups(name: str, length: int, few_tiles: Callable[[int], None]) -> None:
    few_tiles(64)
    check(name, RNG.normal(size=(2, length)).astype("f4"))
    check(name, RNG.normal(size=(1, length + 1))[:, 1:])


def test_the_order_of_blocks_changes_nothing(few_tiles: Callable[[int], None]) -> None:
    few_tiles(64)
    x, jitted = RNG.normal(size=9001).astype("f4"), fusec.jit(PROGRAMS["sums"], device=HOST)
    first = jitted(x)
    for seed in (1, 2, 3, 4):
        with config.override(cuda_host_seed=seed):
            np.testing.assert_array_equal(jitted(x), first)


def test_the_stated_order() -> None:
    """docs/cuda.md: a pack in order, packs of a warp by doubling distances, what came before."""
    x = RNG.normal(size=(3, 500)).astype("f4")
    got = fusec.jit(PROGRAMS["sums"], device=HOST)(x)
    for row, result in zip(x, got, strict=True):
        carry = np.float32(-0.0)
        for begin in range(0, 500, 128):
            packs = np.pad(row[begin:begin + 128], (0, -len(row[begin:begin + 128]) % 128),
                           constant_values=-0.0).reshape(32, 4)
            parts = np.cumsum(packs, axis=1, dtype="f4")
            up_to = parts[:, -1].copy()
            for d in (1, 2, 4, 8, 16):
                up_to[d:] = up_to[:-d] + up_to[d:]
            before = carry + np.concatenate([[np.float32(-0.0)], up_to[:-1]])
            want = (before[:, None] + parts).ravel()[:500 - begin]
            np.testing.assert_array_equal(result[begin:begin + 128], want[:128])
            carry = carry + up_to[-1]


def test_in_place_of_its_operand() -> None:
    def summed(x: Any) -> Any:
        x[:] = np.cumsum(x)
        return x

    x = RNG.normal(size=40_000)
    np.testing.assert_allclose(fusec.jit(summed, device=HOST)(x.copy()), np.cumsum(x), rtol=1e-9)


@pytest.mark.parametrize(("shape", "is_long"), [
    ((1_000_000,), True), ((64, 32_768), True), ((65, 32_768), False), ((4, 32_767), False)])
def test_which_rows_blocks_share(shape: tuple[int, ...], is_long: bool) -> None:
    (kernel,) = fusec.jit(lambda x: np.cumsum(x, -1)).lower(np.zeros(shape, "f4")).kernels
    strides = [place.strides for place in kernel.step.places]
    form = specialise(kernel.step.kernel, kernel.step.kernel.nests[0], strides)
    assert is_long_scan(form) == is_long
