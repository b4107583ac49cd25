"""Draws from NumPy's generators that need no call of Python, as `drawings` has them.

The arguments of the method become numbers for the C function, and conditions under which the method
takes them as they are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from fusec.core.records import dataclass
from fusec.ir import Node
from fusec.ir.sizes.dims import Dim, symbols_of
from fusec.ops.calls.drawings import CHOICE, F32, F64, Drawing, Parameter, find

from ..builder import Builder
from ..loops.graph_builder import GraphBuilder
from ..memory import BOOL, I64, ZERO, Constant, Operand, View, contiguous, is_dense

DIMENSIONS = ("rand", "randn")  # methods whose arguments are the sizes of the result
HUGE = 1e18  # a rate of `numpy.random` below which none is refused


@dataclass(frozen=True)
class Request:
    """A draw, its ``arguments`` as C numbers, and what has to hold for native code to make it.

    Its numbers may be narrower than the result: a method gives single ones as Python's floats.
    """

    drawing: Drawing
    arguments: tuple[Operand, ...]
    holds: tuple[Operand, ...] = ()
    chosen_from: View | None = None  # the array of which the number is a place


def request_of(graph: GraphBuilder, node: Node) -> Request | None:
    """The draw that a host call makes; None: only Python can make it."""
    if node.attrs["action"] != "draw" or len(node.types) != 2 or not _has_place(graph, node):
        return None
    if node.attrs["method"] == CHOICE.method:
        return _choice(graph, node)
    drawing = _drawing(node)
    given = None if drawing is None else _arguments(node, drawing)
    if drawing is None or given is None:
        return None
    given = {name: _number(graph, node, x) for name, x in given.items()}
    if any(x is None for x in given.values()):
        return None
    return _bounded(graph.builder, node, drawing, given) if drawing.is_bounded else (
        _of_floats(graph.builder, drawing, given))


def _drawing(node: Node) -> Drawing | None:
    """The row of the method and the dtype that it is told, or else gives."""
    method, result = node.attrs["method"], node.types[0]
    named = {name: form for _, name, form in node.attrs["named"][1:]}
    told = named.get("dtype")
    drawing = find(method, result.dtype)
    if told is None and drawing is not None:
        extra = node.attrs["form"][1 + len(drawing.parameters):]
        told = extra[1] if len(extra) == 2 and method not in DIMENSIONS else None
    if told is None or type(told) is tuple:
        return drawing if told is None else None
    narrow = np.dtype(told)
    fits = narrow == result.dtype or (result.kind != "array" and narrow == F32)
    return find(method, narrow) if fits and result.dtype.kind == narrow.kind else None


def _has_place(graph: GraphBuilder, node: Node) -> bool:
    """Whether the result is a number, or an array whose size is known before and that has no gaps.
    """
    result = node.types[0]
    if result.kind != "array":
        return True
    if not symbols_of(result.shape) <= {*graph.builder.shared.outer, *graph.builder.sizes}:
        return False
    sizes = [1 if isinstance(size, Dim) else size for size in result.shape]
    return not any(isinstance(size, Dim) for size in result.shape[1:]) and is_dense(
        result.shape, contiguous(sizes, result.dtype.itemsize), result.dtype.itemsize)


# -- the arguments that the method was given


def _arguments(node: Node, drawing: Drawing) -> dict[str, Any] | None:
    """The forms of the numbers, by parameter; None for a call that is not understood."""
    names = [p.name for p in drawing.parameters]
    positional = node.attrs["form"][1:]
    given = dict(zip(names, positional, strict=False))
    for _, name, form in node.attrs["named"][1:]:
        if name in names:
            given[name] = form
        elif not _is_of_the_result(drawing, name, form):
            return None
    extra = positional[len(names):]
    if extra and not _says_size(drawing, extra):
        return None
    missing = [p for p in drawing.parameters if p.name not in given and p.default is None]
    if missing and not (drawing.is_bounded and missing == [drawing.parameters[1]]):
        return None
    return given


def _is_of_the_result(drawing: Drawing, name: str, form: Any) -> bool:
    """Whether an argument says what the result's type has already."""
    if name == "method":
        return bool(form == "zig")
    return name in ("size", "dtype") or (name == "endpoint" and drawing.is_bounded and (
        type(form) is bool))


def _says_size(drawing: Drawing, forms: tuple[Any, ...]) -> bool:
    """Whether further arguments by position are a size, then perhaps a dtype."""
    return len(forms) <= 2 or drawing.method in DIMENSIONS


def _number(graph: GraphBuilder, node: Node, form: Any) -> Operand | None:
    """A number of the graph or of the program; None for anything else."""
    if type(form) is tuple:
        if form[0] != "operand":
            return None
        value = node.inputs[1 + form[1]]
        return None if value.type.kind == "array" or value.dtype.kind not in "biuf" else (
            graph.scalar(value))
    if isinstance(form, (bool, int, np.integer, np.bool_)):
        fits = -(1 << 63) <= int(form) < 1 << 63
        return graph.builder.constant(I64, int(form)) if fits else None
    return Constant(float(form), F64) if isinstance(form, (float, np.floating)) else None


# -- what they become


def _of_floats(
    build: Builder, drawing: Drawing, given: Mapping[str, Operand]
) -> Request:
    arguments: list[Operand] = []
    holds: list[Operand] = []
    for parameter in drawing.parameters:
        x = _as_float(build, given.get(parameter.name, Constant(parameter.default, F64)))
        if parameter.holds == "above":
            x = build.let("sub", F64, x, arguments[-1])
        holds += _conditions(build, parameter, x)
        arguments.append(x)
    return Request(drawing, tuple(arguments), tuple(holds))


def _as_float(build: Builder, x: Operand) -> Operand:
    if isinstance(x, Constant):
        return Constant(float(x.value), F64)
    return x if x.dtype == F64 else build.let("cast", F64, x)


def _conditions(build: Builder, parameter: Parameter, x: Operand) -> list[Operand]:
    """What NaN, a sign or a size that NumPy looks at would break."""
    if parameter.holds == "any":
        return []
    above: list[Operand] = [build.let("gt", BOOL, x, Constant(0.0, F64))]
    most = {"above": math.inf, "rate": HUGE, "probability": 1.0}.get(parameter.holds)
    return above if most is None else [*above, build.let("lt", BOOL, x, Constant(most, F64))]


def _bounded(
    build: Builder, node: Node, drawing: Drawing, given: Mapping[str, Operand]
) -> Request | None:
    """The first integer, how many more there are, and whether they are drawn by a mask."""
    if any(x.dtype.kind not in "iu" or x.dtype == np.uint64 for x in given.values()):
        return None
    low, high = (_as_int(build, given[name]) if name in given else Constant(0, I64)
                 for name in ("low", "high"))
    if "high" not in given:
        low, high = high, low
    endpoint = any(pair[1:] == ("endpoint", True) for pair in node.attrs["named"][1:])
    last = high if endpoint else build.let("sub", I64, high, Constant(1, I64))
    holds = [build.let("le" if endpoint else "lt", BOOL, low, high)]
    if drawing.dtype != I64:
        limits = np.iinfo(drawing.dtype)
        holds += [build.let("ge", BOOL, low, build.constant(I64, limits.min)),
                  build.let("le", BOOL, last, build.constant(I64, limits.max))]
    more = build.let("sub", I64, last, low)
    masked = Constant(int(drawing.method == "randint"), I64)
    return Request(drawing, (low, more, masked), tuple(holds))


def _choice(graph: GraphBuilder, node: Node) -> Request | None:
    """An element of a range or of an array, all as likely; with weights Python chooses."""
    build, forms = graph.builder, node.attrs["form"][1:]
    plain = {"size", "shuffle"} | {name for name, usual in (("replace", True), ("p", None)) if (
        name, usual) in [pair[1:] for pair in node.attrs["named"][1:]]}
    named = {name: form for _, name, form in node.attrs["named"][1:]}
    if not 1 <= len(forms) <= 2 or not plain >= named.keys():
        return None
    array = _array_of(graph, node, forms[0])
    count = _number(graph, node, forms[0]) if array is None else build.number(array.shape[0])
    if count is None or count.dtype.kind not in "iu" or count.dtype == np.uint64 or (
            array is not None and node.types[0].kind == "array"):
        return None
    count = _as_int(build, count)
    last = build.let("sub", I64, count, Constant(1, I64))
    holds = (build.let("gt", BOOL, count, ZERO),)
    return Request(CHOICE, (ZERO, last, ZERO), holds, array)


def _array_of(graph: GraphBuilder, node: Node, form: Any) -> View | None:
    """The operand, if it is an array of one axis."""
    if type(form) is not tuple or form[0] != "operand":
        return None
    value = node.inputs[1 + form[1]]
    return graph.array(value) if value.type.kind == "array" and value.type.rank == 1 else None


def _as_int(build: Builder, x: Operand) -> Operand:
    return x if x.dtype == I64 else build.let("cast", I64, x)
