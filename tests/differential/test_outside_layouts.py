"""Arrays from outside whose layout or content changes in place between calls, wherever they lie.

After a change of layout the old one was used, and memory beyond the array's end read and written.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fusec

STATE = (1, (2,), np.dtype(np.float64), False, np.arange(2.0).tobytes())
CHANGES: dict[str, Callable[[np.ndarray], Any]] = {
    "content": lambda g: g.fill(7.0),
    "shape": lambda g: setattr(g, "shape", (2, 2)),
    "strides": lambda g: setattr(g, "strides", (0,)),
    "dtype": lambda g: setattr(g, "dtype", np.int64),
    "state": lambda g: g.__setstate__(STATE),
    "longer": lambda g: g.resize((200_000,), refcheck=False),
    "shorter": lambda g: g.resize((1,), refcheck=False),
    "read-only": lambda g: setattr(g.flags, "writeable", False),
}


class Owner:
    weights: Any = None


GLOBAL: Any = None
LIST: list[Any] = [None]
DICT: dict[str, Any] = {}
NESTED: dict[str, Any] = {"layers": [{"w": None}]}
MODULE: Any = ModuleType("a_module")


def in_global(g: np.ndarray) -> Any:
    global GLOBAL
    GLOBAL = g
    return lambda x: GLOBAL


def in_list(g: np.ndarray) -> Any:
    LIST[0] = g
    return lambda x: LIST[0]


def in_dict(g: np.ndarray) -> Any:
    DICT["w"] = g
    return lambda x: DICT["w"]


def nested(g: np.ndarray) -> Any:
    NESTED["layers"][0]["w"] = g
    return lambda x: NESTED["layers"][0]["w"]


def in_class(g: np.ndarray) -> Any:
    Owner.weights = g
    return lambda x: Owner.weights


def in_module(g: np.ndarray) -> Any:
    MODULE.weights = g
    return lambda x: MODULE.weights


def in_closure(g: np.ndarray) -> Any:
    return lambda x: g


def in_default(g: np.ndarray) -> Any:
    def given(x: Any, w: Any = g) -> Any:
        return w

    return given


def in_object(g: np.ndarray) -> Any:
    owner = SimpleNamespace(weights=g)
    return lambda x: owner.weights


def in_generator(g: np.ndarray) -> Any:
    return lambda x: next(w for w in [g])


PLACES = (in_global, in_list, in_dict, nested, in_class, in_module, in_closure, in_default,
          in_object, in_generator)


def adds(find: Any) -> Any:
    def program(x: Any) -> Any:
        return find(x) * 2 + x.sum()

    return program


def writes(find: Any) -> Any:
    def program(x: Any) -> Any:
        w = find(x)
        w[...] = w * 2 + x.sum()
        return w.sum()

    return program


def looks(find: Any) -> Any:
    def program(x: Any) -> Any:
        w = find(x)
        return x * len(w) + w.ndim * w.itemsize

    return program


def called(program: Any, g: np.ndarray) -> Any:
    """The result and the array afterwards, or the exception's type."""
    try:
        result = np.asarray(program(np.ones(3)))
    except (ValueError, TypeError) as error:
        return ValueError if isinstance(error, ValueError) else TypeError
    return result.dtype, result.shape, result.tobytes(), g.dtype, g.shape, g.tobytes()


@pytest.mark.filterwarnings("ignore:Setting the:DeprecationWarning")
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("make", [adds, writes, looks], ids=lambda f: f.__name__)
@pytest.mark.parametrize("place", PLACES, ids=lambda f: f.__name__)
def test_the_layout_of_the_call_is_used(place: Any, make: Any, change: str) -> None:
    results = []
    for compile_it in (fusec.jit, lambda f: f):
        g = np.arange(4.0)
        program = compile_it(make(place(g)))
        found = [called(program, g) for _ in range(3)]
        CHANGES[change](g)
        results.append([*found, *(called(program, g) for _ in range(3))])
    assert results[0] == results[1]
