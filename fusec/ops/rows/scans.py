"""Scans: every partial result of a reduction along one axis, in NumPy's sequential order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fusec.ir import TensorType

from .. import registry
from ..admission.row_admissions import SCAN
from ..registry import Op, Types, register

# The binary ops that may be scanned, with the value that changes no other (None: it depends on the
# dtype).  -0.0 rather than 0.0: adding it keeps a first element that is -0.0.
IDENTITIES: dict[str, Any] = {
    "Add": -0.0, "Mul": 1, "Maximum": None, "Minimum": None, "LogicalAnd": True, "LogicalOr": False,
}


def start_of(combine: str, dtype: np.dtype) -> Any:
    """The start of a scan: combining it with an element gives the element."""
    if IDENTITIES[combine] is not None:
        return dtype.type(IDENTITIES[combine])
    if dtype.kind == "b":
        return dtype.type(combine == "Minimum")
    if dtype.kind == "f":
        return dtype.type(-np.inf if combine == "Maximum" else np.inf)
    info = np.iinfo(dtype)
    return dtype.type(info.min if combine == "Maximum" else info.max)


def infer_scan(types: Sequence[TensorType], attrs: Mapping[str, Any]) -> Types:
    if attrs["combine"] not in IDENTITIES:
        raise TypeError(f"Scan: {attrs['combine']} has no identity")
    return (TensorType(types[0].dtype, types[0].shape, "array"),)


def scan_reference(x: Any, combine: str, axes: Sequence[int]) -> Any:
    ufunc: Any = registry.get(combine).ufunc
    return ufunc.accumulate(x, axis=axes[0], dtype=np.asarray(x).dtype)


register(Op(
    name="Scan", kind="scan", arity=1, infer=infer_scan, reference=scan_reference, cost=4.0,
    raises="never", numpy=(np.cumsum, np.cumprod), admits=SCAN,
    doc="Element i combines elements 0 to i along attrs axes (one), in order; combine: a binary "
        "op.",
))
