"""Arrays that objects hold as variables of a differentiation: ``wrt="model.layers[0].weights"``."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from operator import attrgetter, itemgetter
from types import MethodType
from typing import Any

import numpy as np

from fusec.dispatch.function import Function
from fusec.errors import user_error
from fusec.ops.derivatives import DIFFERENTIABLE
from fusec.state.variable import Variable
from fusec.trace.call.foreign_arrays import is_sparse_class
from fusec.trace.values.array import TracedArray
from fusec.trace.values.trace import Trace, assign

from .independent_variables import Independent, independent, no_derivative

_STEP = re.compile(r"\.(?P<name>[^\W\d]\w*)|\[(?P<key>[^\[\]]+)\]")


def by_path(
    trace: Trace, path: str, f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
    name: str,
) -> Independent:
    """The variable that the array at a path is: one that a parameter of ``f`` names, or ``self``.

    The array stays the object's: writes to it are those of a plain call.  Raises ``ValueError``
    for a path that the call does not have, ``TypeError`` where there is no array of floats.
    """
    root, *steps = _steps(trace, path, name)
    found = _roots(f, args, kwargs)
    if root not in found:
        raise user_error(
            ValueError, f"{name} by {path!r}, which begins with no parameter of the function",
            trace.loc, "name a parameter, then attributes and items: wrt=\"model.layers[0].w\"",
            values=[("parameters", ", ".join(found))])
    assert trace.hooks is not None
    x = found[root]
    for step in steps:
        x = trace.hooks.call(trace.hooks.where, step, x)
    if isinstance(x, Variable):
        return independent(trace, x, path, name)
    if _holds_attributes(x):
        raise user_error(
            TypeError, f"{name} by {path}, which is no array", trace.loc,
            f'go on to the arrays that it holds: wrt="{path}.{_example(x)}"',
            values=[(path, x.__class__.__name__)])
    x = trace.hooks.call(trace.hooks.where, _itself, x)
    if isinstance(x, (float, complex)) or (type(x) is TracedArray and x.storage is None):
        raise user_error(
            TypeError, f"{name} by {path}, which is a number", trace.loc,
            "make it an array: np.array(0.5); and write to it in place, b[...] = 0.5")
    if type(x) is not TracedArray or x.dtype.kind not in DIFFERENTIABLE:
        raise no_derivative(trace, x, path, name)
    assert x.storage is not None
    if x.steps:
        raise user_error(TypeError, f"{name} by {path}, which is a part of another array",
                         trace.loc, "differentiate by the whole array")
    value = trace.emit("BroadcastTo", x.storage.value, shape=x.storage.value.shape)
    if trace.in_region:
        assign(trace, x.storage, value)
    else:
        x.storage.replace(value, x.storage.version)  # the same contents: nothing is written
    return Independent(trace, path, value, x, path)


def _holds_attributes(x: Any) -> bool:
    """Whether it is an object of a class of the user's, and no array or number."""
    return hasattr(x, "__dict__") and not isinstance(x, (np.ndarray, np.generic, TracedArray)) and (
        not hasattr(x, "__array__"))


def _example(x: Any) -> str:
    """An attribute that such an object may hold an array in."""
    return "data" if is_sparse_class(x.__class__) else "weights"


def _itself(x: Any) -> Any:
    return x


def _steps(trace: Trace, path: str, name: str) -> Iterator[Any]:
    """The name that a path begins with, and the reader of each of its steps."""
    match = re.match(r"[^\W\d]\w*", path)
    place = match.end() if match else 0
    yield path[:place]
    while place < len(path):
        step = _STEP.match(path, place)
        if step is None or not match:
            raise user_error(ValueError, f"{name} by {path!r}, which is no path", trace.loc,
                             "write wrt=\"model.layers[0].w\"")
        yield attrgetter(step["name"]) if step["name"] else itemgetter(_key(step["key"]))
        place = step.end()


def _key(text: str) -> Any:
    """``0`` and ``'name'``; other texts are names themselves."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _roots(
    f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """The arguments by the names of parameters."""
    python = f.python_function if isinstance(f, Function) else f
    bound = inspect.signature(python).bind(*args, **kwargs)
    bound.apply_defaults()
    found = dict(bound.arguments)
    if isinstance(python, MethodType):
        found.setdefault("self", python.__self__)
    return found
