"""CPython's version tag of a dictionary: a number that no other state of any dictionary has.

While the tag is the same nothing was inserted, replaced or removed, so a guard that has compared
the items need not compare them again.  The tag is no part of Python's interface: whether this
Python keeps it reliably is tried when it is first needed.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterator
from ctypes import c_uint64
from typing import Any

from fusec.core.records import dataclass, field

_OFFSET = 24  # behind the object's header and the number of items
_Words = c_uint64 * 3  # the version, the table of keys, and that of values which objects share
_ROUNDS = 40  # stores by one line, after which the interpreter has specialised it


def version_of(mapping: dict[Any, Any]) -> int:
    """The version tag; 0 where there is none.

    Python 3.13 may store attribute values in the object: then they change without a new tag.
    """
    return version_now(mapping) if has_versions() else 0


def version_now(mapping: dict[Any, Any]) -> int:
    """`version_of` for callers that have asked `has_versions`."""
    version, _, values = _Words.from_address(id(mapping) + _OFFSET)
    return 0 if values else version


@functools.cache
def has_versions() -> bool:
    """Whether every kind of change gives a dictionary a new version tag."""
    if sys.implementation.name != "cpython" or dict.__basicsize__ < _OFFSET + 24:
        return False
    return all(_are_distinct(versions()) for versions in (
        _item_versions, _attribute_versions, _shared_attribute_versions, _global_versions))


def _are_distinct(numbers: Iterator[int]) -> bool:
    """Whether all versions differ; 0 stands for no version."""
    versions = [number for number in numbers if number]
    return len(set(versions)) == len(versions)


def _item_versions() -> Iterator[int]:
    sample: dict[Any, Any] = {"a": 0.5}
    if not version_now(sample) or version_now(sample) != version_now(sample):
        yield from (1, 1)
    changes: list[Callable[[], Any]] = [
        lambda: sample.update(b=object()), lambda: sample.__setitem__("b", object()),
        lambda: sample.pop("b"), lambda: sample.setdefault("c", object()),
        lambda: sample.__delitem__("c"), lambda: sample.update({"c": object()}), sample.popitem,
        lambda: sample.__ior__({"d": object()}), sample.clear]
    yield from (version_now({"a": 0.5}), version_now(dict(sample)), version_now(sample))
    for change in changes:
        change()
        yield version_now(sample)


class _Object:
    value: Any


def _shared_attribute_versions() -> Iterator[int]:
    instance = _Object()
    instance.value = None
    yield from _store_versions(instance)


def _attribute_versions() -> Iterator[int]:
    instance = _Object()
    instance.value = None
    attributes: dict[Any, Any] = vars(instance)
    attributes[1] = None  # a key that is no name: the instance now has an ordinary dictionary
    yield version_now(attributes)
    yield from _store_versions(instance)


def _store_versions(instance: _Object) -> Iterator[int]:
    attributes = vars(instance)
    for _ in range(_ROUNDS):
        instance.value = object()
        yield version_now(attributes)
    del instance.value
    yield version_now(attributes)


def _global_versions() -> Iterator[int]:
    scope: dict[str, Any] = {"__name__": __name__}  # ours, for profilers of calls
    exec("def assign():\n    global value\n    value = object()\n", scope)
    for _ in range(_ROUNDS):
        scope["assign"]()
        yield version_now(scope)


@dataclass
class Rebindings:
    """Of one trace: the namespaces that its functions read, each with its version before, whether
    a name or attribute was bound anew, and whether the program itself does such things."""

    namespaces: dict[int, tuple[dict[str, Any], int]] = field(default_factory=dict)
    is_of_name: bool = False
    is_acting: bool = False

    def enter(self, namespace: dict[str, Any]) -> None:
        if threading.active_count() > 1 and id(namespace) not in self.namespaces:
            self.namespaces[id(namespace)] = namespace, version_of(namespace)

    @property
    def any(self) -> bool:
        """Whether a name may have been bound to something else, and perhaps back again."""
        return threading.active_count() > 1 and (self.is_of_name or any(
            version_of(namespace) != before for namespace, before in self.namespaces.values()))
