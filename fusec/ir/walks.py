"""Walks over dependencies, without recursion: graphs may be thousands of nodes deep."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from .graph import Node, Value

Item = TypeVar("Item")


def depth_first(
    starts: Sequence[Item], before: Callable[[Item], Iterable[Item]]
) -> Iterator[Item]:
    """The items and all that they depend on, each once, dependencies first.

    ``before`` gives an item's direct dependences.
    """
    seen: set[Item] = set()
    stack = [(item, False) for item in reversed(starts)]
    while stack:
        item, is_ready = stack.pop()
        if is_ready:
            yield item
        elif item not in seen:
            seen.add(item)
            stack.append((item, True))
            stack += [(other, False) for other in reversed([*before(item)])]


def operands(node: Node) -> list[Node]:
    """The nodes whose values this one reads."""
    return [v.node for v in node.inputs]


def nodes_behind(
    values: Iterable[Value], is_known: Callable[[Value], bool] = lambda value: False
) -> list[Node]:
    """The nodes that compute the values, operands first; values that are known end the walk."""
    nodes: dict[int, Node] = {}
    stack = [v.node for v in values if not is_known(v)]
    while stack:
        node = stack.pop()
        if node.id not in nodes:
            nodes[node.id] = node
            stack += [v.node for v in node.inputs if not is_known(v)]
    return [nodes[i] for i in sorted(nodes)]
