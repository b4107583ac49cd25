"""Errors of the program at a size that nobody gave: one that was tried for an open one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fusec.core.locations import Loc
from fusec.errors import FusecError, InternalError, UnsupportedError

_OTHERS = (2, 3, 4, 5, 6, 12, 60, 784, 4096)  # sizes that programs with one of their own accept


def at_tried_size(
    name: str, error: BaseException, size: int, place: str, loc: Loc | None,
    traced: Callable[[int], Any],
) -> BaseException:
    """The program's own ``error`` at a ``size`` that was tried for ``place``: itself, if it has
    nothing to do with sizes, else an ``UnsupportedError`` that it is the cause of.

    ``traced`` traces the program at another size, and raises its error there.
    """
    if not any(_differs(error, traced, n) for n in _OTHERS if n != size):
        return error
    said = str(error).partition("\n")[0]
    refused = UnsupportedError(
        f"{name} refuses a size of {size} of {place}, which was tried as the specs leave it "
        "open", loc=loc,
        values=[("raised", f"{_kind(error)}{': ' * bool(said)}{said}")],
        cure="give the size in its spec")
    refused.__cause__ = error
    return refused


def _differs(error: BaseException, traced: Callable[[int], Any], size: int) -> bool:
    """Whether the program says something else at that size, or has a result."""
    try:
        traced(size)
    except InternalError:
        raise
    except Exception as other:
        return (type(other), str(other)) != (type(error), str(error))
    return True


def _kind(error: BaseException) -> str:
    name = type(error).__name__
    return name.removeprefix("Fusec") if isinstance(error, FusecError) else name
