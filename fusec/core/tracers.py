"""Which threads trace at this moment, and the exceptions of fusec's that were made in them.

A cached call takes plans that run at once; a call of a function that is being traced must become a
part of the graph, whatever its arguments are.  To ask whether a list is empty costs a cached call a
hundredth of its time.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable

from .code_roles import is_ours

TRACERS: list[int] = []  # by `threading.get_ident`, once for each trace that is in progress


class MadeErrors:
    """Of one run of a program.  Code of its own that Python runs as it is may catch them."""

    def __init__(self) -> None:
        self._waiting: list[BaseException] = []  # what else holds these is not known
        self._kept: list[BaseException] = []

    def note(self, error: BaseException) -> None:
        self._sort(lambda references: references <= _ALONE)
        self._waiting.append(error)

    def kept(self) -> list[BaseException]:
        """Those that code other than fusec's caught, when none is being raised."""
        self._sort(lambda references: True)
        return self._kept

    def _sort(self, is_over: Callable[[int], bool]) -> None:
        counts = _references(self._waiting)
        ended = [is_over(n) for n in counts]
        self._kept += [x for x, end in zip(self._waiting, ended, strict=True)
                       if end and _is_kept(x)]
        self._waiting = [x for x, end in zip(self._waiting, ended, strict=True) if not end]


def _references(errors: Iterable[object]) -> list[int]:
    return [sys.getrefcount(error) for error in errors]


_ALONE = _references([object()])[0]


def _is_kept(error: BaseException) -> bool:
    """Whether the function that it reached last, which caught it, is not fusec's."""
    reached = error.__traceback__
    return reached is not None and not is_ours(reached.tb_frame.f_globals)


class _Listening(threading.local):
    made: MadeErrors | None = None


listening = _Listening()


def note_made(error: BaseException) -> None:
    """An exception of fusec's is made, which the program must not catch."""
    if listening.made is not None:
        listening.made.note(error)
