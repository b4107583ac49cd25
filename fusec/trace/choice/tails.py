"""Items that branches append to lists that outlive the call: whether they do is up to data.

The tail of a list is a variable of branches, a tuple.  Where the sides of one differ in it, both
append a `Choice` of nothing and their own item; after the call the items of the other side are
dropped.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..guards.places import UNBOUND
from .choice import Choice


def present(items: Iterable[Any]) -> list[Any]:
    """The items that are appended after all."""
    return [x.orelse if is_open(x) else x for x in items if not (is_open(x) and x.test)]


def is_open(item: Any) -> bool:
    """Whether data decides that it is appended."""
    return type(item) is Choice and item.then is UNBOUND
