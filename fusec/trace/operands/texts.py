"""Texts, mostly of exceptions, with values known only at run time, in branches that data decides.

The text is made while tracing, so the expression stands for its value, in braces: ``pivot {A[k, k]}
in row 3``."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from fusec.errors import ConcreteValueError

from ..facts.constant_values import is_constant
from ..facts.origins import source_of
from ..facts.trees import leaves_in
from ..values.array import Markers, TracedArray
from ..values.trace import Trace

_VALUES = (tuple, dict)  # of a text
_CONVERSION = re.compile(r"%(?P<key>\(\w*\))?[#0\- +]*(?:\*|\d+)?(?:\.(?:\*|\d+))?"
                         r"(?P<kind>[diouxXeEfFgGcrsa%])")


class Marker:
    """Stands for a value in a text: however it is formatted, it gives the value's expression."""

    def __init__(self, x: TracedArray, source: str = "") -> None:
        self.text = f"{{{source or source_of(x.value) or '...'}}}"
        x.trace.part(Markers).add(self.text)

    def __format__(self, spec: str) -> str:
        return self.text

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__


class ChosenTexts(dict[str, tuple[str, ...]]):
    """Of a trace: what stands for one of several texts, and these."""


def one_of_texts(trace: Trace, a: str, b: str) -> str:
    """What stands for one of two texts, as data decides."""
    chosen = trace.part(ChosenTexts)
    texts = tuple(dict.fromkeys((*chosen.get(a, (a,)), *chosen.get(b, (b,)))))
    text = f"{{{' or '.join(texts)}}}"
    chosen[text] = texts
    trace.part(Markers).add(text)
    return text


def is_open(trace: Trace, x: Any) -> bool:
    """Whether a text would need the value of ``x``, in a branch or loop that data decides."""
    return type(x) is TracedArray and trace.in_region and not is_constant(x.value)


def is_marked(markers: Markers, text: Any) -> bool:
    """Whether it is a text with markers."""
    return isinstance(text, str) and any(marker in text for marker in markers)


def check_text(trace: Trace, *values: Any) -> None:
    """Refuse texts with markers where their content matters: compared, as a key, as a result."""
    markers = trace.part(Markers)
    for text in values:
        if is_marked(markers, text):
            raise ConcreteValueError(
                f"the text {text!r} has a value that is only known when the compiled code runs",
                loc=trace.loc, cure="use it in exceptions only, or make the text after the call")


def marked(trace: Trace, x: Any, is_open: Callable[[Trace, Any], bool] = is_open) -> Any:
    """``x`` with markers for the values that are open."""
    if type(x) is tuple:
        return tuple(marked(trace, item, is_open) for item in x)
    if type(x) is dict:
        return {key: marked(trace, item, is_open) for key, item in x.items()}
    return Marker(x) if is_open(trace, x) else x


def has_open(trace: Trace, x: Any) -> bool:
    return any(is_open(trace, item) for item in leaves_in(x, _VALUES))


def check_concrete(*values: Any) -> None:
    """Raise `ConcreteValueError` if a value of a text is traced."""
    for x in leaves_in(values, _VALUES):
        if type(x) is TracedArray:
            x.concrete("text", "format the result after the call")


def percent(trace: Trace, text: str, values: Any) -> str:
    """``text % values``, with ``%s`` instead of the conversions of markers."""
    return _percent(text, marked(trace, values))


def logged(trace: Trace, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of a call of `logging` while tracing, with markers."""
    if not any(type(x) is TracedArray for x in leaves_in(args, _VALUES)):
        return args
    levels = 1 if args and type(args[0]) is int else 0
    text, *values = marked(trace, args[levels:], _is_unknown)
    if type(text) is str and values:  # as logging does for a single dict
        text = _percent(text, values[0] if type(values[0]) is dict else tuple(values))
    return (*args[:levels], str(text))


def _is_unknown(trace: Trace, x: Any) -> bool:
    return type(x) is TracedArray and not is_constant(x.value)


def _percent(text: str, values: Any) -> str:
    items = iter(values if type(values) is tuple else (values,))

    def conversion(match: re.Match[str]) -> str:
        if match["kind"] == "%":
            return match[0]
        key = match["key"]
        value = values.get(key[1:-1]) if key and type(values) is dict else next(items, None)
        return f"%{key or ''}s" if type(value) is Marker else match[0]

    return _CONVERSION.sub(conversion, text) % values


def without_values(error: BaseException) -> None:
    """Put markers for traced values into an exception that leaves the trace."""
    error.args = tuple(str(Marker(a)) if type(a) is TracedArray else a for a in error.args)
    for name, value in vars(error).items():
        if type(value) is TracedArray:
            setattr(error, name, str(Marker(value)))
