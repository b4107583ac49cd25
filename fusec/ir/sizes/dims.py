"""Sizes that are known only when the compiled code runs: integer expressions over symbols.

A `Dim` is a polynomial with integer coefficients whose variables are *atoms*: symbols (names such
as ``n``, bound at run time by a node's result or a loop counter) and the calls ``a//b``, ``a%b``,
``min(a,b)`` and ``max(a,b)`` that do not reduce further.  Dims are canonical and interned: equal
expressions are one object, and ``==`` is structural (``n == 3`` is False: the sizes are not known
to be equal).  A symbol is never negative.

A `Dim` is no int.  Using it as one (``int``, ``range``, ``if``) and comparing it where its bounds
do not decide raise `UndecidedSizeError`, so that no size can silently become a constant.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn

from fusec.core.tracers import note_made

from .bounds import bounds
from .polynomials import NAME, Call, Monomial, Polynomial, Size, is_argument, text_of, weight_of


class UndecidedSizeError(TypeError):
    """A question about a size that only the run can answer; ``dim`` is the size."""

    def __init__(self, dim: Dim, what: str) -> None:
        super().__init__(f"{what} needs the size {dim}, which is only known when the code runs")
        self.dim = dim
        note_made(self)


_FUNCTIONS: dict[str, Callable[[int, int], int]] = {
    "//": lambda a, b: a // b, "%": lambda a, b: a % b, "min": min, "max": max,
}
MOST_WEIGHT = 2000  # symbols and numbers in an expression
_interned: weakref.WeakValueDictionary[tuple, Dim] = weakref.WeakValueDictionary()


class Dim(Polynomial):
    """An integer expression over symbols; see the module.  Made by `symbol` and arithmetic."""

    __slots__ = ()

    # -- arithmetic

    def __add__(self, other: Any) -> Any:
        return _sum(self, other, 1) if _is_size(other) else NotImplemented

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return _sum(self, other, -1) if _is_size(other) else NotImplemented

    def __rsub__(self, other: Any) -> Any:
        return _sum(-self, other, 1) if _is_size(other) else NotImplemented

    def __neg__(self) -> Size:
        return self * -1

    def __pos__(self) -> Dim:
        return self

    def __mul__(self, other: Any) -> Any:
        return _product(self, other) if _is_size(other) else NotImplemented

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        return _quotient(self, other) if _is_size(other) else NotImplemented

    def __rfloordiv__(self, other: Any) -> Any:
        return _quotient(other, self) if _is_size(other) else NotImplemented

    def __mod__(self, other: Any) -> Any:
        return _remainder(self, other) if _is_size(other) else NotImplemented

    def __rmod__(self, other: Any) -> Any:
        return _remainder(other, self) if _is_size(other) else NotImplemented

    # -- questions

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return self._hash

    def __lt__(self, other: Any) -> bool:
        return self._decide(other, "<", lambda low, high: low is not None and low > 0,
                            lambda low, high: high is not None and high <= 0)

    def __le__(self, other: Any) -> bool:
        return self._decide(other, "<=", lambda low, high: low is not None and low >= 0,
                            lambda low, high: high is not None and high < 0)

    def __gt__(self, other: Any) -> bool:
        return not self <= other

    def __ge__(self, other: Any) -> bool:
        return not self < other

    def _decide(self, other: Any, what: str, yes: Any, no: Any) -> bool:
        if not _is_size(other):
            raise TypeError(f"a size cannot be compared with {type(other).__name__}")
        low, high = bounds(other - self)
        if yes(low, high):
            return True
        return False if no(low, high) else _undecided(self, f"{self} {what} {other}")

    def __abs__(self) -> Size:
        low, high = bounds(self)
        if low is not None and low >= 0:
            return self
        if high is not None and high <= 0:
            return -self
        return maximum(self, -self)

    def __bool__(self) -> bool:
        low, _ = bounds(self)
        return True if low is not None and low > 0 else _undecided(self, "a truth value")

    def __index__(self) -> int:
        _undecided(self, "an int")

    __int__ = __index__

    def __float__(self) -> float:
        _undecided(self, "a float")

    def __reduce__(self) -> Any:
        return _make, (dict(self.terms),)

    def without(self, monomial: Monomial) -> Size:
        return _make({m: f for m, f in self.terms if m != monomial})

    def __repr__(self) -> str:
        return f"Dim({str(self)!r})"


def _undecided(dim: Dim, what: str) -> NoReturn:
    raise UndecidedSizeError(dim, what)


def _is_size(x: Any) -> bool:
    return type(x) is Dim or (isinstance(x, int) and type(x) is not bool)


# ----------------------------------------------------------------------------------- construction


def _make(terms: Mapping[Monomial, int]) -> Size:
    """The canonical size of these terms: an int where no symbol is left."""
    nonzero = {m: f for m, f in terms.items() if f}
    if not nonzero or set(nonzero) == {()}:
        return nonzero.get((), 0)
    key = tuple(sorted(nonzero.items(), key=lambda item: tuple(map(text_of, item[0]))))
    size = _interned.get(key)
    if size is None:
        size = Dim.__new__(Dim)
        size.terms, size._hash = key, hash(key)
        size = _interned.setdefault(key, size)
    return size


def symbol(name: str) -> Dim:
    """The size called ``name``, which the run defines: an integer that is not negative.

    The same name is the same object.  Raises ``ValueError`` for a malformed name, and for names of
    arguments' sizes, which `argument_size` makes.
    """
    if is_argument(name):
        raise ValueError(f"a size of an argument of a trace, which no text can name: {name!r}")
    return _symbol(name)


def argument_size(name: str) -> Dim:
    """The symbol of an argument's size; traces are made for sizes of at least 2."""
    assert is_argument(name)
    return _symbol(name)


def _symbol(name: str) -> Dim:
    if not NAME.fullmatch(name):
        raise ValueError(f"not a name of a size: {name!r}")
    result = _make({(name,): 1})
    assert isinstance(result, Dim)
    return result


def _terms(size: Size) -> dict[Monomial, int]:
    size = getattr(size, "expression", size)  # where it is a `Symbolic` number
    return dict(size.terms) if isinstance(size, Dim) else {(): int(size)}


def _sum(a: Size, b: Size, sign: int) -> Size:
    terms = _terms(a)
    for monomial, factor in _terms(b).items():
        terms[monomial] = terms.get(monomial, 0) + sign * factor
    return _make(terms)


def _product(a: Size, b: Size) -> Size:
    terms: dict[Monomial, int] = {}
    for m, f in _terms(a).items():
        for n, g in _terms(b).items():
            both = tuple(sorted((*m, *n), key=str))
            terms[both] = terms.get(both, 0) + f * g
    return _make(terms)


def _call(function: str, a: Size, b: Size) -> Size:
    if not isinstance(a, Dim) and not isinstance(b, Dim):
        return _FUNCTIONS[function](a, b)
    if weight_of(a) + weight_of(b) > MOST_WEIGHT:  # each step of an unrolled loop may treble it
        first = symbol(min((a if isinstance(a, Dim) else b).symbols))
        raise UndecidedSizeError(first, "an expression of thousands of terms")
    return _make({(Call(function, a, b),): 1})


def _quotient(a: Size, b: Size) -> Size:
    turns = _turns(a, b)
    if turns is not None:
        return turns
    if not isinstance(b, Dim):
        if b == 0:
            raise ZeroDivisionError("integer division or modulo by zero")
        terms = _terms(a)
        if all(f % b == 0 for f in terms.values()):
            return _make({m: f // b for m, f in terms.items()})
        return _call("//", a, b)
    return 1 if a is b and bounds(b)[0] not in (None, 0) else _call("//", a, b)


def _turns(a: Size, b: Size) -> int | None:
    """``a // b`` where bounds prove that it is 0 or -1: ``-1 % n`` is ``n - 1``."""
    low, high = bounds(a)
    if not isinstance(b, Dim) or low is None:
        return None
    if low >= 0:
        return 0 if is_at_least(b - a, 1) else None
    return -1 if high is not None and high < 0 and is_at_least(a + b, 0) else None


def _remainder(a: Size, b: Size) -> Size:
    turns = _turns(a, b)
    if turns is not None:
        return a - turns * b
    if not isinstance(b, Dim):
        if b == 0:
            raise ZeroDivisionError("integer division or modulo by zero")
        if all(f % b == 0 for f in _terms(a).values()):
            return 0
    return _call("%", a, b)


def _extremum(function: str, a: Size, b: Size, other: str) -> Size:
    if isinstance(a, Dim) or isinstance(b, Dim):  # numbers of an open trace end with it
        a, b = getattr(a, "expression", a), getattr(b, "expression", b)
    if a == b:
        return a
    low, high = bounds(a - b)
    a_is_larger = low is not None and low >= 0
    if a_is_larger or (high is not None and high <= 0):
        return a if a_is_larger == (function == "max") else b
    ordered = sorted((a, b), key=lambda s: (not isinstance(s, Dim), str(s)))
    return _call(function, *ordered)


def minimum(a: Size, b: Size) -> Size:
    """The smaller size; a plain operand where bounds decide."""
    return _extremum("min", a, b, "max")


def maximum(a: Size, b: Size) -> Size:
    """The larger size; a plain operand where bounds decide."""
    return _extremum("max", a, b, "min")


def equal(a: Size, b: Size) -> bool:
    """Whether two sizes are the same number.

    Raises `UndecidedSizeError` where only the run knows.
    """
    low, high = bounds(a - b)
    if a is b or (low, high) == (0, 0):
        return True
    unknown = next((s for s in (a, b) if isinstance(s, Dim)), None)
    if unknown is None or (low is not None and low > 0) or (high is not None and high < 0):
        return bool(a == b)
    _undecided(unknown, f"{a} == {b}")


def is_at_least(size: Size, limit: int) -> bool:
    """Whether the bounds prove ``size >= limit``."""
    low, _ = bounds(size)
    return low is not None and low >= limit


_NO_SYMBOLS: frozenset[str] = frozenset()


def symbols_of(data: Any) -> frozenset[str]:
    """The symbols of every size in plain data: a size, a shape, nested tuples, a type."""
    if isinstance(data, Dim):
        return data.symbols
    if isinstance(data, tuple):
        found = _NO_SYMBOLS
        for item in data:
            if type(item) is not int and (symbols := symbols_of(item)):
                found |= symbols
        return found
    return symbols_of(data.shape) if hasattr(data, "kind") and hasattr(data, "shape") and (
        type(data.shape) is tuple) else _NO_SYMBOLS


def is_static(sizes: Iterable[Any]) -> bool:
    """Whether all of these sizes are plain ints."""
    return not any(type(s) is Dim for s in sizes)
