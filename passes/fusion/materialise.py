"""Which intermediate values are worth storing instead of recomputing them in every consumer.

A value is stored when a library or the caller needs it, or when recomputing it at its different
indices costs more than a store and a load.  The decision reads no sizes other than 1, so that a new
shape makes the same kernels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fusec.ir import Graph, Node, Value
from fusec.ir.device_names import runs_cuda
from fusec.ir.uses import use_counts
from fusec.ops import get
from fusec.ops.regions.cones import (
    Operand,
    can_split,
    cone_cost,
    has_unit_region,
    is_boundary,
    is_padding,
    is_piecewise,
    operands,
    root_operands,
    view_base,
)
from fusec.ops.regions.index_maps import (
    EACH,
    AxisIndex,
    IndexMap,
    identity,
    with_axes,
    without_loop,
)

from .narrow_sums import shared_factors

# A store and a load of 8 bytes through memory take about as long as this many vectorised additions
# (2 ns against 0.08 ns); in cache it is a tenth of that, so the figure leans towards recomputing.
RECOMPUTE_LIMIT = 24.0
# The same when a value is recomputed along an axis it does not have: the factor is unbounded.
BROADCAST_LIMIT = 4.0
# What is computed again rather than read where one array serves for two: a factor, a sign.
STEP_LIMIT = 3.0

# Domain, map, whether a reduction evaluates it, whether only parts of the domain do.
Context = tuple[tuple[int, ...], IndexMap, bool, bool]


def required_values(graph: Graph, tied: set[Value]) -> set[Value]:
    """Values that must be in memory: results, updates, operands of library calls and reshapes, and
    `tied_values`."""
    needed = tied.union(graph.roots, shared_factors(graph))
    for node in graph.nodes:
        if is_boundary(node) and get(node.op).kind not in ("reduce", "scan"):
            needed.update(view_base(v, tied) for v in node.inputs)
        if node.op == "Verify":
            needed.add(node.out())
        if node.op == "Scatter":
            needed.update(_read_before_written(node))
    return {v for v in needed if v.node.op != "Const" and not is_boundary(v.node)}


def tied_values(graph: Graph) -> set[Value]:
    """Values that cannot be fused with others: those of nodes at either end of a control edge, and
    those that are read on another device than they are computed on, and constants of sizes that
    the run decides, where a library reads them: no array is there to show a view of."""
    tied = {v for node in graph.nodes for v in node.inputs if v.node.device != node.device}
    for node in graph.nodes:
        if is_boundary(node) and get(node.op).kind not in ("reduce", "scan"):
            tied.update(v for v in node.inputs if view_base(v).node.op == "Const" and not (
                v.type.is_static))
        if node.control_inputs:
            tied.update(v for n in (node, *node.control_inputs) for v in n.outputs)
    return tied


def framed_values(graph: Graph, required: set[Value]) -> set[Value]:
    """Values that are stored between constants anyway, and read by others: a native loop computes
    them there (`fusec.codegen.structured.loops.frames`)."""
    counts = use_counts(graph.nodes)
    inside = (v.node.inputs[1] for v in required
              if is_padding(v.node) and has_unit_region(v.node))
    return {v for v in inside if counts[v] > 1 and get(v.node.op).kind == "elementwise"}


def _read_before_written(node: Node) -> list[Value]:
    """Operands of a scatter that alias its target: they are computed before it writes."""
    written = _sources(node.inputs[0])
    return [v for v in node.inputs[1:] if not written.isdisjoint(_sources(v))]


def _sources(value: Value) -> set[Value]:
    """The values in memory that it is computed from."""
    sources: set[Value] = set()
    stack, seen = [value], set[Value]()
    while stack:
        v = stack.pop()
        if v in seen:
            continue
        seen.add(v)
        if v.node.op != "Reshape" and (is_boundary(v.node) or is_piecewise(v.node)):
            sources.add(v)
        else:
            stack.extend(v.node.inputs)
    return sources


def materialised_values(
    graph: Graph, required: set[Value], unrolled: Mapping[Value, int], has_registers: bool = False
) -> set[Value]:
    """The values that get storage of their own, ``required`` ones and others, decided from the
    results backwards.

    ``unrolled``: see `unrolled_axes`.  ``has_registers``: numbers between kernels cost nothing.
    """
    stored = set(required)
    contexts: dict[Value, set[Context]] = {}
    for node in reversed(graph.nodes):
        if get(node.op).is_given:
            continue
        if is_boundary(node):
            if get(node.op).kind in ("reduce", "scan"):
                _start(node.out(), contexts, unrolled, reduction="in_parts" not in node.attrs)
            continue
        value = node.out()
        uses = contexts.get(value, set())
        if value not in stored and not _is_a_row_number(node) and (
                _is_worth_storing(value, uses, stored) or (
                    has_registers and _is_number_of_its_own(value, uses, stored))):
            stored.add(value)
        if value in stored:
            _start(value, contexts, unrolled, reduction=False)
        else:
            _propagate(node, uses, contexts)
    return _without_cheap(graph, stored, required, contexts)


def _is_a_row_number(node: Node) -> bool:
    """Whether, on a GPU, it shows a number of each row to columns: rather the number is stored, in
    whose kernel other numbers of rows are."""
    return node.op == "ExpandDims" and node.inputs[0].node.op == "Fold" and runs_cuda(node.device)


def _without_cheap(
    graph: Graph, stored: set[Value], required: set[Value],
    contexts: Mapping[Value, set[Context]],
) -> set[Value]:
    """The values, without those that are a small step from one other.

    Each was looked at before its operands, when all their cost seemed to be its own.
    Gradients are full of them: the cotangent of either side of a difference, and its negative.
    """
    for node in graph.nodes:
        is_chosen = not stored.isdisjoint(node.outputs) and required.isdisjoint(node.outputs)
        if not is_chosen or node.op == "CheckIndex":
            continue
        if _is_cheap(node.out(), stored, contexts.get(node.out(), set())):
            stored.remove(node.out())
    return stored


def _is_cheap(value: Value, stored: set[Value], uses: set[Context]) -> bool:
    """Whether it is parts of one array, and numbers, in few operations; or that between constants,
    where all that reads it may be cut at its ends."""
    if not value.shape or cone_cost(value, stored, STEP_LIMIT + 1) > STEP_LIMIT:
        return False
    arrays, stack = set[Value](), [value]
    while stack:
        v = stack.pop()
        node = v.node
        if v is not value and (v in stored or is_boundary(node)):
            arrays.add(v)
        elif node.op == "Slice" and set(node.attrs["steps"]) == {1}:
            stack.append(node.inputs[0])
        elif is_padding(node) and not any(
                reduction or not can_split(node, index) for _, index, reduction, _ in uses):
            stack.append(node.inputs[1])
        elif get(node.op).kind != "elementwise" or any(
                x.shape not in ((), v.shape) for x in node.inputs):
            return False
        else:
            stack.extend(x for x in node.inputs if x.shape)
    return len(arrays) == 1 and all(
        len(v.shape) == len(value.shape) and v.dtype.itemsize <= value.dtype.itemsize
        for v in arrays)


def _start(
    value: Value, contexts: dict[Value, set[Context]], unrolled: Mapping[Value, int],
    reduction: bool,
) -> None:
    domain, reads = root_operands(value)
    if value.node.op == "Fold":
        reads = [_read(value.node, identity(value.shape))]
    axis = unrolled.get(value)
    if axis is not None:
        domain = (*domain[:axis], *domain[axis + 1:])
        reads = [(operand, without_loop(index, axis, None)) for operand, index in reads]
    for position, (operand, index) in enumerate(reads):
        is_region = position == 1 and is_piecewise(value.node)
        if is_region and not has_unit_region(value.node):
            domain = operand.shape  # it has a loop nest of its own
            is_region = False
        contexts.setdefault(operand, set()).add((domain, index, reduction, is_region))


def _propagate(node: Node, uses: set[Context], contexts: dict[Value, set[Context]]) -> None:
    pieces = is_piecewise(node)
    for domain, index, reduction, partly in uses:
        reads = [_read(node, index)] if node.op == "Fold" else operands(node, index)
        for number, (operand, inner) in enumerate(reads):
            region = _region(node, number, domain, index) if pieces else domain
            contexts.setdefault(operand, set()).add((region, inner, reduction, partly or pieces))


def _region(node: Node, number: int, domain: tuple[int, ...], index: IndexMap) -> tuple[int, ...]:
    """The domain in which an operand of a piecewise op is read; axes of which it is a single row
    have extent 1."""
    if node.op == "Concat":
        sizes = {node.attrs["axis"]: node.inputs[number].shape[node.attrs["axis"]]}
    else:
        sizes = dict(enumerate(node.attrs["sizes"] if number else ()))
    single = {index[axis].loop for axis, size in sizes.items() if size == 1}
    return tuple(1 if loop in single else size for loop, size in enumerate(domain))


def _read(fold: Node, index: IndexMap) -> Operand:
    """The reads of a ``Fold``, as one map: every element of the short axes, each once."""
    axes = fold.attrs["axes"]
    return fold.inputs[0], with_axes(index, axes, [AxisIndex(EACH, 1, 0)] * len(axes))


def _is_worth_storing(value: Value, uses: set[Context], stored: set[Value]) -> bool:
    if is_piecewise(value.node):
        return _is_awkward_piecewise(value, uses)
    if value.node.op == "CheckIndex" and any(_is_partial(value, use) for use in uses):
        return True
    distinct = len({(domain, index) for domain, index, *_ in uses
                    if not is_strip(domain, value.shape)})
    # A Fold is recomputed at every point of a loop that it lacks, also of the innermost one.
    is_repeated = any(
        _missing(d, index) if value.node.op == "Fold"
        else _is_repeated(d, index) or _is_gathered(index) for d, index, *_ in uses)
    if distinct <= 1 and not is_repeated:
        return False
    cost = cone_cost(value, stored, RECOMPUTE_LIMIT + 1)
    return (distinct - 1) * cost > RECOMPUTE_LIMIT or (is_repeated and cost > BROADCAST_LIMIT)


def is_strip(domain: Sequence[int], shape: Sequence[int]) -> bool:
    """Whether a kernel goes over a strip, one element wide, of an array: which takes no time."""
    return len(domain) == len(shape) > 1 and any(
        n == 1 != size for n, size in zip(domain, shape, strict=True))


def _is_number_of_its_own(value: Value, uses: set[Context], stored: set[Value]) -> bool:
    """Whether a number that loops would compute is better computed before them: a loop with more to
    hoist out of it is not written out in parts, nor vectorised as well."""
    return not value.shape and any(domain for domain, *_ in uses) and (
        cone_cost(value, stored, BROADCAST_LIMIT + 1) > BROADCAST_LIMIT)


def _is_partial(value: Value, use: Context) -> bool:
    """Whether this use leaves out some elements; a check must be made for all of them."""
    domain, index, _, partly = use
    if partly or (0 in domain and (not value.type.is_static or value.type.size)):
        return True
    entries = [(i, size) for i, size in zip(index, value.shape, strict=True) if size != 1]
    entries = [(i, size) for i, size in entries if i[:3] != (EACH, 1, 0)]
    loops = [i.loop for i, _ in entries]
    whole = all(i.loop >= 0 and domain[i.loop] == size for i, size in entries)
    return not whole or len(set(loops)) != len(loops)


def _is_gathered(index: IndexMap) -> bool:
    """Whether it is read at computed indices, so that nobody knows how often."""
    return any(i.computed is not None for i in index)


def _is_awkward_piecewise(value: Value, uses: set[Context]) -> bool:
    if not has_unit_region(value.node) or len(uses) > 1:
        return True
    return any(reduction or not can_split(value.node, i) for _, i, reduction, _ in uses)


def _is_repeated(domain: tuple[int, ...], index: IndexMap) -> bool:
    """Whether the value is invariant in a loop outside of one that it varies in.

    Then every iteration of that loop repeats the work.  A value that is invariant in the innermost
    loops only is hoisted out of them.
    """
    present = {loop for i in index for loop in i.loops}
    return any(loop < max(present, default=-1) for loop in _missing(domain, index))


def _missing(domain: tuple[int, ...], index: IndexMap) -> list[int]:
    """The loops in which a value read with this map is invariant."""
    present = {loop for i in index for loop in i.loops}
    return [loop for loop, size in enumerate(domain) if size != 1 and loop not in present]

