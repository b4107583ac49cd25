"""Index checks of elements that nothing needs, and library calls whose results nothing needs.

NumPy raises ``IndexError`` for ``x[k]`` even where the element is not used.  In a graph the node
that reads or writes an element checks its index; but unused nodes are dropped.  So each use of an
index is noted here, and where the finished graph has lost its node, a `BoundsCheck` replaces it;
a library call that refuses some operands is kept by a `Ran`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from fusec.core.records import replace
from fusec.ir import Node, Value
from fusec.ir.sizes.dims import Dim, Size
from fusec.ir.sizes.symbolic_numbers import applied, stored
from fusec.ops.calls.index_checks import IndexUse, Use, bounds_check, kept, may_raise_unread
from fusec.ops.rows.picking import PICKS, picked_axes

from ..facts.error_states import State, States
from ..values.array import TracedArray
from ..values.exception_handlers import check_decided
from ..values.operations import OPERATIONS
from ..values.trace import Trace
from .operands import as_traced, cast
from .sizes import number


def note_pick(
    trace: Trace, shape: Sequence[Size], axes: Sequence[int], indices: Sequence[Value],
    safe: Sequence[int],
) -> None:
    """Note the indices of an element or view, except on ``safe`` axes and known ones."""
    for axis, index in zip(axes, indices, strict=True):
        size = shape[axis]
        if axis not in safe and (index.node.op != "Const" or isinstance(size, Dim)):
            _note(trace, IndexUse(index, size, axis, trace.loc, _limit(trace, size)),
                  _state_before(trace))


def note_checked(trace: Trace, checked: Value) -> Value:
    """Note the use of a `CheckIndex` node, which is returned."""
    index, limit = checked.node.inputs
    use = IndexUse(index, 0, checked.node.attrs["axis"], trace.loc, limit, checked)
    _note(trace, use, _state_before(trace))
    return checked


def _state_before(trace: Trace) -> State | None:
    """The state by now; of a use in a branch or loop it is that of the outermost one."""
    return None if trace.in_region else OPERATIONS.state_now(trace)


def _note(trace: Trace, use: IndexUse, state: State | None) -> None:
    check_decided(trace, IndexError(), use.index, use.limit)
    if not trace.in_region:
        use = replace(use, is_outermost=True, state=state)
    trace.record.index_uses.append(use)


def written_indices(array: Any, key: Any) -> list[Value]:
    """The indices of a key at which a library call will write, as int64."""
    keys = key if isinstance(key, tuple) else (key,)
    if type(array) is not TracedArray or not array.is_array or array.steps or (
            len(keys) > array.ndim or not all(map(_is_index, keys))):
        return []
    return [cast(array.trace, as_traced(array.trace, each).value, np.dtype(np.int64))
            for each in keys]


def note_written(array: Any, indices: Sequence[Value]) -> None:
    """Note the indices of the library call that has written the array last; it checks them, if the
    graph keeps it.  The state is that before the call: it does not write where it raises."""
    trace, written = array.trace, array.storage.value
    state = trace.part(States).at(written.node)
    for axis, index in enumerate(indices):
        use = IndexUse(index, 0, axis, trace.loc, _limit(trace, array.shape[axis]), written)
        _note(trace, use, state)


def _is_index(key: Any) -> bool:
    dtype = getattr(key, "dtype", None) or (np.asarray(key).dtype if type(key) is int else None)
    return dtype is not None and dtype.kind in "iu"


def _limit(trace: Trace, size: Size) -> Value:
    if isinstance(size, Dim):
        return number(trace, size).value
    return trace.builder.const(applied(np.int64, size))


def lost_checks(trace: Trace, uses: Sequence[Use], needed: Iterable[Node]) -> list[Node]:
    """Checks for the uses whose nodes are not among the needed ones and their operands."""
    if not uses:
        return []
    nodes = sorted(_nodes_behind(needed, min(map(_first_id, uses))), key=attrgetter("id"))
    kept: dict[Any, Node] = {node.id: node for node in nodes}
    names = {use.name: use.id for use in uses if isinstance(use, Node)}
    for node in nodes:
        if node.attrs.get("extends") in names:  # it does the same, the checks too
            kept.setdefault(names[node.attrs["extends"]], node)
        for pair in _indices_with_sizes(node) if node.op in PICKS else ():
            kept.setdefault(pair, node)
    checks: dict[Any, Node] = {}
    states = trace.part(States)
    for use in uses:
        check = kept.get(_key_of_kept(use))
        if check is None:
            key = use.id if isinstance(use, Node) else (use.index, use.limit, use.axis)
            check = checks[key] if key in checks else checks.setdefault(key, _check(trace, use))
        if not isinstance(use, Node) and use.is_outermost:
            states.at_checks.setdefault(check, use.state)
        elif isinstance(use, Node) and check is not use and (state := states.at(use)) is not None:
            states.at_checks.setdefault(check, state)
    return list(checks.values())


def _first_id(use: Use) -> int:
    """The least id that a node with this use can have."""
    return use.id if isinstance(use, Node) else use.index.node.id


def _key_of_kept(use: Use) -> Any:
    """Of the node that checks it, as long as the graph has that."""
    if isinstance(use, Node):
        return use.id
    return (use.index, stored(use.size)) if use.checked is None else use.checked.node.id


def _indices_with_sizes(node: Node) -> Iterator[tuple[Value, Size]]:
    for axis, index in picked_axes(node):
        yield index, stored(node.inputs[0].shape[axis])


def _nodes_behind(roots: Iterable[Node], oldest: int) -> list[Node]:
    nodes: dict[int, Node] = {}
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node.id >= oldest and node.id not in nodes:
            nodes[node.id] = node
            stack.extend(v.node for v in node.inputs)
    return list(nodes.values())


def _check(trace: Trace, use: Use) -> Node:
    if isinstance(use, Node):
        return kept(trace.builder, use)
    return bounds_check(trace.builder, use.index, use.limit, use.axis, use.loc)


def note_inside(trace: Trace, node: Node) -> None:
    """Note a branch or loop that may raise: the graph may not need it."""
    if may_raise_unread(node):
        trace.record.index_uses.append(node)
    OPERATIONS.note_state(trace, node)
