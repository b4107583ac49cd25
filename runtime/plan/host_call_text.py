"""Host calls as the text of a plan, where nothing of the call need be read anew: draws of random
generators, and what people are shown (lines, warnings, summaries)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fusec.ops.calls.host_calls import SHOWN, HostObject, context, show_once
from fusec.ops.calls.library import Bind, Constant, arguments_text


def host_call_text(
    attrs: Mapping[str, Any], operands: Sequence[str], bind: Bind, constant: Constant,
    has_leaves: bool,
) -> str | None:
    """What a `HostCall` of these operands calls; None where its form must be read at each call.

    ``has_leaves``: the text's ``leaves`` are those of the whole call.
    """
    target, action = attrs["target"], attrs["action"]
    is_plain = type(target) is HostObject and target.slot < 0 and not (
        _holds_object(attrs["form"]) or _holds_object(attrs["named"]))
    if not is_plain or (action != "draw" and not (action in SHOWN and target.leaf < 0)):
        return None
    arguments = arguments_text(attrs["form"], attrs["named"], operands, constant)
    if action == "draw":
        return f"{_generator(target, bind, has_leaves)}.{attrs['method']}({arguments})"
    shown = bind("shown", print if action == "print" else target.held)
    return f"{bind('show_once', show_once)}({bind('context', context)}(), {shown}, {arguments})"


def _generator(target: HostObject, bind: Bind, has_leaves: bool) -> str:
    if target.leaf < 0:
        return bind("generator", target.held)
    leaves = "leaves" if has_leaves else f"{bind('context', context)}().leaves"
    return f"{leaves}[{target.leaf}]"


def _holds_object(form: Any) -> bool:
    return type(form) is HostObject or (type(form) is tuple and any(map(_holds_object, form)))


__all__ = ["host_call_text"]
