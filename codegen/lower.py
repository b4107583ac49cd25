"""Lowering: the body of a ``Fused`` node becomes a `Kernel` of loop nests.

Roots (results and reductions) are evaluated by pulling index maps down to loads.  Reductions order
the stages; expensive values needed by two stages of a row go through row scratch; a piecewise op
met at a place where both its branches are live splits the domain into boxes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from fusec.ir import Graph, Loc, Node, Value
from fusec.ops.cones import has_unit_region, is_piecewise

from .boxes import Box, Split, cut
from .fused_body import FusedBody
from .in_place_updates import without_unused
from .loop_ir import (
    Kernel,
    Nest,
    Stage,
)
from .lower_nest import NestLowering


def lower(node: Node) -> Kernel:
    """The kernel of a ``Fused`` node; buffers are its inputs in order, then its outputs."""
    body = FusedBody(node)
    nests = [
        *_nests(body.domain, lambda box: NestLowering(body, box).run()),
        *_override_nests(body),
    ]
    return Kernel(node.name, body.buffers, tuple(body.constants.params), tuple(nests),
                  locs_of(body.graph))


def locs_of(body: Graph) -> tuple[Loc, ...]:
    """The lines of the program that it computes."""
    locs = {(n.loc.file, n.loc.line): n.loc for n in body.nodes
            if n.loc is not None and n.op != "Input"}
    return tuple(locs.values())


def _nests(shape: tuple[int, ...], lower_box: Callable[[Box], Nest]) -> Iterator[Nest]:
    """The nest of each box into which piecewise ops cut the domain."""
    boxes: list[Box] = [tuple((0, size) for size in shape)]
    while boxes:
        box = boxes.pop()
        try:
            yield lower_box(box)
        except Split as split:
            boxes.extend(reversed(cut(box, split)))


def _override_nests(body: FusedBody) -> Iterator[Nest]:
    """Strided slice updates: a second nest writes the region over the copied target."""
    for root, buffer in body.outputs.items():
        if is_piecewise(root.node) and not has_unit_region(root.node):
            shape = root.node.inputs[1].shape
            nests = list(_nests(shape, partial(_override, body, root, buffer)))
            checks = list(filter(None, map(_checks_alone, nests)))
            yield from checks
            yield from (_without_checks(n) for n in nests) if checks else nests


def _override(body: FusedBody, root: Value, buffer: int, box: Box) -> Nest:
    return NestLowering(body, box).run_override(root, buffer)


def _checks_alone(nest: Nest) -> Nest | None:
    """The checks of a nest that stores at computed indices: all are done before it begins."""
    checks = nest.stages[0].checks
    if not checks or not nest.sequential:
        return None
    return without_unused(replace(nest, stages=(Stage(False, checks=checks),), sequential=False))


def _without_checks(nest: Nest) -> Nest:
    return replace(nest, stages=tuple(replace(s, checks=()) for s in nest.stages))
