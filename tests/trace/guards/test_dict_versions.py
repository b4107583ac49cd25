"""Dictionaries that a trace read: unchanged ones are not compared item by item, and changes are
noticed, by whatever way."""

from __future__ import annotations

import cProfile
import math
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.trace.facts import dict_versions
from fusec.trace.guards import contents
from fusec.trace.guards.contents import Content


class Owner:
    pass


def table() -> dict[Any, Any]:
    owner = Owner()
    owner.a, owner.nested = 1, {"deep": 2.0}
    return {"a": 0.5, "row": (1, 2), "f": math.sin, "inner": {"x": 1.0, "m": math}, "list": [1, {}],
            "owner": vars(owner), "made": owner}


CHANGES: dict[str, Callable[[dict[Any, Any]], Any]] = {
    "item": lambda d: d.update(a=0.25),
    "zero": lambda d: d.update(a=-0.0),
    "added": lambda d: d.update(z=1),
    "removed": lambda d: d.pop("row"),
    "order": lambda d: d.update(a=d.pop("a")),
    "row": lambda d: d.update(row=(1, 3)),
    "function": lambda d: d.update(f=math.cos),
    "inner item": lambda d: d["inner"].update(x=2.0),
    "inner module": lambda d: d["inner"].update(m=types),
    "inner object": lambda d: d.update(inner={"x": 1.0, "m": types}),
    "list": lambda d: d["list"].append(3),
    "dict in list": lambda d: d["list"][1].update(k=1),
    "attribute": lambda d: setattr(d["made"], "a", 2),
    "attribute below": lambda d: d["made"].nested.update(deep=3.0),
    "cleared": lambda d: d.clear(),
    "merged": lambda d: d.__ior__({"a": 1}),
}


@pytest.fixture(params=["versions", "none"])
def versions(request, monkeypatch):
    if request.param == "none":
        monkeypatch.setattr(contents, "version_of", lambda found: 0)


@pytest.mark.parametrize("change", list(CHANGES))
def test_changes_are_noticed(change, versions):
    held = table()
    content = Content(held)
    assert content.matches(held)
    assert content.matches(held)
    CHANGES[change](held)
    assert not content.matches(held)
    assert not content.matches(held)


def test_equal_dictionaries_match_and_are_known_then(versions):
    held = table()
    content = Content(held)
    other = dict(held)
    other["inner"] = dict(held["inner"])
    assert content.matches(other)
    assert content.matches(other)
    other["inner"]["x"] = -1.0
    assert not content.matches(other)
    other["inner"]["x"] = 1.0
    assert content.matches(other)


def test_what_was_put_back_matches(versions):
    held = table()
    content = Content(held)
    held["a"] = 7
    assert not content.matches(held)
    held["a"] = 0.5
    assert content.matches(held)


def test_equal_numbers_of_other_types_differ(versions):
    held = {"a": 1, "row": (1, 0.0)}
    content = Content(held)
    for other in ({"a": True, "row": (1, 0.0)}, {"a": 1, "row": (1, -0.0)},
                  {"a": 1, "row": [1, 0.0]}, {"a": 1, "row": (1.0, 0.0)}):
        assert not content.matches(other)
    assert content.matches({"a": 1, "row": (1, 0.0)})


def test_objects_are_not_kept_alive(versions):
    import weakref

    held = {"made": Owner()}
    gone = weakref.ref(held["made"])
    content = Content(held)
    del held["made"]
    assert gone() is None
    assert not content.matches(held)


def test_a_large_dictionary_of_objects_is_one_comparison():
    held = {f"m{i}": types.ModuleType(f"m{i}") for i in range(2000)}
    content = Content(held)
    profile = cProfile.Profile()
    assert profile.runcall(content.matches, held)
    assert sum(row.callcount for row in profile.getstats()) < 20


def test_versions_are_new_for_every_change():
    """On CPython as it is tested; where this fails dictionaries are compared item by item."""
    assert dict_versions.version_of({"a": 1})
    assert dict_versions.version_of({}) != dict_versions.version_of({})


SETTINGS = {"scale": {"x": 2.0, "names": ("a", "b")}, "by": {"a": (1, 2), "b": (3, 4)}}


def scaled(x, key):
    low, high = SETTINGS["by"][key]
    return x * SETTINGS["scale"]["x"] + low - high


def test_calls_see_changed_settings(monkeypatch):
    jitted = fusec.jit(scaled)
    x = np.arange(3.0)
    for scale, row in ((2.0, (1, 2)), (3.0, (1, 2)), (3.0, (5, 2)), (2.0, (1, 2))):
        monkeypatch.setitem(SETTINGS["scale"], "x", scale)
        monkeypatch.setitem(SETTINGS["by"], "a", row)
        for _ in range(3):
            np.testing.assert_array_equal(jitted(x, "a"), scaled(x, "a"))
    assert jitted.trace_count >= 3
