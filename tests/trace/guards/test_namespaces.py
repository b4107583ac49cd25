"""``vars(obj)``, ``obj.__dict__`` and ``dir(obj)``: names that come and go are noticed, and the
values of these names."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec


class Pair:
    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b



OWNERS: dict[str, Any] = {}


def of_object() -> Any:
    q = OWNERS["object"]
    return [np.sum(v) for v in q.__dict__.values()], "c" in vars(q), len(vars(q))


def listed() -> Any:
    q = OWNERS["object"]
    return [name for name in dir(q) if not name.startswith("_")], np.sum(q.a)


def of_class() -> Any:
    kind = OWNERS["class"]
    return [np.sum(v) for k, v in vars(kind).items() if not k.startswith("__")]


def in_class() -> Any:
    kind = OWNERS["class"]
    return "c" in vars(kind), np.sum(vars(kind)["a"]), vars(kind)["b"] * np.ones(2)


def of_module() -> Any:
    module = OWNERS["module"]
    return np.sum(vars(module)["a"]), [k for k in vars(module) if not k.startswith("_")]


@pytest.mark.parametrize("program", [of_object, listed, of_class, in_class, of_module],
                         ids=lambda f: f.__name__)
def test_of_the_world(program: Callable[..., Any]) -> None:
    jitted = fusec.jit(program)
    module = types.ModuleType("apart")
    OWNERS.update({"object": Pair(0, 0), "class": type("Of", (), {}), "module": module})
    for owner in OWNERS.values():
        owner.a, owner.b = np.arange(3.0), 2.0

    def check() -> None:
        assert repr(jitted()) == repr(program())

    check()
    for owner in OWNERS.values():
        owner.c = 7.0
    check()
    for owner in OWNERS.values():
        owner.a = np.ones(4)
    check()
    for owner in OWNERS.values():
        del owner.c
        owner.b = 5.0
    check()


def of_argument(p: Any) -> Any:
    return {k: np.sum(v) for k, v in vars(p).items()}, "c" in vars(p)


def test_of_arguments() -> None:
    jitted, first = fusec.jit(of_argument), Pair(np.arange(3.0), 2.0)
    wider = Pair(np.ones(2), 3.0)
    wider.c = 4.0  # type: ignore[attr-defined]
    for p in (first, wider, Pair(np.ones(3), 9.0), first):
        assert repr(jitted(p)) == repr(of_argument(p))
    first.d = 1.0  # type: ignore[attr-defined]
    assert repr(jitted(first)) == repr(of_argument(first))
