"""Recent plans for arguments that share memory: that memory is found, and how they lie in it is
compared, by the launcher."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fusec.runtime.launching import launch
from fusec.runtime.launching.launch_spec import ArrayArg, ObjectOut, PlanSpec, SameMemory
from fusec.runtime.launching.outcomes import MISS
from fusec.trace.call.flat_call import FlatCall
from fusec.trace.call.overlap import FlatView

if TYPE_CHECKING:
    from fusec.compiled.concrete_function import ConcreteFunction


def plan_of(call: FlatCall, concrete: ConcreteFunction) -> Callable[..., Any] | None:
    """The plan for the arguments of a merged call as they were given; None where their memory
    is not the whole of an array that one of them is a view of, or is."""
    given, fast = call.separate, concrete.executable.fast
    if given is None or fast is None or (call.placing and call.placing.residence):
        return None
    names: dict[str, Any] = {"ndarray": np.ndarray, "MISS": MISS, "fast": fast}
    lines, passed = [], [f"x{i}" for i in range(len(call.leaves))]
    for first, group in _groups(call).items():
        source = _source(given.leaves, group, call.leaves[first])
        if source is None:
            return None
        anchor, is_base = source
        names[f"lies{first}"] = _comparing(call, given.leaves, group).call
        arrays = ", ".join(f"x{i}" for i in group)
        lines += [f"if type(x{anchor}) is not ndarray: return MISS",
                  f"m{first} = x{anchor}{'.base' if is_base else ''}",
                  f"if type(m{first}) is not ndarray: return MISS",
                  f"if not m{first}.flags.c_contiguous: return MISS",
                  f"m{first} = m{first}.reshape(-1)",
                  f"if lies{first}(m{first}, {arrays}) is MISS: return MISS"]
        for i in group:
            passed[i] = f"m{first}"
    parameters = ", ".join(f"x{i}" for i in range(len(call.leaves)))
    lines.append(f"return fast({', '.join(passed)})")
    exec(compile(f"def call({parameters}):\n    " + "\n    ".join(lines), "<overlap>", "exec"),
         names)
    answer: Callable[..., Any] = names["call"]
    return answer


def _groups(call: FlatCall) -> dict[int, list[int]]:
    """The positions of arrays of one memory, by the first of them."""
    groups: dict[int, list[int]] = {}
    for position, part in enumerate(call.key[1:]):
        if type(part[-1]) is FlatView:
            groups.setdefault(part[4], []).append(position)
    return groups


def _source(
    leaves: Sequence[Any], group: Sequence[int], memory: np.ndarray
) -> tuple[int, bool] | None:
    """An array that leads to the memory, and whether by its base."""
    for i in group:
        for array, is_base in ((leaves[i].base, True), (leaves[i], False)):
            if type(array) is np.ndarray and array.dtype == memory.dtype and (
                    array.flags.c_contiguous and array.size == memory.size
                    and _address(array) == _address(memory)):
                return i, is_base
    return None


def _comparing(call: FlatCall, leaves: Sequence[Any], group: Sequence[int]) -> launch.NativePlan:
    """A plan that compares: the memory, then each array of it, where it lies and how."""
    memory = call.leaves[group[0]]
    arrays = [memory, *(leaves[i] for i in group)]
    writeable = leaves[group[0]].flags.writeable
    return launch.NativePlan(PlanSpec(
        args=tuple(ArrayArg(
            x.dtype, x.shape,
            tuple(None if n == 1 else s for n, s in zip(x.shape, x.strides, strict=True)),
            writeable=writeable, read_only=not writeable and x is not memory) for x in arrays),
        outs=(ObjectOut(None),), steps=(), name="overlap",
        relations=tuple(SameMemory(0, number, _address(x) - _address(memory))
                        for number, x in enumerate(arrays[1:], 1))))


def _address(x: np.ndarray) -> int:
    address: int = x.__array_interface__["data"][0]
    return address


__all__ = ["plan_of"]
