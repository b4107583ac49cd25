"""Static arguments that are objects: values that the program reads through them are guarded, as
those through globals and closure variables.

Bound methods of C types from outside (``items.append``, ``table.get``, ``x.sum``) read and change
the object that they are bound to: a container's content is guarded, an array is an input.
"""

from __future__ import annotations

from functools import partial
from types import BuiltinMethodType, MethodWrapperType
from typing import Any

import numpy as np

from fusec.ops.calls.host_calls import is_generator

from ..call.flat_call import FlatCall
from ..values.array import TracedArray
from ..values.trace import Trace
from .guard import Guard, itself
from .measures import ATOMS, BUFFERS, CONTAINERS, VIEWS, Identity

_METHODS = (BuiltinMethodType, MethodWrapperType)
_VALUES = (*ATOMS, type, np.ndarray, np.dtype, slice, range)
_READ = (*CONTAINERS, *VIEWS, *BUFFERS)


class ShownObjects(dict[int, Any]):
    """Of a trace: objects made to show the attributes of an object outside, by id."""


def note_arguments(trace: Trace, call: FlatCall) -> None:
    """Guard the objects that are the call's static arguments."""
    for leaf, path, static in zip(call.leaves, call.paths, call.is_static, strict=True):
        if static and not isinstance(leaf, _VALUES) and not is_generator(leaf):
            _note(trace, leaf, f"argument {path}")


def _note(trace: Trace, value: Any, subject: str) -> None:
    key = id(value), ""
    if key not in trace.world.guards:
        guard = Guard(subject, subject, partial(itself, value))
        trace.world.reachable.note(guard, key)
        if type(guard.measure) is not Identity:  # which the key compares
            trace.world.guards[key] = guard


def note_owners(trace: Trace, *values: Any) -> None:
    """Guard the owners of the bound C methods among these, which are about to be called."""
    for value in values:
        while type(value) is partial:
            value = value.func
        if type(value) not in _METHODS:
            continue
        owner = value.__self__
        if isinstance(owner, _READ) and type(owner) is not TracedArray and (
                id(owner) in trace.world.reachable.reached
                and id(owner) not in trace.part(ShownObjects)):
            title = trace.name_outside(owner) or f"a {type(owner).__name__} from outside"
            _note(trace, owner, title)
