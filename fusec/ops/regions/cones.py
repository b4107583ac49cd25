"""Cones: the nodes recomputed, and the operands read, when a value is evaluated at an index map.

Evaluating a value over an iteration domain *pulls* index maps from the output towards the inputs
until it meets boundary values: arguments, reductions, library results and whatever is materialised.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Collection, Iterator, Sequence

from fusec.core.records import dataclass, field
from fusec.ir import Node, Value
from fusec.ir.sizes.dims import Size

from .. import registry
from ..rows.gather import gather_operands, index_operands
from .index_maps import COMPUTED, ZERO, IndexMap, fold_maps, identity, is_affine, pull, without_loop

_EVALUATED = frozenset({"elementwise", "view", "gather", "fold"})
Operand = tuple[Value, IndexMap]
Shape = tuple[int, ...]


def is_boundary(node: Node) -> bool:
    """Whether the node's results always live in memory or an accumulator."""
    kind = registry.get(node.op).kind
    if kind in _EVALUATED:
        return node.op == "Reshape"
    if kind == "piecewise":
        return is_copied_whole(node)
    return kind != "source" or node.op == "Input"


def is_copied_whole(node: Node) -> bool:
    """Whether a piecewise op has sizes that only the run knows: they cannot cut a domain now.

    NumPy copies its pieces then, as a library call.  A scatter cuts nothing.
    """
    return is_piecewise(node) and node.op != "Scatter" and any(
        not t.is_static for t in (*node.types, *(v.type for v in node.inputs)))


def view_base(value: Value, stored: Collection[Value] = ()) -> Value:
    """The base of a chain of view ops; the value itself when it is no view.

    Libraries read views through strides, so only the base needs memory; a view that is ``stored``
    has some.
    """
    while value not in stored and registry.get(value.node.op).kind == "view" and (
            value.node.op != "Reshape"):
        value = value.node.inputs[0]
    return value


def is_piecewise(node: Node) -> bool:
    return registry.get(node.op).kind == "piecewise"


def has_unit_region(node: Node) -> bool:
    """Whether the pieces of a piecewise op are boxes of contiguous indices."""
    return node.op == "Concat" or (
        node.op == "SliceUpdate" and all(step == 1 for step in node.attrs["steps"]))


def is_filled(value: Value) -> bool:
    """Whether all elements are one constant."""
    return value.node.op == "BroadcastTo" and value.node.inputs[0].node.op == "Const"


def is_padding(node: Node) -> bool:
    """Whether it is an array of one constant with a part replaced."""
    return node.op == "SliceUpdate" and is_filled(node.inputs[0])


def is_always_stored(node: Node) -> bool:
    """Whether it is written piece by piece, by steps or at indices: no element is an expression."""
    return is_piecewise(node) and not has_unit_region(node)


def can_split(node: Node, index: IndexMap) -> bool:
    """Whether a piecewise node read at ``index`` splits the domain into boxes."""
    return has_unit_region(node) and all(
        i.loop == -1 or (i.step == 1 and i.loop != COMPUTED) for i in index)


def shift(index: IndexMap, axis: int, offset: int) -> IndexMap:
    i = index[axis]
    return (*index[:axis], i._replace(start=i.start - offset), *index[axis + 1:])


def pieces(node: Node, index: IndexMap) -> Iterator[Operand]:
    """The inputs of a piecewise node with their maps, as read inside their own region."""
    if node.op == "SliceUpdate":
        yield node.inputs[0], index
        inside = index
        for axis, start in enumerate(node.attrs["starts"]):
            inside = shift(inside, axis, start)
        yield node.inputs[1], _drop_unit_axes(inside, node.inputs[1].shape)
        return
    offset, axis = 0, node.attrs["axis"]
    for value in node.inputs:
        yield value, _drop_unit_axes(shift(index, axis, offset), value.shape)
        offset += value.shape[axis]


def piece(node: Node, index: IndexMap, number: int, ends: Sequence[Size] = ()) -> Operand:
    """One of the `pieces`: a nest is lowered for each, and reads no other.  ``ends``: where the
    operands of a concatenation end."""
    if node.op != "Concat":
        return next(itertools.islice(pieces(node, index), number, None))
    axis, value = node.attrs["axis"], node.inputs[number]
    offset = ends[number - 1] if number else 0
    return value, _drop_unit_axes(shift(index, axis, offset), value.shape)


def _drop_unit_axes(index: IndexMap, shape: tuple[int, ...]) -> IndexMap:
    return tuple(ZERO if size == 1 else i for i, size in zip(index, shape, strict=True))


def operands(node: Node, index: IndexMap) -> Iterator[Operand]:
    """The node's operands and their index maps, when its output is read at ``index``."""
    if is_affine(node):
        for position, value in enumerate(node.inputs):
            yield value, pull(node, position, index)
    elif is_piecewise(node):
        yield from pieces(node, index)
    elif node.op == "Fold":
        yield from ((node.inputs[0], inner) for inner in fold_maps(node, index))
    elif node.op == "Scan":
        yield node.inputs[0], index
    elif node.op == "Gather":
        yield from gather_operands(node, index)


def root_operands(root: Value, unrolled: int | None = None) -> tuple[Shape, list[Operand]]:
    """The iteration domain of a root and its operands there, at their index maps.

    Along the axis ``unrolled`` of the domain, a short one, there is no loop: a copy of the operands
    for each index.
    """
    domain, reads = _root_operands(root)
    if unrolled is None:
        return domain, reads
    return (*domain[:unrolled], *domain[unrolled + 1:]), [
        (value, without_loop(index, unrolled, at)) for at in range(domain[unrolled])
        for value, index in reads]


def _root_operands(root: Value) -> tuple[Shape, list[Operand]]:
    node = root.node
    if registry.get(node.op).kind == "reduce":
        operand = node.inputs[0]
        return operand.shape, [(operand, identity(operand.shape))]
    if is_piecewise(node) and not has_unit_region(node):
        target, value, *indices = node.inputs
        inside = identity(value.shape)
        return root.shape, [(target, identity(target.shape)), (value, inside),
                            *(index_operands(node, indices, inside) if indices else ())]
    return root.shape, list(operands(node, identity(root.shape)))


@dataclass
class Cone:
    """``reads``: boundary values with their maps; ``inlined``: recomputed values with theirs.

    ``unrolled``: see `root_operands`.
    """

    domain: tuple[int, ...]
    unrolled: int | None = None
    reads: dict[Value, set[IndexMap]] = field(default_factory=dict)
    inlined: dict[Value, set[IndexMap]] = field(default_factory=dict)
    piecewise: bool = False


def cone(root: Value, materialised: set[Value], unrolled: int | None = None) -> Cone:
    """Pull from ``root`` until materialised or boundary values."""
    domain, stack = root_operands(root, unrolled)
    result = Cone(domain, unrolled, piecewise=is_piecewise(root.node))
    seen: set[Operand] = set()
    while stack:
        operand = stack.pop()
        if operand in seen or operand[0].node.op == "Const":
            continue
        seen.add(operand)
        value, index = operand
        stop = value in materialised or is_boundary(value.node)
        (result.reads if stop else result.inlined).setdefault(value, set()).add(index)
        if not stop:
            result.piecewise |= is_piecewise(value.node)
            stack.extend(operands(value.node, index))
    return result


def cone_cost(
    value: Value, materialised: set[Value], limit: float, met: set[Value] | None = None
) -> float:
    """Scalar work to recompute one element of ``value``, counted up to ``limit``.

    A number that an array takes is computed before the loop over that.  ``met`` gets the values
    that it may change with, if they are materialised or no longer are.
    """
    total, stack, seen = 0.0, [(value, 1)], set()
    is_array = bool(value.shape)
    while stack and total < limit:
        v, times = stack.pop()
        if v in seen or (v is not value and v in materialised) or is_boundary(v.node) or (
                is_array and not v.shape):
            continue
        seen.add(v)
        row = registry.get(v.node.op)
        if row.kind == "fold":
            count = fold_count(v.node)
            total += times * (count - 1)
            times *= count
        total += times * row.cost if row.kind in ("elementwise", "gather") else 0.0
        stack.extend((operand, times) for operand in v.node.inputs)
    if met is not None:
        met.add(value)
        met.update(operand for v in seen for operand in v.node.inputs)
    return total


def written_cost(root: Value, limit: float, unrolled: int | None = None) -> float:
    """Scalar work of one point of a root's domain as it is written out, counted up to ``limit``.

    A value read at several indices counts as often, where nothing is stored between.
    """
    total, seen = 0.0, set[Operand]()
    stack = root_operands(root, unrolled)[1]
    while stack and total < limit:
        operand = stack.pop()
        value, index = operand
        if operand in seen or is_boundary(value.node) or is_always_stored(value.node):
            continue
        seen.add(operand)
        reads = list(operands(value.node, index))
        row = registry.get(value.node.op)
        total += len(reads) if row.kind == "fold" else (
            row.cost if row.kind in ("elementwise", "gather") else 0.0)
        stack += reads
    return total


def fold_count(node: Node) -> int:
    """How many elements a ``Fold`` joins."""
    return operator.index(math.prod(node.inputs[0].shape[axis] for axis in node.attrs["axes"]))
