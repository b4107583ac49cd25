"""Checks that a structured program means something; done wherever passes are verified.

Registers are defined once, before they are read, in the block that reads them or one around it
(those of a loop's test are there in its body).  Variables, memory and symbols are declared
before they are used.  Types fit: conditions are booleans, places have the dtype of stored values,
copies one shape.  Views of known sizes lie within memory of ours.  An exchange loses no memory.
Every exit is one statement's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fusec.core.records import dataclass, field
from fusec.ir.regions import byte_extent
from fusec.ir.sizes.dims import Dim, is_static, symbols_of

from . import statements as s
from .memory import BOOL, I64, Memory, Operand, Register, Variable, View, is_zero
from .program import StructuredProgram
from .text import statement_text

Things = set[Any]  # registers, variables, memory, functions; sizes by their symbols


class StructureError(AssertionError):
    """A structured program breaks a rule: an error of fusec's, not of the user's."""


def verify(program: StructuredProgram) -> None:
    """Raise `StructureError`, with the statement, where a rule is broken."""
    verifier = Verifier(len(program.exits), len(program.sites))
    verifier.block(program.body, set(program.outer))
    if verifier.exits != set(range(len(program.exits))):
        raise StructureError(
            f"exits {sorted(set(range(len(program.exits))) - verifier.exits)} are nobody's")


@dataclass
class Verifier:
    """``exits`` and ``defined`` are what the statements so far have, wherever they stand."""

    exit_count: int
    site_count: int
    exits: set[int] = field(default_factory=set)
    defined: Things = field(default_factory=set)
    remembered: set[Memory] = field(default_factory=set)  # an alias has had its address
    statement: Any = None
    rules: Mapping[type, Rule] = field(default_factory=lambda: RULES)

    def require(self, holds: Any, why: str) -> None:
        if not holds:
            raise StructureError(f"{why}, in\n{statement_text(self.statement)}")

    def block(self, block: s.Block, known: Things) -> Things:
        """What is known after the statements of a block; ``known`` before."""
        known = set(known)
        for statement in block:
            self.statement = statement
            self.rules[type(statement)](self, statement, known)
        return known

    # -- what statements define

    def define(self, known: Things, *things: Any) -> None:
        for thing in things:
            self.require(thing not in self.defined, f"{thing!r} is defined twice")
            self.defined.add(thing)
            known.add(thing)

    def exit(self, number: int) -> None:
        self.require(0 <= number < self.exit_count, f"there is no exit {number}")
        self.require(number not in self.exits, f"exit {number} is another statement's, too")
        self.exits.add(number)

    # -- what they read

    def read(self, known: Things, *operands: Operand | View) -> None:
        for operand in operands:
            if isinstance(operand, View):
                self.view(known, operand)
            elif isinstance(operand, Register):
                self.require(operand in known, f"{operand!r} is not defined before")

    def is_known(self, known: Things, thing: Variable | Memory | s.Function) -> None:
        self.require(thing in known, f"{thing!r} is not declared before")

    def symbols(self, known: Things, sizes: Any) -> None:
        missing = symbols_of(sizes) - known
        self.require(not missing, f"the sizes {sorted(missing)} are not defined before")

    def view(self, known: Things, view: View) -> None:
        self.is_known(known, view.memory)
        self.read(known, view.offset, view.element)
        self.read(known, *(step for step in view.strides if isinstance(step, Register)))
        self.symbols(known, view.shape)
        self.require(view.offset.dtype == I64 and view.element.dtype == I64,
                     "the place of a view is not an int64")
        self.require(_is_inside(view), "a view reaches beyond its memory")

    def boolean(self, known: Things, condition: Operand) -> None:
        self.read(known, condition)
        self.require(condition.dtype == BOOL, "a condition is not a boolean")

    def integer(self, known: Things, *numbers: Operand) -> None:
        self.read(known, *numbers)
        self.require(all(x.dtype == I64 for x in numbers), "an index or size is not an int64")

    def same(self, a: np.dtype, b: np.dtype) -> None:
        self.require(a == b, f"{a} is not {b}")


def _is_inside(view: View) -> bool:
    """Whether a view of known place, sizes and strides lies within its memory."""
    memory = view.memory
    known = is_zero(view.offset) and is_zero(view.element) and is_static(view.shape) and not any(
        isinstance(step, Register) for step in view.strides)
    if view.views or 0 in view.shape or memory.origin in ("operand", "parameter"):
        return True
    if not known or isinstance(memory.nbytes, Dim) or memory.nbytes < 0:
        return True
    low, high = byte_extent(view.shape, view.strides, view.dtype.itemsize)
    return low >= 0 and high <= memory.nbytes


# ------------------------------------------------------------------------------------------- rules


def _let(v: Verifier, x: s.Let, known: Things) -> None:
    v.read(known, *x.args)
    if x.op in ("wrap_index", "in_range", "quotient", "smallest", "largest"):
        v.integer(known, *x.args)
        v.same(x.result.dtype, BOOL if x.op == "in_range" else I64)
    v.define(known, x.result)


def _number(v: Verifier, x: s.Number, known: Things) -> None:
    v.symbols(known, (x.value,))
    v.same(x.result.dtype, I64)
    v.define(known, x.result)


def _call_scalar(v: Verifier, x: s.CallScalar, known: Things) -> None:
    v.read(known, *x.args)
    v.define(known, x.result)
    if x.words:
        v.define(known, x.holds)


def _get(v: Verifier, x: s.Get, known: Things) -> None:
    v.is_known(known, x.variable)
    v.same(x.result.dtype, x.variable.dtype)
    v.define(known, x.result)


def _set(v: Verifier, x: s.Set, known: Things) -> None:
    v.is_known(known, x.variable)
    v.read(known, x.value)
    v.same(x.value.dtype, x.variable.dtype)


def _define_size(v: Verifier, x: s.DefineSize, known: Things) -> None:
    v.integer(known, x.value)
    known.add(x.symbol)  # every iteration defines it anew


def _load(v: Verifier, x: s.Load, known: Things) -> None:
    v.view(known, x.place)
    v.same(x.result.dtype, x.place.dtype)
    v.define(known, x.result)


def _store(v: Verifier, x: s.Store, known: Things) -> None:
    v.read(known, x.place, x.value)
    v.same(x.value.dtype, x.place.dtype)


def _copy(v: Verifier, x: s.Copy, known: Things) -> None:
    v.read(known, x.target, x.source)
    v.same(x.target.dtype, x.source.dtype)
    v.require(x.target.shape == x.source.shape, "a copy between two shapes")
    v.require(x.target.memory is not x.source.memory or (x.target.is_dense and x.source.is_dense),
              "a copy within one memory that is not in C order")


def _exchange(v: Verifier, x: s.Exchange, known: Things) -> None:
    firsts, seconds = [a for a, _ in x.pairs], [b for _, b in x.pairs]
    for memory in (*firsts, *seconds):
        v.is_known(known, memory)
    v.require(len(set(firsts)) == len(firsts) == len(set(seconds)) and set(firsts) == set(seconds),
              "an exchange loses memory, or gives it twice")
    v.require(all(a.nbytes == b.nbytes and is_static((a.nbytes,)) for a, b in x.pairs),
              "an exchange of memories of different sizes")


def _point(v: Verifier, x: s.Point, known: Things) -> None:
    v.is_known(known, x.alias)
    v.is_known(known, x.at)
    _may_point(v, x.alias)
    v.require(x.alias.nbytes == x.at.nbytes, "only memory of the same size takes an address")
    v.remembered.add(x.at)


def _may_point(v: Verifier, memory: Memory) -> None:
    v.require(memory.origin == "alias" or memory in v.remembered,
              "the address of memory is lost: no alias has taken it before")


def _point_into(v: Verifier, x: s.PointInto, known: Things) -> None:
    for memory in (x.alias, x.orelse, x.place.memory):
        v.is_known(known, memory)
    v.read(known, x.condition)
    v.same(x.condition.dtype, BOOL)
    _may_point(v, x.alias)
    v.require(x.place.is_dense and x.alias.nbytes == x.orelse.nbytes == (
        math.prod(x.place.shape) * x.place.dtype.itemsize),
        "only memory of the same size takes the address of a view")


def _is_at(v: Verifier, x: s.IsAt, known: Things) -> None:
    for memory in (x.memory, *x.others):
        v.is_known(known, memory)
    v.same(x.result.dtype, BOOL)
    v.define(known, x.result)


def _nonzero(v: Verifier, x: s.Nonzero, known: Things) -> None:
    v.view(known, x.source)
    v.is_known(known, x.indices.memory)
    v.same(x.indices.dtype, I64)
    v.define(known, x.count)


def _run_kernel(v: Verifier, x: s.RunKernel, known: Things) -> None:
    v.read(known, *x.operands, *(r for r in x.results if isinstance(r, View)))
    places: Sequence[Any] = (*x.operands, *x.results)
    v.require(len(places) == len(x.kernel.buffers), "a kernel has other buffers")
    written = [r.memory for r in x.results if isinstance(r, View)]
    v.require(len(set(written)) == len(written), "two results of a kernel in one memory")
    for nest in x.nests:
        v.symbols(known, (nest.form.extents, tuple(
            (o.offset, o.strides, o.gathered) for o in nest.form.operands)))
        v.require(nest.form.nest.has_checks == (nest.exit >= 0), "checks without an exit")
        if nest.exit >= 0:
            v.exit(nest.exit)
    v.define(known, *(r for r in x.results if isinstance(r, Register)))


def _call_python(v: Verifier, x: s.CallPython, known: Things) -> None:
    v.read(known, *x.operands)
    v.require(0 <= x.number < v.site_count, f"there is no call site {x.number}")
    v.exit(x.exit)
    for word, result in zip(x.site.results, x.results, strict=True):
        for size in word.sizes:
            if size.defines:
                known |= symbols_of((word.type.shape[size.axis],))
        if isinstance(result, Register):
            v.define(known, result)
    v.read(known, *(r for r in x.results if isinstance(r, View)))


def _can_draw(v: Verifier, x: s.CanDraw, known: Things) -> None:
    v.require(0 <= x.number < v.site_count, f"there is no call site {x.number}")
    v.same(x.result.dtype, BOOL)
    v.define(known, x.result)


def _draw(v: Verifier, x: s.Draw, known: Things) -> None:
    v.require(0 <= x.number < v.site_count, f"there is no call site {x.number}")
    v.read(known, *x.arguments)
    v.same(x.result.dtype, x.drawing.dtype)
    if isinstance(x.result, Register):
        v.define(known, x.result)
    else:
        v.view(known, x.result)
        v.require(x.result.is_dense, "numbers are drawn into an array with gaps")


def _define_function(v: Verifier, x: s.DefineFunction, known: Things) -> None:
    function = x.function
    v.exit(function.too_deep)
    v.define(known, function)
    inner = {function} | {name for name in known if isinstance(name, str)}
    v.define(inner, *(p for p in function.parameters if isinstance(p, Register)))
    after = v.block(function.body, inner)
    v.statement = x
    v.read(after, *function.results)
    v.require(tuple(r.dtype for r in function.results) == function.types, "other results")


def _call_function(v: Verifier, x: s.CallFunction, known: Things) -> None:
    v.is_known(known, x.function)
    v.read(known, *x.args)
    count = len(x.function.parameters)
    v.require(len(x.args) in (count, x.function.own), "a call with other arguments")
    v.require(tuple(r.dtype for r in x.results) == x.function.types, "a call with other results")
    v.define(known, *x.results)


def _check(v: Verifier, x: s.Check, known: Things) -> None:
    v.boolean(known, x.condition)
    v.read(known, x.index, x.size)
    v.exit(x.exit)


def _check_indices(v: Verifier, x: s.CheckIndices, known: Things) -> None:
    v.view(known, x.indices)
    v.integer(known, x.size)
    v.exit(x.exit)


def _if(v: Verifier, x: s.If, known: Things) -> None:
    v.boolean(known, x.condition)
    v.block(x.then, known)
    v.block(x.orelse or (), known)


def _while(v: Verifier, x: s.While, known: Things) -> None:
    if x.lanes is not None:
        v.is_known(known, x.lanes.variable)
        v.integer(known, x.lanes.limit)
    tested = v.block(x.test, known)
    v.statement = x
    v.boolean(tested, x.condition)
    v.block(x.body, tested)


def _counted_loop(v: Verifier, x: s.CountedLoop, known: Things) -> None:
    v.is_known(known, x.variable)
    v.same(x.variable.dtype, I64)
    v.integer(known, x.limit)
    v.block(x.body, known)


def _poll(v: Verifier, x: s.Poll, known: Things) -> None:
    v.require(x.cost >= 0, "a negative cost")


Rule = Callable[[Verifier, Any, Things], None]
RULES: dict[type, Rule] = {
    s.Number: _number, s.Let: _let, s.CallScalar: _call_scalar, s.Get: _get, s.Set: _set,
    s.Input: lambda v, x, known: v.define(known, x.result),
    s.Output: lambda v, x, known: v.read(known, x.value),
    s.Declare: lambda v, x, known: v.define(known, x.thing),
    s.DefineSize: _define_size, s.Load: _load, s.Store: _store, s.Copy: _copy,
    s.Exchange: _exchange, s.Point: _point, s.PointInto: _point_into, s.IsAt: _is_at,
    s.Nonzero: _nonzero,
    s.RunKernel: _run_kernel, s.CallPython: _call_python, s.CanDraw: _can_draw,
    s.Draw: _draw, s.DefineFunction: _define_function, s.CallFunction: _call_function,
    s.Check: _check, s.CheckIndices: _check_indices, s.If: _if,
    s.While: _while, s.CountedLoop: _counted_loop, s.Poll: _poll,
}
