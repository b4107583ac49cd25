"""Jitted functions that a program calls again and again: a `Call` of one body for each.

Every call of a jitted function is traced with the program around it, so that both are optimised as
one.  A helper that is called 200 times is then 200 copies of its graph, and a recursion that halves
its array has as many as leaves.  So from its `FEW`-th call with the same signature on a function
of many nodes is a graph of its own, traced once, which the calls refer to; whether it stays one is
the passes' decision (`fusec.passes.calls.repeated_calls`).

A body stands for another call only where that would be traced into the same nodes: it depends on
its arguments alone and on arrays from outside that nobody has written, and does nothing but return.
"""

from __future__ import annotations

from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import numpy as np

from fusec.errors import FusecError
from fusec.ir import Graph
from fusec.ir.graph import new_id
from fusec.ir.sizes.dims import UndecidedSizeError
from fusec.ir.sizes.symbolic_numbers import expressions
from fusec.ops import get
from fusec.ops.calls.checks import has_effects
from fusec.ops.calls.index_checks import uses_indices
from fusec.ops.calls.recursion import RECURSIONS, is_repeated
from fusec.trace.choice.merge import is_traced
from fusec.trace.facts.layout import contiguous, is_c_contiguous, like_order
from fusec.trace.objects import recursion
from fusec.trace.objects.activations import Activations, Arguments, ReturnedLeaf
from fusec.trace.values.selected_arrays import roots
from fusec.trace.values.trace import Layout, Trace

FEW = 8  # calls that are traced with the program, whatever they cost
LIGHT = 30  # nodes up to which a function is always traced with the program
_ELSEWHERE = ("extern", "call", "composite", "source")  # kinds of rows that no kernel computes
_PLAIN = (int, float, complex, bool, str, bytes, type(None), np.generic, np.dtype)
_FIXED = (*_PLAIN, type, ModuleType, FunctionType, BuiltinFunctionType, np.ufunc, np.ndarray)


class _Calls:
    """The calls of one function with one signature so far."""

    def __init__(self) -> None:
        self.count = 0
        self.nodes = 0  # that the latest of them made
        self.body: Any = None
        self.refused = False

    @property
    def are_many(self) -> bool:
        return not self.refused and self.count >= FEW and self.nodes > LIGHT


class _Repeated(dict[Any, _Calls]):
    """Of a trace: its calls by function and signature."""

    in_bodies = 0  # nodes that were not made, as calls refer to a body


def called(
    trace: Trace, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
    fp: str,
) -> Any:
    """The result of a jitted function that the program calls: see `recursion.called`."""
    key = _key(trace, function, Arguments.of(args, kwargs)) if _may_share(
        trace, function, fp) else None
    if key is None:
        return recursion.called(trace, function, args, kwargs, fp)
    repeated = trace.part(_Repeated)
    calls = repeated.setdefault(key, _Calls())
    if calls.are_many:
        arguments = Arguments.of(args, kwargs)
        if _find_body(trace, calls, function, arguments):
            repeated.in_bodies += calls.nodes
            return calls.body.emit([x.value for x in arguments.traced], arguments)
    began = new_id() + repeated.in_bodies
    result = recursion.called(trace, function, args, kwargs, fp)
    calls.count += 1
    calls.nodes = new_id() + repeated.in_bodies - began
    return result


# ------------------------------------------------------------------------------- which calls


def _may_share(trace: Trace, function: Any, fp: str) -> bool:
    """Whether nothing around the call asks for nodes of its own: scopes, but those that say one
    device for all nodes, branches and loops of the graph, handlers of exceptions, lists and dicts
    from outside that the program changes."""
    builder, active, fps = trace.builder, trace.part(Activations), recursion.FP
    bodies = sum(activation.recursive is not None for activation in active)
    return (not (builder.scope or builder.device or builder.control_inputs or trace.handlers)
            and (builder.devices is None or builder.devices.name is not None)
            and len(trace.record.regions) == bodies and not trace.world.containers.held
            and fps.index(fp) >= fps.index(recursion.fp_around.get())
            and type(function) is FunctionType
            and _reads_only_what_is_fixed(trace, function))


def _reads_only_what_is_fixed(trace: Trace, function: FunctionType) -> bool:
    """Whether defaults and variables of outer functions hold nothing that the program may change
    between two calls; arrays are compared when a body is used."""
    cells = function.__closure__ or ()
    try:
        held = [cell.cell_contents for cell in cells]
    except ValueError:  # a variable that has no value yet
        return False
    defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    return all(isinstance(x, _FIXED) or hasattr(x, "python_function") for x in held) and all(
        isinstance(x, _PLAIN) for x in defaults) and not any(
            id(x) in trace.local.arrays for x in held)


def _key(trace: Trace, function: Any, arguments: Arguments) -> Any:
    """Equal for calls that are traced alike; None where a body would not stand for the call."""
    storages = [x.storage for x in arguments.traced if x.storage is not None]
    if len({id(root) for s in storages for root in roots(s)}) < len(storages):
        return None  # two of them show the same memory
    leaves = [_leaf_key(trace, x) for x in arguments.leaves]
    if None in leaves or any(a.function == function and a.arguments.are_like(arguments)
                             for a in trace.part(Activations)):
        return None
    return function, repr(arguments.structure), trace.builder.devices, *leaves


def _leaf_key(trace: Trace, x: Any) -> Any:
    """Of an argument; None for objects, lists and dicts."""
    if is_traced(x):
        return x.dtype, x.type.kind, *_layout(x)
    if type(x) is np.ndarray:
        return None if id(x) in trace.local.arrays else id(x)
    return (type(x), repr(x)) if isinstance(x, _PLAIN) else None


# ------------------------------------------------------------------------------------ bodies


def _find_body(
    trace: Trace, calls: _Calls, function: Callable[..., Any], arguments: Arguments
) -> bool:
    """Whether there is a body that stands for the call; makes it where there is none yet."""
    if calls.body is None:
        calls.body = _traced_body(trace, function, arguments)
        if calls.body is not None:
            trace.record.notes.append(
                f"{function.__name__} is called more than {FEW} times with the same signature: "
                "from there on the calls share one graph")
    calls.refused = calls.body is None or not calls.body.is_valid()
    return not calls.refused


def _traced_body(trace: Trace, function: Callable[..., Any], arguments: Arguments) -> Any:
    """The body, or None where it does more than return a result."""
    try:
        body = recursion.settled_body(trace, function, arguments)
    except (FusecError, UndecidedSizeError):
        return None  # traced with the program it says what is wrong, if anything is
    is_alike = _only_computes(body) and _returns_new_arrays(body) and _takes_any_layout(
        body.graph, arguments)
    return body if is_alike else None


def _only_computes(body: Any) -> bool:
    graph = body.graph
    return not body.checks and not graph.ops.intersection(RECURSIONS) and not any(
        has_effects(node) or uses_indices(node) for node in graph.nodes)


def _takes_any_layout(graph: Graph, arguments: Arguments) -> bool:
    """Whether libraries read no argument that lies otherwise than in C order, of which a call is
    given a copy: BLAS rounds by where operands lie."""
    views = {value for value, x in zip(graph.inputs, arguments.traced, strict=False)
             if x.is_array and not is_c_contiguous(*_layout(x), x.dtype.itemsize)}
    for node in graph.nodes:
        kind = get(node.op).kind
        is_read = not views.isdisjoint(node.inputs)
        if is_read and kind in _ELSEWHERE and not is_repeated(node):
            return False
        if kind == "view" and node.inputs[0] in views:
            views.update(node.outputs)
    return True


def _returns_new_arrays(body: Any) -> bool:
    """Whether its results are values of the graph and numbers, no two of them one memory."""
    arrays = [x for x in body.returned if x.storage is not None]
    found = {id(root) for x in arrays for root in roots(x.storage)}
    return not body.recursive.aliases and len(found) == len(arrays) and all(
        map(_has_no_gaps, arrays)) and all(
        type(x) is ReturnedLeaf or isinstance(x, _PLAIN) for x in body.recursive.results)


def _has_no_gaps(x: Any) -> bool:
    """Whether it lies as a fresh array may: no part of one that is larger."""
    shape, strides = _layout(x)
    return contiguous(shape, x.dtype.itemsize, like_order(strides)) == strides


def _layout(x: Any) -> Layout:
    """Shape and strides of a traced array; sizes are expressions, of which to ask the value would
    make them constants of the trace."""
    return expressions(x.shape), expressions(x.strides)


__all__ = ["called"]
