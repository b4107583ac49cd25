"""Why a loop cannot be compiled as a whole."""

from __future__ import annotations

from fusec.ir import Graph, Loc, Node


class NotNativeError(Exception):
    """Something in a loop that only runs step by step; the message names it."""

    def __init__(self, reason: str, loc: Loc | None = None) -> None:
        super().__init__(reason)
        self.loc = loc


def refuse_complex(node: Node) -> None:
    """Raise for complex values anywhere in a branch or loop: registers hold real numbers."""
    stack = [node]
    while stack:
        now = stack.pop()
        if any(t.dtype.kind == "c" for t in (*now.types, *(v.type for v in now.inputs))):
            raise NotNativeError(f"{now.name} is complex", now.loc or node.loc)
        for value in now.attrs.values():
            if isinstance(value, Graph):
                stack.extend(value.nodes)
