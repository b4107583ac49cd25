"""Draws of random generators as the text of a plan: ``rng.normal(...)`` itself, where nothing of
the call need be read anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fusec.ops.calls.host_calls import HostObject, context
from fusec.ops.calls.library import Bind, Constant, arguments_text


def draw_text(
    attrs: Mapping[str, Any], operands: Sequence[str], bind: Bind, constant: Constant,
    has_leaves: bool,
) -> str | None:
    """The draw that a `HostCall` of these operands is; None for other calls.

    ``has_leaves``: the text's ``leaves`` are those of the whole call.
    """
    target, form, named = attrs["target"], attrs["form"], attrs["named"]
    is_plain = attrs["action"] == "draw" and type(target) is HostObject and target.slot < 0
    if not is_plain or _holds_object(form) or _holds_object(named):
        return None
    if target.leaf < 0:
        receiver = bind("generator", target.held)
    else:
        leaves = "leaves" if has_leaves else f"{bind('context', context)}().leaves"
        receiver = f"{leaves}[{target.leaf}]"
    return f"{receiver}.{attrs['method']}({arguments_text(form, named, operands, constant)})"


def _holds_object(form: Any) -> bool:
    return type(form) is HostObject or (type(form) is tuple and any(map(_holds_object, form)))


__all__ = ["draw_text"]
