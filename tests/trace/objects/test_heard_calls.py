"""Where a trace begins to listen to Python's calls, and those it does not take for the program's.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec


class Counted:
    """Each text of it is another one."""

    def __init__(self) -> None:
        self.n = 0

    def __repr__(self) -> str:
        self.n += 1
        return f"<{self.n}>"

    @property
    def gain(self) -> float:
        self.n += 1
        return float(self.n)


class Told:
    """Its text and property read an attribute."""

    def __init__(self) -> None:
        self.inner = Counted()

    def __repr__(self) -> str:
        return f"<{self.inner.n}>"

    @property
    def gain(self) -> int:
        return self.inner.n


X = np.arange(3.0)
FORM = "{}"
TEXTS: dict[str, Callable[[Any], str]] = {
    "f-string": lambda c: f"{c}",
    "conversion": lambda c: f"{c!r}",
    "repr": lambda c: repr(c),
    "ascii": lambda c: ascii(c),
    "str": lambda c: str(c),
    "format": lambda c: FORM.format(c),
    "percent": lambda c: "%s" % c,  # noqa: UP031
    "percent of some": lambda c: "%s%s" % (1, c),  # noqa: UP031
    "in a list": lambda c: str([c]),
}


@pytest.mark.parametrize("name", TEXTS)
def test_texts_that_assign_are_refused(name: str) -> None:
    text = TEXTS[name]
    with pytest.raises(fusec.UnsupportedError, match=r"Counted.__repr__ .* assigns 'n'"):
        fusec.jit(lambda x, c: (x * 2, text(c)))(X, Counted())


@pytest.mark.parametrize("name", TEXTS)
def test_texts_follow_what_they_read(name: str) -> None:
    text, told = TEXTS[name], Told()
    jitted = fusec.jit(lambda x, t: (x * 2, text(t)))
    for _ in range(3):
        assert jitted(X, told)[1] == text(told)
        told.inner.n += 1


def listens(program: Callable[..., Any], *args: Any) -> bool:
    """Whether calls are heard at the end of the trace, which is slow."""
    heard = []
    fusec.jit(lambda *given: (program(*given), heard.append(sys.getprofile()))[0])(*args)
    return heard[-1] is not None


def test_only_programs_that_python_may_call_into_are_listened_to() -> None:
    assert not listens(lambda x, t: x * t.gain, X, Told())
    assert listens(lambda x, t: x * len(f"{t}"), X, Told())


def test_what_the_collector_calls_is_not_the_programs() -> None:
    """Hypothesis, for one, times collections in a callback of the collector."""
    phases: list[str] = []

    class Timed:
        def __call__(self, phase: str, info: Any) -> None:
            self.phase = phase
            phases.append(phase)

    callback, before = Timed(), gc.get_threshold()
    gc.callbacks.append(callback)
    gc.set_threshold(10)
    try:
        made = fusec.jit(lambda x, t: x * len(str([t] * 3) + str([[] for _ in range(2000)])))
        np.testing.assert_array_equal(made(X, Told()), X * 8015)
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(callback)
    assert gc.isenabled() and phases
