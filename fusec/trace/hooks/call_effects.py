"""What calls do to objects: code that is called as it is may read, change or make them."""

from __future__ import annotations

import dataclasses
from types import FunctionType, MethodType
from typing import Any

from fusec.code_roles import ON_BEHALF

from ..convert.properties import class_attribute
from ..facts.code_names import HEAP_TYPE
from ..facts.policy import is_of_stdlib, stays_plain
from ..library.callees import runs_as_it_is
from ..objects.object_reads import note_read
from ..operands import texts
from ..places.kept_values import note_given
from ..rewrite.transformer import Where
from .attributes import AttributeHooks

FUSEC_ROLE = ON_BEHALF

_SHOWING = frozenset({repr, ascii, print})  # handlers of ours have Python make the text


def note_arguments(
    hooks: AttributeHooks, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """What code that is called as it is may do with what it is given."""
    if hooks.trace.active and runs_as_it_is(fn):
        if isinstance(fn, type):
            hooks.watch.constructing(fn)
        if hooks.table.find(fn) is None or fn in _SHOWING:
            hooks.watch.given(fn, args, kwargs)
    if isinstance(getattr(fn, "__self__", None), (dict, set, list)):
        texts.check_text(hooks.trace, *args)
    owner = fn.__self__ if isinstance(fn, MethodType) else None
    if owner is not None and is_of_stdlib(fn.__func__):
        hooks.watch.note_library_object(owner)
    if type(fn).__flags__ & HEAP_TYPE and is_of_stdlib(class_attribute(type(fn), "__call__")):
        hooks.watch.note_library_object(fn)
    note_read(hooks, fn, (owner, *args, *kwargs.values()))
    if owner is not None and not (
            type(fn.__func__) is FunctionType and not stays_plain(fn.__func__)):
        note_given(hooks.trace, owner, (*args, *kwargs.values()), hooks.loc)


def noted(
    hooks: AttributeHooks, where: Where, fn: Any, args: tuple[Any, ...], result: Any,
    makes_arrays: bool,
) -> Any:
    """The result, known as the trace's own, or as a namespace from outside."""
    if getattr(fn, "__name__", "") == "__new__" and type(result).__flags__ & HEAP_TYPE:
        hooks.note_made(result)
    if makes_arrays:
        for made in result if type(result) is tuple else (result,):
            hooks.note_local(made)
    elif isinstance(fn, type) or fn is dataclasses.replace:
        hooks.note_made(result)
    elif fn is vars and len(args) == 1:
        return hooks.namespace_of(where, args[0], result)
    elif fn is vars or fn is globals:
        _note_namespace(hooks, result, args)
    return result


def _note_namespace(hooks: AttributeHooks, found: Any, args: tuple[Any, ...]) -> None:
    """The variables of a module, or of an object that was there before the call."""
    if type(found) is dict and not any(id(x) in hooks.trace.local.objects for x in args):
        hooks.trace.world.reachable.reach(found)
