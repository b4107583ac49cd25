"""Arrays from outside whose value Python takes, changed in place between calls: never stale."""

from __future__ import annotations

import linecache
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.trace.guards import contents

X = np.arange(6.0)
PLACES = {"global": "G", "item": "TREE[0][0]", "class": "Owner.w", "module": "MODULE.w",
          "object": "OBJECT.w", "object's list": "OBJECT.l[0]", "closure": "given", "default": "w"}
# What becomes of x, the array's first value and the one it changes to.
FORMS: dict[str, tuple[Any, Any]] = {
    "-x if G else x": (False, True),
    "x if G and True else -x": (1, 0),
    "x * (G or 2)": (0, 3),
    "x if not G else -x": (0, 1),
    "(x if G else -x) if True else x": (1, 0),
    "x * len([i for i in range(3) if G])": (1, 0),
    "x[G:]": (1, 2),
    "x[:G].sum()": (1, 2),
    "x[::G].sum()": (1, 2),
    "x[np.s_[G:]]": (1, 2),
    "x[slice(G, None)]": (1, 2),
    "x.reshape(2, 3)[:, G:].sum()": (1, 2),
    "x * LIST[G]": (0, 2),
    "x * (4., 5., 6.)[G]": (0, 2),
    "x * len(LIST[G:])": (1, 2),
    "x * LIST[G.item()]": (1, 2),
    "x * LIST.index(float(G) + 1)": (0, 1),
    "x * TABLE[int(G)]": (0, 1),
    "x * TABLE[G.tolist()[0]]": ([0, 1], [1, 1]),
    "x * (int(G) in {1, 5})": (1, 2),
    "x if G in [1, 2] else -x": (1, 9),
    "x if 1 in G else -x": ([1, 2], [2, 2]),
    "x.reshape(G)": ([2, 3], [3, 2]),
    "x.reshape(*G)": ([2, 3], [3, 2]),
    "x.reshape(tuple(G))": ([2, 3], [3, 2]),
    "x.reshape(G.tolist())": ([2, 3], [3, 2]),
    "np.reshape(x, G)": ([2, 3], [3, 2]),
    "np.broadcast_to(x, G)": ([2, 6], [3, 6]),
    "np.zeros(G) + x.sum()": ([2, 3], [3, 2]),
    "np.full(G, 1.0) + x.sum()": (2, 3),
    "np.linspace(0, 1, G) + x.sum()": (2, 3),
    "np.eye(G) + x.sum()": (2, 3),
    "x.reshape(2, 3).sum(axis=G)": (0, 1),
    "np.sum(x.reshape(2, 3), axis=G)": (0, 1),
    "x.reshape(2, 3).take([0], axis=G)": (1, 0),
    "np.concatenate([x.reshape(2, 3)] * 2, axis=G)": (1, 0),
    "np.swapaxes(x.reshape(2, 3), G, 0)": (0, 1),
    "np.flip(x.reshape(2, 3), G)": (1, 0),
    "x.sum(keepdims=bool(G))": (0, 1),
    "x.sum(keepdims=G)": (0, 1),
    "x.repeat(G)": (2, 3),
    "np.pad(x, G)": (1, 2),
    "np.roll(x, G)": (1, 2),
    "np.insert(x, G, 9.)": (1, 2),
    "np.delete(x, G)": (1, 2),
    "np.split(x, G)[0]": (2, 3),
    "np.diff(x, G)": (1, 2),
    "(x * 1.2345).round(G)": (2, 3),
    "np.round(x * 1.2345, G)": (2, 3),
    "round(1.2345, int(G)) * x": (2, 3),
    "x * int(G)": (1, 3),
    "x * float(G)": (1, 3),
    "x * sum(range(G))": (2, 4),
    "x * len('a' * int(G))": (2, 3),
    "x * len(LIST * int(G))": (2, 3),
    "x * (1 << int(G))": (1, 2),
    "x if 0 < G < 5 else -x": (1, 9),
    "x if G == 1 else -x": (1, 9),
    "x + ord(f'{G}'[0])": (0, 1),
    "x + ord(str(G)[0])": (0, 1),
    "x + ord('{}'.format(G))": (0, 1),
    "x + ord('%d' % G)": (0, 1),
    "sorted(G)[0] * x": ([3, 1, 2], [1, 2, 3]),
    "sorted(range(2), key=lambda i: G[i])[0] * x": ([1, 2], [2, 1]),
    "x if any(G) else -x": ([0, 0], [0, 1]),
    "list(map(int, G))[0] * x": ([3, 1], [1, 2]),
    "(lambda k=G: x[k:])()": (1, 2),
    "tail(x, G)": (1, 2),
}
NAMES, OTHERS = np.array(["a", "b"]), np.array(["b", "bb"])
UNCOMPILED: dict[str, tuple[np.ndarray, np.ndarray]] = {
    "x if G[0] == 'a' else -x": (NAMES, OTHERS),
    "x * (G == 'b').sum()": (NAMES, OTHERS),
    "x * np.unique(G).size": (NAMES, np.array(["a", "a"])),
    "x * len([s for s in G if s == 'b'])": (NAMES, OTHERS),
    "x if 'a' in G else -x": (NAMES, OTHERS),
    "x * {'a': 1., 'b': 2.}[G[0]]": (NAMES, OTHERS),
    "x * np.searchsorted(G, 'b')": (NAMES, np.array(["b", "d"])),
    "x * np.char.count(G, 'a').sum()": (NAMES, OTHERS),
    "x + ord(f'{G[0]}')": (NAMES, OTHERS),
    "x * int((G[1] - G[0]).astype(int))": (np.array(["2020-01-01", "2021-01-01"], "M8[D]"),
                                           np.array(["2020-01-01", "2022-01-01"], "M8[D]")),
    "x * (G[0] / np.timedelta64(1, 's'))": (np.array([1], "m8[s]"), np.array([3], "m8[s]")),
    "x * G[0]": (np.array([1, 2], object), np.array([3, 2], object)),
    "x * G[0][0]": (np.array([[1], 2], object), np.array([[3], 2], object)),
    "x * G[0, 0]": (np.matrix([[1.0, 2.0]]), np.matrix([[3.0, 2.0]])),
    "x * float(G.sum())": (np.ma.array([1.0, 2.0], mask=[0, 1]),
                           np.ma.array([1.0, 2.0], mask=[1, 0])),
    "x * G['f0'][0]": (np.array([(1, 2.0)], "i4,f8"), np.array([(5, 2.0)], "i4,f8")),
    "x * G.f0[0]": (np.array([(1, 2.0)], "i4,f8").view(np.recarray),
                    np.array([(5, 2.0)], "i4,f8").view(np.recarray)),
    "x * float(G[1])": (np.array([1, 2], np.longdouble), np.array([1, 3], np.longdouble)),
    "x * float(G[1] + 1)": (np.array([1, 2], ">f8"), np.array([1, 3], ">f8")),
    "x * len(G[0])": (np.array(["a" * 50, "b"], "T"), np.array(["b" * 51, "b"], "T")),
    "x if G.size and G else -x": (np.array(["a"]), np.array([""])),
}


@pytest.fixture(autouse=True)
def unused_arrays_are_large(monkeypatch: Any) -> None:
    """Small ones are compared by content in any case."""
    monkeypatch.setattr(contents, "_SMALL", -1)


def module_with(form: str, place: str, g: np.ndarray) -> dict[str, Any]:
    """A module whose ``program`` finds the array in the place."""
    expression = form.replace("G", PLACES[place])
    source = ("def tail(x, k):\n    return x[k:]\n"
              "def make(given):\n"
              "    def with_default(x, w=given):\n"
              f"        return {expression if place == 'default' else 'x'}\n"
              "    def program(x):\n"
              f"        return {expression if place != 'default' else 'with_default(x)'}\n"
              "    return program\n")
    name = f"<taken {form} {place}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    owner = type("Owner", (), {"w": g})
    outer: Any = ModuleType("of_the_user")
    outer.w = g
    module = {"np": np, "__name__": "taken", "G": g, "TREE": {0: [g]}, "Owner": owner,
              "MODULE": outer, "OBJECT": SimpleNamespace(w=g, l=[g]), "LIST": [1.0, 2.0, 3.0],
              "TABLE": {0: 1.0, 1: 5.0}}
    exec(compile(source, name, "exec"), module)
    return module


def assert_never_stale(form: str, place: str, first: Any, second: Any) -> None:
    g = np.array(first, subok=True)
    program = module_with(form, place, g)["make"](g)
    jitted = fusec.jit(program)
    for value in (first, first, second, second, first):
        g[...] = value
        if isinstance(g, np.ma.MaskedArray):
            g.mask = value.mask
        np.testing.assert_array_equal(jitted(X), program(X))


@pytest.mark.repeats
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("form", FORMS)
def test_what_python_takes(form: str, place: str) -> None:
    assert_never_stale(form, place, *FORMS[form])


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("form", UNCOMPILED)
def test_dtypes_that_are_not_compiled(form: str, place: str) -> None:
    assert_never_stale(form, place, *UNCOMPILED[form])


def test_what_is_not_taken_costs_no_trace() -> None:
    g = np.arange(4.0)
    jitted = fusec.jit(lambda x: x[:4] * g)
    for k in range(4):
        g += k
        np.testing.assert_array_equal(jitted(X), X[:4] * g)
    assert jitted.trace_count == 1


def test_statements() -> None:
    limit, kind = np.array(2), np.array(1)

    def program(x: Any) -> Any:
        n = 0
        while n < limit:
            n += 1
        assert limit < 5
        match kind:
            case 1:
                return x * n
        return -x * n

    jitted = fusec.jit(program)
    for limit[...], kind[...] in ((2, 1), (4, 1), (4, 2), (2, 1)):
        np.testing.assert_array_equal(jitted(X), program(X))
