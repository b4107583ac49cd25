"""Random small graphs with given times, and the shortest schedule that any placement allows.

``python tests/devices/random_schedules.py -n 200`` compares the compiler's placements with it.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
from dataclasses import dataclass
from random import Random

import numpy as np

from fusec.ir import Graph, Node, TensorType, Value
from fusec.ir.device_names import DeviceName
from fusec.passes.placement.costs import Costs, nbytes_of, signature
from fusec.passes.placement.local_search import improved
from fusec.passes.placement.machine import DeviceModel, Machine
from fusec.passes.placement.schedule_simulation import Simulation, Simulator


@dataclass
class Problem:
    """A graph of library calls, and a machine that knows how long each of them takes."""

    graph: Graph
    machine: Machine

    def greedy(self) -> Simulation:
        """The schedule of the greedy algorithm."""
        simulator = Simulator(self.graph, self.machine, Costs(self.machine))
        return simulator.run(self._feasible(simulator), {})

    def placed(self) -> Simulation:
        """The schedule of placement, which begins with that."""
        simulator = Simulator(self.graph, self.machine, Costs(self.machine))
        return improved(simulator, self.greedy(), self._feasible(simulator), {})

    def _feasible(self, simulator: Simulator) -> dict[str, tuple[DeviceModel, ...]]:
        return {n.name: self.machine.devices for n in simulator.nodes}


def problem(random: Random, nodes: int = 0) -> Problem:
    """6 to 9 nodes that take 0.1 to 1 ms, and differ by up to 2 among devices of unlike types;
    values of 1 KB to 8 MB, which take 5 µs to 1.4 ms from one memory to another; 2 or 3 devices,
    one time in four with one memory, else with a memory each."""
    graph = _graph(random, nodes or random.randint(6, 9))
    count, is_shared = random.choice((2, 3)), random.random() < 0.25
    kinds = ["A"] * count if random.random() < 0.5 else ["A", "B", "C"][:count]
    models = tuple(DeviceModel(
        DeviceName("localhost", 0, kind, kinds[:i].count(kind)),
        memory="host" if is_shared else f"memory {i}") for i, kind in enumerate(kinds))
    measured: dict[str, float] = {}
    for node in graph.nodes:
        if node.op != "Input":
            usual = 100e3 * 10 ** random.random()
            for kind in sorted({*kinds}):
                measured[f"{kind} {signature(node)}"] = usual * 2 ** random.random()
    return Problem(graph, Machine(models, measured=measured))


def _graph(random: Random, count: int) -> Graph:
    def value(op: str, inputs: list[Value], number: int) -> Value:
        floats = int(128 * 8192 ** random.random())
        return Node(op, inputs, (TensorType(np.dtype(np.float64), (floats,)),), {"number": number},
                    name=f"{op}_{number}").out()

    inputs = [value("Input", [], i) for i in range(2)]
    made: list[Value] = []
    for number in range(count):
        reads = random.sample(made, min(len(made), random.choice((0, 1, 1, 2))))
        made.append(value("Numpy", reads or [random.choice(inputs)], number))
    read = {v for m in made for v in m.node.inputs}
    return Graph.build(inputs, [v for v in made if v not in read])


class Shortest:
    """The least makespan of all placements in all orders, by branch and bound.

    Every schedule in which no node can begin sooner without another order is built by appending
    nodes in the order of their begins, so the search appends each ready node to each device, never
    before the node appended last.  A branch is left when the time of every way to the end, or the
    work that is left shared evenly, is no shorter than the best schedule so far.
    """

    def __init__(self, problem: Problem) -> None:
        machine = self.machine = problem.machine
        nodes = [n for n in problem.graph.nodes if n.op != "Input"]
        number = {n.id: i for i, n in enumerate(nodes)}
        costs = Costs(machine)
        self.lengths = [[costs.ns(n, d) + d.launch_ns for d in machine.devices] for n in nodes]
        self.reads = [[number[v.node.id] for v in n.inputs if v.node.id in number] for n in nodes]
        self.way = self._ways()
        pairs = list(itertools.product(machine.devices, repeat=2))
        flight = [{(machine.devices.index(a), machine.devices.index(b)): machine.transfer(
            a, b, nbytes_of(n.out())) for a, b in pairs} for n in nodes]
        self.flight = flight
        self.given = [[max((machine.transfer(machine.home, d, nbytes_of(v)) for v in n.inputs
                            if v.node.op == "Input" and d.memory != machine.home.memory),
                           default=0.0) for d in machine.devices] for n in nodes]
        results = {v.node.id for v in problem.graph.outputs}
        self.leaves = [[flight[i][d, 0] if n.id in results else 0.0
                        for d in range(len(machine.devices))] for i, n in enumerate(nodes)]

    def _ways(self) -> list[float]:
        """The least time from each node's begin to the end, transfers left out."""
        ways = [min(lengths) for lengths in self.lengths]
        for i in reversed(range(len(ways))):
            for before in self.reads[i]:
                ways[before] = max(ways[before], min(self.lengths[before]) + ways[i])
        return ways

    def run(self, bound: float) -> float:
        """The least makespan, given that of some schedule."""
        count = len(self.lengths)
        self.best = bound
        self.end, self.device = [0.0] * count, [-1] * count
        self._extend(frozenset(), [0.0] * len(self.machine.devices), 0.0, 0.0)
        return self.best

    def _extend(
        self, done: frozenset[int], free: list[float], last: float, makespan: float
    ) -> None:
        left = [i for i in range(len(self.lengths)) if i not in done]
        if not left:
            self.best = min(self.best, makespan)
            return
        work = sum(min(self.lengths[i]) for i in left) + sum(max(f, last) for f in free)
        if work / len(free) >= self.best * (1 - 1e-12):
            return
        moves = [(self._begin(i, d, free[d]), i, d) for i in left
                 if all(b in done for b in self.reads[i]) for d in range(len(free))]
        for i in {i for _, i, _ in moves}:
            if max(last, min(b for b, j, _ in moves if j == i)) + self.way[i] >= self.best * (
                    1 - 1e-12):
                return
        for begin, i, d in sorted(moves):
            end = begin + self.lengths[i][d]
            if begin >= last and begin + self.way[i] < self.best:
                self.end[i], self.device[i] = end, d
                after = [*free]
                after[d] = end
                self._extend(done | {i}, after, begin, max(makespan, end + self.leaves[i][d]))

    def _begin(self, i: int, d: int, free: float) -> float:
        return max([free, self.given[i][d], *(
            self.end[b] + self.flight[b][self.device[b], d] for b in self.reads[i])])


def ratios(count: int, seed: int) -> list[tuple[float, float]]:
    """The makespans of the greedy algorithm and of placement over the least, of random problems."""
    random, found = Random(seed), []
    for _ in range(count):
        each = problem(random)
        greedy, placed = each.greedy().makespan, each.placed().makespan
        least = Shortest(each).run(min(greedy, placed) * (1 + 1e-9))
        found.append((greedy / least, placed / least))
    return found


def summary(of: str, found: list[float]) -> str:
    """The distribution of ratios in a line."""
    found = sorted(found)
    return (f"{of}: mean {statistics.mean(found):.3f}, 95 % within "
            f"{found[int(0.95 * len(found))]:.3f}, worst {found[-1]:.3f}, optimal "
            f"{sum(r < 1 + 1e-6 for r in found)} of {len(found)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    found = ratios(given.n, given.seed)
    print(summary("greedy", [g for g, _ in found]))
    print(summary("placed", [p for _, p in found]))


if __name__ == "__main__":
    main()
