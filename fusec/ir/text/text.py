"""The canonical text form of a graph: one node a line, types on every line.

`print_graph` writes it, `fusec.ir.text.parse.parse_graph` reads it back; the grammar is on the page
``docs/ir.md``.  Printing is linear in the number of nodes and recurses only into sub-graphs.
"""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ..graph import Graph, Loc, Node, Value
from ..sizes.dims import Dim
from ..sizes.size_questions import Computed
from ..sizes.symbolic_numbers import Symbolic, text_of_number
from ..types import TensorType, dtype_name

INDENT = "  "
LINE_WIDTH = 100
LOC_COLUMN = 60
PLAIN_NAME = re.compile(r"[A-Za-z_][\w./-]*\Z")


def print_graph(graph: Graph, *, locs: bool = True) -> str:
    """The text form of ``graph``; ``locs`` adds each node's source line as a trailing comment.

    Raises ``TypeError`` (an internal error) when an attribute has no text form.
    """
    return "\n".join(graph_lines(graph, locs=locs))


def graph_lines(graph: Graph, *, locs: bool = True) -> list[str]:
    """The lines of `print_graph`."""
    parameters = {v.node.id for v in graph.inputs}
    lines = header_lines(graph)
    for node in graph.nodes:
        if node.id not in parameters:
            lines += _indented(node_lines(node, locs=locs))
    lines.append(INDENT + f"return {_commas(map(value_ref, graph.outputs))}".rstrip())
    for position, value in graph.updates:
        target = print_name(graph.inputs[position].node.name)
        lines.append(f"{INDENT}update {target} = {value_ref(value)}")
    return [*lines, "}"]


def header_lines(graph: Graph) -> list[str]:
    """``graph main(x: f64[3]) {``, a parameter a line when that is longer than a line."""
    parameters = [_parameter(i, v.node) for i, v in enumerate(graph.inputs)]
    start = f"graph {print_name(graph.name)}("
    line = f"{start}{_commas(parameters)}) {{"
    if len(line) <= LINE_WIDTH and "\n" not in line:
        return [line]
    body = "\n".join(f"{p}," for p in parameters).split("\n")
    return [start, *_indented(_indented(body)), ") {"]


def _parameter(position: int, node: Node) -> str:
    words = [f"{print_name(node.name)}: {print_types(node.types)}"]
    implied = {"type": node.types[0], "index": position, "path": node.name}
    return " ".join(words + _attrs(_stated(node, implied), locs=False) + _device(node))


def _stated(node: Node, implied: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes that the text must state: those that the parser would not fill in itself."""
    return {k: v for k, v in node.attrs.items() if k not in implied or implied[k] != v}


def node_lines(node: Node, *, locs: bool = True) -> list[str]:
    """``%Mul = Mul(%x, %y) : f64[3]``; several lines when an attribute is a sub-graph."""
    operands = [value_ref(v) for v in node.inputs]
    operands += [f"^{print_name(n.name)}" for n in node.control_inputs]
    call = f"{print_name(node.op)}({_commas(operands)})" if operands else print_name(node.op)
    attrs = _stated(node, {"kind": node.types[0].kind}) if node.op == "Const" else node.attrs
    words = [f"%{print_name(node.name)} = {call}", *_attrs(attrs, locs=locs), *_device(node)]
    lines = f"{' '.join(words)} : {print_types(node.types)}".split("\n")
    if locs and node.loc is not None:
        lines[-1] = f"{lines[-1]:<{LOC_COLUMN}}  # {print_loc(node.loc)}"
    return lines


def value_ref(value: Value) -> str:
    """``%Mul`` for output 0, ``%Split:1`` for the others."""
    name = print_name(value.node.name)
    return f"%{name}:{value.index}" if value.index else f"%{name}"


def print_name(name: str) -> str:
    """The name itself, or quoted when it is not a plain one."""
    return name if PLAIN_NAME.match(name) else json.dumps(name)


def print_types(types: tuple[TensorType, ...]) -> str:
    """One type bare, any other number in parentheses."""
    return str(types[0]) if len(types) == 1 else f"({_commas(map(str, types))})"


def print_loc(loc: Loc) -> str:
    """``file.py:12:4-9 in f``, leaving out unknown parts."""
    text = str(loc)
    if loc.col >= 0:
        text += f":{loc.col}" + (f"-{loc.end_col}" if loc.end_col >= 0 else "")
    return text + (f" in {loc.function}" if loc.function else "")


def _attrs(attrs: Mapping[str, Any], *, locs: bool) -> list[str]:
    if not attrs:
        return []
    return [f"{{{_commas(f'{k}={print_attr(v, locs=locs)}' for k, v in attrs.items())}}}"]


def _device(node: Node) -> list[str]:
    return [f"@{json.dumps(node.device)}"] if node.device else []


def _commas(words: Iterable[str]) -> str:
    return ", ".join(words)


def _indented(lines: Iterable[str]) -> list[str]:
    return [INDENT + line for line in lines]


def print_attr(value: Any, *, locs: bool = True) -> str:
    """An attribute's text form, exact: ``-0.0``, NaN payloads and the Python type survive."""
    if type(value) in (Symbolic, Computed):
        return f"size({json.dumps(text_of_number(value))})"
    if isinstance(value, Graph):
        return "\n".join(graph_lines(value, locs=locs))
    if isinstance(value, tuple):
        inner = _commas(print_attr(v, locs=locs) for v in value)
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, np.dtype):
        return dtype_name(value)
    if isinstance(value, TensorType):
        return f"type({value})"
    if isinstance(value, Dim):
        return f"size({json.dumps(str(value))})"
    if isinstance(value, np.generic):
        return _print_numpy(value)
    return _print_python(value)


def _print_python(value: Any) -> str:
    if value is None or type(value) in (bool, int):
        return repr(value)
    if isinstance(value, str):
        return json.dumps(value)
    if type(value) is float:
        return repr(value) if _plain(value) else f"float.bits({_bits(value)})"
    if type(value) is complex:
        pair = f"complex({value.real!r}, {value.imag!r})"
        plain = _plain(value.real) and _plain(value.imag)
        return pair if plain else f"complex.bits({_bits(value.real, value.imag)})"
    raise TypeError(
        f"internal error: an attribute of type {type(value).__name__} ({value!r}) has no text "
        "form; attributes are None, bool, int, float, complex, str, tuples, dtypes, types, NumPy "
        "scalars and sub-graphs"
    )


def _print_numpy(value: np.generic) -> str:
    name = dtype_name(value.dtype)
    if value.dtype.kind in "biu":
        return f"{name}({value.item()!r})"
    parts = [float(np.real(value)), float(np.imag(value))]
    if not all(map(_plain, parts)):
        return f"{name}.bits(0x{value.tobytes()[::-1].hex()})"
    return f"{name}({_commas(map(repr, parts if value.dtype.kind == 'c' else parts[:1]))})"


def _plain(value: float) -> bool:
    """Whether ``repr`` keeps every bit: all but NaNs with a sign or a payload."""
    return not math.isnan(value) or struct.pack("<d", value) == struct.pack("<d", math.nan)


def _bits(*parts: float) -> str:
    return f"0x{struct.pack(f'<{len(parts)}d', *parts)[::-1].hex()}"
