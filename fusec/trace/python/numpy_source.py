"""NumPy's own Python functions, converted and traced as the user's are.

Much of NumPy is Python over a few primitives: ``np.pad`` fills slices, ``np.gradient`` subtracts
them, ``np.cov`` multiplies matrices.  Here the installed NumPy's source of such a function is
converted and run on traced values, so its result dtypes, kinds, views and errors are NumPy's own.
The installed version runs; nothing of it is copied.

`more_functions.TRACED` names the functions known to work this way; each has a differential test.
"""

from __future__ import annotations

import builtins
import operator
import warnings
from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np

from fusec.errors import unsupported
from fusec.ir.sizes.dims import Dim, equal

from ..convert.cache import convert
from ..convert.hooks import Hooks
from ..facts.constant_values import constant_value
from ..hooks import attributes
from ..hooks.policy import PROGRAM
from ..index import slice_runs
from ..objects.tracing_hooks import UNHANDLED, Operands, Policy, TracingHooks, with_policy
from ..operands.operands import BOOL, as_traced, spread_scalar
from ..operands.python_numbers import weak
from ..rewrite.transformer import Where
from ..scipy import functions as scipy_functions  # noqa: F401 (fill TABLE)
from ..values.array import TracedArray, copy_of
from ..values.handlers import NUMPYS_TABLE, TABLE, when_traced
from ..values.operations import operation
from ..values.trace import Trace
from . import (  # noqa: F401 (fill TABLE)
    axis_functions,
    builtin_functions,
    iterators,
    math_functions,
    ordering,
    polynomials,
    warning_calls,
)


def _converted(hooks: TracingHooks, fn: FunctionType) -> Callable[..., Any]:
    if _is_numpys(fn):
        return convert(fn, hooks)
    assert hooks.trace.hooks is not None
    return hooks.trace.hooks.converted(fn)  # the program's own, whose effects are its own


def _call(hooks: TracingHooks, where: Where, fn: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    if isinstance(fn, np.ufunc):
        kwargs = {k: v for k, v in kwargs.items() if v is not np._NoValue}
        if isinstance(kwargs.get("dtype"), type(np.dtype)):  # a class of dtypes
            kwargs["dtype"] = kwargs["dtype"]()
    return hooks.note_local(_PROGRAMS_CALL(hooks, where, fn, args, kwargs))


def _attribute(hooks: TracingHooks, where: Where, obj: Any, name: str) -> Any:
    return hooks.note_local(Hooks.getattr(hooks, where, obj, name))


def _set_shape(hooks: TracingHooks, where: Where, value: Any, obj: Any, name: str) -> Any:
    if type(obj) is not TracedArray or name != "shape":
        return UNHANDLED
    seen = obj.reshape(value)
    obj.storage, obj.steps = seen.storage, seen.steps
    return None


def _take(hooks: TracingHooks, where: Where, obj: Any, key: Any) -> Any:
    is_known = type(obj) is TracedArray and slice_runs.is_fixed(key)
    return slice_runs.take(obj, key) if is_known else UNHANDLED


def _put(hooks: TracingHooks, where: Where, value: Any, obj: Any, key: Any) -> Any:
    if type(obj) is TracedArray and slice_runs.is_fixed(key):
        return slice_runs.put(obj, key, value)
    if type(obj) is np.ndarray:  # of NumPy's own, so nothing else holds what is written
        return Operands((_concrete(hooks, value), obj, _concrete(hooks, key)))
    return UNHANDLED


def _concrete(hooks: TracingHooks, x: Any) -> Any:
    if type(x) is tuple:
        return tuple(_concrete(hooks, part) for part in x)
    constant = constant_value(x.value) if type(x) is TracedArray else x
    if constant is None and type(x) is TracedArray:
        raise unsupported("this function of NumPy's, which writes what data decides into an "
                          "array of its own,", loc=hooks.trace.loc,
                          cure="call it before or after the compiled function")
    return constant


def _write_traced(hooks: TracingHooks, where: Where, op: str, a: Any, b: Any) -> Any:
    """A constant that becomes traced."""
    if type(a) is np.ndarray and type(b) is TracedArray:
        return Operands((op, copy_of(as_traced(hooks.trace, a)), b))
    return UNHANDLED


def _compare_sizes(hooks: TracingHooks, where: Where, op: str, a: Any, b: Any) -> Any:
    """Of shapes, too, whose sizes the run may decide: then NumPy itself is called instead."""
    if op in ("eq", "ne") and type(a) is type(b) is tuple and _holds_sizes((*a, *b)):
        return (op == "eq") is _equal_shapes(a, b)
    if op in ("eq", "ne") and _holds_sizes((a, b)):
        return (op == "eq") is equal(a, b)
    return UNHANDLED


def _assume(hooks: TracingHooks, where: Where, value: Any) -> Any:
    """The truth of tests in functions that test data only to warn."""
    is_assumed = hooks.assume is not None and type(value) is TracedArray
    return hooks.assume if is_assumed else UNHANDLED


def _holds_sizes(items: tuple[Any, ...]) -> bool:
    return any(isinstance(x, Dim) for x in items) and all(isinstance(x, (int, Dim)) for x in items)


def _equal_shapes(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    return len(a) == len(b) and all(map(equal, a, b))


def _is_numpys(fn: FunctionType) -> bool:
    module = str(fn.__globals__.get("__name__") or "")
    return module.partition(".")[0] == "numpy"


_PROGRAMS_CALL = PROGRAM.methods["called"]
# One call of a NumPy function: its own Python is converted, places stay the user's.
LIBRARY = Policy({
    **PROGRAM.rows,
    **{event: (before, *PROGRAM.rows[event]) for event, before in (
        ("getitem", _take), ("setitem", _put), ("iop", _write_traced), ("compare", _compare_sizes),
        ("test", _assume))},
    "getattr": (attributes.of_array, _attribute),
    "setattr": (_set_shape, Hooks.setattr),
    "called": (_call,),
    "converted": (_converted,),
    "is_from_outside": (lambda hooks, x: False,),  # arrays that it makes itself are constants
})


def _from_user(hooks: TracingHooks, x: Any) -> Any:
    """An argument: the user's plain arrays are read anew at every call."""
    if type(x) in (list, tuple):
        return type(x)(_from_user(hooks, part) for part in x)
    return as_traced(hooks.trace, x) if TracingHooks.is_from_outside(hooks, x) else x


@operation
def run_source(
    trace: Trace, function: Any, assume: bool | None, args: Any, kwargs: dict[str, Any]
) -> Any:
    """The call, traced through NumPy's source of ``function``; ``assume``: the truth of a traced
    value tested in it, None refuses such tests.

    Raises ``SourceUnavailable`` if the installation has no source.
    """
    hooks = with_policy(LIBRARY)(trace, NUMPYS_TABLE)
    hooks.assume = assume
    lifted = [_from_user(hooks, a) for a in args]
    named = {k: _from_user(hooks, v) for k, v in kwargs.items()}
    with warnings.catch_warnings():
        if assume is not None:
            warnings.simplefilter("ignore", RuntimeWarning)
        return convert(getattr(function, "_implementation", function), hooks)(*lifted, **named)


class _Converter:
    """NumPy's own ``_array_converter``: arguments as arrays, results in their class."""

    def __init__(self, trace: Trace, arrays: Any) -> None:
        self._arrays = tuple(spread_scalar(as_traced(trace, a)) for a in arrays)
        self.scalar_input = tuple(not as_traced(trace, a).is_array for a in arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __getitem__(self, index: Any) -> Any:
        return self._arrays[index]

    def as_arrays(self, subok: bool = True, pyscalars: str = "convert_if_no_array") -> Any:
        return self._arrays

    def wrap(self, result: Any, to_scalar: bool | None = None) -> Any:
        """The result; of rank 0 as a NumPy scalar where all inputs were scalars."""
        scalar = all(self.scalar_input) if to_scalar is None else to_scalar
        return result[()] if scalar and result.is_array and not result.ndim else result

    def result_type(self, extra_dtype: Any = None, ensure_inexact: bool = False) -> np.dtype:
        dtypes = [a.dtype for a in self._arrays]
        dtypes += [] if extra_dtype is None else [np.dtype(extra_dtype)]
        return np.result_type(*dtypes, *([1.0] if ensure_inexact else []))


_register = partial(when_traced, NUMPYS_TABLE)
_numpy: Any = np  # its private parts, which the stubs do not know


@_register(_numpy._core._multiarray_umath._array_converter)
def _array_converter(hooks: TracingHooks, *arrays: Any) -> _Converter:
    return _Converter(hooks.trace, arrays)


@_register(builtins.bool)
def _bool(hooks: TracingHooks, value: Any) -> Any:
    x = as_traced(hooks.trace, value)
    return TracedArray(hooks.trace, None, (), weak(hooks.trace, x.value, BOOL))


@_register(builtins.type)
def _type(hooks: TracingHooks, x: Any) -> Any:
    """NumPy asks for Python's numbers, which promote as no scalars of its own do."""
    if type(x) is not TracedArray or not x.type.is_weak:
        return type(x)
    return type(x.dtype.type(0).item())


@_register(_numpy.lib._nanfunctions_impl._copyto)
def _copyto(hooks: TracingHooks, a: Any, val: Any, mask: Any) -> Any:
    """``a`` with ``val`` where ``mask``: NumPy's own asks whether the mask of a scalar is true."""
    if as_traced(hooks.trace, a).is_array:
        np.copyto(a, val, where=mask, casting="unsafe")
        return a
    return np.where(mask, a.dtype.type(val), a)[()]


@_register(np.vecdot)
def _vecdot(hooks: TracingHooks, x: Any, y: Any, /, axis: Any = -1, **kwargs: Any) -> Any:
    """The ufunc along another axis."""
    if not np.ndim(x) or not np.ndim(y):
        return np.vecdot(x, y, **kwargs)  # which raises, whatever the axis is
    axis = operator.index(axis)
    return np.vecdot(np.moveaxis(x, axis, -1), np.moveaxis(y, axis, -1), **kwargs)


def _plain_masks(hooks: TracingHooks, shape: Any, dtype: Any = None, **kwargs: Any) -> Any:
    """``ones(n, dtype=bool)``: which elements NumPy's code keeps, known while tracing."""
    if dtype is not None and np.dtype(dtype) == BOOL:
        return np.ones(shape, dtype, **kwargs)
    handler = TABLE.find(np.ones)
    assert handler is not None
    return handler[0](hooks, *handler[1], shape, dtype, **kwargs)


NUMPYS_TABLE.register(np.ones, _plain_masks)
