"""Containers nested far deeper than Python's own calls may be: read or refused, with a reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.errors import UnsupportedError

DEPTH = 5000


def nested(x: Any, kind: Callable[[Any], Any] = lambda x: [x]) -> Any:
    for _ in range(DEPTH):
        x = kind(x)
    return x


NUMBERS, NAMES = nested(2.0), nested(1.0, lambda x: {"a": x})
ARRAYS, ROWS = nested(np.ones(3)), nested(1.0, lambda x: (x,))
HOLDER = [[NUMBERS], 3]


def made_and_read(x: Any) -> Any:
    y = [x]
    for _ in range(DEPTH):
        y = [y]
    return x + len(y)


def made_and_returned(x: Any) -> Any:
    y = x
    for _ in range(DEPTH):
        y = [y]
    return y


def one_of_two(x: Any) -> Any:
    y = ARRAYS
    if x[0] > 0:
        y = NUMBERS
    return x, len(y)


def carried(x: Any) -> Any:
    y = NUMBERS
    for _ in range(200):
        x, y = x + 1, NUMBERS
    return x, len(y)


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "returned": lambda x: (x, NUMBERS), "returned in a list": lambda x: [x, ARRAYS],
    "returned dict": lambda x: (x, NAMES), "returned tuple": lambda x: (x, ROWS),
    "read": lambda x: x + len(NUMBERS), "read, of arrays": lambda x: x + len(ARRAYS),
    "read beside": lambda x: x + HOLDER[1], "made and read": made_and_read,
    "made and returned": made_and_returned, "one of two": one_of_two, "carried": carried,
}
ARE_READ = {"returned", "returned in a list", "returned dict", "read beside"}


@pytest.mark.repeats
@pytest.mark.parametrize("name", PROGRAMS)
def test_none_meets_pythons_limit(name: str) -> None:
    program, x = fusec.jit(PROGRAMS[name]), np.ones(3)
    if name in ARE_READ:
        for _ in range(2):
            found, wanted = program(x), PROGRAMS[name](x)
            for one, other in zip(found, wanted, strict=True):
                assert one is other or np.array_equal(one, other)
    else:
        with pytest.raises(UnsupportedError, match="lies in hundreds of others"):
            program(x)


def test_arguments() -> None:
    with pytest.raises(UnsupportedError, match="lies in hundreds of others"):
        fusec.jit(lambda x, items: x + len(items))(np.ones(3), NUMBERS)


def test_the_programs_own_recursion_is_its_own() -> None:
    def program(x: Any) -> Any:
        return program(x)

    with pytest.raises(RecursionError):
        fusec.jit(program)(np.ones(3))
