"""A warning for graphs so long that compiling them takes seconds, at the line they come from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from fusec.core import log
from fusec.errors import UnrolledWarning
from fusec.ir import Graph
from fusec.ops import get

MANY = 5_000  # operations; compiling takes about a millisecond for each


def warn_of_length(graph: Graph, notes: Sequence[str] = ()) -> None:
    """Warn at the line that most of a long graph's operations come from; ``notes`` say why loops
    are none of the graph."""
    if len(graph.nodes) < MANY:
        return
    computed = [n for n in graph.nodes if not get(n.op).is_given]
    lines = Counter((n.loc.file, n.loc.line) for n in computed if n.loc is not None)
    if len(computed) < MANY or not lines:
        return
    (file, line), count = lines.most_common(1)[0]
    log.warn(
        f"{graph.name} was traced into {len(computed):,} operations, {count:,} of them here: "
        "Python runs the loop around this line while tracing, and each iteration is compiled "
        "anew, in about a millisecond an operation. A loop over range(n), or over the rows of one "
        "array (np.stack(items) instead of a list), is compiled as a loop; "
        + (_reason(notes, file) or "where it is not, fusec.explain says why"),
        UnrolledWarning, file, line)


def _reason(notes: Sequence[str], file: str) -> str:
    """The only note of a loop in this file."""
    found = [note for note in notes if note.startswith(file) and _UNROLLED in note]
    return found[0] if len(found) == 1 else ""


_UNROLLED = " is unrolled, for it cannot be in the graph: "
