"""Parts of complex numbers, and which ops on complex values are fused.

A complex value in the loop IR is a pair of real expressions, so an op on complex values is fused
when ``complex_pairs`` gives the pair.  Everything else calls NumPy: the pass
``complex_calls`` turns it into a `NumPy` node, whose attrs name the op and hold its attributes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fusec.ir import Node, TensorType

from . import registry
from .admission.admission import BY_PASSES, PLAIN, Admission
from .admission.row_admissions import WITH_PART
from .python_operators import PYTHON_OPERATORS
from .registry import Op, Types, register
from .rows.elementwise import infer_same, result_type

FUSED_ON_COMPLEX = frozenset({
    "Add", "Sub", "Mul", "Div", "Neg", "Pos", "Square", "Conj", "Abs", "Real", "Imag", "WithReal",
    "WithImag", "Equal", "NotEqual", "IsNan", "IsInf", "IsFinite", "Where", "Cast", "Copy", "Sum",
    "Mean",
})
PARTS = ("Real", "Imag")  # views of them, which `WithReal` and `WithImag` write
_COMBINED_BY_PARTS = frozenset({"", "Add", "Sub"})  # of scans and scatters
_INDEXED = frozenset({"view", "piecewise", "gather", "call"})


def is_complex(type_: TensorType) -> bool:
    """Whether values of this type are complex numbers."""
    return type_.dtype.kind == "c"


def component(dtype: np.dtype) -> np.dtype:
    """The dtype of the parts: float32 of complex64, float64 of complex128."""
    return np.dtype(f"f{dtype.itemsize // 2}")


def needs_numpy(node: Node) -> bool:
    """Whether the node computes with complex values in a way that no kernel does."""
    if not any(map(is_complex, (*(v.type for v in node.inputs), *node.types))):
        return False
    if node.op in FUSED_ON_COMPLEX or node.op in ("Input", "Const"):
        return False
    if node.attrs.get("combine", "") not in _COMBINED_BY_PARTS:
        return True
    if node.op == "Scan":
        return False
    kind = registry.get(node.op).kind
    return kind not in _INDEXED and kind != "extern"


def _infer_part(types: Sequence[TensorType], attrs: Mapping[str, Any]) -> Types:
    return result_type(types, component(types[0].dtype), types[0].kind)


def _infer_whole(types: Sequence[TensorType], attrs: Mapping[str, Any]) -> Types:
    kind = None if any(t.shape for t in types) else types[0].kind
    return result_type(types, types[0].dtype, kind)


def _with_real(x: Any, part: Any) -> Any:
    result = np.array(np.broadcast_arrays(x, part)[0])
    result.real = part
    return result[()]


def _with_imag(x: Any, part: Any) -> Any:
    result = np.array(np.broadcast_arrays(x, part)[0])
    result.imag = part
    return result[()]


def _numpy_reference(*arrays: Any, of: str, attrs: tuple, results: Any) -> Any:
    if results[0].is_weak and of in PYTHON_OPERATORS:
        return PYTHON_OPERATORS[of](*[np.asarray(a).item() for a in arrays])
    with np.errstate(all="ignore"):
        result = registry.get(of).reference(*arrays, **dict(attrs))
    return result if type(result) is not np.ndarray or result.ndim else result[()]


def _part(
    name: str, infer: Any, reference: Any, arity: int = 1, admits: Admission = PLAIN,
    **columns: Any,
) -> None:
    register(Op(name=name, kind="elementwise", arity=arity, scalar="pos", infer=infer, takes="c",
                reference=reference, doc="Of complex operands.", admits=admits, **columns))


_part("Real", _infer_part, lambda x: np.real(np.asarray(x))[()])
_part("Imag", _infer_part, lambda x: np.imag(np.asarray(x))[()])
_part("Conj", infer_same, np.conjugate)
_part("WithReal", _infer_whole, _with_real, 2, WITH_PART, mixes_dtypes=True)
_part("WithImag", _infer_whole, _with_imag, 2, WITH_PART, mixes_dtypes=True)
register(Op(
    name="NumPy", kind="extern", infer=lambda types, attrs: tuple(attrs["results"]),
    reference=_numpy_reference, cost=1000.0, takes="c", admits=BY_PASSES,
    doc="An op that no kernel computes in these dtypes; attrs of: its name, attrs: (name, value) "
        "pairs, results: their types.",
))
