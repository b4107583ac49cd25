"""Settings of the process and other changes of the world: warned of, or refused in a branch."""

from __future__ import annotations

import atexit
import gc
import locale
import logging
import os
import queue
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.errors import UnsupportedError

X = np.arange(3.0)


def change_item(x: Any) -> None:
    os.environ["FUSEC_TEST"] = "1"


def delete_item(x: Any) -> None:
    os.environ["FUSEC_TEST"] = "1"
    del os.environ["FUSEC_TEST"]


CHANGES: dict[str, Callable[[Any], Any]] = {
    "np.seterr": lambda x: np.seterr(all="warn"),
    "np.set_printoptions": lambda x: np.set_printoptions(precision=8),
    "np.save": lambda x: np.save(os.devnull, np.zeros(2)),
    "os.chdir": lambda x: os.chdir(os.getcwd()),
    "os.makedirs": lambda x: os.makedirs(os.getcwd(), exist_ok=True),
    "os.putenv": lambda x: os.putenv("FUSEC_TEST", "1"),
    "logging.disable": lambda x: logging.disable(logging.NOTSET),
    "gc.enable": lambda x: gc.enable(),
    "locale.setlocale": lambda x: locale.setlocale(locale.LC_CTYPE, None),
    "sys.setrecursionlimit": lambda x: sys.setrecursionlimit(sys.getrecursionlimit()),
    "signal.signal": lambda x: signal.signal(signal.SIGTERM, signal.SIG_DFL),
    "atexit.unregister": lambda x: atexit.unregister(len),
    "warnings.simplefilter": lambda x: warnings.simplefilter("default"),
    "a change of os.environ": change_item,
}


class Things:
    def __init__(self) -> None:
        self.event, self.queue = threading.Event(), queue.Queue[int]()
        self.logger = logging.Logger("fusec.test")

    def state(self) -> Any:
        return (self.event.is_set(), self.queue.qsize(), self.logger.level,
                len(self.logger.handlers))


def start(things: Things) -> None:
    thread = threading.Thread(target=things.queue.put, args=(1,))
    thread.start()
    thread.join()


OF_OBJECTS: dict[str, Callable[[Things], Any]] = {
    "Event.set": lambda t: t.event.set(),
    "Queue.put": lambda t: t.queue.put(1),
    "Logger.setLevel": lambda t: t.logger.setLevel(t.logger.level + 10),
    "Logger.addHandler": lambda t: t.logger.addHandler(logging.NullHandler()),
    "Thread.start": start,
}


@pytest.mark.parametrize("title", OF_OBJECTS)
def test_objects_change_at_each_call(title: str) -> None:
    change = OF_OBJECTS[title]

    def straight(x: Any) -> Any:
        change(things)
        return x * 2

    def branched(x: Any) -> Any:
        if x.sum() > 0:
            change(things)
        return x * 2

    states = []
    for program in (straight, fusec.jit(straight)):
        things = Things()
        for k in range(4):
            program(X)
            states.append(things.state())
            if k == 1:
                things.event.clear()
    assert states[:4] == states[4:]
    with pytest.raises(UnsupportedError, match=f"{title} in a branch or loop that data decides"):
        fusec.jit(branched)(X)


@pytest.mark.parametrize("title", CHANGES)
def test_once_for_a_line_and_not_in_a_branch(title: str) -> None:
    change = CHANGES[title]

    def straight(x: Any) -> Any:
        change(x)
        return x * 2

    def branched(x: Any) -> Any:
        if x.sum() > 0:
            change(x)
        return x * 2

    compiled = fusec.jit(straight)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for _ in range(3):
            assert compiled(X).tolist() == straight(X).tolist()
    (warning,) = [w for w in found if issubclass(w.category, fusec.SideEffectWarning)]
    assert str(warning.message).startswith(f"{title} happens while straight is traced, not at each")
    assert "do it before or after the call" in str(warning.message)
    assert (warning.filename, warning.lineno) == (__file__, _line(change))
    with pytest.raises(UnsupportedError, match=f"{title} in a branch or loop that data decides"):
        fusec.jit(branched)(X)


def _line(change: Any) -> int:
    first: int = change.__code__.co_firstlineno
    return first + (change is change_item)


def test_items_of_the_environment() -> None:
    with pytest.warns(fusec.SideEffectWarning, match=r"a change of os\.environ happens while"):
        fusec.jit(delete_item)(X)


def of_its_own(x: Any) -> Any:
    done, results = threading.Event(), queue.Queue[int]()
    done.set()
    results.put(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = x * results.get()
    with np.errstate(divide="ignore", invalid="ignore"), np.printoptions(precision=3):
        return y / y if done.is_set() else y


def test_what_the_call_made_or_takes_back_is_no_change() -> None:
    compiled = fusec.jit(of_its_own)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for k in range(3):
            np.testing.assert_array_equal(compiled(X + k + 1), of_its_own(X + k + 1))


@pytest.mark.parametrize("modes", [{"all": "raise"}, {"divide": "warn"}, {"invalid": "call"}])
def test_floating_point_errors_are_not_looked_at(modes: Any) -> None:
    @fusec.jit
    def quotient(x: Any) -> Any:
        with np.errstate(**modes):
            return x / x

    with pytest.warns(fusec.SideEffectWarning) as found:
        for _ in range(3):
            quotient(X)
    ((name, mode),) = modes.items()
    assert len(found) == 1 and found[0].filename == __file__
    assert f"np.errstate({name}={mode!r}) has no effect in quotient" in str(found[0].message)
