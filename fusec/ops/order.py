"""How comparisons relate to each other."""

from __future__ import annotations

from fusec.core.records import dataclass


@dataclass(frozen=True)
class Order:
    """A comparison: the same with operands exchanged, the same without equality (if it orders), and
    whether it holds where the left operand is the smaller one, and the greater one."""

    swapped: str
    strict: str
    below: bool
    above: bool


ORDERS = {
    "Less": Order("Greater", "Less", True, False),
    "LessEqual": Order("GreaterEqual", "Less", True, False),
    "Greater": Order("Less", "Greater", False, True),
    "GreaterEqual": Order("LessEqual", "Greater", False, True),
    "Equal": Order("Equal", "", False, False),
    "NotEqual": Order("NotEqual", "", True, True),
}
