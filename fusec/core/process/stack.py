"""How deep Python may recurse while fusec traces and compiles.

Tracing puts frames of ours between those of the program, and the compiler walks trees as deep as
the program's expressions are nested.  Frames that C code calls lie on the C stack, whose end is a
crash: the limit stays below its capacity, whatever limit the program has set.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from .. import locks

FRAMES = 4  # of ours, about, for one of a recursive program's
# Of C stack for a frame. Recursion through `map` and hooks on Python 3.11 crashes at 300 (28,000
# frames of 8 MB), at 260 of 4 MB; through properties and operators later.
FRAME_BYTES = 768
_UNLIMITED = 8 << 20  # what threads get where the stack has no limit
_before: list[int] = []  # the limits to go back to, an entry for each block in progress
_lock = locks.Lock()


@contextmanager
def deeper(frames: int = FRAMES) -> Iterator[None]:
    """Room for ours beside the program's own, ``frames`` for one; the limit is the process's.

    Raises ``RecursionError`` where the program is too deep already.
    """
    with _lock:
        old = _limit()
        within = sys.getrecursionlimit() if _before else 0
        sys.setrecursionlimit(max(min(frames * old, _most()), within))
        _before.append(old)
    try:
        yield
    finally:
        with _lock:
            old = _before.pop()
            if not _before:
                sys.setrecursionlimit(old)


def limit() -> int:
    """The program's own limit of frames."""
    with _lock:
        return _limit()


def _limit() -> int:
    return _before[0] if _before else sys.getrecursionlimit()


def _most() -> int:
    """How many frames the C stack of this thread holds."""
    return (threading.stack_size() or _default_stack()) // FRAME_BYTES


def _default_stack() -> int:
    try:
        import resource
    except ImportError:  # Windows: what python.exe is linked with
        return 2 << 20
    size = resource.getrlimit(resource.RLIMIT_STACK)[0]
    return size if 0 < size < _UNLIMITED else _UNLIMITED
