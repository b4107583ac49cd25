"""The reference interpreter of structured programs: one statement after the other, through NumPy.

It defines the meaning of statements.  Scalar ops and kernels are those of the interpreter of the
loop IR; views are arrays at addresses, so exchanges and aliases are those of a machine.  Every
access is checked to lie within some memory of the call, and fresh memory holds garbage.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fusec.codegen.structured.not_native import NotNativeError
from fusec.errors import InternalError
from fusec.ir import Node
from fusec.ir.regions import byte_extent
from fusec.ir.sizes.bindings import resolve
from fusec.ir.sizes.dims import Dim
from fusec.ops.complex_parts import component

from ..kernels.complex_pairs import as_pairs
from ..kernels.reference import apply, run_kernel
from ..plan.control_program import ControlCode, EarlyExit, ErrorExit
from . import statements as s
from .kernel_statements import NestUse
from .memory import I64, Constant, Memory, Register, Strides, Variable, View
from .program import build_program

GARBAGE = 0xA5  # the bytes of fresh memory


def interpreted(node: Node, strides: Sequence[Strides]) -> ControlCode:
    """The node as a function that interprets it; raises `NotNativeError` for calls of Python, of
    functions that call themselves and of compiled functions, and for kernels that check."""
    program = build_program(node, strides)
    if program.may_outgrow:
        raise NotNativeError("a result of any size in the interpreter of statements")
    nests = _admitted(program.body)

    def code(
        operands: Sequence[Any], results: list[Any], sizes: Mapping[str, int]
    ) -> EarlyExit | None:
        return Interpretation(node.name, program.exits, operands, results, sizes).run(program.body)

    return ControlCode(node, code, nests, program.copied, {},
                       lambda: build_program(node, strides))


def _admitted(block: s.Block) -> list[NestUse]:
    """The nests that the statements run, if all of them can be interpreted."""
    found: list[NestUse] = []
    for statement in block:
        if type(statement) not in RUN:
            raise NotNativeError(f"{type(statement).__name__} in the interpreter of statements")
        if isinstance(statement, s.RunKernel):
            found += statement.nests
            if any(nest.exit >= 0 for nest in statement.nests):
                raise NotNativeError("a kernel that checks in the interpreter of statements")
        for inner in s.blocks_of(statement):
            found += _admitted(inner)
    return found


class _LeftError(Exception):
    """An exit is taken."""

    def __init__(self, exit_: int, index: int, size: int) -> None:
        self.exit, self.index, self.size = exit_, index, size


class _Place:
    """Memory at an address, as NumPy takes it over."""

    def __init__(
        self, address: int, shape: Sequence[int], strides: Sequence[int], dtype: np.dtype
    ) -> None:
        self.__array_interface__ = {
            "data": (address, False), "shape": tuple(shape), "strides": tuple(strides),
            "typestr": dtype.str, "version": 3}


def array_at(
    address: int, shape: Sequence[int], strides: Sequence[int], dtype: np.dtype
) -> np.ndarray:
    """The array at an address, which may be one of a device: no element is read."""
    lying: Any = _Place(address, shape, strides, dtype)
    return np.asarray(lying)


class Interpretation:
    """One call of a program of that name, with these exits; ``rules`` say what statements do."""

    def __init__(
        self, name: str, exits: Sequence[ErrorExit], operands: Sequence[Any], results: list[Any],
        sizes: Mapping[str, int], rules: Mapping[type, Rule] | None = None,
    ) -> None:
        self.name, self.exits, self.operands, self.results = name, exits, operands, results
        self.rules = RUN if rules is None else rules
        self.symbols = dict(sizes)
        self.values: dict[Register, Any] = {}
        self.variables: dict[Variable, Any] = {}
        self.addresses: dict[Memory, int] = {}
        self.fresh: list[np.ndarray] = []  # what memory is made of
        self.spans: list[tuple[int, int]] = []  # first and last address of all memory
        self.left: dict[int, Memory] = {}

    def run(self, body: s.Block) -> EarlyExit | None:
        try:
            with np.errstate(all="ignore"):
                self.block(body)
        except _LeftError as left:
            self._settle()
            return EarlyExit(self.exits[left.exit], left.index, left.size)
        return None

    def _settle(self) -> None:
        """Put what an unfinished loop has computed where it belongs."""
        moved = {}
        for number, memory in self.left.items():
            array = self.results[number]
            if self.addresses[memory] != array.ctypes.data:
                moved[number] = np.array(array_at(
                    self.addresses[memory], array.shape, array.strides, array.dtype))
        for number, contents in moved.items():
            self.results[number][...] = contents

    def block(self, block: s.Block) -> None:
        for statement in block:
            self.rules[type(statement)](self, statement)

    # -- operands

    def value(self, operand: Register | Constant) -> Any:
        if isinstance(operand, Register):
            return self.values[operand]
        return np.array(operand.value, operand.dtype)[()]

    def number(self, operand: Register | Constant) -> int:
        return int(self.value(operand))

    def put(self, register: Register, value: Any) -> None:
        self.values[register] = np.asarray(value, register.dtype)[()]

    def size(self, size: Any) -> int:
        return int(resolve(size, self.symbols)) if isinstance(size, Dim) else int(size)

    def array(self, view: View) -> np.ndarray:
        """The view as an array on its memory."""
        address = self.addresses[view.memory] + self.number(view.offset) + (
            self.number(view.element) * view.dtype.itemsize)
        shape = [self.size(n) for n in view.shape]
        strides = [self.number(x) if isinstance(x, Register) else self.size(x)
                   for x in view.strides]
        self._check(address, shape, strides, view)
        return array_at(address, shape, strides, view.dtype)

    def _check(
        self, address: int, shape: Sequence[int], strides: Sequence[int], view: View
    ) -> None:
        if 0 in shape:
            return
        low, high = (address + n for n in byte_extent(shape, strides, view.dtype.itemsize))
        if not any(first <= low and high <= last for first, last in self.spans):
            raise InternalError(f"{self.name}: a view of {view.memory} reaches beyond "
                                "its memory")

    def leave_unless(self, holds: Any, exit_: int, index: int, size: int) -> None:
        if not holds:
            given = self.exits[exit_].size
            raise _LeftError(exit_, index, self.size(given) if isinstance(given, Dim) else size)

    # -- memory

    def declare(self, memory: Memory) -> None:
        """Memory that a loop declares again keeps the address that it has by then."""
        if memory.left >= 0:
            self.left[memory.left] = memory
        if memory not in self.addresses:
            self.addresses[memory] = self._made(memory)

    def _made(self, memory: Memory) -> int:
        if memory.origin == "alias":
            return 0
        if memory.origin in ("operand", "target"):
            of = self.operands if memory.origin == "operand" else self.results
            array = of[memory.position]
        else:
            size = max(self.size(memory.nbytes), 1)
            array = np.full(size, 0 if memory.origin == "zeros" else GARBAGE, np.uint8)
            self.fresh.append(array)
        self.spans.append(np.lib.array_utils.byte_bounds(array))
        return int(array.ctypes.data)


# ------------------------------------------------------------------------------------- statements


def _let(run: Interpretation, x: s.Let) -> None:
    args = [run.value(a) for a in x.args]
    rule = _OWN.get(x.op)
    if rule is not None:
        run.put(x.result, rule(*map(int, args)))
    elif x.op == "part":
        run.put(x.result, (args[0].real, args[0].imag)[x.attr])
    elif x.op == "complex":
        parts = np.array(args, component(x.result.dtype))
        run.values[x.result] = parts.view(x.result.dtype)[0]
    else:
        run.put(x.result, apply(x.op, x.result.dtype, [np.asarray(a) for a in args]))


_OWN: dict[str, Callable[..., Any]] = {
    "wrap_index": lambda i, n: i + n if i < 0 else i, "in_range": lambda i, n: 0 <= i < n,
    "quotient": lambda a, b: a // b, "smallest": min, "largest": max}


def _output(run: Interpretation, x: s.Output) -> None:
    run.results[x.position] = run.value(x.value)


def _declare(run: Interpretation, x: s.Declare) -> None:
    if isinstance(x.thing, Memory):
        run.declare(x.thing)


def _define_size(run: Interpretation, x: s.DefineSize) -> None:
    run.symbols[x.symbol] = run.number(x.value)


def _store(run: Interpretation, x: s.Store) -> None:
    run.array(x.place)[...] = run.value(x.value)


def _copy(run: Interpretation, x: s.Copy) -> None:
    run.array(x.target)[...] = run.array(x.source).copy()


def _exchange(run: Interpretation, x: s.Exchange) -> None:
    run.addresses |= {first: run.addresses[second] for first, second in x.pairs}


def _point(run: Interpretation, x: s.Point) -> None:
    run.addresses[x.alias] = run.addresses[x.at]


def _point_into(run: Interpretation, x: s.PointInto) -> None:
    view = x.place
    inside = run.addresses[view.memory] + run.number(view.offset) + (
        run.number(view.element) * view.dtype.itemsize)
    run.addresses[x.alias] = inside if run.value(x.condition) else run.addresses[x.orelse]


def _is_at(run: Interpretation, x: s.IsAt) -> None:
    lies = run.addresses[x.memory] in [run.addresses[m] for m in x.others]
    run.put(x.result, lies != x.elsewhere)


def _nonzero(run: Interpretation, x: s.Nonzero) -> None:
    (found,) = np.nonzero(run.array(x.source))
    run.put(x.count, len(found))
    part = View(x.indices.memory, (len(found),), x.indices.strides, I64)
    run.array(part)[...] = found


def _run_kernel(run: Interpretation, x: s.RunKernel) -> None:
    operands = [run.array(p) if isinstance(p, View) else np.array(run.value(p))
                for p in x.operands]
    results = [run.array(r) if isinstance(r, View) else np.empty((), r.dtype) for r in x.results]
    run_kernel(x.kernel.at_sizes(run.symbols), [as_pairs(a) for a in (*operands, *results)])
    for register, result in zip(x.results, results, strict=True):
        if isinstance(register, Register):
            run.put(register, result)


def _check(run: Interpretation, x: s.Check) -> None:
    run.leave_unless(run.value(x.condition), x.exit, run.number(x.index), run.number(x.size))


def _check_indices(run: Interpretation, x: s.CheckIndices) -> None:
    size = run.number(x.size)
    for index in run.array(x.indices).ravel():
        run.leave_unless(-size <= index < size, x.exit, int(index), size)


def _if(run: Interpretation, x: s.If) -> None:
    run.block(x.then if run.value(x.condition) else x.orelse or ())


def _while(run: Interpretation, x: s.While) -> None:
    while True:
        run.block(x.test)
        if not run.value(x.condition):
            return
        run.block(x.body)


def _counted_loop(run: Interpretation, x: s.CountedLoop) -> None:
    while run.variables[x.variable] < run.number(x.limit):
        run.block(x.body)


Rule = Callable[[Interpretation, Any], None]
RUN: dict[type, Rule] = {
    s.Number: lambda run, x: run.put(x.result, run.size(x.value)), s.Let: _let,
    s.Input: lambda run, x: run.put(x.result, run.operands[x.position]), s.Output: _output,
    s.Declare: _declare, s.DefineSize: _define_size,
    s.Get: lambda run, x: run.put(x.result, run.variables[x.variable]),
    s.Set: lambda run, x: run.variables.update({x.variable: run.value(x.value)}),
    s.Load: lambda run, x: run.put(x.result, run.array(x.place)[()]), s.Store: _store,
    s.Copy: _copy, s.Exchange: _exchange, s.Point: _point, s.PointInto: _point_into,
    s.IsAt: _is_at, s.Nonzero: _nonzero,
    s.RunKernel: _run_kernel, s.Check: _check, s.CheckIndices: _check_indices, s.If: _if,
    s.While: _while, s.CountedLoop: _counted_loop, s.Poll: lambda run, x: None,
}
