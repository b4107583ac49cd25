"""``isinstance`` of traced values and classes that look for methods: the answer was an array's, for
what stands for a number has the methods of an array."""

from __future__ import annotations

import collections.abc
import numbers
import typing
from typing import Any

import numpy as np
import pytest

import fusec


@typing.runtime_checkable
class HasLength(typing.Protocol):
    def __len__(self) -> int: ...


@typing.runtime_checkable
class HasShape(typing.Protocol):
    shape: tuple[int, ...]


class AsksForMethods(type):
    def __instancecheck__(cls, x: Any) -> bool:
        return hasattr(x, "__iter__")


class Items(metaclass=AsksForMethods):
    pass


ABC = collections.abc
CLASSES: list[Any] = [
    ABC.Iterable, ABC.Sized, ABC.Hashable, ABC.Container, ABC.Collection, ABC.Sequence,
    ABC.Reversible, typing.Iterable, typing.Sized, typing.SupportsIndex, typing.SupportsFloat,
    typing.SupportsInt, typing.SupportsRound, HasLength, HasShape, numbers.Real, numbers.Integral,
    Items, float, np.ndarray, np.floating, (int, ABC.Iterable), ((ABC.Sized,), float),
    int | ABC.Iterable, typing.Optional[ABC.Sized]]  # noqa: UP045 (another class than `|` gives)
VALUES: list[Any] = [1.5, np.float64(1.5), np.float32(2.0), np.int64(3), np.True_, np.ones(3),
                     np.ones(()), np.complex128(1j)]


@pytest.mark.parametrize("kind", CLASSES, ids=str)
def test_what_a_value_is(kind: Any) -> None:
    def f(x: Any) -> Any:
        known = [x, x * 2, np.sum(x), np.sum(x) > 1, np.size(x)]
        return [(1.0 if isinstance(item, kind) else 2.0) + 0 * np.sum(x) for item in known]

    for x in VALUES:
        assert fusec.jit(f)(x) == f(x)


def test_what_a_lane_is() -> None:
    def f(x: Any) -> Any:
        return x[0] if isinstance(x, ABC.Iterable) else x * 2

    x = np.arange(3.0)
    np.testing.assert_array_equal(fusec.vmap(f)(x), [f(v) for v in x])
    np.testing.assert_array_equal(fusec.vmap(f)(np.ones((2, 3))), np.ones(2))
