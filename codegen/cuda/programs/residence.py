"""The numbers of a program that are on the device: results of kernels, and whatever follows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from fusec.codegen.structured import statements as s
from fusec.codegen.structured.memory import Register, Variable
from fusec.codegen.structured.statements import walk

from .host_numbers import is_exact, is_of_structure


class Residence:
    """The registers and variables that may be on the device.

    A scalar op is a kernel where an operand is there, so that nobody waits for it, or where only
    kernels have its bits and the host does not ask for it.
    """

    def __init__(self, body: s.Block, there: Collection[Variable] = ()) -> None:
        """``there``: variables that are on the device whatever they are set to."""
        self._there: set[Register | Variable] = set(there)
        statements = [*walk(body)]
        self._asked = _asked_for(statements)
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
            any(map(self.is_there, x.args)) or not (is_exact(x) or x.result in self._asked))

    def _defined_there(self, x: Any) -> Iterable[Register | Variable]:
        if isinstance(x, s.RunKernel):
            return [r for r in x.results if isinstance(r, Register)]
        if isinstance(x, (s.Load, s.CallScalar)) or self.is_kernel(x):
            return [x.result]
        if isinstance(x, s.Get) and self.is_there(x.variable):
            return [x.result]
        return [x.variable] if isinstance(x, s.Set) and self.is_there(x.value) else []


def _asked_for(statements: Sequence[Any]) -> set[Any]:
    """The numbers that the host goes by, in conditions, indices and sizes, and those that these
    follow from."""
    definitions = {x.result: x for x in statements if isinstance(x, (s.Let, s.Get))}
    sets: dict[Variable, list[Any]] = {}
    for x in statements:
        if isinstance(x, s.Set):
            sets.setdefault(x.variable, []).append(x.value)
    waiting = [r for x in statements for r in _goes_by(x)]
    asked: set[Any] = set()
    while waiting:
        thing = waiting.pop()
        if thing not in asked:
            asked.add(thing)
            x = definitions.get(thing)
            waiting += sets.get(thing, ()) if isinstance(thing, Variable) else (
                x.args if isinstance(x, s.Let) else [x.variable] if isinstance(x, s.Get) else [])
    return asked


def _goes_by(x: Any) -> Iterator[Any]:
    """The numbers of a statement that the host needs itself."""
    if isinstance(x, s.Check):
        yield from (x.condition, x.index, x.size)
    elif isinstance(x, (s.If, s.While, s.PointInto)):
        yield x.condition
    elif isinstance(x, s.CountedLoop):
        yield from (x.variable, x.limit)
    elif isinstance(x, s.DefineSize):
        yield x.value
    for name in x.__match_args__:
        yield from _places(getattr(x, name))


def _places(x: Any) -> Iterator[Register]:
    """The registers that views in a statement lie at."""
    if isinstance(x, s.View):
        yield from _registers(x)
    elif isinstance(x, tuple) and not (x and hasattr(x[0], "__match_args__")):
        for item in x:
            yield from _places(item)


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
