"""Rows that run graphs, sources, formulas, and what passes make."""

from __future__ import annotations

from fusec.ir import Value

from ..formulas import FORMULAS
from .protocol import Alone, InGraph, LaneSite, NoLanes, declare

_BY_DATA = "a lane's data decide what it runs"
_BY_PASSES = "a pass makes it, after graphs are batched"


def _formula(site: LaneSite) -> list[Value]:
    """The result, beside the operands by which it is differentiated."""
    rank = max(v.type.rank for v in site.node.inputs)
    rest = (site.aligned(k, rank) for k in range(1, len(site.given)))
    return site.again(site.whole(0), *rest)


def _never(site: LaneSite) -> list[Value]:
    raise AssertionError("internal error: a source depends on no lane")


declare(Alone(_BY_DATA), "Cond", "Call", "Recursion", "CheckedRecursion")
declare(Alone("each lane goes through it by itself"), "Loop")
declare(Alone("it raises for the first lane that fails"), "Check", "Ran")
declare(Alone("a lane's data decide how many there are"), "Counters")
declare(_formula, *(name for name, _ in FORMULAS.values()))
declare(InGraph(), "GivenDerivative")
declare(_never, "Input", "Const", "Iota")
declare(NoLanes(_BY_PASSES), "NumPy", "Fused", "Send", "Recv", "Fence")


def cure_of_size(value: Value) -> str:
    """For a result whose size differs from lane to lane."""
    made = {value.node.op, *(v.node.op for v in value.node.inputs)}
    if not made.isdisjoint(("Bincount", "Counters")):
        return ("count into an array, n = np.zeros(5, int); np.add.at(n, x, 1), or bound what is "
                "counted, np.bincount(x % 5, minlength=5): both have 5 counters in each lane")
    return ("return an array of a size that is the same in each lane (the values and how many of "
            "them count, say), or a sum")
