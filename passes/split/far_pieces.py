"""Rows from the far end of an axis in blocks: the rims of a periodic domain.

``np.roll(x, 2)`` puts the last two rows before the first ones, ``u[:2] = u[-4:-2]`` likewise.  A
few such rows go to all blocks, one by one, as ``x[-1]`` does: the block that has a row gives it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fusec.ir import Node, Value
from fusec.ops import registry
from fusec.ops.splitting.protocol import rule_of

from .split_states import SplitStates

MOST_ROWS = 8


def is_pieces(node: Node) -> bool:
    """Whether its result is put together of operands, which may lie far from their place in it."""
    return registry.get(node.op).kind == "piecewise"


def by_rows(states: SplitStates, node: Node, emit: Callable[..., Value]) -> Node:
    """The node with its operands that are few far rows put together of single ones, which
    ``emit(like, op, *inputs, **attrs)`` makes."""
    inputs = list(node.inputs)
    for number, axis in _far_rows(states, node):
        part = inputs[number].node
        attrs = part.attrs
        rows = [emit(part, "Slice", part.inputs[0], steps=attrs["steps"],
                     starts=_with(attrs["starts"], axis, attrs["starts"][axis] + row),
                     sizes=_with(attrs["sizes"], axis, 1)) for row in range(attrs["sizes"][axis])]
        inputs[number] = emit(part, "Concat", *rows, axis=axis)
    return node.with_inputs(inputs)


def _with(numbers: tuple[int, ...], axis: int, number: int) -> tuple[int, ...]:
    return (*numbers[:axis], number, *numbers[axis + 1:])


def _far_rows(states: SplitStates, node: Node) -> Iterator[tuple[int, int]]:
    """The operands that are few rows from beyond the neighbouring blocks, each with its axis."""
    rule = rule_of(node) if is_pieces(node) else None
    if rule is None:
        return
    for number, operand in enumerate(node.inputs):
        if operand.node.op != "Slice":
            continue
        far = [axis for axis, read in enumerate(rule.links(node, number))
               if read is not None and _is_far(states, operand.node, axis, read.start)]
        if len(far) == 1:
            yield number, far[0]


def _is_far(states: SplitStates, part: Node, axis: int, start: int) -> bool:
    """Whether few rows of a slice, of which ``start`` stands at 0, are further off than a block is
    long."""
    place, size = states.places[part.inputs[0]][axis], part.attrs["sizes"][axis]
    if place is None or part.attrs["steps"][axis] != 1 or not 2 <= size <= MOST_ROWS:
        return False
    line = states.lines.settled(place).line
    return bool(abs(part.attrs["starts"][axis] + start) > states.lines.shortest(line))


__all__ = ["by_rows", "is_pieces"]
