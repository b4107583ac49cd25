"""Integers that a launch function computes of sizes: expressions, and the branches that are taken.

How a kernel is launched is Python code over sizes (`Geometry`, `fixed_argument`), written for
integers.  Here it runs on `HostNumber` s: arithmetic makes expressions, and a comparison that
bounds do not decide is a branch of the C++ text.  `explored` runs the code once for each way
through its comparisons, and gives the tree of branches with its results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from fusec.core.records import dataclass

from ...exported.parts import NoTextError

MOST_LEAVES = 64
Bounds = tuple[int | None, int | None]


class HostExpr(NamedTuple):
    """An operation on integers: ``op`` with its operands, which are expressions or ints; a "text"
    of C++, of a parameter say, has that text."""

    op: str
    args: tuple[Any, ...]


@dataclass(frozen=True)
class Branch:
    """``condition`` is a pair whose first is less than, or equal to, the second."""

    op: str
    condition: tuple[Any, Any]
    yes: Any
    no: Any


class _Way:
    """One way through the comparisons: answers that are given, then "yes" to each further one."""

    def __init__(self, answers: tuple[bool, ...]) -> None:
        self.answers = answers
        self.asked: list[tuple[str, tuple[Any, Any]]] = []
        self.known: dict[tuple[str, tuple[Any, Any]], bool] = {}

    def answer(self, op: str, a: Any, b: Any) -> bool:
        question = op, (a, b)
        if question not in self.known:
            at = len(self.asked)
            self.asked.append(question)
            self.known[question] = self.answers[at] if at < len(self.answers) else True
        return self.known[question]


_way: ContextVar[_Way | None] = ContextVar("way", default=None)


def explored(compute: Callable[[], Any]) -> Any:
    """The result, or a `Branch` of results.  Raises `NoTextError` where there are too many."""
    count = 0

    def tree(answers: tuple[bool, ...]) -> Any:
        nonlocal count
        count += 1
        if count > MOST_LEAVES:
            raise NoTextError(f"launches in more than {MOST_LEAVES} ways")
        way = _Way(answers)
        with _taking(way):
            made = compute()
        given = [way.known[question] for question in way.asked]
        for at in reversed(range(len(answers), len(way.asked))):
            op, condition = way.asked[at]
            made = Branch(op, condition, made, tree((*given[:at], False)))
        return made

    return tree(())


@contextmanager
def _taking(way: _Way) -> Iterator[None]:
    token = _way.set(way)
    try:
        yield
    finally:
        _way.reset(token)


class HostNumber:
    """An integer of the host's; ``bounds`` are its least and its largest value, where known."""

    __slots__ = ("bounds", "expr")

    def __init__(self, expr: HostExpr, bounds: Bounds = (None, None)) -> None:
        self.expr, self.bounds = expr, bounds

    def __repr__(self) -> str:
        return f"<{self.expr}>"

    # -- arithmetic

    def __add__(self, other: Any) -> Any:
        (a, b), (c, d) = self.bounds, _bounds(other)
        return self if _is_zero(other) else _made("+", self, other, (_sum(a, c), _sum(b, d)))

    def __radd__(self, other: Any) -> Any:
        return self + other

    def __neg__(self) -> Any:
        low, high = self.bounds
        return _made("-", 0, self, (_negated(high), _negated(low)))

    def __sub__(self, other: Any) -> Any:
        if type(other) is int:
            return self + -other
        return _made("-", self, other, _minus(self.bounds, _bounds(other)))

    def __rsub__(self, other: Any) -> Any:
        return _made("-", other, self, _minus(_bounds(other), self.bounds))

    def __mul__(self, other: Any) -> Any:
        if type(other) is int and other in (0, 1):
            return self if other else 0
        return _made("*", self, other, _product(self.bounds, _bounds(other)))

    def __rmul__(self, other: Any) -> Any:
        return self * other

    def __floordiv__(self, other: Any) -> Any:
        a, b = self.bounds
        if type(other) is not int:  # sizes are divided by positive numbers alone
            least = None if a is None or a < 0 else 0
            return _made("//", self, other, (least, None if b is None else -1 if b < 0 else b))
        return self if other == 1 else _made("//", self, other, (
            None if a is None else a // other, None if b is None else b // other))

    def __rfloordiv__(self, other: Any) -> Any:
        return _made("//", other, self, (0, other) if other >= 0 else (None, 0))

    def __mod__(self, other: Any) -> Any:
        return _made("%", self, other, (0, other - 1 if type(other) is int else None))

    def __lshift__(self, other: Any) -> Any:
        return _made("<<", self, other, (0, None))

    def __rlshift__(self, other: Any) -> Any:
        return _made("<<", other, self, (0, None))

    def least(self, other: Any) -> Any:
        """The smaller one: see `least`."""
        return extremum("min", self, other)

    def most(self, other: Any) -> Any:
        """The larger one."""
        return extremum("max", self, other)

    def bit_length(self) -> HostNumber:
        """As an int's."""
        return HostNumber(HostExpr("bit_length", (self.expr,)), (0, 64))

    # -- comparisons

    def __lt__(self, other: Any) -> bool:
        return _is_less(self, other)

    def __gt__(self, other: Any) -> bool:
        return _is_less(other, self)

    def __ge__(self, other: Any) -> bool:
        return not _is_less(self, other)

    def __le__(self, other: Any) -> bool:
        return not _is_less(other, self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (int, HostNumber)):
            return NotImplemented
        (a, b), (c, d) = self.bounds, _bounds(other)
        if (b is not None and c is not None and b < c) or (
                a is not None and d is not None and a > d):
            return False
        return _plain(self) == _plain(other) or _asked("==", self, other)

    def __ne__(self, other: object) -> bool:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    def __bool__(self) -> bool:
        return self != 0

    def __hash__(self) -> int:
        return hash(self.expr)


def text_number(text: str, least: int | None = None) -> HostNumber:
    """The value of a C++ text."""
    return HostNumber(HostExpr("text", (text,)), (least, None))


def extremum(function: str, a: Any, b: Any) -> Any:
    """The "min" or "max" of two numbers, without a branch."""
    if type(a) is int and type(b) is int:
        return min(a, b) if function == "min" else max(a, b)
    (low, high), (low_b, high_b) = _bounds(a), _bounds(b)
    if high is not None and low_b is not None and high <= low_b:
        return a if function == "min" else b
    if low is not None and high_b is not None and low >= high_b:
        return b if function == "min" else a
    chosen: Any = min if function == "min" else max
    lows, highs = zip(_bounds(a), _bounds(b), strict=True)
    return _made(function, a, b, tuple(  # type: ignore[arg-type]
        None if None in each else chosen(each) for each in (lows, highs)))


def plain(x: Any) -> Any:
    """The expression of a number, or the int."""
    return x.expr if isinstance(x, HostNumber) else int(x)


_plain = plain


def _made(op: str, a: Any, b: Any, bounds: Bounds) -> HostNumber:
    return HostNumber(HostExpr(op, (_plain(a), _plain(b))), bounds)


def _bounds(x: Any) -> Bounds:
    return x.bounds if isinstance(x, HostNumber) else (int(x), int(x))


def _is_zero(x: Any) -> bool:
    return type(x) is int and x == 0


def _negated(x: int | None) -> int | None:
    return None if x is None else -x


def _product(a: Bounds, b: Bounds) -> Bounds:
    """Where one is no less than 0."""
    if (b[0] is None or b[0] < 0) and a[0] is not None and a[0] >= 0:
        a, b = b, a
    if b[0] is None or b[0] < 0:
        return None, None
    low, high = a
    low_factor = b[0] if low is not None and low >= 0 else b[1]
    high_factor = b[1] if high is not None and high >= 0 else b[0]
    return (None if low is None or low_factor is None else low * low_factor,
            None if high is None or high_factor is None else high * high_factor)


def _sum(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


def _minus(a: Bounds, b: Bounds) -> Bounds:
    return _sum(a[0], _negated(b[1])), _sum(a[1], _negated(b[0]))


def _is_less(a: Any, b: Any) -> bool:
    (low, high), (low_b, high_b) = _bounds(a), _bounds(b)
    if high is not None and low_b is not None and high < low_b:
        return True
    if low is not None and high_b is not None and low >= high_b:
        return False
    return _asked("<", a, b)


def _asked(op: str, a: Any, b: Any) -> bool:
    way = _way.get()
    if way is None:
        raise NoTextError("a size that is compared where no branch can be")
    return way.answer(op, _plain(a), _plain(b))


__all__ = ["Branch", "HostExpr", "HostNumber", "explored", "extremum", "plain", "text_number"]
