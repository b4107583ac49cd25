"""The answers of the user's objects to C's protocols are the present ones: of an object that was
changed, of the next one of its class, of one that a name leads to."""

from __future__ import annotations

import cmath
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import fusec

X3 = 1.5, 2.5, 3.5, 4.5, 5.5
X = np.array([2.0, 1.0])


class Number:
    def __init__(self, v: float) -> None:
        self.v = v

    def __float__(self) -> float:
        return self.v * 1.0

    def __int__(self) -> int:
        return int(self.v)

    def __complex__(self) -> complex:
        return complex(self.v, 1)

    def __round__(self, digits: int | None = None) -> float:
        return self.v if digits is None else self.v + digits

    def __floor__(self) -> float:
        return self.v - 0.5

    def __bool__(self) -> bool:
        return self.v > 1

    def __divmod__(self, o: Any) -> Any:
        return self.v, o

    def __rdivmod__(self, o: Any) -> Any:
        return o, self.v

    def __pow__(self, o: Any, m: Any = None) -> Any:
        return self.v**o + (m or 0)

    def __rmul__(self, o: Any) -> Any:
        return self.v * o


class Index:
    def __init__(self, v: float) -> None:
        self.v = v

    def __index__(self) -> int:
        return int(self.v)


class Pair:
    def __init__(self, v: float) -> None:
        self.v = v

    def __len__(self) -> int:
        return 2

    def __getitem__(self, i: int) -> float:
        return [self.v, 2.0][i]

    def __iter__(self) -> Iterator[float]:
        return iter([self.v, 2.0])


class Row(Sequence[float]):
    def __init__(self, v: float) -> None:
        self.v = v

    def __len__(self) -> int:
        return 2

    def __getitem__(self, i: Any) -> Any:
        return (self.v, 2.0)[i]


class Table:
    """Its array is not its length, nor its number."""

    def __init__(self, v: float) -> None:
        self.v = v

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array([self.v, 3.0])

    def __len__(self) -> int:
        return 5

    def __float__(self) -> float:
        return 7.0


class Deferred(Number):
    __array_ufunc__ = None

    def __radd__(self, o: Any) -> Any:
        return np.sum(o) + self.v


class Ordered:
    def __init__(self, v: float) -> None:
        self.v = v

    def __lt__(self, o: Any) -> Any:
        return self.v < o.v

    def __eq__(self, o: object) -> bool:
        return isinstance(o, Ordered) and self.v == o.v

    def __hash__(self) -> int:
        return 1


def written(a: Any, x: np.ndarray) -> Any:
    made = np.zeros(2)
    made[0] = a
    return made


def numbers(a: Any, x: np.ndarray) -> Any:
    return (math.sqrt(a), cmath.phase(a), float(a), int(a),
            complex(a), math.floor(a), math.ceil(a), round(a), round(a, 2), bool(a), pow(a, 2),
            pow(a, 2, 3), divmod(a, 2), divmod(2, a), np.float64(a), np.int32(a), np.float64(2) * a,
            "%d, %.1f" % (a, a), *written(a, x))  # noqa: UP031


def indices(a: Any, x: np.ndarray) -> Any:
    return ([0] * a, "ab" * a, int(a), math.sqrt(a), math.factorial(a), math.comb(5, a), hex(a),
            round(2.5678, a), range(9)[a], np.arange(6)[a], x.repeat(a), np.roll(x, a), len(x[:a]),
            np.zeros(a), np.ones((a, 2)), operator.index(a), np.linspace(0, 1, a), list(range(a)))


def sums(a: Any, x: np.ndarray) -> Any:
    y = x.copy()
    y += a
    y[:] = a
    return (np.sum(a), np.array(a), np.add(a, 1), x + a, x * a, x < a, x @ a, np.dot(x, a), y,
            np.stack([a, x]), np.where(x > 1, a, x), np.linalg.norm(a), x.__add__(a), math.fsum(a),
            np.fromiter(a, float), np.interp(1.5, [1, 2.0], a), list(reversed(a)), sum(a))


def rows(a: Any, x: np.ndarray) -> Any:
    return np.sum(a), np.array(a), sum(a), x + a, np.stack([a, x]), list(reversed(a)), a.index(2.0)


def tables(a: Any, x: np.ndarray) -> Any:
    return np.sum(a), len(a), float(a), math.sqrt(a), x + a, np.concatenate([a, x]), np.float64(a)


def ordered(a: Any, x: np.ndarray) -> Any:
    return [Ordered(1.0), Ordered(2.0)].index(a) if a.v < 3 else 0


PROGRAMS: list[tuple[Callable[..., Any], Callable[..., Any]]] = [
    (numbers, Number), (indices, Index), (sums, Pair), (rows, Row), (tables, Table),
    (lambda a, x: (x * a, x + a, 2 * a), Deferred), (ordered, Ordered),
    (lambda a, x: max(a, Ordered(2.0)).v, Ordered)]


def same(a: Any, b: Any) -> bool:
    if isinstance(a, (tuple, list)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return np.array_equal(a, b) and (isinstance(a, np.ndarray) <= isinstance(b, np.ndarray))


@pytest.mark.parametrize(("program", "kind"), PROGRAMS)
def test_what_an_object_says_now(program: Callable[..., Any], kind: Callable[..., Any]) -> None:
    f = fusec.jit(program)
    for v in (1.0, 2.0, 1.0):
        assert same(program(kind(v), X), f(kind(v), X))
    held = kind(1.0)
    of_name = fusec.jit(lambda x: program(held, x))
    for v in (1.0, 2.0, 1.0):
        held.v = v
        wanted = program(held, X)
        assert same(wanted, f(held, X))
        assert same(wanted, of_name(X))


def test_instances_share_a_trace() -> None:
    for program, kind in ((lambda a: math.exp(a), Number), (lambda a: np.sum(a), Pair)):
        f = fusec.jit(program)
        assert [f(kind(v)) for v in X3] == [program(kind(v)) for v in X3]
        assert f.trace_count <= 2


def test_what_no_number_is() -> None:
    class Wrong:
        def __float__(self) -> Any:
            return 1

    with pytest.raises(TypeError, match=r"Wrong.__float__\(\) returned non-float \(type int\)"):
        fusec.jit(lambda a: math.sqrt(a))(Wrong())


@pytest.mark.parametrize("op", [operator.mul, operator.add, operator.pow, operator.matmul])
def test_arrays_of_objects_are_refused_by_name(op: Any) -> None:
    class Scale(Number):
        __radd__ = __rpow__ = __rmatmul__ = Number.__rmul__

    with pytest.raises(fusec.UnsupportedError, match=r"Scale beside an array(.|\n)*__array_uf"):
        fusec.jit(lambda x, a: op(x, a))(X, Scale(2.0))
