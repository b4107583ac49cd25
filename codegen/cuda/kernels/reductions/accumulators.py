"""Reductions: a thread's accumulator, and how a team of threads joins theirs.

A team is the threads of a block with one `threadIdx.y`: a warp, or several.  The order in which
elements are joined follows from sizes alone, never from how many multiprocessors a device has.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fusec.core.records import dataclass

from ....kernels.loop_ir import Reduction
from ....kernels.scalar_rules import boolean_op
from ...module import WARP
from ...scalars.emitter import BOOL, I64, CudaEmitter, CudaValue, literal, memory_type, type_name
from ...scalars.scalar_ops import emit_operation

I32, F32 = np.dtype(np.int32), np.dtype(np.float32)
MAX_WARPS = 16  # of a team
# One instruction; of two zeros they take one by its sign, where others take the second.
_OF_SINGLES = {"maximum": "largest", "minimum": "smallest"}
_IDEMPOTENT = frozenset({"maximum", "minimum", "fmax", "fmin", "and", "or", "argmin", "argmax"})


def is_indexed(r: Reduction) -> bool:
    return r.kind in ("argmin", "argmax")


def identity_of(kind: str, dtype: np.dtype) -> Any:
    """The value that changes nothing: the start of an accumulator."""
    if kind in ("add", "or", "mul", "xor"):
        return int(kind == "mul")
    if kind == "and":
        return True if dtype == BOOL else -1
    lowest = kind in ("maximum", "fmax", "argmax")
    if dtype.kind == "f":
        return -np.inf if lowest else np.inf
    if dtype == BOOL:
        return not lowest
    info = np.iinfo(dtype)
    return info.min if lowest else info.max


@dataclass(frozen=True)
class CudaAccumulator:
    """Variables of one reduction: the total so far, and of argmin its index, of the type
    ``places``; ``first``, where given, the value that changes nothing."""

    reduction: Reduction
    value: str
    at: str = ""
    places: np.dtype = I64
    first: Any = None

    @property
    def dtype(self) -> np.dtype:
        return self.reduction.value.dtype

    @property
    def start(self) -> str:
        first = identity_of(self.reduction.kind, self.dtype) if self.first is None else self.first
        return literal(self.dtype, first)

    @property
    def variables(self) -> list[tuple[str, np.dtype]]:
        return [(self.value, self.dtype), *([(self.at, self.places)] if self.at else [])]

    @property
    def nowhere(self) -> str:
        """The index while there is none."""
        return literal(self.places, np.iinfo(self.places).max)

    def result(self, em: CudaEmitter) -> CudaValue:
        """The reduction's value, once all is joined."""
        if not self.at:
            return em.value(self.dtype, self.value)
        at = f"{self.at} == {self.nowhere} ? {literal(self.places, 0)} : {self.at}"
        return em.value(I64, at if self.places == I64 else f"i64({at})")


def declare(
    em: CudaEmitter, reduction: Reduction, places: np.dtype = I64, first: Any = None
) -> CudaAccumulator:
    """An accumulator that holds nothing yet."""
    at = em.fresh("at") if is_indexed(reduction) else ""
    acc = CudaAccumulator(reduction, em.fresh("acc"), at, places, first)
    em.line(f"{type_name(acc.dtype)} {acc.value} = {acc.start};")
    if at:
        em.line(f"{type_name(places)} {at} = {acc.nowhere};")
    return acc


def accumulate(
    em: CudaEmitter, acc: CudaAccumulator, value: CudaValue, position: str, valid: str
) -> None:
    """Join the next element of the thread's; where it is not ``valid`` it is a repetition of
    another one, or to be left out."""
    if valid and acc.reduction.kind not in _IDEMPOTENT:
        value = em.value(value.dtype, f"{valid} ? {value} : {acc.start}")
    if not acc.at:
        join(em, acc, value.text)
        return
    new, old = _compared(em, acc, value.text)
    sign = ">" if acc.reduction.kind == "argmax" else "<"
    wins = f"{new} {sign} {old}"
    if acc.dtype.kind == "f":  # the first NaN, too; a repetition is not before what it repeats
        wins = f"!({new} {_NOT[sign]} {old}) && {old} == {old}"
    take = em.named("bool", wins)
    em.line(f"{acc.value} = {take} ? {value} : {acc.value};")
    em.line(f"{acc.at} = {take} ? {type_name(acc.places)}({position}) : {acc.at};")


_NOT = {">": "<=", "<": ">="}


def _compared(em: CudaEmitter, acc: CudaAccumulator, value: str) -> tuple[str, str]:
    """An element and the extremum so far, as they are compared."""
    if acc.dtype.kind == "f" and acc.dtype.itemsize == 2:
        old = em.named("f32", f"widened({acc.value})")
        return em.named("f32", f"widened({value})"), old
    return value, acc.value


def join(em: CudaEmitter, acc: CudaAccumulator, value: str, at: str = "") -> None:
    """Join the accumulator with another one of the reduction, which comes after it."""
    if not acc.at:
        args = [CudaValue(acc.value, acc.dtype), CudaValue(value, acc.dtype)]
        if acc.dtype == F32 and acc.reduction.kind in _OF_SINGLES:
            em.line(f"{acc.value} = {_OF_SINGLES[acc.reduction.kind]}({args[0]}, {value});")
            return
        op = acc.reduction.kind if acc.dtype != BOOL else boolean_op(acc.reduction.kind)
        em.line(f"{acc.value} = {emit_operation(em, op, acc.dtype, args)};")
        return
    take = _better(em, acc, value, at)
    em.line(f"{acc.value} = {take} ? {value} : {acc.value};")
    em.line(f"{acc.at} = {take} ? {at} : {acc.at};")


def _better(em: CudaEmitter, acc: CudaAccumulator, value: str, at: str) -> str:
    """Whether the other one wins: first NaN, else extremum, else first position."""
    new, old = _compared(em, acc, value)
    sign = ">" if acc.reduction.kind == "argmax" else "<"
    wins, ties = f"{new} {sign} {old}", f"{new} == {old}"
    if acc.dtype.kind == "f":
        wins = f"{wins} || ({new} != {new} && {old} == {old})"
        ties = f"({ties} || ({new} != {new} && {old} != {old}))"
    return em.named("bool", f"{wins} || ({ties} && {at} < {acc.at})")


class TeamReduction:
    """Joins the accumulators of a team's threads; ``bytes`` of shared memory are declared.

    ``shares_warps``: teams are parts of warps, of 2**k threads.
    """

    def __init__(self, em: CudaEmitter, head: list[str], shares_warps: bool = False) -> None:
        self.em, self.head, self.bytes, self.shares_warps = em, head, 0, shares_warps
        self._arrays: dict[str, str] = {}

    def array(self, dtype: np.dtype, number: int) -> str:
        """Shared memory for a value of each warp; the n-th of its type."""
        kind = memory_type(dtype)
        name = f"warps_{kind}_{number}"
        if name not in self._arrays:
            self._arrays[name] = name
            self.head.append(f"__shared__ {kind} {name}[{MAX_WARPS}];")
            self.bytes += MAX_WARPS * dtype.itemsize
        return name

    def join_all(self, accs: list[CudaAccumulator]) -> None:
        """All threads of the team have every total afterwards."""
        for acc in accs:
            self._join_warp(acc)
        if self.shares_warps:
            return
        with self.em.block(f"if (blockDim.x > {WARP})"):
            self._join_warps(accs)

    def _join_warp(self, acc: CudaAccumulator) -> None:
        first, leader = str(WARP // 2), "0"
        if self.shares_warps:
            lane = f"int(threadIdx.y * blockDim.x + threadIdx.x) % {WARP}"
            first, leader = "int(blockDim.x) / 2", f"{lane} - int(threadIdx.x)"
        self._join_lanes(acc, first, leader)

    def _join_lanes(self, acc: CudaAccumulator, first: str, leader: str) -> None:
        """By halves; the first lane's total is everybody's."""
        em = self.em
        with em.block(f"for (int d = {first}; d > 0; d >>= 1)"):
            others = [em.named(type_name(dtype), f"shuffle_xor({name}, d)", "other")
                      for name, dtype in acc.variables]
            join(em, acc, *others)
        for name, _ in acc.variables:
            em.line(f"{name} = shuffle_from({name}, {leader});")

    def _join_warps(self, accs: list[CudaAccumulator]) -> None:
        """The warps' totals, by halves again."""
        em, count, arrays = self.em, 0, {}
        for acc in accs:
            for name, dtype in acc.variables:
                arrays[name] = self.array(dtype, count)
                count += 1
        em.line("__syncthreads();")
        with em.block(f"if (threadIdx.x % {WARP} == 0)"):
            for acc in accs:
                for name, dtype in acc.variables:
                    text = f"u8({name})" if dtype == BOOL else name
                    em.line(f"shared_store(&{arrays[name]}[threadIdx.x / {WARP}], {text});")
        em.line("__syncthreads();")
        held = em.named("int", f"int(threadIdx.x % {MAX_WARPS})", "held")
        with em.block(f"if ({held} < int(blockDim.x) / {WARP})"):
            for acc in accs:
                for name, dtype in acc.variables:
                    em.line(f"{name} = {_read(arrays[name], held, dtype)};")
        with em.block("else"):
            for acc in accs:
                for name, start in zip(names_of(acc), (acc.start, acc.nowhere), strict=False):
                    em.line(f"{name} = {start};")
        for acc in accs:
            self._join_lanes(acc, str(MAX_WARPS // 2), "0")


def names_of(acc: CudaAccumulator) -> list[str]:
    """Its variables."""
    return [name for name, _ in acc.variables]


def _read(array: str, place: str, dtype: np.dtype) -> str:
    text = f"shared_load(&{array}[{place}])"
    return f"{text} != 0" if dtype == BOOL else text
