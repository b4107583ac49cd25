"""``np.arange`` and ``np.eye``: of sizes that are known while tracing, and of those of the run."""

from __future__ import annotations

from typing import Any

import numpy as np

from fusec.errors import unsupported
from fusec.ir import Value
from fusec.ir.sizes.dims import Size, is_static
from fusec.ir.sizes.symbolic_numbers import Symbolic
from fusec.ir.sizes.symbolic_sizes import length_of_range

from ..facts.refusals import target_dtype
from ..index.windows import LONGEST, new_shape
from ..library.calls import call_library
from ..operands import sizes
from ..operands.operands import as_traced, cast, is_run_time_int
from ..operands.python_numbers import Intervals, from_ints, interval, weak
from ..values.array import TracedArray, from_value
from ..values.handlers import entry
from ..values.trace import Trace
from .creation import ZEROS, array, astype

_FLOATS = float, np.floating
_LONGEST_TABLE = 1 << 20  # numbers, of which a loop takes the first ones


@entry(np.arange, hooked="traced")
def arange(trace: Trace, *args: Any, dtype: Any = None, **kwargs: Any) -> Any:
    """``np.arange`` of Python numbers; integer ranges are computed in the kernel."""
    names = ("start", "stop", "step")
    given = dict(zip(names if len(args) > 1 else ("stop",), args, strict=False))
    given.update({k: kwargs[k] for k in names if k in kwargs})
    if any(map(_is_length, given.values())):
        start, stop, step = (default if given.get(name) is None else given[name]
                             for name, default in zip(names, (0, None, 1), strict=True))
        return _range(trace, start, stop, step, dtype)
    if any(type(v) is TracedArray for v in given.values()):
        raise unsupported("np.arange of a float that is only known when the code runs",
                          loc=trace.loc, cure="write start + step * np.arange(n), with n an integer"
                          )
    start, step = given.get("start") or 0, given.get("step")
    step = 1 if step is None else step
    if not all(isinstance(v, (int, np.integer)) for v in (start, step, given["stop"])):
        return array(trace, np.arange(*args, dtype=dtype, **kwargs))
    ends = start, given["stop"], step
    default = np.result_type(*(0 if type(end) is Symbolic else end for end in ends))
    first, last, stride = (end if type(end) is Symbolic else int(end) for end in ends)
    return _counted(trace, first, stride, length_of_range(first, last, stride),
                    target_dtype(dtype, "an array", trace.loc, default))


def _is_length(x: Any) -> bool:
    """Whether it is an integer that sizes or data decide."""
    return sizes.is_number(x) or (is_run_time_int(x) and not from_ints(x.value))


def _range(trace: Trace, start: Any, stop: Any, step: Any, dtype: Any) -> Any:
    """A range of a size that only the run knows."""
    if type(step) is TracedArray or not isinstance(step, (int, np.integer, *_FLOATS)) or not step:
        what = "a step that is" if type(step) is TracedArray else (
            f"the step {step!r} and a start or stop that are")
        raise unsupported(f"np.arange with {what} only known when the code runs",
                          loc=trace.loc, cure="write start + step * np.arange(n)")
    bounds = start, stop, step
    if any(isinstance(b, _FLOATS) and not b.is_integer() for b in bounds):
        raise unsupported("np.arange of a float beside a number only known when the code runs",
                          loc=trace.loc, cure="write start + step * np.arange(n)")
    counts = np.result_type(np.int64, *[np.asarray(b).dtype if isinstance(b, _FLOATS) else b.dtype
                                        for b in bounds if not isinstance(b, int)])
    start, stop, step = (int(b) if isinstance(b, _FLOATS) else b for b in bounds)
    try:
        span: Any = _python_int(trace, stop - start)  # where NumPy's own integers wrap, it does
    except OverflowError:
        raise trace.error(ValueError("Maximum allowed size exceeded")) from None
    start = _python_int(trace, start)
    length = span if int(step) == 1 else -(-span // int(step))
    places = _places(trace, as_traced(trace, length).value)
    result = places * int(step) if int(step) != 1 else places
    return (result + start).astype(target_dtype(dtype, "an array", trace.loc, counts), copy=False)


def _places(trace: Trace, length: Value) -> Any:
    """0, 1, …: the start of the longest such range where its length is known, else NumPy's."""
    known = interval(trace, length)
    count = trace.emit("Maximum", length, trace.builder.const(0))
    if known is not None and known[1] <= _LONGEST_TABLE:
        longest = _counted(trace, 0, 1, max(known[1], 0), np.dtype(np.int64))
        return longest[:TracedArray(trace, None, (), count)]
    trace.part(Intervals)[count] = (0, LONGEST)
    size = new_shape(trace, TracedArray(trace, None, (), count))[0]
    return call_library(trace, "Numpy", ("arange", sizes.number(trace, size)), {})


def _python_int(trace: Trace, x: Any) -> TracedArray:
    value = as_traced(trace, x).value
    return TracedArray(trace, None, (), weak(trace, value, np.dtype(np.int64)))


def _counted(trace: Trace, start: Any, step: Any, size: Size, dtype: np.dtype) -> Any:
    count = np.dtype(np.int64)
    value = trace.emit("Iota", size=size, dtype=count)
    if step != 1:
        value = trace.emit("Mul", value, cast(trace, trace.builder.const(step), count))
    if start != 0:
        value = trace.emit("Add", value, cast(trace, trace.builder.const(start), count))
    return from_value(trace, cast(trace, value, dtype))


@entry(np.eye, np.identity, hooked="traced")
def eye(
    trace: Trace, N: int, M: Any = None, k: int = 0, dtype: Any = float, order: str = "C", *,
    device: Any = None, like: Any = None,
) -> Any:
    """``np.eye`` as a comparison of row and column numbers."""
    rows = _numbers(trace, N)
    columns = rows if M is None or M is N else _numbers(trace, M)
    return astype(trace, rows[:, None] + k == columns[None, :],
                  target_dtype(dtype, "an array", trace.loc, float))


def _numbers(trace: Trace, count: Any) -> TracedArray:
    """0, 1, …: of a count that only the run knows, too."""
    if not _is_length(count):
        return _counted(trace, 0, 1, count, np.dtype(np.int64))
    length = ZEROS(trace, count, np.int64)  # which a negative count refuses
    return arange(trace, length.shape[0] if is_static(length.shape) else sizes.number(
        trace, length.shape[0]))
