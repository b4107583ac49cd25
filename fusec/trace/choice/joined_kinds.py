"""Numbers of which data decides whether they are an int or a float, Python's or NumPy's.

Where two ways through a program join, such a variable has one dtype: a float's.  Its value is
right; its Python type is not known while tracing.
"""

from __future__ import annotations

from typing import Any

from fusec.errors import unsupported
from fusec.ir import TensorType, Value
from fusec.ops import get

from ..convert.python_operators import BINARY
from ..operands.operands import as_traced
from ..operands.python_errors import check_perhaps_pythons, exception_of
from ..values.array import TracedArray
from ..values.trace import Trace

_MOST_NODES = 100


class JoinedKinds(set[Value]):
    """Of a trace: numbers that are ints or floats, as data decides."""


def note_joined(trace: Trace, joined: Value, *sides: Value) -> None:
    """Remember a number that is one of these, if their types differ."""
    if joined.type.kind != "array" and any(
            is_of_other_kind(side.type, joined.type) or is_open(trace, side) for side in sides):
        trace.part(JoinedKinds).add(joined)


def is_of_other_kind(a: TensorType, b: TensorType) -> bool:
    """Whether two types of numbers are other ones to ``isinstance``."""
    return a.is_weak != b.is_weak or a.dtype.kind != b.dtype.kind


def is_open(trace: Trace, value: Value) -> bool:
    """Whether data decides the kind of the number."""
    if not trace.part(JoinedKinds):
        return False
    todo, seen = [value], set[Value]()
    while todo and len(seen) < _MOST_NODES:
        number = todo.pop()
        if number in trace.part(JoinedKinds):
            return True
        if number not in seen and get(number.node.op).keeps_kind and not _is_asked_for(number):
            seen.add(number)
            operands = [v for v in number.node.inputs if v.dtype.kind != "b"]
            todo += () if any(map(_is_float, operands)) else operands
    return False


def _is_asked_for(value: Value) -> bool:
    """Whether the program made it of this kind: ``float(x)``, ``int(x)``."""
    if value.node.op != "Cast":
        return False
    before = value.node.inputs[0].type
    return value.dtype.kind not in "fc" or (value.type.is_weak and not before.is_weak)


def _is_float(value: Value) -> bool:
    """Whether it is one whatever data decides; an integer beside it has become a constant, too."""
    if value.node.op == "Const":
        return value.dtype.kind == "c" or (
            value.dtype.kind == "f" and value.node.attrs["value"] % 1 != 0)
    row = get(value.node.op)
    return value.dtype.kind in "fc" and not row.keeps_kind and not row.is_control


def check_division(trace: Trace, op: str, a: Any, b: Any) -> None:
    """Raise as Python where both numbers are its own, as data may have made them."""
    if not trace.part(JoinedKinds):
        return
    values = [as_traced(trace, x).value for x in (a, b) if _is_number(x)]
    opens = [is_open(trace, value) for value in values]
    if len(values) == 2 and any(opens) and all(
            value.type.is_weak or is_one for value, is_one in zip(values, opens, strict=True)):
        check_perhaps_pythons(trace, BINARY[op], values, opens[1])


def _is_number(x: Any) -> bool:
    return type(x) in (int, float) or _is_traced_number(x)


def check_kind(trace: Trace, fn: Any, x: Any) -> None:
    """Refuse ``isinstance(x, …)`` and ``type(x)`` of such a number."""
    if _is_traced_number(x) and is_open(trace, x.value):
        raise unsupported(
            f"{fn.__name__} of a number that is an integer or a float, Python's or NumPy's, as "
            "data decides", loc=trace.loc,
            cure="give it one kind on every way: 3.0 instead of 3")


def check_beside_sequence(trace: Trace, op: str, a: Any, b: Any) -> None:
    """Of a number and a list: NumPy's makes an array of it, Python's raises; one of either kind,
    as data decides, is refused."""
    for sequence, number in ((a, b), (b, a)):
        if type(sequence) not in (list, tuple) or not _is_traced_number(number):
            continue
        if is_open(trace, number.value):
            raise unsupported(
                f"a {type(sequence).__name__} beside a number that is Python's or NumPy's, as "
                "data decides,", loc=trace.loc,
                cure="np.asarray of the list, or one kind of number on every way: "
                     "np.float64(0.0) instead of 0.0")
        if number.type.is_weak:
            stand_in = number.dtype.type(1).item()
            error = exception_of(
                BINARY[op], *(stand_in if x is number else x for x in (a, b)))
            raise trace.error(error, [number.value])


def _is_traced_number(x: Any) -> bool:
    return type(x) is TracedArray and x.storage is None
