"""Graphs as JSON: `graph_to_json` writes it, `graph_from_json` reads it back.

A graph is an object with ``inputs``, ``nodes`` (in order), ``outputs`` and ``updates``; a value is
named ``"Split:1"``.  Attributes that JSON has (numbers, texts, null, tuples as lists) are written
as such; every other one is ``{"graph": …}`` or, in its exact text form, ``{"attr": "f32(0.1)"}``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from fusec.errors import UnsupportedError

from ..graph import Graph, Loc, Node, Value
from ..sizes.computed_forms import computed_form, computed_of
from ..sizes.dynamic_sizes import open_sizes
from ..sizes.size_questions import Computed
from ..sizes.symbolic_numbers import Symbolic
from ..types import TensorType
from .parse import GraphSyntaxError, attribute_of, type_of
from .parse_dims import sizes_are_open, with_sizes_of_arguments
from .text import print_attr

FORMAT = "fusec graph"
VERSION = 2  # one more with each op, attribute or field that earlier releases do not know


# ------------------------------------------------------------------------------------- writing


def graph_to_json(graph: Graph) -> str:
    """The graph as JSON, a node a line; the same graph always gives the same text.

    Raises `UnsupportedError`, with the user's line, where it calls objects of this program, which
    no text holds.
    """
    return laid_out(graph_form(graph))


def graph_form(graph: Graph, *, with_open_sizes: bool = False) -> dict[str, Any]:
    """The graph as JSON's data, which `laid_out` writes; raises as `graph_to_json`, for sizes of
    any value unless ``with_open_sizes``: it can be read, and admitted at some."""
    symbols = ", ".join(sorted(open_sizes(graph)))
    if symbols and not with_open_sizes:
        raise UnsupportedError(
            f"writing a graph to JSON whose parameters have sizes of any value ({symbols}): what "
            f"is read in is proven for the sizes that it has",
            cure=f"graph.at_sizes({symbols.replace(', ', '=..., ')}=...) is the graph for some")
    return {"format": FORMAT, "version": VERSION} | _graph(graph)


def laid_out(form: dict[str, Any]) -> str:
    """JSON's data as text, a node a line."""
    lines = []
    for key, value in form.items():
        text = json.dumps(value) if key not in ("nodes", "inputs") else (
            "[\n    " + ",\n    ".join(map(json.dumps, value)) + "\n  ]" if value else "[]")
        lines.append(f"  {json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _graph(graph: Graph) -> dict[str, Any]:
    parameters = {v.node.id for v in graph.inputs}
    return {
        "name": graph.name,
        "inputs": [_parameter(v.node) for v in graph.inputs],
        "nodes": [_node(n) for n in graph.nodes if n.id not in parameters],
        "outputs": [v.name for v in graph.outputs],
        "updates": [[graph.inputs[i].node.name, v.name] for i, v in graph.updates],
    }


def _parameter(node: Node) -> dict[str, Any]:
    path = node.attrs.get("path", node.name)
    form: dict[str, Any] = {"name": node.name, "type": str(node.types[0])}
    return form | ({"path": path} if path != node.name else {}) | (
        {"device": node.device} if node.device else {})


def _node(node: Node) -> dict[str, Any]:
    form: dict[str, Any] = {
        "name": node.name, "op": node.op, "inputs": [v.name for v in node.inputs],
        "types": [str(t) for t in node.types]}
    if node.attrs:
        _check_plain(node)
        form["attrs"] = {k: attribute_form(v) for k, v in node.attrs.items()}
    if node.control_inputs:
        form["control"] = [n.name for n in node.control_inputs]
    if node.device:
        form["device"] = node.device
    if node.loc is not None:
        form["loc"] = list(node.loc)
    return form


def _check_plain(node: Node) -> None:
    """Raises for attributes that name objects of this process: generators, Python functions.

    Such a name is of a subclass of ``str`` that keeps the object (`HostObject`, `FunctionName`).
    """
    for value in node.attrs.values():
        if isinstance(value, str) and type(value) is not str:
            raise UnsupportedError(
                f"writing a graph to JSON that calls {str(value)!r}, an object of this program",
                loc=node.loc, cure="make random numbers with fusec.random and write functions with "
                "NumPy's; or carve it away: graph.function(outputs=[...], prune=True)")


def attribute_form(value: Any) -> Any:
    """An attribute in JSON; `read_attribute` reads it back."""
    if isinstance(value, Graph):
        return {"graph": _graph(value)}
    if type(value) in (Computed, Symbolic):
        return _computed_form(value)
    if type(value) is tuple:
        return [attribute_form(item) for item in value]
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float and math.isfinite(value):
        return value
    return {"attr": print_attr(value)}


def _computed_form(value: Any) -> Any:
    form = computed_form(value)
    return {"attr": f"size({json.dumps(form)})"} if type(form) is str else form


# ------------------------------------------------------------------------------------- reading


def open_graph_from_json(text: str) -> Graph:
    """As `graph_from_json`, also where parameters have sizes of any value: ``s0``."""
    with with_sizes_of_arguments():
        return graph_from_json(text)


def graph_from_json(text: str) -> Graph:
    """The graph that ``text`` describes; raises `GraphSyntaxError`.

    Only its form is checked; whether it may run, `fusec.ops.graphs.admit` says.
    """
    try:
        form = json.loads(text, parse_constant=_no_number)
    except ValueError as error:
        raise GraphSyntaxError(f"no JSON: {error}") from None
    if not isinstance(form, dict) or form.get("format") != FORMAT:
        raise GraphSyntaxError(f"the JSON is no graph of fusec: its format is not {FORMAT!r}")
    version = form.get("version")
    if type(version) is not int or not 1 <= version <= VERSION:
        raise GraphSyntaxError(f"the graph has version {version!r:.40} of the format, this fusec "
                               f"reads versions up to {VERSION}")
    return _read_graph({k: v for k, v in form.items() if k not in ("format", "version")})


def _no_number(text: str) -> Any:
    raise GraphSyntaxError(f"{text} is no JSON number")


def _read_graph(form: Any) -> Graph:
    fields = _fields(form, {"name": str, "inputs": list, "nodes": list, "outputs": list,
                            "updates": list}, {})
    names: dict[str, Node] = {}
    for position, item in enumerate(fields["inputs"]):
        _define(names, _read_parameter(item, position))
    inputs = tuple(node.out() for node in names.values())
    for item in fields["nodes"]:
        _define(names, _read_node(item, names))
    parameters = {v.node.name: i for i, v in enumerate(inputs)}
    outputs = tuple(_value(ref, names) for ref in fields["outputs"])
    updates = tuple(_update(pair, parameters, names) for pair in fields["updates"])
    return Graph(inputs, outputs, updates, tuple(names.values()), fields["name"])


def _fields(
    form: Any, needed: Mapping[str, type], optional: Mapping[str, type]
) -> dict[str, Any]:
    if not isinstance(form, dict):
        raise GraphSyntaxError(f"expected an object with {', '.join(needed)}, found "
                               f"{_short(form)}")
    for key in needed:
        if key not in form:
            raise GraphSyntaxError(f"{_short(form)} has no {key!r}")
    for key, value in form.items():
        kind = needed.get(key) or optional.get(key)
        if kind is None:
            raise GraphSyntaxError(f"{key!r} does not belong to {_short(form)}")
        if type(value) is not kind:
            raise GraphSyntaxError(f"{key!r} of {_short(form)} is no {kind.__name__}")
    return form


def _short(form: Any) -> str:
    text = json.dumps(form)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _define(names: dict[str, Node], node: Node) -> None:
    if node.name in names:
        raise GraphSyntaxError(f"the name {node.name!r} is defined twice")
    names[node.name] = node


def _read_parameter(form: Any, position: int) -> Node:
    fields = _fields(form, {"name": str, "type": str}, {"path": str, "device": str})
    type_ = type_of(fields["type"])
    attrs = {"type": type_, "index": position, "path": fields.get("path", fields["name"])}
    return Node("Input", (), (type_,), attrs, name=fields["name"],
                device=fields.get("device", ""))


def _read_node(form: Any, names: Mapping[str, Node]) -> Node:
    fields = _fields(form, {"name": str, "op": str, "inputs": list, "types": list},
                     {"attrs": dict, "control": list, "device": str, "loc": list})
    inputs = [_value(ref, names) for ref in fields["inputs"]]
    control = [_named(name, names) for name in fields.get("control", ())]
    attrs = {key: read_attribute(value) for key, value in fields.get("attrs", {}).items()}
    return Node(fields["op"], inputs, _types(fields["types"]), attrs, name=fields["name"],
                loc=_loc(fields.get("loc")), control_inputs=control,
                device=fields.get("device", ""))


def _types(texts: list[Any]) -> tuple[TensorType, ...]:
    return tuple(map(type_of, texts))


def _named(name: Any, names: Mapping[str, Node]) -> Node:
    if type(name) is not str or name not in names:
        raise GraphSyntaxError(f"{_short(name)} is read before it is defined")
    return names[name]


def _value(ref: Any, names: Mapping[str, Node]) -> Value:
    name, colon, port = ref.rpartition(":") if type(ref) is str else ("", "", "")
    if not colon or not (port.isascii() and port.isdigit() and len(port) < 6):
        raise GraphSyntaxError(f"expected a value such as \"Mul:0\", found {_short(ref)}")
    node = _named(name, names)
    if int(port) >= len(node.types):
        raise GraphSyntaxError(f"{name!r} has {len(node.types)} outputs, no output {port}")
    return node.out(int(port))


def _update(pair: Any, parameters: Mapping[str, int], names: Mapping[str, Node]) -> Any:
    if type(pair) is not list or len(pair) != 2 or type(pair[0]) is not str or (
            pair[0] not in parameters):
        raise GraphSyntaxError(f"an update is a parameter and a value, not {_short(pair)}")
    return parameters[pair[0]], _value(pair[1], names)


def _loc(parts: Any) -> Loc | None:
    if parts is None:
        return None
    if [type(p) for p in parts] != [str, int, int, str, int]:
        raise GraphSyntaxError(f"{_short(parts)} is no place in a source")
    return Loc(*parts)


def read_attribute(form: Any) -> Any:
    """The attribute of a JSON form; raises `GraphSyntaxError`."""
    if type(form) is list:
        return tuple(map(read_attribute, form))
    if type(form) is not dict:
        return form
    if set(form) == {"graph"}:
        return _read_graph(form["graph"])
    if set(form) == {"attr"} and type(form["attr"]) is str:
        return attribute_of(form["attr"])
    if "computed" in form and sizes_are_open():
        return _computed(form)
    raise GraphSyntaxError(f"{_short(form)} is no attribute")


def _computed(form: Any) -> Any:
    try:
        return computed_of(form)
    except (ValueError, TypeError, ArithmeticError) as error:
        raise GraphSyntaxError(f"{_short(form)}: {error}") from None
