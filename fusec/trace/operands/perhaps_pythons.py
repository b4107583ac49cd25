"""Numbers that the graph holds as NumPy's, and that are Python's where data says so:
``s = 0.0 if test else x.sum()``.

They have NumPy's dtype and value; attributes that a Python number lacks, ``s.sum()``, raise where
it is one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fusec.core.records import dataclass, replace
from fusec.errors import unsupported
from fusec.ir import Value

from ..values.array import TracedArray
from ..values.trace import Trace

_CERTAIN: Any = object()
_KINDS: dict[str, type] = {"b": bool, "i": int, "u": int, "f": float, "c": complex}


@dataclass(frozen=True)
class Decided:
    """The test that makes a number Python's where it has this truth, and the kind that it then is.
    """

    test: Value
    truth: bool
    kind: type


class Pythons(dict[Value, Decided | None]):
    """Of a trace: such numbers; None where several things decide."""


def is_perhaps_pythons(trace: Trace, value: Value) -> bool:
    """Whether the number is Python's, in some runs at least."""
    return value.type.is_weak or value in trace.part(Pythons)


def note_pythons(trace: Trace, value: Value) -> None:
    """Remember a number that is Python's in some runs."""
    if value.type.kind == "scalar":
        trace.part(Pythons).setdefault(value, None)


def note_choice(trace: Trace, value: Value, test: Value, sides: tuple[Value, ...]) -> None:
    """Remember a number that is one of two, as the test decides, if one is Python's."""
    if value.type.kind != "scalar" or not any(is_perhaps_pythons(trace, v) for v in sides):
        return
    decided = None
    if not any(v in trace.part(Pythons) for v in sides):
        truth = sides[0].type.is_weak
        decided = Decided(test, truth, _KINDS[sides[not truth].dtype.kind])
    trace.part(Pythons)[value] = decided


def note_computed(trace: Trace, operator: Any, result: Any, *operands: Any) -> None:
    """Remember an operator's result of numbers that are Python's in some runs."""
    if type(result) is TracedArray and result.storage is None and trace.part(Pythons) and all(
            map(_is_perhaps_pythons, operands)):
        note_pythons(trace, result.value)
        found = [of for x in operands if type(x) is TracedArray and (
            of := trace.part(Pythons).get(x.value, _CERTAIN)) is not _CERTAIN]
        if len(found) == 1 and found[0] is not None and result.value in trace.part(Pythons):
            kind = type(operator(*(_kind(trace, x)(1) for x in operands)))
            trace.part(Pythons)[result.value] = replace(found[0], kind=kind)


def _is_perhaps_pythons(x: Any) -> bool:
    if type(x) is TracedArray:
        return x.storage is None and is_perhaps_pythons(x.trace, x.value)
    return type(x) in _KINDS.values()


def _kind(trace: Trace, x: Any) -> type:
    """Of Python's numbers that it is, or may be."""
    decided = trace.part(Pythons).get(x.value) if type(x) is TracedArray else None
    return x.__class__ if decided is None else decided.kind


def check_numpys(x: TracedArray, error: Callable[[str], Exception], what: str) -> None:
    """Raise the error, made of the name of its kind, where the number is Python's."""
    if x.value not in x.trace.part(Pythons):
        return
    decided = x.trace.part(Pythons)[x.value]
    if decided is None:
        raise _refusal(x, what)
    trace = x.trace
    trace.check(trace.emit("LogicalNot", decided.test) if decided.truth else decided.test,
                error(decided.kind.__name__))


def check_attribute(x: TracedArray, name: str, *, is_asked: bool = False) -> None:
    """Raise as Python where the number has no such attribute; ``is_asked`` is told of
    attributes that both have, and of none else."""
    if x.storage is not None or x.value not in x.trace.part(Pythons):
        return
    decided = x.trace.part(Pythons)[x.value]
    kind = _KINDS[x.dtype.kind] if decided is None else decided.kind
    if hasattr(kind, name) == hasattr(x.__class__, name):
        return
    if is_asked or hasattr(kind, name):
        raise _refusal(x, f"the attribute {name!r}")
    check_numpys(x, lambda named: AttributeError(
        f"{named!r} object has no attribute {name!r}"), f"the attribute {name!r}")


def check_iterable(x: Any, text: str) -> None:
    """Raise that a number is not iterable: the text with the name of its kind."""
    if type(x) is TracedArray and x.storage is None:
        check_numpys(x, lambda kind: TypeError(text.format(kind)), "iteration")
        raise x.trace.error(TypeError(text.format(x.kind_name)), [x.value])


def _refusal(x: TracedArray, what: str) -> Exception:
    return unsupported(
        f"{what} of a number that data makes Python's or NumPy's", loc=x.trace.loc,
        cure="give it one kind on every way: np.float64(0.0) instead of 0.0")
