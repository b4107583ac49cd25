"""Admission: the one step between a graph that is read in and a graph that may run.

A graph from a file is a program of someone else's, and kernels trust graphs: a slice beyond its
operand reads foreign memory.  `admit` believes nothing that the text says.  It makes every node
anew: its op must have a row that admits it, its attributes must be the plain data that the row
names, its types are inferred again, assumptions of kernels are proven, claims are dropped,
library functions come from closed tables, indices that are not proven to be in range are checked
when the code runs, and places in the source are kept as words that nothing opens.

It does not promise that a run ends or that memory is enough: a loop may go on for ever
(``RunOptions(timeout=...)``), a value may be as large as this machine's memory.

Like the verifier it knows the registry, so `fusec.ir` does not import it.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from fusec.core.records import dataclass, field
from fusec.errors import FusecError
from fusec.ir.graph import Graph, Loc, Node, Value
from fusec.ir.sizes.dims import Dim, Size, symbols_of
from fusec.ir.text.json_form import graph_from_json
from fusec.ir.text.parse import GraphSyntaxError, parse_with_lines
from fusec.ir.types import TensorType
from fusec.ops import registry
from fusec.ops.build import Builder, Namer
from fusec.ops.live_nodes import live_nodes, loses_checks
from fusec.ops.python_operators import PYTHON_OPERATORS
from fusec.ops.registry import Op

from ..admission.admission import (
    PERMITTED,
    Kind,
    NotAdmitted,
    check_device,
    check_read,
    require,
    well_formed,
)
from ..admission.admission import Limits as Ranges
from ..admission.claims import claimed_dtypes
from ..admission.index_proofs import is_in_range, is_not_negative, not_negative
from ..calls.recursion import RECURSIONS
from ..rows.sizes import learnt_symbols, needed_symbols, operand_symbols, size_value
from .verify import VerificationError, verify

MOST_NAME = 300


class NotAdmittedError(FusecError, ValueError):
    """A graph that was read in and may not run; says which node, and why."""


@dataclass(frozen=True)
class Limits:
    """How large an admitted graph may be: nodes in all, graphs within graphs, bytes of a value."""

    nodes: int = 200_000
    depth: int = 32
    value_bytes: int = 0  # 0: the memory of this machine

    @property
    def most_bytes(self) -> int:
        return self.value_bytes or _memory_of_machine()


def _memory_of_machine() -> int:
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        return int(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return 1 << 36


def admit(source: str | Graph, limits: Limits | None = None) -> Graph:
    """The graph that ``source`` describes, checked so that it may run.

    ``source`` is the text form, JSON, or a `Graph` that was made by hand; ``limits`` how large it
    may be.  Raises `NotAdmittedError`, which names the node, for everything that may not run.
    """
    graph, lines = (source, {}) if isinstance(source, Graph) else _read(source)
    step = _Admission(limits or Limits(), lines)
    try:
        admitted = checking_all(step.graph(graph, frozenset(), 0))
        verify(admitted)
    except VerificationError as error:
        raise NotAdmittedError(f"the graph is not admitted: {error.diagnostic.title}") from None
    except RecursionError:
        raise NotAdmittedError("the graph is not admitted: it is nested too deeply") from None
    return admitted


def checking_all(graph: Graph) -> Graph:
    """The graph, in which indices that nothing reads are checked as well: NumPy looks at each."""
    if not loses_checks(graph):
        return graph
    return Graph(graph.inputs, graph.outputs, graph.updates, tuple(live_nodes(graph)), graph.name)


def _read(text: str) -> tuple[Graph, dict[int, int]]:
    """The graph that a text describes, of which nothing has been checked, and the lines of its
    nodes in the text form."""
    if not isinstance(text, str):
        raise NotAdmittedError(f"a {type(text).__name__} is no graph", cure="give the text of "
                               "graph.to_json() or str(graph), or a graph")
    try:
        is_json = text.lstrip()[:1] == "{"
        return (graph_from_json(text), {}) if is_json else parse_with_lines(text)
    except GraphSyntaxError as error:
        raise NotAdmittedError(f"the text is no graph: {error}") from None
    except RecursionError:
        raise NotAdmittedError("the text is no graph: it is nested too deeply") from None


@dataclass
class _Admission:
    """The counts over one graph and all graphs inside it."""

    limits: Limits
    lines: Mapping[int, int]  # of the text, by the ids of the nodes there
    nodes: int = 0
    defined: dict[str, Node] = field(default_factory=dict)  # the node that defines each symbol
    running: list[Any] = field(default_factory=list)  # names of the functions around

    def graph(self, graph: Graph, known: frozenset[str], depth: int) -> Graph:
        """The graph made anew; ``known`` are the symbols that the graphs around it define."""
        require_graph(depth <= self.limits.depth, graph, "it is nested too deeply")
        self.nodes += len(graph.nodes)
        require_graph(self.nodes <= self.limits.nodes, graph,
                      f"it has more than {self.limits.nodes} nodes")
        require_graph(_is_name(graph.name), graph, "its name is too long")
        return _Scope(self, graph, set(known), depth).admitted()


class _Scope:
    """One graph that is made anew, node by node."""

    def __init__(self, whole: _Admission, graph: Graph, known: set[str], depth: int) -> None:
        self.whole, self.graph, self.known, self.depth = whole, graph, known, depth
        self.new: dict[int, Node] = {}
        self.order: list[Node] = []
        self.builder = Builder(Namer(n.name for n in graph.nodes))

    def admitted(self) -> Graph:
        graph = self.graph
        for position, value in enumerate(graph.inputs):
            self._guarded(value.node, lambda node, i=position: self._input(node, i))
        for node in graph.nodes:
            if node.op != "Input":
                self._guarded(node, self._node)
        updates = tuple((i, self._new_value(v)) for i, v in graph.updates)
        targets = [i for i, _ in updates]
        require_graph(len(set(targets)) == len(targets), graph, "it updates a parameter twice")
        require_graph(all(graph.inputs[i].type.kind == "array" for i in targets), graph,
                      "it updates a parameter that is no array")
        inputs, outputs = (tuple(map(self._new_value, vs)) for vs in (graph.inputs, graph.outputs))
        require_graph(all(v.node.op != "Extent" or v.index == 0 for v in outputs), graph,
                      "it gives back the size of a slice as an array")
        return Graph(inputs, outputs, updates, tuple(self.order), graph.name)

    def _guarded(self, node: Node, make: Any) -> None:
        """Default deny: whatever goes wrong with hostile data is a refusal of the node."""
        try:
            self.new[node.id] = admitted = make(node)
        except (NotAdmittedError, RecursionError):
            raise
        except Exception as error:
            why = str(error) if isinstance(error, NotAdmitted) else (
                f"{type(error).__name__}: {error}")
            raise self._refusal(node, why, getattr(error, "cure", "")) from None
        self.order.append(admitted)

    def _refusal(self, node: Node, why: str, cure: str) -> NotAdmittedError:
        line, loc = self.whole.lines.get(node.id), node.loc
        places: list[tuple[str, Any]] = [("line of the graph", line)] if line is not None else []
        places += [("made at", f"{loc.file.strip('<>')}:{loc.line}")] if loc is not None else []
        return NotAdmittedError(
            f"the graph {self.graph.name[:60]!r} is not admitted: {node.name[:60]} "
            f"({node.op[:60]}): {why[:500]}", cure=cure, values=places)

    def _new_value(self, value: Value) -> Value:
        node = self.new.get(value.node.id)
        require_graph(node is not None and 0 <= value.index < len(node.types), self.graph,
                      f"{value.node.name}:{value.index} is read before it is defined")
        assert node is not None
        return node.out(value.index)

    # -- nodes

    def _input(self, node: Node, position: int) -> Node:
        require(node.op == "Input" and len(node.types) == 1, "a parameter is an Input")
        (type_,) = node.types
        attrs = {"type": type_, "index": position, "path": node.attrs.get("path", node.name)}
        require(set(node.attrs) <= set(attrs), f"a parameter has no {set(node.attrs)}")
        require(_is_name(attrs["path"]), "its path is too long")
        well_formed(type_, self.whole.limits.most_bytes)
        self.known |= symbols_of(type_)
        return self._new_node(node, (), (type_,), attrs)

    def _node(self, node: Node) -> Node:
        row = registry.get(node.op)
        admission = row.admits
        require(admission is not None, f"nobody has written what is admitted of {node.op}")
        assert admission is not None
        require(not admission.refused, f"{node.op} {admission.refused}", admission.cure)
        require(row.arity is None or row.arity == len(node.inputs),
                f"it takes {row.arity} operands, not {len(node.inputs)}")
        require(row.name not in RECURSIONS or node.attrs.get("function") in self.whole.running,
                f"it is not in a Call of {node.attrs.get('function')!r:.60}")
        inputs = [self._new_value(v) for v in node.inputs]
        for value in inputs:
            check_read(value, node.op)
        attrs = self._attrs(row, node)
        types = tuple(row.infer([v.type for v in inputs], attrs))
        if types != node.types:
            raise NotAdmitted(f"its type is {_shown(node.types)}, it says; by the rule of "
                              f"{node.op} it is {_shown(types)}")
        for type_ in types:
            well_formed(type_, self.whole.limits.most_bytes)
        _check_dtypes(row, inputs, types)
        new = self._new_node(node, inputs, types, attrs)
        if admission.rule is not None:
            admission.rule(new)
        self._check_sizes(new)
        for number in admission.floors:
            new = self._with_floor(new, number)
        limits = {} if admission.limits is None else admission.limits(new)
        return self._with_checked_indices(new, limits) if limits else new

    def _attrs(self, row: Op, node: Node) -> dict[str, Any]:
        admission, kinds = row.admits, kinds_of(row)
        assert admission is not None
        missing = [k for k in admission.attrs if k not in node.attrs]
        require(not missing, f"it lacks {', '.join(missing)}")
        unknown = [k for k in node.attrs if k not in kinds and k not in admission.claims]
        require(not unknown, f"{node.op} has no attribute {', '.join(map(repr, unknown))}")
        attrs: dict[str, Any] = {}
        for name in (k for k in kinds if k in node.attrs):
            value = node.attrs[name]
            require(kinds[name].holds(value), f"{name} is not {kinds[name].words}")
            attrs[name] = self._inner(node, value) if isinstance(value, Graph) else value
        return attrs | {k: v for k, v in admission.claims.items() if v is not None}

    def _inner(self, node: Node, graph: Graph) -> Graph:
        """A graph in a node's attributes; in that of a `Call` its function may be run again."""
        running = self.whole.running
        running += [node.attrs.get("function")] if node.op == "Call" else []
        admitted = self.whole.graph(graph, frozenset(self.known), self.depth + 1)
        del running[len(running) - (node.op == "Call"):]
        return admitted

    def _new_node(
        self, node: Node, inputs: Iterable[Value], types: tuple[TensorType, ...],
        attrs: Mapping[str, Any],
    ) -> Node:
        require(_is_name(node.name), "its name is too long, or no text")
        require(_is_name(node.device), "its device is too long, or no text")
        check_device(node.device)
        control = []
        for before in node.control_inputs:
            require(before.id in self.new, f"{before.name} comes later")
            control.append(self.new[before.id])
        return node.with_(inputs=inputs, types=types, attrs=attrs, loc=as_words(node.loc),
                          control_inputs=control)

    # -- sizes that the run binds

    def _check_sizes(self, node: Node) -> None:
        """Raises for a symbol that nothing defines.

        A symbol is defined around the graph, by an earlier node, or by this node, as a whole axis
        of a result whose shape the run reads.
        """
        unknown = needed_symbols(node) - self.known
        require(not unknown, f"nothing defines the size {', '.join(sorted(unknown))}")
        new = symbols_of(tuple(t.shape for t in node.types)) - self.known
        # A native loop takes what the node gives for it.
        if self.known and not registry.get(node.op).is_control:
            again = learnt_symbols(node) & self.known - operand_symbols(node)
            require(not again, f"the size {', '.join(sorted(again))} is defined twice")
        if not new:
            return
        bare = {s.name for t in node.types for s in t.shape if isinstance(s, Dim)}
        for name in sorted(new):
            require(name in bare and name in learnt_symbols(node),
                    f"nothing defines the size {name}")
            require(name not in self.whole.defined, f"the size {name} is defined twice")
            self.whole.defined[name] = node
        self.known |= new

    # -- indices

    def _with_floor(self, node: Node, number: int) -> Node:
        """The node with this operand taken as 0 where it is negative."""
        inputs = list(node.inputs)
        if is_not_negative(inputs[number]):
            return node
        self.builder.stand_for(node)
        inputs[number] = limit = not_negative(self.builder, inputs[number])
        self.order += [v.node for v in limit.node.inputs[1:]] + [limit.node]
        return node.with_inputs(inputs)

    def _with_checked_indices(self, node: Node, limits: Ranges) -> Node:
        """The node with a `CheckIndex` before each index that is not proven to be in range."""
        inputs = list(node.inputs)
        for number, (axis, length) in limits.items():
            if not is_in_range(inputs[number], length):
                inputs[number] = self._checked(node, inputs[number], length, axis)
        return node.with_inputs(inputs)

    def _checked(self, node: Node, index: Value, length: Size, axis: int) -> Value:
        self.builder.stand_for(node)
        limit = size_value(self.builder, length, [node.inputs[0]]) if isinstance(
            length, Dim) else self.builder.const(np.int64(length))
        if isinstance(length, Dim):
            limit = self.builder.cast(limit, np.dtype(np.int64))
        checked = self.builder.emit("CheckIndex", index, limit, axis=axis)
        added = [n for n in (limit.node, checked.node) if n not in self.order]
        if isinstance(length, Dim):
            added.insert(0, limit.node.inputs[0].node)
        self.order += added
        return checked


@functools.cache
def kinds_of(row: Op) -> dict[str, Kind]:
    """The attributes that a node of an admitted row may have."""
    admission = row.admits
    assert admission is not None
    return {**admission.attrs, **admission.optional,
            **({"estimated": PERMITTED} if row.is_estimated else {})}


def _check_dtypes(row: Op, inputs: list[Value], types: tuple[TensorType, ...]) -> None:
    """Raises for dtypes that the op has no kernel for, and where NumPy's result has another."""
    if row.kind not in ("elementwise", "reduce", "scan", "composite"):
        if row.name == "Iota" and types[0].dtype not in claimed_dtypes(row):
            raise NotAdmitted(f"it does not give {types[0].dtype}")
        return
    computed = inputs[1:] if row.name == "Where" else inputs[:1] if row.mixes_dtypes else inputs
    claimed = claimed_dtypes(row)
    for value in computed:
        if value.dtype not in claimed:
            raise NotAdmitted(f"{row.name} does not take {value.dtype}")
    if row.name in PYTHON_OPERATORS and all(v.type.is_weak for v in inputs):
        one = PYTHON_OPERATORS[row.name](*(v.dtype.type(1).item() for v in inputs))
        require(np.asarray(one).dtype == types[0].dtype, f"Python gives {type(one).__name__}")
    elif row.ufunc is not None and row.kind == "elementwise":
        given = tuple(v.dtype for v in inputs)
        resolved = row.ufunc.resolve_dtypes((*given, *(None,) * row.ufunc.nout))
        if resolved != (*given, types[0].dtype):
            raise NotAdmitted(f"NumPy's {row.ufunc.__name__} gives {resolved[-1]} of "
                              f"{', '.join(map(str, given))}: a Cast is missing")


def _is_name(name: Any) -> bool:
    return type(name) is str and len(name) <= MOST_NAME and "\0" not in name


def as_words(loc: Loc | None) -> Loc | None:
    """The place as words: its file's name may be that of any file here, so no message opens it."""
    if loc is None:
        return None
    file = str(loc.file).strip("<>")[-MOST_NAME:]
    return Loc(f"<{file}>", int(loc.line), -1, str(loc.function)[:MOST_NAME], -1)


def _shown(types: Iterable[TensorType]) -> str:
    return ", ".join(map(str, types)) or "nothing"


def require_graph(holds: bool, graph: Graph, why: str) -> None:
    """Raises `NotAdmittedError` about a whole graph."""
    if not holds:
        raise NotAdmittedError(f"the graph {str(graph.name)[:60]!r} is not admitted: {why}")
