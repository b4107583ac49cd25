"""The Python side of a loaded function: a callable that puts a saved graph into a trace.

It is what `fusec.jit` traces in the place of the program, so a loaded function is a jitted one in
every way: gradients, batches, calls in other jitted functions, `fusec.explain`.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np

from fusec.core.records import replace
from fusec.errors import unsupported, user_error
from fusec.ir.graph import Graph, Node, Value
from fusec.ir.sizes.dims import Dim
from fusec.ir.sizes.size_questions import Computed
from fusec.ir.types import TensorType
from fusec.ops.calls.checks import has_effects
from fusec.state.variable import Variable
from fusec.trace.facts.layout import contiguous
from fusec.trace.objects.variables import storage_of
from fusec.trace.operands.operands import as_traced
from fusec.trace.operands.sizes import SizeTable, define
from fusec.trace.values.array import TracedArray, from_value
from fusec.trace.values.operations import OPERATIONS
from fusec.trace.values.storage import ViewStep
from fusec.trace.values.trace import Trace, current

from .signature import AdmittedGraph, MismatchError, SavedOutput, SavedSignature
from .view_steps import admitted_steps


class Replay:
    """A saved function's signatures in the place of its source."""

    def __init__(
        self, name: str, parameters: inspect.Signature, signatures: Sequence[SavedSignature]
    ) -> None:
        self.__name__ = self.__qualname__ = name
        self.__doc__ = f"The saved function {name}."
        self.__signature__ = parameters
        self.signatures = tuple(signatures)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        trace = current()
        if trace is None:
            raise user_error(
                TypeError, f"{self.__name__} was loaded, and has no source that NumPy could run",
                None, "call the loaded function itself")
        if trace.builder.is_symbolic:  # a graph is admitted for the sizes that it has
            raise unsupported(f"the loaded function {self.__name__} for sizes of any value",
                              loc=trace.loc)
        bound = self.__signature__.bind(*args, **kwargs)
        bound.apply_defaults()
        signature, given = self._signature_for(trace, bound.args, bound.kwargs)
        return _Replayed(trace, signature, given).result()

    def _signature_for(
        self, trace: Trace, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[SavedSignature, list[TracedArray]]:
        reasons = []
        for signature in self.signatures:
            try:
                given = [as_traced(trace, value) for value in signature.match(
                    args, kwargs, lambda value: _type_of(trace, value))]
                signature.check_layouts(given)
                return signature, given
            except MismatchError as error:
                reasons.append((f"saved {signature}", error))
        raise user_error(
            TypeError, f"{self.__name__} was not saved for these arguments", trace.loc,
            "save it for them too: fusec.save(path, {name: [f.concrete(...), f.concrete(...)]})",
            values=reasons[:8])


def _type_of(trace: Trace, value: Any) -> TensorType | None:
    if isinstance(value, (TracedArray, np.ndarray, np.generic, bool, int, float, complex,
                          Variable)):
        return as_traced(trace, value).type
    return None


class _Replayed:
    """One call of a saved signature in a trace."""

    def __init__(self, trace: Trace, signature: SavedSignature, given: list[TracedArray]) -> None:
        self.trace, self.signature = trace, signature
        self.admitted: AdmittedGraph = signature.admitted(
            signature.sizes([x.shape for x in given]))
        self.given = [*given, *(self._outside(o.value) for o in signature.outside)]
        self.new: dict[int, Node | Value] = {}
        self.results: dict[int, TracedArray] = {}

    def _outside(self, value: Any) -> TracedArray:
        if isinstance(value, Variable):
            return TracedArray(self.trace, storage_of(self.trace, value))
        if isinstance(value, Computed):
            value = self.admitted.made[value]
        if isinstance(value, np.ndarray):
            return TracedArray(self.trace, self.trace.capture(value))
        return as_traced(self.trace, value)

    def result(self) -> Any:
        graph = self.admitted.graph
        self._check_apart(graph)
        self._emit(graph)
        for number, value in graph.updates:
            self.given[number][...] = from_value(self.trace, self._value(value))
        shown = iter(graph.outputs[self.admitted.saved:])
        leaves = [self._leaf(output, next(shown) if output.steps else None)
                  for output in self.admitted.outputs]
        return self.signature.reader.tree(self.signature.result, leaves.__getitem__)

    def _check_apart(self, graph: Graph) -> None:
        """Raise where an array that the graph writes lies in the memory of another one."""
        storages = [x.storage for x in self.given]
        for number, _ in graph.updates:
            if sum(storage is storages[number] for storage in storages) > 1:
                raise user_error(
                    ValueError, f"{self.signature.name} writes an array that is passed twice",
                    self.trace.loc, "pass a copy in one of the places")

    # -- nodes

    def _emit(self, graph: Graph) -> None:
        self._reserve_sizes(graph)
        for value, given in zip(graph.inputs, self.given, strict=True):
            self.new[value.node.id] = given.value
        for node in graph.nodes:
            if node.op != "Input":
                self._add(node)

    def _reserve_sizes(self, graph: Graph) -> None:
        """Sizes that data decide go by name, so another graph of the trace must not have them."""
        table = self.trace.part(SizeTable)
        names = _symbols(graph)
        taken = names & table.locs.keys()
        if taken:
            raise unsupported(
                f"a second call of loaded functions whose data decide sizes "
                f"({', '.join(sorted(taken))}) in one function that is traced",
                loc=self.trace.loc, cure="call the loaded functions from Python")
        last = max((int(name[1:] or 0) for name in names if name[1:].isdecimal() or name == "n"),
                   default=-1)
        for number in range(len(table.locs), last + 1):
            table.locs[f"n{number}" if number else "n"] = self.trace.loc
        table.locs.update((name, self.trace.loc) for name in names)

    def _add(self, node: Node) -> None:
        trace, builder = self.trace, self.trace.builder
        control = [self.new[n.id] for n in node.control_inputs]
        new = node.with_(
            inputs=[self._value(v) for v in node.inputs],
            name=builder.namer.fresh(builder.scope + node.name),
            control_inputs=[*(c for c in control if isinstance(c, Node)),
                            *builder.control_inputs],
            device=node.device or builder.device)
        self.new[node.id] = new
        for value in new.outputs:
            if any(isinstance(size, Dim) for size in value.shape):
                define(trace, value)
        if has_effects(new):
            trace.record.checks.append(new)
            OPERATIONS.note_state(trace, new, None)

    def _value(self, value: Value) -> Value:
        new = self.new[value.node.id]
        return new.out(value.index) if isinstance(new, Node) else new

    # -- results

    def _leaf(self, output: SavedOutput, shown: Value | None) -> Any:
        if output.kind == "const":
            return output.value
        if output.kind == "fresh":
            return _copied(self.trace, output.value)
        base: Any = self.given[output.number] if output.kind == "input" else (
            self._computed(output.number))
        if shown is None:
            return base
        for step, operands in admitted_steps(shown, output.steps):
            view = ViewStep(step.op, tuple(step.attrs.items()), step.strides,
                            tuple(map(self._value, operands)))
            if step.is_mark or step.depends_on_the_run:
                view = replace(view, strides=base.strides) if step.is_mark else view
                base = TracedArray(self.trace, base.storage, (*base.steps, view))
            else:
                base = view.on_array(iter(()))(base, {})
        return base

    def _computed(self, number: int) -> TracedArray:
        if number not in self.results:
            value = self._value(self.admitted.graph.outputs[number])
            order = self.signature.orders[number]
            self.results[number] = from_value(self.trace, value, contiguous(
                value.shape, value.dtype.itemsize, order) if value.shape else None)
        return self.results[number]


def _copied(trace: Trace, value: Any) -> Any:
    """A new object of the trace for one that every call returns anew."""
    if isinstance(value, np.ndarray):
        assert trace.hooks is not None
        return trace.hooks.call(trace.hooks.where, np.array, value)
    return list(value) if type(value) is list else value


def _symbols(graph: Graph) -> set[str]:
    """The sizes that data decide, by name, in a graph and those in its nodes."""
    found: set[str] = set()
    for node in graph.nodes:
        for type_ in node.types:
            for size in type_.shape:
                found |= size.symbols if isinstance(size, Dim) else frozenset()
        for inner in node.graphs:
            found |= _symbols(inner)
    return found


__all__ = ["Replay"]
