"""Reading at computed indices: fused loads, their bounds checks, and the state after a failure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from arrays import DTYPES, LAYOUTS, ordinary
from harness import check
from tolerance import NEAR

import fusec

RNG = np.random.default_rng(5)


def within(size: int, *shape: int) -> np.ndarray:
    """Indices of an axis, negative ones among them."""
    return np.random.default_rng(3).integers(-size, size, shape)


def kernels(f: Callable[..., Any], *args: Any) -> tuple[int, int]:
    """Kernels and library calls of the function."""
    concrete = fusec.jit(f).concrete(*args)
    return len(concrete.kernels), len(concrete.externs)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("index", ["i1", "u1", "i2", "i4", "u4", "i8", "u8"])
def test_dtypes(dtype: str, index: str) -> None:
    i = np.abs(within(20, 37)).astype(index) % np.array(20, index)
    check(lambda x, i: x[i], ordinary(dtype, 20), i, source=True)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout: str) -> None:
    x = LAYOUTS[layout]("f8")
    if not x.ndim or 0 in x.shape:
        return
    i = within(x.shape[0], 11)
    check(lambda x, i: (x[i], x[i] + 1, x[i % 1, ...] * 2), x, i, source=True)
    if x.ndim == 2:
        j = within(x.shape[1], 11)
        check(lambda x, i, j: (x[i, j], x[:, j], x[i, ::2], x[i[:, None], j]), x, i, j,
              source=True)


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 31, 33, 64, 65, 1000])
def test_whole_and_partial_vectors(count: int) -> None:
    table, i, x = ordinary("f8", 19), within(19, count), ordinary("f8", count)
    check(lambda t, i, x: t[i] * x, table, i, x)
    check(lambda t, i: np.floor(np.sqrt(np.abs(t[i]))) // 3 % 5, table, i)  # a padded stage
    check(lambda t, i: (t[i].astype(int).sum(), t[i].max(initial=-99)), table, i)


@pytest.mark.parametrize("columns", [1, 3, 8, 13, 40])
def test_rows_and_columns(columns: int) -> None:
    a, r, c = ordinary("i8", 9, columns), within(9, 21), within(columns, 5)
    check(lambda a, r: (a[r].sum(1), a[r].sum(0), a[r].sum()), a, r, source=True)
    check(lambda a, r: np.sqrt(np.abs(a[r])) // 2 % 7, a, r)
    check(lambda a, r: a.T[:, r].max(1), a, r)
    check(lambda a, c: (a[:, c].sum(1), a[:, c].sum(0), (a[:, c] // 3 % 5).max()), a, c)
    check(lambda a, r, c: a[r[:, None], c].sum(1), a, r, c)


def test_a_table_looked_up_at_a_fused_index() -> None:
    table, x = np.linspace(0, 1, 256), RNG.random((30, 41))

    def look(table, x):
        return table[(x * 255).astype(int)] ** 2

    check(look, table, x, source=True)
    assert kernels(look, table, x) == (1, 0)


def test_the_source_is_fused_when_it_is_cheap() -> None:
    x, i = ordinary("f8", 50), within(50, 20)
    check(lambda x, i: (x * 2 + 1)[i], x, i, source=True)
    assert kernels(lambda x, i: (x * 2 + 1)[i], x, i) == (1, 0)
    check(lambda x, i: np.floor(np.sqrt(np.abs(x * 2)))[i], x, i)
    assert kernels(lambda x, i: np.exp(x)[i], x, i) == (2, 0)  # once per element, not per index


def test_views_pieces_and_gathers_of_gathers() -> None:
    x, i, j = ordinary("f8", 6, 8), within(6, 10), within(10, 7)
    check(lambda x, i, j: x[i][j], x, i, j, source=True)
    check(lambda x, i: x.T[::2, i], x, i, source=True)
    check(lambda x, i: x[::-1, 1:][i, 2], x, i, source=True)
    check(lambda x, i: np.broadcast_to(x[:, 0], (6, 6))[i, i], x, i, source=True)
    check(lambda x, i: np.concatenate([x[0], x[1]])[i], x, i)
    check(lambda x, i: np.concatenate([x[i, 0], x[0]]) + 1, x, i)
    check(lambda x, i: np.diagonal(x)[i], x, i)
    check(lambda i: np.arange(3, 30, 4)[i], within(7, 12))

    def overwritten(x, i):
        y = x[i]
        y[2:4] = 0
        return y, y[1:, ::2]

    check(overwritten, x, i)


def test_counters_as_indices_are_affine() -> None:
    x, i = ordinary("f8", 6, 8), within(8, 6)
    check(lambda x, i: x[np.arange(6), i], x, i, source=True)
    check(lambda x: np.take_along_axis(x, np.argsort(x, axis=1), axis=1), x)
    check(lambda x, i: np.take_along_axis(x, i[:, None], 1), x, i)
    check(lambda x, i: np.take_along_axis(x, i[None, :] % 6, 0), x, within(8, 8))
    check(lambda x, i: np.take_along_axis(x, i, None), x, within(48, 5))
    assert kernels(lambda x, i: np.take_along_axis(x, i[:, None], 1), x, i) == (1, 0)


@pytest.mark.parametrize("mode", ["raise", "wrap", "clip"])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_take(mode: str, axis: int | None) -> None:
    x = ordinary("f4", 5, 5)
    i = within(5, 3, 4) * (1 if mode == "raise" else 7)
    for form in (x, x.T, np.asfortranarray(x)):
        check(lambda x, i: np.take(x, i, axis=axis, mode=mode), form, i, source=True)
        check(lambda x, i: x.take(i, axis, mode=mode) + 1, form, i)
    check(lambda x: np.take(x, 3, axis=axis, mode=mode), x)


@pytest.mark.parametrize("i", [3, -1, np.int64(2), np.uint8(4), np.array(1), np.int16(-5)])
def test_one_element_at_a_run_time_integer(i: Any) -> None:
    x = ordinary("f8", 5)
    f = fusec.jit(lambda x, i: x[i])
    check(lambda x, i: x[i], x, 1, jitted=f)
    check(lambda x, i: x[i], x, i, jitted=f)
    check(lambda x, i: (x[i] * 2 + x), x, i)


BAD: dict[str, tuple[Callable[..., Any], str]] = {
    "vector": (lambda x, i: x[i], "index 7 is out of bounds for axis 0 with size 5"),
    "second axis": (lambda x, i: x.reshape(1, 5)[0 * i, i],
                    "index 7 is out of bounds for axis 1 with size 5"),
    "take": (lambda x, i: np.take(x, i), "index 7 is out of bounds for axis 0 with size 5"),
    "along axis": (lambda x, i: np.take_along_axis(x, i, 0),
                   "index 7 is out of bounds for axis 0 with size 5"),
    "part used": (lambda x, i: x[i][:1], "index 7 is out of bounds for axis 0 with size 5"),
    "overwritten": (lambda x, i: np.concatenate([x[i][:2], x]) + 1,
                    "index 7 is out of bounds for axis 0 with size 5"),
    "reduced": (lambda x, i: np.exp(x[i]).sum(),
                "index 7 is out of bounds for axis 0 with size 5"),
    "broadcast over nothing": (lambda x, i: x[i][:, None] * np.zeros((4, 0)),
                               "index 7 is out of bounds for axis 0 with size 5"),
    "before a library call": (lambda x, i: np.sort(x[i]),
                              "index 7 is out of bounds for axis 0 with size 5"),
}


@pytest.mark.parametrize("name", BAD)
def test_out_of_range(name: str) -> None:
    f, message = BAD[name]
    x, i = ordinary("f8", 5), np.array([0, 4, -5, 7])
    jitted = check(f, x, i, engines=False)
    for _ in range(2):
        with pytest.raises(IndexError, match=message):
            jitted(x, i)
    good = np.array([0, 4, -5, 3])
    np.testing.assert_allclose(jitted(x, good), f(x, good), rtol=1e-14)
    with pytest.raises(IndexError, match="index -6 is out of bounds"):
        jitted(x, np.array([0, 0, 0, -6]))


def test_a_failure_leaves_what_the_lines_before_it_did() -> None:
    def f(x, y, i):
        y += 1
        z = x[i]
        y[:2] = z[:2]
        return z

    x, y, i = ordinary("f8", 5), ordinary("f8", 40_000), np.array([1, 2, 3])
    check(f, x, y, i)
    want = y.copy()
    jitted = fusec.jit(f)
    jitted(x, y.copy(), i)
    for _ in range(2):
        with pytest.raises(IndexError):
            f(x, want, i + 9)
        with pytest.raises(IndexError):
            jitted(x, y, i + 9)
        np.testing.assert_array_equal(y, want)


def test_padding_lanes_fail_no_check() -> None:
    """Lanes past the end hold zeros: an index computed from them may be out of range."""
    table, x = ordinary("f8", 5), np.full(13, 10)
    check(lambda t, x: np.floor(np.sqrt(np.abs(t[x - 8]))) // 3 % 5, table, x)
    check(lambda t, x: np.abs(t[x - 6]).astype(int).sum(), table, x)


def test_extremes_of_the_index_dtype() -> None:
    low, high = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    jitted = fusec.jit(lambda x, i: x[i])
    for value in (low, high, high - 1, low + 5):
        with pytest.raises(IndexError, match=f"index {value} is out of bounds"):
            jitted(np.arange(5.0), np.array([0, value]))


def test_many_rows_in_parallel() -> None:
    x, i = ordinary("f8", 3000, 7), within(3000, 200_000)
    check(lambda x, i: x[i] + 1, x, i, engines=False)
    with pytest.raises(IndexError, match="index 3000 is"):
        fusec.jit(lambda x, i: x[i] + 1)(x, np.where(np.arange(200_000) == 199_999, 3000, i))


def test_bytes_and_structure() -> None:
    """A new size compiles nothing; each operand is counted."""
    f = fusec.jit(lambda t, i: t[i] * 2)
    f(np.arange(10.0), np.arange(5))
    f(np.arange(20.0), np.arange(9))
    assert f.trace_count == 1 and f.traces[0].times["llvm"] == 0.0
    loaded = f.traces[0].kernels[0].bytes_loaded
    assert loaded == {"t": 9 * 8, "i": 9 * 8}


def test_tuples_and_ranges_are_index_arrays() -> None:
    def program(m: np.ndarray) -> Any:
        y = m.copy()
        y[(0, 2), (1, 0)] = 7
        y[range(2), 2] += 1
        return m[(0, 2), (1, 0)], m[:, (0, 2)], m[range(2)], m[((0, 1), (1, 2)), 0], y

    check(program, np.arange(9.0).reshape(3, 3))


@pytest.mark.parametrize("device", [None, "/device:CUDAHOST:0"])
@pytest.mark.parametrize("program", [
    lambda x, i: x[x[:, 0] > 5][i] * 2, lambda x, i: x[x[:, 0] > 5][i].sum(),
    lambda x, i: x[i] * 2, lambda x, i: x[i].sum(axis=0).max(),
])
def test_wrong_indices_of_empty_arrays_read_nothing(program: Any, device: str | None) -> None:
    """They became 0, where no element is: far from there in the row there is no memory at all."""
    x, jitted = np.zeros((0, 50_000_000)), fusec.jit(program, device=device)
    for _ in range(2):
        with pytest.raises(IndexError, match="index 7 is out of bounds for axis 0 with size 0"):
            jitted(x, np.array([7, 9]))
    narrow = np.zeros((0, 3))
    if device is None and "max" not in program.__code__.co_names:
        check(program, narrow, np.array([], int), jitted=jitted)


def test_a_wrong_index_into_an_empty_array_is_named() -> None:
    def stored(x: np.ndarray, i: np.ndarray) -> np.ndarray:
        x[i] = 3.0
        return x

    for x in (np.zeros((0, 3)), np.zeros(0), np.zeros((2, 0))[0]):
        check(stored, x, np.array([], int))
        with pytest.raises(IndexError, match="index 7 is out of bounds for axis 0 with size 0"):
            fusec.jit(stored)(x, np.array([7, 9]))


@pytest.mark.parametrize("program", [
    lambda x, i: x[i] - x[i].mean(0),
    lambda x, i: x[i].var(0),
    lambda x, i: np.take(x, i, axis=0).std(0),
    lambda x, i: (x[i] - x[i].mean(-1, keepdims=True)) / x[i].std(-1, keepdims=True),
    lambda x, i: x[np.ix_(i, i)].var(0),
    lambda x, i: np.exp(x[i] - x[i].max(1, keepdims=True)).sum(1),
], ids=["centred", "var", "std", "normalised", "ix", "softmax"])
def test_what_is_gathered_is_reduced_and_read_again(program: Any) -> None:
    """Both stages of the kernel check the indices."""
    x, i = RNG.random((20, 18)), within(18, 7)
    check(program, x, i, tolerance=NEAR)
    with pytest.raises(IndexError, match="index 23 is out of bounds for axis 0 with size 20"):
        fusec.jit(program)(x, np.array([1, 23, 2]))


def shifted(x: Any, z: Any, i: Any) -> Any:
    x[1:] = z[i][:-1]
    return x


def back_to_front(x: Any, z: Any, i: Any) -> Any:
    x[2:] = z[i][::-1][:-2]
    return x


def all_but_the_last(x: Any, z: Any, i: Any) -> Any:
    x[0:-1] = z[i][:-1]
    return x


def around(x: Any, z: Any, i: Any) -> Any:
    t = z[i] * 2.0
    x[1:-1] = t[2:] - t[:-2]
    return x


@pytest.mark.parametrize("program", [shifted, back_to_front, all_but_the_last, around])
@pytest.mark.parametrize("place", [0, 1, 3, 4])
def test_an_index_whose_element_is_written_nowhere_is_checked(program: Any, place: int) -> None:
    """The loop of a write is as long as the gather and reads less of it."""
    x, i = np.arange(5.0), np.array([1, 2, 3, 4, 5])
    check(program, x, np.arange(10.0), i)
    i[place] = 50
    with pytest.raises(IndexError, match="index 50 is out of bounds"):
        fusec.jit(program)(x, np.arange(10.0), i)
