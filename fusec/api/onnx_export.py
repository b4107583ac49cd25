"""`fusec.to_onnx`: a graph as an ONNX model, opset 21.  For reach, not for speed."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fusec.compiled.concrete_function import ConcreteFunction
from fusec.core.versions import install_command, version_of
from fusec.dispatch.function import Function
from fusec.dispatch.jit import jit
from fusec.errors import UnsupportedError, short_errors, user_error
from fusec.ir.graph import Graph, Node, Value
from fusec.ir.sizes.dims import Dim
from fusec.ir.sizes.size_questions import Computed
from fusec.ir.sizes.symbolic_numbers import Symbolic
from fusec.ir.types import TensorType
from fusec.ops import registry
from fusec.ops.onnx import OPSET, NotExportedError
from fusec.ops.onnx.graph_nodes import GraphNodes
from fusec.ops.onnx.size_nodes import dtype_of_number, number_of_sizes, require_answer
from fusec.trace.boundary.results import ResultLeaf

_DTYPES = "?bBhHiIlLqQefdFD"  # that NumPy and ONNX have


def to_onnx(f: Callable[..., Any], specs: Sequence[Any]) -> Any:
    """An ``onnx.ModelProto`` of ``f`` for arguments of these specs (or values, which are fixed).

    ``f`` is a function, a jitted one or a result of ``f.concrete(...)``.  Inputs are named as the
    function's arguments (``x``, ``params['w']``), outputs ``result``, or ``result_0``, ``result_1``
    of several; ``written_x`` is what the function leaves in its argument ``x``.  Variables and
    arrays from outside are initialisers with their values of now.  Sizes that specs leave open are
    any from 2 on.

    A model's run ends with an error of the runtime where the function would raise.

    Raises ``UnsupportedError``, which lists every node that has no operators in ONNX, with its
    line; ``ImportError`` without onnx.
    """
    with short_errors:
        onnx = _library()
        jitted: Any = f if isinstance(f, (Function, ConcreteFunction)) else jit(f)
        concrete = jitted if isinstance(jitted, ConcreteFunction) else jitted.concrete(*specs)
        return _Model(onnx, concrete).proto()


def _library() -> Any:
    try:
        return importlib.import_module("onnx")
    except ImportError:
        raise user_error(ImportError, "fusec.to_onnx needs the package onnx", None,
                         install_command("onnx")) from None


class _Model:
    """One model: inputs, nodes, outputs."""

    def __init__(self, onnx: Any, concrete: Any) -> None:
        self.onnx, self.concrete = onnx, concrete
        self.traced = concrete.build.traced
        self.graph: Graph = self.traced.graph.made
        self.nodes = GraphNodes(onnx)
        self.refused = self.nodes.refused
        self.written = dict(self.graph.updates)

    def proto(self) -> Any:
        self._refuse_narrowed()
        names = self._result_names()
        inputs = self._inputs()
        self._refuse_effects()
        self._sizes()
        self.nodes.add_all(self.graph)
        results = [self._result(leaf) for leaf in self._leaves()]
        results += [(self.nodes.name_of(v), v.type) for v in self.written.values()]
        outputs = [] if self.refused else [
            self._output(*each, name) for each, name in zip(results, names, strict=True)]
        if self.refused:
            raise UnsupportedError(
                f"{self.concrete.name} cannot be an ONNX model: {len(self.refused)} of its parts "
                "have no operators there", values=self.refused,
                cure="compute them outside of the function, or fusec.save it")
        helper = self.onnx.helper
        graph = helper.make_graph(self.nodes.nodes, self.concrete.name, inputs, outputs,
                                  self.nodes.initializers)
        model = helper.make_model(
            graph, producer_name="fusec", producer_version=version_of("fusec"), ir_version=10,
            opset_imports=[helper.make_opsetid("", OPSET)])
        self.onnx.checker.check_model(model)
        return model

    def _leaves(self) -> list[ResultLeaf]:
        """The results; what is no array or number (None, a text) is left out."""
        return [leaf for leaf in self.traced.outputs if leaf.kind in ("graph", "input") or
                isinstance(leaf.value, (bool, int, float, complex, np.generic, np.ndarray, Dim,
                                        Computed, Symbolic))]

    def _result_names(self) -> list[str]:
        """Which arguments must not have."""
        count = len(self._leaves())
        stems = [f"result_{i}" for i in range(count)] if count > 1 else ["result"] * count
        stems += [f"written_{self.graph.inputs[i].node.attrs['path']}" for i in self.written]
        return [self.nodes.namer.fresh(stem) for stem in stems]

    def _inputs(self) -> list[Any]:
        """Arguments; what comes from outside is a constant."""
        first = len(self.graph.inputs) - len(self.traced.captured)
        for value in self.graph.inputs:
            self.nodes.name(value, self.nodes.namer.fresh(value.node.attrs["path"]))
        for value, source in zip(self.graph.inputs[first:], self.traced.captured, strict=True):
            source = source() if callable(source) else source
            if type(source) is Computed:
                self.refused.append((self.concrete.name, f"{source}, where a size is open"))
                continue
            array = np.asarray(source)
            self.nodes.initializer(self.nodes.name_of(value), array)
        return [self.nodes.info(self.nodes.name_of(v), v.type) for v in self.graph.inputs[:first]]

    def _refuse_narrowed(self) -> None:
        """A model of one size, where any was asked for, is none that somebody wants."""
        concrete = self.concrete
        if concrete.narrowed:
            raise UnsupportedError(
                f"{concrete.name} cannot be an ONNX model of open sizes: {concrete.narrowed}",
                values=[("at", concrete.line)] if concrete.line else (),
                cure="give the size in the spec")

    def _refuse_effects(self) -> None:
        first = len(self.graph.inputs) - len(self.traced.captured)
        if self.traced.assignments or self.traced.created or any(
                i >= first for i in self.written):
            self.refused.append((self.concrete.name, "it writes to state outside of the call"))
        if "Choice[" in str(self.traced.treespec):
            self.refused.append(
                (self.concrete.name, "a result of one of several kinds, as the data decides"))

    def _sizes(self) -> None:
        """Sizes that are open: each from 2 on, alike where the trace has them alike, and as it was
        told where it asked."""
        nodes, seen = self.nodes, dict[Dim, bool]()
        for value in self.graph.inputs:
            for axis, size in enumerate(value.shape):
                if isinstance(size, Dim):
                    self._size(value, axis, size, size in seen)
                    seen[size] = True
        if seen and self.traced.own_bytes:
            self.refused.append((self.concrete.name, "it counts with a size: give every size"))
        for assumption in self.traced.graph.assumed:
            for symbol, size in assumption.known.items():
                nodes.define(symbol, nodes.size(size))
            try:
                require_answer(nodes, assumption.question)
            except NotExportedError as error:
                self.refused.append((self.concrete.name, f"it {error}"))

    def _size(self, value: Value, axis: int, size: Dim, is_known: bool) -> None:
        nodes, name = self.nodes, self.nodes.name_of(value)
        path = value.node.attrs["path"]
        shape = nodes.node("Shape", name, start=axis, end=axis + 1)
        given = nodes.node("Squeeze", shape, nodes.constant(np.array([0])))
        if is_known or size.name is None:
            nodes.require(nodes.node("Equal", given, nodes.size(size)),
                          f"axis {axis} of {path} must have the size {size}")
        else:
            nodes.require(nodes.node("Greater", given, nodes.constant(np.int64(1))),
                          f"axis {axis} of {path} must have a size of 2 or more")

    def _result(self, leaf: ResultLeaf) -> tuple[str, Any]:
        """Its name, and the type of it."""
        if leaf.kind not in ("graph", "input"):
            return self._constant(leaf.value)
        values = self.graph.outputs if leaf.kind == "graph" else self.graph.inputs
        value = values[leaf.index]
        if leaf.kind == "input":  # which shows what the call leaves there
            value = self.written.get(leaf.index, value)
        for step in leaf.steps:
            if step.op in ("ReadOnly", "Itself"):
                continue
            if not registry.is_known(step.op):
                self.refused.append((self.concrete.name, f"a result that is a view by {step.op}"))
                break
            row, attrs, operands = registry.get(step.op), dict(step.attrs), step.operands
            types = row.infer([value.type, *(v.type for v in operands)], attrs)
            view = Node(step.op, (value, *operands), types, attrs)
            self.nodes.add(view)
            value = view.out()
        return self.nodes.name_of(value), value.type

    def _constant(self, value: Any) -> tuple[str, Any]:
        try:
            number = number_of_sizes(self.nodes, value)
        except NotExportedError as error:
            self.refused.append((self.concrete.name, f"a result {error}"))
            return "", TensorType(np.dtype(np.float64), ())
        if number is not None:
            return self.nodes.cast(number, dtype := dtype_of_number(value)), TensorType(dtype, ())
        array = np.asarray(value)
        if array.dtype.char not in _DTYPES:
            self.refused.append((self.concrete.name, f"a result {value!r:.40}, of no dtype there"))
            return "", TensorType(np.dtype(np.float64), ())
        kind = registry.get("Const").infer((), {"value": array[()], "kind": "array"})[0] if (
            not array.ndim) else array
        return self.nodes.constant(array), kind

    def _output(self, made: str, type_: Any, name: str) -> Any:
        """The result under its name, which is there where all checks hold."""
        nodes, checked = self.nodes, self.nodes.checked()
        if checked:
            made = nodes.node("Squeeze", nodes.node("Unsqueeze", made, checked), checked)
        nodes.nodes.append(self.onnx.helper.make_node("Identity", [made], [name]))
        return nodes.info(name, type_)


__all__ = ["to_onnx"]
