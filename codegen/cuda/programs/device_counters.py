"""Numbers of the host's that kernels read in each iteration, such as a counter: computed on both.

To copy one to the device costs a wait in line and ends the sequence of launches; to add one to it
there is one more launch in the sequence.  So a second variable goes with the host's, and scalar ops
of which it follows are done twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fusec.codegen.structured import statements as s
from fusec.codegen.structured.memory import Operand, Register, Variable
from fusec.codegen.structured.statements import walk

from .host_numbers import is_of_structure
from .residence import Residence


def with_device_counters(
    body: s.Block,
) -> tuple[s.Block, frozenset[Variable], Mapping[int, Any]]:
    """The statements with such numbers on the device, their variables there, and the statement that
    each new one stands for, by the id of that."""
    twins = _Twins(body)
    if not twins.registers:
        return body, frozenset(), {}
    return twins.block(body), frozenset(twins.variables.values()), twins.stands_for


class _Twins:
    """``registers`` and ``variables`` of the host's, each with its twin on the device."""

    def __init__(self, body: s.Block) -> None:
        statements = [*walk(body)]
        self._residence = Residence(body)
        self._sets: dict[Variable, list[Operand]] = {}
        self._definitions: dict[Register, Any] = {}
        for x in statements:
            if isinstance(x, s.Set):
                self._sets.setdefault(x.variable, []).append(x.value)
            elif isinstance(x, (s.Let, s.Get, s.Number, s.Input)):
                self._definitions[x.result] = x
        self.stands_for: dict[int, Any] = {}
        self._count = 1 + max((r.number for r in self._definitions), default=0)
        self.registers: dict[Register, Register] = {}
        self.variables: dict[Variable, Variable] = {}
        for register in self._read_by_kernels(statements):
            self._note(register)

    def _read_by_kernels(self, statements: Iterable[Any]) -> list[Register]:
        """The host's numbers that kernels are given."""
        operands: list[Any] = []
        for x in statements:
            if isinstance(x, s.RunKernel):
                operands += x.operands
            elif isinstance(x, s.CallScalar) or self._residence.is_kernel(x):
                operands += x.args
        return [r for r in operands if isinstance(r, Register)
                and not self._residence.is_there(r)]

    def _note(self, register: Register) -> None:
        """Twins of a register, and of all that it follows from, if loops change that."""
        needed = {} if register in self.registers else self._needed(register)
        if any(isinstance(thing, Variable) for thing in needed):
            for thing in needed:
                if isinstance(thing, Variable):
                    self.variables.setdefault(thing, Variable(self._next(), thing.dtype))
                elif not isinstance(self._definitions[thing], (s.Number, s.Input)):
                    self.registers.setdefault(thing, Register(self._next(), thing.dtype))

    def _next(self) -> int:
        self._count += 1
        return self._count

    def _needed(self, register: Register) -> dict[Any, None]:
        """The registers and variables that it follows from, where a device can compute all."""
        needed: dict[Any, None] = {}
        waiting: list[Any] = [register]
        while waiting:
            thing = waiting.pop()
            if isinstance(thing, (Register, Variable)) and thing not in needed:
                sources = self._sources(thing)
                if sources is None:
                    return {}
                needed[thing] = None
                waiting += sources
        return needed

    def _sources(self, thing: Register | Variable) -> Sequence[Any] | None:
        """The operands that a number follows from; None: the host's alone."""
        if isinstance(thing, Variable):
            return self._sets.get(thing, ())
        match self._definitions.get(thing):
            case s.Get(variable=variable):
                return [variable]
            case s.Let(args=args) as let:
                return None if is_of_structure(let) else args
            case None:
                return None
        return ()

    # -- the statements

    def block(self, block: s.Block) -> s.Block:
        made = [(new, x) for x in block for new in self._made(x)]
        self.stands_for.update((id(new), x) for new, x in made if new is not x)
        return tuple(new for new, _ in made)

    def _made(self, x: Any) -> list[Any]:
        """A statement, and what goes with it on the device."""
        match x:
            case s.Declare(thing=Variable() as variable) if variable in self.variables:
                return [x, s.Declare(self.variables[variable])]
            case s.Set(variable=variable, value=value) if variable in self.variables:
                return [x, s.Set(self.variables[variable], self._there(value))]
            case s.Get(result=result, variable=variable) if result in self.registers:
                return [x, s.Get(self.registers[result], self.variables[variable])]
            case s.Let(result=result) if result in self.registers:
                return [x, s.Let(self.registers[result], x.op, self._all_there(x.args), x.attr)]
        return [self._changed(x)]

    def _changed(self, x: Any) -> Any:
        match x:
            case s.RunKernel():
                return s.RunKernel(x.kernel, x.nests, self._all_there(x.operands), x.results)
            case s.CallScalar():
                return s.CallScalar(x.result, x.holds, x.function, self._all_there(x.args), x.words)
            case s.Let() if self._residence.is_kernel(x):
                return s.Let(x.result, x.op, self._all_there(x.args), x.attr)
            case s.If():
                return s.If(x.condition, self.block(x.then), None if x.orelse is None else (
                    self.block(x.orelse)))
            case s.While():
                return s.While(self.block(x.test), x.condition, self.block(x.body))
            case s.CountedLoop():
                return s.CountedLoop(x.variable, x.limit, x.cost, self.block(x.body))
        return x

    def _there(self, x: Any) -> Any:
        return self.registers.get(x, x) if isinstance(x, Register) else x

    def _all_there(self, operands: Iterable[Any]) -> tuple[Any, ...]:
        return tuple(map(self._there, operands))
