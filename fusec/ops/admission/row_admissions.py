"""The admissions of fusec's own rows: their attributes, and their proofs."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from fusec.ir import Graph, Node, TensorType
from fusec.ir.sizes.dims import symbols_of

from ..registry import all_ops, get
from .admission import (
    ANYTHING,
    BOOLS,
    CONSTANT,
    DTYPE,
    GRAPH,
    INDEX,
    INT,
    INTS,
    KIND,
    LIMIT,
    NUMBER,
    SIZE,
    SIZES,
    STARTS,
    TEXT,
    TEXTS,
    TYPES,
    Admission,
    Limits,
    at_least_one,
    check_axes,
    check_index,
    check_known,
    check_number,
    check_region,
    check_slice,
    known_size,
    require,
)
from .claims import claimed_dtypes

# --- sources


def _const(node: Node) -> None:
    value, type_ = node.attrs["value"], node.types[0]
    if node.attrs["kind"] == "weak":
        require(type(value) in (bool, int, float, complex), f"{value!r} is no Python number")
        require(type(value) is not int or -(1 << 63) <= value < 1 << 63,
                f"the constant {value} does not fit into 64 bits")
    else:
        require(isinstance(value, np.generic) and value.dtype == type_.dtype,
                f"{value!r} is no number of NumPy's")


CONST = Admission({"value": CONSTANT, "kind": KIND}, rule=_const)
IOTA = Admission({"size": SIZE, "dtype": DTYPE})

# --- elementwise


def _reinterpret(node: Node) -> None:
    old, new = node.inputs[0].dtype, node.attrs["dtype"]
    require(old.itemsize == new.itemsize and new.kind in "iuf",
            f"the bits of {old} are not those of {new}")


def _with_part(node: Node) -> None:
    whole, part = (v.dtype for v in node.inputs)
    require(part == np.dtype(f"f{whole.itemsize // 2}"), f"{part} is no part of {whole}")


def _wraps_index(node: Node) -> None:
    check_number(node.inputs[1], "the length of an axis")
    require(node.inputs[0].dtype == INDEX, f"indices are {node.inputs[0].dtype}, not int64")


def _of_booleans(node: Node) -> None:
    require(all(v.dtype.kind == "b" for v in node.inputs), "its operands are not booleans")


def _power(node: Node) -> None:
    require(node.inputs[0].dtype.kind in "fc", "powers of integers are calls of np.power")


POWER = Admission(rule=_power)
OF_BOOLEANS = Admission(rule=_of_booleans)
CAST = Admission({"dtype": DTYPE}, {"kind": KIND})
REINTERPRET = Admission({"dtype": DTYPE}, {"kind": KIND}, rule=_reinterpret)
WHERE = Admission(optional={"kind": KIND})
WITH_PART = Admission(rule=_with_part)
CHECK_INDEX = Admission({"axis": INT}, {"lanes": INT}, rule=_wraps_index, floors=(1,))

# --- views and pieces


def _is_array(node: Node, number: int = 0) -> TensorType:
    type_ = node.inputs[number].type
    require(type_.kind == "array", f"operand {number} is {type_}, not an array")
    return type_


def _slice(node: Node) -> None:
    check_region(_is_array(node).shape, *(node.attrs[k] for k in ("starts", "steps", "sizes")))


def _slice_update(node: Node) -> None:
    _slice(node)
    value, target = node.inputs[1].type, node.inputs[0].type
    require(value.shape == node.attrs["sizes"] and value.dtype == target.dtype,
            f"the value is {value}, the region of {target} is {node.attrs['sizes']}")


def _transpose(node: Node) -> None:
    perm, rank = node.attrs["perm"], _is_array(node).rank
    check_axes(perm, rank, "perm")
    require(len(perm) == rank, f"perm {perm} does not name the {rank} axes")


def _expand_dims(node: Node) -> None:
    axes = node.attrs["axes"]
    check_axes(axes, node.inputs[0].type.rank + len(axes))
    require(list(axes) == sorted(axes), f"axes {axes} are not in order")


def _squeeze(node: Node) -> None:
    shape, axes = _is_array(node).shape, node.attrs["axes"]
    check_axes(axes, len(shape))
    require(all(shape[a] == 1 for a in axes), f"axes {axes} of {shape} are not all of length 1")


def _diagonal(node: Node) -> None:
    check_axes(node.attrs["axes"], _is_array(node).rank)
    require(len(node.attrs["axes"]) == 2, "a diagonal has two axes")
    require(abs(node.attrs["offset"]) < 1 << 31, "the offset is too large")  # as NumPy's own int


def _concat(node: Node) -> None:
    require(bool(node.inputs), "it joins nothing")
    axis, first = node.attrs["axis"], _is_array(node)
    check_axes((axis,), first.rank)
    for number in range(len(node.inputs)):
        type_ = _is_array(node, number)
        require(type_.dtype == first.dtype and _without(type_, axis) == _without(first, axis)
                and type_.rank == first.rank, f"{type_} does not fit {first} along axis {axis}")


def _without(type_: TensorType, axis: int) -> tuple[Any, ...]:
    return (*type_.shape[:axis], *type_.shape[axis + 1:])


_REGION = {"starts": STARTS, "steps": INTS, "sizes": SIZES}
SLICE = Admission(_REGION, rule=_slice)
SLICE_UPDATE = Admission(_REGION, rule=_slice_update)
SHAPED = Admission({"shape": SIZES})
TRANSPOSE = Admission({"perm": INTS}, rule=_transpose)
EXPAND_DIMS = Admission({"axes": INTS}, rule=_expand_dims)
SQUEEZE = Admission({"axes": INTS}, {"kind": KIND}, rule=_squeeze)
DIAGONAL = Admission({"axes": INTS, "offset": INT}, rule=_diagonal)
CONCAT = Admission({"axis": INT}, rule=_concat)

# --- indices


def _gather(node: Node) -> None:
    _gathered(node, node.inputs[1:])


def _gathered(node: Node, indices: Any) -> None:
    axes, rank = node.attrs["axes"], _is_array(node).rank
    check_axes(axes, rank)
    require(bool(axes) and len(axes) == len(indices), f"{len(indices)} indices for axes {axes}")
    require(all(v.dtype == INDEX for v in indices), "indices are not all int64")
    require(0 <= node.attrs["at"] <= rank - len(axes), f"there is no place {node.attrs['at']}")


def _scatter(node: Node) -> None:
    require(len(node.inputs) >= 3, "it needs a target, a value and indices")
    _gathered(node, node.inputs[2:])
    combine = node.attrs.get("combine", "")
    require(combine == "" or _combines(combine, node.inputs[0].dtype),
            f"{combine!r} does not join elements of {node.inputs[0].dtype}")


def _combines(name: str, dtype: np.dtype) -> bool:
    row = next((row for row in all_ops() if row.name == name and row.combines), None)
    return row is not None and dtype in claimed_dtypes(row)


def _lengths(first: int, node: Node) -> Limits:
    shape, axes = node.inputs[0].shape, node.attrs["axes"]
    return {number: (axis, shape[axis]) for number, axis in enumerate(axes, first)}


def _pick(node: Node) -> None:
    _picked(node, 1)


def _pick_update(node: Node) -> None:
    _picked(node, 2)


def _picked(node: Node, before: int) -> None:
    shape, axes = _is_array(node).shape, node.attrs["axes"]
    check_axes(axes, len(shape))
    require(len(node.inputs) == before + len(axes), f"{len(axes)} indices are needed")
    for axis, index in zip(axes, node.inputs[before:], strict=True):
        check_index(index, shape[axis], axis)


GATHER = Admission({"axes": INTS, "at": INT}, {"kind": KIND}, rule=_gather,
                   limits=partial(_lengths, 1))
SCATTER = Admission({"axes": INTS, "at": INT}, {"combine": TEXT}, {"chunk": None}, rule=_scatter,
                    limits=partial(_lengths, 2))
_CLAIMED = {"safe": (), "unchecked": None}
PICK = Admission({"axes": INTS}, {"kind": KIND}, _CLAIMED, rule=_pick)
PICK_UPDATE = Admission({"axes": INTS}, {}, _CLAIMED, rule=_pick_update)

# --- slices whose bounds the run decides


def _extent(node: Node) -> None:
    given = node.attrs["given"]
    require(len(given) == 2 and len(node.inputs) == sum(given), "it takes the bounds that it names")
    require(0 < abs(node.attrs["step"]) < 1 << 31, "the step is 0, or too large")
    for value in node.inputs:
        check_number(value, "a bound")


def _window(node: Node) -> None:
    _windowed(node, node.inputs[1:])


def _window_update(node: Node) -> None:
    require(len(node.inputs) >= 2, "it needs a value")
    _windowed(node, node.inputs[2:])


def _windowed(node: Node, places: Any) -> None:
    """Each slice is one that an ``Extent`` of that axis gives, or has a known length: then where it
    begins is checked."""
    shape = _is_array(node).shape
    axes, steps, sizes = (node.attrs[k] for k in ("axes", "steps", "sizes"))
    check_axes(axes, len(shape))
    require(len(steps) == len(sizes) == len(axes) and 0 not in steps,
            "its steps must be known", "write a slice with a step that is a constant")
    require(len(places) == 2 * len(axes), "it needs the first index and the length of each slice")
    for k, axis in enumerate(axes):
        count = places[len(axes) + k]
        if type(sizes[k]) is int:
            check_known(places[k], count, shape[axis], steps[k], sizes[k], axis)
        else:
            check_slice(places[k], count, shape[axis], steps[k], sizes[k], axis)


def _firsts(before: int, node: Node) -> Limits:
    """Where slices of known length begin."""
    axes, steps, sizes = (node.attrs[k] for k in ("axes", "steps", "sizes"))
    shape = node.inputs[0].shape
    return {before + k: (axis, shape[axis] - (sizes[k] - 1) * steps[k])
            for k, axis in enumerate(axes) if type(sizes[k]) is int}


def _reserve(node: Node) -> None:
    """A size that does not fit is found when the code is made, or runs."""
    shape = node.attrs["shape"]
    require(len(shape) == _is_array(node).rank and all(type(n) is int for n in shape),
            f"{shape} is no shape that it could be the beginning of")


EXTENT = Admission({"given": BOOLS, "step": INT, "limit": LIMIT, "length": TEXT}, rule=_extent)
_WINDOW = {"axes": INTS, "steps": INTS, "sizes": SIZES}
WINDOW = Admission(_WINDOW, rule=_window, limits=partial(_firsts, 1))
WINDOW_UPDATE = Admission(_WINDOW, rule=_window_update, limits=partial(_firsts, 2))
RESERVE = Admission({"shape": SIZES}, rule=_reserve)

# --- reductions, scans, products


def _reduction(node: Node) -> None:
    axes, shape = node.attrs["axes"], _is_array(node).shape
    check_axes(axes, len(shape))
    require(list(axes) == sorted(axes), f"axes {axes} are not in order")
    row, dtype = get(node.op), node.inputs[0].dtype
    require(not row.of_booleans or dtype.kind != "b", f"booleans are joined by {row.of_booleans}")
    if row.chooses:
        at_least_one(math.prod(shape[a] for a in axes), node.op)


def _scan(node: Node) -> None:
    axes = node.attrs["axes"]
    check_axes(axes, _is_array(node).rank)
    require(len(axes) == 1, "a scan has one axis")
    logical = node.attrs["combine"].startswith("Logical")
    require(logical == (node.inputs[0].dtype.kind == "b") or not logical,
            f"{node.attrs['combine']} does not combine {node.inputs[0].dtype}")


def _matmul(node: Node) -> None:
    require(node.inputs[0].dtype == node.inputs[1].dtype, "its operands differ in dtype")


REDUCTION = Admission({"axes": INTS}, rule=_reduction)
SPREAD = Admission({"axes": INTS, "ddof": NUMBER}, rule=_reduction)
SCAN = Admission({"combine": TEXT, "axes": INTS}, rule=_scan)
MATMUL = Admission(rule=_matmul)

# --- sizes


def _fill(node: Node) -> None:
    shape = node.attrs["shape"]
    require(len(node.inputs) == 1 + len(shape), "it takes a value and each size")
    for size, value in zip(shape, node.inputs[1:], strict=True):
        check_number(value, "a size")
        require(known_size(value) == size, f"{value.name} is not proven to be the size {size}")


def _size(node: Node) -> None:
    symbols = symbols_of(tuple(v.shape for v in node.inputs))
    missing = symbols_of(node.attrs["size"]) - symbols
    require(not missing, f"no operand has the size {', '.join(sorted(missing))}")


def _counters(node: Node) -> None:
    for value in node.inputs:
        check_number(value, "a bound")
    require(0 <= node.attrs["minlength"] < 1 << 40 and len(node.types) == 1
            and node.types[0].rank == 1, "it gives one array of one axis")


FILL = Admission({"shape": SIZES}, rule=_fill)
SIZE_NUMBER = Admission({"size": SIZE}, rule=_size)
COUNTERS = Admission({"results": TYPES, "minlength": INT}, rule=_counters)

# --- branches and loops


def _fits(graph: Graph, types: Any, changed: int, what: str) -> None:
    input_types = tuple(v.type for v in graph.inputs)
    require(input_types == tuple(types), f"{what} takes {_shown(input_types)}, its operands are "
            f"{_shown(types)}")
    require(all(i < changed and graph.inputs[i].type.kind == "array" for i, _ in graph.updates),
            f"{what} changes what its node does not say")


def _shown(types: Any) -> str:
    return f"({', '.join(map(str, types))})"


def _is_truth(type_: TensorType) -> bool:
    return not type_.shape and type_.dtype == np.bool_


def _cond(node: Node) -> None:
    require(bool(node.inputs), "it needs a test")
    test, rest = node.inputs[0].type, [v.type for v in node.inputs[1:]]
    require(_is_truth(test), f"its test is {test}, not one bool")
    changed = node.attrs["changed"]
    require(0 <= changed <= len(rest) and all(t.kind == "array" for t in rest[:changed]),
            f"{changed} of its operands are not arrays that it changes")
    for side in ("then", "orelse"):
        _fits(node.attrs[side], rest, changed, f"the side {side!r}")


def _loop(node: Node) -> None:
    types, carried = [v.type for v in node.inputs], node.attrs["carried"]
    require(0 <= carried <= len(types), f"it carries {carried} of {len(types)} operands")
    require(len(node.attrs.get("names", ())) in (0, carried), "it does not name what it carries")
    _fits(node.attrs["test"], types, 0, "its test")
    _fits(node.attrs["body"], types, carried, "its body")
    outputs = node.attrs["test"].outputs
    require(len(outputs) == 1 and _is_truth(outputs[0].type), "its test does not give one bool")


_TWIN = {"extends": None}  # what another node computes, and more
COND = Admission({"then": GRAPH, "orelse": GRAPH, "changed": INT}, {}, _TWIN, rule=_cond)
LOOP = Admission({"test": GRAPH, "body": GRAPH, "carried": INT},
                 {"names": TEXTS}, {**_TWIN, "lanes": None}, rule=_loop)

# --- what stays where it is

HOST = Admission(
    refused="calls an object of the program that was traced, which no text holds",
    cure="make random numbers with fusec.random, or draw and print outside of the graph")
SCALAR = Admission(
    refused="calls a function of fusec.vectorize, which no text holds",
    cure="write it with NumPy's functions")
INPUT = Admission({"type": ANYTHING, "index": INT, "path": TEXT})
