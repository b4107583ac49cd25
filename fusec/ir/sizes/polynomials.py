"""Polynomials with integer coefficients in symbols and calls: the parts of a `Dim`."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Union

# An int, or a `Dim` where only the run knows it: most code handles both alike, typed for ints.
Size = Any
Monomial = tuple[Union[str, "Call"], ...]
Bounds = tuple[int | None, int | None]


def is_argument(name: str) -> bool:
    """Whether a symbol stands for a size of an argument."""
    return name.startswith(ARGUMENT) and name[len(ARGUMENT):].isdecimal()


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


# Symbols ``s0``, ``s1``, … are sizes of arguments and at least 2, for calls with a size of 0 or 1
# have traces of their own.  Every other name is of a size that the run defines.
ARGUMENT = "s"
LEAST_ARGUMENT, MOST_ARGUMENT = 2, 1 << 47  # bytes that processors address
NAME = re.compile(r"\b(?!min\b|max\b)[A-Za-z_]\w*")


def _only_symbol(terms: tuple[tuple[Monomial, int], ...]) -> str | None:
    if len(terms) == 1 and terms[0][1] == 1 and len(terms[0][0]) == 1:
        atom = terms[0][0][0]
        return atom if isinstance(atom, str) else None
    return None


class Polynomial:
    """A `Dim` without its arithmetic: terms, text, value, and caches of these."""

    __slots__ = ("__weakref__", "_bounds", "_code", "_hash", "_name", "_text", "_weight", "terms")
    terms: tuple[tuple[Monomial, int], ...]
    _hash: int
    _bounds: Bounds
    _code: Callable[..., Any]
    _name: str | None
    _text: str
    _weight: int

    def without(self, monomial: Monomial) -> Size:
        """The sum of the other terms."""
        raise NotImplementedError

    @property
    def symbols(self) -> frozenset[str]:
        """The sizes defined by the run that a value of this one needs.

        Sizes of arguments are left out: they are known before any node runs.
        """
        return frozenset(name for name in _symbols(self) if not is_argument(name))

    @property
    def weight(self) -> int:
        """The number of symbols and numbers in its text."""
        try:
            return self._weight
        except AttributeError:
            self._weight = sum(weight_of(atom) for monomial, _ in self.terms for atom in monomial)
        return self._weight

    @property
    def name(self) -> str | None:
        """The symbol that this size is, None for an expression."""
        try:
            return self._name
        except AttributeError:  # sizes are interned, and steps of the run ask each time
            self._name = _only_symbol(self.terms)
        return self._name

    def evaluate(self, bindings: Mapping[str, int]) -> int:
        """The size for these values of the symbols; ``KeyError`` names a symbol without one."""
        try:
            code = self._code
        except AttributeError:
            code = self._code = eval(f"lambda b: {self.source('b')}", {"min": min, "max": max})
        return int(code(bindings))

    def source(self, bindings: str) -> str:
        """A Python expression of the size that reads the symbols from a mapping of this name."""
        return NAME.sub(lambda m: f"{bindings}[{m[0]!r}]", str(self))

    def __str__(self) -> str:
        try:
            return self._text
        except AttributeError:  # kept: sizes are interned, and expressions share their parts
            self._text = self._written()
        return self._text

    def _written(self) -> str:
        text = ""
        for monomial, factor in sorted(self.terms, key=lambda t: (-len(t[0]), str(t[0]))):
            parts = [_atom_text(a) for a in monomial]
            if not parts or abs(factor) != 1:
                parts.insert(0, str(abs(factor)))
            text += ("-" if factor < 0 else "+" if text else "") + "*".join(parts)
        return text


def _atom_text(atom: str | Call) -> str:
    if isinstance(atom, str) or atom.function in ("min", "max"):
        return str(atom)
    return f"({atom})"


def weight_of(x: str | Call | Size) -> int:
    """The number of symbols and numbers in the text of an atom or a size."""
    if isinstance(x, Call):
        return weight_of(x.left) + weight_of(x.right)
    return x.weight if isinstance(x, Polynomial) else 1


@functools.lru_cache(maxsize=1 << 14)
def text_of(atom: str | Call) -> str:
    """The text of an atom, kept: terms are sorted by it."""
    return str(atom)


def _symbols(size: Size) -> Iterator[str]:
    for monomial, _ in size.terms if isinstance(size, Polynomial) else ():
        for atom in monomial:
            if isinstance(atom, str):
                yield atom
            else:
                yield from _symbols(atom.left)
                yield from _symbols(atom.right)
