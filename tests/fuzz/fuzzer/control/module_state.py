"""The values of a module's names after a call: numbers, arrays, containers, objects."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
from harness import assert_leaf
from tolerance import Tolerance

from ..judge import Failure

_NUMBERS = (bool, int, float, np.generic)


def assert_state(
    own: dict[str, Any], eager: dict[str, Any], near: Tolerance, when: str, copies: bool = False
) -> None:
    """Raises `Failure` where two modules that ran the same calls differ; with ``copies`` their
    arrays may share memory in other ways."""
    got, want = dict(_state_of(own)), dict(_state_of(eager))
    if got.keys() != want.keys():
        raise Failure(f"{when} only one has {sorted(got.keys() ^ want.keys())}")
    for path, value in want.items():
        if isinstance(value, _NUMBERS) and isinstance(got[path], _NUMBERS):
            assert_leaf(float(got[path]), float(value), near, None, f"{when}: {path}")
        else:
            assert_leaf(got[path], value, near, None, f"{when}: {path}")
    if not copies and _sharing(got) != _sharing(want):
        raise Failure(f"{when} other names share memory: {_sharing(got) ^ _sharing(want)}")


def _state_of(module: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Every value with its path, ``one.data`` or ``STEPS[0]``."""
    todo = [(k, v) for k, v in module.items()
            if not k.startswith("_") and not isinstance(v, ModuleType)]
    while todo:
        path, value = todo.pop()
        if isinstance(value, (list, tuple)):
            todo += [(f"{path}[{i}]", v) for i, v in enumerate(value)]
        elif isinstance(value, dict):
            todo += [(f"{path}[{k!r}]", v) for k, v in value.items()]
        elif isinstance(value, type):
            yield f"{path}.scale", vars(value).get("scale")
        elif isinstance(value, (*_NUMBERS, str, type(None), np.ndarray)):
            yield path, value
        elif not hasattr(value, "__code__"):
            yield path, type(value).__name__
            todo += [(f"{path}.{k}", v) for k, v in _attributes(value).items()]


def _attributes(thing: Any) -> dict[str, Any]:
    slots = getattr(type(thing), "__slots__", ())
    return {k: getattr(thing, k) for k in slots} or getattr(thing, "__dict__", {})


def _sharing(state: dict[str, Any]) -> set[tuple[str, str]]:
    arrays = sorted((k, v) for k, v in state.items() if isinstance(v, np.ndarray))
    return {(a, b) for (a, x), (b, y) in itertools.combinations(arrays, 2)
            if np.may_share_memory(x, y)}
