"""The kernels of a plan whose sizes are known, prepared once: a call fills in addresses alone.

Kernels, products by cuBLAS, transforms by cuFFT and equations by cuSOLVER between two calls of CuPy
are a segment; what CuPy makes is in an array of its own.

Beside the arrays of a call kernels use a block of memory that the call borrows: first the cells
(numbers that kernels compute) and the word that says whether a check has failed, with those for
matrices that a library has refused, then temporary
arrays, then the scratch memory of one nest, in the same place for all of them, since they run in
order.  Numbers that a call is given are read from another block, which nobody writes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..kernels.loop_ir import CHECKS, Nest, walk
from ..plan.call_plan import CallPlan
from ..structured.calls.call_statements import CallStatement, NodeCall
from ..structured.kernel_statements import RunKernel
from ..structured.memory import View
from .compiled_nests import NestCall
from .kernels.launch_plan import Slot
from .launches import (
    BLOCK,
    NUMBERS,
    Address,
    AnyLaunch,
    CopyPart,
    Launch,
    Named,
    Segment,
)
from .persistent.prepared_loops import PreparedLoop, prepared_loop
from .products.direct_calls import DirectCalls

WORD = 8
_ALIGNMENT = 256  # that of the driver's memory


class Prepared:
    """See the module docstring.

    ``parts`` are segments, copies and library calls in order, ``called`` the arrays that the latter
    make; ``constants`` are those that products read.  ``nbytes`` is what the block takes.
    ``status`` is where in it the word of checks is; -1: there are none.  ``words``: so many, the
    first, does a call look at.  ``cleared``: from where to where it has to set them to 0 before.
    """

    @property
    def flag(self) -> int:
        """The address of the word of the host's that ends loops."""
        return 0

    def __init__(self, call_plan: CallPlan, numbers: int, products: DirectCalls) -> None:
        """``numbers``: how many cells, the first, are numbers that a call is given."""
        self.numbers = numbers
        self.products, self.constants = products.of(call_plan), list[np.ndarray]()
        self.loops = {id(step): loop for step in call_plan.externs
                      if isinstance(loop := prepared_loop(step), PreparedLoop)}
        has_checks = any(call.has_checks for step in call_plan.kernels for call in step.code) or (
            any(loop.may_leave for loop in self.loops.values())) or (
            any(one.may_refuse for one in self.products.values()))
        self.status = WORD * call_plan.cells if has_checks else -1
        self.called = {p.key for step in call_plan.externs for p in step.results
                       if id(step) not in self.loops and id(step) not in self.products
                       and not p.is_cell}
        self._temps: dict[int, int] = {}
        end = WORD * (call_plan.cells + has_checks)
        self._refusals = dict[int, int]()  # where a library notes them
        for key, one in self.products.items():
            if one.may_refuse:
                self._refusals[key], end = end, end + WORD
        self.words = end // WORD
        start, self._states = self.status if has_checks else end, dict[int, int]()
        for key, loop in self.loops.items():
            self._states[key] = end
            end += loop.state
        self.cleared = start, end
        end = _aligned(end)
        for number, place in enumerate(call_plan.temps):
            if ("temp", number) not in self.called:
                self._temps[number] = end
                end += _aligned(math.prod(place.shape) * place.dtype.itemsize)
        self._own = self.nbytes = end
        self.parts = [*self._parts(call_plan.steps)]

    @property
    def segments(self) -> list[Segment]:
        return [part for part in self.parts if isinstance(part, Segment)]

    def _parts(self, steps: Sequence[CallStatement]) -> Iterator[Segment | NodeCall | CopyPart]:
        waiting: list[CallStatement] = []
        for step in steps:
            loop = self.loops.get(id(step))
            if id(step) in self.products and self.products[id(step)].outside:
                if waiting:
                    yield self._segment(waiting)
                waiting = []
                yield self._segment([step])
                continue
            if isinstance(step, RunKernel) or id(step) in self.products or (
                    loop is not None and not loop.copies):
                waiting.append(step)
                continue
            if waiting:
                yield self._segment(waiting)
            waiting = [] if loop is None else [step]
            if loop is None:
                yield step
            else:
                yield from (CopyPart(
                    self.address(to), of if isinstance(of, np.ndarray) else self.address(of),
                    _nbytes(to)) for to, of in loop.copies)
        if waiting:
            yield self._segment(waiting)

    def _segment(self, steps: Sequence[CallStatement]) -> Segment:
        launches, kernels = list[AnyLaunch](), list[Named]()
        for step in steps:
            if isinstance(step, RunKernel):
                launches += [launch for call in _needed(step) for launch in self._nest(step, call)]
                kernels.append(step.kernel)
            elif id(step) in self.products:
                launches.append(self._product(id(step)))
                kernels.append(self.products[id(step)])
            else:
                launches.append(self._loop(self.loops[id(step)]))
                kernels.append(self.loops[id(step)].program.whole)
        return Segment(launches, kernels)

    def _loop(self, loop: PreparedLoop) -> Launch:
        """The launch of a persistent kernel."""
        self.nbytes = max(self.nbytes, self._own + loop.scratch)
        own = {"state": Address(BLOCK, self._states[id(loop.step)]),
               "exit": Address(BLOCK, self.status), "scratch": Address(BLOCK, self._own)}
        return Launch(loop.program, loop.layout, tuple(loop.arguments(
            self.address, lambda kind: self.flag if kind == "flag" else own[kind])))

    def _product(self, key: int) -> AnyLaunch:
        product = self.products[key]
        self.nbytes = max(self.nbytes, self._own + product.workspace)
        own = [self._own, *([self._refusals[key]] if product.may_refuse else [])]
        return product.launch(self._operand, *(Address(BLOCK, at) for at in own))

    def _operand(self, place: View | np.ndarray, offset: int) -> Address:
        """Where a product finds its operand."""
        if isinstance(place, View):
            return self.address(place, offset)
        self.constants.append(place)
        return Address(("constant", len(self.constants) - 1), offset)

    def _nest(self, step: RunKernel, call: NestCall) -> list[Launch]:
        """The launches of one nest."""
        where: dict[Slot, Address | int] = {
            ("operand", n): self.address(step.places[operand.buffer], operand.offset)
            for n, operand in enumerate(call.form.loops.operands)}
        where["status",] = Address(BLOCK, self.status)
        end, launches = self._own, []
        assert call.plans is not None
        for one, (layout, args) in zip(call.kernels, call.plans, strict=True):
            if layout.partials and ("partials",) not in where:
                where["partials",], end = Address(BLOCK, end), end + _aligned(layout.partials)
            for number, dtype in enumerate(call.form.loops.nest.scratch if layout.scratch else ()):
                where["scratch", number] = Address(BLOCK, end)
                end += _aligned(layout.scratch * dtype.itemsize)
            launches.append(Launch(one, layout, tuple(
                where[arg] if isinstance(arg, tuple) else arg for arg in args)))
        self.nbytes = max(self.nbytes, end)
        return launches

    def address(self, place: View, offset: int = 0) -> Address:
        """Where a value is, and bytes after its first element."""
        if 0 in place.shape:  # of which a wrong index, that becomes 0, reads what is no element
            self.nbytes = max(self.nbytes, _ALIGNMENT)
            return Address(BLOCK, 0)
        if place.is_cell:
            base = NUMBERS if place.memory.position < self.numbers else BLOCK
            return Address(base, WORD * place.memory.position + offset)
        if place.memory.origin == "temp" and ("temp", place.memory.position) not in self.called:
            return Address(BLOCK, self._temps[place.memory.position] + offset)
        return Address(place.key, offset)


def _needed(step: RunKernel) -> list[NestCall]:
    """Its nests, without those that only do the checks of a later one beforehand: a call whose
    checks have failed leaves its arguments as they were, and runs again step by step."""
    nests, calls = step.kernel.nests, [*step.code]
    if len(nests) != len(calls) or any(p.memory.origin == "operand" for p in _written(step)):
        return calls
    checked = [_checks_of(nest) for nest in nests]
    return [call for number, (nest, call) in enumerate(zip(nests, calls, strict=True))
            if any((s.stores, s.scratch, s.reductions) != ((), (), ()) for s in nest.stages)
            or not any(checked[number] <= later for later in checked[number + 1:])]


def _written(step: RunKernel) -> list[View]:
    return [place for place, buffer in zip(step.places, step.kernel.buffers, strict=True)
            if buffer.role == "out"]


def _checks_of(nest: Nest) -> set[Any]:
    """What its checks say, whatever the numbers of its accesses."""
    said: dict[int, Any] = {}
    for e in walk(nest.roots):
        of = nest.accesses[e.attr] if e.op == "load" else e.attr
        said[id(e)] = e.op, e.dtype, of, tuple(said[id(arg)] for arg in e.args)
    return {said[id(e)] for e in walk(nest.roots) if e.op in CHECKS}


def _nbytes(place: View) -> int:
    return math.prod(place.shape) * place.dtype.itemsize


def _aligned(nbytes: int) -> int:
    return -(-nbytes // _ALIGNMENT) * _ALIGNMENT


def why_not(call_plan: CallPlan) -> str:
    """Why the kernels of a plan cannot be prepared; empty where they can."""
    may_have_failed = False  # which is known after all of them: a loop could go on for ever
    for step in call_plan.steps:
        if not isinstance(step, RunKernel):
            if step.run is not None:
                loop = prepared_loop(step)
                if isinstance(loop, str):
                    return loop
                if may_have_failed:
                    return f"{step.node.op} comes after a check that may have failed"
                may_have_failed |= loop.has_exits
                continue
            if not call_plan.backend.has_kernel(step.node):
                return f"{step.node.op} is no kernel"
            continue
        if not all(form.is_static for form in step.forms):
            return f"the sizes of {step.kernel.name} are known when it runs"
        may_have_failed |= step.kernel.has_checks
        if step.kernel.has_checks and any(0 in place.shape for place in step.places):
            return f"{step.kernel.name} may not run where an index of an empty array is wrong"
    return ""
