"""Items of containers and arrays, read and assigned: the `Hooks` of ``x[i]`` and ``x[i] = v``."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import Any

import numpy as np

from ..control.ranges import number_at
from ..control.sequences import table
from ..facts.constant_values import constant_value
from ..guards.container_changes import CONTAINERS, may_be_held
from ..guards.process_state import ENVIRONMENT
from ..guards.side_effects import is_outside, note_change
from ..index import list_items
from ..operands import texts
from ..operands.operands import as_traced
from ..operands.python_numbers import index_of
from ..places.kept_values import note_given
from ..rewrite.transformer import Where
from ..values.array import TracedArray, copy_of, is_index
from ..values.assigned_names import AssignedLater
from ..values.handlers import any_traced, is_traced_inside
from ..values.operations import OPERATIONS
from .attributes import AttributeHooks

_INDEXED = (np.ndarray, np.generic, list, tuple, deque, str, range)
_JOINERS = (type(np.r_), type(np.c_))


class ItemHooks(AttributeHooks):
    """Hooks of items, of one trace."""

    def setitem(self, where: Where, value: Any, obj: Any, key: Any) -> None:
        self.where = where
        texts.check_text(self.trace, key)
        if isinstance(obj, _INDEXED):
            key = self.as_index(key)
        self._took_key(obj, key)
        if id(obj) in self.trace.local.flats and not obj.is_writeable:
            _set_flat(self.trace.local.flats[id(obj)][1], key, value)
            return
        if self.is_from_outside(obj) or (type(obj) is np.ndarray and (
                any_traced((value, key), {}) or self.trace.local.memory.must_trace(obj))):
            as_traced(self.trace, obj)[key] = value
            return
        self.check_namespace(where, obj)
        self.effects.check_one(obj, self.loc)
        if type(obj) is ENVIRONMENT and self.trace.active:
            note_change(self.trace, "a change of os.environ")
        if type(obj) is list and list_items.is_position(key) and self._put_at(obj, key, value):
            return
        if self._is_variable(obj, key, value):
            super().setitem(where, value, obj, key)
            return
        self.effects.check_change(obj, "assigning to an item of a container", self.loc)
        note_given(self.trace, obj, (value,), self.loc)
        if self.trace.active and is_traced_inside(value) and self._outlives(obj):
            if self._is_written_array(value, obj, key):
                return
            if self.trace.world.containers.may_become(obj):
                raise AssignedLater(containers=[self.trace.world.containers.titled(obj)])
        self.trace.local.changes += 1
        super().setitem(where, value, obj, key)

    def _took_key(self, obj: Any, key: Any) -> None:
        """Python takes the value of bounds, and of an index into what is no array."""
        if not isinstance(obj, (np.ndarray, np.generic)) or type(key) is slice:
            self.took(key)
        elif type(key) is tuple:
            self.took(*(k for k in key if type(k) is slice))

    def _put_at(self, items: list[Any], key: TracedArray, value: Any) -> bool:
        """``items[key] = value`` at a position that only the run knows."""
        if constant_value(key.value) is not None or not items:
            return False
        if self.trace.world.containers.may_become(items):
            raise AssignedLater(containers=[self.trace.world.containers.titled(items)])
        is_variable = self._is_variable(items, 0)  # as all of them are then
        if self.trace.in_region and not is_variable and (
                self.effects.is_older(items) or self._outlives(items)):
            return False
        return list_items.put_at(self.trace, items, key, value)

    @staticmethod
    def _is_container_in(obj: Any, key: Any) -> bool:
        try:
            return may_be_held(obj[key])
        except (LookupError, TypeError):
            return False

    def _is_variable(self, obj: Any, key: Any, value: Any = None) -> bool:
        """Whether it is an item of a list or dict that outlives the call; where data decides
        whether it is assigned the trace begins anew if that comes as a surprise."""
        containers = self.trace.world.containers
        if not self.trace.active or not may_be_held(obj):
            return False
        if self.trace.in_region and (may_be_held(value) or self._is_container_in(obj, key)):
            return False  # which of two containers lies there would be up to data
        if containers.has_item(obj, key):
            return True
        if self.trace.in_region and self.effects.is_older(obj) and containers.takes(obj, key):
            return True
        if self.trace.in_region and containers.may_become(obj) and not is_traced_inside(key) and (
                key in obj if isinstance(obj, dict) else type(key) is int):
            raise AssignedLater(containers=[containers.titled(obj)])
        return False

    def _outlives(self, obj: Any) -> bool:
        """Whether it is a container that was there before the call."""
        return isinstance(obj, CONTAINERS) and is_outside(self.trace, obj)

    def _is_written_array(self, value: Any, obj: Any, key: Any) -> bool:
        """``TABLE["w"] += x`` changed the array that lies there."""
        held = obj[key] if not isinstance(obj, dict) or key in obj else None
        return type(held) is np.ndarray and type(value) is TracedArray and (
            as_traced(self.trace, held).storage is value.storage and not value.steps)

    def delitem(self, where: Where, obj: Any, key: Any) -> None:
        self.where = where
        if type(obj) is ENVIRONMENT and self.trace.active:
            note_change(self.trace, "a change of os.environ")
        self.effects.check_change(obj, "deleting an item of a container", self.loc)
        super().delitem(where, obj, key)

    def getitem(self, where: Where, obj: Any, key: Any) -> Any:
        self.where = where
        texts.check_text(self.trace, key)
        if isinstance(obj, _INDEXED):
            key = self.as_index(key)
        self._took_key(obj, key)
        if type(obj) is ENVIRONMENT:
            return self.call(where, obj.__getitem__, key)
        if type(obj) is dict and type(key) is str and self.trace.active and "__builtins__" in obj:
            self.watch.note_global(obj, key)
        if self.is_from_outside(obj) or (
                isinstance(obj, (np.ndarray, np.generic)) and is_traced_inside(key)):
            return as_traced(self.trace, obj)[key]
        if type(obj) in (list, tuple) and type(key) is TracedArray and (
                is_index(key)) and constant_value(key.value) is None:
            key = key if key.dtype.kind in "iu" else index_of(self.trace, key)
            numbers = table(self.trace, obj)
            if numbers is not None:
                return number_at(numbers, key)
            found = list_items.item_at(self.trace, obj, key)
            if found is not None:
                return found
        if isinstance(obj, defaultdict) and not is_traced_inside(key) and key not in obj:
            self.effects.check_change(obj, "a key that a defaultdict lacks", self.loc)
        if isinstance(obj, _JOINERS) and is_traced_inside(key):
            # ``np.r_[...]`` and ``np.c_[...]``: NumPy's own reading of the key.
            return OPERATIONS.run_source(self.trace, type(obj).__getitem__, None, (obj, key), {})
        result = super().getitem(where, obj, key)
        if id(obj) in self.trace.local.flats:
            return copy_of(result) if type(result) is TracedArray and result.ndim else result
        self._note_found(where, result)
        return self.note_local(result) if type(obj) is np.ndarray or isinstance(
            obj, np.generic) else result

    def updates_items(
        self, where: Where, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> bool:
        """``d.update(key=value)`` as assignments to items that are there, where data decides."""
        owner = getattr(fn, "__self__", None)
        if not self.trace.in_region or type(owner) is not dict or fn.__name__ != "update" or (
                len(args) > 1 or not all(type(x) is dict for x in args)):
            return False
        items = {**(args[0] if args else {}), **kwargs}
        if not items or not all(key in owner for key in items):
            return False
        for key, value in items.items():
            self.setitem(where, value, owner, key)
        return True


def _set_flat(x: TracedArray, key: Any, value: Any) -> None:
    """``x.flat[key] = value`` of an array that is not contiguous."""
    elements = copy_of(x, "C").reshape(-1)
    elements[key] = value
    x[...] = elements.reshape(x.shape)
