"""Texts of lists, tuples and objects with values of the run: refused, and right for ints."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fusec


@dataclasses.dataclass
class Point:
    n: Any


Pair = collections.namedtuple("Pair", "n")
TEXTS: dict[str, Callable[[Any], str]] = {
    "f-string": lambda n: f"{(n,)} and {[n]!r:>12}",
    "str": lambda n: str([n]),
    "repr": lambda n: repr({"n": n}),
    "percent": lambda n: "%s of %s" % ([n], (n,)),  # noqa: UP031
    "format": lambda n: f"{(n,)} {1}",
    "method": lambda n: [n].__repr__(),
    "deque": lambda n: str(collections.deque([n])),
    "dataclass": lambda n: str(Point(n)),
    "named tuple": lambda n: f"{Pair(n)}",
    "namespace": lambda n: repr(SimpleNamespace(n=n)),
    "slice": lambda n: str(slice(n)),
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=list(TEXTS))
def test_of_an_int_argument(text: Callable[[Any], str]) -> None:
    kept: list[str] = []

    @fusec.jit
    def program(x: Any, n: int) -> Any:
        kept.append(text(n))
        return text(n), x * n

    for n in (5, 8, 13, 8):
        assert program(np.ones(2), n)[0] == text(n) == kept[-1]


@pytest.mark.parametrize("text", TEXTS.values(), ids=list(TEXTS))
def test_of_data_it_is_refused(text: Callable[[Any], str]) -> None:
    with pytest.raises(fusec.ConcreteValueError, match="only known when the compiled code"):
        fusec.jit(lambda x: (text(x[0]), x))(np.ones(2))


def test_of_a_range() -> None:
    jitted = fusec.jit(lambda x, n: (repr(range(n)), x * n))
    for n in (5, 8, 13):
        assert jitted(np.ones(2), n)[0] == f"range(0, {n})"
