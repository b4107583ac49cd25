"""Lowering: the body of a ``Fused`` node becomes a `Kernel` of loop nests.

Roots (results and reductions) are evaluated by pulling index maps down to loads.  Reductions order
the stages; expensive values needed by two stages of a row go through row scratch; a piecewise op
met at a place where both its branches are live splits the domain into boxes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial

from fusec.ir import Graph, Loc, Node, TensorType, Value
from fusec.ir.sizes.dims import is_static
from fusec.ops.regions.cones import has_unit_region, is_piecewise

from .boxes import Box, Split, cut
from .fused_body import FusedBody
from .in_place_updates import without_unused
from .loop_ir import Access, Expr, Kernel, Nest, Stage, Store, expr, walk
from .lower_nest import NestLowering


def lower(node: Node) -> Kernel:
    """The kernel of a ``Fused`` node; buffers are its inputs in order, then its outputs."""
    body = FusedBody(node)
    nests = [
        *_started(body, [*_checked_first(
            _nests(body.domain, lambda box: NestLowering(body, box).run()))]),
        *_override_nests(body),
    ]
    return Kernel(node.name, body.buffers, tuple(body.constants.params), tuple(nests),
                  locs_of(body.graph))


def nodes_of_expressions(node: Node) -> dict[Expr, list[Node]]:
    """For each expression of the kernel of a ``Fused`` node the nodes of its body that have this
    value: those that only show a value in another shape have it, too."""
    body, made = FusedBody(node), list[NestLowering]()

    def lowered(run: Callable[[NestLowering], Nest], box: Box) -> Nest:
        made.append(NestLowering(body, box))
        return run(made[-1])

    list(_nests(body.domain, partial(lowered, NestLowering.run)))
    for root, buffer in body.outputs.items():
        if is_piecewise(root.node) and not has_unit_region(root.node):
            list(_nests(root.node.inputs[1].shape, partial(
                lowered, partial(NestLowering.run_override, root=root, buffer=buffer))))
    found: dict[Expr, dict[Node, None]] = {}
    for value, built in (entry for nest in made for entry in nest.built()):
        for part in built if isinstance(built, tuple) else (built,):
            found.setdefault(part, {})[value.node] = None
    return {part: list(nodes) for part, nodes in found.items()}


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


def _started(body: FusedBody, nests: list[Nest]) -> list[Nest]:
    """The nests; where there are several, first one that sets sums to zero that all add to."""
    sums = [v for v in body.roots if "in_parts" in v.node.attrs]
    if len(nests) == 1 or not sums:
        return nests
    accesses = tuple(Access(body.outputs[v], ()) for v in sums)
    stores = tuple(Store(k, expr("const", v.dtype, attr=v.dtype.type(0)))
                   for k, v in enumerate(sums))
    return [Nest((), 0, accesses, (Stage(False, stores),)), *nests]


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
    if not nest.stages[0].checks or not nest.sequential:
        return None
    return _only_checks(nest)


def _only_checks(nest: Nest) -> Nest:
    """The checks of all stages at each point, and no loops that make no difference to them."""
    checks = tuple(dict.fromkeys(check for s in nest.stages for check in s.checks))
    bare = without_unused(replace(
        nest, outer=len(nest.extents), stages=(Stage(False, checks=checks),), scratch=(),
        sequential=False))
    used = {i.loop for a in bare.accesses for i in a.index}
    used |= {e.attr for e in walk(bare.roots) if e.op == "index"}
    once = tuple(n if loop in used or not is_static((n,)) else min(n, 1)
                 for loop, n in enumerate(bare.extents))
    return replace(bare, extents=once)


def _checked_first(nests: Iterable[Nest]) -> Iterator[Nest]:
    """A wrong index becomes 0, which is in range of every array but an empty one: where there may
    be one, checks are done before a nest that reads at the index."""
    for nest in nests:
        if any(map(_reads_what_may_be_empty, nest.roots)) and _are_by_themselves(nest):
            yield _only_checks(nest)
            yield _without_checks(nest)
        else:
            yield nest


def _are_by_themselves(nest: Nest) -> bool:
    """Whether its checks need none of its reductions and no row of scratch."""
    checks = [check for stage in nest.stages for check in stage.checks]
    return bool(checks) and all(e.op not in ("reduced", "scratch") for e in walk(checks))


def _reads_what_may_be_empty(root: Expr) -> bool:
    return any(e.op == "check_index" and not _is_positive(e.args[1]) for e in walk((root,)))


def _is_positive(limit: Expr) -> bool:
    """Whether it is a size that is known and not 0: constants of 2 and more are parameters."""
    return limit.op == "param" or (limit.op == "const" and limit.attr == 1)


def _without_checks(nest: Nest) -> Nest:
    return replace(nest, stages=tuple(replace(s, checks=()) for s in nest.stages))


def lower_copy(name: str, type_: TensorType, loc: Loc | None, source: str) -> Kernel:
    """The kernel ``name`` that copies an array, called ``source``."""
    attrs = {"index": 0, "path": source, "type": type_}
    operand = Node("Input", (), (type_,), attrs, name=source).out()
    result = Node("Copy", [operand], (type_,), name="Copy", loc=loc).out()
    body = Graph.build([operand], [result], name=name)
    fused = {"body": body, "domain": type_.shape, "axes": (), "boundaries": ()}
    return lower(Node("Fused", [operand], (type_,), fused, name=name, loc=loc))
