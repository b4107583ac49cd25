"""Reading the text of sizes back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NoReturn

from ..sizes.dims import Dim, argument_size, is_at_least, maximum, minimum, symbol
from ..sizes.polynomials import NAME, Size, is_argument

_TOKEN = re.compile(r"\s*(\d+|[A-Za-z_]\w*|//|[-+*%(),])")


_of_arguments: ContextVar[bool] = ContextVar("of_arguments", default=False)
# A short hostile text can stand for a huge polynomial: ``(a+b)*(c+d)*…`` has 2**n terms, and each
# ``min`` or ``max`` doubles the cases that bounds look at.
MOST_TOKENS, MOST_CASES, MOST_TERMS = 400, 10, 64


@contextmanager
def with_sizes_of_arguments() -> Iterator[None]:
    """Read ``s0`` in the block as the size of an argument, whatever is read: for graphs that are
    admitted when their sizes are known."""
    token = _of_arguments.set(True)
    try:
        yield
    finally:
        _of_arguments.reset(token)


def sizes_are_open() -> bool:
    """Whether such a block is around."""
    return _of_arguments.get()


def parse_dim(text: str, *, of_arguments: bool = False) -> Size:
    """The size whose ``str`` the text is.

    Raises ``ValueError`` for any other text, and for one beyond the limits above.  Names of
    arguments' sizes (``s0``) are read only where ``of_arguments``: they count as at least 2, which
    a trace sees to and a file does not.
    """
    tokens = _TOKEN.findall(text)
    if "".join(tokens) != text.replace(" ", ""):
        raise ValueError(f"not a size: {text[:80]!r}")
    if len(tokens) > MOST_TOKENS or tokens.count("min") + tokens.count("max") > MOST_CASES or (
            max(map(len, tokens), default=0) > 100):
        raise ValueError(f"too long a size: {text[:80]!r}")
    parser = _DimParser(tokens, text, of_arguments or _of_arguments.get())
    result = parser.sum()
    return result if not parser.tokens else parser.fail()


class _DimParser:
    def __init__(self, tokens: list[str], text: str, of_arguments: bool) -> None:
        self.tokens, self.text, self.of_arguments = tokens, text, of_arguments

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
            if sign != "*" and not self.of_arguments and not is_at_least(right, 1):
                self.fail()  # it may be 0, which a trace has asked about
            result = (result * right if sign == "*" else
                      result // right if sign == "//" else result % right)
            if isinstance(result, Dim) and len(result.terms) > MOST_TERMS:
                self.fail()
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
        if self.of_arguments and is_argument(token):
            return argument_size(token)
        return symbol(token) if NAME.fullmatch(token) else self.fail()


def parse_shape(text: str) -> tuple[Size, ...]:
    """The sizes between a type's brackets: ``3,max(n-1,0)``."""
    parts, depth, start = [], 0, 0
    for at, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and not depth:
            parts.append(text[start:at])
            start = at + 1
    return tuple(parse_dim(p) for p in [*parts, text[start:]]) if text else ()
