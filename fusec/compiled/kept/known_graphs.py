"""Admission of graphs that an earlier process has admitted: they are made anew without the proofs.

The entry's name is a hash of all that the graph says, so it is that very graph; and an entry is
made only where the proofs left it as it is remade here, with no index to be checked.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fusec.ir.graph import Graph, Value
from fusec.ir.types import TensorType
from fusec.ops.graphs.admit import Limits, admit
from fusec.ops.graphs.remade import remade

from . import kept_entries
from .graph_identity import NoIdentityError, identity

KIND, YES = "admitted 1", "admitted"


def admitted(graph: Graph) -> Graph:
    """As `admit`, raises as that."""
    key = _key(graph)
    if key is not None and kept_entries.read(key) == YES:
        return remade(graph)
    made = admit(graph)
    if key is not None and _is_remade(graph, made):
        kept_entries.write(key, YES)
    return made


def _key(graph: Graph) -> str | None:
    """The name of the entry; None for graphs with sizes that only the run knows, say."""
    try:
        return kept_entries.key_of(KIND, [str(Limits().most_bytes), identity(graph)])
    except (NoIdentityError, LookupError, RecursionError):  # or it reads what comes later
        return None


def _is_remade(graph: Graph, made: Graph) -> bool:
    try:
        return _is_same(remade(graph), made)
    except LookupError:
        return False


def _is_same(a: Graph, b: Graph) -> bool:
    """Whether two graphs made of one say the same; quicker than by `identity`, as most parts are
    those of that graph themselves."""
    if (a.name, len(a.nodes), a.assumed) != (b.name, len(b.nodes), b.assumed):
        return False
    ids = {x.id: y.id for x, y in zip(a.nodes, b.nodes, strict=True)}

    def are(values: Iterable[Value], others: Iterable[Value]) -> bool:
        return [(ids[v.node.id], v.index) for v in values] == [
            (v.node.id, v.index) for v in others]

    return are(a.inputs, b.inputs) and are(a.outputs, b.outputs) and a.updated == b.updated and (
        are([v for _, v in a.updates], [v for _, v in b.updates])) and all(
        (x.op, x.name, x.types, x.loc, x.device) == (y.op, y.name, y.types, y.loc, y.device)
        and are(x.inputs, y.inputs) and [*x.attrs] == [*y.attrs]
        and [ids[n.id] for n in x.control_inputs] == [n.id for n in y.control_inputs]
        and all(map(_is_same_data, x.attrs.values(), y.attrs.values()))
        for x, y in zip(a.nodes, b.nodes, strict=True))


def _is_same_data(x: Any, y: Any) -> bool:
    return x is y or (type(x) is type(y) and (
        _is_same(x, y) if isinstance(x, Graph) else type(x) in (int, str, TensorType) and x == y))
