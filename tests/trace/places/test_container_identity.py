"""Lists and dicts are the objects that they are in Python, whatever ways lead to them."""

from __future__ import annotations

import copy
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


def none_or_state_in_a_loop(o: State, x: Any) -> Any:
    b = None
    if x[1] > 0:
        b = o.l
    i = 0
    while i < 4 and x[i] > 0.15:
        if b is not None and b[1] > 5.0:
            break
        i += 1
    if b is not None:
        b[0] = 50.0
    return i


@pytest.mark.parametrize("program", [
    none_or_state_in_a_loop, nested_in_a_loop, bound_again_in_a_loop, nested_state_beside_a_loop,
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


def none_or_state_bound_in_a_loop(o: State, x: Any) -> Any:
    b = None
    if x[1] > 5:
        b = o.l
    i = 0
    while i < 4 and x[i] > 0.15:
        if b is None:
            b = o.l
        i += 1
    if b is not None:
        b[0] = 50.0


def state_exchanged_in_a_loop(o: State, x: Any) -> Any:
    lo, hi = o.l, o.m
    i = 0
    while i < 4 and x[i] > 0.15:
        lo, hi = hi, lo
        i += 1
    lo[0] = 4.0


@pytest.mark.parametrize("program", [
    joined_in_a_loop, state_bound_in_a_loop, none_or_state_bound_in_a_loop,
    state_exchanged_in_a_loop])
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


def kept_and_returned_early(o: State, x: Any) -> Any:
    r = [x[0]]
    o.l = r
    if x[1] > 0:
        return r
    return [x[1]]


def test_what_is_chosen_for_the_result_is_kept() -> None:
    jitted = fusec.jit(kept_and_returned_early)
    states = [Holder(l=[1.0]) for _ in range(2)]
    for x in (X, -X, X):
        assert jitted(states[1], x) == kept_and_returned_early(states[0], x)
        assert states[1].l == states[0].l
