"""The wider table of NumPy functions: handlers of `arranging`, queries, and NumPy's own source."""

from __future__ import annotations

from typing import Any

import numpy as np

from fusec.errors import unsupported
from fusec.ir.sizes.bindings import resolve

from ..arrays import arranging, creation, shaping
from ..facts import this_numpy
from ..facts.constant_values import constant_value, is_constant
from ..facts.layout import is_c_contiguous
from ..index.gathers import are_static
from ..library.calls import call_by_name, call_library
from ..library.entries import refused_for_complex
from ..operands.operands import as_traced
from ..ufuncs import complex_numbers
from ..values.array import TracedArray
from ..values.handlers import entry
from ..values.operations import traced_source
from ..values.selected_arrays import roots
from ..values.storage import Storage
from ..values.trace import Trace


@entry(np.isreal)
def isreal(trace: Trace, x: Any) -> Any:
    """``np.isreal``."""
    a = as_traced(trace, x)
    if a.dtype.kind == "c":
        return a.imag == 0
    if a.type.is_weak:
        return True
    return creation.ONES_LIKE(trace, a, bool, "A") if a.is_array and a.ndim else np.True_


_SUM_IS_ZERO = "Weights sum to zero, can't be normalized"


@entry(np.piecewise)
def piecewise(
    trace: Trace, x: Any, condlist: Any, funclist: Any, *args: Any, **options: Any
) -> Any:
    """Functions are called with the elements selected, which may be none."""
    if not any(map(callable, funclist)):
        return traced_source(np.piecewise)(trace, x, condlist, funclist, *args, **options)
    array = as_traced(trace, x)
    if not array.ndim:
        return _of_one(trace, array, condlist, funclist, args, options)
    conditions = _conditions(trace, array, condlist, funclist)
    result: Any = np.zeros_like(array)
    for condition, function in zip(conditions, funclist, strict=True):
        result[condition] = _value(trace, function, array[condition], args, options)
    return result


def _of_one(
    trace: Trace, x: TracedArray, condlist: Any, funclist: Any, args: Any, options: Any
) -> Any:
    """Of a number: an array of rank 0."""
    row = x.reshape(1)
    conditions = [c.reshape(1) for c in _conditions(trace, x, condlist, funclist)]
    result: Any = np.zeros_like(row)
    for condition, function in zip(conditions, funclist, strict=True):
        values = _value(trace, function, row, args, options)
        result[...] = np.where(condition, values, result)
    return result.reshape(())


def _value(trace: Trace, function: Any, selected: Any, args: Any, options: Any) -> Any:
    if not callable(function):
        return function
    hooks: Any = trace.hooks
    return hooks.call(hooks.where, function, selected, *args, **options)


def _conditions(trace: Trace, x: TracedArray, condlist: Any, funclist: Any) -> list[Any]:
    """One for each function; a function more is for where none of them holds."""
    is_one = type(condlist) in (TracedArray, np.ndarray) and condlist.ndim == x.ndim
    given = [condlist] if is_one or not np.iterable(condlist) else list(condlist)
    conditions: list[Any] = [as_traced(trace, c).astype(bool) for c in given]
    if len(conditions) == len(funclist) - 1:
        some = conditions[0]
        for other in conditions[1:]:
            some = np.logical_or(some, other)
        conditions.append(np.logical_not(some))
    if len(conditions) != len(funclist):
        raise trace.error(ValueError(
            f"with {len(given)} condition(s), either {len(given)} or {len(given) + 1} functions "
            f"are expected"), [x.value])
    return conditions


@entry(np.average)
def average(
    trace: Trace, a: Any, axis: Any = None, weights: Any = None, returned: bool = False,
    **options: Any,
) -> Any:
    """NumPy's own, with its check of the sum of the weights."""
    result = traced_source(np.average, False)(trace, a, axis, weights, returned, **options)
    if weights is not None:
        w, x = as_traced(trace, weights), as_traced(trace, a)
        total: Any = np.sum(w, axis=axis) if w.shape == x.shape else np.sum(w)
        holds: Any = np.all(np.not_equal(total, 0))
        trace.check(holds.value, ZeroDivisionError(_SUM_IS_ZERO))
    return result


def _dtype_or_value(trace: Trace, x: Any) -> Any:
    """The stand-in for an operand when NumPy asks only for its dtype."""
    if type(x) is not TracedArray:
        return resolve(x, {})
    return x.type.zero if x.type.is_weak else x.dtype


@entry(np.result_type)
def result_type(trace: Trace, *arrays_and_dtypes: Any) -> np.dtype:
    """``np.result_type``."""
    return np.result_type(*[_dtype_or_value(trace, a) for a in arrays_and_dtypes])


@entry(np.can_cast)
def can_cast(trace: Trace, from_: Any, to: Any, casting: str = "safe") -> bool:
    """``np.can_cast``."""
    rule: Any = casting
    return np.can_cast(_dtype_or_value(trace, from_), to, rule)


@entry(np.common_type)
def common_type(trace: Trace, *arrays: Any) -> Any:
    """``np.common_type``."""
    return np.common_type(*[np.empty(0, as_traced(trace, a).dtype) for a in arrays])


@entry(np.min_scalar_type)
def min_scalar_type(trace: Trace, a: Any, /) -> np.dtype:
    """``np.min_scalar_type`` of an array: its dtype (of a scalar it depends on the value)."""
    x = as_traced(trace, a)
    return x.dtype if x.ndim else np.min_scalar_type(x.concrete(
        "the number", "give a dtype"))


@entry(np.shares_memory, np.may_share_memory)
def shares_memory(trace: Trace, a: Any, b: Any, /, max_work: Any = None) -> bool:
    """``np.shares_memory``: of arrays made in the function False, of two whole views of one True.

    Two arguments may overlap in one call and not in the next, which the plan does not look at.
    """
    x, y = as_traced(trace, a), as_traced(trace, b)
    if x.storage is None or y.storage is None or not (x.size and y.size):
        return False
    if x.storage is not y.storage:
        _refuse_unless_apart(trace, roots(x.storage), roots(y.storage))
        return False
    if any(step.op == "Slice" for step in (*x.steps, *y.steps)):
        raise unsupported("np.shares_memory of slices of one array", loc=trace.loc,
                          cure="ask before the call")
    return True


def _refuse_unless_apart(trace: Trace, a: list[Storage], b: list[Storage]) -> None:
    outside = [any(root.origin is not None for root in side) for side in (a, b)]
    if all(outside) or not set(a).isdisjoint(b):
        raise unsupported("np.shares_memory of two arrays that are arguments", loc=trace.loc,
                          cure="ask before the call")


@entry(np.linalg.diagonal)
def linalg_diagonal(trace: Trace, x: Any, /, *, offset: Any = 0) -> Any:
    """``np.linalg.diagonal``: of the last two axes."""
    return arranging.diagonal(trace, x, offset, -2, -1)


@entry(np.linalg.trace)
def linalg_trace(trace: Trace, x: Any, /, *, offset: Any = 0, dtype: Any = None) -> Any:
    """``np.linalg.trace``: over the last two axes."""
    return arranging.trace_(trace, x, offset, -2, -1, dtype)


@entry(np.asfortranarray, hooked="traced")
def asfortranarray(trace: Trace, a: Any, dtype: Any = None, *, like: Any = None) -> Any:
    """``np.asfortranarray``: the array itself if it is in Fortran order, else a copy."""
    x = creation.asarray(trace, a, dtype)
    x = x if x.ndim else x.reshape(1)
    if is_c_contiguous(x.shape[::-1], x.strides[::-1], x.itemsize):
        return x
    return shaping.copy_of(x, "F")


@entry(np.linspace, hooked="traced")
def linspace(trace: Trace, start: Any, stop: Any, *args: Any, **kwargs: Any) -> Any:
    """``np.linspace``; between traced ends as NumPy's source computes it."""
    if type(start) is TracedArray or type(stop) is TracedArray:
        start, stop = _of_one_precision(trace, start, stop), _of_one_precision(trace, stop, start)
        return traced_source(np.linspace, False)(trace, start, stop, *args, **kwargs)
    evaluate: Any = np.linspace
    result = evaluate(start, stop, *args, **kwargs)
    if type(result) is tuple:  # with the step
        return creation.array(trace, result[0]), result[1]
    return creation.array(trace, result)


def _of_one_precision(trace: Trace, x: Any, other: Any) -> Any:
    """A Python number beside a NumPy number or array: of that precision."""
    if type(x) not in (int, float) or type(other) is not TracedArray or other.type.is_weak:
        return x
    dtype = np.result_type(other.dtype, x)
    return dtype.type(x) if dtype.kind in "fc" else x


@entry(np.i0)
def i0(trace: Trace, x: Any) -> Any:
    """``np.i0``: NumPy's two Chebyshev series, chosen by size."""
    given = shaping.spread_scalar(as_traced(trace, x))
    size: Any = np.abs(given if given.dtype.kind == "f" else given.astype(np.float64))
    small, large = (traced_source(getattr(np.lib._function_base_impl, name))(trace, size)
                    for name in ("_i0_1", "_i0_2"))
    result: Any = np.where(size <= 8.0, small, large)
    if not size.is_array:
        return result
    laid_out = creation.ZEROS_LIKE(trace, size)
    laid_out[...] = result
    return laid_out


@entry(np.from_dlpack)
def from_dlpack(trace: Trace, x: Any, /, *, device: Any = None, copy: Any = None) -> Any:
    """``np.from_dlpack`` of a traced array: a view of it, or a copy when asked."""
    array = as_traced(trace, x)
    if device not in (None, "cpu"):
        raise ValueError('Device not understood. Only "cpu" is allowed, but received: ' + device)
    result = shaping.copy_of(array) if copy else array[...]
    if this_numpy.DLPACK_IS_READ_ONLY:
        return result.view_through("ReadOnly", result.strides)
    return result


_ORDERS = {"C": creation.ascontiguousarray, "F": asfortranarray}
_LETTERS = {"C_CONTIGUOUS": "C", "CONTIGUOUS": "C", "F_CONTIGUOUS": "F", "FORTRAN": "F",
            "ENSUREARRAY": "E", "WRITEABLE": "W", "ALIGNED": "A", "OWNDATA": "O"}


@entry(np.require, hooked="traced")
def require(
    trace: Trace, a: Any, dtype: Any = None, requirements: Any = None, *, like: Any = None,
) -> Any:
    """``np.require``: traced arrays are aligned and writeable; a view is copied to own its data."""
    asked = {_LETTERS.get(r.upper(), r.upper()) for r in requirements or ()}
    if {"C", "F"} <= asked:
        raise ValueError("Cannot specify both \"C\" and \"F\" order")
    x = creation.asarray(trace, a, dtype)
    for letter in asked & set(_ORDERS):
        x = _ORDERS[letter](trace, x)
    if "O" not in asked or not x.steps:
        return x
    is_fortran = is_c_contiguous(x.shape[::-1], x.strides[::-1], x.itemsize)
    return shaping.copy_of(x, "F" if is_fortran else "C")


@entry(np.array_equiv)
def array_equiv(trace: Trace, a1: Any, a2: Any) -> Any:
    """``np.array_equiv``; of sizes that the run decides at run time."""
    if are_static(as_traced(trace, a1), as_traced(trace, a2)):
        return traced_source(np.array_equiv)(trace, a1, a2)
    return call_by_name(trace, np.array_equiv, (a1, a2), {})


@entry(np.delete)
def delete(trace: Trace, arr: Any, obj: Any, axis: Any = None) -> Any:
    """``np.delete``; of positions that the run decides at run time: there may be equal ones."""
    if type(obj) is TracedArray and obj.ndim and not is_constant(obj.value):
        return call_by_name(trace, np.delete, (arr, obj, axis), {})
    return traced_source(np.delete)(trace, arr, _places(obj), axis)


def _places(obj: Any) -> Any:
    """Known positions as plain numbers: NumPy's code writes them into arrays of its own."""
    index = constant_value(obj.value) if type(obj) is TracedArray and obj.ndim else None
    return obj if index is None or not index.size or index.dtype.kind not in "biu" else (
        index.tolist())


@entry(np.insert)
def insert(trace: Trace, arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    """``np.insert``; before positions that the run decides: NumPy's code makes a mask of them."""
    if type(obj) is TracedArray and obj.ndim and not is_constant(obj.value):
        return call_by_name(trace, np.insert, (arr, obj, values, axis), {})
    if type(values) is TracedArray and not values.type.is_weak:
        values = shaping.spread_scalar(values)  # which is cast, as arrays are
    return traced_source(np.insert)(trace, arr, _places(obj), values, axis)


@entry(np.einsum_path)
def einsum_path(trace: Trace, *operands: Any, optimize: Any = "greedy",
                einsum_call: bool = False) -> Any:
    """``np.einsum_path``: it depends on shapes alone, so NumPy answers while tracing."""
    def stand_in(x: Any) -> Any:
        if type(x) is not TracedArray:
            return x
        return np.broadcast_to(np.zeros((), x.dtype), x.shape)

    path: Any = np.einsum_path  # its stubs know one value of einsum_call
    return path(*map(stand_in, operands), optimize=optimize, einsum_call=einsum_call)


@entry(np.einsum)
def einsum(trace: Trace, *operands: Any, **options: Any) -> Any:
    """``np.einsum``: one array with its axes in another order is a view, all else NumPy's."""
    if len(operands) == 2 and type(operands[1]) is TracedArray and not options:
        perm = _permutation(operands[0], operands[1])
        if perm is not None:
            return operands[1].transpose(perm)
    return call_library(trace, "Einsum", operands, options)


def _permutation(subscripts: Any, x: TracedArray) -> tuple[int, ...] | None:
    """The order of axes that the subscripts ask for; None where they ask for more."""
    if type(subscripts) is not str or not x.is_array:
        return None
    labels, _, wanted = subscripts.replace(" ", "").partition("->")
    wanted = wanted if "->" in subscripts else "".join(sorted(labels))
    is_plain = labels.isalpha() and len(set(labels)) == len(labels) == x.ndim
    if not is_plain or sorted(labels) != sorted(wanted):
        return None
    return tuple(map(labels.index, wanted))


@entry(np.linalg.tensorinv)
def tensorinv(trace: Trace, a: Any, *rest: Any, **options: Any) -> Any:
    """``np.linalg.tensorinv``, which compares ``ind`` before it is taken for a number."""
    ind = next(iter(rest), options.get("ind", 2))
    if type(ind) is np.ndarray and not ind > 0:
        raise trace.error(ValueError("Invalid ind argument."))
    return call_library(trace, "LinalgTensorinv", (a, *rest), options)


# Functions whose own source is traced.  Each has a differential test.
TRACED: tuple[Any, ...] = (
    np.hsplit, np.vsplit, np.dsplit, np.pad, np.rot90,
    np.fliplr, np.flipud, np.block, np.append,
    np.atleast_2d, np.atleast_3d, np.meshgrid, np.rollaxis, np.matrix_transpose,
    np.allclose, np.array_equal, np.sinc, np.angle, np.unwrap, np.fix,
    np.select, np.trapezoid, np.ediff1d, np.cov, np.corrcoef, np.cross,
    np.tensordot, np.isneginf, np.isposinf, np.real, np.iscomplexobj, np.isrealobj,
    np.iscomplex, np.polyadd, np.polysub, np.polyder, np.polyint,
    np.apply_over_axes, np.fft.fftshift, np.fft.ifftshift, np.linalg.outer,
    np.linalg.cross, np.linalg.vecdot, np.linalg.matmul, np.linalg.matrix_power,
    np.linalg.multi_dot, np.linalg.tensordot, np.linalg.matrix_norm, np.linalg.vector_norm,
    np.linalg.matrix_transpose, np.logspace, np.ix_,
    np.tril_indices_from, np.triu_indices_from, np.diag_indices_from,
)
# Functions that test data, and what is taken for the answer: True for those that only warn then
# (NaN results are set by masks), False where the test picks a special case of the same formula
# (equal steps in `gradient`).
TRACED_ASSUMING: dict[Any, bool] = {
    np.nansum: True, np.nanprod: True, np.nanmean: True, np.nanvar: True, np.nanstd: True,
    np.gradient: False,
}
_isclose = traced_source(np.isclose, True)


@entry(np.isclose)
def isclose(
    trace: Trace, a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: Any = False
) -> Any:
    """``np.isclose``; its source tests ``equal_nan``, too."""
    if type(equal_nan) is TracedArray:
        raise unsupported("equal_nan that data decides", loc=trace.loc,
                          cure="compute both, and choose with np.where(c, both, neither)")
    return _isclose(trace, a, b, rtol, atol, equal_nan)


for _function in TRACED:
    entry(_function)(traced_source(_function))
for _function, _assume in TRACED_ASSUMING.items():
    entry(_function)(traced_source(_function, _assume))
for _function in (np.fft.fftfreq, np.fft.rfftfreq):
    entry(_function, hooked="traced")(traced_source(_function))
entry(np.real_if_close)(refused_for_complex(np.real_if_close, traced_source(np.real_if_close)))
entry(np.imag)(complex_numbers.imag)
