"""Builds the statements of one function, and says what does not fit into them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from fusec.codegen.structured.not_native import NotNativeError
from fusec.core.records import dataclass, field
from fusec.ir import Node
from fusec.ir.sizes.dims import Dim, Size, is_at_least, symbols_of
from fusec.ir.sizes.polynomials import Call
from fusec.ir.sizes.symbolic_numbers import Symbolic
from fusec.ops.rows.windows import UNLIMITED
from fusec.passes.pipeline import BodyPasses

from ..kernels.loop_ir import Expr
from ..plan.control_program import ErrorExit, HostSite
from .analyses.bounds import ROOM, bound_of, guessed
from .calls.call_statements import NodeCall
from .memory import (
    BOOL,
    I64,
    ZERO,
    Constant,
    Memory,
    Operand,
    Origin,
    Register,
    Variable,
    View,
    contiguous,
    is_zero,
)
from .statements import (
    Check,
    Copy,
    Declare,
    DefineSize,
    Function,
    Get,
    Let,
    Load,
    Number,
    Set,
    Statement,
    Store,
)

# By the id of a statement the node that it is of, and the expression of the node's kernel, if any.
Origins = dict[int, tuple[Node, "Expr | None"]]
MAX_CONSTANT = 3  # integers of the program beyond it are not part of the code


@dataclass
class Shared:
    """What all functions of a program have in common."""

    exits: list[ErrorExit] = field(default_factory=list)
    sites: list[HostSite] = field(default_factory=list)
    limits: dict[str, int] = field(default_factory=dict)  # by symbol, its upper bound
    outer: frozenset[str] = frozenset()  # symbols that are defined before the loop
    guessed: set[str] = field(default_factory=set)  # symbols whose upper bounds are guesses
    repeats: bool = False  # whether all may run again, step by step, where a guess was too small
    counts: dict[str, int] = field(default_factory=dict)
    passes: list[BodyPasses] = field(default_factory=list)  # of each sub-graph, in their order
    origins: Origins | None = None  # None where nobody asks
    node: Node | None = None  # that statements are added for now
    expression: Expr | None = None  # the one of its kernel, where that is known

    def note(self, statement: Any) -> None:
        """A statement was added."""
        if self.origins is not None and self.node is not None:
            self.origins[id(statement)] = self.node, self.expression

    def count(self, kind: str) -> int:
        """The number of the next register, variable, memory, ``host`` word."""
        number = self.counts.get(kind, 0)
        self.counts[kind] = number + 1
        return number


@dataclass
class Builder:
    """The statements of one function, so far, and the sizes that they define.

    ``function``: the one that calls itself, None for the program's own; ``called``: the name by
    which its graph calls it.
    """

    shared: Shared
    function: Function | None = None
    called: str = ""
    statements: list[Statement | NodeCall] = field(default_factory=list)
    sizes: set[str] = field(default_factory=set)

    @property
    def limits(self) -> dict[str, int]:
        return self.shared.limits

    def add(self, statement: Statement | NodeCall) -> None:
        self.statements.append(statement)
        self.shared.note(statement)

    @contextmanager
    def block(self) -> Iterator[list[Statement | NodeCall]]:
        """What is added inside goes into a block of its own."""
        before, self.statements = self.statements, []
        try:
            yield self.statements
        finally:
            self.statements = before

    # -- numbers

    def register(self, dtype: np.dtype) -> Register:
        return Register(self.shared.count("register"), dtype)

    def let(self, op: str, dtype: np.dtype, *args: Operand, attr: int = 0) -> Register:
        """The register of a scalar op's result."""
        result = self.register(dtype)
        self.add(Let(result, op, args, attr))
        return result

    def constant(self, dtype: np.dtype, value: Any) -> Operand:
        """A constant of the program.  Large integers are mostly sizes: the code does not depend on
        them."""
        if type(value) is Symbolic and dtype == I64:
            return self._number(value + 0)  # as an int
        if dtype == I64 and abs(int(value)) > MAX_CONSTANT:
            return self._number(int(value))
        return Constant(value, dtype)

    def number(self, value: Size) -> Operand:
        """A size: 0 and 1 are part of the code, others are not."""
        if isinstance(value, Dim):
            self.require(value)
            return self._number(value)
        return Constant(value, I64) if value in (0, 1) else self._number(value)

    def stride(self, value: int | Register, dtype: np.dtype) -> Operand:
        """A byte stride: 0 and the item size are part of the code, run-time strides are in
        registers already."""
        if isinstance(value, Register):
            return value
        return Constant(value, I64) if value in (0, dtype.itemsize) else self._number(value)

    def _number(self, value: Size) -> Register:
        result = self.register(I64)
        self.add(Number(result, value))
        return result

    def moved(self, offset: Operand, index: Operand, stride: Operand) -> Operand:
        """A byte offset moved by ``index`` strides."""
        if is_zero(stride) or is_zero(index):
            return offset
        return self.further(offset, self.let("mul", I64, index, stride))

    def further(self, offset: Operand, more: Operand) -> Operand:
        """A byte offset moved by so many bytes."""
        return more if is_zero(offset) else self.let("add", I64, offset, more)

    # -- sizes

    def require(self, *sizes: Size) -> None:
        """Raise `NotNativeError` for sizes that the code cannot compute."""
        for size in sizes:
            if isinstance(size, Dim):
                self._require(size)

    def _require(self, size: Dim) -> None:
        for name in sorted(size.symbols):
            if name not in self.shared.outer and name not in self.sizes:
                raise NotNativeError(f"the size {name}, which is defined outside of it")
        for monomial, _ in size.terms:
            for atom in monomial:
                if isinstance(atom, Call):
                    self._require_call(atom)

    def _require_call(self, call: Call) -> None:
        if call.function not in ("min", "max") and not is_at_least(call.right, 1):
            raise NotNativeError(f"a size with a division, {call}")
        self.require(call.left, call.right)

    def define(self, symbol: str, value: Operand, limit: Size) -> None:
        """Set the value of a run-time symbol, and its upper bound."""
        self.note_size(symbol, limit)
        self.add(DefineSize(symbol, value))

    def note_size(self, symbol: str, limit: Size) -> None:
        """The symbol is defined from here on; its upper bound."""
        self.sizes.add(symbol)
        bound = bound_of(limit, self.limits)
        if bound < UNLIMITED:
            self.limits[symbol] = bound

    def guess(self, shape: Sequence[Size], room: int = ROOM) -> bool:
        """Whether all symbols of the shape have upper bounds, guesses where nothing gives one."""
        found = guessed(shape, self.limits, room) if self.shared.repeats else {}
        self.limits.update(found)
        self.shared.guessed.update(found)
        return symbols_of(tuple(shape)) <= self.limits.keys()

    def is_outer(self, size: Size) -> bool:
        """Whether the size is known when the call begins, and nothing bounds it before."""
        return isinstance(size, Dim) and size.symbols <= self.shared.outer and not (
            size.symbols <= self.limits.keys())

    # -- variables

    def variable(self, dtype: np.dtype) -> Variable:
        variable = Variable(self.shared.count("variable"), dtype)
        self.add(Declare(variable))
        return variable

    def get(self, variable: Variable) -> Register:
        result = self.register(variable.dtype)
        self.add(Get(result, variable))
        return result

    def set(self, variable: Variable, value: Operand) -> None:
        self.add(Set(variable, value))

    # -- memory

    def memory(
        self, nbytes: Size, dtype: np.dtype, origin: Origin, position: int = 0, left: int = -1
    ) -> Memory:
        """Memory of that origin, from here on."""
        memory = Memory(self.shared.count("memory"), nbytes, dtype, origin, position, left)
        self.add(Declare(memory))
        return memory

    def temporary(
        self, shape: Sequence[int], dtype: np.dtype, origin: Origin = "temp"
    ) -> View:
        """Fresh memory that lives as long as the call; run-time sizes count as their bounds, or, in
        the first axis, as what they are when the call begins."""
        if self.function is not None:
            raise NotNativeError("a function that calls itself and computes arrays")
        first = tuple(size if self.is_outer(size) else bound_of(size, self.limits)
                      for size in shape[:1])
        most = (*first, *(bound_of(size, self.limits) for size in shape[1:]))
        memory = self.memory(math.prod(most) * dtype.itemsize, dtype, origin)
        return View(memory, tuple(shape), contiguous(most, dtype.itemsize), dtype)

    def load(self, view: View) -> Register:
        """The first element of a view."""
        result = self.register(view.dtype)
        self.add(Load(result, _element(view)))
        return result

    def store(self, view: View, value: Operand) -> None:
        self.add(Store(_element(view), value))

    def copy(self, target: View, source: View) -> None:
        """Copy an array to one of the same shape; the two may share memory."""
        if target.memory is source.memory and not (target.is_dense and source.is_dense):
            # A store might overwrite an element that is not yet read.
            temporary = self.temporary(source.shape, source.dtype)
            self.copy(temporary, source)
            self.copy(target, temporary)
            return
        self.require(*target.shape)
        self.add(Copy(target, source))

    # -- exits

    def exit(self, exit_: ErrorExit) -> int:
        """The number of a new early exit."""
        self.shared.exits.append(exit_)
        return len(self.shared.exits) - 1

    def check(
        self, condition: Operand, exit_: ErrorExit, index: Operand = ZERO, size: Operand = ZERO
    ) -> None:
        """Leave through the exit where the condition is false."""
        if isinstance(exit_.size, Dim):
            self.require(exit_.size)
        self.add(Check(condition, self.exit(exit_), index, size))

    def in_range(self, index: Operand, size: Operand) -> Register:
        return self.let("in_range", BOOL, index, size)

    def wrapped(self, index: Operand, size: Operand) -> Register:
        """The index; a negative one counts from the end."""
        return self.let("wrap_index", I64, index, size)


def _element(view: View) -> View:
    return View(view.memory, (), (), view.dtype, view.offset, view.element)
