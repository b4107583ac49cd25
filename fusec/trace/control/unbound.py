"""Variables that a branch or loop may leave without a value.

They become optional values with the variable's name (`trace/optional.py`), unless what follows
reads them in any case: then a check is made at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fusec.ir import Value

from ..array import TracedArray
from ..context import Trace
from ..optional import UNBOUND, Optional, unbound, zeros_like
from .merge import flatten, is_number, is_traced, unflatten
from .ranges import number

if TYPE_CHECKING:
    from .branches import Side, _Pairs

_INTERNAL = "_fusec_"  # the converter's own variables are read where they are bound


def is_users(name: str) -> bool:
    """Whether it is a variable of the program's own, not an attribute, nor the converter's."""
    return name.isidentifier() and not name.startswith(_INTERNAL)


def check_bound(
    trace: Trace, test: Value, sides: Sequence[Mapping[str, Any]], names: Sequence[str]
) -> None:
    """Raise as Python does where the side that leaves a variable unbound is taken."""
    for name in names:
        missing = [side.get(name, UNBOUND) is UNBOUND for side in sides]
        if missing[0] != missing[1]:
            trace.unbound_reads.add(name)
            holds = trace.emit("LogicalNot", test) if missing[0] else test
            trace.check(holds, unbound(name))


def half_bound(
    trace: Trace, test: Value, name: str, a: Any, b: Any, sides: Sequence[Side], pairs: _Pairs
) -> Optional:
    """What a variable is after a branch of which one side leaves it unbound."""
    side, value = (1, b) if a is UNBOUND else (0, a)
    inner: Any = False
    if type(value) is Optional and value.name == name:
        inner, value = value.absent, value.held
    missing: Any = number(trace, test if side else trace.emit("LogicalNot", test))
    if inner is not False:
        missing = pairs.leaf(True, inner) if side else pairs.leaf(inner, True)
    leaves, structure = flatten(value)
    region = sides[side].region
    shared = _storages(sides[side].variables)

    def exported(leaf: Any) -> Any:
        """Computed in its side alone, where nothing else shows its memory."""
        if not is_traced(leaf) or region.is_outer(leaf.origin) or (
                leaf.storage is not None and not _is_own(leaf, shared, region.start)):
            return leaf
        zeros = zeros_like(trace, leaf)
        return pairs.leaf(zeros, leaf) if side else pairs.leaf(leaf, zeros)

    return Optional(missing, unflatten(structure, [exported(leaf) for leaf in leaves]), name)


def _storages(variables: Mapping[str, Any]) -> list[Any]:
    """The memory of every array that variables hold, once for each."""
    return [leaf.storage for value in variables.values() if value is not UNBOUND
            for leaf in flatten(value)[0] if type(leaf) is TracedArray and leaf.is_array]


def _is_own(leaf: TracedArray, shared: Sequence[Any], start: int) -> bool:
    storage = leaf.storage
    return storage is not None and storage.born >= start and not leaf.steps and (
        leaf.type.is_static and sum(s is storage for s in shared) <= 1)


__all__ = ["check_bound", "half_bound", "is_number", "is_users"]
