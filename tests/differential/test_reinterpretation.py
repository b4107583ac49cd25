"""``view``, ``item``, ``tolist`` and ``fill_diagonal`` against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from arrays import ordinary
from harness import check

import fusec

PAIRS = [("f8", "i8"), ("f8", "u8"), ("i8", "f8"), ("u8", "i8"), ("f4", "i4"), ("u4", "f4"),
         ("i4", "u4"), ("f2", "u2"), ("i2", "f2"), ("i1", "u1"), ("?", "u1"), ("?", "i1")]


def special(dtype: str, count: int = 37) -> np.ndarray:
    """Numbers with all kinds of bits; floats with zeros, infinities and NaN."""
    rng = np.random.default_rng(3)
    if dtype == "?":
        return rng.integers(0, 2, count).astype(bool)
    x = rng.integers(0, 256, count * np.dtype(dtype).itemsize, np.uint8).view(dtype)
    if x.dtype.kind == "f":
        x[:6] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.5]
    return x


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_views_read(source: str, target: str) -> None:
    x = special(source)
    f = fusec.jit(lambda x: x.view(target))
    found = f(x)
    assert found.tobytes() == x.tobytes() and found.dtype == np.dtype(target)
    assert np.shares_memory(found, x)
    for form in (x[::2], x[::-1], x[:36].reshape(6, 6).T):
        assert fusec.jit(lambda x: x.view(target) + 0)(form).tobytes() == (
            form.view(target) + 0).tobytes()


@pytest.mark.parametrize(("source", "target"), [p for p in PAIRS if p[0] != "?"])
def test_views_written(source: str, target: str) -> None:
    """Through the view, through the base, and through a view of a part of the view."""
    number = np.dtype(target).type(3)

    def f(x):
        v = x.view(target)
        v[2::3] = number
        w = v[::-2]
        w[1:4] = v[5:8] + number
        x[4] = x[0]
        return v[4], w

    mine, numpys = special(source), special(source)
    a, b = fusec.jit(f)(mine), f(numpys)
    assert mine.tobytes() == numpys.tobytes()
    assert [np.asarray(q).tobytes() for q in a] == [np.asarray(q).tobytes() for q in b]
    assert np.shares_memory(a[1], mine)


def inverse_root(x):
    """Lomont (2003), "Fast inverse square root"."""
    i = x.view(np.int32)
    y = (np.int32(0x5F3759DF) - (i >> 1)).view(np.float32)
    return y * (np.float32(1.5) - np.float32(0.5) * x * y * y)


def exponents(x):
    return ((x.view(np.uint64) >> np.uint64(52)) & np.uint64(0x7FF)).astype(np.int64) - 1023


def flipped_signs(x):
    x.view(np.uint64)[...] ^= np.uint64(1 << 63)
    return x


def hashed(x, n):
    h = np.zeros(len(x), np.uint64)
    for k in range(n):
        h = (h ^ (x * k).view(np.uint64)) * np.uint64(1099511628211)
    return h


def next_after(x, n):
    """Steps through neighbouring numbers, in a loop on data."""
    k = 0
    while x[0] < 1.0 + n * 2.0**-52:
        x.view(np.int64)[:] += 1
        k += 1
    return k


PROGRAMS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (inverse_root, (np.linspace(0.5, 9, 100).astype("f4"),)),
    (exponents, (special("f8"),)), (flipped_signs, (np.linspace(-2, 2, 33),)),
    (hashed, (np.linspace(-2, 2, 33), 5)), (hashed, (np.linspace(-2, 2, 33), 300)),
    (next_after, (np.ones(4), 30)),
    (lambda x: (x > 0).view(np.int8).sum(), (np.linspace(-1, 3, 50),)),
    (lambda x: x[3].view(np.int64) + 1, (np.linspace(-1, 3, 50),)),
    (lambda x: x.view(), (np.ones(3),)), (lambda x: x.view(np.ndarray) + 1, (np.ones(3),)),
    (lambda x: x.view(dtype="f8"), (np.ones(3),)),
]


@pytest.mark.parametrize(("f", "args"), PROGRAMS)
def test_programs(f: Callable[..., Any], args: tuple[Any, ...]) -> None:
    check(f, *args, source=True, fp="strict")


def test_views_fuse() -> None:
    for f, x in ((inverse_root, np.ones(9, "f4")), (flipped_signs, np.ones(9))):
        lowered = fusec.jit(f).lower(x)
        assert (len(lowered.kernels), len(lowered.externs)) == (1, 0)


@pytest.mark.parametrize("target", ["i4", "c16", "?", "S8", "M8[s]"])
def test_other_views_are_refused(target: str) -> None:
    with pytest.raises(fusec.errors.UnsupportedError, match=r"a view (of another|as)"):
        fusec.jit(lambda x: x.view(target))(np.ones(4))


def test_a_wrong_dtype_is_numpys_error() -> None:
    for f in (lambda x: x.view("nonsense"), lambda x: x.item(7), lambda x: x.item(),
              lambda x: x.item(1, 1, 1)):
        with pytest.raises(Exception) as eager:
            f(np.ones(4))
        with pytest.raises(type(eager.value)) as found:
            fusec.jit(f)(np.ones(4))
        assert found.value.args[0] == str(eager.value)


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i8", "i4", "u1", "u4", "?", "c16"])
def test_item_and_tolist(dtype: str) -> None:
    x = np.arange(12).astype(dtype)
    for f in (lambda x: x[3].item(), lambda x: x.item(5), lambda x: x.item(-1),
              lambda x: x.reshape(3, 4).item(1, 2), lambda x: x.reshape(3, 4).item((1, 2)),
              lambda x: x.reshape(3, 4).T.item(5), lambda x: x[2:3].item(),
              lambda x: x.tolist(), lambda x: x.reshape(3, 2, 2).tolist(),
              lambda x: [2 * v for v in x[::2].tolist()], lambda x: x[1].tolist(),
              lambda x: x[:0].tolist()):
        expected, found = f(x), fusec.jit(f)(x)
        assert found == expected and type(found) is type(expected)
        assert repr(found) == repr(expected)


def test_items_are_python_numbers() -> None:
    x = np.arange(4, dtype="f4")
    assert fusec.jit(lambda x: x * x[1].item())(x).dtype == np.float32  # not promoted to float64
    assert type(fusec.jit(lambda x: x.sum().item() * 2)(x)) is float
    assert fusec.jit(lambda x: x.tolist())(np.arange(1000.0)) == np.arange(1000.0).tolist()
    with pytest.raises(fusec.errors.ConcreteValueError, match=r"call \.tolist\(\) on the result"):
        fusec.jit(lambda x: x.tolist())(np.ones(1000, "u8"))


@pytest.mark.parametrize("shape", [(4, 4), (6, 4), (4, 6), (9, 2), (3, 3, 3), (1, 1), (0, 3)])
@pytest.mark.parametrize("values", [1, 2, 3, 4, 9])
@pytest.mark.parametrize("wrap", [False, True])
def test_fill_diagonal(shape: tuple[int, ...], values: int, wrap: bool) -> None:
    def f(a, v):
        np.fill_diagonal(a, v * 2, wrap=wrap)
        return a + 1

    check(f, ordinary("f8", *shape), ordinary("f8", values))
    check(lambda a: np.fill_diagonal(a, [1, 2.5], wrap=wrap), ordinary("f8", *shape))
    check(f, ordinary("f8", *shape)[::-1].T if len(shape) == 2 else ordinary("f8", *shape),
          ordinary("i4", 1, values))
