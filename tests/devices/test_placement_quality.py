"""How far placements are from the best that there are, on graphs small enough to try them all."""

from __future__ import annotations

import itertools
import statistics
from random import Random
from typing import Any

import numpy as np
import pytest
from random_schedules import Problem, Shortest, problem, ratios, summary

import fusec
from fusec.ir import Node
from fusec.passes.placement.machine import DeviceModel

GRAPHS = 200


@pytest.mark.one_python
def test_placements_are_near_the_optimum() -> None:
    found = ratios(GRAPHS, 0)
    greedy, placed = [g for g, _ in found], [p for _, p in found]
    print(summary("greedy", greedy), summary("placed", placed), sep="\n")
    assert min(greedy + placed) > 1 - 1e-9, "shorter than the least: one of the two is wrong"
    assert statistics.mean(placed) < 1.05
    assert statistics.mean(placed) < statistics.mean(greedy)


@pytest.mark.parametrize("seed", range(15))
def test_the_search_finds_what_trying_everything_finds(seed: int) -> None:
    small = problem(Random(seed), 4)
    least = min(makespan(small, order, devices)
                for order in orders(small)
                for devices in itertools.product(small.machine.devices, repeat=len(order)))
    assert Shortest(small).run(float("inf")) == pytest.approx(least)


@pytest.mark.parametrize("seed", range(15))
def test_a_simulated_execution_can_be_carried_out(seed: int) -> None:
    """No device does two things at once, and nothing is read before it has come."""
    any_problem = problem(Random(seed))
    placed = any_problem.placed()
    machine = any_problem.machine
    for a, b in itertools.combinations(placed.begin, 2):
        if placed.devices[a] is placed.devices[b]:
            assert placed.end[a] <= placed.begin[b] or placed.end[b] <= placed.begin[a]
    for node in nodes_of(any_problem):
        for value in node.inputs:
            if value.node.op != "Input":
                transfer = machine.transfer(placed.devices[value.node.name],
                                            placed.devices[node.name], value.type.size * 8.0)
                assert placed.begin[node.name] >= placed.end[value.node.name] + transfer


@pytest.mark.parametrize(("n", "is_divided"), [(400, False), (600, True)])
def test_what_keeps_the_interpreter_is_not_divided(n: int, is_divided: bool) -> None:
    def two(a: np.ndarray, b: np.ndarray) -> Any:
        return np.linalg.eigvalsh(a)[0] + np.linalg.eigvalsh(b)[0]

    spec = fusec.TensorSpec((n, n), np.float64)
    with fusec.config.override(logical_cpu_devices=2):
        concrete = fusec.jit(two).concrete(spec, spec)
    assert bool(concrete.partitions) is is_divided


def nodes_of(problem: Problem) -> list[Node]:
    return [n for n in problem.graph.nodes if n.op != "Input"]


def orders(problem: Problem) -> list[tuple[Node, ...]]:
    """Those in which every node comes after its operands."""
    return [order for order in itertools.permutations(nodes_of(problem)) if all(
        v.node.op == "Input" or v.node in order[:i] for i, n in enumerate(order)
        for v in n.inputs)]


def makespan(
    problem: Problem, order: tuple[Node, ...], devices: tuple[DeviceModel, ...]
) -> float:
    """Each node begins when its device has ended the one before it and its operands have come."""
    machine, home = problem.machine, problem.machine.home
    device_of = {n.name: d for n, d in zip(order, devices, strict=True)}
    free: dict[DeviceModel, float] = {}
    end: dict[str, float] = {}
    ends = []
    search = Shortest(problem)
    lengths = dict(zip((n.name for n in nodes_of(problem)), search.lengths, strict=True))
    for node, device in zip(order, devices, strict=True):
        begin = free.get(device, 0.0)
        for value in node.inputs:
            nbytes = value.type.size * 8.0
            if value.node.op != "Input":
                source = device_of[value.node.name]
                begin = max(begin, end[value.node.name] + machine.transfer(source, device, nbytes))
            elif device.memory != home.memory:
                begin = max(begin, machine.transfer(home, device, nbytes))
        end[node.name] = free[device] = begin + lengths[node.name][machine.devices.index(device)]
        back = machine.transfer(device, home, node.out().type.size * 8.0)
        ends.append(free[device] + (back if node.out() in problem.graph.outputs else 0.0))
    return max(ends)
