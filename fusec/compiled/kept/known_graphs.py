"""Admission of graphs that an earlier process has admitted: they are made anew without the proofs.

The entry's name is a hash of all that the graph says, so it is that very graph; and an entry is
made only where the proofs left it as it is remade here, with no index to be checked.
"""

from __future__ import annotations

from fusec.ir.graph import Graph
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
        return identity(remade(graph)) == identity(made)
    except (NoIdentityError, LookupError):
        return False
