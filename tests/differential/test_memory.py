"""Views, slice assignment, aliasing: memory as NumPy has it, during the call and after it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from arrays import LAYOUTS, ordinary
from harness import check
from tolerance import NEAR

import fusec


def m() -> np.ndarray:
    return ordinary("f8", 6, 8)


def v() -> np.ndarray:
    return ordinary("f8", 9)


def i() -> np.ndarray:
    return ordinary("i4", 4, 6)


# ------------------------------------------------------------------------------- views as results

VIEWS: dict[str, Callable[[Any], Any]] = {
    "itself": lambda x: x,
    "twice": lambda x: (x, x),
    "transposed": lambda x: (x.T, x.T.T, x),
    "slices": lambda x: (x[1:], x[:, ::2], x[::-1], x[:, ::-3], x[-2:1:-1]),
    "negative indices": lambda x: (x[-1], x[:, -2], x[-3:-1, 1:-1]),
    "empty slices": lambda x: (x[3:3], x[5:2], x[:, 8:], x[100:]),
    "newaxis": lambda x: (x[None], x[:, None, ::2], x[..., None], x[None, ..., None, 0]),
    "ellipsis": lambda x: (x[...], x[..., 0], x[1, ...], x[..., ::-1]),
    "views of views": lambda x: (x[1:5][::-2], x[::2][1:, 1:][:, ::-1].T, x[2:4].T[1:][::-1]),
    "element": lambda x: (x[0, 0], x[-1, -1], x[1, 2, ...]),
    "reshape view": lambda x: (x.reshape(8, 6), x.reshape(-1), x.ravel(), x.reshape(2, 3, 4, 2)),
    "reshape copy": lambda x: (x.T.reshape(-1), x[:, 1:].ravel(), x[:, ::2].reshape(-1)),
    "reshape of view": lambda x: (x[::2].reshape(3, 2, 4), x[:, 2:4].reshape(6, 2, 1)),
    "axes": lambda x: (np.swapaxes(x, 0, 1), np.moveaxis(x, 0, 1), np.transpose(x, (1, 0)),
                       np.expand_dims(x, 1), np.squeeze(x[:1]), x.reshape(6, 1, 8).squeeze(1)),
    "broadcast": lambda x: (np.broadcast_to(x, (2, 6, 8)), np.broadcast_to(x[0], (3, 8))),
    "flips": lambda x: (np.flip(x), np.flip(x, 0), x[::-1, ::-1]),
    "views of a result": lambda x: ((y := x + 1), y[1:], y.T, y[::-1], y.reshape(-1)),
    "view of a result alone": lambda x: (x * 2)[1:, ::-1],
    "copies": lambda x: (x.copy(), np.copy(x.T), x.T.copy(), x[::2].copy(), np.array(x), x + 0),
    "no copies": lambda x: (np.asarray(x), x.astype(x.dtype, copy=False), np.atleast_1d(x)),
    "astype copies": lambda x: (x.astype(x.dtype), x.T.astype("f4"), np.ascontiguousarray(x)),
    "flatten": lambda x: (x.flatten(), x.T.flatten(), x[:, 0].flatten()),
    "row iteration": lambda x: [row[1:] for row in x],
    "unpacking": lambda x: (lambda a, *rest, b: (a, b, rest))(*x[:-1], b=x[-1]),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views(name: str) -> None:
    check(VIEWS[name], m())
    check(VIEWS[name], ordinary("i2", 8, 6).T)
    check(VIEWS[name], ordinary("f4", 12, 16)[::2, ::-2])


# ---------------------------------------------------------------------------------------- writes


def shift_down(x: Any) -> None:
    x[1:] = x[:-1]


def shift_up(x: Any) -> None:
    x[:-1] = x[1:]


def reverse(x: Any) -> Any:
    x[::-1] = x
    return x


def reverse_augmented(x: Any) -> Any:
    x += x[::-1]
    return x


def transpose_onto_itself(x: Any) -> None:
    x[:6, :6] = x[:6, :6].T


def through_a_view(x: Any) -> Any:
    y = x[1:4]
    y[:, 2] = 7
    y *= 2
    return x.sum(), y[0, 2], y


def through_the_base(x: Any) -> Any:
    y = x[::2, ::-1]
    z = y.T
    x[0] = 1
    x[:, 1] += 5
    return y + 1, z * 2, z


def views_of_views(x: Any) -> Any:
    a = x[1:]
    b = a[:, ::-1]
    c = b.T
    c[2:4] -= 100
    b[0, 0] = a[1, 1]
    return a.sum(), x


def local_array(x: Any) -> Any:
    y = np.zeros_like(x)
    z = y[1:-1, 1:-1]
    z[...] = x[2:, 1:-1] + x[:-2, 1:-1]
    y[0] = -1
    z[0, 0] = 99
    return y, z


def copy_then_write(x: Any) -> Any:
    y = x.copy()
    y[0] = 0
    x[1] = 5
    return y, x[1]


def scalar_before_write(x: Any) -> Any:
    first = x[0, 0]
    x[0, 0] = 42
    return first, x[0, 0]


def swap_rows(x: Any) -> None:
    x[0], x[1] = x[1].copy(), x[0].copy()


def swap_rows_badly(x: Any) -> None:
    x[0], x[1] = x[1], x[0]


def outs(x: Any) -> Any:
    y = np.empty(x.shape)
    r = np.add(x, 1, out=y)
    np.multiply(y, 2, out=y)
    np.sum(x, axis=0, out=y[0])
    np.maximum(x, 0, out=x)
    return r, y, x


def out_view(x: Any) -> None:
    np.exp(x[1:, 1:] * 0, out=x[:-1, :-1])


def out_dtype(x: Any) -> Any:
    y = np.zeros(x.shape, "f4")
    np.add(x, 0.1, out=y)
    return y


def where_out(x: Any) -> Any:
    y = np.full(x.shape, 3.0)
    np.sqrt(x, out=y, where=x > 0)
    return y


def masks(x: Any) -> Any:
    y = x.copy()
    y[y < 0] = 0
    x[x > 1] = 1
    return y


def augmented(x: Any) -> Any:
    x += 1
    x *= x
    x[2:] -= x[:-2]
    x[:, 0] /= 4
    x[1] **= 2
    return x


def broadcast_write(x: Any) -> None:
    x[:] = x[0]
    x[1:3] = [[1], [2]]
    x[:, :2] = np.arange(6.0)[:, None]


def casting_write(x: Any) -> Any:
    x[0] = 3.9
    x[1] = True
    y = np.zeros(x.shape, "i4")
    y[:] = x
    return y


def nothing_changes(x: Any) -> Any:
    x[3:3] = 5
    x[0:0] += 1
    return x


def write_twice(x: Any) -> Any:
    x[0] = 1
    y = x * 2
    x[0] = 2
    return y, x * 2


def fill_and_copyto(x: Any) -> Any:
    x[1].fill(4)
    np.copyto(x[2:4], x[0])
    np.copyto(x, -1, where=x > 3)
    return x


def reshape_write(x: Any) -> Any:
    y = x.reshape(-1)
    y[3:7] = 0
    z = x.reshape(2, 3, 8)
    z[1, :, 0] = 9
    return y


def transpose_write(x: Any) -> Any:
    t = x.T
    t[0] = 1
    t[:, 0] = 2
    x.T[1:3, ::2] += 10
    return t


def expand_write(x: Any) -> Any:
    y = x[:, None, :]
    y[2, 0] = 5
    w = np.squeeze(x[None, :2], 0)
    w += 1
    return y, w


def loop_rows(x: Any) -> Any:
    for k in range(1, len(x)):
        x[k] += x[k - 1]
    return x


def row_references(x: Any) -> Any:
    rows = [x[k] for k in range(len(x))]
    rows[0] += 1
    rows[2][::2] = rows[1][::2]
    return rows[0]


def rebind(x: Any) -> Any:
    y = x
    y = y + 1
    y[0] = 0
    x = x[::-1]
    x[0] = 3
    return x, y


WRITES = [
    shift_down, shift_up, reverse, reverse_augmented, transpose_onto_itself, through_a_view,
    through_the_base, views_of_views, local_array, copy_then_write, scalar_before_write, swap_rows,
    swap_rows_badly, outs, out_view, out_dtype, where_out, masks, augmented, broadcast_write,
    casting_write, nothing_changes, write_twice, fill_and_copyto, reshape_write, transpose_write,
    expand_write, loop_rows, row_references, rebind,
]


@pytest.mark.parametrize("f", WRITES, ids=lambda f: f.__name__)
def test_writes(f: Callable[..., Any]) -> None:
    """Whole numbers, so that sums are exact in any order."""
    x = np.round(ordinary("f8", 12, 16))
    check(f, x[:6, :8].copy(), source=True, fp="strict")
    check(f, np.asfortranarray(x[:6, :8]), fp="strict")
    check(f, x[::-2, :8], fp="strict")
    check(f, x[:6, ::2], fp="strict")


@pytest.mark.parametrize("f", [shift_down, shift_up, reverse, masks, write_twice, loop_rows])
@pytest.mark.parametrize("dtype", ["i1", "u8", "f4"])
def test_writes_in_other_dtypes(f: Callable[..., Any], dtype: str) -> None:
    check(f, ordinary(dtype, 6, 8), fp="strict")


@pytest.mark.parametrize("shift", [-3, -1, 1, 2, 5])
def test_overlapping_reads_and_writes(shift: int) -> None:
    def f(x: Any) -> Any:
        if shift > 0:
            x[shift:] = x[:-shift] + x[shift:] * 0.5
        else:
            x[:shift] = x[-shift:] - 1
        return x[::2]

    check(f, v(), fp="strict")
    check(f, v()[::-1], fp="strict")
    check(f, ordinary("i8", 300), fp="strict")


# ----------------------------------------------------------------------------- several arguments


def accumulate(x: Any, y: Any) -> Any:
    x += y
    y[0] = x[1]
    return x + y


def test_the_same_array_twice() -> None:
    x = m()
    function = check(accumulate, x, x, fp="strict")
    check(accumulate, m(), m(), jitted=function)
    y = m()
    check(accumulate, y, y, jitted=function)
    check(lambda x, y: (x * y, x), x, x)


def test_two_views_of_one_argument_given_whole() -> None:
    def f(x: Any, y: Any) -> Any:
        x[0] = y[-1]
        return y.sum()

    x = m()
    view = x[:]
    check(f, x, view, tolerance=NEAR)


def test_partly_overlapping_arguments_in_repeated_calls() -> None:
    """More in `test_overlap`; here: the shortcuts of repeated calls notice the overlap."""
    def f(x: Any, y: Any) -> Any:
        x += y
        return x

    function = fusec.jit(f)
    for start in (5, 5, 10, 5, 10, 0):
        whole = ordinary("f8", 20)
        want = whole.copy()
        f(want[:10], want[start:start + 10])
        function(whole[:10], whole[start:start + 10])
        np.testing.assert_array_equal(whole, want)


def test_overlap_without_writes_is_fine() -> None:
    whole = ordinary("f8", 20)
    check(lambda x, y: (x + y, x[1:]), whole[:10], whole[5:15])


def test_read_only_arguments() -> None:
    x = m()
    x.flags.writeable = False
    check(lambda x: x + 1, x)
    check(lambda x: x[1:], x)
    check(shift_down, x)
    function = fusec.jit(lambda x: x.__iadd__(1))
    function(m())
    with pytest.raises(ValueError, match="read-only"):
        function(x)


def test_results_that_are_arguments() -> None:
    check(lambda x, y: (y, x, x, (x[1:], y.T)), m(), m())
    check(lambda x, y: {"a": x + y, "b": [x]}, m(), m())


@pytest.mark.parametrize("layout", LAYOUTS)
def test_writes_into_layouts(layout: str) -> None:
    x = LAYOUTS[layout]("f8")

    def f(x: Any) -> Any:
        y = x * 2
        x[...] = y + 1
        x[..., :1] = 0
        return y

    if layout == "rank 0":
        check(lambda x: (x.__iadd__(1), x[...], x[()]), x)
        return
    check(f, x, fp="strict")


# ------------------------------------------------------------------------------------- new arrays

CREATIONS: dict[str, Callable[[Any], Any]] = {
    "zeros": lambda x: (np.zeros(3), np.zeros((2, 3), "i4"), np.zeros((2, 3), order="F")),
    "ones": lambda x: (np.ones(x.shape), np.ones((), "f4"), np.ones_like(x)),
    "full": lambda x: (np.full(3, 7), np.full((2, 2), x[0, 0]), np.full(3, 2.5, "f4"),
                       np.full_like(x, 3), np.full((2, 8), x[0])),
    "like": lambda x: (np.zeros_like(x.T), np.ones_like(x[::2, ::-1]), np.zeros_like(x, "i2"),
                       np.zeros_like(x, shape=(2, 3))),
    "arange": lambda x: (np.arange(5), np.arange(2, 9, 3), np.arange(8) * x, np.arange(5.0, 0, -1),
                         np.arange(3, dtype="f4"), np.arange(0)),
    "linspace": lambda x: np.linspace(0, 1, 8) + x,
    "eye": lambda x: (np.eye(3), np.eye(2, 4, 1), np.identity(8) @ x.T, np.eye(3, dtype=bool)),
    "array": lambda x: (np.array([1, 2, 3]) + x[:, :3], np.array([x[0, 0], 2.0, x[1, 1]]),
                        np.array([[1, 2], [3, 4]]), np.array([x[0], x[1]])),
    "array dtype": lambda x: (np.array(x, "f4"), np.array(x, ndmin=3),
                              np.array([x[0, 0], 1], "f4")),
    "empty then filled": lambda x: (y := np.empty(x.shape), y.fill(2), y * x)[2],
}


@pytest.mark.parametrize("name", CREATIONS)
def test_creation(name: str) -> None:
    check(CREATIONS[name], m(), fp="strict")


JOINING: dict[str, Callable[[Any], Any]] = {
    "concatenate": lambda x: (np.concatenate([x, x + 1]), np.concatenate((x, x[:, :2]), axis=1),
                              np.concatenate([x, x], axis=None), np.concatenate([x[:0], x])),
    "mixed dtypes": lambda x: (np.concatenate([x, x > 0]), np.stack([x[0], np.arange(8)])),
    "stack": lambda x: (np.stack([x, x * 2]), np.stack([x, x], axis=-1), np.vstack([x[0], x[1]]),
                        np.hstack([x, x]), np.hstack([x[0], x[1]])),
    "roll": lambda x: (np.roll(x, 1), np.roll(x, -2, axis=0), np.roll(x, (1, 3), axis=(0, 1)),
                       np.roll(x, 100, 1), np.roll(x[:, :0], 1, 0)),
    "flip": lambda x: (np.flip(x) + 1, np.flip(x, 1) * x),
    "where": lambda x: (np.where(x > 0, x, 0), np.where(x > 0, 1, 2), np.where(x > 0, x, x.T[0, 0]),
                        np.where(x[:, :1] > 0, x, np.float32(1)), np.where(True, x, 1)),
    "clip": lambda x: (np.clip(x, -1, 1), x.clip(0), x.clip(max=0.5), np.clip(x, x[0], 2)),
    "diff": lambda x: (np.diff(x), np.diff(x, axis=0), np.diff(x, 2)),
    "round": lambda x: (np.round(x), np.round(x, 2), x.round(-1), np.rint(x * 2)),
    "nan_to_num": lambda x: np.nan_to_num(np.sqrt(x), nan=-1.0),
    "outer": lambda x: (np.outer(x[0], x[1]), x[:, 0][:, None] * x[0]),
}


@pytest.mark.parametrize("name", JOINING)
def test_joining_and_choosing(name: str) -> None:
    check(JOINING[name], m(), fp="strict")
    check(JOINING[name], np.asfortranarray(m()), fp="strict")
    check(JOINING[name], ordinary("f8", 12, 8)[::-2], fp="strict")


JOINING_INTS: dict[str, Callable[[Any], Any]] = {
    "clip": lambda x: (np.clip(x, -3, 100), x.clip(0, 5), np.clip(x, 1.5, 3)),
    "round": lambda x: (np.round(x), x.round(2)),
    "where": lambda x: (np.where(x, x, 7), np.where(x > 2, x, 300), np.where(x > 0, x, 1.5)),
    "concatenate": lambda x: (np.concatenate([x, x.astype("f4")]), np.concatenate([x, x > 1])),
    "roll": lambda x: np.roll(x, 2, 1),
    "diff": lambda x: np.diff(x),
}


@pytest.mark.parametrize("name", JOINING_INTS)
@pytest.mark.parametrize("dtype", ["i1", "u1", "i4", "u8"])
def test_joining_and_choosing_integers(name: str, dtype: str) -> None:
    check(JOINING_INTS[name], ordinary(dtype, 4, 6), fp="strict")


def _restored(x: Any) -> Any:
    part = x[::2].copy()
    x *= 3
    x[::2] = part
    return x


def _columns_put_back(A: Any) -> Any:
    before = A.copy()
    A[:] = 0
    A[:, ::2] = before[:, ::2]
    return A


def _some_put_back(x: Any) -> Any:
    before = x.copy()
    x[::2] = 9
    x[::4] = before[::4]
    return x


def _turned(x: Any) -> None:
    x[:] = x[::-1]
    x[::2] = x[::-2]


def _through_a_view(x: Any) -> Any:
    odd = x[1::2]
    before = odd.copy()
    x[:] = 0
    odd[:] = before
    return x


@pytest.mark.parametrize("program", [_restored, _some_put_back, _turned, _through_a_view])
def test_elements_written_back_after_a_write(program: Any) -> None:
    """A store of the argument's own elements is none only where nothing was stored there before."""
    check(program, np.arange(9.0))


def test_columns_written_back_after_a_write() -> None:
    check(_columns_put_back, np.arange(12.0).reshape(3, 4))
    check(_columns_put_back, np.arange(12.0).reshape(4, 3).T)
