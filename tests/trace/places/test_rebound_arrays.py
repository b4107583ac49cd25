"""Arrays from outside that others take the place of: no retrace, and nothing keeps the old ones."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fusec

Put = Callable[[np.ndarray], Any]
X = np.ones(4)
COUNT = 1 << 20  # elements
GLOBAL: Any = None
CONFIG: dict[str, Any] = {"layers": [{"w": None}]}


class Owner:
    w: Any = None


def put_global(w: np.ndarray) -> None:
    global GLOBAL
    GLOBAL = w


def put_nested(w: np.ndarray) -> None:
    CONFIG["layers"][0]["w"] = w


def put_in_new_containers(w: np.ndarray) -> None:
    CONFIG["layers"] = [{"w": w}]


def in_a_closure() -> tuple[Any, Put]:
    w: Any = None

    def program(x: Any) -> Any:
        return x + w.sum()

    def put(new: np.ndarray) -> None:
        nonlocal w
        w = new

    return program, put


def in_defaults() -> tuple[Any, Put]:
    def helper(x: Any, w: Any = None) -> Any:
        return x + w.sum()

    return lambda x: helper(x), lambda w: setattr(helper, "__defaults__", (w,))


def in_an_object() -> tuple[Any, Put]:
    owner = SimpleNamespace(w=None)
    return lambda x: x + owner.w.sum(), lambda w: setattr(owner, "w", w)


def in_an_object_s_list() -> tuple[Any, Put]:
    owner = SimpleNamespace(layers=[])
    return lambda x: x + owner.layers[0].sum(), lambda w: setattr(owner, "layers", [w])


def writes(x: Any) -> Any:
    GLOBAL[:4] = x
    return GLOBAL[:6] * 2


PROGRAMS: dict[str, Callable[[], tuple[Any, Put]]] = {
    "global": lambda: (lambda x: x + GLOBAL.sum(), put_global),
    "shape of a global": lambda: (lambda x: x * GLOBAL.shape[0], put_global),
    "returned": lambda: (lambda x: GLOBAL, put_global),
    "written": lambda: (writes, put_global),
    "item": lambda: (lambda x: x + CONFIG["layers"][0]["w"].sum(), put_nested),
    "new containers": lambda: (lambda x: x + CONFIG["layers"][0]["w"].sum(),
                               put_in_new_containers),
    "class": lambda: (lambda x: x + Owner.w.sum(), lambda w: setattr(Owner, "w", w)),
    "closure": in_a_closure, "defaults": in_defaults, "object": in_an_object,
    "list of an object": in_an_object_s_list,
}


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.parametrize("name", PROGRAMS)
def test_rebinding(name: str) -> None:
    program, put = PROGRAMS[name]()
    jitted = fusec.jit(program)
    first = 0
    for k in range(20):
        put(np.full(COUNT, float(k)))
        np.testing.assert_array_equal(jitted(X), program(X))
        if k == 2:
            gc.collect()
            first = resident()
    gc.collect()
    assert jitted.trace_count == 1
    assert resident() - first < 5 * 8 * COUNT


def test_another_layout_is_another_trace() -> None:
    jitted = fusec.jit(lambda x: x + GLOBAL.sum())
    for w in (np.ones(3), np.ones((3, 2)), np.ones(3, np.float32), np.ones(6)[::2], np.zeros(3)):
        put_global(w)
        np.testing.assert_array_equal(jitted(X), X + w.sum())
    assert jitted.trace_count == 4


def test_two_names_of_one_array() -> None:
    """One input for both: when they come apart, both are read."""
    owner = SimpleNamespace(w=np.ones(4))
    put_global(owner.w)
    jitted = fusec.jit(lambda x: x * GLOBAL + owner.w)
    np.testing.assert_array_equal(jitted(X), X * 2)
    put_global(np.full(4, 5.0))
    np.testing.assert_array_equal(jitted(X), X * 6)
    owner.w = GLOBAL
    np.testing.assert_array_equal(jitted(X), X * 10)


def test_arrays_may_be_resized() -> None:
    """NumPy refuses while there are weak references."""
    w = np.ones(4)
    unused = np.ones(1 << 16)
    jitted = fusec.jit(lambda x: x * w.sum() + (unused if False else 0))
    jitted(X)
    w.resize((6,), refcheck=False)
    np.testing.assert_array_equal(jitted(X), X * 4)


ONE, OTHER = np.zeros(3), np.zeros(3)


@pytest.mark.parametrize("program", [
    lambda x: x if ONE is OTHER else -x, lambda x: (x[:3] + ONE if ONE is not OTHER else x)])
def test_which_array_it_is(program: Any) -> None:
    global ONE
    jitted = fusec.jit(program)
    for held in (np.zeros(3), OTHER, np.zeros(3)):
        ONE = held
        np.testing.assert_array_equal(jitted(X), program(X))
