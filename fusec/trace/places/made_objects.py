"""Objects of the user's that the program makes and returns: made anew after each call.

Their constructors ran while the program was traced; a call makes an object of the class
with the attributes that the trace gave it.
"""

from __future__ import annotations

from typing import Any

import optree

from ..facts.code_names import HEAP_TYPE
from ..facts.trees import NAMESPACE
from ..guards.places import UNBOUND, Places
from ..values.trace import Trace

_NOT_THESE = (BaseException, type, tuple, list, dict, set, frozenset)


class Made:
    """An object of this class with these attributes."""

    __slots__ = ("kind", "names", "values")

    def __init__(self, kind: type, names: tuple[str, ...], values: list[Any]) -> None:
        self.kind, self.names, self.values = kind, names, values


def _parts(x: Any) -> Any:
    return x.values, (x.kind, x.names), x.names


def _built(of: Any, values: Any) -> Any:
    kind, names = of
    instance = object.__new__(kind)
    for name, value in zip(names, values, strict=True):
        object.__setattr__(instance, name, value)
    return instance


_MADE: Any = Made
optree.register_pytree_node(_MADE, _parts, _built, namespace=NAMESPACE)


def is_made(trace: Trace, x: Any) -> bool:
    """Whether it is an object of a Python class that the trace made."""
    kind = type(x)
    return id(x) in trace.local.objects and bool(kind.__flags__ & HEAP_TYPE) and (
        not isinstance(x, _NOT_THESE) and kind.__new__ is object.__new__
        and str(kind.__module__).partition(".")[0] not in ("fusec", "numpy"))


def attributes_of(trace: Trace, x: Any) -> dict[str, Any]:
    """The attributes that the program has given it, in their order."""
    slots = [name for kind in type(x).__mro__ for name in _slots(kind) if hasattr(x, name)]
    attributes = {name: getattr(x, name) for name in slots} | getattr(x, "__dict__", {})
    attributes |= {place.name: place.now() for place in trace.part(Places).attributes_of(x)}
    return {name: value for name, value in attributes.items() if value is not UNBOUND}


def _slots(kind: type) -> tuple[str, ...]:
    names = vars(kind).get("__slots__", ())
    names = (names,) if isinstance(names, str) else tuple(names)
    return tuple(f"_{kind.__name__.lstrip('_')}{n}" if n.startswith("__") and not n.endswith("__")
                 else n for n in names if n not in ("__dict__", "__weakref__"))
