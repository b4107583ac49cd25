"""Results that are one of several arrays, as the run decides: the array itself, not a copy of it.

A `Selected` array that leaves the trace becomes a `Choice`, of which one side is taken when the
results are put together.
"""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from fusec.ir.sizes.symbolic_sizes import is_symbolic, plain

from ..facts.trees import flattened, flattened_in_order, in_order, mapped
from ..operands.text_uses import texts_in
from ..operands.texts import check_text
from ..values.array import Markers, TracedArray
from ..values.selected_arrays import Copied, Selected, has_views_of_some, sides_of
from ..values.trace import Trace
from .aliases import memory_of
from .choice import Choice
from .optional_values import bound

_MOST_ARRAYS = 16  # that one result may be; of more it is a copy


def flat_results(trace: Trace, results: Any) -> tuple[list[Any], Any]:
    """The leaves of a trace's results and their structure, with every array that a result may
    be."""
    results = bound(trace, results)
    if trace.part(Markers):
        check_text(trace, *texts_in(results))  # keys and members of sets among them
    if trace.builder.is_symbolic:
        results = _with_plain_keys(results)
    leaves, structure = flattened_in_order(results)
    for replaced in (_namespace, _choice):
        if any(replaced(trace, leaf) is not leaf for leaf in leaves):
            results = mapped(partial(replaced, trace), in_order(results))
            leaves, structure = flattened(results)
    return leaves, structure


def _namespace(trace: Trace, x: Any) -> Any:
    """A dict for the `vars` of a class or module from outside."""
    is_reached = type(x) is MappingProxyType and id(x) in trace.world.reachable.reached
    return dict(x) if is_reached else x


def _with_plain_keys(tree: Any) -> Any:
    """Keys that follow from sizes as the numbers that they are in all calls of the trace."""
    if type(tree) in (list, tuple):
        items = [_with_plain_keys(item) for item in tree]
        same = all(a is b for a, b in zip(items, tree, strict=True))
        return tree if same else type(tree)(items)
    if isinstance(tree, dict) and any(map(is_symbolic, tree)):
        kind: Any = type(tree) if type(tree) is not defaultdict else partial(
            defaultdict, tree.default_factory)
        return kind({plain(key): _with_plain_keys(value) for key, value in tree.items()})
    return tree


def _choice(trace: Trace, x: Any) -> Any:
    if type(x) is not TracedArray or not isinstance(x.storage, Selected):
        return x
    choice = _of_sides(trace, x)
    return x if len(flattened(choice)[0]) > 2 * _MOST_ARRAYS else choice


def identity(trace: Trace, a: Any, b: Any) -> Any:
    """Whether two values, of which data chose one, are the same array; None where none was."""
    for x, y in ((a, b), (b, a)):
        storage = x.storage if type(x) is TracedArray else None
        if isinstance(storage, Copied) and storage.may_be_of(memory_of(trace, y)):
            storage.check_apart("compared by identity")
    if not any(type(x) is TracedArray and isinstance(x.storage, Selected) for x in (a, b)):
        return None
    is_same = _same(trace, a, b)
    return is_same if type(is_same) is bool else TracedArray(trace, None, (), trace.emit(
        "Cast", is_same, dtype=np.dtype(bool), kind="weak"))


def _same(trace: Trace, a: Any, b: Any) -> Any:
    """True, False, or a boolean of the graph."""
    for x, y in ((a, b), (b, a)):
        if type(x) is TracedArray and isinstance(x.storage, Selected) and not x.steps:
            if type(y) is TracedArray and y.storage is x.storage:
                return not y.steps
            then, orelse = (_same(trace, side, y) for side in x.storage.sides)
            if then is orelse:
                return then
            values = [trace.builder.const(np.bool_(v)) if type(v) is bool else v
                      for v in (then, orelse)]
            return trace.emit("Where", x.storage.test, *values, kind="scalar")
    if type(a) is not TracedArray or type(b) is not TracedArray:
        return False
    return a is b or (a.storage is not None and a.storage is b.storage and not a.steps
                      and not b.steps)


def _of_sides(trace: Trace, x: Any) -> Any:
    storage = x.storage
    if not isinstance(storage, Selected):
        return x
    if has_views_of_some(x):
        return x
    sides = [_of_sides(trace, side) for side in sides_of(x)]
    return Choice(TracedArray(trace, None, (), storage.test), *sides)
