"""Lists and dicts that outlive the call: read at each call, changed after it, as in Python."""

from __future__ import annotations

import collections
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.errors import UnsupportedError

TABLE: dict[str, Any] = {}
PAIR: list[Any] = []
LOG: list[Any] = []


class State:
    def __init__(self, **attributes: Any) -> None:
        vars(self).update(attributes)


def state() -> Any:
    """The state that programs change, and the global containers as they begin."""
    TABLE.clear()
    TABLE.update(a=np.ones(3), n=0)
    PAIR[:] = [np.zeros(3), np.ones(3)]
    LOG.clear()
    return State(
        params={"W": np.arange(9.0).reshape(3, 3), "b": np.zeros(3)},
        m={"W": np.zeros((3, 3)), "b": np.zeros(3)}, t=0,
        arrays=[np.arange(3.0) + i for i in range(3)], history=[], cache={},
        best={"w": None, "loss": math.inf, "k": 0},
        recent=collections.deque([1.0, 2.0, 3.0], maxlen=4),
        layers=[{"W": np.eye(3) * i, "calls": i, "row": [np.float64(0)] * 3} for i in range(2)],
        sums=collections.defaultdict(float), counts=collections.Counter(),
        ordered=collections.OrderedDict(a=1.0, b=2.0), pairs={"t": (np.ones(3), 2.0)},
        parts=[State(u=np.ones(2) * k, log=[]) for k in range(2)])


def adam(o: Any, x: Any) -> None:
    o.t += 1
    for k in o.params:
        o.m[k] = 0.9 * o.m[k] + 0.1 * x[:3].sum() * np.ones_like(o.params[k])
        o.params[k] = o.params[k] - 0.01 * o.m[k] / (1 - 0.9 ** o.t)


def best_so_far(o: Any, x: Any) -> None:
    loss = float((x ** 2).sum())
    if loss < o.best["loss"]:
        o.best["loss"] = loss
        o.best["w"] = x * 2
        o.best["k"] += 1


def best_of_a_loop(o: Any, x: Any) -> Any:
    for i in range(3):
        if x[i] < o.best["loss"]:
            o.best["loss"], o.best["k"] = x[i], i
    return o.best["k"]


def appends(o: Any, x: Any) -> None:
    o.history.append(x.sum())
    o.history.append((x[0], x * 2))
    LOG.extend([x[1]])


def appends_and_reads(o: Any, x: Any) -> Any:
    o.history.append(x.sum())
    return len(o.history), o.history[-1] * 2


def appends_to_a_name(o: Any, x: Any) -> Any:
    LOG.append(x[0])
    return LOG[-1] * len(LOG)


def exchanges(o: Any, x: Any) -> None:
    o.arrays[0], o.arrays[1] = o.arrays[1], o.arrays[0]
    o.arrays[0][0] = x[0]


def rotates(o: Any, x: Any) -> None:
    o.arrays.append(o.arrays.pop(0))
    o.arrays[0] += x[:3]


def keeps_the_recent(o: Any, x: Any) -> Any:
    o.recent.append(x[0])
    return sum(o.recent)


def layers(o: Any, x: Any) -> Any:
    for i, layer in enumerate(o.layers):
        layer["W"] = layer["W"] @ o.params["W"] * 0.1
        layer["calls"] += 1
        layer["seen"] = (x * i, i)
    return o.layers[0]["calls"] + sum(layer["seen"][0].sum() for layer in o.layers)


def missing_keys(o: Any, x: Any) -> Any:
    o.sums["a"] += x[0]
    o.counts["n"] += 1
    return o.sums["a"] * o.counts["n"]


def order_of_keys(o: Any, x: Any) -> Any:
    o.ordered["a"] = o.ordered["a"] + x[0]
    o.ordered.move_to_end("a")
    return list(o.ordered.values())


def tuples_of_arrays(o: Any, x: Any) -> None:
    a, b = o.pairs["t"]
    o.pairs["t"] = (a + x[:3], b * 2)


def assigned_as_a_whole(o: Any, x: Any) -> Any:
    o.cache = {"x": x * 2, "parts": [x[0], 2]}
    o.arrays = [a * 2 for a in o.arrays]
    o.params = {k: v + o.cache["x"][0] for k, v in o.params.items()}
    return o.cache["x"].sum()


def forward_and_backward(o: Any, x: Any) -> None:
    o.cache["z"] = x * 3
    o.cache["a"] = np.tanh(o.cache["z"])
    d = 1 - o.cache["a"] ** 2
    o.grads = {"W": np.outer(d[:3], d[:3]), "b": d[:3]}
    for k in o.grads:
        o.params[k] -= 0.1 * o.grads[k]


def globals_too(o: Any, x: Any) -> Any:
    TABLE["a"] = TABLE["a"] + x[:3]
    PAIR[1] = PAIR[0]
    PAIR[0] = x[:3] * 2
    TABLE["n"] += 1
    if x[0] > 0.5:
        TABLE["a"] = x[:3]
    else:
        TABLE["a"] = TABLE["a"] + 1
    return TABLE["n"]


def while_data_decides(o: Any, x: Any) -> Any:
    k = 0
    while x[k] < 0.9 and k < 4:
        o.best["k"] += 1
        TABLE["a"] = TABLE["a"] * x[k]
        k += 1
    return o.best["k"]


def long_loop(o: Any, x: Any) -> Any:
    for _ in range(300):
        o.arrays[1] = o.arrays[1] * 0.9 + x[:3]
    return o.arrays[1].sum()


def deleted(o: Any, x: Any) -> None:
    if "q" in o.cache:
        del o.cache["q"]
    else:
        o.cache["q"] = x


def cleared(o: Any, x: Any) -> None:
    o.history.append(x[0])
    if len(o.history) > 3:
        o.history.clear()


def updated(o: Any, x: Any) -> None:
    o.params.update(W=x[0] * np.ones((3, 3)), z=x)


def by_default(o: Any, x: Any) -> Any:
    o.cache.setdefault("means", []).append(x.mean())
    return o.cache.setdefault("k", x * 2).sum() + len(o.cache["means"])


def taken_out(o: Any, x: Any) -> Any:
    o.cache["t"] = x
    return o.cache.pop("t") * 2


def written_through(o: Any, x: Any) -> Any:
    w = o.params["W"]
    w += x[0]
    o.params["W"][0] = 5
    o.arrays[2][:] = x[:3]
    o.arrays[0] = o.params["b"]
    o.arrays[0] += 1
    return o.params["b"].sum()


def in_place(o: Any, x: Any) -> Any:
    o.history += [x[0], x[1]]
    o.arrays[:] = [a + x[0] for a in o.arrays]
    return len(o.history)


def text_and_none(o: Any, x: Any) -> Any:
    o.cache["mode"] = "a" if o.cache.get("mode") != "a" else "b"
    o.best["w"] = x.copy() if o.best["w"] is None else o.best["w"] * 0.5 + x
    return x if o.cache["mode"] == "a" else -x


def at_a_position_of_data(o: Any, x: Any) -> Any:
    o.layers[0]["row"][int(x[0] * 3)] = x[1]
    return o.layers[0]["row"][int(x[2] * 3)]


def a_view_and_its_base(o: Any, x: Any) -> Any:
    o.cache["row"] = o.params["W"][0]
    o.cache["row"] += 1
    return o.params["W"].sum()


def keys_of_numbers(o: Any, x: Any) -> Any:
    o.t += 1
    o.cache["step %d" % o.t] = x.mean()  # noqa: UP031
    return sum(o.cache.values())


def objects_change_places(o: Any, x: Any) -> Any:
    for part in o.parts:
        part.u = part.u + x[:2]
        part.log.append(x[0])
    o.parts[0], o.parts[1] = o.parts[1], o.parts[0]
    return o.parts[0].u.sum()


PROGRAMS: dict[Callable[[Any, Any], Any], int] = {  # with the traces of five calls that are kept
    adam: 1, best_so_far: 2, best_of_a_loop: 2, appends: 1, appends_and_reads: 1,
    appends_to_a_name: 1, exchanges: 1, rotates: 1, keeps_the_recent: 4, layers: 1, missing_keys: 1,
    order_of_keys: 2, tuples_of_arrays: 1, assigned_as_a_whole: 1, forward_and_backward: 1,
    globals_too: 1, while_data_decides: 2, long_loop: 1, deleted: 1, cleared: 1, updated: 1,
    by_default: 5, taken_out: 1, written_through: 2, in_place: 1, text_and_none: 3,
    at_a_position_of_data: 1, a_view_and_its_base: 1, keys_of_numbers: 1, objects_change_places: 2,
}


def plain(x: Any) -> Any:
    """A state as data that compares."""
    if isinstance(x, State):
        return plain(vars(x))
    if isinstance(x, dict):
        return type(x).__name__, [(k, plain(v)) for k, v in x.items()]
    if isinstance(x, (list, tuple, collections.deque)):
        return type(x).__name__, [plain(v) for v in x]
    if isinstance(x, np.ndarray):
        return str(x.dtype), x.shape, np.round(x, 9).tolist()
    return type(x).__name__, round(x, 9) if isinstance(x, float) else x


def places(x: Any, found: list[int]) -> list[int]:
    """Which containers and arrays are the same ones: each as the place where it was met first."""
    if isinstance(x, (dict, list, tuple, collections.deque, np.ndarray)):
        found.append(id(x))
    if isinstance(x, (dict, list, tuple, collections.deque)):
        for item in x.values() if isinstance(x, dict) else x:
            places(item, found)
    return [found.index(i) for i in found]


def run(function: Any) -> list[Any]:
    o, seen = state(), []
    containers = [v for v in [*vars(o).values(), *o.layers] if not isinstance(v, (int, np.ndarray))]
    for k in range(5):
        result = function(o, np.random.default_rng(k).random(5))
        now = [*vars(o).values(), *o.layers]
        kept = [any(c is n for n in now) for c in containers]
        seen.append((plain(result), plain(o), plain([TABLE, PAIR, LOG]), kept,
                     places([*vars(o).values(), TABLE, PAIR, LOG], [])))
    return seen


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_as_in_python(program: Any) -> None:
    want, jitted = run(program), fusec.jit(program)
    for k, (a, b) in enumerate(zip(run(jitted), want, strict=True)):
        for got, wanted in zip(a, b, strict=True):
            assert got == wanted, f"call {k}"
    assert len(jitted.traces) <= PROGRAMS[program]


def test_appending_costs_no_trace() -> None:
    """However long the list is."""
    jitted, o = fusec.jit(appends), state()
    for k in range(20):
        jitted(o, np.full(5, float(k)))
    first = o.history
    o.history = []
    jitted(o, np.ones(5))
    assert len(jitted.traces) == 2 and len(first) == 40 and len(o.history) == 2
    assert [float(x) for x in LOG] == [*map(float, range(20)), 1.0]


def test_a_closure_that_appends() -> None:
    def make() -> Any:
        losses: list[Any] = []

        def step(x: Any) -> Any:
            losses.append(x.sum())
            return x * 2

        return step, losses

    step, losses = make()
    jitted = fusec.jit(step)
    for k in range(4):
        jitted(np.full(2, float(k)))
    assert losses == [0.0, 2.0, 4.0, 6.0] and len(jitted.traces) == 1


def test_what_others_change_is_seen() -> None:
    jitted, o = fusec.jit(adam), state()
    other = state()
    jitted(o, np.ones(5))
    adam(other, np.ones(5))
    for s in (o, other):
        s.m["W"] = np.full((3, 3), 7.0)
        s.params = {"b": np.ones(3), "W": np.ones((3, 3))}
    jitted(o, np.ones(5))
    adam(other, np.ones(5))
    assert plain(o) == plain(other)
    for s in (o, other):
        s.params["c"] = np.float32(2)
        s.m["c"] = np.zeros(2)
    jitted(o, np.ones(5))
    adam(other, np.ones(5))
    assert plain(o) == plain(other)


def test_what_changed_before_the_call_fails_stays() -> None:
    def program(o: Any, x: Any) -> Any:
        o.cache["x"] = x
        o.history.append(x[0])
        if x[0] > 0.5:
            raise ValueError("large")
        return o.nothing_there if x.size > 3 else x

    o, expected = state(), state()
    jitted = fusec.jit(program)
    for error, x in ((AttributeError, np.zeros(4)), (ValueError, np.ones(3))):
        with pytest.raises(error):
            jitted(o, x)
        with pytest.raises(error):
            program(expected, x)
        assert plain(o) == plain(expected)


def test_a_container_put_into_another_is_refused() -> None:
    def program(o: Any, x: Any) -> None:
        o.cache["again"] = o.params

    with pytest.raises(fusec.UnsupportedError, match="putting a dict that outlives the call into"):
        fusec.jit(program)(state(), np.ones(3))


def test_explained() -> None:
    jitted, o = fusec.jit(adam), state()
    jitted(o, np.ones(5))
    text = str(fusec.explain(jitted, o, np.ones(5)))
    assert "a container of these keys and types of items (read at each call)" in text
    assert "State.m = this dict (what is in it is read at each call)" in text
    assert "after the call: assigns attribute State.m['W'], assigns attribute State.m['b']" in text
    logs = fusec.jit(appends)
    logs(o, np.ones(5))
    text = str(fusec.explain(logs, o, np.ones(5)))
    assert "appends to attribute State.history" in text and "appends to global LOG" in text


def through_a_helper(o: Any, x: Any) -> Any:
    def helper(items: list[Any], value: Any) -> Any:
        items.append(value)
        return items[-2] if len(items) > 1 else value

    return helper(o.history, x[0])


def through_a_variable(o: Any, x: Any) -> Any:
    items = o.history
    items.append(x[0])
    return items[max(len(items) - 2, 0)]


def by_a_kept_method(o: Any, x: Any) -> Any:
    append = o.history.append
    append(x[0])
    append(x[1])
    return sum(o.history)


def in_a_dict(o: Any, x: Any) -> Any:
    o.cache.setdefault("a", []) if not o.cache else None
    o.cache["a"].append(x[0])


@pytest.mark.parametrize("program", [
    through_a_helper, through_a_variable, by_a_kept_method, in_a_dict])
def test_what_is_appended_to_and_read(program: Any) -> None:
    assert run(fusec.jit(program)) == run(program)


def swaps(o: Any, x: Any) -> Any:
    order = [1, 2, 3]
    if x[0] > 0.5:
        order[0], order[2] = order[2], order[0]
    else:
        order[1] = int(x[1] * 10)
    return order


def positions_of_data(o: Any, x: Any) -> Any:
    basis, i = [3, 4, 5], int(np.argmin(x[:3]))
    basis[i] = 7
    values = [x[0] * 2, x[1], x[2]]
    return basis, basis[i - 1], values[np.argmax(values)]


def mixtures(o: Any, x: Any) -> Any:
    cov, weights = [np.eye(2) for _ in range(2)], {"a": 0.0, "b": 1}
    for it in range(5):
        for j in range(2):
            cov[j] = cov[j] * (x[it] + 1)
        weights["a"] += x[it]
        if x[it] > 0.5:
            weights["b"] += 1
        if cov[0][0, 0] > 3:
            break
    return cov, weights


def tuples(o: Any, x: Any) -> Any:
    place = (int(x[0] * 3), int(x[1] * 3))
    count = 0
    while place != (2, 2) and count < 5:
        place, count = (min(place[0] + 1, 2), min(place[1] + count, 2)), count + 1
    return count, place == (2, 2), place in ((0, 0), (2, 2))


@pytest.mark.parametrize("program", [swaps, positions_of_data, mixtures, tuples])
def test_own_lists_and_tuples_with_data(program: Any) -> None:
    assert run(fusec.jit(program)) == run(program)


def through_a_lambda(x: Any) -> Any:
    p = [1.0, 2.0]
    q = [x, x]
    r = p
    last = lambda: r  # noqa: E731
    both = lambda: (lambda: q)  # noqa: E731
    last()[1] += 2.0
    both()()[0] = last()[1]
    return p[1], q


def test_lists_that_only_a_lambda_names() -> None:
    """A lambda without an operation was taken for one from outside: the trace began anew 1,000
    times, each slower than the one before."""
    assert fusec.jit(through_a_lambda)(1.5) == through_a_lambda(1.5)


def test_a_list_in_a_class_of_the_function() -> None:
    def program(x: Any) -> Any:
        class Kept:
            items = [x, 2.0]  # noqa: RUF012

        Kept.items[1] += x
        return Kept.items[1]

    with pytest.raises(UnsupportedError, match=r"attribute type\.items"):
        fusec.jit(program)(1.0)
