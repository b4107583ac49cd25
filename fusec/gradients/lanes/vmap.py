"""`vmap`: a function of one lane as a function of all lanes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ParamSpec

from fusec.dispatch.function import Function
from fusec.errors import short_errors, user_error
from fusec.gradients.point import called
from fusec.gradients.transformed_functions import check_callable, transformed
from fusec.trace.boundary.leftovers import check_containers
from fusec.trace.facts.trees import flattened, flattened_in_order
from fusec.trace.values.trace import Trace

from .axes import Axes, check_axes, check_keywords, of_arguments, with_axes
from .calls import LaneCall
from .first_failure import LaneFunction

P = ParamSpec("P")
# Defaults are the function's own business: they have no lanes.
_ANY = inspect.signature(lambda *args, **kwargs: None)


def vmap(
    f: Callable[P, Any], in_axes: Axes = 0, out_axes: Axes = 0, axis_size: int | None = None
) -> Function[P, Any]:
    """``f``, which is written for one lane, for all lanes at once, as a jitted function.

    ``in_axes``: the axis of the arguments that counts lanes, an int for all positional arguments,
    or a tuple with an int or None for each; None: the argument is the same in each lane.  An
    argument that is a pytree may have a pytree of ints and None.  Keyword arguments have lanes
    along axis 0, or along that which a tuple has for their parameters.  ``out_axes``: where lanes
    stand in the results, in the same way; None is for results that are the same in each lane.
    ``axis_size``: the number of lanes, where no argument says it.  Names and conventions are those
    of JAX.

    A lane of an array of rank 1 is a NumPy scalar.  Operations are done for all lanes at once;
    ``for`` and ``while``, and ``if`` where a lane's data decide, are a loop over lanes in native
    code.  A lane may write to its own part of an argument, as in a loop over lanes.

    Raises ``ValueError`` where axes do not fit or sizes disagree, and ``UnsupportedError``, with
    the line, for state that lanes would share: writes to other arrays, attributes, ``print`` and
    ``np.random``.
    """
    name = "vmap"
    check_callable(name, f)
    for what, axes in (("in_axes", in_axes), ("out_axes", out_axes)):
        check_axes(name, what, axes)
    if isinstance(axis_size, bool) or not isinstance(axis_size, int | None) or (
            axis_size is not None and axis_size < 0):
        raise user_error(TypeError, f"{name}: axis_size is no number of lanes", None,
                         "give an int", values=[("axis_size", repr(axis_size))])

    def run(trace: Trace, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return mapped_call(trace, name, f, args, kwargs, in_axes, out_axes, axis_size)

    key = (_key(in_axes), _key(out_axes), axis_size)
    made_by = (vmap, (f, in_axes, out_axes, axis_size))
    kind = LaneFunction if in_axes == 0 or isinstance(in_axes, list | tuple) else ByPosition
    return transformed(name, f, run, key, _signature(f), made_by, kind)


class ByPosition(LaneFunction):
    """One with an axis for all arguments that is not the one which keyword arguments have."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if kwargs:
            lanes: Any = self.python_function
            with short_errors:
                check_keywords("vmap", lanes.__signature__, kwargs, lanes.__fusec_made_by__[1][1])
        return super().__call__(*args, **kwargs)


def _signature(f: Any) -> inspect.Signature | None:
    """None for the function's own."""
    try:
        parameters = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):  # a function in C that says nothing
        return _ANY
    return None if all(p.default is p.empty for p in parameters) else _ANY


def mapped_call(
    trace: Trace, name: str, f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
    in_axes: Axes, out_axes: Axes, axis_size: int | None,
) -> Any:
    """The call of ``f`` for all lanes, in a trace."""
    leaves = of_arguments(name, f, args, kwargs, in_axes, trace.loc)
    lanes = LaneCall(trace, name, leaves, axis_size)
    structure = flattened((args, kwargs))[1]

    def one_lane(inside: list[Any]) -> Any:
        own = positional, named = structure.unflatten(inside)
        given = flattened_in_order(own)
        result = called(trace, f, positional, named)
        check_containers(trace, given, own)
        return result

    found, results = lanes.run(one_lane)
    placed = with_axes(name, "out_axes", "the result", results.unflatten(found), out_axes,
                       trace.loc)
    return results.unflatten([
        None if x.leaf is None else lanes.result(x.leaf, x.axis, x.path) for x in placed])


def _key(axes: Axes) -> Any:
    leaves, structure = flattened(axes)
    return structure, tuple(leaves)
