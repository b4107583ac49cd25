"""Definitions of the scalar operations that the user's scalar functions call: see `scalar_ir`."""

from __future__ import annotations

import functools
import re

from ...machine_code.scalar_ir import CalledOp, called_ops
from ..emitter import LlvmEmitter, LlvmValue
from .scalar_ops import emit_operation


@functools.lru_cache(maxsize=256)
def with_operations(ir: str) -> str:
    """The IR of a function with the definitions of all operations that it calls."""
    known = set(re.findall(r"^declare .*?@([\w.]+)\(", ir, re.MULTILINE))
    functions: dict[str, str] = {}
    declarations: set[str] = set()
    for called in called_ops(ir):
        em = LlvmEmitter()
        functions[called.symbol] = _definition(em, called)
        functions.update(em.functions)
        declarations |= em.declarations
    missing = [d for d in sorted(declarations) if _declared(d) not in known]
    return "\n".join([ir, *missing, *functions.values(), ""])


def _declared(declaration: str) -> str:
    return declaration.partition("@")[2].partition("(")[0]


def _definition(em: LlvmEmitter, called: CalledOp) -> str:
    args = [LlvmValue(f"%x{n}", d, 1) for n, d in enumerate(called.arguments)]
    result = emit_operation(em, called.op, called.result, args)
    head = (f"define internal {result.type} @{called.symbol}({', '.join(map(str, args))}) "
            f"alwaysinline nounwind memory(none) {{")
    return "\n".join([head, "entry:", *em.allocas, *em.lines, f"  ret {result}", "}"])
