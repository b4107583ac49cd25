"""Tuples with attributes beside their items, which SciPy's functions give, as trees."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import optree

from ..facts.trees import NAMESPACE
from ..values.trace import current

_registered: set[type] = set()
_FIXED = (str, np.dtype, ModuleType, type)  # what is no part of a tree


def note_kind(kind: type) -> None:
    """Its objects are trees from now on, if it is such a class (of SciPy's ``_make_tuple_bunch``,
    or derived from one): they are results, and data may choose one of two."""
    fields = getattr(kind, "_fields", None), getattr(kind, "_extra_fields", None)
    if kind not in _registered and all(isinstance(x, tuple) for x in fields):
        _registered.add(kind)
        node: Any = kind
        optree.register_pytree_node(node, _parts, _whole, namespace=NAMESPACE)


def _parts(x: Any) -> Any:
    fixed = {name: v for name, v in vars(x).items() if v is None or isinstance(v, _FIXED)}
    values = {name: v for name, v in vars(x).items() if name not in fixed}
    return (*tuple(x), *values.values()), (type(x), len(x), tuple(values), tuple(fixed.items()))


def _whole(of: Any, parts: Any) -> Any:
    kind, count, names, fixed = of
    parts = tuple(parts)
    made = tuple.__new__(kind, parts[:count])
    vars(made).update(fixed)
    vars(made).update(zip(names, parts[count:], strict=True))
    trace = current()
    if trace is not None and trace.hooks is not None:
        hooks: Any = trace.hooks
        hooks.note_made(made)
    return made
