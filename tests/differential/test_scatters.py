"""Writing at computed indices: order, duplicates, checks before writes, and copies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from arrays import DTYPES, LAYOUTS, ordinary
from harness import check
from tolerance import Ulp

import fusec


def within(size: int, *shape: int) -> np.ndarray:
    """Indices of an axis, negative ones and duplicates among them."""
    return np.random.default_rng(3).integers(-size, size, shape)


def put(x: Any, key: Any, v: Any) -> None:
    x[key] = v


def add(x: Any, key: Any, v: Any) -> None:
    x[key] += v


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("value", ["i2", "f8"])
def test_dtypes(dtype: str, value: str) -> None:
    x, i, v = ordinary(dtype, 20), within(20, 37), np.abs(ordinary(value, 37))
    check(put, x, i, v, source=True)
    check(put, x, i.astype("i1"), 1, source=True)
    check(lambda x, i, v: (put(x, i, v), x + 1)[1], x, i, v, source=True)
    check(lambda x, i: np.add.at(x, i, x.dtype.type(1)), x, i, source=True)
    check(lambda x, i: np.maximum.at(x, i, x[::-1][3]), x, i, source=True)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout: str) -> None:
    x = LAYOUTS[layout]("f8")
    if x.ndim != 2 or 0 in x.shape:
        return
    i, j = within(x.shape[0], 6), within(x.shape[1], 6)
    v = ordinary("f8", 6)
    check(put, x, i, 1.5)
    check(lambda x, i, j, v: put(x, (i, j), v), x, i, j, v, source=True)
    check(lambda x, j, v: put(x, (slice(None), j), v), x, j, v, source=True)
    check(lambda x, i, v: put(x, (i, slice(1, None)), v[:, None]), x, i, v, source=True)
    check(lambda x, i, v: add(x, (i, 0), v), x, i, v, source=True)


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "maximum", "minimum", "fmax"])
def test_ufunc_at(name: str) -> None:
    ufunc = getattr(np, name)
    for shape in ((9,), (4, 5)):
        x, i = ordinary("i4", *shape), within(shape[0], 23)
        check(lambda x, i: ufunc.at(x, i, 3), x, i, source=True)
        v = ordinary("i4", 23, *shape[1:])
        check(lambda x, i, v: ufunc.at(x, i, v * 2), x, i, v, source=True)
    x, v = ordinary("f4", 9), ordinary("f4", 23)
    check(lambda x, i, v: ufunc.at(x, i, v), x, within(9, 23), v)  # NumPy's order of additions
    check(lambda x, i: np.add.at(x, (i, i % 3), 2.5), ordinary("f8", 4, 5), within(4, 6))


def test_read_before_written() -> None:
    """The value is computed before the first element is written."""
    x, i, j = ordinary("f8", 30), within(30, 50), within(30, 50)
    check(lambda x, i, j: put(x, i, x[j]), x, i, j, source=True)
    check(lambda x, i: put(x, i, x[i] + 1), x, i, source=True)
    check(lambda x: put(x, np.abs(x).astype(int), 7.0), x)
    check(lambda x, i: put(x, i, x[::-1].sum() + x[i]), np.rint(x), i)
    check(add, x, i, 1.0, source=True)
    check(lambda x, i: (put(x, i, 0), x.sum(), put(x, i[:3], 2), x * 2)[1::2], np.rint(x), i)
    y = ordinary("f8", 40)
    check(lambda y, i: put(y[:30], i, y[10:][i]), y, i)
    check(lambda x, i: put(x, i, i), within(9, 9), within(9, 9))
    z = within(9, 9)
    want, own = z.copy(), z.copy()
    put(want, z, z)
    put(own, own, own)
    if np.array_equal(own, want):  # older NumPys read indices that they have overwritten
        check(lambda z: put(z, z, z), z)
    fusec.jit(lambda z: put(z, z, z))(z)
    np.testing.assert_array_equal(z, want)


def test_several_in_a_row() -> None:
    x, i, j = ordinary("f8", 30), within(30, 9), within(30, 9)

    def chain(x, i, j):
        x[i] = 1
        x[j] += 2
        x[i] *= x[j]
        return x[:3]

    def fresh(x, i, j):
        y = np.exp(x * 0)
        y[i] = 3
        z = y + 1
        y[j] = z[i]
        return y, z

    check(chain, x, i, j)
    check(fresh, x, i, j)
    check(lambda i, j: (h := np.zeros(40), put(h, i, j), add(h, j, 1))[0], i, j)


def test_put_along_axis() -> None:
    x = ordinary("f8", 4, 5)
    for axis in (0, 1, -1):
        i = within(x.shape[axis], 4, 5)
        check(lambda x, i, a=axis: np.put_along_axis(x, i, x[::-1] * 2, a), x, i, source=True)
        check(lambda x, i, a=axis: np.put_along_axis(x, i, 3, a), x, i)
    check(lambda x, i: np.put_along_axis(x, i, 3.5, 1), x, within(5, 4, 1))
    check(lambda x, i: np.put_along_axis(x, i, 3.5, None), x, within(20, 6))


@pytest.mark.parametrize("i", [3, -1, np.int64(2), np.uint8(4), np.array(1)])
def test_one_element(i: Any) -> None:
    f = fusec.jit(put)
    check(put, ordinary("f8", 5), 1, 2.5, jitted=f)
    check(put, ordinary("f8", 5), i, 2.5, jitted=f)
    check(lambda x, i: put(x, i, x[i - 1] * 2), ordinary("f8", 5), i)


BAD: dict[str, Callable[..., Any]] = {
    "put": lambda x, i: put(x, i, 1), "add": lambda x, i: add(x, i, 1),
    "at": lambda x, i: np.add.at(x, i, 1), "late": lambda x, i: put(x, i % 3, x[i] * 2),
    "value": lambda x, i: put(x, np.arange(4), x[i]),
    "along": lambda x, i: np.put_along_axis(x, i, 1, 0),
    "after another": lambda x, i: (put(x, i % 3, x[0] * 2), put(x, i, 1))[1],
}


@pytest.mark.parametrize("name", BAD)
def test_out_of_range_leaves_what_numpy_leaves(name: str) -> None:
    """Nothing is written but by a statement before the failing one."""
    f, x, i = BAD[name], ordinary("f8", 5), np.array([0, 4, -5, 7])
    jitted, want = fusec.jit(f), x.copy()
    message = "index 7 is out of bounds for axis 0 with size [45]"
    with pytest.raises(IndexError, match=message):
        f(want, i)
    assert (name == "after another") == (not np.array_equal(want, x))
    for _ in range(2):
        y = x.copy()
        with pytest.raises(IndexError, match=message):
            jitted(y, i)
        np.testing.assert_array_equal(y, want)


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 33, 5000])
def test_many(count: int) -> None:
    x, i = ordinary("f8", 100), within(100, count)
    v = ordinary("f8", count)
    check(put, x, i, v)
    check(lambda x, i, v: put(x, i, np.tanh(v) * 0 + np.exp(np.sin(v)) * 0), x, i, v)
    check(lambda x, i, v: add(x, i, v), x, i, v)
    rows = ordinary("f8", count, 7)
    check(lambda x, i, r: put(x, i % 9, r), ordinary("f8", 9, 7), i, rows)
    check(lambda x, i, r: np.add.at(x, i % 9, r), ordinary("f8", 9, 7), i, rows)
    check(lambda x, i, r: put(x, i % 9, np.sqrt(np.sqrt(np.abs(r)))), ordinary("f8", 9, 7), i, rows,
          tolerance=Ulp(4))


@pytest.mark.one_device  # another one writes to its copy of the argument
def test_only_the_touched_elements_are_written() -> None:
    x, i, v = ordinary("f8", 1000), within(1000, 10), ordinary("f8", 10)
    stored = {}
    for f in (put, add):
        jitted = fusec.jit(f)
        jitted(x, i, v)
        kernel = jitted.traces[0].kernels[-1]
        assert not jitted.traces[0].externs
        stored[f] = kernel.bytes_stored["Scatter"]
    assert stored == {put: 80, add: 80}
    histogram = fusec.jit(lambda i, v: (h := np.zeros(50), np.add.at(h, i, v))[0])
    histogram(i % 50, v)
    assert len(histogram.traces[0].kernels) == 1


def test_misfits_are_numpys_errors() -> None:
    x, i = ordinary("f8", 5), np.array([1, 2, 3])
    check(put, x, i, np.zeros(2))
    check(put, x, i, np.zeros((2, 3)))
    check(put, x, i, np.zeros((1, 1, 3)))
    check(lambda x, i: put(x, (i, i), 1), x, i)
    check(lambda x, i: np.add.at(x, i, np.zeros(2)), x, i)
    check(put, np.zeros(4, "i4"), i, 3.7)


def test_rows_swapped_in_place() -> None:
    """Found by the fuzzer: value and target have one shape, so they could share a kernel."""
    for x in (ordinary("f8", 2, 3), ordinary("f8", 2), ordinary("f8", 4, 2)):
        check(lambda x: put(x, [0, -1], x[[-1, 0]]), x, source=True)
        check(lambda x: put(x, [0, 1], x[[1, 0]] * 2), x)
    check(lambda x, i: put(x, i, np.sqrt(np.abs(x))[i]), np.full(5, 4.0), np.array([1, 0, 3, 2, 2]))


def test_read_in_another_shape() -> None:
    """Found by the fuzzer: a reshaped view of the target is its memory as well."""
    x = np.array([[0.0, 0, 100], [7, 100, -2.5]])
    check(lambda x: put(x, np.minimum(np.abs(x.ravel()), 3).astype(int) - 2, 1), x, source=True)
    check(lambda x: put(x, x.reshape(-1).astype(int) % 2, x.reshape(-1)[:3]), x, source=True)

    def shifted(x):
        x[1:4] = x.reshape(2, 3)[0]

    def spread(x):
        x.reshape(2, 3)[:, 1:] = x[:4].reshape(2, 2) * 2

    check(shifted, ordinary("f8", 6), source=True)
    check(spread, ordinary("f8", 6), source=True)
