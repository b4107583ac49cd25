"""Calls of the user's scalar functions from vector loops: one lane after the other.

The lanes go through memory and a small loop, so that the function's code stands once in a module,
however many vectors a step of the kernel's loop takes.  Lanes that hold no element are skipped: on
those the function might not even end.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fusec.core.records import dataclass
from fusec.ops.calls.scalar_calls import FUNCTIONS, ScalarFunction

from ...kernels.loop_ir import Expr
from ..emitter import BOOL, LlvmEmitter, LlvmValue, memory_type, vector_type
from ..nests.indices import FailureFlags
from .scalar_operations import with_operations


def call_lanes(
    em: LlvmEmitter, e: Expr, args: Sequence[LlvmValue], lanes: int, valid: LlvmValue | None,
    failures: FailureFlags,
) -> LlvmValue:
    """The function of a ``scalar_call`` on every valid lane; where it raises, a failed check."""
    function = _required(em, e.attr)
    loop = LaneLoop(function, lanes, valid is not None)
    em.functions[loop.name] = loop.text()
    places = {f"a{n}": _spilled(em, em.splat(a, lanes)) for n, a in enumerate(args)}
    if valid is not None:
        places["valid"] = _spilled(em, em.splat(valid, lanes))
    places |= {name: _memory(em, dtype, lanes) for name, dtype in loop.results}
    em.line(f"call void @{loop.name}({', '.join(f'ptr {p}' for p in places.values())})")
    if function.raises:
        failures.note(em.load(places["bad"], BOOL, lanes))
    return em.load(places["out"], e.dtype, lanes)


def _required(em: LlvmEmitter, symbol: str) -> ScalarFunction:
    function = FUNCTIONS[symbol]
    em.links[symbol] = with_operations(function.ir)
    em.declare(declaration(function))
    return function


def call_once(
    em: LlvmEmitter, symbol: str, dtype: np.dtype, args: Sequence[LlvmValue]
) -> tuple[LlvmValue, str]:
    """The function of a ``scalar_call`` on numbers in registers: its result, and its status."""
    function = _required(em, symbol)
    out, exception = _memory(em, dtype, 1), em.alloca("ptr", "exception")
    em.line(f"store ptr null, ptr {exception}")  # ``except`` looks whether there is one
    values = "".join(f", {memory_type(a.dtype)} {_as_byte(em, a)}" for a in args)
    status = em.value(f"call i32 @{function.symbol}(ptr {out}, ptr {exception}{values})")
    return em.load(out, dtype, 1), status


def _as_byte(em: LlvmEmitter, x: LlvmValue) -> str:
    return em.value(f"zext {x} to i8") if x.dtype == BOOL else x.text


def _memory(em: LlvmEmitter, dtype: np.dtype, lanes: int) -> str:
    return em.alloca(vector_type(memory_type(dtype), lanes), "lanes")


def _spilled(em: LlvmEmitter, x: LlvmValue) -> str:
    pointer = _memory(em, x.dtype, x.lanes)
    em.store(pointer, x)
    return pointer


@dataclass(frozen=True)
class LaneLoop:
    """``void name(arguments…, valid, out, bad)``: the scalar function for each lane.

    ``valid`` is there with ``masked`` only, ``bad`` if the function may raise; both are bytes.
    LLVM vectorises the loop where the function allows it.
    """

    function: ScalarFunction
    lanes: int
    masked: bool

    @property
    def name(self) -> str:
        return f"{self.function.symbol}.{'valid' if self.masked else 'all'}{self.lanes}"

    @property
    def results(self) -> list[tuple[str, np.dtype]]:
        bad = [("bad", BOOL)] if self.function.raises else []
        return [("out", self.function.result), *bad]

    def text(self) -> str:
        names = [f"a{n}" for n in range(len(self.function.arguments))]
        names += ["valid"] * self.masked + [name for name, _ in self.results]
        pointers = ", ".join(f"ptr noalias %{name}" for name in names)
        return "\n".join([
            f"define internal void @{self.name}({pointers}) nounwind {{",
            "entry:",
            "  %exception = alloca ptr",
            "  store ptr null, ptr %exception",
            "  br label %next",
            "next:",
            "  %k = phi i64 [ 0, %entry ], [ %after, %step ]",
            *self._prologue(),
            "call:",
            *self._call(),
            "  br label %step",
            "step:",
            "  %after = add i64 %k, 1",
            f"  %more = icmp ult i64 %after, {self.lanes}",
            "  br i1 %more, label %next, label %done",
            "done:",
            "  ret void",
            "}",
        ])

    def _at(self, name: str, kind: str) -> str:
        """An instruction: the address of this lane's element."""
        return f"  %{name}.k = getelementptr {kind}, ptr %{name}, i64 %k"

    def _prologue(self) -> list[str]:
        kind = memory_type(self.function.result)
        lines = [self._at("out", kind)]
        if self.function.raises:
            lines.append(self._at("bad", "i8"))
        if not self.masked:
            return [*lines, "  br label %call"]
        if self.function.raises:
            lines.append("  store i8 0, ptr %bad.k")
        zero = "0" if kind.startswith("i") else "0.0"
        return [*lines, f"  store {kind} {zero}, ptr %out.k", self._at("valid", "i8"),
                "  %byte = load i8, ptr %valid.k", "  %holds = icmp ne i8 %byte, 0",
                "  br i1 %holds, label %call, label %step"]

    def _call(self) -> list[str]:
        lines, values = [], ""
        for n, dtype in enumerate(self.function.arguments):
            kind = memory_type(dtype)
            lines += [self._at(f"a{n}", kind), f"  %x{n} = load {kind}, ptr %a{n}.k"]
            values += f", {kind} %x{n}"
        lines.append(f"  %status = call i32 @{self.function.symbol}(ptr %out.k, ptr %exception"
                     f"{values})")
        if not self.function.raises:
            return lines
        return [*lines, "  %failed = icmp ne i32 %status, 0", "  %one = zext i1 %failed to i8",
                "  store i8 %one, ptr %bad.k"]


def declaration(function: ScalarFunction) -> str:
    kinds = "".join(f", {memory_type(d)}" for d in function.arguments)
    return f"declare i32 @{function.symbol}(ptr, ptr{kinds})"
