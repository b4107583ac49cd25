"""`fusec.to_onnx`: a straight-line graph as an ONNX model, opset 21.  For reach, not for speed."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fusec.compiled.concrete_function import ConcreteFunction
from fusec.core.versions import install_command, version_of
from fusec.dispatch.function import Function
from fusec.errors import UnsupportedError, short_errors, user_error
from fusec.ir.graph import Graph, Node, Value
from fusec.ops import onnx_rules, registry
from fusec.ops.build import Builder, Namer
from fusec.ops.onnx_rules import OPSET, NotExportedError
from fusec.trace.boundary.results import ResultLeaf


def to_onnx(f: Callable[..., Any], specs: Sequence[Any]) -> Any:
    """An ``onnx.ModelProto`` of ``f`` for arguments of these specs (or values, which are fixed).

    ``f`` is a function, a jitted one or a result of ``f.concrete(...)``.  Inputs are named as the
    function's arguments (``x``, ``params['w']``), outputs ``result``, or ``result_0``, ``result_1``
    of several.  Variables and arrays from outside are initialisers with their values of now.

    Raises ``UnsupportedError``, which lists every node that has no operators in ONNX, with its
    line; ``ImportError`` without onnx.
    """
    with short_errors:
        onnx = _library()
        jitted: Any = f if isinstance(f, (Function, ConcreteFunction)) else Function(f)
        concrete = jitted if isinstance(jitted, ConcreteFunction) else jitted.concrete(*specs)
        return _Model(onnx, concrete).proto()


def _library() -> Any:
    try:
        return importlib.import_module("onnx")
    except ImportError:
        raise user_error(ImportError, "fusec.to_onnx needs the package onnx", None,
                         install_command("onnx")) from None


class _Model:
    """The nodes of one model."""

    def __init__(self, onnx: Any, concrete: Any) -> None:
        self.onnx, self.concrete = onnx, concrete
        self.graph: Graph = concrete.graph.made
        self.namer, self.nodes, self.initializers = Namer(), list[Any](), list[Any]()
        self.names: dict[tuple[int, int], str] = {}
        self.refused: list[tuple[str, str]] = []

    # -- what rules ask for

    def node(self, op: str, *inputs: str, **attrs: Any) -> str:
        """A new node's output."""
        name = self.namer.fresh(op)
        self.nodes.append(self.onnx.helper.make_node(op, list(inputs), [name], name=name, **attrs))
        return name

    def constant(self, value: Any) -> str:
        """The name of a constant."""
        name = self.namer.fresh("constant")
        self.initializers.append(self.onnx.numpy_helper.from_array(np.asarray(value), name))
        return name

    def cast(self, name: str, dtype: np.dtype) -> str:
        """A value in another dtype."""
        return self.node("Cast", name, to=self._type(dtype))

    # -- the model

    def proto(self) -> Any:
        concrete, helper = self.concrete, self.onnx.helper
        traced = concrete.build.traced
        leaves = traced.outputs
        for number in range(len(leaves)):  # names that arguments must not have
            self.namer.fresh(f"result_{number}" if len(leaves) > 1 else "result")
        for value in self.graph.inputs:
            self.names[value.node.id, 0] = self.namer.fresh(value.node.attrs["path"])
            if value.shape and self._is_open(value):
                self.refused.append((value.node.name, "its size is open: give every size"))
        inputs = self._inputs(traced)
        if traced.assignments or self.graph.updates:
            self.refused.append((concrete.name, "it writes to arguments or state"))
        for node in self.graph.nodes:
            self._add(node)
        outputs = [self._result(leaf, f"result_{i}" if len(leaves) > 1 else "result")
                   for i, leaf in enumerate(leaves)]
        if self.refused:
            raise UnsupportedError(
                f"{concrete.name} cannot be an ONNX model: {len(self.refused)} of its parts have "
                "no operators there", values=self.refused,
                cure="compute them outside of the function, or fusec.save it")
        graph = helper.make_graph(self.nodes, concrete.name, inputs, outputs, self.initializers)
        model = helper.make_model(
            graph, producer_name="fusec", producer_version=version_of("fusec"), ir_version=10,
            opset_imports=[helper.make_opsetid("", OPSET)])
        self.onnx.checker.check_model(model)
        return model

    def _is_open(self, value: Value) -> bool:
        return any(type(size) is not int for size in value.shape)

    def _inputs(self, traced: Any) -> list[Any]:
        """Arguments; what comes from outside is a constant."""
        first = len(self.graph.inputs) - len(traced.captured)
        for value, source in zip(self.graph.inputs[first:], traced.captured, strict=True):
            array = np.asarray(source() if callable(source) else source)
            self.initializers.append(self.onnx.numpy_helper.from_array(
                np.array(array, order="C"), self.names[value.node.id, 0]))
        return [self._info(self.names[v.node.id, 0], v) for v in self.graph.inputs[:first]]

    def _info(self, name: str, value: Value) -> Any:
        shape = [size if type(size) is int else None for size in value.shape]
        return self.onnx.helper.make_tensor_value_info(name, self._type(value.dtype), shape)

    def _type(self, dtype: np.dtype) -> int:
        return int(self.onnx.helper.np_dtype_to_tensor_dtype(dtype))

    def _add(self, node: Node) -> None:
        if node.op == "Input":
            return
        row = registry.get(node.op)
        try:
            onnx_rules.check_sizes(node)
            if row.export is None and row.decompose is not None:
                self._decomposed(node)
                return
            if row.export is None:
                raise NotExportedError("")
            if any(value.dtype.kind == "c" for value in (*node.inputs, *node.outputs)):
                raise NotExportedError("of complex numbers")
            inputs = [self.names.get((v.node.id, v.index), "") for v in node.inputs]
            self.names[node.id, 0] = row.export(self, node, inputs)
        except NotExportedError as error:
            line = f" at {node.loc}" if node.loc is not None else ""
            self.refused.append((node.name, f"{node.op} {error}".rstrip() + line))
            self.names.update({(node.id, i): "" for i in range(len(node.types))})

    def _decomposed(self, node: Node) -> None:
        """A node as the simpler ones that it stands for."""
        builder = Builder(Namer(n.name for n in self.graph.nodes), node.loc)
        values = registry.get(node.op).decompose(builder, node)  # type: ignore[misc]
        known, order = {n for n, _ in self.names}, list[Node]()
        stack = [v.node for v in values]
        while stack:
            inner = stack.pop()
            if inner.id not in known and inner not in order:
                order.append(inner)
                stack += [v.node for v in inner.inputs]
        for inner in sorted(order, key=lambda n: n.id):
            self._add(inner)
        for i, value in enumerate(values):
            self.names[node.id, i] = self.names[value.node.id, value.index]

    def _result(self, leaf: ResultLeaf, name: str) -> Any:
        if leaf.kind not in ("graph", "input") or leaf.indices:
            self.refused.append((name, "a result that is no array of the graph"))
            return None
        values = self.graph.outputs if leaf.kind == "graph" else self.graph.inputs
        value = values[leaf.index]
        for step in leaf.steps:
            if step.op in ("ReadOnly", "Itself"):
                continue
            row, attrs = registry.get(step.op), dict(step.attrs)
            view = Node(step.op, (value,), row.infer([value.type], attrs), attrs)
            self._add(view)
            value = view.out()
        self.nodes.append(self.onnx.helper.make_node(
            "Identity", [self.names[value.node.id, value.index]], [name]))
        return self._info(name, value)


__all__ = ["to_onnx"]
