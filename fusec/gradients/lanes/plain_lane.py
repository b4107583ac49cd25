"""What one lane raises in Python: of several exceptions the first, with its own text."""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np

from fusec.dispatch.function import Function, Method
from fusec.errors import FusecError, users_own

_MOST_LINES, _MOST_SECONDS = 100_000, 10.0
_FUSEC = __name__.partition(".")[0]


class _TooLong(BaseException):
    """Raised in the lane, past handlers of its own."""


def plain_error(f: Callable[..., Any], args: Any, kwargs: Any) -> Exception | None:
    """What ``f`` of one lane raises where NumPy runs it; None where it raises nothing, takes long,
    or is no function that NumPy runs.

    Operations that need nothing of each other have no order in a graph.
    """
    if isinstance(f, Function | Method):
        python = f.python_function
        is_made = getattr(python, "__fusec_made_by__", None) is not None
        f = f if is_made else python
    before = sys.gettrace()
    try:
        if not isinstance(f, Function):  # lanes in lanes are compiled
            sys.settrace(_Limit().enter)
        with np.errstate(all="ignore"):
            f(*args, **kwargs)
    except FusecError:
        return None
    except Exception as error:
        return users_own(error)
    except _TooLong:
        return None
    finally:
        sys.settrace(before)
    return None


class _Limit:
    """A trace function that ends the lines of the user's after a while; the compiler's own ones
    are not looked at."""

    def __init__(self) -> None:
        self.lines, self.end = 0, time.monotonic() + _MOST_SECONDS

    def enter(self, frame: FrameType, event: str, arg: Any) -> Any:
        return None if _is_fusecs(frame.f_globals.get("__name__", "")) else self.line

    def line(self, frame: FrameType, event: str, arg: Any) -> Any:
        self.lines += 1
        if self.lines > _MOST_LINES or time.monotonic() > self.end:
            raise _TooLong
        return self.line


@functools.lru_cache(1000)
def _is_fusecs(module: Any) -> bool:
    return str(module).partition(".")[0] == _FUSEC
