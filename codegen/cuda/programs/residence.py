"""The numbers of a program that are on the device: results of kernels, and whatever follows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from fusec.codegen.structured import statements as s
from fusec.codegen.structured.memory import Register, Variable

from .host_numbers import is_exact, is_of_structure


def walk(block: s.Block) -> Iterator[Any]:
    """Every statement, those inside of others included."""
    for statement in block:
        yield statement
        for inner in s.blocks_of(statement):
            yield from walk(inner)


class Residence:
    """The registers and variables that may be on the device.

    A scalar op is a kernel where an operand is there, so that nobody waits for it, or where only
    kernels have its bits.
    """

    def __init__(self, body: s.Block) -> None:
        self._there: set[Register | Variable] = set()
        statements = [*walk(body)]
        before = -1
        while before != len(self._there):  # what a loop carries is read before it is set
            before = len(self._there)
            for statement in statements:
                self._there.update(self._defined_there(statement))

    def is_there(self, thing: Any) -> bool:
        """Whether a number may be on the device when it is read."""
        return thing in self._there

    def is_kernel(self, x: Any) -> bool:
        """Whether a statement is a scalar op on the device."""
        return isinstance(x, s.Let) and not is_of_structure(x) and (
            not is_exact(x) or any(map(self.is_there, x.args)))

    def _defined_there(self, x: Any) -> Iterable[Register | Variable]:
        if isinstance(x, s.RunKernel):
            return [r for r in x.results if isinstance(r, Register)]
        if isinstance(x, (s.Load, s.CallScalar)) or self.is_kernel(x):
            return [x.result]
        if isinstance(x, s.Get) and self.is_there(x.variable):
            return [x.result]
        return [x.variable] if isinstance(x, s.Set) and self.is_there(x.value) else []


def reads(statement: Any) -> Iterator[Register]:
    """The registers that a statement names, but for those that are one op's result."""
    for name in statement.__match_args__:
        if not (isinstance(statement, s.Let) and name == "result"):
            yield from _registers(getattr(statement, name))


def _registers(x: Any) -> Iterator[Register]:
    if isinstance(x, Register):
        yield x
    elif isinstance(x, s.View):
        yield from _registers((x.offset, x.element, *x.strides))
    elif isinstance(x, tuple):
        for item in x:
            yield from _registers(item)
