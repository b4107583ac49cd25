"""`grad`, `value_and_grad`, `vjp` and `jvp`: derivatives of functions that compute with NumPy.

Names and order of arguments are those of JAX.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ParamSpec, TypeVar

import numpy as np

from fusec.dispatch.function import Function
from fusec.errors import short_errors, user_error
from fusec.ops.derivatives import Term
from fusec.trace.facts.layout import contiguous, order_like
from fusec.trace.facts.trees import flattened, mapped
from fusec.trace.operands.operands import as_traced
from fusec.trace.values.array import TracedArray, from_value
from fusec.trace.values.trace import Trace, current

from .outer_state import OuterState
from .point import (
    DerivativePoint,
    as_result,
    call_at,
    called,
    directions,
    ones,
    real_number,
    result_leaves,
)
from .transformed_functions import check_callable, check_sequences, transformed

P = ParamSpec("P")
R = TypeVar("R")
Argnums = int | Sequence[int]


def grad(
    f: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False, wrt: Any = None
) -> Function[P, Any]:
    """The gradient of a function that returns one float, as a jitted function of its arguments.

    ``argnums``: the position of the argument to differentiate by, or several for a tuple of
    gradients; an argument may be a list, tuple or dict of arrays (a pytree), and its gradient is
    one of the same structure.  A gradient has the shape and dtype of its variable; of complex
    arguments it is ``df/dx + i df/dy``.  ``has_aux``: ``f`` returns ``(y, others)``, and the
    gradient function ``(gradient, others)``.  ``wrt``: variables in the place of arguments: a
    Variable, the path of an array that an argument holds (``"model.layers[0].w"``, or ``"self.w"``
    of a method), or a pytree of these.

    The gradient is by the values at entry, also of arrays that ``f`` writes to; these are written
    as in a plain call.  Raises ``TypeError`` where an argument or the result is no float, and
    ``UnsupportedError``, with the line, for operations that have no derivative.
    """
    name, chosen = "grad", numbers_of(argnums)
    both = _value_and_grad(name, f, chosen, has_aux, wrt)

    def run(trace: Trace, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        (_, *others), gradient = both(trace, args, kwargs)
        return (gradient, others[0]) if has_aux else gradient

    return transformed(name, f, run, (chosen, has_aux, _key(wrt)),
                       made_by=(grad, (f, chosen, has_aux, wrt)))


def value_and_grad(
    f: Callable[P, R], argnums: Argnums = 0, has_aux: bool = False, wrt: Any = None
) -> Function[P, tuple[R, Any]]:
    """As `grad`, but returns ``(f's result, gradient)``; with ``has_aux`` ``((y, others),
    gradient)``.  ``argnums`` and ``wrt`` are those of `grad`."""
    name, chosen = "value_and_grad", numbers_of(argnums)
    both = _value_and_grad(name, f, chosen, has_aux, wrt)

    def run(trace: Trace, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        results, gradient = both(trace, args, kwargs)
        return (tuple(results) if has_aux else results[0]), gradient

    return transformed(name, f, run, (chosen, has_aux, _key(wrt)),
                       made_by=(value_and_grad, (f, chosen, has_aux, wrt)))


def _value_and_grad(name: str, f: Any, argnums: Any, has_aux: bool, wrt: Any) -> Any:
    """A function of the trace and a call's arguments: ``([y] or [y, others], gradient)``."""
    check_callable(name, f)

    def both(trace: Trace, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        point = call_at(trace, f, args, kwargs, argnums, wrt, name)
        y, *others = _apart(point) if has_aux else [point.result]
        value = real_number(point, y).value
        return [y, *others], point.pulled([(value, ones(trace, value))])

    return both


def _apart(point: DerivativePoint) -> Sequence[Any]:
    """The result of a function with ``has_aux``."""
    result = point.result
    if not isinstance(result, tuple) or len(result) != 2:
        raise user_error(
            TypeError, f"{point.name} with has_aux=True of a function that returns no pair",
            point.trace.loc, "return (y, others)", values=[("result", type(result).__name__)])
    point.result = result[0]
    return result


def vjp(f: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """``(f(*primals), pull)``: ``pull(cotangents)`` gives the tuple of gradients of
    ``sum(cotangents * result)`` by the primals.

    Cotangents have the structure, shapes and dtypes of the result.  In a compiled function ``pull``
    adds nodes for the way back to those that computed the result; outside of one it is a compiled
    function that computes forwards and back, and raises ``RuntimeError`` where a Variable that
    ``f`` uses holds something else than then.  With ``has_aux`` ``f`` returns ``(result, others)``
    and this ``(result, pull, others)``.  Raises as `grad` does.
    """
    check_callable("vjp", f)
    with short_errors:
        trace = current()
        return _vjp(f, primals, has_aux) if trace is None else _traced_vjp(
            trace, f, primals, has_aux)


def _traced_vjp(trace: Trace, f: Any, primals: tuple[Any, ...], has_aux: bool) -> Any:
    point = call_at(trace, f, primals, {}, tuple(range(len(primals))), None, "vjp")
    others = _apart(point)[1:] if has_aux else []
    leaves, structure = result_leaves(point)

    def pull(cotangents: Any) -> Any:
        terms = directions(trace, "vjp", cotangents, structure, leaves, "cotangents")
        return point.pulled([(x.value, t) for x, t in zip(leaves, terms, strict=True)])

    return (point.result, pull, *others)


def _vjp(f: Any, primals: tuple[Any, ...], has_aux: bool) -> Any:
    """Outside of a trace: the primals are copied, for the program may change them before it pulls.
    """
    at = tuple(mapped(_copied, primal) for primal in primals)
    value = transformed("value", f, partial(_value, f), None)
    state = OuterState(value, primals)
    result = value(*primals)

    def run(trace: Trace, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        point_of, cotangents = args
        return _traced_vjp(trace, f, point_of, has_aux)[1](cotangents)

    pulled = transformed("vjp", f, run, has_aux, _POINT)

    def pull(cotangents: Any) -> Any:
        state.check()
        return pulled(tuple(mapped(_copied, x) for x in at), cotangents)

    return (result[0], pull, result[1]) if has_aux else (result, pull)


_POINT = inspect.signature(lambda primals, directions: None)


def _value(f: Any, trace: Trace, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return called(trace, f, args, kwargs)


def _copied(leaf: Any) -> Any:
    return np.array(leaf, order="K") if isinstance(leaf, np.ndarray) else leaf


def jvp(
    f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
) -> Any:
    """``(f(*primals), tangent)``: the derivative of the result in the direction of the tangents,
    which have the structure, shapes and dtypes of the primals.

    With ``has_aux`` ``f`` returns ``(result, others)`` and this ``(result, tangent, others)``.
    Raises as `grad` does.
    """
    check_callable("jvp", f)
    check_sequences("jvp", primals=primals, tangents=tangents)
    with short_errors:
        trace = current()
        if trace is not None:
            return _traced_jvp(trace, f, tuple(primals), tuple(tangents), has_aux)

        def run(trace: Trace, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            return _traced_jvp(trace, f, args[0], args[1], has_aux)

        return transformed("jvp", f, run, has_aux, _POINT)(tuple(primals), tuple(tangents))


def _traced_jvp(
    trace: Trace, f: Any, primals: tuple[Any, ...], tangents: tuple[Any, ...], has_aux: bool
) -> Any:
    tangents = mapped(partial(_as_it_is, trace), tangents)  # f may write to what they are
    point = call_at(trace, f, primals, {}, tuple(range(len(primals))), None, "jvp")
    others = _apart(point)[1:] if has_aux else []
    leaves, structure = result_leaves(point)
    likes = [variable.like for variable in point.variables]
    given = _tangents(point, tangents, likes)
    pushed = point.pushed(given, [x.value for x in leaves])
    tangent = structure.unflatten([
        as_result(trace, x, t) for x, t in zip(leaves, pushed, strict=True)])
    return (point.result, tangent, *others)


def _as_it_is(trace: Trace, leaf: Any) -> Any:
    """The contents of an array now."""
    if not isinstance(leaf, (TracedArray, np.ndarray)):
        return leaf
    return from_value(trace, as_traced(trace, leaf).value)


def _tangents(point: DerivativePoint, tangents: Any, likes: Sequence[TracedArray]) -> list[Term]:
    return directions(point.trace, "jvp", tangents, point.structure, likes, "tangents")


def stop_gradient(x: R) -> R:
    """The value, of which derivatives know nothing: it is a constant to them.

    ``x``: an array or a number, or a pytree of them; a result is a copy.  Outside of compiled
    functions it is ``x``.
    """
    trace = current()
    stopped: R = x if trace is None else mapped(partial(_stopped, trace), x)
    return stopped


def _stopped(trace: Trace, leaf: Any) -> Any:
    if leaf is None or isinstance(leaf, str):
        return leaf
    x = as_traced(trace, leaf)
    order = order_like(x.shape, x.strides, x.itemsize, "K")
    strides = contiguous(x.shape, x.itemsize, order)
    return from_value(trace, trace.emit("StopGradient", x.value), strides)


def numbers_of(argnums: Argnums) -> int | tuple[int, ...]:
    """The arguments to differentiate by, as one number or a tuple.  Raises ``TypeError`` for names
    and for other objects."""
    try:
        if isinstance(argnums, Sequence) and not isinstance(argnums, str):
            return tuple(map(operator.index, argnums))
        return operator.index(argnums)
    except TypeError:
        raise user_error(
            TypeError, "argnums is no position of an argument", None,
            "give a position, or several in a tuple: argnums=0, argnums=(0, 2); arguments are "
            "counted from 0, by name they are constants", values=[("argnums", repr(argnums))],
        ) from None


def _key(wrt: Any) -> Any:
    """The key of a set of Variables; the transformed function keeps them alive."""
    if wrt is None:
        return None
    leaves, structure = flattened(wrt)
    return structure, tuple(x if isinstance(x, str) else id(x) for x in leaves)


__all__ = ["grad", "jvp", "stop_gradient", "value_and_grad", "vjp"]
