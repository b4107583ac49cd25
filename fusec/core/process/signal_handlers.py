"""Functions that Python calls when a signal comes: between any two instructions of the main thread,
so in the middle of a trace, too.

Its callees are no part of the program that it interrupts: they run as they would at any
other moment.  Nothing marks a handler's frame but its second argument, which is the frame that was
interrupted, the one that it returns to.
"""

from __future__ import annotations

import functools
import importlib
import signal
import sys
import threading
from collections.abc import Collection
from types import CodeType, FrameType, FunctionType, MethodType
from typing import Any

from ..code_roles import is_ours

SIGNALS = tuple(map(int, signal.valid_signals()))
# What is below `signal.getsignal`, which makes an enumeration's member of each answer: 1 us.
_getsignal = importlib.import_module("_signal").getsignal


class Handlers:
    """The handlers that may interrupt a piece of work of this thread, as they are when it begins.

    ``began``: the code of the function that does the work.
    """

    def __init__(self, began: CodeType, codes: Collection[CodeType]) -> None:
        self._began, self._codes = began, {id(code): code for code in codes}

    def one_runs(self) -> bool:
        """Whether a handler that interrupted the work runs now, or calls the running code."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code is not self._began:
            if id(frame.f_code) in self._codes and _interrupted(frame):
                return True
            frame = frame.f_back
        return False


def handlers_around(began: CodeType) -> Handlers | None:
    """Those that may interrupt the work of the function with this code; None where there are none.
    """
    if threading.get_ident() != threading.main_thread().ident:
        return None
    codes = [code for number in SIGNALS if (code := _code(_getsignal(number))) is not None]
    return Handlers(began, codes) if codes else None


def _code(handler: Any) -> CodeType | None:
    """The code of a handler in Python."""
    if handler is None or type(handler) is int:
        return None
    while isinstance(handler, functools.partial):
        handler = handler.func
    if not isinstance(handler, FunctionType | MethodType):
        handler = type(handler).__call__
    function = getattr(handler, "__func__", handler)
    is_users = isinstance(function, FunctionType) and not is_ours(function.__globals__)
    return function.__code__ if is_users else None


def _interrupted(frame: FrameType) -> bool:
    """Whether the frame was given the one below it, as Python gives a handler."""
    below = frame.f_back
    return any(x is below or (type(x) is tuple and any(y is below for y in x))
               for x in frame.f_locals.values())


__all__ = ["Handlers", "handlers_around"]
