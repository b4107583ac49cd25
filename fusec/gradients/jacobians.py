"""`jacobian`, `hessian` and `hvp`: derivatives of arrays, and second derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from fusec.core.display.amounts import count_text
from fusec.dispatch.function import Function
from fusec.errors import user_error
from fusec.ir import Value
from fusec.ir.sizes.dims import symbols_of
from fusec.ir.walks import nodes_behind
from fusec.ops import registry
from fusec.ops.derivatives import Term, full
from fusec.trace.values.array import TracedArray, from_value
from fusec.trace.values.trace import Trace

from .api import Argnums, P, grad, jvp, numbers_of
from .lanes.axes import AxisLeaf
from .lanes.calls import LaneCall
from .one_hot import on_diagonal, rows
from .point import DerivativePoint, as_result, call_at, directions, result_leaves
from .transformed_functions import check_callable, check_sequences, transformed

LEAST_DIAGONAL = 64  # elements; of fewer the rows are no more work
MOST_IN_LANES = 1 << 23  # elements of an array of all directions; more are done one by one


def jacobian(
    f: Callable[P, Any], argnums: Argnums = 0, mode: Literal["forward", "reverse"] | None = None
) -> Function[P, Any]:
    """The derivatives of all elements of the result of ``f`` by all elements of an argument.

    For a result of shape ``r`` and an argument of shape ``a`` an array of shape ``r + a``; of
    pytrees the structure of the result, in each place that of the argument(s).

    ``mode``: "forward" takes a direction for each element of the arguments, "reverse" goes back
    from each element of the result; None takes the one with fewer of them, forward where they are
    as many.  ``argnums`` and exceptions are those of `grad`; of complex numbers it is refused.
    Raises ``ValueError`` for another mode.
    """
    check_callable("jacobian", f)
    if mode not in (None, "forward", "reverse"):
        raise user_error(ValueError, "jacobian: mode is none of its modes", None,
                         'give "forward", "reverse", or None for the one with fewer directions',
                         values=[("mode", repr(mode))])
    chosen = numbers_of(argnums)

    def run(trace: Trace, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        point = call_at(trace, f, args, kwargs, chosen, None, "jacobian")
        leaves, structure = result_leaves(point)
        _check(point, leaves)
        inputs = [variable.like for variable in point.variables]
        is_forward = _is_forward(trace, mode, sum(x.size for x in inputs),
                                 sum(y.size for y in leaves))
        table = (_forward if is_forward else _back)(point, inputs, leaves)
        return structure.unflatten([point.structure.unflatten(row) for row in table])

    return transformed("jacobian", f, run, (chosen, mode), made_by=(jacobian, (f, chosen, mode)))


def _is_forward(trace: Trace, mode: str | None, inputs: int, results: int) -> bool:
    """The direction, of which `fusec.explain` tells; each costs about as much as the function."""
    is_forward = inputs <= results if mode is None else mode == "forward"
    taken, other = (inputs, results) if is_forward else (results, inputs)
    trace.builder.notes.append(
        f"jacobian: {'forward' if is_forward else 'reverse'}, {count_text(taken, 'direction')}"
        + (", as mode says" if mode else "")
        + f"; {'reverse' if is_forward else 'forward'} would take {other}")
    return is_forward


def _check(point: DerivativePoint, leaves: Sequence[TracedArray]) -> None:
    for x in [*(v.like for v in point.variables), *leaves]:
        if x.dtype.kind != "f":
            cure = "take the real and the imaginary part" if x.dtype.kind == "c" else (
                "return floats: integers and booleans have no derivative")
            raise user_error(TypeError, "jacobian of values that are no real floats",
                             point.trace.loc, cure, values=[("value", x.type)])
        if symbols_of(x.shape):
            raise user_error(TypeError, "jacobian of values of a size that only the run knows",
                             point.trace.loc, "take fusec.vjp or fusec.jvp")


Table = list[list[Any]]  # for each result, for each variable


def _forward(point: DerivativePoint, inputs: Sequence[Any], leaves: Sequence[TracedArray]) -> Table:
    """A direction for each element of the variables."""
    trace = point.trace
    columns = []
    for number, x in enumerate(inputs):
        def derivative(unit: Any, number: int = number) -> list[Any]:
            given = [_direction(trace, unit if k == number else None, v)
                     for k, v in enumerate(inputs)]
            pushed = point.pushed(given, [y.value for y in leaves])
            return [as_result(trace, y, t) for y, t in zip(leaves, pushed, strict=True)]

        if _is_diagonal(point.variables[number].value, [y.value for y in leaves]):
            found = [_called(trace, on_diagonal, d) for d in derivative(np.ones(x.shape, x.dtype))]
        else:
            found = _rows(trace, derivative, x, leaves)
        columns.append([_moved(array, x, y) for array, y in zip(found, leaves, strict=True)])
    return [list(row) for row in zip(*columns, strict=True)]


def _is_diagonal(variable: Value, results: Sequence[Value]) -> bool:
    """Whether an element of a result follows from that element of the variable alone, so that one
    direction tells all; of vectors, unless they are short."""
    shape, reached = variable.type.shape, {variable}
    if len(shape) != 1 or shape[0] < LEAST_DIAGONAL:
        return False
    for node in nodes_behind(results, lambda v: v == variable):
        if reached.isdisjoint(node.inputs):
            continue
        if registry.get(node.op).kind != "elementwise" or node.types[0].shape != shape:
            return False
        reached.update(node.outputs)
    return reached.issuperset(results)


def _called(trace: Trace, function: Callable[..., Any], *args: Any) -> Any:
    """The result of a function of plain Python, converted as programs are."""
    assert trace.hooks is not None
    return trace.hooks.call(trace.hooks.where, function, *args)


def _back(point: DerivativePoint, inputs: Sequence[Any], leaves: Sequence[TracedArray]) -> Table:
    """A cotangent for each element of the results."""
    table = []
    for y in leaves:
        def derivative(unit: Any, y: TracedArray = y) -> list[Any]:
            term = _direction(point.trace, unit, y)
            return point.structure.flatten_up_to(point.pulled([(y.value, term)]))

        found = _rows(point.trace, derivative, y, inputs)
        table.append([array.reshape((*y.shape, *x.shape))
                      for array, x in zip(found, inputs, strict=True)])
    return table


def _rows(trace: Trace, derivative: Any, like: Any, results: Sequence[Any]) -> list[Any]:
    """The derivative in each direction: in lanes, unless these take much memory."""
    if like.size * max(like.size, *(result.size for result in results)) <= MOST_IN_LANES:
        unit = _units(trace, like)
        leaf = AxisLeaf("direction", unit, 0, is_unit=len(like.shape) == 1)
        lanes = LaneCall(trace, "jacobian", [leaf], None)
        found, _ = lanes.run(lambda inside: derivative(inside[0]))
        return [lanes.result(x, 0, "the derivative") for x in found]
    sizes = [(result.shape, result.dtype) for result in results]
    rows_of: list[Any] = _called(trace, rows, derivative, like.shape, like.dtype, sizes)
    return rows_of


def _units(trace: Trace, like: Any) -> TracedArray:
    """All unit vectors, as operations: kernels compute an element where they would read it."""
    builder = trace.builder
    place = builder.emit("Iota", size=like.size, dtype=np.dtype(np.int32))
    row, column = (builder.emit("ExpandDims", place, axes=(axis,)) for axis in (1, 0))
    one, zero = (builder.const(like.dtype.type(x)) for x in (1, 0))
    units = builder.emit("Where", builder.emit("Equal", row, column), one, zero)
    return from_value(trace, units).reshape((like.size, *like.shape))


def _moved(array: Any, x: Any, y: Any) -> Any:
    """The elements of the result first."""
    whole = array.reshape((*x.shape, *y.shape))
    count = len(x.shape)
    return whole.transpose((*range(count, count + len(y.shape)), *range(count)))


def _direction(trace: Trace, unit: Any, like: TracedArray) -> Term:
    if unit is None:
        return full(trace.builder, like.dtype.type(0), like.value)
    (term,) = directions(trace, "jacobian", unit, None, [like], "directions")
    return term


def hessian(f: Callable[P, Any], argnums: Argnums = 0) -> Function[P, Any]:
    """The second derivatives of ``f``, which returns one float: forward over the way back.

    By an argument of shape ``a`` an array of shape ``a + a``; by several, or pytrees, the structure
    of these within itself.  ``argnums`` and
    exceptions are those of `grad`.
    """
    return jacobian(grad(f, argnums), argnums)


def hvp(f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """The Hessian of ``f`` at the primals times the tangents, a tuple like these: the derivative of
    the gradient in their direction, for which no matrix is made.  Raises as `grad` does."""
    check_sequences("hvp", primals=primals, tangents=tangents)
    return jvp(grad(f, tuple(range(len(primals)))), primals, tangents)[1]
