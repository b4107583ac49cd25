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
from fusec.ir.sizes.instantiate import Instantiation
from fusec.ir.sizes.polynomials import Call, Size
from fusec.ir.sizes.size_questions import Computed
from fusec.ir.types import TensorType
from fusec.ops.calls.checks import has_effects
from fusec.ops.graphs.admit import NotAdmittedError
from fusec.state.variable import Variable
from fusec.trace.facts.layout import contiguous
from fusec.trace.objects.variables import storage_of
from fusec.trace.operands.operands import as_traced
from fusec.trace.operands.sizes import define, new_size
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
        self.own = _OwnNames(trace)
        graph = self.admitted.graph
        has_names = any(node.graphs or not all(t.is_static for t in node.types)
                        for node in graph.nodes)
        self.graph = self.own.graph(graph) if has_names else graph
        outside = [self._outside(o.value) for o in signature.outside]
        self.given = [*given, *outside]
        self._check_outside(graph, len(given))
        self.new: dict[int, Node | Value] = {}
        self.results: dict[int, TracedArray] = {}

    def _check_outside(self, graph: Graph, first: int) -> None:
        """Raise where a value from outside has not the type that the graph was admitted with:
        what follows from the type, bounds for one, would not hold."""
        for value, x in zip(graph.inputs[first:], self.given[first:], strict=True):
            if (x.type.dtype, x.type.kind, x.type.shape) != (
                    value.type.dtype, value.type.kind, value.type.shape):
                raise NotAdmittedError(
                    f"the saved function {self.signature.name} is not admitted: its value from "
                    f"outside {value.node.name[:60]} is {x.type}, and its graph says {value.type}")

    def _outside(self, value: Any) -> TracedArray:
        if isinstance(value, Variable):
            return TracedArray(self.trace, storage_of(self.trace, value))
        if isinstance(value, Computed):
            value = self.admitted.made[value]
        if isinstance(value, np.ndarray):
            return TracedArray(self.trace, self.trace.capture(value))
        return as_traced(self.trace, value)

    def result(self) -> Any:
        graph = self.graph
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
        for value, given in zip(graph.inputs, self.given, strict=True):
            self.new[value.node.id] = given.value
        for node in graph.nodes:
            if node.op != "Input":
                self._add(node)

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
            attrs = tuple((name, self.own.data(value)) for name, value in step.attrs.items())
            view = ViewStep(step.op, attrs, self.own.data(step.strides),
                            tuple(map(self._value, operands)))
            if step.is_mark or step.depends_on_the_run:
                view = replace(view, strides=base.strides) if step.is_mark else view
                base = TracedArray(self.trace, base.storage, (*base.steps, view))
            else:
                base = view.on_array(iter(()))(base, {})
        return base

    def _computed(self, number: int) -> TracedArray:
        if number not in self.results:
            value = self._value(self.graph.outputs[number])
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


class _OwnNames(Instantiation):
    """A saved graph with symbols of the trace for sizes that data decide, and names of the trace
    in its branches and loops: gradients find loops by name."""

    def __init__(self, trace: Trace) -> None:
        super().__init__({})
        self.trace, self.symbols, self.depth = trace, dict[str, Size](), 0

    def data(self, data: Any) -> Any:
        if type(data) is not Graph:
            return super().data(data)
        self.depth += 1
        made = super().data(data)
        self.depth -= 1
        return made

    def _node(self, node: Node) -> Node:
        made = super()._node(node)
        if node.op == "Extent":  # the one op whose attribute is a symbol as text
            length = str(self._atom(node.attrs["length"]))
            made = made.with_(attrs={**made.attrs, "length": length})
        return made.with_(name=self.trace.builder.namer.fresh(node.name)) if self.depth else made

    def _atom(self, atom: str | Call) -> Size:
        if not isinstance(atom, str):
            return super()._atom(atom)
        if atom not in self.symbols:
            self.symbols[atom] = new_size(self.trace)
        return self.symbols[atom]


__all__ = ["Replay"]
