"""Names for generated code."""

from __future__ import annotations

import re


def identifier(text: str, otherwise: str = "x") -> str:
    """A name in C and Python that is close to the text; ``otherwise`` where nothing is left of it,
    and before a digit."""
    stem = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_") or otherwise
    return f"{otherwise[0]}{stem}" if stem[0].isdigit() else stem


def unused(name: str, taken: set[str], mark: str = "") -> str:
    """The name, with a number behind ``mark`` where it is taken; it is taken from now on."""
    result, count = name, 1
    while result in taken:
        count += 1
        result = f"{name}{mark}{count}"
    taken.add(result)
    return result
