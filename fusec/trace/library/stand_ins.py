"""Stand-ins: plain values of the types and layouts of traced operands, for which NumPy is asked.

NumPy runs a call once on them: it raises its own errors for bad arguments, and its answer has the
dtypes, kinds, shapes and strides of the results.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from fusec.core import log
from fusec.errors import FirstCallWarning, unsupported
from fusec.ir.sizes.bindings import Bindings, resolve, typical
from fusec.ir.sizes.dims import Size
from fusec.ir.sizes.symbolic_sizes import is_symbolic
from fusec.ops.calls.library import LIBRARY, LibraryCall, leaves_of, run_call

from ..facts.layout import like_order
from ..operands.sizes import ORDINARY, size_of
from ..values.array import TracedArray
from ..values.trace import Trace
from .asked_sizes import Asked, OperandLayout, Told, note_answer, told
from .result_sizes import LAST_RESORT, MOST_OF_SIZED, assignments, static_shapes
from .short_axes import AS_THEY_ARE, Lengths, in_short, short_lengths

MOST_SECONDS = 1.0
_NOT_ZERO = ("ones", "points", "square tensors")  # these would be divided by, or by their norm


def stand_in(
    x: TracedArray | OperandLayout, op: str, sizes: Bindings = ORDINARY,
    lengths: Lengths = AS_THEY_ARE,
) -> Any:
    """A plain value of the type and layout of ``x`` with contents that calls accept.

    Matrices of linear algebra are identities, integers otherwise 0 (they may be indices).
    """
    x = x if isinstance(x, OperandLayout) else operand_of(x)
    type_, tried_on = x.type, LIBRARY[op].tried_on if op else ""
    if type_.kind != "array":
        size = x.number
        plain = int(tried_on in _NOT_ZERO) if size is None else resolve(size, sizes)
        plain = plain if size is None else lengths.get(plain, plain)
        number = np.asarray(plain, type_.dtype)
        return number.item() if type_.is_weak else number[()]
    whole = resolve(type_.shape, sizes)
    shape = in_short(whole, lengths)
    array = _memory_like(x, whole, shape)
    is_linear = op.startswith("Linalg")
    side = math.isqrt(math.prod(shape))
    if tried_on == "square tensors" and side * side == math.prod(shape):
        array = np.eye(side, dtype=type_.dtype).reshape(shape)
    elif is_linear and type_.rank >= 2:
        if array.shape != shape:  # elements share memory: a copy that lies as they do
            array = np.broadcast_to(array, shape).copy(order="K")
        array[...] = np.eye(shape[-2], shape[-1])
    elif tried_on == "points":  # different ones
        array[...] = np.arange(1, array.size + 1).reshape(array.shape)
    elif is_linear or type_.dtype.kind in "fc" or tried_on == "ones":
        array[...] = 1
    return array if array.shape == shape else np.broadcast_to(array, shape)


def _emptied(stand_in: Any) -> Any:
    """The stand-in with zeros, which select nothing."""
    if type(stand_in) is not np.ndarray:
        return stand_in
    if not stand_in.size or all(stand_in.strides):
        return np.zeros_like(stand_in)
    once = tuple(slice(0, 1) if s == 0 else slice(None) for s in stand_in.strides)
    return np.broadcast_to(np.zeros_like(stand_in[once]), stand_in.shape)


def operand_of(x: TracedArray) -> OperandLayout:
    """The facts of an operand that a stand-in needs."""
    is_array = x.type.kind == "array"
    return OperandLayout(x.type, x.strides, None if is_array else size_of(x.value))


def _memory_like(x: OperandLayout, whole: Sequence[int], sizes: Sequence[int]) -> np.ndarray:
    """Zeros that lie in memory as ``x`` of these sizes does, of which the axes have the lengths
    ``whole``; axes that repeat (of stride 0) of length 1.

    Where ``x`` leaves gaps or runs backwards they do, too: some functions copy such operands.
    """
    axes = like_order(x.strides)
    once = [s == 0 for s in x.strides]
    lengths = [1 if once[d] else sizes[d] for d in axes]
    strides = [resolve(typical(x.strides[d]), {}) for d in axes]
    gaps = _gaps([1 if once[d] else whole[d] for d in axes], strides, x.dtype.itemsize)
    padded = [n + gap for n, gap in zip((*lengths, 1), gaps, strict=True)]
    memory = np.zeros(padded, x.dtype)
    taken = tuple(slice(n) if s >= 0 else slice(n - 1, None, -1) if n else slice(0)
                  for n, s in zip(lengths, strides, strict=True))
    memory = memory[(..., *taken, 0)]
    return memory.transpose(np.argsort(axes)) if axes else memory


def _gaps(lengths: Sequence[int], strides: Sequence[int], itemsize: int) -> list[int]:
    """By how many elements axes, outermost first and one more within, have to be longer for gaps
    where arrays of these lengths and byte strides have some."""
    gaps, inner, dense = [0] * (len(lengths) + 1), len(lengths), itemsize
    for axis in reversed(range(len(lengths))):
        if lengths[axis] > 1:
            gaps[inner] += abs(strides[axis]) != dense
            inner, dense = axis, abs(strides[axis]) * lengths[axis]
    return gaps


@contextmanager
def timed(trace: Trace, name: str) -> Iterator[None]:
    """Says so where the questions of this block take long."""
    start = time.thread_time()
    yield
    seconds = time.thread_time() - start
    if seconds > MOST_SECONDS and trace.loc is not None:
        log.warn(
            f"{name} was asked for {seconds:.1f} s what it gives, on arrays as long as those of "
            "this call: shorter ones do not tell, as a size of its results follows no simple rule, "
            "or a number that it is given is as large as its arrays are long. Later calls of these "
            "sizes do not ask",
            FirstCallWarning, trace.loc.file, trace.loc.line)


def ask(
    trace: Trace, call: LibraryCall, operands: Sequence[TracedArray], form: Any, named: Any,
) -> Told:
    """NumPy's answer on stand-ins; raises NumPy's exceptions at the user's line."""
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _asked_call(call, operands, form, named)
    except Exception as error:
        if not all(x.type.is_static for x in operands):
            raise unsupported(
                "a call that fits some of the sizes which data may decide, and not others",
                loc=trace.loc, values=[("operand", x.type) for x in operands],
                cure="make the sizes equal: select both operands with the same mask") from error
        raise trace.error(error, [x.value for x in operands],
                          [f"operand {i}" for i in range(len(operands))]) from None


def _asked_call(
    call: LibraryCall, operands: Sequence[TracedArray], form: Any, named: Any
) -> Told:
    asked = [operand_of(x) for x in operands]

    def answer(stand_ins: Sequence[Any], arguments: Any) -> Any:
        return _run(call, operands, stand_ins, *arguments)

    if not call.sized and all(x.type.is_static for x in operands):
        return told(Asked(answer, partial(stand_in, op=call.op), (form, named)), asked)
    arguments = resolve((form, named), {})
    stand_ins = _accepted(call, operands, *arguments)  # sizes are asked in `result_sizes`
    given = answer(stand_ins, arguments)
    return Told(given, stand_ins, [np.shape(leaf) for leaf in leaves_of(given)])


def _run(
    call: LibraryCall, operands: Sequence[TracedArray], stand_ins: Sequence[Any], form: Any,
    named: Any,
) -> Any:
    if call.writes and not operands[0].is_writeable:
        call = replace(call, writes=False)  # not to a copy: NumPy minds
        if isinstance(stand_ins[0], np.ndarray):  # a number is copied by NumPy itself
            stand_ins[0].flags.writeable = False
    return run_call(call, stand_ins, form, named)


def _accepted(
    call: LibraryCall, operands: Sequence[TracedArray], form: Any, named: Any
) -> list[Any]:
    """Stand-ins of sizes that fit each other, where the run decides sizes; else of any."""
    shapes = static_shapes([x.value for x in operands])
    for lengths in (*short_lengths(shapes, (form, named), MOST_OF_SIZED)[:1], AS_THEY_ARE):
        tried = _tried(call, operands, lengths)
        if len(tried) == 1 and not lengths:
            break
        for stand_ins in tried:
            if is_accepted(call, stand_ins, form, named):
                return stand_ins
    return tried[-1]  # of which NumPy says what is wrong


def _tried(
    call: LibraryCall, operands: Sequence[TracedArray], lengths: Lengths
) -> list[list[Any]]:
    """Stand-ins to try in this order; where none is accepted the last says why."""
    sizes = assignments([x.value for x in operands])
    several = [*sizes, *LAST_RESORT] if len(sizes) > 1 else sizes  # of which only one fits
    tried = [[stand_in(x, call.op, s, lengths) for x in operands] for s in several]
    last = tried[len(sizes) - 1]
    if call.sized:  # what fits depends on contents, too
        tried = [*[[_emptied(s) for s in stand_ins] for stand_ins in tried], *tried]
    return [*tried, last] if tried[-1] is not last else tried


def is_accepted(call: LibraryCall, stand_ins: Sequence[Any], form: Any, named: Any) -> bool:
    try:
        run_call(call, [x.copy() if type(x) is np.ndarray else x for x in stand_ins], form, named)
    except (ValueError, IndexError):
        return False
    return True


def ask_on_stand_ins(
    trace: Trace, function: Callable[..., Any], operands: Sequence[TracedArray], given: Any,
    form: Any = None,
) -> Any:
    """NumPy's answer on stand-ins of the operands, which may be shorter than these; raises NumPy's
    exceptions at the user's line.  ``given``: the numbers that the function holds; ``form``: its
    first argument, plain data in which numbers may follow from sizes."""
    return _asked(trace, function, operands, given, form)[0]


def shape_on_stand_ins(
    trace: Trace, function: Callable[..., Any], operands: Sequence[TracedArray], given: Any,
    form: Any = None,
) -> tuple[Size, ...]:
    """The shape of the one result that NumPy gives."""
    return _asked(trace, function, operands, given, form)[1][0]


def _asked(
    trace: Trace, function: Callable[..., Any], operands: Sequence[TracedArray], given: Any,
    form: Any,
) -> tuple[Any, list[tuple[Size, ...]]]:
    """NumPy's answer on stand-ins, and the shapes of its results."""
    tried = [ORDINARY]
    if not all(x.type.is_static for x in operands):  # sizes of which only some fit
        tried = [*assignments([x.value for x in operands]), *LAST_RESORT]
    asked, errors = [operand_of(x) for x in operands], []

    def of_plain(plain: Sequence[Any], at: Any) -> Any:
        return function(*plain) if form is None else function(at, *plain)

    for sizes in tried:
        try:
            question = Asked(of_plain, partial(stand_in, op="", sizes=sizes), form, given)
            answer = told(question, asked)
            return answer.value, _shapes(question, asked, answer)
        except Exception as error:
            errors.append(error)
    raise trace.error(errors[0], [x.value for x in operands],
                      [f"operand {i}" for i in range(len(operands))]) from None


def _shapes(
    asked: Asked, operands: Sequence[OperandLayout], answer: Told
) -> list[tuple[Size, ...]]:
    """Of an answer; where sizes are symbols, plans ask whether it is theirs."""
    if is_symbolic(asked.form) or any(x.is_symbolic for x in operands):
        return note_answer(
            replace(asked, stand_in=partial(stand_in, op="")), operands, answer, "an index")
    return list(answer.shapes)
