"""Elementwise ops: of operands whose lanes are a first axis they are what they are."""

from __future__ import annotations

from typing import Any

from fusec.ir import Value

from .. import registry
from .protocol import Alone, LaneSite, declare


def elementwise(site: LaneSite, **more: Any) -> list[Value]:
    """The op of operands that broadcast in each lane as they did; with these attributes, too."""
    rank = max((v.type.rank for v in site.node.inputs), default=0)
    operands = [site.aligned(k, rank) for k in range(len(site.given))]
    attrs = {name: x for name, x in site.attrs.items() if name != "kind"}
    return [site.emit(site.node.op, *operands, **{**attrs, **more})]


def _check(site: LaneSite) -> list[Value]:
    """The check of all lanes' indices, whose error names the lane."""
    return elementwise(site, lanes=site.attrs.get("lanes", 0) + 1)


_OWN = {"Verify", "Fma"}  # made by passes, after graphs are batched
_CHECKS = ("CheckIndex", "BoundsCheck")
declare(elementwise, *(row.name for row in registry.all_ops()
                       if row.kind == "elementwise" and row.name not in {*_OWN, *_CHECKS}))
declare(_check, *_CHECKS)
declare(Alone("a pass makes it, after graphs are batched"), *_OWN)
