"""Containers: named groups of Variables that are reset together (TensorFlow's white paper, 4.7).

    with fusec.container("experiment"):
        model = Model()
    train(model)
    fusec.container("experiment").reset()      # its Variables have their first values again

A container is found by its name from anywhere in the process; it keeps no Variable alive.
"""

from __future__ import annotations

import threading
import weakref
from types import TracebackType

import numpy as np

from fusec.core import locks
from fusec.core.occupancy import Hold
from fusec.errors import unsupported, user_error

from . import variable
from .variable import Variable, in_trace


class Container:
    """Variables that were created in ``with container:`` blocks, with their first values."""

    def __init__(self, name: str) -> None:
        self.name = name
        # By id: the Variable, and its first value where creating it gave one.
        self._members: dict[int, tuple[weakref.ref[Variable], np.ndarray | None]] = {}

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Those that are alive, in the order in which they were created."""
        variables = (reference() for reference, _ in list(self._members.values()))
        return tuple(v for v in variables if v is not None)

    def reset(self) -> None:
        """Give all its Variables their first values, at one moment for other threads.

        Raises ``ValueError`` where a compiled function computed a first value, and
        ``NotImplementedError`` in a compiled function; nothing has changed then.
        """
        if in_trace():
            raise unsupported("resetting a container", cure="reset it before or after the call")
        first: dict[Variable, np.ndarray] = {}
        for v in self.variables:
            value = self._members[id(v)][1]
            if value is None:
                raise user_error(
                    ValueError, f"the first value of {v.title} was computed by the compiled "
                    "function that created it", None, "assign it a value, or create it outside")
            first[v] = value
        with Hold([(v.occupancy, True) for v in first]):
            for v, value in first.items():
                v.buffer[...] = value

    def _take(self, v: Variable, is_known: bool) -> None:
        key, members = id(v), self._members
        reference = weakref.ref(v, lambda _: members.pop(key, None))
        members[key] = reference, v.buffer.copy() if is_known else None

    def __enter__(self) -> Container:
        stack = _thread.__dict__.setdefault("stack", [])
        stack.append(self)
        variable.note_creations(_note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _thread.stack.pop()

    def __repr__(self) -> str:
        return f"<fusec.container {self.name!r}, {len(self.variables)} Variables>"


_thread = threading.local()
_lock = locks.Lock()
_all: dict[str, Container] = {}


def _note(v: Variable, is_known: bool) -> None:
    """A Variable was created: the innermost block of this thread takes it."""
    stack = _thread.__dict__.get("stack")
    if stack:
        stack[-1]._take(v, is_known)


def container(name: str) -> Container:
    """The container of that name: one for the process, made when it is first asked for.

    In a ``with`` block it takes the Variables that this thread creates there, in compiled functions
    too; inner blocks come first.
    """
    if type(name) is not str or not name:
        raise user_error(TypeError, f"a container's name is a text, not {name!r}")
    with _lock:
        return _all.setdefault(name, Container(name))


__all__ = ["Container", "container"]
