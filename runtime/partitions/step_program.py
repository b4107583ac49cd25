"""Tables that all steps of one plan over several devices share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fusec.codegen.backend import DeviceArrays
from fusec.codegen.plan.plan_over_devices import Action
from fusec.core.records import dataclass
from fusec.ir.lazy_values import lazy
from fusec.runtime.devices.device import Device

Times = list[tuple[str, float]]
Run = Callable[[Sequence[Any], dict[str, int], Times | None], Sequence[Any]]


@dataclass(frozen=True)
class Failure:
    """An action's exception, and where in the program's order."""

    position: int
    error: BaseException


@dataclass(frozen=True)
class StepProgram:
    """The tables that all steps of one plan share.

    ``positions`` say where in the program's order the first node is that an action computes or that
    waits for it; ``uses`` how often each value is read, ``runs`` are the tasks' functions.
    """

    actions: Sequence[Action]
    devices: Sequence[Device]  # of each action
    waits: Sequence[int]
    followers: Sequence[Sequence[int]]
    positions: Sequence[int]
    uses: Sequence[int]
    runs: Sequence[Run | None]
    position_of: Callable[[BaseException, int], int]  # of an error that an action raised
    memories: Mapping[str, DeviceArrays]  # that are not the host's, by name

    @lazy
    def names(self) -> list[str]:
        """Of the device of each action."""
        return [str(device.name) for device in self.devices]


__all__ = ["Action", "Failure", "Run", "StepProgram", "Times"]
