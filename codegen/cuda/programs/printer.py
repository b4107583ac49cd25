"""Prints the statements of a structured program as Python text that asks a device for its kernels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from fusec.codegen.structured import statements as s
from fusec.codegen.structured.memory import Operand, Register, Variable, View
from fusec.codegen.structured.not_native import NotNativeError
from fusec.ir.sizes.dims import is_static

from ...kernels.complex_pairs import buffer_strides
from ..compiled_nests import CudaForm
from ..persistent.check_nests import checks_alone
from ..scalars.scalar_functions import refusal
from .host_numbers import text_of
from .number_kernels import call_kernel, copy_kernel, number_kernel
from .program_text import ProgramText, still
from .residence import reads


def print_block(text: ProgramText, block: s.Block) -> None:
    """Every statement, scalar ops of the device together; raises `NotNativeError` for one that has
    no text."""
    together: list[s.Let] = []
    for statement in block:
        if text.residence.is_kernel(statement):
            together.append(statement)
            continue
        if not _is_of_the_host(text, statement):
            _numbers(text, together)
            together = []
        rule = _PRINT.get(type(statement))
        if rule is None:
            raise NotNativeError(_REFUSED[type(statement)])
        start = len(text.lines)
        rule(text, statement)
        text.note(start, statement)
    _numbers(text, together)


def _is_of_the_host(text: ProgramText, x: Any) -> bool:
    """Whether a statement reads nothing that a scalar op of the device defines."""
    return isinstance(x, (s.Number, s.Get)) or (
        isinstance(x, s.Let) and not any(map(text.residence.is_there, x.args)))


def _numbers(text: ProgramText, lets: list[s.Let]) -> None:
    """One kernel for scalar ops that follow each other."""
    own = Counter(r for x in lets for r in reads(x))
    read = {x.result for x in lets if text.readers[x.result] > own[x.result]}
    made = number_kernel(f"{text.node.name}_numbers", lets, read, text.node.loc)
    if made.results:
        words = [text.word(r) for r in made.inputs]
        addresses = [*words, *map(text.new, made.results)]
        start = len(text.lines)
        site = text.launch(made.kernel, [()] * len(addresses), addresses)
        for x, value in zip(lets, made.values, strict=True):
            text.note(start, x)
            text.note_expression(site, value, x)


# ------------------------------------------------------------------------------ numbers and memory


def _number(text: ProgramText, x: s.Number) -> None:
    text.line(f"{x.result!r} = {text.size(x.value)}")


def _let(text: ProgramText, x: s.Let) -> None:
    text.line(f"{x.result!r} = {text_of(x, [text.host(a) for a in x.args], text.bind)}")


def _call_scalar(text: ProgramText, x: s.CallScalar) -> None:
    """A kernel, which the host waits for where the function may raise."""
    reason = refusal(x.function)
    if reason:
        raise NotNativeError(reason)
    kernel = call_kernel(f"{text.node.name}_call", x, text.node.loc)
    addresses = [*map(text.word, x.args), text.new(x.result)]
    site = text.launch(kernel, [()] * len(addresses), addresses)
    text.kept.update(zip(x.words, map(text.host, x.args), strict=False))
    text.line(f"{x.holds!r} = {f'not call.has_failed({site})' if x.words else True}")


def _input(text: ProgramText, x: s.Input) -> None:
    text.line(f"{x.result!r} = call.number({x.position}, {text.dtype(x.result.dtype)})")


def _output(text: ProgramText, x: s.Output) -> None:
    dtype = text.dtype(x.value.dtype)
    text.line(f"call.results[{x.position}] = {dtype}.type({text.host(x.value)})")


def _declare(text: ProgramText, x: s.Declare) -> None:
    if isinstance(x.thing, Variable):
        return
    text.declare(x.thing)


def _define_size(text: ProgramText, x: s.DefineSize) -> None:
    text.line(f"sizes[{x.symbol!r}] = {text.host(x.value)}")


def _load(text: ProgramText, x: s.Load) -> None:
    kernel = copy_kernel(f"{text.node.name}_element", (), x.result.dtype, text.node.loc)
    steps = buffer_strides(x.result.dtype, ())
    text.launch(kernel, [steps, steps], [text.place(x.place), text.new(x.result)])


def _store(text: ProgramText, x: s.Store) -> None:
    kernel = copy_kernel(f"{text.node.name}_element", (), x.place.dtype, text.node.loc)
    steps = buffer_strides(x.place.dtype, ())
    text.launch(kernel, [steps, steps], [text.word(x.value), text.place(x.place)])


def _exchange(text: ProgramText, x: s.Exchange) -> None:
    firsts, seconds = (", ".join(repr(pair[side]) for pair in x.pairs) for side in (0, 1))
    text.line(f"{firsts} = {seconds}")


def _point_into(text: ProgramText, x: s.PointInto) -> None:
    text.line(f"{x.alias!r} = {text.place(x.place)} if {text.host(x.condition)} else {x.orelse!r}")


def _is_at(text: ProgramText, x: s.IsAt) -> None:
    others = "".join(f"{memory!r}, " for memory in x.others)
    text.line(f"{x.result!r} = {x.memory!r} {'not in' if x.elsewhere else 'in'} ({others})")


def _run_kernel(text: ProgramText, x: s.RunKernel) -> None:
    exits = [use.exit for use in x.nests if use.exit >= 0]
    read = {o.memory for o in x.operands if isinstance(o, View)}
    is_changed = any(isinstance(r, View) and r.memory in read for r in x.results)
    addresses = [text.place(o) if isinstance(o, View) else text.word(o) for o in x.operands]
    addresses += [text.new(r) if isinstance(r, Register) else text.place(r) for r in x.results]
    forms = [CudaForm(use.form, x.kernel) for use in x.nests]
    if exits and is_changed:  # who reports a wrong index finds the operand as it was
        _leave_where_a_check_failed(text, x, exits[0], text.run_nests(
            [*checks_alone(forms)], addresses))
    site = text.run_nests(forms, addresses)
    if _is_apart(x):
        text.apart.add(site)
    if exits and not is_changed:
        _leave_where_a_check_failed(text, x, exits[0], site)


def _leave_where_a_check_failed(
    text: ProgramText, x: s.RunKernel, exit_: int, site: str
) -> None:
    if site:
        operands = ", ".join(text.contents(o) for o in x.operands)
        text.line(f"if call.has_failed({site}):")
        text.line(f"    raise ExitTakenError({exit_}, operands=({operands},))")


def _is_apart(x: s.RunKernel) -> bool:
    """Whether the results are in other memory than the operands, and than each other."""
    written = [r.memory for r in x.results if isinstance(r, View)]
    read = {o.memory for o in x.operands if isinstance(o, View)}
    return read.isdisjoint(written) and len({*written}) == len(written) and not any(
        memory.origin == "alias" for memory in (*written, *read))


def _call_python(text: ProgramText, x: s.CallPython) -> None:
    """A library of the device's; what it raises is the exit's."""
    name = text.bind("library", text.library(x.site.node))
    operands = "".join(f"{_argument(text, o)}, " for o in x.operands)
    results = "".join(
        f"({text.new(r)}, {text.bind('view', ((), (), r.dtype))}), " if isinstance(r, Register)
        else f"{_argument(text, r)}, " for r in x.results)
    text.line(f"try: {name}(({operands}), ({results}), call)")
    text.line(f"except LIBRARY_ERRORS as error: raise ExitTakenError({x.exit}, error=error)")


def _argument(text: ProgramText, x: Operand | View) -> str:
    """A number on the host, or where an array is and how it lies."""
    if isinstance(x, View):
        return f"({text.place(x)}, {text.bind('view', still(x))})"
    return text.host(x)


# ----------------------------------------------------------------------------------------- control


def _check(text: ProgramText, x: s.Check) -> None:
    exit_ = text.program.exits[x.exit]
    size = text.host(x.size) if is_static((exit_.size,)) else text.size(
        0 if exit_.size is None else exit_.size)
    operands = "".join(f"{text.kept[word]}, " for word, _ in exit_.call[1]) if exit_.call else ""
    text.line(f"if not {text.host(x.condition)}: raise ExitTakenError("
              f"{x.exit}, int({text.host(x.index)}), int({size}), ({operands}))")


def _if(text: ProgramText, x: s.If) -> None:
    with text.inside(f"if {text.host(x.condition)}:"):
        print_block(text, x.then)
    if x.orelse:
        with text.inside("else:"):
            print_block(text, x.orelse)


def _while(text: ProgramText, x: s.While) -> None:
    with text.inside("while True:"):
        print_block(text, x.test)
        text.line(f"if not {text.host(x.condition)}: break")
        print_block(text, x.body)
        text.line("call.queue.turn()")


def _counted_loop(text: ProgramText, x: s.CountedLoop) -> None:
    variable = f"on_host({x.variable!r})" if text.residence.is_there(x.variable) else (
        repr(x.variable))
    with text.inside(f"while {variable} < {text.host(x.limit)}:"):
        print_block(text, x.body)
        text.line("call.queue.turn()")


_PRINT: dict[type, Callable[[ProgramText, Any], None]] = {
    s.Number: _number, s.Let: _let, s.CallScalar: _call_scalar, s.Input: _input,
    s.Output: _output, s.Declare: _declare,
    s.Get: lambda text, x: text.line(f"{x.result!r} = {x.variable!r}"),
    s.Set: lambda text, x: text.line(f"{x.variable!r} = {text.number(x.value)}"),
    s.DefineSize: _define_size, s.Load: _load, s.Store: _store,
    s.Copy: lambda text, x: text.copy(x.target, x.source),
    s.Exchange: _exchange,
    s.Point: lambda text, x: text.line(f"{x.alias!r} = {x.at!r}"),
    s.PointInto: _point_into, s.IsAt: _is_at, s.RunKernel: _run_kernel,
    s.CallPython: _call_python, s.Check: _check,
    s.If: _if, s.While: _while, s.CountedLoop: _counted_loop, s.Poll: lambda text, x: None,
}
_REFUSED: dict[type, str] = {
    s.CanDraw: "a draw from NumPy's generators in a loop on a CUDA device",
    s.CheckIndices: "a check of an array of indices in a loop on a CUDA device",
    s.Nonzero: "indices of what is not 0 in a loop on a CUDA device",
    s.DefineFunction: "a function that calls itself on a CUDA device",
    s.CallFunction: "a function that calls itself on a CUDA device",
}


