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

import functools
import re
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, NoReturn, Union

# An int, or a `Dim` where only the run knows it: most code handles both alike, typed for ints.
Size = Any
Monomial = tuple[Union[str, "Call"], ...]
Bounds = tuple[int | None, int | None]
Bindings = Mapping[str, int]


class UndecidedSizeError(TypeError):
    """A question about a size that only the run can answer; ``dim`` is the size."""

    def __init__(self, dim: Dim, what: str) -> None:
        super().__init__(f"{what} needs the size {dim}, which is only known when the code runs")
        self.dim = dim


class Call(NamedTuple):
    """``function(left, right)``: one of ``//``, ``%``, ``min``, ``max``."""

    function: str
    left: Size
    right: Size

    def __str__(self) -> str:
        if self.function in ("min", "max"):
            return f"{self.function}({self.left},{self.right})"
        return f"{_wrapped(self.left)}{self.function}{_wrapped(self.right)}"


def _wrapped(size: Size) -> str:
    text = str(size)
    return text if text.isalnum() else f"({text})"


_FUNCTIONS: dict[str, Callable[[int, int], int]] = {
    "//": lambda a, b: a // b, "%": lambda a, b: a % b, "min": min, "max": max,
}
_interned: weakref.WeakValueDictionary[tuple, Dim] = weakref.WeakValueDictionary()


class Dim:
    """An integer expression over symbols; see the module.  Made by `symbol` and arithmetic."""

    __slots__ = ("__weakref__", "_bounds", "_code", "_hash", "terms")
    terms: tuple[tuple[Monomial, int], ...]
    _hash: int
    _bounds: Bounds
    _code: Callable[..., Any]

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

    @property
    def symbols(self) -> frozenset[str]:
        """The names that a value of this size needs."""
        return frozenset(_symbols(self))

    @property
    def name(self) -> str | None:
        """The symbol that this size is, None for an expression."""
        if len(self.terms) == 1 and self.terms[0][1] == 1 and len(self.terms[0][0]) == 1:
            atom = self.terms[0][0][0]
            return atom if isinstance(atom, str) else None
        return None

    # -- values

    def evaluate(self, bindings: Bindings) -> int:
        """The size for these values of the symbols; ``KeyError`` names a symbol without one."""
        try:
            code = self._code
        except AttributeError:
            code = self._code = eval(f"lambda b: {self.source('b')}", {"min": min, "max": max})
        return int(code(bindings))

    def source(self, bindings: str) -> str:
        """A Python expression of the size that reads the symbols from a mapping of this name."""
        return _NAME.sub(lambda m: f"{bindings}[{m[0]!r}]", str(self))

    def __reduce__(self) -> Any:
        return parse_dim, (str(self),)

    def __repr__(self) -> str:
        return f"Dim({str(self)!r})"

    def __str__(self) -> str:
        text = ""
        for monomial, factor in sorted(self.terms, key=lambda t: (-len(t[0]), str(t[0]))):
            parts = [_atom_text(a) for a in monomial]
            if not parts or abs(factor) != 1:
                parts.insert(0, str(abs(factor)))
            text += ("-" if factor < 0 else "+" if text else "") + "*".join(parts)
        return text


def _undecided(dim: Dim, what: str) -> NoReturn:
    raise UndecidedSizeError(dim, what)


def _is_size(x: Any) -> bool:
    return type(x) is Dim or (isinstance(x, int) and type(x) is not bool)


def _atom_text(atom: str | Call) -> str:
    if isinstance(atom, str) or atom.function in ("min", "max"):
        return str(atom)
    return f"({atom})"


# ----------------------------------------------------------------------------------- construction


@functools.lru_cache(maxsize=1 << 14)
def _text_of(atom: str | Call) -> str:
    return str(atom)


def _make(terms: Mapping[Monomial, int]) -> Size:
    """The canonical size of these terms: an int where no symbol is left."""
    kept = {m: f for m, f in terms.items() if f}
    if not kept or set(kept) == {()}:
        return kept.get((), 0)
    key = tuple(sorted(kept.items(), key=lambda item: tuple(map(_text_of, item[0]))))
    found = _interned.get(key)
    if found is None:
        found = Dim.__new__(Dim)
        found.terms, found._hash = key, hash(key)
        found = _interned.setdefault(key, found)
    return found


_NAME = re.compile(r"\b(?!min\b|max\b)[A-Za-z_]\w*")


def symbol(name: str) -> Dim:
    """The size called ``name``, not negative; the same name is the same size."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"not a name of a size: {name!r}")
    result = _make({(name,): 1})
    assert isinstance(result, Dim)
    return result


def _terms(size: Size) -> dict[Monomial, int]:
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
    return _make({(Call(function, a, b),): 1})


def _quotient(a: Size, b: Size) -> Size:
    if not isinstance(b, Dim):
        if b == 0:
            raise ZeroDivisionError("integer division or modulo by zero")
        terms = _terms(a)
        if all(f % b == 0 for f in terms.values()):
            return _make({m: f // b for m, f in terms.items()})
        return _call("//", a, b)
    return 1 if a is b and bounds(b)[0] not in (None, 0) else _call("//", a, b)


def _remainder(a: Size, b: Size) -> Size:
    if not isinstance(b, Dim):
        if b == 0:
            raise ZeroDivisionError("integer division or modulo by zero")
        if all(f % b == 0 for f in _terms(a).values()):
            return 0
    return _call("%", a, b)


def _chosen(function: str, a: Size, b: Size, other: str) -> Size:
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
    return _chosen("min", a, b, "max")


def maximum(a: Size, b: Size) -> Size:
    """The larger size; a plain operand where bounds decide."""
    return _chosen("max", a, b, "min")


# ----------------------------------------------------------------------------------------- bounds


def bounds(size: Size) -> Bounds:
    """The least and the greatest value, ``None``: no limit is known."""
    if not isinstance(size, Dim):
        return size, size
    try:
        return size._bounds
    except AttributeError:  # sizes are interned, and expressions share parts: once for each
        size._bounds = _bounds(size)
    return size._bounds


def _bounds(size: Dim) -> Bounds:
    plain, cases = _interval(size), _by_cases(size)
    low = max((x for x in (plain[0], cases[0]) if x is not None), default=None)
    return low, min((x for x in (plain[1], cases[1]) if x is not None), default=None)


def _by_cases(size: Dim) -> Bounds:
    """Over both choices of the first ``min`` or ``max`` in the sum: ``n - max(n-1,0)`` is >= 0."""
    for monomial, factor in size.terms:
        atom = monomial[0] if len(monomial) == 1 else ""
        if isinstance(atom, Call) and atom.function in ("min", "max"):
            rest = size - _make({monomial: factor})
            first, second = bounds(rest + atom.left * factor), bounds(rest + atom.right * factor)
            return _least(first[0], second[0]), _most(first[1], second[1])
    return None, None


def _interval(size: Dim) -> Bounds:
    low: int | None = 0
    high: int | None = 0
    for monomial, factor in size.terms:
        below, above = _scaled(_monomial_bounds(monomial), factor)
        low = None if low is None or below is None else low + below
        high = None if high is None or above is None else high + above
    return low, high


def _scaled(limits: Bounds, factor: int) -> Bounds:
    low, high = (None if x is None else x * factor for x in limits)
    return (low, high) if factor > 0 else (high, low)


def _least(a: int | None, b: int | None) -> int | None:
    """The smaller bound; none where one is missing."""
    return None if a is None or b is None else min(a, b)


def _most(a: int | None, b: int | None) -> int | None:
    """The larger bound; none where one is missing."""
    return None if a is None or b is None else max(a, b)


def _monomial_bounds(monomial: Monomial) -> Bounds:
    """Of a product: exact for factors that are not negative, else unknown."""
    low: int = 1
    high: int | None = 1
    for atom in monomial:
        below, above = _atom_bounds(atom)
        if below is None or below < 0:
            return _atom_bounds(monomial[0]) if len(monomial) == 1 else (None, None)
        low, high = low * below, None if high is None or above is None else high * above
    return low, high


def _atom_bounds(atom: str | Call) -> Bounds:
    if isinstance(atom, str):
        return 0, None
    (low, high), (below, above) = bounds(atom.left), bounds(atom.right)
    if atom.function == "min":
        known = [x for x in (high, above) if x is not None]
        return None if low is None or below is None else min(low, below), min(known, default=None)
    if atom.function == "max":
        known = [x for x in (low, below) if x is not None]
        return max(known, default=None), _most(high, above)
    if below is None or below <= 0:
        return None, None
    if atom.function == "%":
        return 0, None if above is None else above - 1
    return 0 if low is not None and low >= 0 else None, None if high is None else max(high, 0)


def equal(a: Size, b: Size) -> bool:
    """Whether two sizes are the same number; raises `UndecidedSizeError` where only the run knows.
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


# ---------------------------------------------------------------------------- sizes inside of data


def _symbols(size: Size) -> Iterator[str]:
    for monomial, _ in size.terms if isinstance(size, Dim) else ():
        for atom in monomial:
            if isinstance(atom, str):
                yield atom
            else:
                yield from _symbols(atom.left)
                yield from _symbols(atom.right)


def symbols_of(data: Any) -> frozenset[str]:
    """The symbols of every size in plain data: a size, a shape, nested tuples, a type."""
    if isinstance(data, Dim):
        return data.symbols
    if isinstance(data, tuple):
        return frozenset().union(*map(symbols_of, data))
    return symbols_of(data.shape) if hasattr(data, "kind") and hasattr(data, "shape") and (
        type(data.shape) is tuple) else frozenset()


def is_static(sizes: Iterable[Any]) -> bool:
    """Whether all of these sizes are plain ints."""
    return not any(type(s) is Dim for s in sizes)


def resolve(data: Any, bindings: Bindings) -> Any:
    """Plain data with every size in it evaluated."""
    if isinstance(data, Dim):
        return data.evaluate(bindings)
    if type(data) is tuple:
        return tuple(resolve(item, bindings) for item in data)
    return data


def evaluator(sizes: Iterable[Size]) -> Callable[[Bindings], tuple[int, ...]]:
    """One function that evaluates all of these sizes, quicker than one by one."""
    parts = "".join(f"{size_source(s, 'b')}," for s in sizes)
    return eval(f"lambda b: ({parts})", {"min": min, "max": max})


def size_source(size: Size, bindings: str) -> str:
    """A Python expression of a size, which may be a plain number."""
    return size.source(bindings) if isinstance(size, Dim) else str(size)


def attrs_evaluator(attrs: Mapping[str, Any]) -> Callable[[Bindings], dict[str, Any]]:
    """A node's attributes with every size in them evaluated; the result is not to change."""
    if not symbols_of(tuple(attrs.values())):
        fixed = dict(attrs)
        return lambda bindings: fixed
    names: dict[str, Any] = {"min": min, "max": max}
    parts = (f"{name!r}: {_data_source(value, names)}" for name, value in attrs.items())
    made: Callable[[Bindings], dict[str, Any]] = eval(f"lambda b: {{{', '.join(parts)}}}", names)
    return made


def _data_source(data: Any, names: dict[str, Any]) -> str:
    if isinstance(data, Dim):
        return data.source("b")
    if type(data) is tuple and symbols_of(data):
        return f"({''.join(f'{_data_source(item, names)}, ' for item in data)})"
    name = f"value{len(names)}"
    names[name] = data
    return name


class _Typical(dict[str, int]):
    def __missing__(self, name: str) -> int:
        return TYPICAL


# What a symbol counts as where the compiler weighs sizes (the order of loops, say) and the answer
# changes speed alone: large and unknown, as the sizes of arrays are.
TYPICAL = 4099
_TYPICAL = _Typical()


def typical(size: Size) -> int:
    """The size itself, or what an unknown one is counted as; never for correctness."""
    return size.evaluate(_TYPICAL) if isinstance(size, Dim) else size


def bind(shape: tuple[Size, ...], found: tuple[int, ...], bindings: dict[str, int]) -> bool:
    """Match a shape found at run time with a type's: unknown symbols are bound, others compared."""
    if len(shape) != len(found):
        return False
    for size, number in zip(shape, found, strict=True):
        if isinstance(size, Dim) and size.name is not None:
            if bindings.setdefault(size.name, number) != number:
                return False
        elif resolve(size, bindings) != number:
            return False
    return True


# ---------------------------------------------------------------------------------------- parsing

_TOKEN = re.compile(r"\s*(\d+|[A-Za-z_]\w*|//|[-+*%(),])")


def parse_dim(text: str) -> Size:
    """The size that ``str`` printed; raises ``ValueError`` when the text is none."""
    tokens = _TOKEN.findall(text)
    if "".join(tokens) != text.replace(" ", ""):
        raise ValueError(f"not a size: {text!r}")
    parser = _DimParser(tokens, text)
    result = parser.sum()
    return result if not parser.tokens else parser.fail()


class _DimParser:
    def __init__(self, tokens: list[str], text: str) -> None:
        self.tokens, self.text = tokens, text

    def fail(self) -> NoReturn:
        raise ValueError(f"not a size: {self.text!r}")

    def accept(self, *texts: str) -> str:
        return self.tokens.pop(0) if self.tokens and self.tokens[0] in texts else ""

    def expect(self, text: str) -> None:
        if not self.accept(text):
            self.fail()

    def sum(self) -> Size:
        total: Size = -self.product() if self.accept("-") else self.product()
        while sign := self.accept("+", "-"):
            total = total + self.product() if sign == "+" else total - self.product()
        return total

    def product(self) -> Size:
        result = self.atom()
        while sign := self.accept("*", "//", "%"):
            right = self.atom()
            result = (result * right if sign == "*" else
                      result // right if sign == "//" else result % right)
        return result

    def atom(self) -> Size:
        if self.accept("("):
            result = self.sum()
            self.expect(")")
            return result
        token = self.tokens.pop(0) if self.tokens else self.fail()
        if token.isdigit():
            return int(token)
        if token in ("min", "max"):
            self.expect("(")
            left = self.sum()
            self.expect(",")
            right = self.sum()
            self.expect(")")
            return minimum(left, right) if token == "min" else maximum(left, right)
        return symbol(token) if _NAME.fullmatch(token) else self.fail()


def parse_shape(text: str) -> tuple[Size, ...]:
    """The sizes between a type's brackets: ``3,max(n-1,0)``."""
    parts, depth, start = [], 0, 0
    for at, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and not depth:
            parts.append(text[start:at])
            start = at + 1
    return tuple(parse_dim(p) for p in [*parts, text[start:]]) if text else ()
