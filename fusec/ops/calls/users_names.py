"""What the user calls the operation of a node."""

from __future__ import annotations

from fusec.ir import Node

from .. import registry
from .library import LIBRARY, called_name


def users_name(node: Node) -> str:
    """``np.sqrt``, ``x[...]``; the op's own name where it has no other."""
    row = registry.get(node.op)
    if row.called:
        return row.called
    if "form" in node.attrs and node.op in LIBRARY:
        return called_name(node.op, node.attrs["form"])
    function = row.numpy[0] if row.numpy else row.ufunc
    return node.op if function is None else f"np.{function.__name__}"
