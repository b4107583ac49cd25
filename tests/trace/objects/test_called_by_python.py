"""Code of the user's that Python and its library call by themselves: `key=`, ``__hash__``.

Its effects must happen at each call, or be refused: each program runs four times, beside
Python.
"""

from __future__ import annotations

import atexit
import bisect
import collections
import concurrent.futures
import contextlib
import cProfile
import dataclasses
import functools
import heapq
import json
import operator
import queue
import re
import sys
import threading
import warnings
import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pytest

import fusec
from fusec.trace.objects.watch import Watch

FACTOR = 2.0


def bump(s: Any, value: Any = 1) -> Any:
    s.n += 1
    return value


class Item:
    """An object whose comparisons and hashes are counted."""

    def __init__(self, s: Any, v: int) -> None:
        self.s, self.v = s, v

    def __lt__(self, other: Any) -> bool:
        self.s.n += 1
        return bool(self.v < other.v)

    def __eq__(self, other: object) -> bool:
        self.s.n += 1
        return isinstance(other, Item) and self.v == other.v

    def __hash__(self) -> int:
        self.s.n += 1
        return hash(self.v)

    def __format__(self, spec: str) -> str:
        self.s.n += 1
        return "item"

    def __index__(self) -> int:
        self.s.n += 1
        return self.v

    def __iter__(self) -> Any:
        self.s.n += 1
        return iter([self.v, 2])

    def __add__(self, other: Any) -> int:
        self.s.n += 1
        return self.v


class Model:
    def __init__(self, s: Any) -> None:
        self.s = s

    def close(self) -> int:
        self.s.n += 1
        return 2


def in_a_stack(s, x):
    with contextlib.ExitStack() as stack:
        stack.callback(bump, s)
        return x * 2


def closing(s, x):
    with contextlib.closing(s.model):
        return x * 2


def in_threads(s, x):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return x * sum(pool.map(s.bump, [1, 2]))


def finalized(s, x):
    made = Model(s)
    weakref.finalize(made, bump, s)
    return x * 2


def with_a_callback(s, x):
    made = Model(s)
    found = weakref.ref(made, lambda _: bump(s))
    return x * (2 if found() is made else 3)


def at_exit(s, x):
    atexit.register(bump, s)
    return x * 2


class Let:
    def __init__(self, s: Any) -> None:
        self.s = s

    def __del__(self) -> None:
        self.s.n += 1


def let_go(s, x):
    made = Let(s)
    del made
    return x * 2


def setting(s, x):
    functools.reduce(operator.add, s.items)
    return x * s.n


REFUSED: dict[str, Callable[[Any, Any], Any]] = {
    "ExitStack.callback": in_a_stack,
    "contextlib.closing": closing,
    "a thread": in_threads,
    "bisect's key": lambda s, x: x * bisect.bisect([1, 2], 2, key=s.bump),
    "heapq": lambda s, x: x * heapq.nsmallest(1, s.items)[0].v,
    "sorted": lambda s, x: x * sorted(s.items)[0].v,
    "list.sort": lambda s, x: s.copied.sort() or x * s.copied[0].v,
    "list.index": lambda s, x: x * s.items.index(s.items[1]),
    "in a list": lambda s, x: x * (s.items[1] in s.items),
    "lists": lambda s, x: x * (s.items == [Item(s, 3), Item(s, 1)]),
    "a key": lambda s, x: x * {s.items[0]: 2, s.items[1]: 3}[s.items[1]],
    "a set": lambda s, x: x * len({s.items[0], s.items[1]}),
    "re.sub": lambda s, x: x * len(re.sub("a", s.text, "banana")),
    "json": lambda s, x: x * len(json.loads('{"a": 1}', object_hook=s.text)),
    "iter of two": lambda s, x: x * next(iter(s.one, 0)),
    "str.join": lambda s, x: x * len(",".join(map(str, collections.deque(s.items[0])))),
    "str.format": lambda s, x: x * len("{}".format(s.items[0])),  # noqa: UP032
    "an f-string": lambda s, x: x * len(f"{s.items[0]}"),
    "operator.methodcaller": lambda s, x: x * operator.methodcaller("close")(s.model),
    "np.frompyfunc": lambda s, x: x * float(np.frompyfunc(s.bump, 1, 1)(2.0)),
    "defaultdict": lambda s, x: x * collections.defaultdict(s.one)["a"],
    "eval": lambda s, x: x * eval("bump(s)", {"bump": bump, "s": s}),
    "weakref.finalize": finalized,
    "a weak reference": with_a_callback,
    "atexit": at_exit,
    "__del__": let_go,
}


def state() -> Any:
    s = SimpleNamespace(n=0)
    s.items = [Item(s, 3), Item(s, 1)]
    s.copied, s.model = list(s.items), Model(s)
    s.bump, s.text = lambda v: bump(s, v), lambda v: bump(s, "b")
    s.one = lambda *v: bump(s)
    return s


def test_what_the_program_calls_for_python_assigns_at_each_call() -> None:
    wanted, got = state(), state()

    def smallest(s: Any, x: Any) -> Any:
        return (x * heapq.nsmallest(1, [2, 1], key=s.bump)[0] + np.fromiter(s.items[0], float).sum()
                + operator.add(s.items[0], 2) + min(s.items).v)

    f = fusec.jit(functools.partial(smallest, got))
    for _ in range(2):
        assert np.array_equal(f(np.arange(3.0)), smallest(wanted, np.arange(3.0)))
        assert got.n == wanted.n > 0


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_compiled_assigns(name):
    wanted, got = state(), state()
    for _ in range(2):
        REFUSED[name](wanted, np.arange(3.0))
    with pytest.raises(fusec.UnsupportedError) as refused:
        fusec.jit(functools.partial(REFUSED[name], got))(np.arange(3.0))
    assert got.n == 0
    assert "test_called_by_python.py" in str(refused.value)
    f = fusec.jit(functools.partial(REFUSED[name], got), fallback="eager")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fusec.FallbackWarning)
        for _ in range(2):
            assert np.array_equal(f(np.arange(3.0)), REFUSED[name](state(), np.arange(3.0)))
    assert got.n == wanted.n


def test_the_message_names_both_functions_and_the_line():
    def key(v):
        s.n += 1
        return v

    s = state()
    with pytest.raises(fusec.UnsupportedError, match=(
            r"key \(line \d+\), which bisect_right calls and which assigns 'n',(.|\n)*"
            r"call key in the program itself")):
        fusec.jit(lambda x: x * bisect.bisect([1, 2], 2, key=key))(np.ones(2))
    assert sys.getprofile() is None and s.n == 0


# ----------------------------------------------------------------------- what is done each time


class Made:
    one: Any = None

    def __new__(cls, s: Any, v: float) -> Any:
        s.n += 1
        return super().__new__(cls)

    def __init__(self, s: Any, v: float) -> None:
        s.n += 10
        self.v = v


class Pair(tuple):
    def __new__(cls, s: Any, a: float, b: float) -> Any:
        s.n += 1
        return super().__new__(cls, (a, b))


def _with_factories(s, x):
    @dataclasses.dataclass
    class Record:
        first: Any
        second: Any = dataclasses.field(default_factory=s.next)
        third: list = dataclasses.field(default_factory=list)

        def __post_init__(self):
            s.n += 10

    return Record


class Lazy:
    def __init__(self, s: Any) -> None:
        self.s = s

    @functools.cached_property
    def value(self) -> int:
        self.s.n += 1
        return 2

    def __bool__(self) -> bool:
        self.s.n += 1
        return bool(self.s.n % 3 != 0)


class Lengthy:
    def __init__(self, s: Any) -> None:
        self.s = s

    def __len__(self) -> int:
        self.s.n += 1
        return 3 - self.s.n if self.s.n < 3 else 0

    def __class_getitem__(cls, s: Any) -> int:
        s.n += 1
        return 2


def _while_true(s, x):
    lazy = Lazy(s)
    while lazy:
        x = x + 1
    return x


def _while_long(s, x):
    lengthy = Lengthy(s)
    while lengthy:
        x = x + 1
    return x


def _decorated(s, x):
    def counted(fn):
        s.n += 1
        return fn

    @counted
    def inner(x):
        return x * 2

    return inner(x)


def _managed(s, x):
    @contextlib.contextmanager
    def manager():
        s.n += 1
        yield 2
        s.n += 10

    with manager() as k:
        return x * k


def _lazily(s, x):
    lazy = Lazy(s)
    return x * lazy.value + lazy.value


DONE: dict[str, Callable[[Any, Any], Any]] = {
    "__new__": lambda s, x: x * Made(s, 2.0).v,
    "__new__ of a tuple": lambda s, x: x * Pair(s, 1.0, 2.0)[1],
    "default_factory": lambda s, x: x * s.record(1).second + len(s.record(1, 2).third),
    "default_factory given": lambda s, x: x * s.record(1, second=3).second,
    "cached_property": _lazily,
    "a decorator": _decorated,
    "a context manager": _managed,
    "a truth": lambda s, x: x if Lazy(s) else -x,
    "not": lambda s, x: x * (1 if not Lazy(s) else 2),
    "and": lambda s, x: x * (2 if Lazy(s) and s.n > 2 else 3),
    "while": _while_true,
    "while of a length": _while_long,
    "any": lambda s, x: x * (2 if any([Lazy(s), Lazy(s)]) else 3),
    "__class_getitem__": lambda s, x: x * Lengthy[s],
    "bisect's key": lambda s, x: x * bisect.bisect([1, 2], 2, key=lambda v: bump(s, v)),
    "re.sub": lambda s, x: x * len(re.sub("a", lambda m: bump(s, "b"), "banana")),
    "json": lambda s, x: x * json.loads('{"a": 1}', object_hook=lambda d: bump(s, 2)),
    "np.apply_along_axis": lambda s, x: x * np.apply_along_axis(s.next, 0, np.ones((2, 3))).sum(),
    "np.piecewise": lambda s, x: np.piecewise(x, [x > 1, x > 5], [s.next, 2.0, 3.0]),
    "defaultdict": lambda s, x: x * collections.defaultdict(lambda: bump(s))["a"],
    "a queue": lambda s, x: s.queue.put(1) or x * s.queue.qsize(),
    "a weak dictionary": lambda s, x: s.weak.__setitem__(s, s.weak.get(s, 0) + 1) or x * s.weak[s],
    "a list in a key": lambda s, x: x * bisect.bisect(
        [1, 2], 2, key=lambda v: s.list.append(v) or v) + len(s.list),
}


class State:
    def __init__(self) -> None:
        self.n, self.list = 0, []
        self.queue: Any = queue.Queue()
        self.weak: Any = weakref.WeakKeyDictionary()
        self.record = _with_factories(self, 0)

    def next(self, *_: Any) -> int:
        self.n += 1
        return self.n

    def same(self, value: Any) -> Any:
        return value


@pytest.mark.parametrize("name", DONE)
def test_what_is_done_at_each_call(name):
    s, t = State(), State()
    f = fusec.jit(functools.partial(DONE[name], s))
    for _ in range(4):
        assert f(np.arange(3.0)).tolist() == DONE[name](t, np.arange(3.0)).tolist()
        assert (s.n, s.list, s.queue.qsize()) == (t.n, t.list, t.queue.qsize())


def test_programs_without_such_code_are_not_watched(monkeypatch):
    started = []
    monkeypatch.setattr("fusec.trace.objects.watch.sys.setprofile", started.append)
    model = SimpleNamespace(k=2.0)
    f = fusec.jit(lambda x: sorted([3, 1], key=lambda v: v * model.k)[0] * np.sin(x) + len([x]))
    f(np.ones(2))
    assert started == []
    assert threading.main_thread() is threading.current_thread()


def test_objects_of_the_library_that_change_at_each_call():
    called, calls = mock.Mock(return_value=2.0), []
    f = fusec.jit(lambda x: x * called() + called.call_count)
    for _ in range(3):
        calls.append(f(np.zeros(1)).item())
    assert calls == [1, 2, 3] and called.call_count == 3


def test_profilers_go_on():
    heard = []

    def profile(frame, event, value):
        heard.append(frame.f_code.co_name)

    s, profiler = State(), cProfile.Profile()
    for start, stop in ((profiler.enable, profiler.disable),
                        (lambda: sys.setprofile(profile), lambda: sys.setprofile(None))):
        start()
        try:
            before = sys.getprofile()
            assert fusec.jit(lambda x: x * bisect.bisect([1, 2], 2, key=abs))(np.ones(1)) == 2
            assert fusec.jit(lambda x: x * bisect.bisect([1], 2, key=s.same))(np.ones(1)) == 1
            assert sys.getprofile() is before
        finally:
            stop()
    assert "same" in heard


def test_no_call_is_listened_to_for_a_function_that_is_differentiated(monkeypatch):
    """It is converted where it is called; listening makes the rest of a trace slower."""
    monkeypatch.setattr(Watch, "_listener", None)

    def loss(x):
        return (x * FACTOR).sum()

    def slopes(x):
        value, slope = fusec.value_and_grad(loss)(x)
        return value, slope, fusec.hvp(loss, (x,), (x,))

    value, slope, curvature = fusec.jit(slopes)(np.ones(3))
    assert value == 6.0 and slope.tolist() == [2.0] * 3 and curvature[0].tolist() == [0.0] * 3


def test_a_factor_of_a_differentiated_function_is_guarded(monkeypatch):
    slope = fusec.jit(lambda x: fusec.grad(lambda y: (y * FACTOR).sum())(x))
    assert slope(np.ones(2)).tolist() == [2.0, 2.0]
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    assert slope(np.ones(2)).tolist() == [3.0, 3.0]
