"""Long lists, tuples and dicts of items that loops made, as results: a few arrays, of which a call
makes them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import optree

from fusec.ir.sizes.dims import is_static

from ..facts.trees import NAMESPACE, flattened, mapped
from ..values.array import TracedArray, from_value
from ..values.rows import SHORT, Run, late, part_of, runs, whole
from ..values.trace import Trace

Form = tuple[Any, ...]
_CONTAINERS = (list, tuple, dict)


class Bundle:
    """A list by its parts; ``form`` says how to make it of them."""

    __slots__ = ("form", "parts")

    def __init__(self, form: Form, parts: list[Any]) -> None:
        self.form, self.parts = form, parts


def _parts(x: Any) -> Any:
    return x.parts, x.form


def _list(form: Any, parts: Any) -> Any:
    how, *rest = form
    if how == "tuple":
        return tuple(parts[0])
    if how == "dict":
        return dict(zip(rest, parts[0], strict=True))
    if how == "columns":
        return [rest[0](row) for row in zip(*parts, strict=True)]
    items: list[Any] = []
    for (kind, depth), part in zip(rest, parts, strict=True):
        items += part if kind == "items" else _taken(part, kind, depth)
    return items


def _taken(array: Any, kind: str, depth: int) -> list[Any]:
    """The items of an array: Python's numbers, NumPy's, arrays with memory of their own."""
    if not (isinstance(array, np.ndarray) or hasattr(array, "__getitem__")):  # a specification
        return [type(array)(array.shape[depth:], array.dtype)] * array.shape[0]
    if depth > 1:
        return [_taken(array[k], kind, depth - 1) for k in range(array.shape[0])]
    if not isinstance(array, np.ndarray):  # a lazy one, in blocks
        return [array[k] for k in range(array.shape[0])]
    if kind == "weak":
        of_python: list[Any] = array.tolist()
        return of_python
    return [row.copy() for row in array] if kind == "array" else list(array)


_BUNDLE: Any = Bundle
optree.register_pytree_node(_BUNDLE, _parts, _list, namespace=NAMESPACE)


def bundled(trace: Trace, results: Any) -> Any:
    """The results, long lists of parts of arrays in them as bundles."""
    found: dict[int, Any] = {}

    def is_long(x: Any) -> bool:
        if type(x) in _CONTAINERS and len(x) > SHORT and _is_late(x):
            found[id(x)] = x
            return True
        return False

    others, _ = flattened(results, is_long)
    if not found:
        return results
    apart = [x.storage for x in others if type(x) is TracedArray]
    apart += [leaf.storage for x in found.values() for leaf in flattened(x)[0]
              if type(leaf) is TracedArray and leaf.storage is not None]
    once = {id(s) for s in apart if s is not None}
    if len(once) < sum(s is not None for s in apart):
        return results  # an array that lies in several places
    return mapped(partial(_of, trace, found), results, lambda x: id(x) in found)


def _is_late(x: Any) -> bool:
    last = next(reversed(x.values())) if type(x) is dict else x[-1]
    while type(last) in (list, tuple) and last:
        last = last[-1]
    return type(last) is TracedArray and late(last) is not None


def _of(trace: Trace, found: dict[int, Any], x: Any) -> Any:
    if id(x) not in found:
        return x
    bundle = _bundle(trace, x if type(x) is list else [*(x.values() if type(x) is dict else x)])
    if bundle is None or type(x) is list:
        return x if bundle is None else bundle
    return Bundle(("dict", *x) if type(x) is dict else ("tuple",), [bundle])


def _bundle(trace: Trace, items: list[Any]) -> Bundle | None:
    first = items[0]
    if type(first) in (list, tuple):
        nested = _nested(trace, items)
        return _columns(trace, items) if nested is None else nested
    found = runs(items)
    if found is None:
        return None
    kinds = [("items", 1) if isinstance(run, list) else (run.parts.type.kind, 1) for run in found]
    return Bundle(("runs", *kinds), [_part(trace, run) for run in found])


def _part(trace: Trace, run: Run | list[Any]) -> Any:
    if isinstance(run, list):
        return run
    stack = from_value(trace, part_of(trace, (run.parts.stack, run.parts.prefix), "array"))
    return stack[run.positions]


def _nested(trace: Trace, items: list[Any]) -> Bundle | None:
    """Lists of lists that are all of an array."""
    place, depth, last = whole(trace, items), 1, items[0]
    while type(last) is list and last:
        depth, last = depth + 1, last[0]
    row = late(last) if type(last) is TracedArray else None
    if place is None or row is None or not is_static(place[0].shape):
        return None
    stack = from_value(trace, part_of(trace, place, "array"))
    return Bundle(("runs", (row[0].type.kind, depth)), [stack])


def _columns(trace: Trace, items: list[Any]) -> Bundle | None:
    """Tuples or lists of one length."""
    kind: Callable[..., Any] = type(items[0])
    width = len(items[0])
    if not width or any(type(x) is not kind or len(x) != width for x in items):
        return None
    columns = [_bundle(trace, [x[j] for x in items]) for j in range(width)]
    if any(column is None for column in columns):
        return None
    return Bundle(("columns", kind), columns)
