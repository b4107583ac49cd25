"""The common part of kernels of all modes: a stage's expressions at points of a nest.

A thread works on packs: up to `KernelWriter.lanes` neighbours along the form's vector axis.  Where
fewer are left, the other lanes repeat the last one: they compute on values of the program, and do
not store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

import numpy as np

from fusec.core.records import dataclass, field, replace
from fusec.ops.calls.scalar_calls import CALLS, CHECKED

from ...kernels.loop_ir import (
    ESTIMATED,
    LEAVES,
    Expr,
    Reduction,
    Stage,
    Store,
    expr,
    walk,
)
from ...kernels.specialise import LoopForm
from ..module import WARP
from ..scalars.emitter import BOOL, I64, CudaValue, literal, memory_type
from ..scalars.estimates import estimated
from ..scalars.scalar_functions import call_scalar
from ..scalars.scalar_ops import emit_operation
from .kernel_frame import KernelFrame

ACCESS_BYTES = 16  # of the widest load or store
MANY_LANES = 8
MANY_OPERATIONS = 200  # of a body that is not repeated more than twice
_ACCESS = {"": "some", "aligned": "pack", "any": "whole"}  # of neighbours, by `ThreadPoint.whole`


@dataclass
class ThreadPoint:
    """Where a stage is evaluated: counters of the loops (of the axis: of the first lane), pointers
    moved along all loops but the axis, the first lane's number within the inner loops.

    ``count`` of the ``lanes`` hold elements; ``valid``, where given, is false in threads that hold
    none.  ``is_along``: pointers are still to be moved along the axis.  ``whole``: all lanes hold
    elements, which are "aligned" where they are neighbours, or may lie at "any" address, or are a
    warp "apart".
    """

    counters: dict[int, str]
    pointers: list[str]
    linear: str = "0"
    lanes: int = 1
    count: str = "1"
    valid: str = ""
    is_along: bool = True
    whole: Literal["", "aligned", "any", "apart"] = ""
    memo: dict[int, CudaValue] = field(default_factory=dict)


Accumulate = Callable[[Reduction, CudaValue, ThreadPoint], None]


class KernelWriter(KernelFrame):
    """Writes one kernel of a form; a mode is a subclass with a `body`."""

    def __init__(self, form: LoopForm, name: str, index: str) -> None:
        super().__init__(form, name, index)
        self.lanes = pack_lanes(form)
        self.reduced: dict[int, CudaValue] = {}

    @property
    def elements(self) -> int:
        """That the text of a loop does at once."""
        return self.lanes

    @contextmanager
    def packs(
        self, loops: Sequence[int], start: str, step: str, count: str, pointers: list[str],
        counters: dict[int, str],
    ) -> Iterator[ThreadPoint]:
        """Each pack of these loops (the axis is the last) whose number is ``start + k*step``."""
        with self.em.block(f"for ({self.index} id = {start}; id < {count}; id += {step})"):
            yield self.pack_at("id", loops, pointers, counters)

    def pack_at(
        self, number: str, loops: Sequence[int], pointers: list[str], counters: dict[int, str],
        is_full: bool = False,
    ) -> ThreadPoint:
        """The pack of that number; ``is_full``: it is known to have an element for each lane."""
        em, axis, lanes = self.em, self.form.axis, self.lanes
        n, index = self.extent(axis), self.index
        before = [loop for loop in loops if loop != axis]
        pack, rows = number, "0"
        if before:
            each = em.named(index, f"({n} + {lanes - 1}) / {lanes}", "packs") if lanes > 1 else n
            rows = self.quotient(number, each, ("divide_packs", lanes))
            pack = em.named(index, f"{number} - {rows} * {each}", "pack")
        outer = self.decoded(rows, before) if before else {}
        first = em.named(index, f"{pack} * {lanes}", "first") if lanes > 1 else pack
        left = str(lanes) if lanes == 1 or is_full else em.named(
            "int", f"{n} - {first} < {lanes} ? int({n} - {first}) : {lanes}", "count")
        linear = f"{rows} * {n} + {first}" if before else first
        return ThreadPoint({**counters, **outer, axis: first}, self.moved(pointers, outer),
                           linear, lanes, left)

    # -- a stage

    def run_stage(
        self, stage: Stage, place: ThreadPoint, accumulate: Accumulate | None = None,
        only: str = "",
    ) -> None:
        """Evaluate a stage in all lanes of a pack, then store.

        ``accumulate(reduction, value, place)`` takes the elements of its reductions, in each lane;
        ``only``: the condition for this thread to store.
        """
        em = self.em
        loads = self._loads(stage, place)
        results = {number: self._result_pack(number, place.lanes) for number in dict.fromkeys(
            s.access for s in stage.stores if not s.index)}
        with em.block(self._lane_loop(place.lanes)):
            here, lane = self._lane(place), "k" if place.lanes > 1 else "0"
            values = self._evaluate(stage.roots, here, loads, lane)
            for store in stage.stores:
                if not store.index:
                    start = len(em.lines)
                    value = in_memory(self._joined(store, place, values[id(store.value)]))
                    em.line(f"{results[store.access]}.v[{lane}] = {value};")
                    em.note(start, store.value)
            for number, e in stage.scratch:
                self.put_scratch(number, values[id(e)], here)
            for r in stage.reductions:
                assert accumulate is not None
                start = len(em.lines)
                accumulate(r, values[id(r.value)], here)
                em.note(start, expr("reduced", r.dtype, attr=r.number))
            self._store_computed(stage, here, values)
        for number, pack in results.items():
            start = len(em.lines)
            self.store_pack(number, pack, place, only)
            for store in stage.stores:
                if store.access == number and not store.index:
                    em.note(start, store.value)

    def _joined(self, store: Store, place: ThreadPoint, value: CudaValue) -> CudaValue:
        """The value, or its sum with the parts before it."""
        dtype, pointer = self.form.operands[store.access].dtype, place.pointers[store.access]
        return value if not store.combine else emit_operation(
            self.em, store.combine, dtype, [self._loaded(dtype, pointer), value])

    def _lane_loop(self, lanes: int) -> str:
        if lanes == 1:
            return ""
        self.em.line("#pragma unroll")
        return f"for (int k = 0; k < {lanes}; ++k)"

    def _lane(self, place: ThreadPoint) -> ThreadPoint:
        """The place of lane k; lanes without an element are at the last one."""
        axis = self.form.axis
        if place.lanes == 1:
            return replace(place, memo={})
        if place.whole:
            step = f"k * {WARP}" if place.whole == "apart" else "k"
            counters = {**place.counters, axis: f"({place.counters[axis]} + {step})"}
            return replace(place, counters=counters, linear=f"({place.linear} + k)", memo={})
        lane = f"(k < {place.count} ? k : {place.count} - 1)"
        counters = {**place.counters, axis: f"({place.counters[axis]} + {lane})"}
        return replace(place, counters=counters, linear=f"({place.linear} + {lane})", memo={},
                       valid=f"k < {place.count}")

    def _loads(self, stage: Stage, place: ThreadPoint) -> dict[int, str]:
        """Loads that all lanes share, by access: texts of the value in lane k."""
        em, form, texts = self.em, self.form, {}
        for e in walk(stage.roots):
            if e.op != "load" or e.args or e.attr in texts:
                continue
            operand, pointer = form.operands[e.attr], place.pointers[e.attr]
            kind, name, start = memory_type(operand.dtype), em.fresh("x"), len(em.lines)
            if not self.moves(e.attr, place):
                em.line(f"const {kind} {name} = load<{kind}>({pointer});")
                texts[e.attr] = name
            elif form.stride_class(operand) == "unit" and place.lanes > 1 and (
                    place.whole != "apart"):
                at = self._pack_address(e.attr, place)
                of, count = _ACCESS[place.whole], "" if place.whole else f", {place.count}"
                em.line(f"const Pack<{kind}, {place.lanes}> {name} = "
                        f"load_{of}<{kind}, {place.lanes}>({at}{count});")
                texts[e.attr] = f"{name}.v[%]"
            em.note(start, e)
        return texts

    def _pack_address(self, number: int, place: ThreadPoint) -> str:
        """Of aligned packs with a product of 64 bits, which one instruction adds to the pointer;
        others have several addresses, for which those of 32 bits are shorter."""
        counter, size = place.counters[self.form.axis], self.form.operands[number].dtype.itemsize
        counter = f"i64({counter})" if place.whole == "aligned" else counter
        return f"{place.pointers[number]} + {counter} * {size}"

    def moves(self, number: int, place: ThreadPoint) -> bool:
        """Whether an operand's address differs from lane to lane."""
        return place.is_along and self.form.axis in place.counters and (
            self.form.stride_class(self.form.operands[number]) != "zero")

    def _result_pack(self, number: int, lanes: int) -> str:
        name, kind = self.em.fresh("out"), memory_type(self.form.operands[number].dtype)
        self.em.line(f"Pack<{kind}, {lanes}> {name};")
        return name

    def store_pack(self, number: int, pack: str, place: ThreadPoint, only: str) -> None:
        em, operand, pointer = self.em, self.form.operands[number], place.pointers[number]
        kind, axis = memory_type(operand.dtype), self.form.axis
        only = " && ".join(filter(None, (only, place.valid)))
        if not self.moves(number, place):
            self._store_if(only, f"store<{kind}>({pointer}, {pack}.v[0]);")
        elif self.form.stride_class(operand) == "unit" and place.lanes > 1 and (
                place.whole != "apart"):
            at = self._pack_address(number, place)
            of, count = _ACCESS[place.whole], "" if place.whole else f", {place.count}"
            self._store_if(only, f"store_{of}<{kind}, {place.lanes}>({at}, {pack}{count});")
        elif place.lanes == 1:
            at = f"{pointer} + {place.counters[axis]} * {self.stride(number, axis)}"
            self._store_if(only, f"store<{kind}>({at}, {pack}.v[0]);")
        else:
            at = self._element_address(
                number, place, f"k * {WARP}" if place.whole == "apart" else "k")
            with em.block(self._lane_loop(place.lanes)):
                held = " && ".join(filter(None, (
                    only, "" if place.whole else f"k < {place.count}")))
                self._store_if(held, f"store<{kind}>({at}, {pack}.v[k]);")

    def _store_if(self, condition: str, text: str) -> None:
        self.em.line(f"if ({condition}) {text}" if condition else text)

    def _store_computed(
        self, stage: Stage, place: ThreadPoint, values: dict[int, CudaValue]
    ) -> None:
        """At computed indices, where points run in order."""
        for store in stage.stores:
            if store.index:
                start = len(self.em.lines)
                self.put_at(store, self._computed(store.access, [
                    values[id(i)] for i in store.index], place), values[id(store.value)])
                self.em.note(start, store.value)

    def put_at(self, store: Store, address: str, value: CudaValue) -> None:
        """Store a value at an address, alone or joined with the one there."""
        em, dtype = self.em, self.form.operands[store.access].dtype
        if store.combine:
            value = emit_operation(em, store.combine, dtype, [self._loaded(dtype, address), value])
        em.line(f"store<{memory_type(dtype)}>({address}, {in_memory(value)});")

    # -- expressions

    def _evaluate(
        self, roots: Sequence[Expr], place: ThreadPoint, loads: dict[int, str], lane: str
    ) -> dict[int, CudaValue]:
        """The values of expressions in one lane, by id; those of the place stay."""
        memo = place.memo
        for e in walk(roots, memo):
            start = len(self.em.lines)
            memo[id(e)] = self._expression(e, place, loads, lane)
            self.em.note(start, e)
        return memo

    def _expression(
        self, e: Expr, place: ThreadPoint, loads: dict[int, str], lane: str
    ) -> CudaValue:
        args = [place.memo[id(a)] for a in e.args]
        if e.op == "load":
            return self._load(e, args, place, loads, lane)
        if e.op in LEAVES:
            return self._leaf(e, place)
        if e.op == "check_index":
            return self._check_index(*args)
        if e.op == "verify":
            self.em.line(f"failed |= !{args[0]};")
            return args[0]
        if e.op == "scan":
            return self.scan(e, args[0], place)
        if e.op in CALLS:
            return self._call(e, args)
        if e.attr == ESTIMATED:
            return self.em.value(e.dtype, estimated(self.em, e, place.memo))
        return emit_operation(self.em, e.op, e.dtype, args)

    def _call(self, e: Expr, args: Sequence[CudaValue]) -> CudaValue:
        """A function of the user's; where it raises, a failed check."""
        value, bad = call_scalar(self.em, e.attr, args)
        if e.op == CHECKED:
            self.em.line(f"failed |= {bad};")
        return value

    def _leaf(self, e: Expr, place: ThreadPoint) -> CudaValue:
        if e.op == "const":
            return self.em.const(e.dtype, e.attr)
        if e.op == "param":
            return self.em.value(e.dtype, self.constant(e.attr, e.dtype))
        if e.op == "reduced":
            return self.reduced[e.attr]
        if e.op == "scratch":
            return self.get_scratch(e.attr, e.dtype, place)
        loop = self.form.loop_of[e.attr]
        counter = "0" if loop < 0 else place.counters[loop]
        return self.em.value(I64, f"i64({counter})")

    def _load(
        self, e: Expr, args: Sequence[CudaValue], place: ThreadPoint, loads: dict[int, str],
        lane: str,
    ) -> CudaValue:
        number = e.attr
        if args:
            return self._loaded(e.dtype, self._computed(number, args, place))
        special = self.load_text(e, place)
        if special is not None:
            return special
        if number in loads:
            text = loads[number].replace("%", lane)
            return self.em.value(e.dtype, f"{text} != 0" if e.dtype == BOOL else text)
        return self._loaded(e.dtype, self._element_address(number, place, ""))

    def _element_address(self, number: int, place: ThreadPoint, step: str) -> str:
        """Of lane k, ``step`` after the counter; where lanes are apart, one product of 64 bits
        serves them all."""
        counter = place.counters[self.form.axis]
        counter = f"({counter} + {step})" if step else counter
        counter = f"i64({counter})" if place.whole == "apart" else counter
        return f"{place.pointers[number]} + {counter} * {self.stride(number, self.form.axis)}"

    def _loaded(self, dtype: np.dtype, address: str) -> CudaValue:
        text = f"load<{memory_type(dtype)}>({address})"
        return self.em.value(dtype, f"{text} != 0" if dtype == BOOL else text)

    def _computed(self, number: int, indices: Sequence[CudaValue], place: ThreadPoint) -> str:
        """The address at computed indices."""
        steps = []
        for position, index in enumerate(indices):
            step = self.param(("gathered", number, position), "int64", f"g{number}_{position}")
            steps.append(f"i64({index}) * {step}")
        if self.moves(number, place):
            axis = self.form.axis
            steps.append(f"i64({place.counters[axis]}) * {self.stride(number, axis)}")
        return f"{place.pointers[number]} + ({' + '.join(steps)})"

    def _check_index(self, index: CudaValue, size: CudaValue) -> CudaValue:
        """The wrapped index, 0 where it is out of range."""
        em = self.em
        wrapped = em.value(I64, f"{index} < 0 ? {index} + {size} : {index}")
        bad = em.value(BOOL, f"u64({wrapped}) >= u64({size})")
        em.line(f"failed |= {bad};")
        return em.value(I64, f"{bad} ? {literal(I64, 0)} : {wrapped}")

    # -- what only some modes have

    def load_text(self, e: Expr, place: ThreadPoint) -> CudaValue | None:
        """A load that a mode does in a way of its own."""
        return None

    def scan(self, e: Expr, value: CudaValue, place: ThreadPoint) -> CudaValue:
        raise NotImplementedError

    def put_scratch(self, number: int, value: CudaValue, place: ThreadPoint) -> None:
        raise NotImplementedError

    def get_scratch(self, number: int, dtype: np.dtype, place: ThreadPoint) -> CudaValue:
        raise NotImplementedError


def in_memory(value: CudaValue) -> str:
    """A value as an element."""
    return f"u8({value})" if value.dtype == BOOL else value.text


def pack_lanes(form: LoopForm) -> int:
    """Elements that a thread does at once: 16 bytes of the widest neighbours in memory."""
    unit = [o.dtype.itemsize for o in form.operands if form.stride_class(o) == "unit"]
    if not unit or form.nest.sequential or form.mode in (
            "column", "tiled"):
        return 1
    lanes = min(ACCESS_BYTES // max(unit), MANY_LANES)
    return min(lanes, 2) if operations(form) > MANY_OPERATIONS else lanes


def operations(form: LoopForm) -> int:
    """How many a point takes."""
    return sum(1 for e in walk(form.nest.roots) if e.op not in LEAVES)
