"""Joining the types, values and containers that two ways through a program leave in a variable."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

import numpy as np
import optree

from fusec.errors import user_error
from fusec.ir import Loc, TensorType, Value

from ..facts.layout import Strides, common
from ..facts.refusals import is_compiled
from ..facts.trees import flattened
from ..guards.contents import same as same_bits
from ..guards.places import UNBOUND
from ..operands.operands import as_traced, cast
from ..operands.python_numbers import interval
from ..values.array import TracedArray
from ..values.trace import Trace
from .choice import Choice
from .records import ObjectRecord

MOST_SHOWN = 6  # parts of a container in a message
_NUMBERS = (bool, int, float, complex, np.generic)


class Disagreement(Exception):
    """Two values that no variable can hold one of, decided at run time."""


def is_number(x: Any) -> bool:
    """Whether it is a Python or NumPy number, known or traced."""
    return isinstance(x, _NUMBERS) and (type(x) is not TracedArray or not x.is_array)


def lifted(trace: Trace, x: Any) -> Any:
    """A plain array as a traced one; anything else as it is."""
    return as_traced(trace, x) if type(x) is np.ndarray and is_compiled(x.dtype) else x


def is_traced(x: Any) -> bool:
    return type(x) is TracedArray


def same(a: Any, b: Any) -> bool:
    """Whether two values are one for the rest of the trace."""
    if a is b:
        return True
    if is_traced(a) and is_traced(b):
        if a.storage is not None or b.storage is not None:
            return a.storage is b.storage and a.steps == b.steps
        return bool(a.value == b.value)
    if is_traced(a) or is_traced(b):
        return False
    return type(a) is type(b) and isinstance(a, (*_NUMBERS, str, bytes, type(None))) and bool(
        same_bits(a, b))


def joined(a: TensorType, b: TensorType) -> TensorType:
    """The type that holds both: promotion is NumPy's; raises `Disagreement` for other shapes."""
    if a == b:
        return a
    if a.shape != b.shape:
        raise Disagreement
    dtype = a.dtype if a.dtype == b.dtype else _promoted(a, b)
    if a.is_weak and b.is_weak:
        return TensorType(dtype, (), "weak")
    return TensorType(dtype, a.shape, "array" if a.shape else "scalar")


def of_other_dtypes(a: TensorType, b: TensorType, are_variables: bool) -> bool:
    """Whether both are NumPy's and of two dtypes of one kind, which overflow or round elsewhere, or
    one a NumPy boolean and one a number: ``~x`` and ``x + x`` of them are something else; or both
    are arrays of two dtypes.

    Not so of a value that ``(c and x) or y`` tests again.
    """
    if a.is_weak and b.is_weak:
        return False
    kinds = {a.dtype.kind, b.dtype.kind}
    if are_variables and "b" in kinds and len(kinds) > 1:  # Python's become NumPy's numbers
        return any(not t.is_weak and t.dtype.kind == "b" for t in (a, b))
    if a.is_weak or b.is_weak or a.dtype == b.dtype:
        return False
    return kinds <= {"i", "u"} or len(kinds) == 1 or (a.kind == b.kind == "array")


def _promoted(a: TensorType, b: TensorType) -> np.dtype:
    if a.is_weak and b.is_weak:
        return np.result_type(a.dtype, b.dtype)
    return np.result_type(*(t.zero if t.is_weak else t.dtype for t in (a, b)))


def converted(trace: Trace, value: Value, type_: TensorType) -> Value:
    """The value as this type, which `joined` found; a Python number that it cannot hold raises."""
    if value.type == type_:
        return value
    if value.type.is_weak and type_.kind != "weak":
        check_holds(trace, value, type_.dtype)
    if type_.kind == "weak":
        return trace.emit("Cast", value, dtype=type_.dtype, kind="weak")
    if type_.kind == "array":
        return cast(trace, value, type_.dtype)
    return trace.emit("Cast", value, dtype=type_.dtype, kind="scalar")


def check_holds(trace: Trace, value: Value, dtype: np.dtype) -> None:
    """A variable has one dtype: raise where a Python number that meets it would become another."""
    if value.dtype == np.bool_ or np.can_cast(value.dtype, dtype):
        return
    ends = interval(trace, value) if value.dtype.kind == "i" else None
    if value.node.op == "Const":
        number = value.node.attrs["value"]
        if _holds(dtype, number):
            return
        what = repr(number)
    elif ends is not None and all(_holds(dtype, end) for end in ends):
        return
    else:
        what = "a Python int"
    raise user_error(
        TypeError, f"a variable that is {what} and {dtype} elsewhere: {dtype} cannot hold it",
        trace.loc, f"convert one of them, so that both have one dtype: int(x) or float(x) of the "
        f"element, or a number that {dtype} holds")


def _holds(dtype: np.dtype, number: Any) -> bool:
    """Whether the number keeps its value: integers exactly, floats up to rounding."""
    if isinstance(number, int):
        with np.errstate(all="ignore"):
            if dtype.kind in "iu":
                return bool(np.iinfo(dtype).min <= number <= np.iinfo(dtype).max)
            stored = dtype.type(number)
            return bool(np.isfinite(stored)) and int(stored.real) == number
    if dtype.kind not in "fc" or number != number:
        return dtype.kind in "fc"
    with np.errstate(all="ignore"):
        stored = dtype.type(number)
    return bool(np.isfinite(stored) == np.isfinite(number) and (stored != 0 or number == 0))


def common_strides(type_: TensorType, a: Any, b: Any) -> Strides | None:
    """Strides of a fresh array that holds one of two; None where they lie in different orders."""
    if not (type_.shape and is_traced(a) and is_traced(b)):
        return None
    return common(type_.shape, type_.dtype.itemsize, a.strides, b.strides)


def leaf_value(trace: Trace, x: Any) -> Value:
    """The graph value of a number or an array."""
    return as_traced(trace, x).value


def flatten(x: Any) -> tuple[list[Any], Any]:
    """The leaves of tuples, lists and dicts, and their structure."""
    return flattened(x)


def unflatten(structure: Any, leaves: list[Any]) -> Any:
    return optree.tree_unflatten(structure, leaves)


def over_leaves(f: Callable[[Any], Any], x: Any) -> Any:
    """The tree with ``f`` of its leaves."""
    leaves, structure = flatten(x)
    return unflatten(structure, [f(leaf) for leaf in leaves])


def merged(a: Any, b: Any, leaf: Callable[[Any, Any], Any]) -> Any:
    """One value for two, leaf by leaf; equal leaves stay the same."""
    if same(a, b):
        return a
    leaves_a, structure_a = flatten(a)
    leaves_b, structure_b = flatten(b)
    if structure_a != structure_b:
        raise Disagreement
    if structure_a.is_leaf():
        return leaf(a, b)
    pairs = zip(leaves_a, leaves_b, strict=True)
    return unflatten(structure_a, [x if same(x, y) else leaf(x, y) for x, y in pairs])


def misfit(a: Any, b: Any, leaf: Callable[[Any, Any], Any]) -> tuple[tuple[str, ...], Any, Any]:
    """The attribute, by its path, in which two objects differ that cannot be merged, and its values
    in both; no path for other things."""
    if type(a) is type(b) is Choice:
        return misfit(a.orelse, b.orelse, leaf)
    if not (type(a) is type(b) is ObjectRecord and a.kind is b.kind):
        return (), a, b
    values, others = dict(a.items()), dict(b.items())
    for name in dict.fromkeys([*values, *others]):
        x, y = values.get(name, UNBOUND), others.get(name, UNBOUND)
        try:
            merged(x, y, leaf)
        except Disagreement:
            path, x, y = misfit(x, y, leaf)
            return (name, *path), x, y
    return (), a, b


def shown(x: Any) -> str:
    """A value in an error message: its type when it is traced."""
    if is_traced(x):
        return str(x.type)
    if x is UNBOUND:
        return "not there"
    if type(x) is ObjectRecord:
        return x.kind.__name__
    if type(x) is Choice:
        return f"None or {shown(x.orelse)}" if x.then is None else shown(x.orelse)
    if type(x) in (tuple, list):
        parts = ", ".join(map(shown, x[:MOST_SHOWN])) + (", …" if len(x) > MOST_SHOWN else "")
        return f"[{parts}]" if type(x) is list else f"({parts}{',' * (len(x) == 1)})"
    if type(x) is dict:
        return "{" + ", ".join(f"{k!r}: {shown(v)}" for k, v in [*x.items()][:MOST_SHOWN]) + "}"
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        named = getattr(x, "__dict__", {}).items()
        items = [*map(shown, x), *(f"{k}={shown(v)}" for k, v in named)]
        return f"{type(x).__name__}({', '.join(items[:MOST_SHOWN])})"
    if type(x) is slice:
        return f"slice({shown(x.start)}, {shown(x.stop)}, {shown(x.step)})"
    if type(x) is np.ndarray:
        return f"an array of {x.dtype} with shape {x.shape}"
    return repr(x) if isinstance(x, (*_NUMBERS, str, type(None))) else type(x).__name__


def cure_for_kind(a: Any, b: Any) -> str:
    """The cure where data chooses one of two slices or texts; nothing for other things."""
    if type(a) is type(b) is slice:
        return "keep its bounds in variables, and slice with them: x[start:stop]"
    return "choose a number, and make the text of it after the call" if (
        type(a) is type(b) is str) else ""


def last_line(loc: Loc | None, code: CodeType) -> str:
    """The last line of a side; sides that are no code of the user's end where the trace was."""
    lines = [loc.line] if loc is not None else []
    if loc is not None and code.co_filename == loc.file:
        lines = list(_lines(code)) or lines
    return f"line {max(lines, default=0)}"


def _lines(code: CodeType) -> Iterator[int]:
    yield from (line for _, _, line in code.co_lines() if line)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _lines(inner)
