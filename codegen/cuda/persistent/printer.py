"""Prints the statements of a structured program as CUDA C++ of one kernel."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from fusec.codegen.structured import statements as s
from fusec.codegen.structured.memory import Register, Variable, View, contiguous
from fusec.codegen.structured.not_native import NotNativeError
from fusec.codegen.structured.statements import walk as statements_of
from fusec.ir.sizes.bounds import range_of
from fusec.ir.sizes.dims import Size

from ...kernels.complex_pairs import buffer_strides
from ...kernels.loop_ir import Kernel, walk
from ...kernels.specialise import specialise
from ..compiled_nests import CudaForm, stores
from ..kernels.joined_nests import may_be_joined
from ..programs.number_kernels import copy_kernel
from ..programs.residence import reads
from ..scalars.scalar_functions import call_scalar, refusal
from ..scalars.scalar_ops import emit_operation
from .check_nests import checks_alone
from .nest_printer import call_nest
from .numbers import loaded, number_type, stored, type_in_memory
from .program_kernel import ProgramKernel

MOST_SPENT = 2_000_000  # ns of work between two looks at the host's wish, in a CPU's time
_LEAST_SPENT = MOST_SPENT // 64  # an iteration's
_COUNTS = 8 * 8192  # bytes, of `counting_warps`


def print_block(kernel: ProgramKernel, block: s.Block) -> None:
    """Every statement; raises `NotNativeError` for one that a kernel cannot have.

    Numbers that nests leave are read before the first statement that reads them.
    """
    before = kernel.unread
    kernel.unread = []
    for statement in block:
        if kernel.unread and not kernel_reads(statement).isdisjoint(kernel.unread):
            kernel.fetch_numbers()
        rule = kernel.rules.get(type(statement)) or _PRINT.get(type(statement))
        if rule is None:
            raise NotNativeError(_REFUSED[type(statement)])
        start = len(kernel.em.lines)
        rule(kernel, statement)
        kernel.em.note(start, statement)
    kernel.fetch_numbers()
    kernel.unread = before


def kernel_reads(statement: Any) -> set[Register]:
    """The registers that a statement names, inside of it, too."""
    return {r for x in statements_of((statement,)) for r in reads(x)}


# ------------------------------------------------------------------------------ numbers and memory


def _number(kernel: ProgramKernel, x: s.Number) -> None:
    kernel.define(x.result, kernel.size(x.value))


_OWN = {
    "wrap_index": "{0} < 0 ? {0} + {1} : {0}", "in_range": "0 <= {0} && {0} < {1}",
    "quotient": "{0} / {1}", "smallest": "{0} < {1} ? {0} : {1}",
    "largest": "{0} > {1} ? {0} : {1}"}


def _let(kernel: ProgramKernel, x: s.Let) -> None:
    values = [kernel.value(a) for a in x.args]
    if x.op in _OWN:
        kernel.define(x.result, _OWN[x.op].format(*values))
    elif x.op == "part":
        kernel.define(x.result, f"{values[0]}.{'imag' if x.attr else 'real'}")
    elif x.op == "complex":
        kernel.define(x.result, f"{number_type(x.result.dtype)}{{{values[0]}, {values[1]}}}")
    elif any(a.dtype.kind == "c" for a in (x.result, *x.args)):
        raise NotNativeError(f"{x.op} of complex numbers")
    else:
        kernel.define(x.result, str(emit_operation(kernel.em, x.op, x.result.dtype, values)))


def _call_scalar(kernel: ProgramKernel, x: s.CallScalar) -> None:
    reason = refusal(x.function)
    if reason:
        raise NotNativeError(reason)
    value, failed = call_scalar(kernel.em, x.function, [kernel.value(a) for a in x.args])
    kernel.define(x.result, str(value))
    kernel.define(x.holds, f"!({failed})" if x.words else "true")
    kernel.kept.update(zip(x.words, x.args, strict=False))


def _input(kernel: ProgramKernel, x: s.Input) -> None:
    kernel.numbers[x.position] = x.result.dtype
    at = kernel.argument(("input", x.position), is_written=False)
    kernel.define(x.result, loaded(x.result.dtype, at))


def _output(kernel: ProgramKernel, x: s.Output) -> None:
    at = kernel.argument(("result", x.position))
    kernel.results[x.position] = x.value.dtype, stored(kernel.value(x.value)).format(at)


def _declare(kernel: ProgramKernel, x: s.Declare) -> None:
    if isinstance(x.thing, Variable):
        kernel.declare_number(x.thing)
    else:
        kernel.declare_memory(x.thing)


def _get(kernel: ProgramKernel, x: s.Get) -> None:
    kernel.define(x.result, repr(x.variable))


def _set(kernel: ProgramKernel, x: s.Set) -> None:
    kernel.em.line(f"{x.variable!r} = {kernel.value(x.value)};")


def _load(kernel: ProgramKernel, x: s.Load) -> None:
    kernel.note_launch(1)
    kernel.wait_for([kernel.aliases.class_of(x.place.memory)], ())
    kernel.define(x.result, loaded(x.result.dtype, kernel.place(x.place)))


def _store(kernel: ProgramKernel, x: s.Store) -> None:
    kernel.note_launch(1)
    kernel.wait_for((), [kernel.aliases.class_of(x.place.memory)])
    text = stored(kernel.value(x.value)).format(kernel.place(x.place))
    kernel.em.line(f"if (is_leader()) {text};")


def _exchange(kernel: ProgramKernel, x: s.Exchange) -> None:
    with kernel.em.block(""):
        for n, (_, second) in enumerate(x.pairs):
            kernel.em.line(f"char *const e{n} = {second!r};")
        for n, (first, _) in enumerate(x.pairs):
            kernel.em.line(f"{first!r} = e{n};")


def _define_size(kernel: ProgramKernel, x: s.DefineSize) -> None:
    kernel.define_size(x.symbol, str(kernel.value(x.value)))


def _point_into(kernel: ProgramKernel, x: s.PointInto) -> None:
    kernel.em.line(f"{x.alias!r} = {kernel.value(x.condition)} ? {kernel.place(x.place)} : "
                   f"{x.orelse!r};")


def _is_at(kernel: ProgramKernel, x: s.IsAt) -> None:
    equal = [f"{x.memory!r} == {other!r}" for other in x.others] or ["false"]
    text = " || ".join(equal)
    kernel.define(x.result, f"!({text})" if x.elsewhere else text)


def _nonzero(kernel: ProgramKernel, x: s.Nonzero) -> None:
    """Counted by warps, then written, with a barrier between."""
    source, indices = (kernel.aliases.class_of(v.memory) for v in (x.source, x.indices))
    counts, kernel.selects = ("counts",), True
    kernel.note_launch(2)
    kernel.wait_for([source], [counts])
    kind, (step,) = type_in_memory(x.source.dtype), kernel.steps(x.source)
    places = f"{kernel.place(x.source)}, {kernel.size(step)}, {kernel.size(x.source.shape[0])}"
    where = kernel.scratch_for(counts, _COUNTS)
    kernel.em.line(f"count_found<{kind}>({places}, {where});")
    kernel.wait_for([source, counts], [indices])
    kernel.define(
        x.count, f"write_found<{kind}>({places}, {where}, {kernel.place(x.indices)})")


# --------------------------------------------------------------------------------------- kernels


def _copy(kernel: ProgramKernel, x: s.Copy) -> None:
    """Through memory of its own where the two may overlap."""
    classes = [kernel.aliases.class_of(v.memory) for v in (x.target, x.source)]
    place = kernel.place(x.target), kernel.steps(x.target), classes[0]
    source = kernel.place(x.source), kernel.steps(x.source), classes[1]
    is_aliased = "alias" in (x.target.memory.origin, x.source.memory.origin)
    if classes[0] == classes[1] and (is_aliased or x.target.memory is x.source.memory):
        own = (kernel.memory_of(_most_bytes(kernel, x.source)),
               contiguous(x.source.shape, x.source.dtype.itemsize), ("copied", id(x)))
        _copied(kernel, own, source, x.source)
        source = own
    _copied(kernel, place, source, x.source)


def _most_bytes(kernel: ProgramKernel, view: View) -> Size:
    """At least what a copy of a view takes; the memory that an alias is at has no size."""
    nbytes: Size = math.prod(view.shape) * view.dtype.itemsize
    limits = kernel.limits_of((nbytes,))
    return nbytes if limits is None else range_of(nbytes, limits)[1]


def _copied(kernel: ProgramKernel, target: Any, source: Any, like: View) -> None:
    made = copy_kernel(f"{kernel.node.name}_copy", like.shape, like.dtype, kernel.node.loc)
    strides = [buffer_strides(like.dtype, source[1]), buffer_strides(like.dtype, target[1])]
    for nest in made.nests:
        form = CudaForm(specialise(made, nest, strides), made)
        if not form.is_static or stores(form):
            call_nest(kernel, form, [source[0], target[0]], [source[2]], [target[2]])


def _run_kernel(kernel: ProgramKernel, x: s.RunKernel) -> None:
    exits = [use.exit for use in x.nests if use.exit >= 0]
    places, keys = _buffers(kernel, x)
    forms = [CudaForm(use.form, x.kernel) for use in x.nests]
    forms = [form for form in forms if not form.is_static or stores(form)]
    if exits and forms and _may_overlap(kernel, x):
        for form in checks_alone(forms):
            call_nest(kernel, form, places, *_accessed(x.kernel, form, keys))
        kernel.leave_where_a_check_failed(exits[0], list(x.operands))
        exits = []
    together = not _may_overlap(kernel, x) and may_be_joined(
        x.kernel, [form.loops for form in forms])
    for form in forms:
        reads, writes = _accessed(x.kernel, form, keys)
        if together:  # as one access: these have nothing to wait for among themselves
            together, reads, writes = False, set(keys), {keys[n] for n in _outs(x.kernel)}
            kernel.wait_for(reads, writes)
            kernel.hazards.suspended = True
            kernel.note_launch(1)
        call_nest(kernel, form, places, reads, writes)
    kernel.hazards.suspended = False
    kernel.unread += [r for r in x.results if isinstance(r, Register)]
    if exits and forms:
        kernel.leave_where_a_check_failed(exits[0], list(x.operands))


def _may_overlap(kernel: ProgramKernel, x: s.RunKernel) -> bool:
    """Whether a result may be in the memory of an operand: the same, or one that an alias is at."""
    read = [o.memory for o in x.operands if isinstance(o, View)]
    written = [r.memory for r in x.results if isinstance(r, View)]
    return any(a is b or ("alias" in (a.origin, b.origin) and kernel.aliases.may_meet(a, b))
               for a in read for b in written)


def _buffers(kernel: ProgramKernel, x: s.RunKernel) -> tuple[list[str], list[Any]]:
    """Where the buffers of a kernel are, and which memory that is; a number that all threads have
    is in memory of each thread's."""
    places, keys = [], []
    for n, o in enumerate((*x.operands, *x.results)):
        if isinstance(o, View):
            places.append(kernel.place(o))
            keys.append(kernel.aliases.class_of(o.memory))
        elif n < len(x.operands):
            places.append(kernel.in_memory_of_threads(o))
            keys.append(("own", len(keys)))
        else:
            assert isinstance(o, Register)
            places.append(kernel.word(o))
            keys.append(("word", o))
    return places, keys


def _outs(made: Kernel) -> list[int]:
    return [n for n, buffer in enumerate(made.buffers) if buffer.role == "out"]


def _accessed(made: Kernel, form: CudaForm, keys: list[Any]) -> tuple[set[Any], set[Any]]:
    """The memory that a nest reads, and that it writes."""
    nest = form.loops.nest
    buffers = [access.buffer for access in nest.accesses]
    reads = {keys[buffers[e.attr]] for e in walk(nest.roots) if e.op == "load"}
    writes = {keys[buffers[store.access]] for stage in nest.stages for store in stage.stores}
    joined = {keys[buffers[store.access]] for stage in nest.stages for store in stage.stores
              if store.combine}
    return reads | joined, writes


# ----------------------------------------------------------------------------------------- control


def _check(kernel: ProgramKernel, x: s.Check) -> None:
    exit_ = kernel.program.exits[x.exit]
    operands = [kernel.kept[word] for word, _ in exit_.call[1]] if exit_.call else []
    with kernel.em.block(f"if (!({kernel.value(x.condition)}))"):
        kernel.leave(x.exit, operands, str(kernel.value(x.index)), str(kernel.value(x.size)))


def _if(kernel: ProgramKernel, x: s.If) -> None:
    before = kernel.hazards.now
    with kernel.em.block(f"if ({kernel.value(x.condition)})"):
        print_block(kernel, x.then)
    then, kernel.hazards.now = kernel.hazards.now, before
    if x.orelse:
        with kernel.em.block("else"):
            print_block(kernel, x.orelse)
    kernel.hazards.now |= then


def _while(kernel: ProgramKernel, x: s.While) -> None:
    kernel.loops += 1
    number = kernel.hazards.begin_loop()
    with kernel.em.block("while (true)"):
        print_block(kernel, x.test)
        kernel.em.line(f"if (!({kernel.value(x.condition)})) break;")
        after = kernel.hazards.now
        print_block(kernel, x.body)
        kernel.hazards.end_loop(number)
    kernel.hazards.now = after
    kernel.loops -= 1


def _counted_loop(kernel: ProgramKernel, x: s.CountedLoop) -> None:
    """Its body adds one to the variable."""
    kernel.loops += 1
    number = kernel.hazards.begin_loop()
    with kernel.em.block(f"while ({x.variable!r} < {kernel.value(x.limit)})"):
        after = kernel.hazards.now
        print_block(kernel, x.body)
        _poll(kernel, s.Poll(x.cost))
        kernel.hazards.end_loop(number)
    kernel.hazards.now |= after
    kernel.loops -= 1


def _poll(kernel: ProgramKernel, x: s.Poll) -> None:
    if not kernel.is_short(x.cost):
        kernel.poll(max(x.cost // 8, _LEAST_SPENT), MOST_SPENT)


def _point(kernel: ProgramKernel, x: s.Point) -> None:
    kernel.em.line(f"{x.alias!r} = {x.at!r};")


_PRINT: dict[type, Callable[[ProgramKernel, Any], None]] = {
    s.Number: _number, s.Let: _let, s.CallScalar: _call_scalar, s.Input: _input,
    s.Output: _output, s.Declare: _declare, s.Get: _get, s.Set: _set,
    s.DefineSize: _define_size, s.Load: _load, s.Store: _store, s.Copy: _copy,
    s.Exchange: _exchange, s.Point: _point, s.PointInto: _point_into, s.IsAt: _is_at,
    s.RunKernel: _run_kernel, s.Check: _check, s.Nonzero: _nonzero,
    s.If: _if, s.While: _while, s.CountedLoop: _counted_loop, s.Poll: _poll,
}
_REFUSED: dict[type, str] = {
    s.CallPython: "a library call",
    s.CanDraw: "a draw from NumPy's generators",
    s.CheckIndices: "a check of an array of indices",
    s.DefineFunction: "a function that calls itself",
    s.CallFunction: "a function that calls itself",
}
