"""Calls of Python from a native loop.

The function stores the operands, or the addresses of arrays, in words of its argument block.  Then
it takes the interpreter's lock back and calls a callback, whose address is in another word.
Results come back in words too.
"""

from __future__ import annotations

from fusec.codegen.structured.memory import Constant, Register, View
from fusec.codegen.structured.statements import CallPython
from fusec.ir.sizes.dims import Dim

from ...plan.control_program import HostValue
from .frame import Frame
from .polls import call_python


def call(frame: Frame, statement: CallPython) -> None:
    """Pass the operands, call, and load the results."""
    site = statement.site
    for word, operand in zip(site.operands, statement.operands, strict=True):
        _pass(frame, word, operand)
    for word, result in zip(site.results, statement.results, strict=True):
        if isinstance(result, View):
            _pass(frame, word, result)
        else:
            frame.host_word(word.word, result.dtype)
    frame.fail_unless(call_python(frame, statement.number), statement.exit)
    for word, result in zip(site.results, statement.results, strict=True):
        _define(frame, word)
        if isinstance(result, Register):
            place = frame.word_address("host", word.word)
            frame.values[result] = frame.em.load(place, result.dtype, 1)


def _pass(frame: Frame, word: HostValue, operand: Register | Constant | View) -> None:
    """A number, or the address and sizes of an array."""
    if not isinstance(operand, View):
        frame.em.store(frame.host_word(word.word, operand.dtype), frame.operand(operand))
        return
    at = frame.host_word(word.word)
    frame.em.line(f"store ptr {frame.address(operand)}, ptr {at}")
    for size in word.sizes:
        at = frame.host_word(size.word)
        if not size.defines:
            frame.em.line(f"store i64 {frame.number(operand.shape[size.axis])}, ptr {at}")


def _define(frame: Frame, result: HostValue) -> None:
    """Set the symbols whose values are sizes of this result."""
    for size in result.sizes:
        if size.defines:
            dim = result.type.shape[size.axis]
            assert isinstance(dim, Dim) and dim.name is not None
            number = frame.em.value(f"load i64, ptr {frame.word_address('host', size.word)}", "n")
            frame.define(dim.name, number)
