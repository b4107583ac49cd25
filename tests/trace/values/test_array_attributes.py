"""Attributes of arrays: those there are, flags, namespaces; and assigning them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.errors import UnsupportedError

X = np.linspace(0.1, 2.0, 12)
NAMES = sorted({
    *dir(np.ndarray), *dir(np.float64), *dir(float), "mask", "iloc", "values", "todense", "A", "H",
    "to_numpy", "units", "magnitude", "compute", "__cuda_array_interface__", "__array_prepare__",
} - {"__dir__", "mT"})


@pytest.mark.parametrize("value", [X, X[0], 2.5], ids=["array", "scalar", "float"])
def test_hasattr_is_numpys(value: Any) -> None:
    def f(x: Any) -> Any:
        return [hasattr(x, name) for name in NAMES]

    wrong = [n for n, a, b in zip(NAMES, fusec.jit(f)(value), f(value), strict=True) if a != b]
    assert not wrong


@pytest.mark.parametrize("f", [
    lambda x: (x.device, hasattr(x, "device"), getattr(x, "device", "none")),
    lambda x: (x.to_device("cpu") + 1, getattr(x, "foo", 2.0)),
    lambda x: x.__array_namespace__().sin(x),
    lambda x: x.__array_namespace__(api_version="2023.12").where(x > 1, x, 0.0),
    lambda x: (x.flags.c_contiguous, x.flags["F_CONTIGUOUS"], x.flags.writeable, x.flags.aligned),
    lambda x: [(a.flags.fnc, a.flags.forc, a.flags.contiguous, a.flags.carray, a.flags.farray)
               for a in (x, x.reshape(3, 4), x.reshape(3, 4).T, x[::2], np.broadcast_to(x, (2, 12)),
                         x.reshape(3, 4)[:, 1:])],
    lambda x: [np.isfortran(a) for a in (x, x.reshape(3, 4).T, x.reshape(3, 4))],
    lambda x: x.astype(np.common_type(x, np.zeros(3, "f4"))),
    lambda x: x.astype(np.common_type(x.astype("f4"), np.zeros(3, "f4"))),
    lambda x: x.astype(np.min_scalar_type(x)),
    lambda x: (np.can_cast(x, np.float32), np.can_cast(x.dtype, "f8"), np.isdtype(
        x.dtype, "real floating"), np.finfo(x.dtype).eps, np.iterable(x), np.isscalar(x[0])),
    lambda x: x.astype(np.result_type(x.astype("f4"), np.float16, 3)),
    lambda x: x.astype(np.promote_types(x.dtype, "c8")).real,
    lambda x: np.array(x, copy=np._CopyMode.IF_NEEDED) + 1,
    lambda x: np.array(x, copy=np._CopyMode.ALWAYS) + 1,
    lambda x: np.array(x, copy=np._CopyMode.NEVER) + 1,
])
def test_questions_about_arrays(f: Callable[..., Any]) -> None:
    assert_same(fusec.jit(f)(X.copy()), f(X.copy()))


def assert_same(got: Any, want: Any) -> None:
    if isinstance(want, (tuple, list)):
        assert type(got) is type(want) and len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            assert_same(a, b)
        return
    assert type(got) is type(want)
    np.testing.assert_array_equal(got, want, strict=True)


def shape_of_a_new_array(x: np.ndarray) -> Any:
    z = x * 2
    same = z
    z.shape = (3, 4)
    same += 1
    z.shape = 4, -1
    return z, same.shape, x


def shape_of_a_view(x: np.ndarray) -> Any:
    z = x.reshape(3, 4)
    z.shape = 12
    z[0] = 100.0
    return z, x


def shape_of_a_constant(x: np.ndarray) -> Any:
    z = np.arange(12.0)
    z.shape = (3, 4)
    return x.reshape(3, 4) + z


def dtype_of_a_new_array(x: np.ndarray) -> Any:
    z = x * 1
    z.dtype = np.int64
    z[0] = 0
    return z


def flat_with_a_number(x: np.ndarray) -> Any:
    z = x.reshape(3, 4) * 1
    z.flat = 3
    return z


def flat_with_an_array(x: np.ndarray) -> Any:
    z = np.zeros((3, 4), np.int64)
    z.flat = x * 10
    return z, z.T.flags.f_contiguous


@pytest.mark.parametrize("f", [
    shape_of_a_new_array, shape_of_a_view, shape_of_a_constant, dtype_of_a_new_array,
    flat_with_a_number, flat_with_an_array,
])
def test_assignments(f: Callable[..., Any]) -> None:
    compiled, mine, theirs = fusec.jit(f), X.copy(), X.copy()
    for _ in range(2):
        assert_same(compiled(mine), f(theirs))
        assert_same(mine, theirs)


def test_an_outside_array_keeps_its_shape() -> None:
    def argument(x: np.ndarray) -> Any:
        x.shape = (3, 4)
        return x

    with pytest.raises(UnsupportedError, match="from outside"):
        fusec.jit(argument)(X.copy())
    held = X.copy()

    def closure(x: np.ndarray) -> Any:
        held.shape = (3, 4)
        return held + x

    with pytest.raises(UnsupportedError, match="'shape'"):
        fusec.jit(closure)(1.0)
    assert held.shape == (12,)


def test_a_branch_on_data_keeps_shapes() -> None:
    def f(x: np.ndarray) -> Any:
        z = x * 2
        if x[0] > 1:
            z.shape = (3, 4)
        return z.sum()

    with pytest.raises(UnsupportedError, match="in a branch or loop"):
        fusec.jit(f)(X.copy())


@pytest.mark.parametrize(("name", "value", "kind"), [
    ("T", 1.0, AttributeError), ("foo", 1.0, AttributeError), ("shape", (5, 2), ValueError),
    ("nbytes", 1, AttributeError), ("strides", (16,), UnsupportedError),
])
def test_wrong_assignments(name: str, value: Any, kind: type[Exception]) -> None:
    def f(x: np.ndarray) -> Any:
        z = x * 2
        setattr(z, name, value)
        return z

    with pytest.raises(kind):
        fusec.jit(f)(X.copy())


@pytest.mark.parametrize("f", [
    lambda x: np.sqrt([x[0], x[1]]), lambda x: np.sqrt((x[0], x[1], 3.0)),
    lambda x: np.add([x[0], x[1]], [1, 2]), lambda x: np.sqrt([[x[0], x[1]], [1.0, x[2]]]),
    lambda x: np.sqrt([x, x]), lambda x: np.add.reduce([x[0], x[1]]),
    lambda x: np.maximum.reduce([x, x[::-1], x * 0.5]), lambda x: np.hypot(2.0, [x[0], x[1]]),
    lambda x: np.add.accumulate([x[0], x[1]]), lambda x: np.add.outer([x[0], x[1]], x),
    lambda x: np.multiply.outer(x[:2], [x[0], x[1]]),
    lambda x: np.where([x[0] > 1, x[11] > 1], [x[0], x[1]], 0.0),
])
def test_ufuncs_of_lists(f: Callable[..., Any]) -> None:
    assert_same(fusec.jit(f)(X.copy()), f(X.copy()))
