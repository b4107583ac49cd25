"""Prints the statements of a lane as CUDA C++ of the thread that has it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from fusec.codegen.structured import statements as s
from fusec.codegen.structured.memory import Register, Variable, View
from fusec.codegen.structured.not_native import NotNativeError
from fusec.codegen.structured.program import StructuredProgram
from fusec.ir.sizes.dims import is_static

from ..compiled_nests import CudaForm, stores
from ..persistent.numbers import loaded, stored, type_in_memory
from ..persistent.printer import MOST_SPENT, print_block
from ..scalars.emitter import memory_type
from .lane_kernel import LaneKernel
from .lane_nest import LaneNest, NestBuffer

_BEFORE = (s.Number, s.Let, s.Input, s.Declare, s.Get, s.Set, s.Load, s.If, s.IsAt)


def lane_kernel(program: StructuredProgram, is_noted: bool = False) -> LaneKernel:
    """The kernel with all statements; raises `NotNativeError` for one that a lane cannot have.
    ``is_noted``: which lines are of which statement is noted in ``em.notes``."""
    kernel = LaneKernel(program)
    kernel.em.notes = [] if is_noted else None
    for x in kernel.before:
        if not isinstance(x, _BEFORE):
            raise NotNativeError(f"{type(x).__name__} before a loop over lanes")
    print_block(kernel, kernel.before)
    em, variable = kernel.em, kernel.variable
    em.line(f"{variable!r} += thread;")
    start = len(em.lines)
    print_block(kernel, (kernel.loop,))
    lines, em.lines = em.lines[start:], em.lines[:start]
    kernel.look_before()
    more = len(em.lines) - start
    em.notes = em.notes and [
        note if note[0] < start else (note[0] + more, note[1] + more, note[2]) for note in em.notes]
    em.lines += lines
    return kernel


# ------------------------------------------------------------------------------ numbers and memory


def _input(kernel: LaneKernel, x: s.Input) -> None:
    if x.position in (kernel.begin, kernel.end):
        kernel.define(x.result, kernel.bound(x.position))
        return
    kernel.numbers[x.position] = x.result.dtype
    at = kernel.argument(("input", x.position), is_written=False)
    kernel.define(x.result, loaded(x.result.dtype, at))


def _declare(kernel: LaneKernel, x: s.Declare) -> None:
    if isinstance(x.thing, Variable):
        kernel.declare_number(x.thing)
        return
    kernel.declare_memory(x.thing)
    if x.thing.origin == "zeros":
        size, scale = x.thing.dtype.itemsize, kernel.scale(x.thing)
        kernel.em.line(f"for (i64 n = 0; n < {kernel.size(x.thing.nbytes)}; n += {size})")
        kernel.em.line(f"  fill_with_zero_bytes<{size}>({x.thing!r} + n{scale});")


def _set(kernel: LaneKernel, x: s.Set) -> None:
    """The next lane of a thread is as many on as there are threads."""
    if x.variable is kernel.variable and any(x is y for y in kernel.loop.body):
        kernel.em.line(f"{x.variable!r} += threads;")
    else:
        kernel.em.line(f"{x.variable!r} = {kernel.value(x.value)};")


def _load(kernel: LaneKernel, x: s.Load) -> None:
    kernel.define(x.result, loaded(x.result.dtype, kernel.place(x.place)))


def _store(kernel: LaneKernel, x: s.Store) -> None:
    kernel.em.line(f"{stored(kernel.value(x.value)).format(kernel.place(x.place))};")


# -------------------------------------------------------------------------------- arrays of a lane


def _copy(kernel: LaneKernel, x: s.Copy) -> None:
    """Element by element; from the end where the target lies behind the source, in one memory."""
    em, kind = kernel.em, memory_type(x.target.dtype) if x.target.dtype.kind != "c" else ""
    with em.block(""):
        source, target = (_pointer(kernel, v) for v in (x.source, x.target))
        is_one = kernel.aliases.class_of(x.source.memory) == kernel.aliases.class_of(
            x.target.memory)
        with ExitStack() as stack:
            steps: list[list[str]] = [[], []]
            for axis, n in enumerate(x.target.shape):
                count, name = kernel.size(n), em.fresh("i")
                stack.enter_context(em.block(f"for (i64 {name} = 0; {name} < {count}; ++{name})"))
                if is_one:
                    name = em.named("i64", f"{target} > {source} ? {count} - 1 - {name} : {name}")
                for view, own in zip((x.source, x.target), steps, strict=True):
                    own.append(f"{name} * {_step(kernel, view, view.strides[axis])}")
            at = [" + ".join([p, *own]) for p, own in zip((source, target), steps, strict=True)]
            _move(kernel, x.target, kind, at)


def _move(kernel: LaneKernel, view: View, kind: str, at: Sequence[str]) -> None:
    if kind:
        kernel.em.line(f"store<{kind}>({at[1]}, load<{kind}>({at[0]}));")
    else:
        half = "f32" if view.dtype.itemsize == 8 else "f64"
        kernel.em.line(f"store_complex({at[1]}, load_complex<{half}>({at[0]}));")


def _pointer(kernel: LaneKernel, view: View) -> str:
    name = kernel.em.fresh("at")
    kernel.em.line(f"char *const {name} = {kernel.place(view)};")
    return name


def _step(kernel: LaneKernel, view: View, stride: Any) -> str:
    text = str(kernel.value(stride)) if isinstance(stride, Register) else kernel.size(stride)
    return f"{text}{kernel.scale(view.memory)}"


def _run_kernel(kernel: LaneKernel, x: s.RunKernel) -> None:
    em = kernel.em
    exits = [use.exit for use in x.nests if use.exit >= 0]
    numbers = [r for r in x.results if isinstance(r, Register)]
    for r in numbers:
        kernel.declare_number(r)
    with em.block(""):
        if exits:
            em.line("bool failed = false;")
        buffers = [_buffer(kernel, o) for o in x.operands]
        held = {r: em.fresh("result") for r in numbers}
        for r, name in held.items():
            em.line(f"{type_in_memory(r.dtype)} {name};")
        buffers += [NestBuffer(f"reinterpret_cast<char *>(&{held[r]})") if isinstance(r, Register)
                    else _buffer(kernel, r) for r in x.results]
        for use in x.nests:
            _nest(kernel, x, use.form, buffers)
        for r, name in held.items():
            kernel.define(r, loaded(r.dtype, f"reinterpret_cast<const char *>(&{name})"))
        if exits:
            with em.block("if (failed)"):
                kernel.leave(exits[0], list(x.operands))


def _buffer(kernel: LaneKernel, o: Any) -> NestBuffer:
    if isinstance(o, View):
        return NestBuffer(f"({kernel.place(o)})", kernel.scale(o.memory))
    return NestBuffer(kernel.in_memory_of_threads(o))


def _nest(kernel: LaneKernel, x: s.RunKernel, form: Any, buffers: Sequence[NestBuffer]) -> None:
    made = CudaForm(form, x.kernel)
    kernel.require_outer(form.extents, *((o.offset, o.strides, o.gathered) for o in form.operands))
    if form.nest.scratch and not is_static(form.extents):
        raise NotNativeError("an array of a lane of a size that only the call knows")
    if not made.is_static or stores(made):
        LaneNest(form, kernel.em, buffers, kernel.size).print()


def _counted_loop(kernel: LaneKernel, x: s.CountedLoop) -> None:
    """Its body adds one to the variable."""
    with kernel.em.block(f"while ({x.variable!r} < {kernel.value(x.limit)})"):
        print_block(kernel, x.body)
        _poll(kernel, s.Poll(x.cost))


def _poll(kernel: LaneKernel, x: s.Poll) -> None:
    if not kernel.is_short(x.cost):
        kernel.poll(max(x.cost, 1), MOST_SPENT)


def _nonzero(kernel: LaneKernel, x: s.Nonzero) -> None:
    raise NotNativeError("indices of what is not 0, of a lane")


LANE_RULES: dict[type, Callable[[Any, Any], None]] = {
    s.Input: _input, s.Declare: _declare, s.Set: _set, s.Load: _load, s.Store: _store,
    s.Copy: _copy, s.RunKernel: _run_kernel, s.CountedLoop: _counted_loop, s.Poll: _poll,
    s.Nonzero: _nonzero,
}
LaneKernel.rules = LANE_RULES
