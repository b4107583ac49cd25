"""Amounts as people read them."""

from __future__ import annotations

import math
from typing import Any


def bytes_text(count: Any) -> str:
    """Exact bytes below 10 kB, then three digits: ``800 B``, ``80.0 kB``, ``1.60 GB``."""
    if not isinstance(count, int) or count < 10_000:
        return f"{count} B"
    digits = math.log10(count * 1.0005)
    power = min(int(digits) // 3, 4)
    places = max(0, 2 - (int(digits) - 3 * power))
    return f"{count / 10 ** (3 * power):.{places}f} {('kB', 'MB', 'GB', 'TB')[power - 1]}"


def count_text(number: int, noun: str, many: str = "") -> str:
    """A number with its noun, whose plural may be given: ``1 nest``, ``2 nests``."""
    return f"{number} {noun if number == 1 else many or noun + 's'}"
