"""Graphs as nodes of ONNX: the names of values, graphs within graphs, checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np

from fusec.ir import Graph, Node, TensorType, Value
from fusec.ir.sizes.dims import Dim

from .. import registry
from ..build import Builder, Namer
from .protocol import I64, NotExportedError, ints
from .size_nodes import number_of_sizes, size_name


class _Frame:
    """What is known in a graph, and in those within it."""

    def __init__(self, around: _Frame | None = None) -> None:
        self.nodes: list[Any] = []
        self.checks: list[str] = []  # zeros, one for each check
        self.symbols: dict[str, Any] = dict(around.symbols) if around else {}
        self.sizes: dict[Dim, str] = dict(around.sizes) if around else {}


class GraphNodes:
    """The nodes of one model; implements `OnnxNodes`.  ``refused`` are parts without operators."""

    def __init__(self, onnx: Any) -> None:
        self.onnx, self.namer = onnx, Namer()
        self.initializers: list[Any] = []
        self.names: dict[tuple[int, int], str] = {}
        self.refused: list[tuple[str, str]] = []
        self._constants: dict[Any, str] = {}
        self._frame = _Frame()

    # -- what rules ask for

    def node(self, op: str, *inputs: str, **attrs: Any) -> str:
        return self.node_of(op, inputs, 1, **attrs)[0]

    def node_of(
        self, op: str, inputs: Sequence[str], outputs: int, name: str = "", **attrs: Any
    ) -> list[str]:
        names = [self.namer.fresh(op) for _ in range(outputs)]
        self._frame.nodes.append(self.onnx.helper.make_node(
            op, list(inputs), names, name=name or names[0], **attrs))
        return names

    def constant(self, value: Any) -> str:
        array = np.asarray(value)
        key = array.dtype.str, array.shape, array.tobytes()
        if key not in self._constants:
            self._constants[key] = self.initializer(self.namer.fresh("constant"), array)
        return self._constants[key]

    def initializer(self, name: str, array: np.ndarray) -> str:
        """A constant of that name, of the whole model."""
        self.initializers.append(self.onnx.numpy_helper.from_array(
            np.array(array, order="C"), name))
        return name

    def cast(self, name: str, dtype: np.dtype) -> str:
        return self.node("Cast", name, to=self.type_of(dtype))

    def type_of(self, dtype: np.dtype) -> int:
        """ONNX's number of a dtype."""
        return int(self.onnx.helper.np_dtype_to_tensor_dtype(dtype))

    def info(self, name: str, type_: TensorType) -> Any:
        """A value's name, dtype and shape, in which sizes that are open have their names."""
        shape = [size if type(size) is int else getattr(size, "name", None)
                 for size in type_.shape]
        return self.onnx.helper.make_tensor_value_info(name, self.type_of(type_.dtype), shape)

    def size(self, size: Any) -> str:
        if not isinstance(size, Dim):
            return self.constant(np.int64(int(size)))
        sizes = self._frame.sizes
        if size not in sizes:
            sizes[size] = size_name(self, size, self._symbol)
        return sizes[size]

    def define(self, symbol: str, name: str) -> None:
        self._frame.symbols[symbol] = name
        self._frame.sizes = {}

    def _symbol(self, symbol: str) -> str:
        known = self._frame.symbols.get(symbol)
        if known is None:
            raise NotExportedError(f"with the size {symbol}, which nothing before it has")
        if isinstance(known, tuple):
            name, axis = known
            shape = self.node("Shape", name, start=axis, end=axis + 1)
            known = self._frame.symbols[symbol] = self.node("Squeeze", shape, ints(self, [0]))
        return known

    def require(self, holds: str, what: str) -> None:
        zero, one = (self.constant(np.int64(n)) for n in (0, 1))
        index = self.node("Unsqueeze", self.node("Where", holds, zero, one), ints(self, [0]))
        self._frame.checks += self.node_of(
            "Gather", [ints(self, [0]), index], 1, name=self.namer.fresh(what), axis=0)

    def checked_by(self, name: str) -> None:
        self._frame.checks.append(name)

    def checked(self) -> str:
        """A vector of one 0, which is there where every check so far has held; empty without any.
        """
        checks = self._frame.checks
        while len(checks) > 1:
            checks[:2] = [self.node("Add", *checks[:2])]
        return checks[0] if checks else ""

    def body(
        self, name: str, given: Sequence[TensorType], fill: Callable[..., Sequence[str]],
        types: Sequence[TensorType], checks: Literal["", "made", "carried"] = "",
    ) -> tuple[Any, bool]:
        with self._inside() as frame:
            names = [self.namer.fresh("given") for _ in given]
            outputs = [*fill(*names)]
            infos = [self.info(n, t) for n, t in zip(names, given, strict=True)]
            is_checked = bool(frame.checks)
            if checks == "carried":
                names.append(self.namer.fresh("checked"))
                infos.append(self.info(names[-1], _CHECKED))
                frame.checks.append(names[-1])
            if checks:
                outputs.append(self.checked() or ints(self, [0]))
                types = [*types, _CHECKED]
            results = [self.node("Identity", output) for output in outputs]
            made = self.onnx.helper.make_graph(
                frame.nodes, self.namer.fresh(name), infos,
                [self.info(n, t) for n, t in zip(results, types, strict=True)])
        return made, is_checked

    @contextmanager
    def _inside(self) -> Iterator[_Frame]:
        around, self._frame = self._frame, _Frame(self._frame)
        try:
            yield self._frame
        finally:
            self._frame = around

    @property
    def nodes(self) -> list[Any]:
        """Those of the graph that is being made."""
        return self._frame.nodes

    # -- graphs

    def inlined(self, graph: Graph, operands: Sequence[str]) -> tuple[list[str], dict[int, str]]:
        for value, name in zip(graph.inputs, operands, strict=True):
            self.name(value, name)
        self.add_all(graph)
        return ([self.name_of(v) for v in graph.outputs],
                {k: self.name_of(v) for k, v in graph.updates})

    def add_all(self, graph: Graph) -> None:
        """Every node of the graph, whose parameters have names."""
        for node in graph.nodes:
            if node.op != "Input":
                self.add(node)

    def name(self, value: Value, name: str) -> None:
        """The value's name; where it is the first with a symbol as a size, that is defined."""
        self.names[value.node.id, value.index] = name
        for axis, size in enumerate(value.shape):
            if isinstance(size, Dim) and size.name is not None:
                self._frame.symbols.setdefault(size.name, (name, axis))

    def name_of(self, value: Value) -> str:
        """The name of a value; of one that could not be made, none."""
        return self.names.get((value.node.id, value.index), "")

    def add(self, node: Node) -> None:
        """The node's operators; in ``refused`` where there are none."""
        row = registry.get(node.op)
        try:
            if row.export is None and row.decompose is not None:
                self._decomposed(node)
                return
            if row.export is None:
                raise NotExportedError("")
            if any(value.dtype.kind == "c" for value in (*node.inputs, *node.outputs)):
                raise NotExportedError("of complex numbers")
            number = number_of_sizes(self, node.attrs["value"]) if node.op == "Const" else None
            names = self.cast(number, node.types[0].dtype) if number else row.export(
                self, node, [self.name_of(v) for v in node.inputs])
            names = names if isinstance(names, list) else [names]
        except NotExportedError as error:
            line = f" at {node.loc}" if node.loc is not None else ""
            self.refused.append((node.name, f"{node.op} {error}".rstrip() + line))
            names = [""] * len(node.types)
        for value, name in zip(node.outputs, names, strict=True):
            self.name(value, name)

    def _decomposed(self, node: Node) -> None:
        """A node as the simpler ones that it stands for."""
        builder = Builder(Namer(), node.loc)
        values: Sequence[Value] = registry.get(node.op).decompose(  # type: ignore[misc]
            builder, node)
        known, order = {v.node.id for v in node.inputs}, list[Node]()
        stack = [v.node for v in values]
        while stack:
            inner = stack.pop()
            if inner.id not in known:
                known.add(inner.id)
                order.append(inner)
                stack += [v.node for v in inner.inputs]
        for inner in sorted(order, key=lambda n: n.id):
            self.add(inner)
        for value, made in zip(node.outputs, values, strict=True):
            self.name(value, self.name_of(made))


_CHECKED = TensorType(I64, (1,))
