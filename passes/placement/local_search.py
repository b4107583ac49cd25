"""Moves single nodes of a placement while that ends the step sooner.

does    tries each node (or class of nodes that must be together) on each other device that is
        feasible for it, keeps moves that shorten the simulated execution, and begins again
needs   a placement, by the greedy algorithm say
leaves  a placement in which no such move helps, or the best one found within `MOST_STEPS`

The greedy algorithm decides for each node alone and cannot take back: it sends a small node to an
idle device, and has to pay for its readers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .machine import DeviceModel
from .schedule_simulation import Simulation, Simulator

MOST_STEPS = 10_000  # of one node in a simulated execution: about 0.1 s
LEAST_GAIN = 1e-6  # of the makespan: less is an error of rounding

Feasible = Mapping[str, Sequence[DeviceModel]]


def improved(
    simulator: Simulator, simulation: Simulation, feasible: Feasible, classes: Mapping[str, str]
) -> Simulation:
    """See the module docstring."""
    return _Search(simulator, feasible, classes).run(simulation)


class _Search:
    def __init__(
        self, simulator: Simulator, feasible: Feasible, classes: Mapping[str, str]
    ) -> None:
        self.simulator, self.feasible = simulator, feasible
        units: dict[str, list[str]] = {}
        for node in simulator.order:
            units.setdefault(classes.get(node.name, f" {node.name}"), []).append(node.name)
        self.units = [*units.values()]
        self.left = MOST_STEPS

    def run(self, greedy: Simulation) -> Simulation:
        best = greedy
        for start in (greedy.devices, *self._on_one_each()):
            if self.left > 0:
                best = min(best, self._climbed(start), key=lambda s: s.makespan)
        self._explain(best, greedy)
        return best

    def _on_one_each(self) -> list[dict[str, DeviceModel]]:
        """Placements with everything on one device, as far as that is feasible."""
        automatic = self.simulator.machine.automatic
        return [{name: device if device in devices else devices[0]
                 for name, devices in self.feasible.items()} for device in automatic]

    def _climbed(self, start: Mapping[str, DeviceModel]) -> Simulation:
        best = self._tried(start)
        while True:
            before = best.makespan
            for unit in self.units:
                best = self._moved(best, unit)
            if best.makespan >= before * (1 - LEAST_GAIN):  # equal where nothing takes time
                return best

    def _moved(self, best: Simulation, unit: Sequence[str]) -> Simulation:
        """The best with these nodes on any device."""
        here = best.devices[unit[0]]
        for device in self.feasible[unit[0]]:
            if device is not here and self.left > 0:
                other = self._tried({**best.devices, **dict.fromkeys(unit, device)})
                if other.makespan < best.makespan * (1 - LEAST_GAIN):
                    best = other
        return best

    def _tried(self, devices: Mapping[str, DeviceModel]) -> Simulation:
        self.left -= len(devices)
        return self.simulator.run_placed(devices)

    def _explain(self, best: Simulation, greedy: Simulation) -> None:
        """Reasons: the greedy algorithm's where it has decided."""
        for name, device in best.devices.items():
            is_greedy = device is greedy.devices[name]
            best.reasons[name] = greedy.reasons[name] if is_greedy else (
                f"the step would end at {1e-3 * best.makespan:.0f} µs, and with "
                f"{greedy.devices[name].name.short}, where it would end first itself, at "
                f"{1e-3 * greedy.makespan:.0f} µs")
