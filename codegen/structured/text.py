"""The text of structured programs: a statement a line, types where registers are defined."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from fusec.ir import dtype_name

from ..kernels.loop_ir import INFIX
from ..plan.control_program import ErrorExit
from . import statements as s
from .calls.call_statements import NodeCall, Return
from .memory import Memory, Register, Variable, View, is_zero

Line = tuple[str, Any]  # with the statement that it is of; None: of an exit


def print_blocks(body: s.Block, exits: Sequence[ErrorExit]) -> Iterator[str]:
    """The lines of a program: its statements, then where its exits lead."""
    return (line for line, _ in numbered_blocks(body, exits))


def numbered_blocks(body: s.Block, exits: Sequence[ErrorExit]) -> Iterator[Line]:
    """The same, each with the innermost statement that it is of."""
    yield from _lines(body, "  ")
    for number, exit_ in enumerate(exits):
        where = f" at {exit_.node.loc}" if exit_.node.loc is not None else ""
        yield f"  exit {number}: {exit_.node.op} {exit_.node.name}{where}", None


def _lines(block: s.Block, indent: str) -> Iterator[Line]:
    for statement in block:
        for text in _text_of(statement):
            line, of = (text, statement) if isinstance(text, str) else text
            yield indent + line, of


def _block(block: s.Block) -> Iterator[Line]:
    return _lines(block, "  ")


def statement_text(statement: Any) -> str:
    """One statement, those inside of it included."""
    return "\n".join(line for line, _ in _lines((statement,), ""))


def _text_of(statement: Any) -> Iterable[str | Line]:
    """By its class, or that of which it is one at other sizes."""
    return next(_TEXT[kind] for kind in type(statement).__mro__ if kind in _TEXT)(statement)


def view_text(view: View) -> str:
    """``m0 + r1 [r2]: f64[10 by 80, 10 by 8]``: memory, bytes, elements; sizes by strides."""
    text = repr(view.memory)
    if view.views:
        seen = " and ".join(each.op for each in view.views)
        return f"{text} through {seen}: {dtype_name(view.dtype)}[{', '.join(map(str, view.shape))}]"
    if not is_zero(view.offset):
        text += f" + {view.offset!r}"
    if not is_zero(view.element):
        text += f" [{view.element!r}]"
    if not view.shape:
        return text
    axes = ", ".join(f"{n} by {step}" for n, step in zip(view.shape, view.strides, strict=True))
    return f"{text}: {dtype_name(view.dtype)}[{axes}]"


def _operand(x: Any) -> str:
    """An operand; of calls also an array that is a constant."""
    if not isinstance(x, View):
        shape = getattr(x, "shape", ())
        return repr(x) if not shape else f"constant {dtype_name(x.dtype)}{[*shape]}"
    return f"({view_text(x)})" if x.shape else f"&{view_text(x)}"


def _operands(operands: Iterable[Any]) -> str:
    return ", ".join(map(_operand, operands))


def _typed(register: Register) -> str:
    return f"{register!r}: {dtype_name(register.dtype)}"


def _let(statement: s.Let) -> str:
    args = [repr(a) for a in statement.args]
    if statement.op in INFIX:
        return f"{args[0]} {INFIX[statement.op]} {args[1]}"
    if statement.op == "part":
        args.append(str(statement.attr))
    return f"{statement.op}({', '.join(args)})"


def _declare(statement: s.Declare) -> Iterator[str]:
    thing = statement.thing
    if isinstance(thing, Variable):
        yield f"{thing!r}: {dtype_name(thing.dtype)}"
        return
    numbered = f" {thing.position}" if thing.origin in ("operand", "target", "parameter") else ""
    nbytes = "" if thing.nbytes == -1 else f" of {thing.nbytes} bytes"
    yield f"{thing!r}: {dtype_name(thing.dtype)}[]{nbytes} = {thing.origin}{numbered}"


def _run_kernel(statement: s.RunKernel) -> Iterator[str]:
    exits = [str(nest.exit) for nest in statement.nests if nest.exit >= 0]
    left = f" else exit {', '.join(exits)}" if exits else ""
    given = [_typed(r) for r in statement.results if isinstance(r, Register)]
    result = f"{', '.join(given)} = " if given else ""
    into = [view_text(r) for r in statement.results if isinstance(r, View)]
    yield (f"{result}run {statement.kernel.name}({_operands(statement.operands)})"
           f"{' into ' if into else ''}{' and '.join(into)}{left}")


def _call_python(statement: s.CallPython) -> Iterator[str]:
    given = [_typed(r) for r in statement.results if isinstance(r, Register)]
    result = f"{', '.join(given)} = " if given else ""
    into = [view_text(r) for r in statement.results if isinstance(r, View)]
    yield (f"{result}python {statement.site.name}({_operands(statement.operands)})"
           f"{' into ' if into else ''}{' and '.join(into)} else exit {statement.exit}")


def _node_call(call: NodeCall) -> Iterator[str]:
    kind = "library" if call.run is None else "native" if call.run.is_native else "step by step"
    into = " and ".join(map(view_text, call.results))
    yield f"{kind} {call.kinds.op} {call.name}({_operands(call.operands)}) into {into}"
    yield from (f"  restore {view_text(place)} if a later step fails" for place in call.saved)


def _draw(statement: s.Draw) -> str:
    call = f"draw {statement.drawing.method}({_operands(statement.arguments)})"
    if isinstance(statement.result, Register):
        return f"{_typed(statement.result)} = {call}"
    return f"{call} into {view_text(statement.result)}"


def _define_function(statement: s.DefineFunction) -> Iterator[str | Line]:
    function = statement.function
    parameters = [_typed(p) if isinstance(p, Register) else view_text(p)
                  for p in function.parameters]
    yield f"def {function!r}({', '.join(parameters)}) else exit {function.too_deep}:"
    yield from _block(function.body)
    yield f"  return {_operands(function.results)}"


def _call_function(statement: s.CallFunction) -> Iterator[str]:
    results = ", ".join(map(_typed, statement.results))
    yield f"{results} = {statement.function!r}({_operands(statement.args)})"


def _call_scalar(statement: s.CallScalar) -> Iterator[str]:
    args = _operands(statement.args)
    yield f"{_typed(statement.result)}, {statement.holds!r} = {statement.function}({args})"


def _check(statement: s.Check) -> Iterator[str]:
    index = "" if is_zero(statement.index) else f" index {statement.index!r}"
    yield f"check {statement.condition!r} else exit {statement.exit}{index}"


def _if(statement: s.If) -> Iterator[str | Line]:
    yield f"if {statement.condition!r}:"
    yield from _block(statement.then)
    if statement.orelse is not None:
        yield "else:"
        yield from _block(statement.orelse)


def _while(statement: s.While) -> Iterator[str | Line]:
    yield "loop:" if statement.lanes is None else "loop over lanes:"
    yield from _block(statement.test)
    yield f"  leave unless {statement.condition!r}"
    yield from _block(statement.body)


def _counted_loop(statement: s.CountedLoop) -> Iterator[str | Line]:
    over = ", over lanes" if statement.lanes else ""
    yield f"while {statement.variable!r} < {statement.limit!r}, {statement.cost} ns each{over}:"
    yield from _block(statement.body)


def _is_at(statement: s.IsAt) -> Iterator[str]:
    others = " or ".join(map(repr, statement.others))
    how = "is not at" if statement.elsewhere else "is at"
    yield f"{_typed(statement.result)} = {statement.memory!r} {how} {others}"


def _pairs(pairs: Sequence[tuple[Memory, Memory]]) -> str:
    return ", ".join(f"{first!r} <- {second!r}" for first, second in pairs)


Text = Callable[[Any], Iterable[str | Line]]
_TEXT: dict[type, Text] = {
    s.Number: lambda x: [f"{_typed(x.result)} = {x.value}"],
    s.Let: lambda x: [f"{_typed(x.result)} = {_let(x)}"],
    s.Input: lambda x: [f"{_typed(x.result)} = input {x.position}"],
    s.Output: lambda x: [f"output {x.position} = {x.value!r}"],
    s.CallScalar: _call_scalar, s.Declare: _declare,
    s.Get: lambda x: [f"{_typed(x.result)} = {x.variable!r}"],
    s.Set: lambda x: [f"{x.variable!r} = {x.value!r}"],
    s.DefineSize: lambda x: [f"size {x.symbol} = {x.value!r}"],
    s.Load: lambda x: [f"{_typed(x.result)} = load {view_text(x.place)}"],
    s.Store: lambda x: [f"store {view_text(x.place)} = {x.value!r}"],
    s.Copy: lambda x: [f"copy ({view_text(x.target)}) = ({view_text(x.source)})"],
    s.Exchange: lambda x: [f"exchange {_pairs(x.pairs)}"],
    s.Point: lambda x: [f"point {x.alias!r} <- {x.at!r}"],
    s.PointInto: lambda x: [f"point {x.alias!r} <- ({view_text(x.place)}) if {x.condition!r} "
                            f"else {x.orelse!r}"],
    s.IsAt: _is_at,
    s.Nonzero: lambda x: [
        f"{_typed(x.count)} = nonzero ({view_text(x.source)}) into {view_text(x.indices)}"],
    s.RunKernel: _run_kernel, s.CallPython: _call_python,
    s.CanDraw: lambda x: [f"{_typed(x.result)} = can draw {x.number}"],
    s.Draw: lambda x: [_draw(x)], s.DefineFunction: _define_function,
    s.CallFunction: _call_function, s.Check: _check,
    s.CheckIndices: lambda x: [
        f"check each ({view_text(x.indices)}) within {x.size!r} else exit {x.exit}"],
    s.If: _if, s.While: _while, s.CountedLoop: _counted_loop,
    s.Poll: lambda x: [f"poll {x.cost} ns"],
    NodeCall: _node_call,
    Return: lambda x: [f"return {_operands(x.results)}"],
}
