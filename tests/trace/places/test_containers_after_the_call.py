"""Lists and dicts that outlive the call: their items after it, and that they are themselves."""

from __future__ import annotations

import collections
import functools
import queue
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec

X = np.array([0.6, 0.3, 0.2, 0.1])
State = Any


class Holder:
    def __init__(self, **parts: Any) -> None:
        vars(self).update(parts)


def appended_and_read(o: State, x: Any) -> Any:
    o.grads.append(x * 2)
    o.w -= o.grads[-1]


def each_item_in_place(o: State, x: Any) -> Any:
    for k in o.p:
        o.p[k] -= x


def made_where_it_is_missing(o: State, x: Any) -> Any:
    s = o.state.setdefault(o.k, {"m": np.zeros(4)})
    s["m"] = s["m"] * 0.9 + x
    o.state[o.k]["m"] += 1


@pytest.mark.parametrize(("program", "clear"), [
    (appended_and_read, lambda o: o.grads.clear()),
    (each_item_in_place, lambda o: o.p.pop("a", None)),
    (made_where_it_is_missing, lambda o: o.state.clear())])
def test_items_that_are_gone_at_a_later_call(program: Any, clear: Callable[[Any], Any]) -> None:
    jitted = fusec.jit(program)
    states = [Holder(grads=[], w=np.zeros(4), p={"a": np.zeros(4), "b": np.zeros(4)}, state={},
                     k="a") for _ in range(2)]
    for _ in range(3):
        for _ in range(3):
            program(states[0], X)
            jitted(states[1], X)
            assert str(vars(states[0])) == str(vars(states[1]))
        for state in states:
            clear(state)


def test_an_attribute_that_holds_the_item_already() -> None:
    @fusec.jit
    def program(o: State, x: Any) -> None:
        if x[0] > 0.5:
            o.w = o.l[0]
        o.w += 1

    o = Holder(w=np.zeros(4), l=[np.zeros(4)])
    for count in (1.0, 2.0):
        program(o, X)
        assert o.w is o.l[0]
        assert o.w[0] == count


def record_in_two_places(o: State, x: Any) -> Any:
    rec = {"n": 0.0, "x": x}
    o.history.append(rec)
    o.last = rec
    return rec


def row_twice(o: State, x: Any) -> Any:
    row = [0.0, x[0]]
    o.history += [row] * 2
    o.last = [row, {"again": row}]
    return [row, row]


def history_itself(o: State, x: Any) -> Any:
    o.history.append(x[0])
    return o.history, len(o.history)


def dict_of_the_history(o: State, x: Any) -> Any:
    o.history.append({"x": x[0]})
    o.history[0]["x"] += 1.0
    return o.history[0]


@pytest.mark.parametrize("program", [
    record_in_two_places, row_twice, history_itself, dict_of_the_history])
def test_one_container_in_several_places(program: Callable[..., Any]) -> None:
    jitted = fusec.jit(program)
    states = [Holder(history=[], last=None) for _ in range(2)]
    for x in (X, X[::-1], -X):
        want, got = program(states[0], x), jitted(states[1], x)
        assert repr(got) == repr(want)
        assert repr(vars(states[1])) == repr(vars(states[0]))
        assert sameness(got, states[1]) == sameness(want, states[0])


def sameness(result: Any, o: State) -> list[int]:
    """Which of all lists and dicts are one."""
    found: list[Any] = []

    def note(part: Any) -> None:
        if isinstance(part, (list, dict, tuple)):
            found.append(part)
            for item in part.values() if isinstance(part, dict) else part:
                note(item)

    for part in (result, o.history, o.last):
        note(part)
    return [[a is b for b in found].index(True) for a in found]


def rotated(o: State, x: Any) -> Any:
    o.a.append(o.a.pop(0))
    o.a[0]["v"] += x[0]
    return o.a[1]["v"]


def exchanged_in_the_list(o: State, x: Any) -> Any:
    o.a[0], o.a[1] = o.a[1], o.a[0]
    o.a[0]["v"] = o.a[0]["v"] * 2 + x[1]


def sorted_by_a_key(o: State, x: Any) -> Any:
    o.a.sort(key=lambda d: d["k"])
    o.a[0]["k"] += 3
    o.a[0]["v"] += x[0]
    return o.a


def reversed_in_place(o: State, x: Any) -> Any:
    o.a.reverse()
    o.current["v"] += x[0]
    return o.a[1]["v"]


@pytest.mark.parametrize("program", [
    rotated, exchanged_in_the_list, sorted_by_a_key, reversed_in_place])
def test_dicts_that_change_places(program: Callable[..., Any]) -> None:
    jitted = fusec.jit(program)
    parts = [[{"v": float(k), "k": 3 - k} for k in range(3)] for _ in range(2)]
    states = [Holder(a=p[:], current=p[0]) for p in parts]
    for x in (X, -X, X * 2, X):
        want, got = program(states[0], x), jitted(states[1], x)
        assert repr(got) == repr(want)
        assert repr(vars(states[1])) == repr(vars(states[0]))
        places = [[[d is e for e in p].index(True) for d in s.a]
                  for p, s in zip(parts, states, strict=True)]
        assert places[0] == places[1]


LOG: list[Any] = []


def bound_anew_and_appended_to(o: State, x: Any) -> Any:
    global LOG
    LOG = []
    LOG.append(x[0])
    o.log(x[1])
    o.callbacks[0](x[2])
    o.put("k", x)
    functools.partial(o.history.append)(x[3])
    return len(LOG)


def test_methods_of_containers_that_lie_elsewhere() -> None:
    o = Holder(history=[], more=[], d={})
    o.log, o.callbacks, o.put = o.history.append, [o.more.append], o.d.__setitem__
    jitted = fusec.jit(bound_anew_and_appended_to)
    for count in (1, 2, 3):
        assert jitted(o, X * count) == 1
        assert o.history[-2:] == [0.3 * count, 0.1 * count]
        assert len(o.history) == 2 * count
        assert o.more == [pytest.approx(0.2 * k) for k in range(1, count + 1)]
        assert o.d["k"][0] == LOG[0] == 0.6 * count


@pytest.mark.parametrize("made", [
    lambda: collections.UserList([1.0]), lambda: collections.UserDict(a=1.0),
    lambda: collections.ChainMap({"a": 1.0}, {"b": 2.0}), queue.Queue])
def test_containers_of_libraries_keep_no_values_of_the_graph(made: Callable[[], Any]) -> None:
    @fusec.jit
    def program(o: State, x: Any) -> None:
        if isinstance(o.p, collections.UserList):
            o.p.append(x[0])
        elif isinstance(o.p, queue.Queue):
            o.p.put(x[0])
        else:
            o.p["a"] = x[0]

    o = Holder(p=made())
    with pytest.raises(fusec.UnsupportedError, match="keeping a value of the graph in a"):
        program(o, X)
    contents = o.p.queue if isinstance(o.p, queue.Queue) else o.p
    assert list(contents) == list(getattr(made(), "queue", made()))


def assigned_ahead(o: State, x: Any) -> Any:
    for i, v in enumerate(o.l):
        if i + 1 < len(o.l):
            o.l[i + 1] = v + x[0]
    return o.l[-1]


def breadth_first(o: State, x: Any) -> Any:
    queued, seen = [4], []
    for _, n in enumerate(queued):
        seen.append(n * x[0])
        if n > 1:
            queued.append(n - 1)
    return seen


def items_in_turn(o: State, x: Any) -> Any:
    it = iter(o.l)
    next(it)
    o.l[1] = x[0]
    pairs = zip(o.l, [1, 2], strict=False)
    first = next(pairs)
    o.l[1] = x[1]
    return next(it), first, next(pairs), list(reversed(o.l))


def grows(o: State, x: Any) -> Any:
    for i, (_, _) in enumerate(o.d.items()):
        o.d[f"new {i}"] = x[0]


@pytest.mark.parametrize("program", [assigned_ahead, breadth_first, items_in_turn, grows])
def test_iterators_see_what_is_assigned_meanwhile(program: Callable[..., Any]) -> None:
    states = [Holder(l=[1.0, 2.0, 3.0], d={"a": 1.0}) for _ in range(2)]
    if program is grows:
        with pytest.raises(RuntimeError, match="changed size"):
            fusec.jit(program)(states[0], X)
        return
    jitted = fusec.jit(program)
    for x in (X, -X):
        assert repr(jitted(states[1], x)) == repr(program(states[0], x))
        assert repr(vars(states[1])) == repr(vars(states[0]))


def bandit(o: State, x: Any) -> Any:
    i = int(np.argmax(x))
    o.n[i] += 1
    o.q[i] += (x[i] - o.q[i]) / o.n[i]
    return o.q[i], i, sum(o.n)


def best_so_far(o: State, x: Any) -> Any:
    s = x.max()
    if s > o.best["s"]:
        o.best.update(s=s, x=x * 2)
    return o.best["x"][0]


def of_a_deque(o: State, x: Any) -> Any:
    o.recent.append(x[0])
    return np.max(o.recent), np.array(o.recent)[-1], max(o.recent), np.sort(o.recent)


@pytest.mark.parametrize("program", [bandit, best_so_far, of_a_deque])
def test_programs_with_state_in_containers(program: Callable[..., Any]) -> None:
    jitted = fusec.jit(program)
    states = [Holder(n=[0] * 4, q=[0.0] * 4, best={"s": 0.0, "x": np.zeros(4)},
                     recent=collections.deque(maxlen=3)) for _ in range(2)]
    for x in (X, X[::-1].copy(), X * 2, -X, X * 3, X):
        assert repr(jitted(states[1], x)) == repr(program(states[0], x))
        assert states[1].n == states[0].n
        assert states[1].q == states[0].q
        assert states[1].recent == states[0].recent
        assert repr(states[1].best) == repr(states[0].best)


def test_the_cure_for_a_value_that_is_needed_names_what_is_there() -> None:
    @fusec.jit
    def program(o: State, x: Any) -> Any:
        k = o.l.index(2.0)
        o.l[0] = x[0]
        return k

    with pytest.raises(TypeError, match="a truth value is needed") as error:
        program(Holder(l=[1.0, 2.0]), X)
    assert "captured" not in str(error.value)


def by_and(o: State, x: Any) -> Any:
    x[0] > 0.5 and o.history.append(x[1])


def by_a_helper_that_answers(o: State, x: Any) -> Any:
    def ok(v: Any) -> Any:
        o.history.append(v)
        return v > 0.25

    if x[0] > 0.5 and ok(x[1]):
        return 1.0
    return 2.0


def changed_after_the_append(o: State, x: Any) -> None:
    r = {"s": x[0]}
    if x[1] > 0:
        o.history.append(r)
    r["s"] = 9.0


def in_one_list_and_perhaps_another(o: State, x: Any) -> None:
    r = {"s": x[0]}
    o.history.append(r)
    if x[1] > 0:
        o.last.append(r)


@pytest.mark.parametrize("program", [
    by_and, by_a_helper_that_answers, changed_after_the_append, in_one_list_and_perhaps_another])
def test_appended_where_data_decides(program: Callable[..., Any]) -> None:
    jitted = fusec.jit(program)
    states = [Holder(history=[], last=[]) for _ in range(2)]
    for x in (X, -X, X * 0.5, X):
        assert repr(jitted(states[1], x)) == repr(program(states[0], x))
        assert repr(vars(states[1])) == repr(vars(states[0]))
        assert sameness((), states[1]) == sameness((), states[0])


def state_appended(o: State, x: Any) -> None:
    if x[1] > 0:
        o.history.append(o.d)
    o.d["n"] += 1


def size_of_the_run_appended(o: State, x: Any) -> Any:
    if x[0] < 0:
        return 0.0
    o.history.append(np.flatnonzero(x > 0))
    return 1.0


@pytest.mark.parametrize("program", [state_appended, size_of_the_run_appended])
def test_what_is_not_appended_where_data_decides(program: Callable[..., Any]) -> None:
    with pytest.raises(fusec.UnsupportedError, match=r"outlives the call|size the run decides"):
        fusec.jit(program)(Holder(history=[], d={"n": 0}), X)
