"""Numbers that follow from the sizes of arguments, in a trace that serves more sizes than one.

A `Symbolic` number is one that the program computes from such sizes: its value for the sizes
of the traced call (its *hint*) and the expression that gives it for others.  Arithmetic
makes further symbolic numbers.  A question about one (``n > 100``, ``range(n)``, ``if n``) is
answered for the hint, and the `Sizes` of the trace note the question with its answer: for other
sizes the trace stands where all of them are answered alike.  So whatever reads a number in a way
that nobody foresaw (NumPy's C code asks for ``__index__``) limits the trace, and is never wrong.

The idea of tracing with hints and guards on their decisions is that of `torch.compile`'s
symbolic shapes; here an expression is evaluated by Python itself for each combination of sizes.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from .dims import Dim, argument_size
from .polynomials import Size
from .size_functions import DIM_FUNCTIONS, DIVISIONS, RING, decided, is_total
from .size_questions import Bindings, Computed, Question, Succeeds, of_closed, text_of_closed


class Sizes:
    """The symbols of one trace, their hints, and the questions that were asked of them."""

    def __init__(self) -> None:
        self.hints: dict[str, int] = {}
        self.questions: dict[Question, str] = {}  # with the place of the first that asked
        self.is_open = True
        self.compared: set[Size] = set()  # kept, since sizes that nothing keeps lose their bounds
        # Passes ask and compute the same of each node: answers to `questions`, sums and products.
        self.answers: dict[tuple[Any, Size, Size], bool] = {}
        self.results: dict[tuple[Any, Size, Size], Any] = {}
        # While passes run, numbers serve as keys of tables: hashed by their expressions, so that
        # looking one up asks nothing.
        self.is_key = False
        self.where: Callable[[], str] = str

    def number(self, size: Size) -> Any:
        """The size as a symbolic number; itself where it is an int, or the run defines it."""
        if type(size) is not Dim or size.symbols:
            return size
        return Symbolic(self, size.evaluate(self.hints), size)

    def note(self, expression: Any, answer: Any) -> Any:
        """Record the question and return its answer: the trace serves only sizes that give it."""
        if not self.is_open:
            return of_closed(expression, answer)
        question = Question(expression, answer)
        if question not in self.questions:
            self.questions[question] = self.where()
        return answer

    @classmethod
    def of(cls, hints: Mapping[str, int]) -> Sizes:
        """The sizes of a trace whose symbols were named before, with other hints."""
        sizes = cls()
        sizes.hints = dict(hints)
        return sizes

    def symbols(self) -> dict[str, Symbolic]:
        return {name: Symbolic(self, hint, argument_size(name))
                for name, hint in self.hints.items()}

    @contextmanager
    def asked_by_passes(self) -> Iterator[dict[Question, str]]:
        """Inside the block questions come from passes, and are collected in the dict it gives.

        They limit the compiled graph, not the trace: other sizes may take the same graph through
        the passes anew.  Afterwards the numbers still are keys: weak tables outlive their
        trace.
        """
        own, self.questions, self.answers = self.questions, {}, {}
        self.is_open = self.is_key = True
        try:
            yield self.questions
        finally:
            self.questions, self.answers, self.results = own, {}, {}
            self.is_open = False

    def hold(self, bindings: Bindings) -> bool:
        """Whether the trace serves arguments of these sizes."""
        return all(question.holds(bindings) for question in self.questions)

    def constants(self) -> dict[str, str]:
        """The symbols that a question has fixed, and the place of the first such question."""
        places: dict[str, str] = {}
        for question, place in self.questions.items():
            places = dict.fromkeys(question.decides(self.hints), place) | places
        return places


def _number(value: Any) -> Any:
    """The value in the traced call, which asks nothing: for hints and answers only."""
    return value.hint if type(value) is Symbolic else value


def _pinned(value: Any) -> Any:
    return value.pinned() if type(value) is Symbolic else value


def _compared(fn: Callable[[Any, Any], bool]) -> Callable[[Any, Any], Any]:
    def compare(self: Symbolic, other: Any) -> Any:
        if not is_plain_number(other):
            return NotImplemented
        return self.compared(fn, self, other)

    return compare


def _arithmetic(fn: Callable[..., Any]) -> Any:
    """The method of an operator, and the reflected one."""
    def forward(self: Symbolic, other: Any) -> Any:
        if not is_plain_number(other):
            return NotImplemented
        return applied(fn, self, other)

    def reflected(self: Symbolic, other: Any) -> Any:
        if not is_plain_number(other):
            return NotImplemented
        return applied(fn, other, self)

    return forward, reflected


def _unary(fn: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def method(self: Symbolic) -> Any:
        return applied(fn, self)

    return method


def _looked_at(fn: Callable[..., Any], is_text: bool = False) -> Callable[[Any], Any]:
    """A method that reads the number itself, which limits the trace to calls that have it too."""
    def method(self: Symbolic, *args: Any) -> Any:
        text = text_of_closed(self.expression) if is_text and not self.sizes.is_open else ""
        return fn(text or self.pinned(), *args)

    return method


class Symbolic:
    """A number that follows from sizes of arguments; ``hint`` is its value in the traced call.

    ``expression``: a `Dim` for integers that sizes give by ``+ - * // % min max``, else `Computed`.
    """

    __slots__ = ("expression", "hint", "sizes")
    __array_priority__ = 500.0

    def __init__(self, sizes: Sizes, hint: Any, expression: Any) -> None:
        self.sizes, self.hint, self.expression = sizes, hint, expression

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """So that ``isinstance(n, int)`` holds as it does for the number."""
        return type(self.hint)

    def pinned(self) -> Any:
        """The value in the traced call; the trace then serves only calls in which it is the same.
        """
        return self.sizes.note(self.expression, self.hint)

    # -- operators

    __add__, __radd__ = _arithmetic(operator.add)
    __sub__, __rsub__ = _arithmetic(operator.sub)
    __mul__, __rmul__ = _arithmetic(operator.mul)
    __floordiv__, __rfloordiv__ = _arithmetic(operator.floordiv)
    __mod__, __rmod__ = _arithmetic(operator.mod)
    __truediv__, __rtruediv__ = _arithmetic(operator.truediv)
    __pow__, __rpow__ = _arithmetic(operator.pow)
    __lshift__, __rlshift__ = _arithmetic(operator.lshift)
    __rshift__, __rrshift__ = _arithmetic(operator.rshift)
    __and__, __rand__ = _arithmetic(operator.and_)
    __or__, __ror__ = _arithmetic(operator.or_)
    __xor__, __rxor__ = _arithmetic(operator.xor)
    __neg__, __pos__ = _unary(operator.neg), _unary(operator.pos)
    __abs__, __invert__ = _unary(operator.abs), _unary(operator.invert)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    # -- questions

    def compared(self, fn: Callable[[Any, Any], bool], a: Any, b: Any) -> bool:
        """A comparison; a question to note where bounds do not decide it for all sizes."""
        left, right = stored(a), stored(b)
        if type(a) is Dim or type(b) is Dim:
            return fn(left, right)
        if type(left) not in _EXACT or type(right) not in _EXACT:
            return self._asked(fn, a, b)
        answers, question = self.sizes.answers, (fn, left, right)
        answer = answers.get(question)
        if answer is None:
            answer = answers[question] = self._asked(fn, a, b)
        return answer

    def _asked(self, fn: Callable[[Any, Any], bool], a: Any, b: Any) -> bool:
        answer = bool(fn(_number(a), _number(b)))
        left, right = _compared_as(a, b), _compared_as(b, a)
        if left is None or right is None:
            return bool(self.sizes.note(Computed(fn, (stored(a), stored(b))), answer))
        difference = left - right
        self.sizes.compared.add(difference)
        if decided(fn, difference) is None:
            self.sizes.note(Computed(fn, (difference, 0)), answer)
        return answer

    __lt__ = _compared(operator.lt)
    __le__ = _compared(operator.le)

    def __gt__(self, other: Any) -> Any:
        return NotImplemented if not is_plain_number(other) else self.compared(
            operator.lt, other, self)

    def __ge__(self, other: Any) -> Any:
        return NotImplemented if not is_plain_number(other) else self.compared(
            operator.le, other, self)

    def __eq__(self, other: object) -> Any:
        if self is other or (type(other) is Symbolic and self.expression is other.expression
                             and type(self.expression) is Dim):
            return True
        return NotImplemented if not is_plain_number(other) else self.compared(
            operator.eq, self, other)

    def __ne__(self, other: object) -> Any:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    def __bool__(self) -> bool:
        return not self.compared(operator.eq, self, 0)

    # -- what needs the number itself

    __index__ = __int__ = _looked_at(int)
    __float__, __complex__ = _looked_at(float), _looked_at(complex)

    def __hash__(self) -> int:
        return hash(self.expression if self.sizes.is_key else self.pinned())

    __str__: Any = _looked_at(str, is_text=True)
    __repr__: Any = _looked_at(repr, is_text=True)
    __format__: Any = _looked_at(format, is_text=True)
    __round__ = _looked_at(round)

    def __trunc__(self) -> Any:
        return int(self)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.asarray(self.pinned(), dtype)

    def __getattr__(self, name: str) -> Any:
        """``n.bit_length``, ``x.real``: an attribute of the value in the traced call, as `pinned`,
        but for those that follow from its type (``x.shape``)."""
        if name in _OF_TYPE and isinstance(self.hint, np.generic):
            return getattr(self.hint, name)
        if not hasattr(type(self.hint), name) or name.startswith("__"):
            raise AttributeError(f"{type(self.hint).__name__!r} object has no attribute {name!r}")
        return getattr(self.pinned(), name)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method == "__call__" and not kwargs and all(map(is_plain_number, inputs)):
            return applied(ufunc, *inputs)
        if any(hasattr(type(x), "__array_ufunc__") and type(x) is not Symbolic and not isinstance(
                x, (np.generic, np.ndarray)) for x in inputs):
            return NotImplemented
        return getattr(ufunc, method)(*map(_pinned, inputs), **kwargs)

    def __reduce__(self) -> Any:
        return type(self.hint), (self.pinned(),)

    def __copy__(self) -> Symbolic:
        return self

    def __deepcopy__(self, memo: Any) -> Symbolic:
        return self


_OF_TYPE = frozenset({"shape", "ndim", "dtype", "size", "itemsize", "nbytes", "strides", "flags"})
_PLAIN = (int, float, complex, bool)
_EXACT = frozenset({int, Dim})


def is_plain_number(x: Any) -> bool:
    """Whether it is a number that is known while tracing: Python's, NumPy's or symbolic."""
    kind = type(x)  # not __class__: a traced number claims to be of the class that it stands for
    return kind is Symbolic or kind in _PLAIN or kind is Dim or issubclass(kind, np.generic)


def dim_of(x: Any) -> Size | None:
    """An integer as an int or a `Dim`; None for other numbers."""
    expression = x.expression if type(x) is Symbolic else x
    if type(expression) is Computed and expression.fn is np.int64:
        expression = expression.args[0]
    return int(expression) if type(expression) is np.int64 else (
        expression if type(expression) in (int, Dim) else None)


def _compared_as(x: Any, other: Any) -> Size | None:
    """An operand of a comparison as an int or a `Dim`; None where it is no integer.

    A float counts as the integer it was cast from where the other operand is a number below
    2**53: up to there floats hold every integer, so the comparison is that of the integers.
    """
    cast = x.expression if type(x) is Symbolic else None
    if type(cast) is Computed and cast.fn in (float, np.float64) and type(cast.args[0]) is Dim and (
            type(other) is not Symbolic and abs(other) < 1 << 53):
        return cast.args[0]
    if issubclass(type(x), (float, np.floating)) and x.is_integer():
        return int(x)
    return dim_of(x)


def stored(x: Any) -> Any:
    """A number as a part of expressions: its own expression where it is symbolic."""
    return x.expression if type(x) is Symbolic else x


def expressions(data: Any) -> Any:
    """Plain data with expressions in the place of symbolic numbers, which can be hashed freely."""
    return tuple(map(expressions, data)) if type(data) is tuple else stored(data)


def text_of_number(x: Any) -> str:
    """``s0``, ``2*s0+1``: nobody asks for the value."""
    return str(x.expression) if type(x) is Symbolic else str(x)


def applied(fn: Callable[..., Any], *args: Any) -> Any:
    """``fn(*args)`` of numbers, for the hints now and as an expression for other sizes."""
    sizes = next((x.sizes for x in args if type(x) is Symbolic), None)
    if fn in RING and sizes is not None and sizes.is_key and len(args) == 2:
        return _known(sizes, fn, *args)
    return _applied(sizes, fn, args)


def _known(sizes: Sizes, fn: Callable[..., Any], a: Any, b: Any) -> Any:
    """A sum, difference or product, which asks nothing."""
    left, right = stored(a), stored(b)
    if type(a) is Dim or type(b) is Dim or not (type(left) in _EXACT and type(right) in _EXACT):
        return _applied(sizes, fn, (a, b))
    operation = fn, left, right
    result = sizes.results.get(operation)
    if result is None:
        result = sizes.results[operation] = _applied(sizes, fn, (a, b))
    return result


def _applied(sizes: Sizes | None, fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    if any(type(x) is Dim for x in args) or sizes is None:
        return fn(*map(stored, args))
    if fn in DIVISIONS and args[1] == 0:  # asks, where bounds do not decide
        return fn(*map(_pinned, args))
    if fn in (min, max) and len({type(_number(x)) for x in args}) > 1:
        return fn(*args)  # one of them, with its type: the comparisons are asked
    whole = [dim_of(x) for x in args]
    hint = fn(*map(_number, args)) if is_total(fn, whole, args) else _attempted(sizes, fn, args)
    if not is_plain_number(hint):
        return fn(*map(_pinned, args))
    if fn in DIM_FUNCTIONS and None not in whole and type(hint) in (int, np.int64):
        result = functools.reduce(DIM_FUNCTIONS[fn], whole) if len(whole) > 2 else (
            DIM_FUNCTIONS[fn](*whole))
        if type(result) is int:
            return type(hint)(result)
        if result is not None:
            return Symbolic(sizes, hint, result if type(hint) is int else Computed(
                np.int64, (result,)))
    return Symbolic(sizes, hint, Computed(fn, tuple(map(stored, args))))


def _attempted(sizes: Sizes, fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """The value of a function that raises for some numbers (``math.sqrt``).

    Where it has one, other sizes must give one too: a question.  Where it raises, it is called on
    the plain numbers, so that the message holds them, and the trace is for these alone.
    """
    try:
        hint = fn(*map(_number, args))
    except Exception:
        return fn(*map(_pinned, args))
    sizes.note(Succeeds(fn, tuple(map(stored, args))), True)
    return hint


def is_int(x: Any) -> bool:
    """Whether it is an int that is known while tracing, or follows from sizes of arguments."""
    return type(x) is int or (type(x) is Symbolic and type(x.hint) is int)
