"""Where a traced value comes from, in the user's words."""

from __future__ import annotations

import linecache
import os
import re
from collections.abc import Mapping

from fusec.ir import Loc, Node, TensorType, Value
from fusec.ir.sizes.symbolic_sizes import plain
from fusec.ops import get

_PYTHON = {"b": "bool", "i": "int", "u": "int", "f": "float", "c": "complex"}
_LONGEST = 48
_MOST_NODES = 2_000
INSIDE, LANE = -1, -2  # in place of an input's position: of a sub-graph, of a lane in `vmap`
_TITLES = {INSIDE: "{} of an iteration", LANE: "argument {} of one lane"}
AS_STATIC = ", or compute it before the call and pass it as a static argument"
LIST = re.compile(r"\[:(?:, \d+)?\]$")  # ends the path of an array that a list was packed into


def describe(value: Value, at: Loc | None, outside: Mapping[int, str]) -> str:
    """``f64[3,4], argument x`` or ``f64[3], from `y * 2` (prog.py:7)``.

    ``at``: the line of the error.  Casts and views that the failing operation inserted there itself
    are skipped.  ``outside``: names of inputs that are not arguments, by input position.
    """
    while value.node.op == "Cast" and value.node.loc == at and at is not None:
        value = value.node.inputs[0]
    base = value
    while get(base.node.op).kind == "view" and base.node.loc == at and at is not None:
        base = base.node.inputs[0]
    view = "" if base is value or base.node.op == "Const" else "a view of "
    if base is not value and base.node.op == "Const":
        base = value
    text = origin(base, outside)
    return f"{type_name(value)}, {view}{text.removeprefix('from ') if view else text}"


def type_name(value: Value) -> str:
    """``f64[3,4]``, ``f64`` (a NumPy scalar), ``float`` (a Python number)."""
    if value.type.is_weak:
        return _PYTHON[value.dtype.kind]
    shape = tuple(map(plain, value.type.shape))  # the user reads of sizes, not of symbols
    return str(TensorType(value.dtype, shape, value.type.kind))


def origin(value: Value, outside: Mapping[int, str]) -> str:
    """``argument x``, ``the int 3``, ``from `y * 2` (prog.py:7)``."""
    node = value.node
    if node.op == "Input":
        return outside.get(node.attrs["index"]) or (
            _TITLES.get(node.attrs["index"], "argument {}").format(node.attrs["path"]))
    if node.op == "Const":
        number = node.attrs["value"]
        return f"the number {number}"
    if node.loc is None:
        return f"from {node.op}"
    text = _text_at(node.loc)
    place = os.path.basename(str(node.loc))
    return f"from `{text}` ({place})" if text else f"made at {place}"


def source_of(value: Value) -> str:
    """The source text of the value's expression, or the argument's name; empty if unknown."""
    node = value.node
    while node.op == "Cast":
        node = node.inputs[0].node
    if node.op == "Input":
        return str(node.attrs["path"])
    return _text_at(node.loc) if node.loc is not None else ""


def _text_at(loc: Loc) -> str:
    """The expression's source text, shortened; empty where it has several lines."""
    if loc.col < 0 or loc.end_col <= loc.col:
        return ""
    line = linecache.getline(loc.file, loc.line).encode()
    text = line[loc.col: loc.end_col].decode(errors="replace").strip()
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST - 3]}..."


def access_path(what: str) -> str:
    """How a program reaches such an object: ``weights['W']`` of ``global weights['W']``."""
    words = what.split(" ")
    if words[0] in ("a", "an"):
        return words[1]
    at = what.find("[")
    head, rest = (what, "") if at < 0 else (what[:at], what[at:])
    return head.rpartition(" ")[2] + rest


def scalar_arguments(value: Value, outside: Mapping[int, str]) -> list[str]:
    """The arguments that a value depends on where all of them are numbers; else []."""
    names: dict[str, None] = {}
    for node in _inputs(value) or ():
        path, index = node.attrs["path"], node.attrs["index"]
        if node.types[0].kind == "array" and not LIST.search(path):
            return []
        if index in outside or index in _TITLES:
            return []  # read from outside at each call, or another one in each iteration or lane
        names[_variable(path)] = None
    return sorted(names)


def _inputs(value: Value) -> list[Node] | None:
    """Those that a value depends on; None where it depends on very many nodes."""
    todo, visited, found = [value.node], set[int](), []
    while todo:
        node = todo.pop()
        if node.id in visited:
            continue
        visited.add(node.id)
        if len(visited) > _MOST_NODES:
            return None
        if node.op == "Input":
            found.append(node)
        todo += [v.node for v in node.inputs]
    return found


def _variable(path: str) -> str:
    return path.partition("[")[0].partition(".")[0]


def way_out(value: Value, otherwise: str, outside: Mapping[int, str]) -> str:
    """The cure for a value that Python needs: static arguments where they would help."""
    lanes = {_variable(n.attrs["path"]) for n in _inputs(value) or () if n.attrs["index"] == LANE}
    if lanes:
        listed, verb = " and ".join(sorted(lanes)), "is" if len(lanes) == 1 else "are"
        return (f"{otherwise.removesuffix(AS_STATIC)}; with None in in_axes {listed} {verb} the "
                "same in each lane")
    names = scalar_arguments(value, outside)
    if not names:
        return otherwise
    listed = ", ".join(map(repr, names))
    return (f"make {' and '.join(names)} static, fusec.jit(static=({listed},)): one trace for each "
            f"value")
