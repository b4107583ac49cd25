"""A kernel and the one after it as one, where both go over the same points.

A loop that keeps the addend to the inside of an array computes it, over the inside, in one kernel
and adds it in another, which is cut into the inside and borders.  The backward pass of a stencil
sums over the inside values that the next kernel reads there too.  The first one's body goes into
the second's nest of the inside, so that arrays are read once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from fusec.ir import Graph, Node, Value

from .in_place_updates import without_unused
from .loop_ir import Access, Expr, Kernel, Nest, Stage, Store, expr, walk

MAPPING: Mapping[int, Expr] = MappingProxyType({})
MOST_ARRAYS = 24  # pointers of one loop: more spill registers


def joined(first: Node, then: Node, kernel_of: Callable[[Node], Kernel]) -> (
        tuple[Node, Kernel] | None):
    """One ``Fused`` node of two, and its kernel; its results are those of the first, then those of
    the second.  None where they are not as the module says, or need each other."""
    if any(n.op != "Fused" or n.control_inputs or n.attrs.get("unrolled") for n in (first, then)):
        return None
    if first.device != then.device:
        return None
    one, other = kernel_of(first), kernel_of(then)
    inside = _inside(one, other)
    if inside is not None and not _reads_its_points(first, one, then, other, inside):
        return None
    arrays = [b for b in (*one.buffers, *other.buffers) if b.shape]
    if inside is None or len(arrays) > MOST_ARRAYS:
        return None
    node = _node(first, then)
    return node, _kernel(node, (first, one), (then, other), inside)


def _inside(one: Kernel, other: Kernel) -> int | None:
    """The number of the second kernel's nest that the first one goes into."""
    if len(one.nests) != 1 or not (_is_reduction(one.nests[0]) or _is_plain(one.nests[0])):
        return None
    found = [k for k, nest in enumerate(other.nests)
             if nest.extents == one.nests[0].extents and _is_plain(nest)]
    return found[0] if len(found) == 1 else None


def _is_reduction(nest: Nest) -> bool:
    """Whether it reduces all of its points to numbers, in one go."""
    inner = [stage for stage in nest.stages if stage.inner]
    return nest.outer == 0 and len(inner) == 1 and nest.stages[0] is inner[0] and (
        bool(inner[0].reductions) and _is_simple(nest))


def _is_plain(nest: Nest) -> bool:
    """Whether it computes each of its points by itself."""
    return len(nest.stages) == 1 and nest.outer == len(nest.extents) > 0 and _is_simple(nest)


def _reads_its_points(
    first: Node, one: Kernel, then: Node, other: Kernel, inside: int
) -> bool:
    """Whether the second kernel reads of the first one's results only those of the nest ``inside``
    at the point itself."""
    stored = {one.nests[0].accesses[s.access] for stage in one.nests[0].stages
              for s in stage.stores if not s.combine}
    for k, value in enumerate(then.inputs):
        if value.node is not first:
            continue
        own = len(first.inputs) + value.index
        for number, nest in enumerate(other.nests):
            if any(a.buffer == k and (number != inside or Access(own, a.index) not in stored)
                   for a in nest.accesses):
                return False
        if not value.shape:
            return False
    return True


def _is_simple(nest: Nest) -> bool:
    return not (nest.scratch or nest.sequential or nest.chunk or nest.has_scans or nest.has_checks)


def _node(first: Node, then: Node) -> Node:
    """The node that computes the results of both."""
    operands = _operands(first, then)
    values: dict[Value, Value] = {}
    inputs: dict[Value, Value] = {}
    nodes: list[Node] = []
    for node in (first, then):
        body = node.attrs["body"]
        for operand, inner in zip(node.inputs, body.inputs, strict=True):
            if operand.node is first:
                values[inner] = values[first.attrs["body"].outputs[operand.index]]
            elif operand in inputs:
                values[inner] = inputs[operand]
            else:
                values[inner] = inputs[operand] = inner
                nodes.append(inner.node)
        for n in body.nodes:
            if n.op != "Input":
                copy = n.with_(inputs=[values.get(v, v) for v in n.inputs], control_inputs=())
                nodes.append(copy)
                values.update(zip(n.outputs, copy.outputs, strict=True))
    outputs = tuple(values[v] for n in (first, then) for v in n.attrs["body"].outputs)
    body = Graph(tuple(inputs[v] for v in operands), outputs, (), tuple(nodes), then.name)
    return then.with_(inputs=operands, types=(*first.types, *then.types),
                      attrs={**then.attrs, "body": body}, control_inputs=())


def _operands(first: Node, then: Node) -> list[Value]:
    """The operands of both, but for results of the first."""
    return list(dict.fromkeys(v for v in (*first.inputs, *then.inputs) if v.node is not first))


Part = tuple[Node, Kernel]


def _kernel(node: Node, one: Part, other: Part, inside: int) -> Kernel:
    ins, outs = len(node.inputs), len(one[0].types)
    places = [_buffers(part[0], node, start, one[0]) for part, start in (
        (one, ins), (other, ins + outs))]
    shift = len(one[1].params)
    reduction = _Moved(places[0], 0).nest(one[1].nests[0])
    nests = [_Moved(places[1], shift).nest(nest) for nest in other[1].nests]
    nests[inside] = _of_both(reduction, nests[inside])
    buffers = [b for _, kernel in (one, other) for b in kernel.buffers]
    at = [p for place in places for p in place]
    found = dict(zip(at, buffers, strict=True)) | dict(zip(places[0], one[1].buffers, strict=True))
    return Kernel(node.name, tuple(found[i] for i in range(len(found))),
                  (*one[1].params, *other[1].params), tuple(nests),
                  tuple(dict.fromkeys((*one[1].locs, *other[1].locs))))


def _buffers(part: Node, whole: Node, outputs: int, first: Node) -> list[int]:
    """Where the whole has the buffers of a part's kernel."""
    position = {v: i for i, v in enumerate(whole.inputs)}
    position |= {v: len(whole.inputs) + i for i, v in enumerate(first.outputs)}
    return [*(position[v] for v in part.inputs),
            *range(outputs, outputs + len(part.types))]


class _Moved:
    """Nests with other numbers of buffers and parameters."""

    def __init__(self, buffers: Sequence[int], params: int) -> None:
        self.buffers, self.params = buffers, params

    def nest(self, nest: Nest) -> Nest:
        accesses = tuple(Access(self.buffers[a.buffer], a.index) for a in nest.accesses)
        return _rewritten(replace(nest, accesses=accesses), {}, self.params)


def _rewritten(
    nest: Nest, accesses: Mapping[int, int], params: int, known: Mapping[int, Expr] = MAPPING
) -> Nest:
    """The nest with other numbers in its expressions; ``known``: by the number of an access the
    value it would load."""
    new: dict[Expr, Expr] = {}
    for e in walk(nest.roots):
        if e.op == "load" and e.attr in known:
            new[e] = known[e.attr]
            continue
        attr = accesses.get(e.attr, e.attr) if e.op == "load" else (
            e.attr + params if e.op == "param" else e.attr)
        new[e] = expr(e.op, e.dtype, *(new[a] for a in e.args), attr=attr)

    def store(s: Store) -> Store:
        return replace(s, access=accesses.get(s.access, s.access), value=new[s.value],
                       index=tuple(new[i] for i in s.index))

    return replace(nest, stages=tuple(replace(
        s, stores=tuple(map(store, s.stores)),
        reductions=tuple(replace(r, value=new[r.value]) for r in s.reductions),
    ) for s in nest.stages))


def _of_both(first: Nest, then: Nest) -> Nest:
    """The points of two nests, the second of which may read the first one's stores there."""
    accesses = list(dict.fromkeys((*first.accesses, *then.accesses)))
    places = [{k: accesses.index(a) for k, a in enumerate(n.accesses)} for n in (first, then)]
    one = _rewritten(first, places[0], 0)
    points, *rest = one.stages
    known = {accesses[s.access]: s.value for s in points.stores}
    other = _rewritten(then, places[1], 0, {
        k: known[a] for k, a in enumerate(then.accesses) if a in known})
    stores = (*points.stores, *other.stages[0].stores)
    both = Stage(points.inner, stores, (), points.reductions)
    return without_unused(replace(one, accesses=tuple(accesses), stages=(both, *rest)))


__all__ = ["joined"]
