"""Prints statements of the structured IR as CUDA C++, for the threads of one block."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from fusec.codegen.structured import statements as s
from fusec.codegen.structured.memory import Variable, View
from fusec.codegen.structured.not_native import NotNativeError

from ..scalars.emitter import BOOL, I64, Operand, memory_type, type_name
from ..scalars.scalar_functions import call_scalar, refusal
from ..scalars.scalar_ops import emit_operation
from .frame import LoopFrame, from_word, require_plain
from .kernels import run_kernel

MOST_POLLS = 1 << 12  # iterations between looks at memory: a loop that never ends makes progress


def print_block(frame: LoopFrame, block: s.Block) -> None:
    """Every statement of a block, in order; raises `NotNativeError` for one that has no text."""
    for statement in block:
        rule = _PRINT.get(type(statement))
        if rule is None:
            raise NotNativeError(_REFUSED[type(statement)])
        rule(frame, statement)


# ------------------------------------------------------------------------------ numbers and memory


def _number(frame: LoopFrame, x: s.Number) -> None:
    frame.values[x.result] = Operand(frame.size(x.value), I64)


def _let(frame: LoopFrame, x: s.Let) -> None:
    for operand in (x.result, *x.args):
        require_plain(operand.dtype)
    args = [frame.operand(a) for a in x.args]
    rule = _INDEX_OPS.get(x.op)
    if rule is not None:
        frame.values[x.result] = frame.em.value(x.result.dtype, rule(*(a.text for a in args)))
    else:
        frame.values[x.result] = emit_operation(frame.em, x.op, x.result.dtype, args)


def _call_scalar(frame: LoopFrame, x: s.CallScalar) -> None:
    """Where it raises, the exit leaves its arguments: the Python function is called on them."""
    reason = refusal(x.function)
    if reason:
        raise NotNativeError(reason)
    args = [frame.operand(a) for a in x.args]
    value, bad = call_scalar(frame.em, x.function, args)
    for host, arg in zip(x.words, args, strict=False):  # none where it cannot raise
        frame.kept[host] = frame.word(), arg
    frame.values[x.result] = value
    frame.values[x.holds] = frame.em.value(BOOL, f"!{bad}")


_INDEX_OPS: dict[str, Callable[..., str]] = {
    "wrap_index": lambda i, n: f"{i} < 0 ? {i} + {n} : {i}",
    "in_range": lambda i, n: f"u64({i}) < u64({n})",
    "quotient": lambda a, b: f"{a} / {b}",
    "smallest": lambda a, b: f"{a} < {b} ? {a} : {b}",
    "largest": lambda a, b: f"{a} > {b} ? {a} : {b}",
}


def _input(frame: LoopFrame, x: s.Input) -> None:
    require_plain(x.result.dtype)
    bits = frame.number("input", x.position)
    frame.values[x.result] = frame.em.value(x.result.dtype, from_word(bits, x.result.dtype))


def _output(frame: LoopFrame, x: s.Output) -> None:
    require_plain(x.value.dtype)
    word = frame.word()
    frame.results[x.position] = word, x.value.dtype
    frame.store(frame.word_address(word), frame.operand(x.value))


def _declare(frame: LoopFrame, x: s.Declare) -> None:
    require_plain(x.thing.dtype)
    if isinstance(x.thing, Variable):
        name = frame.names[x.thing] = f"v{len(frame.names)}"
        frame.head.append(f"{type_name(x.thing.dtype)} {name} = {type_name(x.thing.dtype)}();")
    else:
        frame.declare_memory(x.thing)


def _get(frame: LoopFrame, x: s.Get) -> None:
    frame.values[x.result] = frame.em.value(x.result.dtype, frame.names[x.variable])


def _set(frame: LoopFrame, x: s.Set) -> None:
    frame.em.line(f"{frame.names[x.variable]} = {frame.text(x.value)};")


def _load(frame: LoopFrame, x: s.Load) -> None:
    frame.values[x.result] = frame.load(x.result.dtype, frame.place(x.place))


def _store(frame: LoopFrame, x: s.Store) -> None:
    frame.store(frame.place(x.place), frame.operand(x.value))


def _copy(frame: LoopFrame, x: s.Copy) -> None:
    kind, to, come = memory_type(x.target.dtype), frame.place(x.target), frame.place(x.source)
    frame.join()
    total = " * ".join(map(frame.size, x.target.shape)) or "1"
    if x.target.memory is x.source.memory:  # both lie in C order, and may overlap
        only = "if (threadIdx.x == 0) " if frame.threads > 1 else ""
        frame.em.line(f"{only}move_elements<{kind}>({to}, {come}, {total});")
    else:
        step = "blockDim.x" if frame.threads > 1 else "1"
        with frame.em.block(f"for (i64 id = threadIdx.x; id < {total}; id += {step})"):
            offsets = _offsets(frame, x.target, x.source)
            frame.em.line(f"store<{kind}>({to} + {offsets[0]}, load<{kind}>({come} + "
                          f"{offsets[1]}));")
    frame.join()


def _offsets(frame: LoopFrame, *views: View) -> list[str]:
    """The byte offsets of element ``id`` in views of one shape."""
    if all(view.is_dense for view in views):
        return [f"id * {views[0].dtype.itemsize}"] * len(views)
    counters, rest = [], "id"
    for size in reversed(views[0].shape):
        counters.append(frame.em.named("i64", f"{rest} % {frame.size(size)}", "i"))
        rest = frame.em.named("i64", f"{rest} / {frame.size(size)}", "rest")
    return [" + ".join(f"{i} * {frame.stride(step)}" for i, step in zip(
        reversed(counters), view.strides, strict=True)) for view in views]


def _exchange(frame: LoopFrame, x: s.Exchange) -> None:
    before = {second: frame.em.named("auto", frame.names[second], "base") for _, second in x.pairs}
    for first, second in x.pairs:
        frame.em.line(f"{frame.names[first]} = {before[second]};")


def _point(frame: LoopFrame, x: s.Point) -> None:
    frame.em.line(f"{frame.names[x.alias]} = const_cast<char *>({frame.names[x.at]});")


def _point_into(frame: LoopFrame, x: s.PointInto) -> None:
    frame.em.line(f"{frame.names[x.alias]} = {frame.text(x.condition)} ? {frame.place(x.place)} : "
                  f"{frame.names[x.orelse]};")


def _is_at(frame: LoopFrame, x: s.IsAt) -> None:
    sign, joined = ("!=", " && ") if x.elsewhere else ("==", " || ")
    text = joined.join(f"{frame.names[x.memory]} {sign} {frame.names[m]}" for m in x.others)
    frame.values[x.result] = frame.em.value(BOOL, text)


def _nonzero(frame: LoopFrame, x: s.Nonzero) -> None:
    """By one thread: indices come in order."""
    em, source, count = frame.em, x.source, frame.word()
    come, to = frame.place(source), frame.place(x.indices)
    frame.join()
    with em.block("if (threadIdx.x == 0)"):
        em.line("i64 taken = 0;")
        with em.block(f"for (i64 i = 0; i < {frame.size(source.shape[0])}; ++i)"):
            value = frame.load(source.dtype, f"{come} + i * {frame.stride(source.strides[0])}")
            is_one = value if value.dtype == BOOL else emit_operation(em, "ne", BOOL, [
                value, em.const(value.dtype, 0)])
            em.line(f"if ({is_one}) store<i64>({to} + taken++ * 8, i);")
        em.line(f"store<i64>({frame.word_address(count)}, taken);")
    frame.join()
    frame.values[x.count] = frame.load(I64, frame.word_address(count))


# ----------------------------------------------------------------------------------------- control


def _check(frame: LoopFrame, x: s.Check) -> None:
    frame.fail_unless(frame.text(x.condition), x.exit, frame.text(x.index), frame.text(x.size))


def _check_indices(frame: LoopFrame, x: s.CheckIndices) -> None:
    em, view, size, place = frame.em, x.indices, frame.text(x.size), frame.place(x.indices)
    with ExitStack() as stack:
        for extent, step in zip(view.shape, view.strides, strict=True):
            i = em.fresh("i")
            stack.enter_context(em.block(f"for (i64 {i} = 0; {i} < {frame.size(extent)}; ++{i})"))
            place += f" + {i} * {frame.stride(step)}"
        index = frame.load(view.dtype, place)
        real = em.value(I64, _INDEX_OPS["wrap_index"](index.text, size))
        frame.fail_unless(_INDEX_OPS["in_range"](real.text, size), x.exit, index.text, size)


def _if(frame: LoopFrame, x: s.If) -> None:
    with frame.em.block(f"if ({frame.text(x.condition)})"):
        print_block(frame, x.then)
    if x.orelse:
        with frame.em.block("else"):
            print_block(frame, x.orelse)


def _while(frame: LoopFrame, x: s.While) -> None:
    with frame.em.block("for (;;)"):
        print_block(frame, x.test)
        frame.em.line(f"if (!({frame.text(x.condition)})) break;")
        print_block(frame, x.body)


def _counted_loop(frame: LoopFrame, x: s.CountedLoop) -> None:
    with frame.em.block(f"while ({frame.names[x.variable]} < {frame.text(x.limit)})"):
        print_block(frame, x.body)


def _poll(frame: LoopFrame, x: s.Poll) -> None:
    """C++ may take a loop without effects for one that ends; reading volatile memory is one."""
    if "u32 polls = 0;" not in frame.head:
        frame.head.append("u32 polls = 0;")
    frame.em.line(f"if (++polls % {MOST_POLLS} == 0) "
                  "static_cast<void>(*reinterpret_cast<const volatile i64 *>(words));")


_PRINT: dict[type, Callable[[LoopFrame, Any], None]] = {
    s.Number: _number, s.Let: _let, s.CallScalar: _call_scalar, s.Input: _input,
    s.Output: _output, s.Declare: _declare, s.Get: _get, s.Set: _set, s.Load: _load,
    s.Store: _store, s.Copy: _copy,
    s.DefineSize: lambda frame, x: frame.define(x.symbol, frame.text(x.value)),
    s.Exchange: _exchange, s.IsAt: _is_at, s.Nonzero: _nonzero, s.RunKernel: run_kernel,
    s.Point: _point, s.PointInto: _point_into,
    s.Check: _check, s.CheckIndices: _check_indices, s.If: _if, s.While: _while,
    s.CountedLoop: _counted_loop, s.Poll: _poll,
}
_REFUSED: dict[type, str] = {
    s.CallPython: "a call of Python in a loop on a CUDA device",
    s.CanDraw: "a draw from NumPy's generators in a loop on a CUDA device",
    s.DefineFunction: "a function that calls itself on a CUDA device",
    s.CallFunction: "a function that calls itself on a CUDA device",
}
