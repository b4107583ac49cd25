"""Values of the graph in containers that outlive the call, and changes that data decides."""

from __future__ import annotations

import collections
import functools
import heapq
import operator
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.errors import ConcreteValueError, UnsupportedError

HELD: list[Any] = []
TABLE: dict[str, Any] = {"a": []}
QUEUE: collections.deque[Any] = collections.deque()
X = np.arange(6.0)


class Owner:
    def __init__(self) -> None:
        self.history: list[Any] = []


def keeps_in_a_global(x: Any) -> Any:
    HELD.append(x.sum())
    return x


def keeps_in_a_tuple(x: Any) -> Any:
    HELD.append((x[0], 2))
    return x


def keeps_in_a_nested_list(x: Any) -> Any:
    TABLE["a"].append(x[0])
    return x


def keeps_in_a_deque(x: Any) -> Any:
    QUEUE.append(x[0])
    return x


def keeps_by_update(x: Any) -> Any:
    TABLE.update(b=x[0])
    return x


def keeps_by_an_unbound_method(x: Any) -> Any:
    list.append(HELD, x[0])
    return x


def keeps_in_the_module(x: Any) -> Any:
    globals()["NEW"] = x[0]
    return x


@pytest.mark.parametrize("program", [
    keeps_in_a_global, keeps_in_a_tuple, keeps_in_a_nested_list, keeps_in_a_deque, keeps_by_update,
    keeps_by_an_unbound_method])
def test_values_stay_as_in_python(program: Any) -> None:
    def held(function: Any) -> Any:
        HELD.clear()
        QUEUE.clear()
        TABLE.clear()
        TABLE["a"] = []
        for k in range(3):
            function(X + k)
        return list(HELD), dict(TABLE, a=list(TABLE["a"])), list(QUEUE)

    assert held(fusec.jit(program)) == held(program)


def test_values_that_would_stay_in_a_module_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="that outlives the call") as refused:
        fusec.jit(keeps_in_the_module)(X)
    assert refused.value.loc is not None and refused.value.loc.function == "keeps_in_the_module"
    assert "NEW" not in globals()


def test_values_kept_in_objects() -> None:
    owner = Owner()

    def in_vars(o: Any, x: Any) -> Any:
        vars(o)["w"] = x.min()
        return x

    with pytest.raises(UnsupportedError, match="that outlives the call"):
        fusec.jit(in_vars)(owner, X)
    assert vars(owner) == {"history": []}


def appended(x: Any) -> Any:
    found = [1]
    if x[0] > 2:
        list.append(found, 3)
    return found


def item_set(x: Any) -> Any:
    found = [1]
    if x[0] > 2:
        operator.setitem(found, 0, 7)
    return found


def key_made(x: Any) -> Any:
    found: Any = collections.defaultdict(list)
    if x[0] > 2:
        found["k"]
    return dict(found)


def partly_applied(x: Any) -> Any:
    found = [1]
    append = functools.partial(found.append, 5)
    if x[0] > 2:
        append()
    return found


def added_in_place(x: Any) -> Any:
    found = [1]
    if x[0] > 2:
        found = operator.iadd(found, [9])
    return found


def after_an_exit(x: Any) -> Any:
    found = []
    for v in x:
        found.append(v)
        if v > 2:
            break
    return found


def counted_after_an_exit(x: Any) -> Any:
    n, i = [0], 0
    while i < 6:
        n[0] += 1
        if x[i] > 2:
            return n
        i += 1
    return n


@pytest.mark.parametrize("program", [
    appended, item_set, key_made, partly_applied, added_in_place, after_an_exit])
def test_changes_that_data_decides_are_refused(program: Any) -> None:
    with pytest.raises(ConcreteValueError, match="in a branch or loop that data decides"):
        fusec.jit(program)(X)


def test_items_counted_after_an_exit() -> None:
    jitted = fusec.jit(counted_after_an_exit)
    for k in (-9, 0, 3):
        assert jitted(X + k) == counted_after_an_exit(X + k)


def test_containers_of_the_call_hold_what_they_like() -> None:
    def program(x: Any) -> Any:
        found: Any = collections.defaultdict(list)
        found["a"].append(x[0])
        rows: list[Any] = []
        list.append(rows, x[1])
        for v in x:
            part = [v]
            part.append(2.0)
            if sum(part) > 5:
                break
        return dict(found), rows

    assert fusec.jit(program)(X) == program(X)


FLAGS = {"on": True}
STACK: list[int] = []
BUFFERS = [np.zeros(3), np.ones(3)]


def toggles(x: Any) -> Any:
    FLAGS["on"] = not FLAGS["on"]
    return x if FLAGS["on"] else -x


def pushes(x: Any) -> Any:
    STACK.append(len(STACK))
    return x * len(STACK)


def turns(x: Any) -> Any:
    BUFFERS[1][:] = BUFFERS[0] + x
    BUFFERS.reverse()
    return BUFFERS[0].sum()


def counts(x: Any, seen: Any = []) -> Any:  # noqa: B006
    seen.append(1)
    return x * len(seen)


def calls_what_counts(x: Any) -> Any:
    return counts(x)


@pytest.mark.parametrize("program", [toggles, pushes, turns, calls_what_counts])
def test_changes_of_containers_happen_at_each_call(program: Any) -> None:
    """Also where a container holds again the items that a trace began with."""
    def results(function: Any) -> list[Any]:
        FLAGS["on"] = True
        STACK[:] = []
        BUFFERS[:] = [np.zeros(3), np.ones(3)]
        counts.__defaults__[0].clear()
        found = []
        for k in range(5):
            found.append((float(function(1.0)), dict(FLAGS), list(STACK), [
                b.tolist() for b in BUFFERS]))
            if k == 2 and STACK:
                STACK.pop()
        return found

    jitted = fusec.jit(program)
    assert results(jitted) == results(program)
    assert program in (toggles, turns) or "each call is traced" in str(jitted.traces[0].guards[0])


class Diverged(RuntimeError):
    def __init__(self, step: int, value: str = "?") -> None:
        super().__init__(f"at {step}: {value}")
        self.step = step


class Coded(ValueError):
    def __init__(self, *, code: int = 0) -> None:
        super().__init__(f"code {code}")
        self.code = code


def raises_its_own(x: Any) -> Any:
    if x[0] > 1:
        raise Diverged(3, "v")
    if x[0] > 0:
        raise Coded(code=7) from KeyError("q")
    return x


def test_exceptions_with_constructors_of_their_own() -> None:
    jitted = fusec.jit(raises_its_own)
    for first, kind in ((2.0, Diverged), (0.5, Coded)):
        with pytest.raises(kind) as want:
            raises_its_own(np.array([first]))
        with pytest.raises(kind) as got:
            jitted(np.array([first]))
        assert str(got.value).startswith(str(want.value))
        assert vars(got.value).items() >= vars(want.value).items()
        assert repr(got.value.__cause__) == repr(want.value.__cause__)


def test_explaining_a_call_changes_no_container() -> None:
    STACK[:] = []
    jitted = fusec.jit(pushes)
    text = str(fusec.explain(jitted, 1.0))
    assert not STACK
    assert "each call is traced" in text
    assert "= None" not in text
    assert jitted(1.0) == 1.0
    assert STACK == [0]


@pytest.mark.parametrize(("change", "cure"), [
    (lambda kept, x: kept.append(x), r"x\[first\]; first \+= 1"),
    (lambda kept, x: heapq.heappush(kept, x), r"np\.argmin\(np\.where\(mask")])
def test_the_cure_is_one_for_the_container(change: Any, cure: str) -> None:
    def program(x: Any) -> Any:
        kept: Any = collections.deque() if "first" in cure else []
        while x[0] > 1:
            change(kept, x[0])
            x = x / 2
        return x

    with pytest.raises(ConcreteValueError, match=cure):
        fusec.jit(program)(np.arange(3.0) + 4)
