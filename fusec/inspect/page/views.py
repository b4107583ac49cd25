"""Pages of functions and stages, written and shown."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

import fusec
from fusec.compiled.concrete_function import ConcreteFunction
from fusec.errors import user_error
from fusec.trace.facts.trees import flattened

from .document import Json, document
from .first_screen import first_screen
from .page import page_text, save
from .runs_part import Measured, measured


def save_stage(stage: Any, path: str | os.PathLike[str]) -> Path:
    """The page of one stage or compiled function."""
    return save(path, sections_of(stage))


def save_function(
    function: fusec.Function, path: str | os.PathLike[str], args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Path:
    """The page of a function: of all its traces, the one for these arguments the last."""
    return save(path, sections_of_function(function, args, kwargs))


def text_of(stage: Any) -> str:
    """The page of one stage, as text."""
    return page_text(sections_of(stage))


def first_screen_of(stage: Any) -> str:
    """The first screen of its page; of a function that of its newest trace."""
    if isinstance(stage, fusec.Function):
        traces = stage.traces
        return first_screen(document(stage.__name__, traces[-1:]))
    return first_screen(sections_of(stage))


def sections_of(stage: Any) -> Json:
    """The document of one stage."""
    names = [getattr(stage, "name", ""), getattr(getattr(stage, "before", None), "name", ""),
             getattr(getattr(getattr(stage, "before", None), "before", None), "name", "")]
    return document(next(filter(None, names), "function"), [stage], getattr(stage, "line", None))


def sections_of_function(
    function: fusec.Function, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
) -> Json:
    """The document of a function.

    With arguments it is compiled for these and, where that changes nothing but copies of them,
    called some times.  Raises ``ValueError`` where there is nothing to show.
    """
    kwargs = kwargs or {}
    calls: dict[int, Measured] = {}
    traces: list[Any] = []
    if args or kwargs:
        concrete = function.concrete(*args, **kwargs)
        traces = [trace for trace in function.traces if trace is not concrete]
        calls[len(traces)] = _calls(function, concrete, args, kwargs)
        traces.append(concrete)
    traces = traces or list(function.traces)
    if not traces:
        raise user_error(
            ValueError, f"{function.__name__} has not been compiled: there is nothing to show",
            None, 'call it first, or give arguments: f.save_html("f.html", x)')
    return document(function.__name__, traces, str(traces[-1].line or ""), calls)


def _calls(
    function: fusec.Function, concrete: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Measured:
    reason = _unmeasurable(concrete, args, kwargs)
    if reason:
        return Measured(reason=reason)

    def given() -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Of a function that writes to its arguments others for each call."""
        return _copied((args, kwargs)) if concrete.build.traced.updates else (args, kwargs)

    return measured(concrete, function, given)


def _unmeasurable(concrete: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Why calls are not made; empty where they are."""
    if not isinstance(concrete, ConcreteFunction) or any(
            isinstance(leaf, fusec.TensorSpec) for leaf in flattened((args, kwargs))[0]):
        return "specs are no arguments of a call"
    traced = concrete.build.traced
    updated = set(traced.updates)
    if traced.assignments or any(met.input in updated for met in traced.variables):
        return "a call changes what outlives it"
    if traced.calls_host:
        return "a call prints, draws or calls other objects of the program"
    return ""


def _copied(tree: Any) -> Any:
    """The same, its arrays copied; arrays that share memory are copied together."""
    leaves, structure = flattened(tree)
    bases: dict[int, np.ndarray] = {}
    return structure.unflatten([_copy(leaf, bases) if isinstance(leaf, np.ndarray) else leaf
                                for leaf in leaves])


def _copy(array: np.ndarray, copies: dict[int, np.ndarray]) -> np.ndarray:
    base = array
    while isinstance(base.base, np.ndarray):
        base = base.base
    if base is array:
        return copies.setdefault(id(array), array.copy(order="K"))
    copy = copies.setdefault(id(base), base.copy(order="K"))
    if copy.strides != base.strides:  # it has gaps: its layout is not that of the copy
        return array.copy(order="K")
    offset = array.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    return np.ndarray(array.shape, array.dtype, copy, offset, array.strides)
