"""Results of formulas that choose by their operands, with these, for derivatives.

``where(x == 0, 0, x * log(y))`` has the right value at each point, and the wrong derivative where a
point has a side of its own: the slope of that side is none of the function.  So a node of a row
here has the formula's result and then the function's operands, by which
`fusec.ops.derivatives.formulas` differentiates.
"""

from __future__ import annotations

from typing import Any

from fusec.ir import Node, TensorType, Value

from .admission.admission import PLAIN
from .build import Builder
from .registry import Op, get, register

# By the name of the function, NumPy's or ``scipy.special``'s: the row, and its number of operands.
FORMULAS: dict[str, tuple[str, int]] = {
    "power": ("ChosenPow", 2), "logaddexp": ("LogAddExp", 2), "logaddexp2": ("LogAddExp2", 2),
    "xlogy": ("XLogY", 2), "xlog1py": ("XLog1PY", 2), "entr": ("Entr", 1),
    "rel_entr": ("RelEntr", 2), "kl_div": ("KlDiv", 2), "pseudo_huber": ("PseudoHuber", 2),
}


def _infer(types: Any, attrs: Any) -> tuple[TensorType, ...]:
    return get("Pos").infer(types[:1], {})  # which it becomes


def _decompose(builder: Builder, node: Node) -> list[Value]:
    return [builder.emit("Pos", node.inputs[0])]  # which may be a result beside it


for _function, (_name, _count) in FORMULAS.items():
    register(Op(
        name=_name, kind="composite", arity=1 + _count, admits=PLAIN, infer=_infer,
        decompose=_decompose, takes="fc" if _name == "ChosenPow" else "f",
        reference=lambda y, *operands: y,
        doc=f"Its first operand, which is {_function} of the others.",
    ))
