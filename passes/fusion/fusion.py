"""Loop fusion: the last pass; groups of nodes become ``Fused`` nodes, one kernel each.

does    chooses the values to materialise, puts roots that share an iteration domain into groups,
        and replaces each group by a ``Fused`` node whose body recomputes everything else
needs   primitive ops only (after decomposition)
leaves  Input, Const, Fused, extern and Reshape nodes; each Fused node carries, in ``boundaries``,
        why it was not merged with the kernels it reads from

Which values are stored is for `.materialise`, which share a kernel for `.groups`.
"""

from __future__ import annotations

from fusec.ir import Graph

from ..backward.newest_versions import newest_versions
from .borders import borders
from .duplicates import duplicates
from .fused_nodes import with_fused_nodes
from .groups import group
from .kernel_work import cuts
from .known_cones import KnownCones
from .materialise import (
    RECOMPUTE_LIMIT,
    framed_values,
    materialised_values,
    required_values,
    tied_values,
)
from .unrolled_axes import unrolled_axes

# A step of time that all later ones compute again takes two rounds; a round looks at every node.
MAX_ROUNDS, MAX_VISITS, MIN_ROUNDS = 64, 40_000, 8


def fuse(graph: Graph, has_registers: bool = False) -> Graph:
    """Replace groups of nodes by ``Fused`` nodes; see the module docstring.

    ``has_registers``: the kernels run in one native function, in which a number costs no memory.
    """
    graph = newest_versions(graph)
    tied = tied_values(graph)
    stored = required_values(graph, tied)
    if has_registers:
        stored |= framed_values(graph, stored)
    unrolled = unrolled_axes(graph, stored)
    materialised = materialised_values(graph, stored, unrolled, has_registers)
    extra = cuts(graph, materialised)
    if extra:
        stored |= extra
        materialised = materialised_values(graph, stored, unrolled, has_registers)
    cones = KnownCones(unrolled, 2 * RECOMPUTE_LIMIT)
    for number in range(max(MIN_ROUNDS, min(MAX_ROUNDS, MAX_VISITS // max(len(graph.nodes), 1)))):
        alone = borders(graph, materialised) if has_registers else ()
        cones.begin_round(materialised)
        units, home = group(graph, cones, tied, alone, has_registers)
        extra = duplicates(units, cones, len(graph.nodes), number)
        if not extra:
            break
        stored |= extra
        materialised = materialised_values(graph, stored, unrolled, has_registers)
    if all(unit.opaque is not None for unit in units):
        return graph
    return with_fused_nodes(graph, units, home, unrolled, tied)
