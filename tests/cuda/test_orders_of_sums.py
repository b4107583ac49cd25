"""The orders of sums that docs/cuda.md states, against plain renderings of them, bit for bit."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec

HOST = "/device:CUDAHOST:0"
RNG = np.random.default_rng(11)
DTYPES = ("f4", "f8", "c8", "c16")


def numbers(*shape: int, dtype: Any = "f8") -> np.ndarray:
    made = RNG.normal(size=shape) + (1j * RNG.normal(size=shape) if dtype[0] == "c" else 0)
    return np.asarray(made).astype(dtype)


def on_device(f: Callable[..., Any], *args: np.ndarray) -> Any:
    return fusec.jit(f, device=HOST)(*args)


def in_turn(terms: np.ndarray) -> Any:
    """Along the first axis, one after another."""
    total = np.zeros(terms.shape[1:], terms.dtype)
    for term in terms:
        total = total + term
    return total


def by_halves(lanes: np.ndarray) -> Any:
    """Lane l with l xor T/2, then T/4, ..."""
    while len(lanes) > 1:
        lanes = lanes[:len(lanes) // 2] + lanes[len(lanes) // 2:]
    return lanes[0]


def joined(threads: np.ndarray) -> Any:
    """The lanes of each warp, and then warps, as 16 lanes of which some hold nothing."""
    if len(threads) <= 32:
        return by_halves(threads)
    warps = np.zeros(16, threads.dtype)
    warps[:len(threads) // 32] = [by_halves(w) for w in threads.reshape(-1, 32)]
    return by_halves(warps)


def packed(row: np.ndarray) -> np.ndarray:
    """Its packs of 16 bytes, the last one filled with zeros; of a complex number, and of elements
    that lie apart, each by itself."""
    lanes = 16 // row.itemsize if row.dtype.kind == "f" and row.strides == (row.itemsize,) else 1
    return np.pad(row, (0, -len(row) % lanes)).reshape(-1, lanes)


def by_team(packs: np.ndarray, team: int) -> Any:
    """Thread t adds the elements of packs t, t + T, ... in order."""
    return joined(np.array([in_turn(packs[t::team].ravel()) for t in range(team)], packs.dtype))


def of_row(row: np.ndarray) -> Any:
    packs = packed(row)
    team = 1 << (len(packs) - 1).bit_length()
    return by_team(packs, team if team <= 16 else min(512, 32 * math.ceil(len(packs) / 256)))


def of_blocks(row: np.ndarray, blocks: int) -> Any:
    """Blocks of 256 threads over all of it; one block joins their results."""
    packs = packed(row)
    of_block = [joined(np.array([in_turn(packs[256 * b + t::256 * blocks].ravel())
                                 for t in range(256)], row.dtype)) for b in range(blocks)]
    return by_team(np.array(of_block)[:, None], 256)


def of_all(x: np.ndarray) -> Any:
    return of_blocks(x, min(1024, math.ceil(len(packed(x)) / 2048)))


def in_groups(rows: np.ndarray, groups: int) -> np.ndarray:
    """Row r goes to group r mod G, and groups are joined in order."""
    of_group = np.array([in_turn(rows[g::groups]) for g in range(groups)], rows.dtype)
    return in_turn(of_group)


def of_columns(rows: np.ndarray, columns: int) -> np.ndarray:
    """Along the first axis; ``columns``: how many a launch has."""
    count = len(rows)
    parts = min(1024 // math.ceil(columns / 32), count // 512)
    if parts < 4:
        return in_groups(rows, 16 if count >= 32 else 4 if count >= 8 else 1)
    each = math.ceil(count / (16 * parts)) * 16
    of_part = [in_groups(rows[at:at + each], 16) for at in range(0, count, each)]
    return in_groups(np.array(of_part), 16)


def as_numpy(products: np.ndarray) -> np.ndarray:
    """Up to 16, along the first axis, as NumPy adds contiguous elements."""
    if len(products) < 8:
        return in_turn(products)
    r = products[:8]
    r = r + products[8:16] if len(products) == 16 else r
    total = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]))
    for rest in products[8:] if len(products) < 16 else ():
        total = total + rest
    return total


def same(got: Any, want: Any) -> None:
    np.testing.assert_array_equal(got, np.asarray(want))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("length", [35, 60, 300, 1500])
def test_rows(length: int, dtype: str) -> None:
    x = numbers(3, length, dtype=dtype)
    whole, apart = on_device(lambda x: (x.sum(axis=1), x[:, ::2].sum(axis=1)), x)
    same(whole, [of_row(row) for row in x])
    same(apart, [of_row(row) for row in x[:, ::2]])


@pytest.mark.parametrize(("size", "dtype"), [
    (40, "f8"), (2000, "f4"), (4097, "f8"), (50_001, "f4"), (300 * 2048, "c16")])
def test_all_elements(size: int, dtype: str) -> None:
    """In one launch, in two of few blocks, of more blocks than one has threads."""
    x = numbers(size, dtype=dtype)
    same(on_device(lambda x: x.sum(), x), of_all(x))


def test_few_long_rows() -> None:
    x = numbers(3, 40_000)
    same(on_device(lambda x: x.sum(axis=1), x), [of_blocks(row, 40_000 // 8192) for row in x])


@pytest.mark.parametrize("shape", [(5, 40), (20, 40), (70, 9), (2048, 40), (5000, 3)])
def test_columns(shape: tuple[int, int]) -> None:
    x = numbers(*shape)
    same(on_device(lambda x: x.sum(axis=0), x), of_columns(x, shape[1]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("summed", [17, 40, 600])
def test_products_of_few_columns(summed: int, dtype: str) -> None:
    x, w = numbers(9, summed, dtype=dtype), numbers(summed, 5, dtype=dtype)
    products = np.moveaxis(x[:, :, None] * w, 1, 0)
    want = of_columns(products, 9)
    same(on_device(lambda x, w: x @ w, x, w), want)
    same(on_device(lambda x, w: x @ w + 1, x, w), want + 1)
    turned = np.ascontiguousarray(x.T)
    same(on_device(lambda t, w: t.T @ w, turned, w), want)


@pytest.mark.parametrize("rows", [2048, 5000])
def test_products_of_many_rows(rows: int) -> None:
    """Blocks have a part of the rows each."""
    x, y = numbers(rows, 3), numbers(rows, 6)
    want = of_columns(x[:, :, None] * y[:, None], 3)
    same(on_device(lambda x, y: x.T @ y, x, y), want)
    same(on_device(lambda x, y: 2 - x.T @ y, x, y), 2 - want)


@pytest.mark.parametrize("dtype", DTYPES)
def test_products_by_a_vector(dtype: str) -> None:
    x, v, u = (numbers(*s, dtype=dtype) for s in ((7, 90), (90,), (7,)))
    of_rows = of_columns((x * v).T, 7) if dtype[0] == "c" else [of_row(row * v) for row in x]
    same(on_device(lambda x, v: x @ v, x, v), of_rows)
    same(on_device(lambda x, u: u @ x, x, u), of_columns(x * u[:, None], 90))
    same(on_device(lambda v: v @ v[::1], v), of_all(v * v))


@pytest.mark.parametrize("summed", [2, 3, 7, 8, 9, 15, 16])
def test_products_over_a_short_axis(summed: int) -> None:
    x, w = numbers(20, summed), numbers(summed, 30)
    want = as_numpy(np.moveaxis(x[:, :, None] * w, 1, 0))
    same(on_device(lambda x, w: x @ w, x, w), want)
    same(on_device(lambda x, w: x @ w[:, 0], x, w), want[:, 0])
    same(on_device(lambda x: x.sum(axis=1), x), as_numpy(x.T))


def test_halves_are_added_up_in_singles() -> None:
    x, w = numbers(9, 70, dtype="f2"), numbers(70, 4, dtype="f2")
    products = np.moveaxis(x.astype("f4")[:, :, None] * w.astype("f4"), 1, 0)
    same(on_device(lambda x, w: x @ w, x, w), of_columns(products, 9).astype("f2"))


def test_sums_of_all_that_follows_from_rows() -> None:
    """Rows first, where they are short; what is read for two rows lies apart."""
    for _ in range(5):  # one number agrees by chance
        x, y = numbers(50, 9), numbers(50, 9)
        products = (x - x.max(axis=1, keepdims=True)) * y
        apart = np.repeat(as_numpy(products.T), 2)[::2]
        same(on_device(lambda x, y: ((x - x.max(axis=1, keepdims=True)) * y).sum(), x, y),
             of_all(apart))
