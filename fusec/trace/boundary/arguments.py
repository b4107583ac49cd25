"""A call's arguments as inputs of the graph, and the inputs that are read from outside."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import optree

from fusec.ops.calls.host_calls import HostObject, is_generator

from ..call.flat_call import FlatCall
from ..call.overlap import view_of
from ..guards.array_values import Handles
from ..guards.guard import Guard, itself, layout_guard
from ..guards.measures import LayoutMeasure
from ..library.randomness import TracedGenerator
from ..places.outside_memory import scalar_type
from ..values.array import TracedArray
from ..values.own_arrays import WHAT, MadeArrays
from ..values.storage import Storage
from ..values.trace import Trace


def traced_arguments(trace: Trace, call: FlatCall) -> tuple[tuple, dict[str, Any], list[int]]:
    leaves, positions = [], []
    shared: dict[int, Storage] = {}
    for position, (leaf, path, static) in enumerate(
            zip(call.leaves, call.paths, call.is_static, strict=True)):
        if static:
            if isinstance(leaf, np.ndarray):  # its content is part of the key: a constant
                trace.local.memory.exclude(leaf)
                trace.local.arrays[id(leaf)] = leaf
            leaves.append(_static_leaf(trace, call, position, leaf, path))
            positions.append(-1)
            continue
        positions.append(len(trace.feeds.inputs))
        leaves.append(_traced_leaf(trace, call, position, leaf, path, shared))
    tree: Any = optree.tree_unflatten(call.treespec, leaves)
    args, kwargs = tree
    return args, kwargs, positions


def _static_leaf(trace: Trace, call: FlatCall, position: int, leaf: Any, path: str) -> Any:
    """The program's own of an argument that it sees: the object itself, an int perhaps as a
    symbol, and of a random generator one that draws from each call's."""
    if is_generator(leaf):
        return TracedGenerator(trace, HostObject.of(path, leaf=position), type(leaf))
    return leaf if call.symbolic is None else call.symbolic.ints.get(position, leaf)


def _traced_leaf(
    trace: Trace, call: FlatCall, position: int, leaf: Any, path: str,
    shared: dict[int, Storage],
) -> TracedArray:
    if type(leaf) is np.ndarray:
        layouts = {} if call.symbolic is None else call.symbolic.layouts
        storage = trace.add_array(leaf, path, layouts.get(position))
        first, *layout = call.key[position + 1][4:] if leaf.size else (position,)
        storage = shared.setdefault(first, storage)  # the same memory passed twice

        def make() -> TracedArray:
            array: TracedArray = TracedArray(trace, storage)
            return view_of(array, *layout) if layout else array

        return trace.part(Handles).of(("argument", first, *layout), make)
    return TracedArray(trace, None, (), trace.add_scalar(scalar_type(leaf), path))


def input_strides(trace: Trace) -> list[tuple[int, ...]]:
    return [() if s is None else s.strides for s in trace.feeds.storages]


def asked_flags(trace: Trace) -> dict[int, bool]:
    """Whether inputs may be written, of those of which the trace has asked."""
    return {i: s.writeable for i, s in enumerate(trace.feeds.storages)
            if s is not None and s.is_asked}


def _first_captured(trace: Trace) -> int:
    return len(trace.feeds.inputs) - len(trace.feeds.captured)


def read_only(trace: Trace) -> set[int]:
    """The inputs that are read-only arrays from outside."""
    return {i for i, s in enumerate(trace.feeds.storages)
            if i >= _first_captured(trace) and s is not None and not s.writeable}


def ids_of_own_arrays(trace: Trace) -> frozenset[int]:
    """The captured arrays that were made while tracing, by identity."""
    return frozenset(map(id, trace.part(MadeArrays)))


def layout_guards(trace: Trace) -> list[Guard]:
    """New guards for values read from outside at each call that have no layout guard yet.  The
    launcher itself compares the layouts of all of them."""
    by_reader = {id(g.read): g for g in trace.world.guards.values()
                 if type(g.measure) is LayoutMeasure}
    new: list[Guard] = []
    for i, source in enumerate(trace.feeds.captured, _first_captured(trace)):
        guard = by_reader.get(id(source))
        if guard is None and trace.feeds.outside[i] is not WHAT:
            reader = source if callable(source) else partial(itself, source)
            guard = layout_guard(trace.feeds.outside[i], reader)
            new.append(guard)
        if guard is not None:
            guard.is_native = True
    return new
