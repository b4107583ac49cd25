"""Refusals of arguments and of their items: the line of the user's, and a cure."""

import collections
import functools
import io
import pickle

import numpy as np
import pytest

import fusec

X = np.arange(3.0)


def assign(x, items):
    items["k"] = x.sum()


def delete(x, items):
    del items["k"]


def add(x, items):
    items += [x]


def inside(x, items):
    items[0]["k"] = x


def by_default(x, items=[]):  # noqa: B006
    items.append(x)


CHANGES = {
    "append": (lambda x, items: items.append(x.sum()), [], "list", "items.append"),
    "sort": (lambda x, items: items.sort(), [2.0, 1.0], "list", "items.sort"),
    "+=": (add, [1.0], "list", "items += [x]"),
    "assign": (assign, {}, "dict", 'items["k"] = x.sum()'),
    "delete": (delete, {"k": 1.0}, "dict", 'del items["k"]'),
    "inside": (inside, [{}], "dict", 'items[0]["k"] = x'),
    "deque": (lambda x, items: items.appendleft(1.0), collections.deque(), "deque", "appendleft"),
    "OrderedDict": (assign, collections.OrderedDict(), "OrderedDict", 'items["k"] = x.sum()'),
    "defaultdict": (lambda x, items: x * items["a"], collections.defaultdict(float),
                    "defaultdict", 'items["a"]'),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changes_of_arguments(name):
    fn, items, kind, line = CHANGES[name]
    with pytest.raises(fusec.UnsupportedError, match=f"changing an? {kind} that is") as error:
        fusec.jit(fn)(X, items)
    assert line in str(error.value)
    assert "items.copy()" in str(error.value)


def test_changes_of_defaults():
    with pytest.raises(fusec.UnsupportedError, match="a default value is an argument") as error:
        fusec.jit(by_default)(X)
    assert "items.append(x)" in str(error.value)


class Holder:
    def __init__(self):
        self.k = 1.0


HELD = Holder()
NAMESPACES = {
    "update": lambda x: vars(HELD).update(k=x.sum()),
    "of __dict__": lambda x: HELD.__dict__.update(k=x.sum()),
    "pop": lambda x: vars(HELD).pop("k"),
    "setdefault": lambda x: vars(HELD).setdefault("k", 2.0),
    "setitem": lambda x: vars(HELD).__setitem__("k", 2.0),
}


@pytest.mark.parametrize("name", NAMESPACES)
def test_changes_of_namespaces(name):
    with pytest.raises(fusec.UnsupportedError, match=r"changing vars\(\) of an object") as error:
        fusec.jit(NAMESPACES[name])(X)
    assert "assign the attribute, obj.name = value" in str(error.value)
    assert "test_messages_about_arguments.py" in str(error.value)
    assert vars(HELD) == {"k": 1.0}


@pytest.mark.parametrize("fn", [
    lambda x: pickle.dump(x, io.BytesIO()), lambda x: pickle.dumps({"a": [x]}),
], ids=["dump", "dumps"])
def test_pickles_of_values_of_the_graph(fn):
    with pytest.raises(fusec.UnsupportedError, match="pickling a traced value") as error:
        fusec.jit(fn)(X)
    assert "pickle it after the call" in str(error.value)


@pytest.mark.parametrize("cache", [functools.cache, functools.lru_cache(maxsize=2)])
def test_functions_behind_caches(cache):
    @cache
    def cached(n):
        return n * 2

    with pytest.raises(TypeError, match=r"cached\.__wrapped__"):
        fusec.jit(cached)
    assert fusec.jit(cached.__wrapped__)(X)[1] == 2.0


def test_functions_in_c():
    with pytest.raises(TypeError, match=r"wrap it in a function, lambda x: len\(x\)"):
        fusec.jit(len)
