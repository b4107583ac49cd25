"""Rows as nodes of ONNX, opset 21: the column ``export``, filled when this package is imported.

A rule is called with an `OnnxNodes`, a node and the names of its operands, and gives the name of
its result, or a list of those of several.
"""

from ..registry import all_ops
from . import (  # noqa: F401  # each fills the table
    control,
    elementwise,
    indices,
    integers,
    ordering,
    reductions,
    views,
)
from .protocol import OPSET, RULES, NotExportedError

for _row in all_ops():
    if _row.name in RULES:
        object.__setattr__(_row, "export", RULES[_row.name])

__all__ = ["OPSET", "NotExportedError"]
