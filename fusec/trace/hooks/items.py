"""Items of containers and arrays, read and assigned: ``x[i]`` and ``x[i] = v``."""

from __future__ import annotations

from collections import defaultdict, deque
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from fusec.ir.sizes.symbolic_numbers import Symbolic
from fusec.ir.sizes.symbolic_sizes import is_symbolic, plain
from fusec.state.variable import Variable

from ..control.ranges import number_at
from ..control.sequences import table
from ..facts.constant_values import is_constant
from ..facts.policy import stays_plain
from ..facts.refusals import is_index
from ..guards.container_changes import CONTAINERS, may_be_held
from ..guards.process_state import ENVIRONMENT
from ..guards.side_effects import is_outside, note_change
from ..index import list_items
from ..library.size_arrays import grid_of_sizes
from ..lists.growing_lists import GrowingList
from ..lists.tables_of_loops import RefusedLists
from ..lists.whole_lists import settled
from ..lists.written_lists import WrittenList
from ..objects.chosen_objects import check_which
from ..objects.object_reads import note_hashed
from ..objects.tracing_hooks import UNHANDLED, Args, Named, Operands, TracingHooks
from ..operands import text_uses, texts
from ..operands.operands import as_traced
from ..operands.python_numbers import index_of, is_truth
from ..places.kept_values import note_given
from ..rewrite.transformer import Where
from ..values.array import TracedArray, copy_of
from ..values.assigned_names import AssignedLater
from ..values.handlers import any_traced, is_traced_inside
from ..values.operations import OPERATIONS
from . import protocols, special_methods
from .attributes import check_namespace, note_found
from .call_arguments import is_numpys

_INDEXED = (np.ndarray, np.generic, list, tuple, deque, str, range)
_STAND_INS = (GrowingList, WrittenList)
_READING: frozenset[Any] = frozenset({  # which take all items at once
    sum, min, max, any, all, list, tuple, sorted, np.array, np.asarray, np.sum, np.max, np.min})
_JOINERS = (type(np.r_), type(np.c_))


def _key(hooks: TracingHooks, obj: Any, key: Any) -> Any:
    """The key as an index; Python takes the value of bounds, and of an index into other
    objects."""
    texts.check_text(hooks.trace, key)
    text_uses.check_letters(hooks.trace, obj)
    if type(key) in (tuple, frozenset):
        text_uses.check_inside(hooks.trace, key)
    check_which(hooks.trace, "a key", key)
    if isinstance(obj, dict):
        note_hashed(hooks, key)
    if hooks.trace.builder.is_symbolic and type(obj) is not TracedArray and is_symbolic(key):
        return plain(key)
    if isinstance(obj, _INDEXED):
        key = special_methods.as_index(hooks, key)
    if not isinstance(obj, (np.ndarray, np.generic)) or type(key) is slice:
        hooks.took(key)
    elif type(key) is tuple:
        hooks.took(*(k for k in key if type(k) is slice))
    return key


def of_growing(hooks: TracingHooks, where: Where, obj: Any, key: Any) -> Any:
    if type(obj) not in _STAND_INS:
        refuse_growing(key)
        return UNHANDLED
    hooks.where = where
    return obj[key]


def assign_in_written(
    hooks: TracingHooks, where: Where, value: Any, obj: Any, key: Any
) -> Any:
    if type(obj) is not WrittenList:
        _note_refused(hooks, obj)
        return UNHANDLED
    hooks.where = where
    obj[key] = value
    return None


def _note_refused(hooks: TracingHooks, obj: Any) -> None:
    """An index that a loop will have needed as an array, if it is refused."""
    if type(obj) is list and hooks.trace.in_region:
        hooks.trace.part(RefusedLists)[id(obj)] = obj


def refuse_growing(key: Any) -> None:
    """As an index it is all of its items, so many as only the run knows."""
    for part in key if type(key) is tuple else (key,):
        if type(part) in _STAND_INS:
            raise part.refused("is an index")


def call_with_growing(hooks: TracingHooks, where: Where, fn: Any, args: Args, kwargs: Named) -> Any:
    """The program's own functions take one as it is; of others ``len`` only."""
    given = [x for x in (*args, *kwargs.values()) if type(x) in _STAND_INS]
    if not given or _is_programs(fn):
        return UNHANDLED
    if fn is len and len(args) == 1:
        return given[0].length()
    if type(args[0] if args else None) is WrittenList and len(given) == 1 and fn in _READING:
        return hooks.call(where, fn, args[0].now(), *args[1:], **kwargs)
    raise given[0].refused(f"is given to {getattr(fn, '__name__', fn)!s}")


def by_index(hooks: TracingHooks, where: Where, obj: Any, key: Any) -> Any:
    index = _key(hooks, obj, key)
    return UNHANDLED if index is key else Operands((obj, index))


def of_world(hooks: TracingHooks, where: Where, obj: Any, key: Any) -> Any:
    """An environment variable; notes a global that is read by name."""
    if type(obj) is ENVIRONMENT:
        return hooks.call(where, obj.__getitem__, key)
    if type(obj) is dict and type(key) is str and hooks.trace.active and "__builtins__" in obj:
        hooks.watch.note_global(obj, key)
    return UNHANDLED


def of_array(hooks: TracingHooks, where: Where, obj: Any, key: Any) -> Any:
    """A part of an array from outside, or where data says."""
    if hooks.is_from_outside(obj) or (
            isinstance(obj, (np.ndarray, np.generic)) and is_traced_inside(key)):
        return as_traced(hooks.trace, obj)[key]
    if (obj is np.mgrid or obj is np.ogrid) and _has_symbolic_ends(key):
        return grid_of_sizes(hooks.trace, obj, key)
    if isinstance(obj, _JOINERS) and is_traced_inside(key):
        # ``np.r_[...]`` and ``np.c_[...]``: NumPy's own reading of the key.
        return OPERATIONS.run_source(hooks.trace, type(obj).__getitem__, None, (obj, key), {})
    return UNHANDLED


def _has_symbolic_ends(key: Any) -> bool:
    slices = key if type(key) is tuple else (key,)
    return all(type(s) is slice for s in slices) and any(
        type(end) is Symbolic for s in slices for end in (s.start, s.stop, s.step))


def at_position(hooks: TracingHooks, where: Where, obj: Any, key: Any) -> Any:
    """The item of a list where data says."""
    if type(key) is not TracedArray or type(obj) not in (list, tuple) or not (
            is_index(key) or is_truth(key)) or is_constant(key.value):
        return UNHANDLED
    index = key if key.dtype.kind in "iu" else index_of(hooks.trace, key)
    numbers = table(hooks.trace, obj)
    if numbers is not None:
        return number_at(numbers, index)
    item = list_items.item_at(hooks.trace, obj, index)
    if item is not None:
        return item
    _note_refused(hooks, obj)
    return UNHANDLED if index is key else Operands((obj, index))


def read(hooks: TracingHooks, where: Where, obj: Any, key: Any) -> Any:
    """The item that Python finds."""
    if isinstance(obj, defaultdict) and not is_traced_inside(key) and key not in obj:
        hooks.effects.check_change(obj, "a key that a defaultdict lacks", hooks.loc)
    result = special_methods.getitem(hooks, where, obj, key)
    if id(obj) in hooks.trace.local.flats:
        return copy_of(result) if type(result) is TracedArray and result.ndim else result
    note_found(hooks, where, result)
    return hooks.note_local(result) if type(obj) is np.ndarray or isinstance(
        obj, np.generic) else result


def assign_by_index(hooks: TracingHooks, where: Where, value: Any, obj: Any, key: Any) -> Any:
    refuse_growing(key)
    index = _key(hooks, obj, key)
    if type(value) is Symbolic and type(obj) is np.ndarray and obj.dtype.hasobject:
        return Operands((value.pinned(), obj, index))
    return UNHANDLED if index is key else Operands((value, obj, index))


def assign_object(hooks: TracingHooks, where: Where, value: Any, obj: Any, key: Any) -> Any:
    """The value of an object that is assigned to elements of an array."""
    if not hooks.trace.active or not protocols.is_object(value) or not protocols.is_array(obj):
        return UNHANDLED
    return Operands((protocols.element(hooks, value, obj.dtype), obj, key))


def assign_in_array(hooks: TracingHooks, where: Where, value: Any, obj: Any, key: Any) -> Any:
    """A part of an array from outside, of its elements in a row, or of one that becomes traced."""
    if id(obj) in hooks.trace.local.flats and not obj.is_writeable:
        x = hooks.trace.local.flats[id(obj)][1]
        elements = copy_of(x, "C").reshape(-1)
        elements[key] = value
        x[...] = elements.reshape(x.shape)
        return None
    if isinstance(obj, Variable):
        obj[key] = value
        return None
    if hooks.is_from_outside(obj) or (type(obj) is np.ndarray and (
            any_traced((value, key), {}) or hooks.trace.local.memory.must_trace(obj))):
        as_traced(hooks.trace, obj)[key] = value
        return None
    return UNHANDLED


def assign_in_container(hooks: TracingHooks, where: Where, value: Any, obj: Any, key: Any) -> Any:
    """Note a change; Python makes it, but for a position that only the run knows."""
    trace, effects = hooks.trace, hooks.effects
    check_namespace(hooks, where, obj)
    effects.check_one(obj, hooks.loc)
    if type(obj) is ENVIRONMENT and trace.active:
        note_change(trace, "a change of os.environ")
    if type(obj) is list and list_items.is_position(key) and _put_at(hooks, obj, key, value):
        return None
    if _is_variable(hooks, obj, key, value):
        return UNHANDLED
    effects.check_change(obj, "assigning to an item of a container", hooks.loc)
    note_given(trace, obj, (value,), hooks.loc)
    if trace.active and is_traced_inside(value) and _outlives(hooks, obj):
        if _is_written_array(hooks, value, obj, key):
            return None
        if trace.world.containers.may_become(obj):
            raise AssignedLater(containers=[trace.world.containers.titled(obj)])
    trace.local.changes += 1
    return UNHANDLED


def _put_at(hooks: TracingHooks, items: list[Any], key: TracedArray, value: Any) -> bool:
    """``items[key] = value`` at a position that only the run knows."""
    if is_constant(key.value) or not items:
        return False
    trace, containers = hooks.trace, hooks.trace.world.containers
    if containers.may_become(items):
        raise AssignedLater(containers=[containers.titled(items)])
    # Those that the call has appended are variables, too, from when a branch or loop writes them.
    is_variable = bool(items) and all(_is_variable(hooks, items, k) for k in range(len(items)))
    if trace.in_region and not is_variable and (
            hooks.effects.is_older(items) or _outlives(hooks, items)):
        return False
    return list_items.put_at(trace, items, key, value)


def _is_container_in(obj: Any, key: Any) -> bool:
    try:
        return may_be_held(obj[key])
    except (LookupError, TypeError):
        return False


def _is_variable(hooks: TracingHooks, obj: Any, key: Any, value: Any = None) -> bool:
    """Whether it is an item of a list or dict that outlives the call; where data decides
    whether it is assigned the trace begins anew if that comes as a surprise."""
    trace, containers = hooks.trace, hooks.trace.world.containers
    if not trace.active or not may_be_held(obj):
        return False
    if trace.in_region and (may_be_held(value) or _is_container_in(obj, key)):
        return False  # which of two containers lies there would be up to data
    if containers.takes_item(obj, key):
        return True
    if trace.in_region and hooks.effects.is_older(obj) and containers.takes(obj, key):
        return True
    if trace.in_region and containers.may_become(obj) and not is_traced_inside(key) and (
            key in obj if isinstance(obj, dict) else type(key) is int):
        raise AssignedLater(containers=[containers.titled(obj)])
    return False


def _outlives(hooks: TracingHooks, obj: Any) -> bool:
    """Whether it is a container that was there before the call."""
    return isinstance(obj, CONTAINERS) and is_outside(hooks.trace, obj)


def _is_written_array(hooks: TracingHooks, value: Any, obj: Any, key: Any) -> bool:
    """``TABLE["w"] += x`` changed the array that lies there."""
    held = obj[key] if not isinstance(obj, dict) or key in obj else None
    return type(held) is np.ndarray and type(value) is TracedArray and (
        as_traced(hooks.trace, held).storage is value.storage and not value.steps)


def delete(hooks: TracingHooks, where: Where, obj: Any, key: Any) -> None:
    hooks.where = where
    if type(obj) is ENVIRONMENT and hooks.trace.active:
        note_change(hooks.trace, "a change of os.environ")
    hooks.effects.check_change(obj, "deleting an item of a container", hooks.loc)
    special_methods.delitem(hooks, where, obj, key)


def change_by_method(hooks: TracingHooks, where: Where, fn: Any, args: Args, kwargs: Named) -> Any:
    """A call that appends to a list, or updates a dict, that branches and loops carry."""
    trace, containers = hooks.trace, hooks.trace.world.containers
    if (not kwargs and hooks.effects.takes(fn, args)) or _updates(hooks, where, fn, args, kwargs):
        return None
    if settled(trace, fn, args, kwargs):
        return Operands((fn, (hooks.call(where, np.asarray, args[0]), *args[1:]), kwargs))
    containers.uses.note_call(fn)
    if not trace.in_region or not containers.takes_appended(fn):
        return UNHANDLED
    fn(*args, **kwargs)
    return None


def _updates(hooks: TracingHooks, where: Where, fn: Any, args: Args, kwargs: Named) -> bool:
    """``d.update(key=value)`` as assignments to items that are there, where data decides."""
    owner = getattr(fn, "__self__", None)
    if not hooks.trace.in_region or type(owner) is not dict or fn.__name__ != "update" or (
            len(args) > 1 or not all(type(x) is dict for x in args)):
        return False
    items = {**(args[0] if args else {}), **kwargs}
    if not items or not all(key in owner for key in items):
        return False
    for key, value in items.items():
        hooks.setitem(where, value, owner, key)
    return True


def _is_programs(fn: Any) -> bool:
    function = fn.__func__ if type(fn) is MethodType else fn
    return type(function) is FunctionType and not stays_plain(function) and (
        not is_numpys(function))
