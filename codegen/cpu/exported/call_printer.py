"""The plan of a call as an LLVM function: the work of Python's launcher, without Python.

``i64 f(sizes, arguments, results, workspace)``: the parameters are those of the C function.  It
fills in the argument block of each nest and of each branch or loop, and calls their machine code;
the result is 0, or the code of a check that failed.
"""

from __future__ import annotations

from ...structured.kernel_statements import RunKernel
from .call_text import CallText, parameters
from .nest_calls import run_kernel
from .program_calls import run_program


def print_call(text: CallText) -> str:
    """The function of a variant."""
    em, call_plan = text.em, text.variant.call_plan
    text.take_numbers()
    for step in call_plan.steps:
        if isinstance(step, RunKernel):
            run_kernel(text, step)
        else:
            run_program(text, step)
    for index, place in enumerate(call_plan.outputs):
        text.give(index, place)
    body, em.lines = em.lines, []
    text.workspace.entry(em, text.number)
    blocks, em.lines = em.lines, body
    return "\n".join([
        f"define i64 @{text.name}({parameters(text.function)}) nounwind {{", "entry:",
        f"  %cells = alloca [{max(call_plan.cells, 1)} x i64], align 16",
        f"  %words = alloca [{text.words} x i64], align 16",
        *em.allocas, *text.entry, *blocks, *body, "  ret i64 0", "}"])
