"""Numbers that follow from sizes as JSON: a function of a closed table, and its arguments.

``{"computed": "numpy.sqrt", "args": ["s0"]}`` is a `Computed`; a size is its text.  Functions that
are not in the table have no form.
"""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ..text.parse_dims import parse_dim
from .dims import Dim
from .size_questions import Computed
from .symbolic_numbers import Symbolic

# Their results are fresh arrays that follow from their arguments alone.
MAKERS: tuple[Callable[..., Any], ...] = (
    np.arange, np.linspace, np.logspace, np.geomspace, np.eye, np.identity, np.tri, np.indices,
    np.hanning, np.hamming, np.blackman, np.bartlett, np.kaiser, np.fft.fftfreq, np.fft.rfftfreq,
    np.tril_indices, np.triu_indices, np.diag_indices,
)
MOST_DEPTH, MOST_ELEMENTS, MOST_BITS = 32, 1 << 31, 1 << 14


class NamedCall:
    """A function with names for its last arguments."""

    def __init__(self, fn: Callable[..., Any], names: tuple[str, ...]) -> None:
        self.fn, self.names, self.__name__ = fn, names, fn.__name__

    def __call__(self, *values: Any) -> Any:
        first = len(values) - len(self.names)
        return self.fn(*values[:first], **dict(zip(self.names, values[first:], strict=True)))


def part_of(parts: tuple[Any, ...], at: int) -> Any:
    """One of several arrays."""
    return parts[at]


def size_of_axis(array: np.ndarray, axis: int) -> int:
    """The length of an array along an axis."""
    return array.shape[axis]


def tuple_of(*items: Any) -> tuple[Any, ...]:
    """The items as a tuple."""
    return items


def power_of(base: Any, exponent: Any) -> Any:
    """A power that is no endless integer, whatever a file says."""
    if isinstance(base, int) and isinstance(exponent, int) and (
            exponent * base.bit_length() > MOST_BITS):
        raise NoFormError(f"{base}**{exponent} is too large")
    return base ** exponent


_OWN = {"part": part_of, "size": size_of_axis, "tuple": tuple_of}
_HOMES: dict[str, tuple[Any, str]] = {
    "operator": (operator, "add sub mul truediv floordiv mod neg pos abs eq ne lt le index"),
    "builtins": (builtins, "abs min max int float bool round"),
    "math": (math, "sqrt pow floor ceil exp log log2 log10 sin cos pi"),
    "numpy": (np, "bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 "
              "float64 complex64 complex128 add subtract multiply true_divide divide floor_divide "
              "remainder maximum minimum sqrt exp log log2 log10 sin cos floor ceil square "
              "negative absolute power rint"),
}
_BY_NAME: dict[str, Any] = _OWN | {
    f"{home}.{name}": getattr(module, name)
    for home, (module, names) in _HOMES.items() for name in names.split()}
_ARRAYS = {f"{maker.__module__}.{maker.__name__}": maker for maker in MAKERS}
_BY_NAME["operator.pow"] = power_of
_NAMES = {id(fn): name for name, fn in {
    **_BY_NAME, **_ARRAYS}.items()} | {id(operator.pow): "operator.pow"}


class NoFormError(ValueError):
    """A number, or an array, whose function is in no table."""


def computed_form(x: Any) -> Any:
    """The JSON form of a number that follows from sizes; raises `NoFormError`."""
    if type(x) is Symbolic:
        return computed_form(x.expression)
    if type(x) is Dim:
        return str(x)
    if type(x) is Computed:
        fn, names = (x.fn.fn, list(x.fn.names)) if type(x.fn) is NamedCall else (x.fn, [])
        if id(fn) not in _NAMES:
            raise NoFormError(f"a number that {getattr(fn, '__name__', fn)} gives of sizes")
        form = {"computed": _NAMES[id(fn)], "args": [computed_form(arg) for arg in x.args]}
        return form | ({"names": names} if names else {})
    if x is None or type(x) in (bool, int):
        return x
    if type(x) is float and math.isfinite(x):
        return x
    if isinstance(x, (np.generic, float)):
        kind = x.dtype.name if isinstance(x, np.generic) else "float"
        return {"number": kind, "text": repr(x.item() if isinstance(x, np.generic) else x)}
    if isinstance(x, np.dtype) or (isinstance(x, type) and issubclass(x, np.generic)):
        return {"dtype": np.dtype(x).name}
    raise NoFormError(f"a {type(x).__name__} beside sizes")


def computed_of(form: Any, depth: int = 0) -> Any:
    """The number, or the `Computed`, of a JSON form; raises ``ValueError`` for any other form."""
    if depth > MOST_DEPTH:
        raise NoFormError("it is nested too deeply")
    if type(form) is str:
        return parse_dim(form, of_arguments=True)
    if form is None or type(form) in (bool, int, float):
        return form
    if type(form) is not dict:
        raise NoFormError(f"{str(form)[:60]} is no number")
    if set(form) == {"dtype"} or set(form) == {"number", "text"}:
        return _constant(form)
    names = form.get("names", [])
    if not {"computed", "args"} <= set(form) <= {"computed", "args", "names"} or (
            type(form["args"]) is not list or type(names) is not list):
        raise NoFormError(f"{str(form)[:60]} is no number")
    args = tuple(computed_of(arg, depth + 1) for arg in form["args"])
    maker = _ARRAYS.get(str(form["computed"]))
    if maker is not None and all(type(name) is str for name in names) and len(names) <= len(args):
        return Computed(CheckedCall(maker, tuple(names)), args)
    if form["computed"] not in _BY_NAME or names:
        raise NoFormError(f"{str(form['computed'])[:60]} is no function of sizes")
    return Computed(_BY_NAME[form["computed"]], args)


def _constant(form: dict[str, Any]) -> Any:
    kinds = {"float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint64",
             "uint32", "uint16", "uint8", "bool", "complex64", "complex128"}
    kind = form.get("dtype", form.get("number"))
    if kind == "float" and "text" in form:
        return float(str(form["text"]))
    if kind not in kinds:
        raise NoFormError(f"{str(kind)[:60]} is no dtype")
    if "dtype" in form:
        return np.dtype(kind)
    if kind == "bool":
        return np.bool_(form["text"] == "True")
    return np.dtype(kind).type(str(form["text"]))


class CheckedCall(NamedCall):
    """One that was read from a file: it makes no array that no memory holds."""

    def __call__(self, *values: Any) -> Any:
        if self._count(values) > MOST_ELEMENTS:
            raise NoFormError(f"{self.__name__} of such numbers is too large")
        return super().__call__(*values)

    def _count(self, values: tuple[Any, ...]) -> float:
        """About how many elements it makes."""
        numbers = [float(n) for x in values for n in (x if type(x) is tuple else (x,))
                   if isinstance(n, (int, float, np.generic)) and not isinstance(n, np.complex128)]
        if self.fn is np.arange:
            start, stop, step = (0.0, *numbers, 1.0)[:3] if len(numbers) == 1 else (
                *numbers, 1.0)[:3]
            return abs((stop - start) / step)
        if self.fn in (np.linspace, np.logspace, np.geomspace):
            first = len(values) - len(self.names)
            given = dict(zip(self.names, values[first:], strict=True))
            return float(given.get("num", numbers[2] if len(numbers) > 2 else 50))
        square = self.fn in (np.eye, np.identity, np.tri, np.tril_indices, np.triu_indices)
        return math.prod(max(1.0, abs(n)) for n in numbers) ** (2 if square else 1)


__all__ = ["MAKERS", "NamedCall", "NoFormError", "computed_form", "computed_of", "part_of",
           "size_of_axis", "tuple_of"]
