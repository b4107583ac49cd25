"""The user's words for nodes and their operands."""

from __future__ import annotations

import ast
import linecache

import numpy as np

from fusec.core.locations import GradientLoc, Loc
from fusec.ir import Node, Value

from .. import registry
from .library import LIBRARY, called_name

_JOINING = {"Scatter": "at", "Scan": "accumulate"}  # ops with attrs combine: methods of ufuncs
_CUMULATIONS = {"np.add.accumulate": "np.cumsum", "np.multiply.accumulate": "np.cumprod"}
_MOST_TEXT = 40  # characters of an operand's expression


def users_name(node: Node) -> str:
    """``np.sqrt``, ``x[...]``; the op's own name where it has no other."""
    row = registry.get(node.op)
    if row.called:
        return row.called
    if "form" in node.attrs and node.op in LIBRARY:
        return called_name(node.op, node.attrs["form"])
    if node.op in _JOINING and node.attrs.get("combine"):
        return _joining_name(node.attrs["combine"], _JOINING[node.op])
    function = row.numpy[0] if row.numpy else row.ufunc
    if function is None:
        name = node.op.lower()
        return f"np.{name}" if hasattr(np, name) else node.op
    return f"np.{function.__name__}"


def _joining_name(combine: str, method: str) -> str:
    """``np.maximum.at`` of the op that joins elements, ``np.cumsum`` where that has a name."""
    name = f"np.{getattr(registry.get(combine).reference, '__name__', combine)}.{method}"
    return _CUMULATIONS.get(name, name)


def operand_title(value: Value, reader: Node) -> str:
    """An operand as the program has it: the argument's path, else its expression and node."""
    node = value.node
    if node.op == "Input":
        return str(node.attrs.get("path") or node.name)
    if node.op == "Const":
        return "constant"
    is_other = not isinstance(node.loc, GradientLoc) and node.loc != reader.loc
    text = text_at(node.loc) if is_other else ""
    name = value.name if value.index else node.name
    return f"{text} ({name})" if text else name


def text_at(loc: Loc | None) -> str:
    """The program's text at a place, where it is a short expression on one line."""
    if loc is None or not 0 <= loc.col < loc.end_col:
        return ""
    line = linecache.getline(loc.file, loc.line).encode()
    text = line[loc.col:loc.end_col].decode(errors="replace")
    try:
        ast.parse(text, mode="eval")
    except (SyntaxError, ValueError):
        return ""
    return text if len(text) <= _MOST_TEXT else ""
