"""A trace's questions about the sizes of arguments, and how it goes on for other sizes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from .dims import Dim
from .polynomials import NAME, is_argument

Bindings = Mapping[str, int]
MANY_OTHERS = 4  # sizes of the same answer, which then is a condition rather than a constant


class Computed(NamedTuple):
    """``fn(*args)`` of numbers, symbolic ones among them."""

    fn: Callable[..., Any]
    args: tuple[Any, ...]

    def evaluate(self, bindings: Bindings) -> Any:
        return self.fn(*(value_at(arg, bindings) for arg in self.args))

    def __str__(self) -> str:
        name = getattr(self.fn, "__name__", str(self.fn))
        return f"{name}({', '.join(map(str, self.args))})"


class Succeeds(NamedTuple):
    """Whether ``fn(*args)`` raises nothing: ``math.sqrt(n - 9)`` does for some sizes."""

    fn: Callable[..., Any]
    args: tuple[Any, ...]
    what: str = "succeeds"  # so that it equals no `Computed`: True is 1.0

    def evaluate(self, bindings: Bindings) -> bool:
        try:
            Computed(self.fn, self.args).evaluate(bindings)
        except Exception:  # a trace for these sizes raises it
            return False
        return True

    def __str__(self) -> str:
        return f"{Computed(self.fn, self.args)} has a value"


class Question(NamedTuple):
    """A trace's question about its sizes, and the answer that it goes on with."""

    expression: Any  # a `Dim`, a `Computed`, or what else can be evaluated
    answer: Any

    def holds(self, bindings: Bindings) -> bool:
        try:
            value = self.expression.evaluate(bindings)
        except Exception:  # a trace for these sizes raises it
            return False
        if type(self.answer) is bool:
            return bool(value) is self.answer
        return repr(value) == repr(self.answer)  # tells -0.0 from 0.0, and a nan equals itself

    def decides(self, hints: Bindings) -> set[str]:
        """The symbols that the answer fixes: ``s0`` where it says ``s0 == 30``.

        None of a condition that many sizes meet: a relation (``s0 < s1``), or ``s0 % 2 == 0``.
        None of an equation in several symbols either, unless the question is for the number itself.
        """
        asked, answer = self.expression, self.answer
        if isinstance(asked, Computed) and asked.fn is operator.eq and answer is True:
            asked, answer = asked.args
        if type(answer) is bool or type(answer) in (Dim, Computed):
            return set()  # a relation
        names = arguments_of(asked)
        if len(names) == 1 and self._holds_often(min(names), hints):
            return set()
        return names if len(names) == 1 or asked is self.expression else set()

    def _holds_often(self, name: str, hints: Bindings) -> bool:
        """By trial: whether several other sizes give the same answer."""
        hint = hints[name]
        others = [*range(hint + 1, hint + 33), *(hint << k for k in range(1, 6))]
        return sum(self.holds({**hints, name: other}) for other in others) >= MANY_OTHERS

    def __str__(self) -> str:
        if isinstance(self.expression, Computed) and len(self.expression.args) == 2:
            sign = _SIGNS.get(self.expression.fn)
            if sign is not None:
                return _relation(sign if self.answer else _OPPOSITE[sign], *self.expression.args)
        return str(self.expression) if self.answer is True else (
            f"{self.expression} == {self.answer!r}")


_SIGNS = {operator.lt: "<", operator.le: "<=", operator.eq: "=="}
_OPPOSITE = {"<": ">=", "<=": ">", "==": "!="}
_TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


def _relation(sign: str, a: Any, b: Any) -> str:
    """``s0 > 2`` rather than ``-s0+2 < 0``."""
    if type(a) is not Dim or b != 0:
        return f"{a} {sign} {b}"
    constant = dict(a.terms).get((), 0)
    left, right = a - constant, -constant
    if all(factor < 0 for _, factor in left.terms):
        left, right, sign = -left, -right, _TURNED.get(sign, sign)
    return f"{left} {sign} {right}"


def arguments_of(expression: Any) -> set[str]:
    """The names of arguments' sizes in an expression."""
    if type(expression) is Dim:
        return {name for name in NAME.findall(str(expression)) if is_argument(name)}
    if type(expression) is Computed:
        return set().union(*map(arguments_of, expression.args))
    return set()


def value_at(expression: Any, bindings: Bindings) -> Any:
    """The value of an expression, or a number in one, for these sizes."""
    return expression.evaluate(bindings) if type(expression) in (Dim, Computed) else expression


# -- after a trace

_as_text: ContextVar[bool] = ContextVar("as_text", default=False)


class SizesClosedError(AssertionError):
    """A symbolic number was asked something after its trace had ended: a defect of fusec."""


class SizeAsText(str):
    """A size as people read it, however a text formats numbers."""

    def __format__(self, spec: str) -> str:
        return ("+" if spec.startswith("+") else "") + self

    def __str__(self) -> str:
        return str.__str__(self)

    __repr__ = __str__


@contextmanager
def sizes_as_text() -> Iterator[None]:
    """Inside, a size whose trace has ended is written as its expression, ``8*s0``; all else that
    asks for it has the number, or the answer, of the traced call."""
    token = _as_text.set(True)
    try:
        yield
    finally:
        _as_text.reset(token)


def text_of_closed(expression: Any) -> str:
    """The size in a text that is made after its trace; "" where none is."""
    return SizeAsText(expression) if _as_text.get() else ""


def of_closed(expression: Any, answer: Any) -> Any:
    """What a number says that is read after its trace; raises `SizesClosedError`, but for texts."""
    if not _as_text.get():
        raise SizesClosedError(f"the size {expression} outlived its trace")
    return answer
