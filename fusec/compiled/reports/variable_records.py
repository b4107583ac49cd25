"""The Variables of a compiled function, as a table and as data."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from fusec.core.display.amounts import bytes_text, count_text
from fusec.ir import TensorType
from fusec.ir.device_names import DeviceName
from fusec.state.variable import Variable


class VariableRecord(NamedTuple):
    """A Variable: its name in messages, its type (``f64[3,4]``), bytes, whole device name,
    Euclidean norm now (NaN where an element is), whether it is trainable, and whether the function
    assigns it."""

    title: str
    type: str
    nbytes: int
    device: str
    norm: float
    trainable: bool
    is_assigned: bool

    @property
    def words(self) -> tuple[str, ...]:
        """Its row of the table."""
        uses = ["assigned" if self.is_assigned else "read",
                *([] if self.trainable else ["not trainable"])]
        return (self.title, self.type, bytes_text(self.nbytes), f"norm {self.norm:.4g}",
                DeviceName.parse(self.device).short, ", ".join(uses))


def variable_records(
    variables: Sequence[Variable], assigned: Collection[int]
) -> list[VariableRecord]:
    """Records of these, with their values of now; ``assigned``: `id` s of those that the function
    assigns."""
    return [VariableRecord(v.title, str(TensorType(v.dtype, v.shape)), v.nbytes, v.device, _norm(v),
                           v.trainable, id(v) in assigned) for v in variables]


def _norm(variable: Variable) -> float:
    value = np.asarray(variable).astype(np.complex128 if variable.dtype.kind == "c" else float)
    with np.errstate(over="ignore"):
        return float(np.linalg.norm(value.ravel()))


def table(records: Sequence[VariableRecord]) -> list[str]:
    """A line each, in columns, and their bytes in all."""
    rows = [record.words for record in records]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip()
             for row in rows]
    total = sum(record.nbytes for record in records)
    return [*lines, f"{count_text(len(rows), 'Variable')}, {bytes_text(total)}"] if rows else []
