"""The structured IR: a branch or loop of the graph as statements over registers and memory.

`build_program` makes it of a graph (docs/ir.md has the grammar); printers make code of it, one for
each language.  What lies where is settled here: which memory is written, what is copied first,
which arrays change places.  A printer decides how a statement is spelled, and nothing else.

Every register is defined by one statement, which runs before those that read it.  Memory lives
as long as the call.  Statements in a block run in order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fusec.codegen.control_program import HostSite
from fusec.codegen.loop_ir import Kernel, Param
from fusec.codegen.specialise import LoopForm
from fusec.ir.dims import Size
from fusec.records import dataclass

from .memory import Memory, Operand, Register, Variable, View

# ----------------------------------------------------------------------------------------- numbers


@dataclass(frozen=True, slots=True)
class Number:
    """``result = value``: a size, a stride or a large constant of the program.

    Code that is shared by calls of several sizes gets it from outside.
    """

    result: Register
    value: Size


@dataclass(frozen=True, slots=True)
class Let:
    """``result = op(args)``: a scalar op of the loop IR, or one of these.

    ``wrap_index(i, n)``: a negative ``i`` counts from the end.  ``in_range(i, n)``: 0 <= i < n.
    ``quotient(a, b)`` of a >= 0 and b > 0.  ``smallest`` and ``largest`` of two int64.
    ``part(z)`` (number ``attr``) and ``complex(re, im)`` take complex numbers apart and put them
    together.
    """

    result: Register
    op: str
    args: tuple[Operand, ...]
    attr: int = 0


@dataclass(frozen=True, slots=True)
class Input:
    """``result`` = the number that is operand ``position`` of the program."""

    result: Register
    position: int


@dataclass(frozen=True, slots=True)
class Output:
    """Result ``position`` of the program is the number ``value``."""

    position: int
    value: Operand


@dataclass(frozen=True, slots=True)
class CallScalar:
    """``result`` = a function of `fusec.vectorize` on numbers, by its symbol.

    ``holds``: whether it did not raise.  One that may raise leaves its arguments in ``words``.
    """

    result: Register
    holds: Register
    function: str
    args: tuple[Operand, ...]
    words: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Declare:
    """A variable, or memory, from here on."""

    thing: Variable | Memory


@dataclass(frozen=True, slots=True)
class Get:
    """``result`` = what the variable is now."""

    result: Register
    variable: Variable


@dataclass(frozen=True, slots=True)
class Set:
    """The variable becomes the value."""

    variable: Variable
    value: Operand


@dataclass(frozen=True, slots=True)
class DefineSize:
    """The symbol, which shapes of what follows contain, is the value."""

    symbol: str
    value: Operand


# ------------------------------------------------------------------------------------------ memory


@dataclass(frozen=True, slots=True)
class Load:
    """``result`` = the first element of the view, which has rank 0."""

    result: Register
    place: View


@dataclass(frozen=True, slots=True)
class Store:
    """The first element of the view becomes the value."""

    place: View
    value: Operand


@dataclass(frozen=True, slots=True)
class Copy:
    """``target[...] = source`` of one shape and dtype.

    The two share memory only where both lie in C order: then as ``memmove`` copies.
    """

    target: View
    source: View


@dataclass(frozen=True, slots=True)
class Exchange:
    """The first memory of each pair gets the address that the second one had before, all at once.

    The same memories are first and second ones: what each has is lost by none.
    """

    pairs: tuple[tuple[Memory, Memory], ...]


@dataclass(frozen=True, slots=True)
class Point:
    """The alias gets the address that ``at`` has now."""

    alias: Memory
    at: Memory


@dataclass(frozen=True, slots=True)
class IsAt:
    """``result`` = whether the memory's address is that of any of ``others``; or, with
    ``elsewhere``, of none."""

    result: Register
    memory: Memory
    others: tuple[Memory, ...]
    elsewhere: bool = False


@dataclass(frozen=True, slots=True)
class Nonzero:
    """The indices of those elements of ``source`` that are not 0, and ``count``: how many."""

    count: Register
    indices: View
    source: View


# ------------------------------------------------------------------------------------------- calls


@dataclass(frozen=True)
class NestUse:
    """A nest of a kernel for operands of known strides; ``exit``: of its checks, -1: it has none.

    ``largest`` is the form at the upper bounds of its sizes: as much memory as it may need.
    """

    form: LoopForm
    largest: LoopForm
    params: tuple[Param, ...]
    exit: int = -1


@dataclass(frozen=True, slots=True)
class RunKernel:
    """The nests of a kernel, one after the other.

    Its buffers are ``operands``, then ``results``: arrays that it writes, and numbers.
    """

    kernel: Kernel
    nests: tuple[NestUse, ...]
    operands: tuple[Operand | View, ...]
    results: tuple[Register | View, ...]


@dataclass(frozen=True, slots=True)
class CallPython:
    """Call site ``number`` of the program; ``exit`` where it raises.

    Afterwards the symbols that it defines are sizes of its results, and results that are numbers
    are in registers; arrays are in the views.
    """

    number: int
    site: HostSite
    exit: int
    operands: tuple[Operand | View, ...]
    results: tuple[Register | View, ...]


@dataclass(eq=False)
class Function:
    """A function that calls itself.  Parameters from ``own`` on are the same in all its calls."""

    number: int
    parameters: tuple[Register | View, ...]
    own: int
    types: tuple[np.dtype, ...]
    too_deep: int  # the exit where Python's limit, or the stack, ends it
    body: Block = ()
    results: tuple[Operand, ...] = ()

    def __repr__(self) -> str:
        return f"f{self.number}"


@dataclass(frozen=True, slots=True)
class DefineFunction:
    """The function, before its first call."""

    function: Function


@dataclass(frozen=True, slots=True)
class CallFunction:
    """Call the function; where it leaves early, so does the caller.

    A call from its own body passes its ``own`` parameters only.
    """

    function: Function
    args: tuple[Operand | View, ...]
    results: tuple[Register, ...]


# ----------------------------------------------------------------------------------------- control


@dataclass(frozen=True, slots=True)
class Check:
    """Leave through exit number ``exit`` where the condition is false.

    The exit reports the index, and a size that it does not know itself.
    """

    condition: Operand
    exit: int
    index: Operand
    size: Operand


@dataclass(frozen=True, slots=True)
class CheckIndices:
    """`Check` that each element of an array of indices is within the size."""

    indices: View
    size: Operand
    exit: int


@dataclass(frozen=True, slots=True)
class If:
    """``orelse`` may be missing."""

    condition: Operand
    then: Block
    orelse: Block | None = None


@dataclass(frozen=True, slots=True)
class While:
    """``test``, then ``body``, again and again, until the condition is false after a test."""

    test: Block
    condition: Operand
    body: Block


@dataclass(frozen=True, slots=True)
class CountedLoop:
    """``body`` while the variable, to which it adds one, is below the limit.

    It carries numbers only, so iterations may be computed together.  It polls by itself, ``cost``
    ns of work an iteration.
    """

    variable: Variable
    limit: Operand
    cost: int
    body: Block


@dataclass(frozen=True, slots=True)
class Poll:
    """Between two iterations: count ``cost`` ns of work, let signals be handled when many are
    spent, and leave if a handler raised."""

    cost: int


Statement = (
    Number | Let | Input | Output | CallScalar | Declare | Get | Set | DefineSize | Load | Store
    | Copy | Exchange | Point | IsAt | Nonzero | RunKernel | CallPython | DefineFunction
    | CallFunction | Check | CheckIndices | If | While | CountedLoop | Poll)
Block = tuple[Any, ...]  # of statements


def blocks_of(statement: Any) -> list[Block]:
    """The blocks inside of a statement."""
    match statement:
        case If(then=then, orelse=orelse):
            return [then] if orelse is None else [then, orelse]
        case While(test=test, body=body):
            return [test, body]
        case CountedLoop(body=body):
            return [body]
        case DefineFunction(function=function):
            return [function.body]
    return []
