"""Whether a loop of known length is unrolled: its weight is nodes of an iteration x iterations.

An iteration that was traced in Python is weighed by the nodes that it left in the graph; those of
loops unrolled inside it are among them, so nesting multiplies.

- Up to `UNROLL_SHORT` a short loop is unrolled whatever it does.
- Iterations of elementwise operations alone fuse into one kernel when unrolled, and those on
  complex numbers cannot be native loops: both are unrolled up to `UNROLL_NODES`.
- Everything else (stencils, updates, reductions, elements) is a loop of the graph.
- A loop around `DEEP` levels of others that became one after its first iteration is one from the
  first iteration on where it is met again: see `Nests`.

A loop that the graph refuses is unrolled however heavy it is, and `fusec.explain` says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import CodeType
from typing import Any

from fusec.core import log
from fusec.errors import FusecError, UnrolledWarning
from fusec.ir import Graph, Node
from fusec.ir.sizes.symbolic_numbers import expressions
from fusec.ops import get

from ..choice.merge import flatten, is_traced
from ..choice.regions import TraceRegion
from ..operands.overflow import is_overflow_check
from ..places.cells import CellVariables
from ..rewrite.transformer import Where
from ..values.trace import Trace
from .loop_facts import LoopParts

UNROLL = 16  # loops of at most this many iterations may be unrolled before the graph is asked
UNROLL_NESTS = 4  # the same for loops around other loops
MET_AGAIN = 2  # levels of loops inside of one that is not written out where it is met again
DEEP = 3  # the same for one that may be left early, where it is first met
UNROLL_SHORT = 128  # the weight up to which they are unrolled whatever they do
UNROLL_AGAIN = 64  # the length up to which what the graph refused once is not tried again
UNROLL_NODES = 3000  # the weight up to which unrolling pays where iterations fuse or are complex
SLOW = 1.0  # seconds of iterations that Python runs while tracing, which are then told of
_EVERY = 8  # iterations the clock is read
Visit = tuple[Where, int, tuple[tuple[str, Any], ...]]
_FUSING = frozenset({"source", "elementwise", "view"})
_WRITING = _FUSING | {"piecewise", "reduce", "fold"}


def most_unrolled(body: Callable[..., Any]) -> int:
    """How many iterations a loop with this body may have to be unrolled at once."""
    return UNROLL_NESTS if _holds_loop(body) else UNROLL


def _holds_loop(body: Callable[..., Any]) -> bool:
    """Whether there is another loop in the body."""
    codes = [c for c in body.__code__.co_consts if isinstance(c, CodeType)]
    return any(c.co_name.startswith("_fusec_body_") or (
        c.co_name.startswith("_fusec_") and any(
            isinstance(d, CodeType) and d.co_name.startswith("_fusec_body_")
            for d in c.co_consts)) for c in codes)


class Nests:
    """The loops of one trace, by their places: how many levels of others each holds, and those
    whose rest became a loop of the graph after an iteration that was written out.

    Such a loop is met again in later attempts at the loops around it.  Each level that is written
    out again, and then traced, would multiply the cost of the levels inside it.
    """

    def __init__(self) -> None:
        self.levels: dict[Where, int] = {}
        self.heavy: set[Where] = set()
        self.around: list[Where] = []

    @contextmanager
    def inside(self, where: Where) -> Iterator[None]:
        """The loop at this place is traced meanwhile."""
        self.around.append(where)
        try:
            yield
        finally:
            self.around.pop()
            if self.around:
                outer = self.around[-1]
                self.levels[outer] = max(
                    self.levels.get(outer, 0), self.levels.get(where, 0) + 1)

    def are_known(self, where: Where) -> bool:
        """Whether the graph is asked at once to hold this loop."""
        return where in self.heavy and self.levels.get(where, 0) >= MET_AGAIN


def is_deep(body: Callable[..., Any]) -> bool:
    """Whether a loop with this body that is left early is around so many others that the graph is
    asked at once to hold it."""
    return _levels(body.__code__) >= DEEP


def _levels(code: CodeType) -> int:
    """How deep the loops in a body, or in a side of a branch there, are nested."""
    inner = [c for c in code.co_consts
             if isinstance(c, CodeType) and c.co_name.startswith("_fusec_")]
    return max((_levels(c) + c.co_name.startswith("_fusec_body_") for c in inner), default=0)


def visit(where: Where, parts: LoopParts) -> Visit | None:
    """The key of attempts at a loop that may end differently: the types that its variables
    begin with.  None, which is never known, for one that is long to unroll."""
    count = getattr(parts.count, "hint", parts.count)  # to know less costs time alone
    if type(count) is not int or count > UNROLL_AGAIN:
        return None
    held = parts.variables.read()
    return where, count, tuple((name, _type_of(value)) for name, value in held.items())


def _type_of(value: Any) -> Any:
    """Of a container its type and length: its items are no reason to try a loop again."""
    if is_traced(value):
        return value.dtype, expressions(value.shape), value.type.kind
    return type(value), len(value) if isinstance(value, (list, tuple, dict)) else 0


def nodes_since(region: TraceRegion, variables: CellVariables) -> list[Node]:
    """The nodes made since the region began that variables, memory or checks depend on."""
    held = [leaf for value in variables.read().values() for leaf in flatten(value)[0]]
    return region.made_for([
        *region.written().values(), *(x.value for x in held if is_traced(x)),
        *(n.out() for n in region.trace.record.checks[region.first_check:])])


def is_due(done: int, last: TraceRegion, variables: CellVariables) -> bool:
    """Whether the graph is asked to hold the rest of a ``while`` whose test Python knows: after
    many iterations, or after two where one wrote to parts of arrays, which its kernels copy."""
    kinds = {get(n.op).kind for n in nodes_since(last, variables)} if done == 2 else set()
    return done == UNROLL or ("piecewise" in kinds and kinds <= _WRITING)


def stays_unrolled(nodes: Iterable[Node], count: int) -> bool:
    """Whether a short loop, one iteration of which made these nodes, is better unrolled."""
    nodes = list(nodes)
    weight = count * _weight(nodes)
    return weight <= UNROLL_SHORT or (weight <= UNROLL_NODES and _gains(nodes))


def pays_to_unroll(body: Graph, count: int) -> bool:
    """Whether a loop that the graph could hold is better unrolled."""
    if any(row.picks or row.is_control for row in (get(node.op) for node in body.nodes)):
        return False
    return count * _weight(body.nodes) <= UNROLL_NODES and _gains(body.nodes)


def _gains(nodes: Iterable[Node]) -> bool:
    """Whether unrolled iterations fuse, or a loop could not be native.  Ints that Python knows are
    not checked."""
    nodes = [n for n in nodes if not is_overflow_check(n)]
    return all(get(n.op).kind in _FUSING for n in nodes) or any(map(_is_complex, nodes))


def _is_complex(node: Node) -> bool:
    return any(t.dtype.kind == "c" for t in node.types)


def _weight(nodes: Iterable[Node]) -> int:
    """The number of nodes, those of sub-graphs among them; constants cost nothing."""
    return sum(1 + sum(_weight(g.nodes) for g in n.graphs) for n in nodes if n.op != "Const")


class SlowLoops:
    """Of a trace: whether such a loop was told of."""

    def __init__(self) -> None:
        self.is_told = False


class Iterations:
    """Those of one loop that Python runs."""

    def __init__(self) -> None:
        self._begun, self._done = time.thread_time(), 0

    def one_more(self, trace: Trace, refused: FusecError | None) -> None:
        """Another is done; ``refused`` says why the loop is none of the graph."""
        self._done += 1
        if self._done <= UNROLL or self._done % _EVERY or (
                time.thread_time() - self._begun < SLOW or trace.part(SlowLoops).is_told):
            return
        trace.part(SlowLoops).is_told = True
        if trace.loc is not None:
            log.warn(_text(refused), UnrolledWarning, trace.loc.file, trace.loc.line)


def _text(refused: FusecError | None) -> str:
    why, cure = "", _CURE
    if refused is not None:
        why = f" It cannot be a loop of the graph: {refused.diagnostic.title}."
        cure = refused.diagnostic.cure or cure
    return (
        "Python runs the iterations of this loop while tracing, which has taken a second so far, "
        "and what each computes is compiled by itself, in about a millisecond an operation."
        f"{why} Cure: {cure}")


_CURE = ("a loop over range(n), over numbers, or over the rows of one array (np.stack(items) "
         "instead of a list), that writes into arrays made before it, is compiled as a loop")
