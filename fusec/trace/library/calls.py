"""Front ends of library calls: NumPy's own signatures, asked of NumPy itself.

A call is written down as plain data with its traced arguments as operands.  NumPy then runs it once
on stand-ins of the same types and layouts: it raises its own errors for bad arguments, and its
answer has the dtypes, kinds, shapes and strides of the results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from fusec.errors import unsupported
from fusec.ir import TensorType, Value
from fusec.ir.sizes.bindings import resolve
from fusec.ir.sizes.dims import Size
from fusec.ir.sizes.symbolic_sizes import is_symbolic
from fusec.ops.calls.library import LIBRARY, LibraryCall, called_name, leaves_of, run_call

from ..facts.layout import Strides, contiguous, like_order
from ..facts.refusals import is_compiled
from ..operands.index_uses import note_written, written_indices
from ..operands.operands import entries_of, has_run_time_int, is_run_time_int
from ..operands.sizes import define
from ..values.array import TracedArray, from_value
from ..values.operations import OPERATIONS, operation
from ..values.selected_arrays import LibraryView, roots
from ..values.trace import Trace
from .arguments import Encoder, name_at, parameter_names, without_out
from .asked_sizes import Asked, OperandLayout, Told, note_answer
from .result_sizes import sized_types
from .stand_ins import ask, is_accepted, operand_of, stand_in, timed

_WEAK = {bool: np.dtype(np.bool_), int: np.dtype(np.int64), float: np.dtype(np.float64),
         complex: np.dtype(np.complex128)}
_OVERWRITES = "overwrite_input"


# ----------------------------------------------------------------------------------- results


def result_like(trace: Trace, leaf: Any, value: Value) -> TracedArray:
    """A fresh result in the layout of NumPy's answer."""
    return _result(trace, leaf, value)


def type_of(trace: Trace, name: str, leaf: Any) -> TensorType:
    if type(leaf) in _WEAK:
        return TensorType(_WEAK[type(leaf)], (), "weak")
    array = np.asarray(leaf)
    if not is_compiled(array.dtype):
        raise unsupported(f"{name} with a result of dtype {array.dtype}", loc=trace.loc,
                          cure="call it before or after the compiled function")
    return TensorType(array.dtype, array.shape, "array" if type(leaf) is np.ndarray else "scalar")


def _layout(leaf: Any, shape: Sequence[Size]) -> Strides:
    if leaf.ndim == 1 and leaf.strides[0] > leaf.itemsize:  # a column, as nonzero gives them
        return (leaf.strides[0],)
    return contiguous(tuple(shape), leaf.dtype.itemsize, like_order(leaf.strides))


def _result(trace: Trace, leaf: Any, value: Value) -> TracedArray:
    """A fresh result; NumPy's may lie in memory backwards (singular values of Hermitian ones)."""
    if type(leaf) is not np.ndarray:
        return from_value(trace, value)
    layout = _layout(leaf, value.shape)
    if all(stride >= 0 for stride in leaf.strides):
        return from_value(trace, value, layout)
    turned = tuple(slice(None, None, -1 if stride < 0 else None) for stride in leaf.strides)
    in_memory = from_value(trace, value)[turned]
    return from_value(trace, in_memory.value, layout)[turned]


def _same_structure(answer: Any, leaves: list[TracedArray]) -> Any:
    return _filled(answer, iter(leaves))


def _filled(answer: Any, leaves: Iterator[TracedArray]) -> Any:
    if not isinstance(answer, (tuple, list)):
        return next(leaves)
    items = [_filled(item, leaves) for item in answer]
    return type(answer)(*items) if hasattr(answer, "_fields") else type(answer)(items)


# ------------------------------------------------------------------------------------- the calls


def _varies(call: LibraryCall, names: Sequence[str], name: str, x: Any) -> bool:
    """Whether an argument may be a number that the run decides; where users call it, the first one
    is the array."""
    return name in call.varying or (
        call.is_public and type(x) is TracedArray and name == names[0])


def call_library(trace: Trace, op: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """The results of a library call on traced arguments, as NumPy would give them."""
    call = LIBRARY[op]
    name = called_name(op, ("tuple", *args))
    names = parameter_names(call.function)
    args, kwargs, out = without_out(trace, call, names, list(args), dict(kwargs))
    encoder = Encoder(trace, name, [] if out is None else [out])
    form = ("tuple", *[encoder.encode(a, _varies(call, names, name_at(names, i), a))
                       for i, a in enumerate(args)])
    named = ("tuple", *[("tuple", k, encoder.encode(v, _varies(call, names, k, v)))
                        for k, v in kwargs.items() if v is not np._NoValue])
    if kwargs.get(_OVERWRITES):
        raise unsupported(f"{_OVERWRITES}=True of {name}", loc=trace.loc, cure="leave it out")
    if call.writes:
        return _write(trace, call, encoder.operands, form, named)
    if out is not None:
        return _call_into(trace, out, call, encoder.operands, form, named)
    with timed(trace, name):
        answer = ask(trace, call, encoder.operands, form, named)
        return finish(trace, op, name, encoder.operands, form, named, answer)


def _call_into(
    trace: Trace, out: TracedArray, call: LibraryCall, operands: list[TracedArray], form: Any,
    named: Any,
) -> TracedArray:
    """The call with ``out``, its first operand: NumPy checks, casts and writes, as only it does."""
    if out.is_array:
        out.check_writeable()
    asked = call.sized or not all(x.type.is_static for x in operands)  # data decides what fits
    whole = ("tuple", ("operand", 0), call.op, form, named)
    _write(trace, LIBRARY["CallInto"], operands, whole, ("tuple",), asked)
    return out


def finish(
    trace: Trace, op: str, name: str, operands: list[TracedArray], form: Any, named: Any,
    told: Told, question: tuple[Asked, Sequence[OperandLayout]] | None = None,
) -> Any:
    """The results of a call; ``question``: that of plans, where that is not the usual one."""
    answer, stand_ins = told.value, told.stand_ins
    itself = {id(s): x for s, x in zip(stand_ins, operands, strict=True) if x.is_array}
    if id(answer) in itself:
        return itself[id(answer)]
    leaves = leaves_of(answer)
    types = tuple(replace(type_of(trace, name, leaf), shape=shape)
                  for leaf, shape in zip(leaves, told.shapes, strict=True))
    call = LIBRARY[op]
    asked, known = question or (Asked(
        lambda values, arguments: run_call(call, values, *arguments), partial(stand_in, op=op),
        (form, named)), [operand_of(x) for x in operands])
    symbolic = () if call.sized else types_in_symbols(
        known, types, told, asked, called_name(op, form))
    types = symbolic or sized_types(
        trace, call, [x.value for x in operands], form, named, types, stand_ins)
    first = trace.emit(op, *(x.value for x in operands), form=form, named=named, results=types)
    OPERATIONS.note_state(trace, first.node)
    for value in first.node.outputs:
        define(trace, value)
    shown = _with_elements(LIBRARY[op], stand_ins, form, named, leaves)
    results = []
    for leaf, like, value in zip(leaves, shown, first.node.outputs, strict=True):
        seen = [] if type(leaf) is not np.ndarray else [
            x for x, s in zip(operands, stand_ins, strict=True)
            if type(s) is np.ndarray and _shows(leaf, s)]
        results.append(itself[id(leaf)] if id(leaf) in itself else (
            _view_of(trace, name, seen, leaf, value) if seen else _result(trace, like, value)))
    return _same_structure(answer, results)


def types_in_symbols(
    known: Sequence[OperandLayout], types: tuple[TensorType, ...], answer: Told, asked: Asked,
    name: str,
) -> tuple[TensorType, ...]:
    """The types of the answer on stand-ins where sizes of the operands, or numbers of the
    call, are symbols; else none.  ``known`` is of the operands."""
    is_open = is_symbolic(asked.form) or any(x.is_symbolic for x in known)
    if not is_open or not all(x.type.is_static for x in known):
        return ()
    shapes = note_answer(asked, known, answer, name)
    return tuple(replace(t, shape=shape) for t, shape in zip(types, shapes, strict=True))


def _shows(view: np.ndarray, array: np.ndarray) -> bool:
    """Whether they are the same memory, though it may be none."""
    base = view.base if view.size == 0 else None
    return np.may_share_memory(view, array) or (
        base is not None and (base is array or base is array.base))


def _view_of(
    trace: Trace, name: str, seen: Sequence[TracedArray], leaf: np.ndarray, value: Value
) -> TracedArray:
    """A result that NumPy lets share memory with these operands."""
    memory = [root for x in seen if x.storage is not None for root in roots(x.storage)]
    layout = contiguous(value.shape, value.dtype.itemsize, like_order(leaf.strides))
    view = TracedArray(trace, LibraryView(trace, value, memory, layout, name, leaf))
    return view if all(x.is_writeable for x in seen) else view.view_through("ReadOnly", layout)


def _with_elements(
    call: LibraryCall, stand_ins: list[Any], form: Any, named: Any, leaves: tuple[Any, ...]
) -> Sequence[Any]:
    """The results, or such of other contents where these are empty: strides of none say nothing."""
    if not call.sized or all(np.ndim(leaf) < 2 or np.size(leaf) for leaf in leaves):
        return leaves
    ones = [np.ones_like(s) if type(s) is np.ndarray else s for s in stand_ins]
    arguments = resolve((form, named), {})
    if not is_accepted(call, ones, *arguments):
        return leaves
    others = leaves_of(run_call(call, ones, *arguments))
    same = len(others) == len(leaves) and all(
        np.ndim(a) == np.ndim(b) for a, b in zip(others, leaves, strict=True))
    return others if same else leaves


def _write(
    trace: Trace, call: LibraryCall, operands: list[TracedArray], form: Any, named: Any,
    asked: bool = False,
) -> None:
    """A call that changes its first operand."""
    target = operands[0] if operands else None
    if isinstance(form[1], np.generic):  # known while tracing; NumPy writes to a copy of it
        ask(trace, call, operands, form, named)
        return
    if type(form[1]) is not tuple or form[1] != ("operand", 0):
        raise trace.error(TypeError("the array to write to is not an array"))
    if target is not None and not target.is_array and not target.type.is_weak:
        ask(trace, call, operands, form, named)  # NumPy writes to a copy of the scalar
        return
    if target is None or not target.is_array:
        raise trace.error(TypeError("the array to write to is not an array"))
    if not asked:
        ask(trace, call, operands, form, named)
    results = (TensorType(target.dtype, target.shape),)
    written = trace.emit(call.op, *(x.value for x in operands), form=form, named=named,
                         results=results)
    OPERATIONS.note_state(trace, written.node)
    target.write(written)


_WRITING: dict[Any, str] = {np.copyto: "Copyto"}


@operation
def call_by_name(
    trace: Trace, function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    """Any function of NumPy's main namespaces, or method, called when the code runs."""
    method = getattr(function, "method", "")
    if method:
        return call_library(trace, "Method", (method, *args), kwargs)
    if function in _WRITING:
        return call_library(trace, _WRITING[function], args, kwargs)
    home = function.__module__.partition("numpy")[2].lstrip(".")
    name = f"{home}.{function.__name__}" if home else function.__name__
    return call_library(trace, "Numpy", (name, *args), kwargs)


# --------------------------------------------------------------------------------------- indexing


def _is_array(entry: Any) -> bool:
    return type(entry) in (TracedArray, np.ndarray) and entry.ndim > 0


def has_index_array(key: Any) -> bool:
    """Whether the key holds an array or a list: NumPy's advanced indexing."""
    return any(_is_array(e) or isinstance(e, list) for e in entries_of(key))


def has_mask(key: Any) -> bool:
    """Whether the key holds a boolean array whose contents only the run knows."""
    return any(_is_array(e) and e.dtype == np.bool_ for e in entries_of(key))


def is_run_time_element(array: TracedArray, key: Any) -> bool:
    """Whether the key selects one element by integers that only the run knows.

    With fewer integers NumPy gives a view, whose place in memory must be known while tracing.
    """
    parts = entries_of(key)
    return len(parts) == array.ndim and has_run_time_int(key) and all(
        is_run_time_int(e) or hasattr(e, "__index__") for e in parts)


def get_item(array: TracedArray, key: Any) -> Any:
    """``array[key]`` with arrays of integers (a copy), or with integers known at run time."""
    return call_library(array.trace, "GetItem", (array, key), {})


def set_item(array: TracedArray, key: Any, value: Any) -> None:
    """``array[key] = value`` with run-time integers, arrays of integers, or masks of any shape."""
    trace, call = array.trace, LIBRARY["SetItem"]
    encoder = Encoder(trace, "x[...] = ...")
    form = ("tuple", *[encoder.encode(x, True) for x in (array, key, value)])
    masked = has_mask(key)
    if masked:  # how many elements it selects, and so which values fit, is known at run time
        scalar = ("tuple", *form[1:3], 0)
        ask(trace, call, encoder.operands, scalar, ("tuple",))
    indices = written_indices(array, key)
    _write(trace, call, encoder.operands, form, ("tuple",), asked=masked)
    note_written(array, indices)


# ---------------------------------------------------------------------------------------- methods
