"""Operations of float32 that a program permits a GPU to estimate: a few instructions each.

The emulated device has no such instructions, and computes as without the permission.  Errors are in
docs/accuracy.md.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...kernels.loop_ir import ESTIMATED, Expr
from .emitter import CudaEmitter, CudaValue
from .scalar_ops import operation_text

_FUNCTIONS = {
    "div": "about_quotient", "sqrt": "about_root", "exp": "about_exp", "exp2": "about_exp2",
    "log": "about_log", "log2": "about_log2", "log10": "about_log10", "sin": "about_sin",
    "cos": "about_cos", "tan": "about_tan", "tanh": "about_tanh",
}


def estimated(em: CudaEmitter, e: Expr, values: Mapping[int, CudaValue]) -> str:
    """An operation as an expression; ``values`` has its operands, by id."""
    args = [values[id(a)] for a in e.args]
    exact = operation_text(em, e.op, e.dtype, args)
    if e.op == "pow":  # estimates are for positive bases
        return f"FUSEC_ESTIMATE(is_ordinary_power({args[0]}, {args[1]}) ? " \
               f"about_power({args[0]}, {args[1]}) : {exact}, {exact})"
    below = e.args[-1]
    if e.op == "div" and below.op == "sqrt" and below.attr == ESTIMATED:
        rough = f"{args[0]} * about_inverse_root({values[id(below.args[0])]})"
    else:
        rough = f"{_FUNCTIONS[e.op]}({', '.join(map(str, args))})"
    return f"FUSEC_ESTIMATE({rough}, {exact})"
