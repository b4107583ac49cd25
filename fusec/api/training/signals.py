"""Signals that end a training: the step that runs is done first, and saved."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def ending(stop: Callable[[str], Any]) -> Iterator[None]:
    """Inside the block SIGINT and SIGTERM call ``stop`` with their name; a second one does what it
    did before.  Python handles signals in the main thread alone: in others nothing is changed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: dict[int, Any] = {}

    def asked(number: int, frame: Any) -> None:
        put_back()
        stop(signal.Signals(number).name)

    def put_back() -> None:
        while before:
            signal.signal(*before.popitem())

    for number in (signal.SIGINT, signal.SIGTERM):
        handler = signal.getsignal(number)
        if handler is None or handler is signal.SIG_IGN:  # not Python's, or not wanted
            continue
        before[number] = handler
        signal.signal(number, asked)
    try:
        yield
    finally:
        put_back()
