"""The nodes that a graph which is read in may have: a column of each row.

A graph from a file is a stranger's program.  Of every node its op's `Admission` names the
attributes and the kind of plain data of each, and proves the assumptions of kernels: that
slices, axes and permutations lie within their operands.  An attribute that only tracing can know
(``safe``, ``chunk``) is a *claim*: it is dropped.  A row without an admission is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from fusec.core.records import dataclass, field
from fusec.ir import Graph, Node, TensorType, Value, is_supported_dtype
from fusec.ir.device_names import LOSSY, DeviceName
from fusec.ir.sizes.bounds import range_of
from fusec.ir.sizes.dims import (
    Dim,
    Size,
    UndecidedSizeError,
    is_at_least,
    maximum,
    minimum,
    symbol,
    symbols_of,
)

MOST_SIZE = 1 << 40
MOST_INT = 1 << 62
INDEX = np.dtype(np.int64)


class NotAdmitted(ValueError):
    """Why a node is refused; with its ``cure``."""

    def __init__(self, why: str, cure: str = "") -> None:
        super().__init__(why)
        self.cure = cure


class Kind(NamedTuple):
    """A kind of plain data, in words and as a test."""

    words: str
    holds: Callable[[Any], bool]


Limits = dict[int, tuple[int, Size]]  # operand number → axis, what the index must be below


@dataclass(frozen=True, eq=False)
class Admission:
    """The conditions on one row's nodes.

    ``attrs`` must be there and ``optional`` ones may; of ``claims`` none is believed: each gets the
    value that stands here.  ``rule`` raises `NotAdmitted` where its proof fails.  ``limits`` says
    of a node which operands are indices, of which axis, and below which limit: that is proven, or
    else checked when the code runs.  ``floors`` are operands that count as 0 where they are
    negative.  ``refused``: no node of this row is admitted, for this reason.
    """

    attrs: Mapping[str, Kind] = field(default_factory=dict)
    optional: Mapping[str, Kind] = field(default_factory=dict)
    claims: Mapping[str, Any] = field(default_factory=dict)
    rule: Callable[[Node], None] | None = None
    limits: Callable[[Node], Limits] | None = None
    floors: tuple[int, ...] = ()
    refused: str = ""
    cure: str = ""


def _is_int(x: Any) -> bool:
    return type(x) is int and -MOST_INT <= x <= MOST_INT


def is_size(x: Any) -> bool:
    """Whether it is a size that is not negative, whatever its symbols are."""
    if type(x) is int:
        return 0 <= x <= MOST_SIZE
    return isinstance(x, Dim) and is_at_least(x, 0)


def _tuple_of(item: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda x: type(x) is tuple and all(map(item, x))


def is_type(x: Any) -> bool:
    return isinstance(x, TensorType)


INT = Kind("an integer", _is_int)
INTS = Kind("integers", _tuple_of(_is_int))
BOOL = Kind("True or False", lambda x: type(x) is bool)
PERMITTED = Kind("True", lambda x: x is True)
BOOLS = Kind("Trues and Falses", _tuple_of(lambda x: type(x) is bool))
NUMBER = Kind("a number", lambda x: _is_int(x) or type(x) is float)
SIZE = Kind("a size", is_size)
LIMIT = Kind("a size", lambda x: is_size(x) or (type(x) is int and 0 <= x <= MOST_INT))
SIZES = Kind("sizes", _tuple_of(is_size))
STARTS = Kind("integers or sizes", _tuple_of(lambda x: _is_int(x) or isinstance(x, Dim)))
DTYPE = Kind("a dtype", lambda x: isinstance(x, np.dtype) and is_supported_dtype(x))
TYPES = Kind("types", _tuple_of(is_type))
TEXT = Kind("a text", lambda x: type(x) is str and len(x) <= 1000)
TEXTS = Kind("texts", _tuple_of(TEXT.holds))
GRAPH = Kind("a graph", lambda x: isinstance(x, Graph))
KIND = Kind('"array", "scalar" or "weak"', lambda x: x in ("array", "scalar", "weak"))
CONSTANT = Kind("a number", lambda x: type(x) in (bool, int, float, complex) or (
    isinstance(x, np.generic) and is_supported_dtype(x.dtype)))
ANYTHING = Kind("plain data", lambda x: True)

PLAIN = Admission()
BY_PASSES = Admission(
    refused="is made by fusec's own passes", cure="give the graph as traced, f.concrete(x).graph")


# --------------------------------------------------------------------------------------- proofs


def require(holds: bool, why: str, cure: str = "") -> None:
    if not holds:
        raise NotAdmitted(why, cure)


def is_below(size: Size, limit: Size) -> bool:
    """Whether the bounds prove ``size < limit``."""
    return is_at_least(limit - size, 1)


def check_axes(axes: Sequence[int], rank: int, what: str = "axes") -> None:
    """Axes are different ones of an array of this rank, counted from 0."""
    require(all(0 <= a < rank for a in axes) and len(set(axes)) == len(axes),
            f"{what} {tuple(axes)} are not different axes of an operand of rank {rank}")


def check_region(
    shape: Sequence[Size], starts: Sequence[Size], steps: Sequence[int], sizes: Sequence[Size]
) -> None:
    """A region of steps lies within a shape, whatever the symbols are."""
    symbols = symbols_of((tuple(shape), tuple(starts), tuple(sizes)))
    try:
        _check_region(shape, starts, steps, sizes)
    except NotAdmitted:
        if len(symbols) != 1:
            raise
        (name,) = symbols
        for value in (*range(SMALL), symbol(name) + SMALL):  # one by one, then all others
            _check_region(*(tuple(_at(size, name, value) for size in part)
                            for part in (shape, starts, steps, sizes)))


SMALL = 4  # sizes up to here are tried, where cases such as ``max(n-1,0)`` end


def _at(size: Size, name: str, value: Size) -> Size:
    """The size for this value of its symbol."""
    if not isinstance(size, Dim):
        return size
    return eval(size.source("at"), {"min": minimum, "max": maximum, "at": {name: value}})


def _check_region(
    shape: Sequence[Size], starts: Sequence[Size], steps: Sequence[int], sizes: Sequence[Size]
) -> None:
    require(len(shape) == len(starts) == len(steps) == len(sizes),
            f"starts {starts}, steps {steps} and sizes {sizes} do not fit rank {len(shape)}")
    for axis, (length, start, step, size) in enumerate(
            zip(shape, starts, steps, sizes, strict=True)):
        require(step != 0, f"the step along axis {axis} is 0")
        last = start + (size - 1) * step
        require(size == 0 or (_not_negative(start, size) and _not_negative(last, size)
                              and _not_negative(length - 1 - start, size)
                              and _not_negative(length - 1 - last, size)),
                f"start {start}, step {step}, size {size} along axis {axis} are not proven to lie "
                f"in its length {length}")


def _not_negative(number: Size, size: Size) -> bool:
    """Whether a number is at least 0 where ``size`` is at least 1."""
    return is_at_least(number, 0) or is_at_least(number - (size - 1), 0)


def is_beginning(first: Value, count: Value, length: Size, size: Size) -> bool:
    """Whether it is the first elements, no more than the limits of slices behind it allow."""
    if first.node.op != "Const" or first.node.attrs["value"] != 0 or count.node.op != "Size" or (
            count.node.attrs["size"] != size):
        return False
    if type(length) is not int:
        return is_least_of(size, length)
    behind = [v.node.attrs for v in count.node.inputs if v.node.op == "Extent"]
    limits = {a["length"]: a["limit"] for a in behind if type(a["limit"]) is int}
    return symbols_of(size) <= limits.keys() and range_of(size, limits)[1] <= length


def is_least_of(size: Size, length: Size) -> bool:
    """Whether a size is ``length``, or the smaller of it and other sizes: ``min(n1,n)`` of ``n``.
    """
    if size is length or (type(size) is type(length) and size == length):
        return True
    if not isinstance(size, Dim) or len(size.terms) != 1:
        return False
    (atoms, factor), = size.terms
    if factor != 1 or len(atoms) != 1 or isinstance(atoms[0], str) or atoms[0].function != "min":
        return False
    return any(is_least_of(part, length) for part in (atoms[0].left, atoms[0].right))


def check_index(value: Value, length: Size, axis: int) -> None:
    """An index of one element: an int64 number, in range if it is a constant."""
    require(value.dtype == INDEX and not value.shape,
            f"the index of axis {axis} is {value.type}, not an int64 number")
    if value.node.op == "Const" and not isinstance(length, Dim):  # else the run looks at it
        number = int(value.node.attrs["value"])
        require(number >= 0 and is_below(number, length),
                f"the index {number} is not proven to be below the length {length} of axis {axis}")


def check_number(value: Value, what: str) -> None:
    require(value.dtype == INDEX and not value.shape, f"{what} is {value.type}, not an int64")


def known_size(number: Value) -> Size | None:
    """The int64 as a size, where it is a constant or a size of the run; casts to any other dtype
    wrap."""
    while number.node.op == "Cast" and number.dtype == INDEX == number.node.inputs[0].dtype:
        number = number.node.inputs[0]
    if number.node.op == "Size":
        size: Size = number.node.attrs["size"]
        return size
    if number.node.op == "Const" and number.dtype == INDEX:
        return int(number.node.attrs["value"])
    return None


def check_read(value: Value, op: str) -> None:
    """The second result of an ``Extent`` has a size and no memory."""
    require(value.node.op != "Extent" or value.index == 0 or op == "Size",
            f"of {value.node.name}:1 only the size may be read")


def at_least_one(count: Size, what: str) -> None:
    """Known numbers are checked here; those of the run, by the run."""
    require(isinstance(count, Dim) or count >= 1, f"{what} of nothing has no value")


def well_formed(type_: TensorType, most_bytes: int) -> None:
    """Invariants of every type: sizes that are not negative, numbers of rank 0, memory that a
    machine has."""
    require(type_.kind in ("array", "scalar", "weak") and (
        type_.kind == "array" or not type_.shape), f"{type_.kind} values have no axes")
    if type_.kind == "weak":
        require(type_.dtype in _WEAK, f"no Python number is {type_.dtype}")
    require(type_.rank <= 32, f"{type_.rank} axes are more than 32")
    if not all(map(is_size, type_.shape)):
        raise NotAdmitted(f"a size of {type_} may be negative, or is too large")
    fixed = TensorType(type_.dtype, tuple(s for s in type_.shape if type(s) is int))
    if fixed.nbytes > most_bytes:
        raise NotAdmitted(f"a value of type {type_} takes {fixed.nbytes} bytes, more than the "
                          f"{most_bytes} of this machine")


@lru_cache(maxsize=256)
def check_device(constraint: str) -> None:
    """A node's place can be read, and is no device that computes nothing."""
    place, lossy, sends = constraint.partition("~")
    require(not lossy or sends == LOSSY, f"nothing is sent as {sends!r}")
    try:
        name = DeviceName.parse(place.partition("@")[0])
    except ValueError as error:
        raise NotAdmitted(str(error)) from None
    require(name.type != "NULL", "its results are not computed on the device NULL",
            "name another device, or none")


_WEAK = tuple(map(np.dtype, ("?", "i8", "f8", "c16")))

__all__ = ["Admission", "Kind", "NotAdmitted", "UndecidedSizeError"]


def check_known(
    first: Value, count: Value, length: Size, step: int, size: int, axis: int
) -> None:
    """A slice of known length has that length, and is shorter than its axis."""
    check_number(first, "where a slice begins")
    require(count.node.op == "Const" and count.node.attrs["value"] == size,
            f"the length of its slice of axis {axis} is not the {size} that it says")
    require(type(length) is int and step > 0 and size > 0 and length - (size - 1) * step > 0,
            f"a slice of {size} elements by {step} does not fit the length {length} of axis {axis}")


def check_slice(
    first: Value, count: Value, length: Size, step: int, size: Size, axis: int
) -> None:
    """A slice is one that an ``Extent`` of its axis gives, or a beginning."""
    check_number(first, "where a slice begins")
    if step == 1 and is_beginning(first, count, length, size):
        return
    extent = first.node
    fits = extent.op == "Extent" and first.index == 0 and extent.attrs["step"] == step and (
        extent.attrs["limit"] is length or extent.attrs["limit"] == length)
    fits = fits and isinstance(size, Dim) and size.name == extent.attrs["length"]
    counted = count.node.op == "Size" and count.node.attrs["size"] is size
    require(fits and counted, f"its slice of axis {axis} is not proven to lie in the length "
            f"{length}", "slice where the bounds are computed, in the same branch or loop")
