"""What a library has beside its functions: its state, a struct that is made, freed and set to its
first values; and the function of the caller's that runs tasks.

A nest is a function of a block and a range of tasks, as the one that runs them takes it; which
thread runs which tasks changes no bit.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...exported.parts import CField, layout
from ..emitter import LlvmEmitter
from .error_text import quoted


def state_names(name: str) -> list[str]:
    """The functions of a library's state."""
    return [f"{name}_new", f"{name}_free", f"{name}_reset"]


def state_text(name: str, fields: Sequence[CField]) -> tuple[LlvmEmitter, str]:
    """``name_new()``, ``name_free(state)`` and ``name_reset(state)``."""
    em = LlvmEmitter()
    for declaration in ("ptr @malloc(i64)", "void @free(ptr)",
                        "void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"):
        em.declare(f"declare {declaration}")
    data = image(fields)
    first = f"@{name}.first"
    return em, "\n".join([
        f'{first} = private unnamed_addr constant [{len(data)} x i8] c"{quoted(data)}", align 16',
        "",
        f"define void @{name}_reset(ptr %state) nounwind {{",
        f"  call void @llvm.memcpy.p0.p0.i64(ptr %state, ptr {first}, i64 {len(data)}, i1 false)",
        "  ret void", "}", "",
        f"define ptr @{name}_new() nounwind {{",
        f"  %state = call ptr @malloc(i64 {len(data)})",
        "  %none = icmp eq ptr %state, null", "  br i1 %none, label %end, label %set",
        "set:", f"  call void @{name}_reset(ptr %state)", "  br label %end",
        "end:", "  ret ptr %state", "}", "",
        f"define void @{name}_free(ptr %state) nounwind {{",
        "  call void @free(ptr %state)", "  ret void", "}"])


def image(fields: Sequence[CField]) -> bytes:
    """The struct with its first values."""
    data = bytearray(layout(fields)[0])
    for f in fields:
        data[f.offset: f.end] = f.value.tobytes()
    return bytes(data)


def parallel_name(name: str) -> str:
    """The function that sets the caller's."""
    return f"{name}_set_parallel"


def parallel_text(name: str) -> tuple[LlvmEmitter, str]:
    """``name_set_parallel(run, context)``, and what nests are called by: in the calling thread
    where nothing is set, and where there is one task."""
    run, context = f"@{name}.run", f"@{name}.context"
    return LlvmEmitter(), "\n".join([
        f"{run} = hidden global ptr null, align 8", f"{context} = hidden global ptr null, align 8",
        "", f"define void @{parallel_name(name)}(ptr %run, ptr %context) nounwind {{",
        f"  store atomic ptr null, ptr {run} seq_cst, align 8",
        f"  store atomic ptr %context, ptr {context} seq_cst, align 8",
        f"  store atomic ptr %run, ptr {run} seq_cst, align 8", "  ret void", "}", "",
        f"define hidden void @{name}.parallel(ptr %code, ptr %block, i64 %tasks, i64 %grain) "
        "nounwind {",
        "entry:", f"  %run = load atomic ptr, ptr {run} acquire, align 8",
        "  %none = icmp eq ptr %run, null", "  %few = icmp slt i64 %tasks, 2",
        "  %alone = or i1 %none, %few", "  br i1 %alone, label %here, label %there", "here:",
        "  call void %code(ptr %block, i64 0, i64 %tasks)", "  ret void", "there:",
        f"  %context = load atomic ptr, ptr {context} monotonic, align 8",
        "  call void %run(ptr %context, ptr %code, ptr %block, i64 %tasks)", "  ret void", "}"])
