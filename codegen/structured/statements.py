"""The structured IR: a branch or loop of the graph as statements over registers and memory.

`build_program` makes it of a graph (docs/ir.md has the grammar); printers make code of it, one for
each language.  The places of values are settled here: which memory is written, which is copied
first, which arrays change places.  A printer decides how a statement is spelled, and nothing else.

Every register is defined by one statement, which runs before those that read it.  Memory lives
as long as the call.  Statements in a block run in order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from fusec.core.records import Record, dataclass
from fusec.ir.sizes.dims import Size

from ..plan.control_program import HostSite
from .kernel_statements import RunKernel
from .memory import Memory, Operand, Register, Variable, View

if TYPE_CHECKING:
    from fusec.ops.calls.drawings import Drawing

# ----------------------------------------------------------------------------------------- numbers


class Number(Record):
    """``result = value``: a size, a stride or a large constant of the program.

    Code that is shared by calls of several sizes gets it from outside.
    """

    result: Register
    value: Size


class Let(Record):
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


class Input(Record):
    """``result`` = the number that is operand ``position`` of the program."""

    result: Register
    position: int


class Output(Record):
    """Result ``position`` of the program is the number ``value``."""

    position: int
    value: Operand


class CallScalar(Record):
    """``result`` = a function of `fusec.vectorize` on numbers, by its symbol.

    ``holds``: whether it did not raise.  One that may raise leaves its arguments in ``words``.
    """

    result: Register
    holds: Register
    function: str
    args: tuple[Operand, ...]
    words: tuple[int, ...] = ()


class Declare(Record):
    """A variable, or memory, from here on."""

    thing: Variable | Memory


class Get(Record):
    """``result`` = what the variable is now."""

    result: Register
    variable: Variable


class Set(Record):
    """The variable becomes the value."""

    variable: Variable
    value: Operand


class DefineSize(Record):
    """The symbol, which shapes of what follows contain, is the value."""

    symbol: str
    value: Operand


# ------------------------------------------------------------------------------------------ memory


class Load(Record):
    """``result`` = the first element of the view, which has rank 0."""

    result: Register
    place: View


class Store(Record):
    """The first element of the view becomes the value."""

    place: View
    value: Operand


class Copy(Record):
    """``target[...] = source`` of one shape and dtype.

    The two share memory only where both lie in C order: then as ``memmove`` copies.
    """

    target: View
    source: View


class Exchange(Record):
    """The first memory of each pair gets the address that the second one had before, all at once.

    The same memories are first and second ones: what each has is lost by none.
    """

    pairs: tuple[tuple[Memory, Memory], ...]


class Point(Record):
    """The memory gets the address that ``at`` has now."""

    alias: Memory
    at: Memory


class PointInto(Record):
    """The memory gets the address of the view's first element where the condition holds, else the
    address of ``orelse``."""

    alias: Memory
    place: View
    condition: Operand
    orelse: Memory


class IsAt(Record):
    """``result`` = whether the memory's address is that of any of ``others``; or, with
    ``elsewhere``, of none."""

    result: Register
    memory: Memory
    others: tuple[Memory, ...]
    elsewhere: bool = False


class Nonzero(Record):
    """The indices of those elements of ``source`` that are not 0, and ``count``: how many."""

    count: Register
    indices: View
    source: View


# ------------------------------------------------------------------------------------------- calls


class CallPython(Record):
    """Call site ``number`` of the program; ``exit`` where it raises.

    Afterwards the symbols that it defines are sizes of its results, and results that are numbers
    are in registers; arrays are in the views.
    """

    number: int
    site: HostSite
    exit: int
    operands: tuple[Operand | View, ...]
    results: tuple[Register | View, ...]


class CanDraw(Record):
    """``result`` = whether this run knows NumPy's own function for call site ``number``."""

    result: Register
    number: int


class Draw(Record):
    """Call site ``number`` without Python: numbers of NumPy's own function, into a register, or
    into the elements of an array in C order."""

    number: int
    drawing: Drawing
    arguments: tuple[Operand, ...]
    result: Register | View


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


class DefineFunction(Record):
    """The function, before its first call."""

    function: Function


class CallFunction(Record):
    """Call the function; where it leaves early, so does the caller.

    A call from its own body passes its ``own`` parameters only.
    """

    function: Function
    args: tuple[Operand | View, ...]
    results: tuple[Register, ...]


# ----------------------------------------------------------------------------------------- control


class Check(Record):
    """Leave through exit number ``exit`` where the condition is false.

    The exit reports the index, and a size that it does not know itself.
    """

    condition: Operand
    exit: int
    index: Operand
    size: Operand


class CheckIndices(Record):
    """`Check` that each element of an array of indices is within the size."""

    indices: View
    size: Operand
    exit: int


class If(Record):
    """``orelse`` may be missing."""

    condition: Operand
    then: Block
    orelse: Block | None = None


class LaneRange(Record):
    """Of a loop over lanes: it runs while the variable, which its body raises by one, is below the
    limit."""

    variable: Variable
    limit: Operand


class While(Record):
    """``test``, then ``body``, again and again, until the condition is false after a test.

    ``lanes``: its iterations may run in any order, together, and again, for each writes what no
    other one reads.
    """

    test: Block
    condition: Operand
    body: Block
    lanes: LaneRange | None = None


class CountedLoop(Record):
    """``body`` while the variable, to which it adds one, is below the limit.

    It carries numbers only, so iterations may be computed together.  It polls by itself, ``cost``
    ns of work an iteration.  ``lanes``: as of `While`.
    """

    variable: Variable
    limit: Operand
    cost: int
    body: Block
    lanes: bool = False


class Poll(Record):
    """Between two iterations: count ``cost`` ns of work, let signals be handled when many are
    spent, and leave if a handler raised."""

    cost: int


Statement = (
    Number | Let | Input | Output | CallScalar | Declare | Get | Set | DefineSize | Load | Store
    | Copy | Exchange | Point | PointInto | IsAt | Nonzero | RunKernel | CallPython
    | CanDraw | Draw | DefineFunction | CallFunction | Check | CheckIndices | If | While
    | CountedLoop | Poll)
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


def walk(block: Block) -> Iterator[Any]:
    """Every statement, those inside of others included."""
    for statement in block:
        yield statement
        for inner in blocks_of(statement):
            yield from walk(inner)
