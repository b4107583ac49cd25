"""Sizes known only at run time: the results that define them, and their values in the program.

A result whose size depends on data defines a symbol.  The program sees such a size (``len(v)``,
``v.shape[0]``, ``v.size``) as a Python int of the run.  Where it is used as a size again
(``np.zeros(len(v))``), the expression over symbols that it stands for is recovered.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from fusec.core.records import dataclass, field
from fusec.errors import ConcreteValueError
from fusec.ir import Loc, Value
from fusec.ir.sizes.bindings import Bindings
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
from fusec.ir.sizes.polynomials import ARGUMENT
from fusec.ir.sizes.symbolic_numbers import Symbolic, applied
from fusec.ir.sizes.symbolic_sizes import plain_int
from fusec.ops.rows.sizes import SIZE_ARITHMETIC

from ..facts.constant_values import constant_value, is_constant, number_of_sizes
from ..facts.refusals import is_index
from ..values.array import TracedArray
from ..values.trace import Trace
from .python_numbers import Intervals, is_truth

# Bounds of a size as a Python int.
_INTERVAL = (0, (1 << 31) - 1)


@dataclass
class SizeTable:
    """Of a trace: symbols of sizes, the values that define them, and sizes as numbers."""

    locs: dict[str, Loc | None] = field(default_factory=dict)
    definers: dict[str, Value] = field(default_factory=dict)
    numbers: dict[Any, Value] = field(default_factory=dict)  # by size and regions
    # Symbols of sizes that change from iteration to iteration of a loop.
    carried: set[str] = field(default_factory=set)


def new_size(trace: Trace) -> Dim:
    """A new symbol: ``n``, ``n1``, ``n2`` and so on."""
    count = len(trace.part(SizeTable).locs)
    size = symbol(f"n{count}" if count else "n")
    trace.part(SizeTable).locs[str(size)] = trace.loc
    return size


def define(trace: Trace, value: Value) -> None:
    """Note the symbols that a new value's sizes define."""
    for name in symbols_of(value.shape):
        trace.part(SizeTable).definers.setdefault(name, value)


def number(trace: Trace, size: Size) -> Any:
    """A size as the program sees it: an int, or a traced int."""
    if not isinstance(size, Dim):
        return size
    value = trace.part(SizeTable).numbers.get((size, *trace.record.regions))
    if value is None:
        table = trace.part(SizeTable)
        sources = dict.fromkeys(table.definers[name] for name in sorted(size.symbols))
        value = trace.emit("Size", *sources, size=size)
        table.numbers[size, *trace.record.regions] = value
        trace.part(Intervals)[value] = _INTERVAL
    return TracedArray(trace, None, (), value)


def numbers(trace: Trace, x: Any) -> Any:
    """`number` of a size or of each of a tuple."""
    return tuple(number(trace, s) for s in x) if type(x) is tuple else number(trace, x)


def size_of(value: Value) -> Size | None:
    """The size that an integer of the graph stands for; None if it is computed of other things."""
    node = value.node
    if value.shape or value.dtype.kind not in "iu":
        return None
    if node.op == "Size":
        return node.attrs["size"]
    if node.op == "Const":
        return plain_int(node.attrs["value"])
    operands = [size_of(v) for v in node.inputs] if node.op in SIZE_ARITHMETIC else [None]
    if any(s is None for s in operands):
        return None
    return SIZE_ARITHMETIC[node.op](*operands)


def as_size(x: Any, otherwise: str = "") -> Size:
    """An argument that is a size: an int, or an expression over sizes; raises as ``index`` does.

    ``otherwise``: the cure for a length that only the run knows.
    """
    if type(x) is Dim:
        return x
    if type(x) is Symbolic:
        return applied(operator.index, x)
    if type(x) is TracedArray and x.ndim == 0:
        size = size_of(x.value)
        if size is not None:
            return size
        number = number_of_sizes(x.value) if x.dtype.kind == "i" else None
        if number is not None:
            return applied(int, number)
        if otherwise and is_index(x):
            return int(x.concrete("a length", otherwise))
    return operator.index(x)


def check_bounds(trace: Trace, entry: slice) -> None:
    """Refuse what is no bound or step of a slice, in Python's words."""
    for x in (entry.start, entry.stop, entry.step):
        is_traced = type(x) is TracedArray
        if x is not None and not (x.is_array or is_index(x) or is_truth(x) if is_traced else
                                  type(x) in (Dim, Symbolic) or hasattr(x, "__index__")):
            raise trace.error(TypeError(
                "slice indices must be integers or None or have an __index__ method"),
                [x.value] if is_traced else [])


def check_no_truth(trace: Trace, shape: Any) -> None:
    """NumPy takes no bools for sizes, which Python takes for ints."""
    if _is_truth(shape):
        raise trace.error(TypeError(
            f"expected a sequence of integers or a single integer, got '{_shown(shape)}'"))
    if isinstance(shape, (tuple, list)) and any(map(_is_truth, shape)):
        raise trace.error(TypeError("an integer is required"))


def check_axis_is_int(trace: Trace, axis: Any) -> None:
    """The same of axes, where NumPy reads them by its converter for axes."""
    if _is_truth(axis):
        raise trace.error(TypeError("an integer is required for the axis"))


def _is_truth(x: Any) -> bool:
    return x.dtype.kind == "b" if type(x) is TracedArray else isinstance(x, (bool, np.bool_))


def _shown(x: Any) -> Any:
    return constant_value(x.value) if type(x) is TracedArray and is_constant(x.value) else x


def not_negative(trace: Trace, size: Size, words: str) -> Size:
    """The size; refused in these words where it is negative, now or when the code runs."""
    if not isinstance(size, Dim):
        if size < 0:
            raise trace.error(ValueError(words))
        return size
    if is_at_least(size, 0):
        return size
    missing = number(trace, maximum(-size, 0)).value
    trace.check(trace.emit("LessEqual", missing, trace.builder.const(0)), ValueError(words))
    return maximum(size, 0)  # what follows may be computed before the check has raised


def is_number(x: Any) -> bool:
    """Whether an argument is a traced integer that is computed of symbols."""
    return type(x) is TracedArray and x.ndim == 0 and isinstance(size_of(x.value), Dim)


_MOST_TOLD = 4  # lengths that are too short, each with a check of its own


def unpackable(x: TracedArray, count: int) -> Any:
    """The operand of ``a, b = x``.  A length of the run is checked at run time.

    Items may be read before the check has raised, so their indices are kept in range.
    """
    trace, size = x.trace, x.shape[0]
    if not isinstance(size, Dim):
        return x
    length, expected = number(trace, size).value, trace.builder.const(count)
    trace.check(trace.emit("LessEqual", length, expected), ValueError(
        f"too many values to unpack (expected {count})"))
    for got in range(count if count <= _MOST_TOLD else 0):
        trace.check(trace.emit("NotEqual", length, trace.builder.const(got)), ValueError(
            f"not enough values to unpack (expected {count}, got {got})"))
    if count > _MOST_TOLD:
        trace.check(trace.emit("GreaterEqual", length, expected), ValueError(
            f"not enough values to unpack (expected {count})"))
    last = maximum(size - 1, 0)
    return tuple(x[number(trace, minimum(i, last))] for i in range(count))


def undecided(trace: Trace, error: UndecidedSizeError) -> ConcreteValueError:
    """The user's error for a question that only the run can answer."""
    names = sorted(error.dim.symbols)
    locs = trace.part(SizeTable).locs
    values = [(f"size {name}", f"of the result at {locs.get(name)}") for name in names]
    return ConcreteValueError(
        str(error), loc=trace.loc, values=values,
        cure="mark elements instead of selecting them (np.where(mask, x, 0)), or select outside "
             "the function and pass the result as an argument",
    )


class _Assignment(dict[str, int]):
    """A size for each symbol, by its number; ``own``: by how much those of arguments are longer."""

    def __init__(self, start: int, step: int, own: int = 0) -> None:
        super().__init__()
        self.start, self.step, self.own = start, step, own

    def __missing__(self, name: str) -> int:
        number = int(name.lstrip(f"n{ARGUMENT}") or 0)
        return self.start + self.step * number + self.own * name.startswith(ARGUMENT)


ORDINARY: Bindings = _Assignment(31, 7)
OTHER: Bindings = _Assignment(43, 13)
EQUAL: Bindings = _Assignment(31, 0)  # for operands whose sizes must agree
OTHER_EQUAL: Bindings = _Assignment(43, 0)
APART: Bindings = _Assignment(31, 7, 3)  # no size of the run is an argument's


def all_of_size(size: int) -> Bindings:
    """This size for every symbol: operands may have to agree with a known size."""
    return _Assignment(size, 0)
