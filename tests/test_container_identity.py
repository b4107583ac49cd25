"""Lists and dicts are the objects that they are in Python, whatever ways lead to them."""

from __future__ import annotations

import collections
import copy
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


def nested_write(o: State, x: Any) -> Any:
    if x[0] > 0.5:
        o.n["q"] = x[1]
        o.n["r"][0] = 5.0
    return o.n["r"][0]


def nested_write_of_its_own(o: State, x: Any) -> Any:
    a = {"q": 1.0, "r": [1.0]}
    if x[0] > 0.5:
        a["q"] = float(x[1])
        a["r"][0] = 5.0
    return a


def nested_write_in_the_other_side(o: State, x: Any) -> Any:
    st = {"p": {"a": 0.0}, "t": 0.0}
    if x[0] > 0.5:
        st["t"] = float(x[1])
    else:
        st["p"]["a"] = 7.0
    return st


def nested_array(o: State, x: Any) -> Any:
    b = {"n": 0.0, "l": [np.zeros(3)]}
    if x[0] > 0.5:
        b["n"] = float(x[1])
        b["l"][0] = b["l"][0] + 1
    return b


def another_name_after_a_branch(o: State, x: Any) -> Any:
    p = {"a": 0.0}
    st = {"p": p, "t": 0.0}
    if x[0] > 0.5:
        st["t"] = float(x[1])
    p["a"] = 7.0
    return st


def another_name_of_state(o: State, x: Any) -> Any:
    r = o.n["r"]
    if x[0] > 0.5:
        o.n["q"] = x[1]
    r[0] = 5.0
    return o.n["r"][0]


def changed_after_a_branch(o: State, x: Any) -> Any:
    if x[0] > 0.5:
        o.n["q"] = x[1]
    o.n["r"].append(x[0])
    return len(o.n["r"])


def by_a_helper(o: State, x: Any) -> Any:
    def put(c: Any, v: Any) -> Any:
        c[0] = v
        return c

    r = put(o.l, x[1]) if x[0] > 0.5 else o.l
    r[1] = 9.0
    return o.l[1]


def in_a_tuple(o: State, x: Any) -> Any:
    pair = (o.l, 1.0)
    if x[0] > 0.5:
        pair = (o.l, 2.0)
    pair[0][0] = pair[1]
    return o.l[0]


@pytest.mark.parametrize("program", [
    nested_write, nested_write_of_its_own, nested_write_in_the_other_side, nested_array,
    another_name_after_a_branch, another_name_of_state, changed_after_a_branch, by_a_helper,
    in_a_tuple])
def test_after_branches(program: Callable[..., Any]) -> None:
    jitted = fusec.jit(program)
    states = [Holder(n={"q": 1.0, "r": [1.0, 2.0]}, l=[1.0, 2.0]) for _ in range(2)]
    before = copy.copy(states[1].n), states[1].n["r"], states[1].l
    for x in (X, -X, X * 2):
        want, got = program(states[0], x), jitted(states[1], x)
        assert str(got) == str(want)
        assert str(vars(states[1])) == str(vars(states[0]))
        assert states[1].n["r"] is before[1]
        assert states[1].l is before[2]


def chosen_list(o: State, x: Any) -> Any:
    c = o.l if x[0] > 0.5 else o.m
    c[0] = c[0] + 1


def chosen_list_appended_to(o: State, x: Any) -> Any:
    c = o.l if x[0] > 0.5 else o.m
    c.append(x[1])


def chosen_of_its_own(o: State, x: Any) -> Any:
    a, b = [1.0], [3.0]
    c = a if x[0] > 0.5 else b
    c[0] = 9.0
    return a


def original_changed(o: State, x: Any) -> Any:
    c = o.l if x[0] > 0.5 else o.m
    o.l[0] += 1
    return c[0]


def best_of_several(o: State, x: Any) -> Any:
    best = o.pop[0]
    for e in o.pop:
        if e["f"] < best["f"]:
            best = e
    best["age"] += 1


def exchanged(o: State, x: Any) -> Any:
    lo, hi = o.l, o.m
    if x[0] > 0.5:
        lo, hi = hi, lo
    lo[0] = 0.0


def assigned(o: State, x: Any) -> Any:
    o.l = o.m if x[0] > 0.5 else o.l


@pytest.mark.parametrize("program", [
    chosen_list, chosen_list_appended_to, chosen_of_its_own, original_changed, best_of_several,
    exchanged, assigned])
def test_what_data_chooses_is_not_changed(program: Callable[..., Any]) -> None:
    """A copy would be changed instead."""
    state = Holder(l=[1.0, 2.0], m=[3.0, 4.0],
                   pop=[{"f": 2.0, "age": 0}, {"f": 1.0, "age": 0}])
    with pytest.raises(fusec.UnsupportedError, match=r"that data chooses|of which data chooses"):
        fusec.jit(program)(state, X)


def read_only(o: State, x: Any) -> Any:
    best = o.pop[0]
    for e in o.pop:
        if e["f"] * x[0] < best["f"] * x[1]:
            best = e
    weights = [1.0, 2.0] if x[0] > 0.5 else [float(x[0]), 3.0]
    weights[1] += 1
    return best["age"], sum(weights)


def test_what_data_chooses_is_read() -> None:
    state = Holder(pop=[{"f": 2.0, "age": 5}, {"f": 1.0, "age": 7}])
    jitted = fusec.jit(read_only)
    for x in (X, -X, X[::-1]):
        assert jitted(state, x) == read_only(state, x)


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


def nested_in_a_loop(o: State, x: Any) -> Any:
    s = {"T": [0.0, 0.0]}
    p = s["T"]
    i = 0
    while i < 4 and x[i] > 0.15:
        s["T"][0] += 1
        i += 1
    return p[0], s["T"][0]


def bound_again_in_a_loop(o: State, x: Any) -> Any:
    cells = [0.0, 0.0]
    prev = cells
    i = 0
    while i < 4 and x[i] > 0.15:
        prev = cells
        cells[0] += 1.0
        i += 1
    return prev, cells


def nested_state_beside_a_loop(o: State, x: Any) -> Any:
    for i in range(100):
        if x[i % 4] > 0.25:
            o.n["q"] += 1.0
    o.n["r"][1] = 3.0
    return len(o.n["r"])


def state_in_a_tuple_of_a_loop(o: State, x: Any) -> Any:
    st = (o.l, 0.0)
    i = 0
    while i < 4 and x[i] > 0.15:
        st = (st[0], max(st[1], x[i]))
        i += 1
    st[0][0] = 8.0
    return i


def exchanged_in_a_loop(o: State, x: Any) -> Any:
    cur, prev = [0.0, 1.0], [2.0, 3.0]
    i = 0
    while i < 4 and x[i] > 0.15:
        cur, prev = prev, cur
        cur[0] += x[i]
        i += 1
    return float(cur[0]), float(prev[0])


def made_anew_in_a_loop(o: State, x: Any) -> Any:
    best, cur = [0.0, 0.0], [1.0, 2.0]
    i = 0
    while i < 4 and x[i] > 0.15:
        cur = [cur[0] + 1, float(x[i])]
        if cur[0] > 2:
            best = cur
        i += 1
    return best, cur


@pytest.mark.parametrize("program", [
    nested_in_a_loop, bound_again_in_a_loop, nested_state_beside_a_loop,
    state_in_a_tuple_of_a_loop, exchanged_in_a_loop, made_anew_in_a_loop])
def test_after_loops(program: Callable[..., Any]) -> None:
    test_after_branches(program)


def joined_in_a_loop(o: State, x: Any) -> Any:
    best, cur = [0.0, 0.0], [1.0, 2.0]
    i = 0
    while i < 4 and x[i] > 0.15:
        cur = [cur[0] + 1, x[i]]
        best = cur
        i += 1
    best[0] = 9.0
    return cur


def state_bound_in_a_loop(o: State, x: Any) -> Any:
    p = o.l
    i = 0
    while i < 4 and x[i] > 0.15:
        p = o.m
        i += 1
    p[0] = 4.0


def state_exchanged_in_a_loop(o: State, x: Any) -> Any:
    lo, hi = o.l, o.m
    i = 0
    while i < 4 and x[i] > 0.15:
        lo, hi = hi, lo
        i += 1
    lo[0] = 4.0


@pytest.mark.parametrize("program", [
    joined_in_a_loop, state_bound_in_a_loop, state_exchanged_in_a_loop])
def test_what_a_loop_chooses_is_not_changed(program: Callable[..., Any]) -> None:
    test_what_data_chooses_is_not_changed(program)


def chosen_of_old_and_new(o: State, x: Any) -> Any:
    a = [x[0], x[1]]
    b = a if x[1] > 0 else [1.0, 2.0]
    b[0] = 9.0
    return a


def read_through_the_choice(o: State, x: Any) -> Any:
    p = {"b": 0.0}
    best = p
    if x[0] > 5.0:
        best = {"b": 1.0}
    p["b"] = 5.0
    return best["b"]


def chosen_in_a_tuple(o: State, x: Any) -> Any:
    a = [x[0], x[1]]
    b = (a, 1)
    if x[0] > 5.0:
        b = ([1.0, 2.0], 1)
    b[0][0] = 77.0
    return a[0]


def chosen_by_a_helper(o: State, x: Any) -> Any:
    a = [x[0], x[1]]

    def get() -> Any:
        if x[1] > 0:
            return a
        return [0.0, 0.0]

    get()[0] = 50.0
    return a[0]


def compared_by_identity(o: State, x: Any) -> Any:
    z = [x[0]]
    w = z if x[1] > 0 else [x[0]]
    return w is z


@pytest.mark.parametrize("program", [
    chosen_of_old_and_new, read_through_the_choice, chosen_in_a_tuple, chosen_by_a_helper,
    compared_by_identity])
def test_what_is_chosen_of_old_and_new_is_not_changed(program: Callable[..., Any]) -> None:
    with pytest.raises(fusec.UnsupportedError, match="that data chooses"):
        fusec.jit(program)(Holder(), X)


def none_or_state(o: State, x: Any) -> Any:
    b = None
    if x[1] > 0:
        b = o.n
    if b is not None:
        b["q"] = 5.0
    return o.n["q"]


def bound_on_one_side(o: State, x: Any) -> Any:
    a = [1.0, 2.0]
    if x[1] > 0:
        b = a
    if x[1] > 0:
        b[0] = 50.0
    return a[0]


def read_through_an_optional(o: State, x: Any) -> Any:
    z = {"a": 1.0}
    w = None
    if x[1] > 0:
        w = z
    z["a"] = 5.0
    return w["a"] if w is not None else 0.0


@pytest.mark.parametrize("program", [none_or_state, bound_on_one_side, read_through_an_optional])
def test_what_may_be_none_or_unbound_is_the_object(program: Callable[..., Any]) -> None:
    test_after_branches(program)


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
