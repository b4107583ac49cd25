"""Universal functions on traced values: dtype resolution, casts, ``out=``, ``where=``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fusec.errors import unsupported
from fusec.ir import Value
from fusec.ir.sizes.dims import UndecidedSizeError
from fusec.ops import Op

from ..facts.layout import Strides, broadcast_strides, contiguous, is_c_contiguous, k_order
from ..facts.refusals import gives_objects, is_compiled, target_dtype
from ..index import equal_parts
from ..library.failures import numpys_answer
from ..operands import python_numbers
from ..operands.comparisons import COMPARISONS, comparison, of_complex_scalars
from ..operands.dtypes import resolve
from ..operands.operands import BOOL, PYTHON_KIND, ROWS_OF_UFUNCS, as_traced, cast, store, truth
from ..operands.overflow import check_overflow
from ..operands.python_errors import check_operands, check_result
from ..operands.python_numbers import Intervals
from ..values.array import TracedArray, from_value
from ..values.operations import OPERATIONS, operation
from ..values.trace import Trace
from . import formulas
from .methods import call_ufunc_method, is_scipys
from .powers import power

_LOGICAL = {np.logical_and, np.logical_or, np.logical_xor, np.logical_not}


@operation
def call_ufunc(
    trace: Trace, ufunc: np.ufunc, method: str, inputs: Sequence[Any], kwargs: dict[str, Any],
    python: bool = False,
) -> Any:
    """``__array_ufunc__`` of traced operands.

    ``python``: it stands for Python's operator, which on Python numbers gives a Python number.
    """
    if method == "reduce":
        return OPERATIONS.reduce_by_ufunc(trace, ufunc, *inputs, **kwargs)
    row = ROWS_OF_UFUNCS.get(ufunc)
    if method != "__call__" or row is None:
        return _without_row(trace, ufunc, method, inputs, kwargs)
    return _Call(trace, row, ufunc, inputs, dict(kwargs), python).run()


def call_row(
    trace: Trace, row: Op, ufunc: np.ufunc, inputs: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    """A ufunc that is not NumPy's, by the row that compiles it."""
    return _Call(trace, row, ufunc, inputs, dict(kwargs), False).run()


_INSTEAD = {
    "accumulate": "write it with slices, or call it before or after the compiled function",
    "at": "write x[i] = ... with basic indices, or call it before or after the compiled function",
    "reduceat": "reduce slices one by one",
}


_AXES = {"axis", "axes", "keepdims"}  # of generalised ufuncs: NumPy's own code moves axes


def _without_row(
    trace: Trace, ufunc: np.ufunc, method: str, inputs: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    """A ufunc or a method of it that traced values do not answer for."""

    if gives_objects(ufunc):
        raise unsupported(
            f"{ufunc.__name__}, of np.frompyfunc, whose results are arrays of objects,",
            loc=trace.loc, cure="f(x).astype(float), np.vectorize(f)(x), or fusec.vmap(f)(x), "
                                "which give numbers")
    if method == "__call__" and ufunc in formulas.FORMULAS and not _AXES & set(kwargs):
        return formulas.call(trace, ufunc, inputs, dict(kwargs))
    if method == "outer":
        return formulas.outer(trace, ufunc, inputs, kwargs)
    if getattr(np, ufunc.__name__, None) is ufunc:
        return call_ufunc_method(trace, ufunc, method, inputs, kwargs)
    if is_scipys(ufunc):
        return OPERATIONS.call_special(trace, ufunc, method, inputs, kwargs)
    if method == "__call__":
        return numpys_answer(trace, ufunc.__name__, ufunc, inputs, kwargs)
    raise unsupported(f"{ufunc.__name__}.{method}", loc=trace.loc,
                      cure=_INSTEAD.get(method, "").format(name=ufunc.__name__))


def _class_name(value: Value) -> str:
    """The name of a number's class in Python's messages."""
    is_weak = value.type.is_weak
    return PYTHON_KIND[value.dtype.kind].__name__ if is_weak else f"numpy.{value.dtype.name}"


class _Call:
    """One ufunc call."""

    def __init__(
        self, trace: Trace, row: Op, ufunc: np.ufunc, inputs: Sequence[Any],
        kwargs: dict[str, Any], python: bool,
    ) -> None:
        self.trace, self.row, self.ufunc, self.python = trace, row, ufunc, python
        out = kwargs.pop("out", None)
        self.out = out[0] if isinstance(out, tuple) else out
        self.where = kwargs.pop("where", True)
        self.dtype = kwargs.pop("dtype", None)
        self.casting = kwargs.pop("casting", "same_kind")
        self.order = kwargs.pop("order", "K")
        kwargs.pop("subok", None)
        if kwargs:
            raise unsupported(f"np.{ufunc.__name__}({next(iter(kwargs))}=...)", loc=trace.loc)
        self.operands = [as_traced(trace, x) for x in inputs]
        if python and len(self.operands) == 2:
            self._take_floats()

    def _take_floats(self) -> None:
        """Python's complex numbers take ``np.float64``, which is a ``float``, as one."""
        left, right = self.operands
        if self.ufunc in (np.less, np.less_equal, np.greater, np.greater_equal):
            return  # Python's have no order, so that NumPy answers
        if left.type.is_weak and left.dtype.kind == "c" and right.dtype == np.float64 and (
                right.type.kind == "scalar"):
            self.operands[1] = TracedArray(
                self.trace, None, (), self.trace.emit("Cast", right.value, dtype=right.dtype,
                                                      kind="weak"))

    def run(self) -> Any:
        try:
            return self._run()
        except UndecidedSizeError:  # sizes meet that may differ: NumPy broadcasts when it runs
            return self._by_numpy()
        except ValueError:  # sizes that differ as expressions may be equal
            if all(o.type.is_static for o in self.operands):
                raise
            return self._by_numpy()

    def _by_numpy(self) -> Any:
        if self.trace.in_region and self.ufunc.signature is None and self.where is True:
            result = self._of_equal_parts()
            if result is not None:
                return result

        options: dict[str, Any] = {"where": self.where} if self.where is not True else {}
        if self.out is not None:
            options["out"] = self.out
        if self.dtype is not None:
            options["dtype"] = self.dtype
        return call_ufunc_method(self.trace, self.ufunc, "__call__", self.operands, options)

    def _of_equal_parts(self) -> Any:
        """In a loop, where a call of NumPy costs much: slices of lengths that the run compares."""
        outs = [] if self.out is None else [as_traced(self.trace, self.out)]
        cut = equal_parts.operands([*self.operands, *outs])
        if cut is None:
            return None
        inputs = cut[:len(self.operands)]
        options: dict[str, Any] = {"casting": self.casting}
        if outs:
            options["out"] = cut[-1]
        if self.dtype is not None:
            options["dtype"] = self.dtype
        result = call_ufunc(self.trace, self.ufunc, "__call__", inputs, options, self.python)
        return outs[0] if outs else result

    def _run(self) -> Any:
        values = [o.value for o in self.operands]
        if self.python and self.ufunc is np.matmul:
            self._check_matrices(values)
        if self.out is not None:
            as_traced(self.trace, self.out).check_writeable()
        if all(v.type.is_weak for v in values):
            result = self._of_numbers(values)
        else:
            result = self._compute(values)
        if self.where is not True:
            result = self._masked(result)
        if self.out is not None:
            return self._write(result)
        return from_value(self.trace, result, self._strides(result))

    def _check_matrices(self, values: list[Value]) -> None:
        """Only arrays have the operator ``@``; in place, the product is no smaller than they."""
        if not any(o.is_array for o in self.operands):
            left, right = map(_class_name, values)
            raise self.trace.error(TypeError(
                f"unsupported operand type(s) for @: '{left}' and '{right}'"), values)
        if self.out is not None and self.operands[1].ndim < 2:
            self._check_out(resolve(self.trace, self.ufunc, values)[-1], values)
            raise self.trace.error(ValueError(
                "inplace matrix multiplication requires the first operand to have at least one "
                "and the second at least two dimensions."), values)

    def _of_numbers(self, values: list[Value]) -> Value:
        """Of Python numbers: an operator gives a Python number, a ufunc a NumPy scalar."""
        if not self.python:
            return self._compute([cast(self.trace, v, v.dtype) for v in values])
        values = python_numbers.operands(self.trace, self.ufunc, values)
        bounds, is_checked = python_numbers.result_interval(self.trace, self.ufunc, values)
        check_operands(self.trace, self.ufunc, values)
        result = self._compute(values)
        check_result(self.trace, self.ufunc, values, result)
        if is_checked:
            check_overflow(self.trace, self.ufunc, values, result)
        if bounds is not None:
            self.trace.part(Intervals)[result] = bounds
        return result

    def _compute(self, values: list[Value]) -> Value:
        trace = self.trace
        if self.ufunc is np.matmul:
            dtypes = resolve(trace, self.ufunc, values, self._asked(), self.casting)
            return self._checked(dtypes, values, *(cast(trace, v, dtypes[0]) for v in values))
        if self.ufunc in _LOGICAL:
            if self.dtype is not None:  # the loop is looked for before shapes are
                resolve(trace, self.ufunc, values, self._asked(), self.casting)
            return trace.emit(self.row.name, *(truth(trace, v) for v in values))
        dtypes = resolve(trace, self.ufunc, values, self._asked(), self.casting)
        self._refuse(dtypes)
        if self._squares_booleans(values):
            return trace.emit("Square", cast(trace, values[0], np.dtype(np.int8)))
        if self.ufunc in COMPARISONS:
            unusual = comparison(trace, self.row.name, values, dtypes)
            if unusual is None and self.python:
                unusual = of_complex_scalars(trace, self.row.name, values, dtypes[0])
            if unusual is not None:
                return unusual
        if self.ufunc is np.power:
            special = self._power(dtypes, values)
            if special is not None:
                return special
        weak = "weak" if all(v.type.is_weak for v in values) else None
        if self.casting == "unsafe" and weak is None:  # floats wrap as those of arrays do
            values = [cast(trace, v, v.dtype) if v.dtype.kind in "fc" else v for v in values]
        operands = [cast(trace, v, d, weak) for v, d in zip(values, dtypes, strict=False)]
        return self._checked(dtypes, values, *operands)

    def _power(self, dtypes: Sequence[np.dtype], values: Sequence[Value]) -> Value | None:
        try:
            result = power(self.trace, values, self.operands, dtypes[-1], self.python)
        except ValueError:
            self._check_out(dtypes[-1], values)
            raise
        if result is not None and not result.shape and result.type.kind == "array":
            return self.trace.emit("Squeeze", result, axes=(), kind="scalar")  # x**1 is x itself
        return result

    def _checked(
        self, dtypes: Sequence[np.dtype], values: Sequence[Value], *operands: Value
    ) -> Value:
        try:
            return self.trace.emit(self.row.name, *operands)
        except ValueError:
            self._check_out(dtypes[-1], values)
            raise

    def _asked(self) -> np.dtype | None:
        """``dtype=``, which asks for the loop with this result."""
        if self.dtype is None:
            return None
        return target_dtype(self.dtype, f"np.{self.ufunc.__name__}", self.trace.loc)

    def _squares_booleans(self, values: Sequence[Value]) -> bool:
        """``x ** 2`` of booleans: the operator takes ``np.square``, which gives int8."""
        exponent = values[-1].node.attrs.get("value") if values[-1].type.is_weak else None
        return self.python and self.ufunc is np.power and type(exponent) is int and (
            exponent == 2 and values[0].dtype == BOOL and values[0].type.kind == "array")

    def _check_out(self, dtype: np.dtype, values: Sequence[Value]) -> None:
        """NumPy refuses the cast to ``out`` before it looks at shapes."""
        if self.out is None:
            return
        target = as_traced(self.trace, self.out)
        target.check_writeable()
        if not np.can_cast(dtype, target.dtype, self.casting):
            raise self.trace.error(TypeError(
                f"Cannot cast ufunc '{self.ufunc.__name__}' output from {dtype!r} to "
                f"{target.dtype!r} with casting rule {self.casting!r}"), values)

    def _refuse(self, dtypes: Sequence[np.dtype]) -> None:
        for dtype in dtypes:
            if not is_compiled(dtype):
                raise unsupported(
                    f"np.{self.ufunc.__name__} in dtype {dtype}", loc=self.trace.loc,
                    cure="compute in float32 or float64",
                )

    def _masked(self, result: Value) -> Value:
        """``where=``: other elements keep those of ``out`` (without ``out``: unspecified)."""
        trace = self.trace
        mask = truth(trace, as_traced(trace, self.where).value)
        if self.out is None:
            return trace.emit("Where", mask, result, cast(trace, trace.builder.const(0),
                                                          result.dtype))
        old = as_traced(trace, self.out).value
        self._check_out(result.dtype, [result])
        return trace.emit("Where", mask, cast(trace, result, old.dtype), old)

    def _write(self, result: Value) -> TracedArray:
        out = as_traced(self.trace, self.out)
        store(self.trace, out, result, self.casting, f"ufunc '{self.ufunc.__name__}' output")
        return out

    def _strides(self, result: Value) -> Strides | None:
        if len(result.shape) < 2:
            return None
        if self.ufunc is np.matmul:
            return self._strides_of_products(result)
        operands = [
            broadcast_strides(o.shape, o.strides, result.shape) for o in self.operands
            if o.is_array
        ]
        order: Sequence[int] | None = k_order(result.shape, operands)
        if self.order != "K":
            order = self._asked_order(result)
        return contiguous(result.shape, result.dtype.itemsize, order)

    def _asked_order(self, result: Value) -> Sequence[int] | None:
        """Axes outermost first for ``order=``; None is C order."""
        arrays = [o for o in self.operands if o.is_array and o.ndim]
        all_fortran = all(is_c_contiguous(o.shape[::-1], o.strides[::-1], o.itemsize)
                          for o in arrays)
        is_fortran = self.order == "F" or (self.order == "A" and all_fortran)
        return tuple(range(len(result.shape)))[::-1] if is_fortran else None

    def _strides_of_products(self, result: Value) -> Strides | None:
        """Stacks of matrices keep the order of the stacks, the matrices in them are in C order."""
        stacks = max(o.ndim for o in self.operands) - 2
        if stacks < 2:
            return None
        shape = result.shape[:stacks]
        operands = [broadcast_strides(o.shape[:-2], o.strides[:-2], shape)
                    for o in self.operands if o.ndim > 2]
        order = (*k_order(shape, operands), *range(stacks, len(result.shape)))
        return contiguous(result.shape, result.dtype.itemsize, order)
