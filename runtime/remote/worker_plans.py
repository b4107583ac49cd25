"""What workers do of a plan over devices: the actions of each, and the text in which they travel.

An action that waits for one of another process waits for a message that says that this has ended:
a send and a receive without a value, made here.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from typing import Any

from fusec.codegen.plan.plan_over_devices import Action, PlanOverDevices
from fusec.core.records import dataclass
from fusec.errors import unsupported
from fusec.ir import Node
from fusec.ir.device_names import DeviceName
from fusec.ir.sizes.dims import symbols_of
from fusec.ops.graphs.unfused import unfused

from ..partitions.plan import positions_of
from .remote_device import JOB

_numbers = itertools.count(1)
Variables = Sequence[int]  # inputs of the plan


@dataclass
class WorkerPart:
    """The part of one worker.  ``number`` is that of the program there; ``variables`` are the
    inputs that are Variables there, ``writes`` pairs of such an input and a value."""

    task: int
    number: int
    actions: list[Action]
    variables: Variables
    writes: list[tuple[int, int]]
    text: str = ""


def next_number() -> int:
    """The number of a new program: workers know programs of one client by them."""
    return next(_numbers)


def process_of(device: DeviceName) -> int:
    """The task of a worker; -1 for this process."""
    return (device.task or 0) if device.job == JOB else -1


def divide_by_worker(call_plan: PlanOverDevices) -> None:
    """Leave to the plan what this process does, and give the rest to ``remote``."""
    _check(call_plan)
    positions = positions_of(call_plan)
    actions = _with_messages(call_plan, positions)
    tasks = sorted({process_of(a.device) for a in actions if process_of(a.device) >= 0})
    remote = [_part(call_plan, actions, task, positions) for task in tasks]
    here = _renumbered([a for a in actions if process_of(a.device) < 0])
    away = {i for part in remote for i, _ in part.writes}
    call_plan.actions = here
    plans = [a.call_plan for a in here if a.call_plan is not None]
    call_plan.steps = [s for each in plans for s in each.steps]
    call_plan.temps = [t for each in plans for t in each.temps]
    call_plan.writes = [pair for pair in call_plan.writes if pair[0] not in away]
    call_plan.remote = remote


def _check(call_plan: PlanOverDevices) -> None:
    """Refuse what a worker cannot do."""
    for action in call_plan.tasks:
        if process_of(action.device) < 0:
            continue
        assert action.call_plan is not None
        graph = action.call_plan.graph
        node = graph.nodes[-1]
        if action.is_on_caller:
            raise unsupported(
                f"{node.op} on {action.device}, which calls objects of the program or is divided "
                "over devices inside,", loc=node.loc,
                cure="leave it outside of the scope, or name one device for all of it")
        sized = next((v for v in graph.inputs if symbols_of(v.type)), None)
        if sized is not None:
            raise unsupported(
                f"a value of {sized.type}, of a size that only the run knows, as an operand on "
                f"{action.device}", loc=sized.node.loc,
                cure="compute it in the scope of the device that reads it")


def _with_messages(call_plan: PlanOverDevices, positions: list[int]) -> list[Action]:
    """The actions, with sends and receives where one waits for another process's."""
    actions = [*call_plan.actions]
    made: dict[tuple[int, int], Action] = {}
    for action in call_plan.actions:
        mine = process_of(action.device)
        for before in sorted(action.after):
            source = call_plan.actions[before]
            if process_of(source.device) == mine:
                continue
            action.after.discard(before)
            if (before, mine) not in made:
                made[before, mine] = _message(actions, source, action)
                positions += [positions[before], positions[action.number]]
            action.after.add(made[before, mine].number)
    return actions


def _message(actions: list[Action], source: Action, target: Action) -> Action:
    """The receive of the word that ``source`` has ended; the send is added, too."""
    key = f"!{source.number}"
    send = Node("Send", (), (), {"key": key, "target": str(target.device), "lossy": False})
    recv = Node("Recv", (), (), {"key": key, "source": str(source.device), "results": ()})
    actions.append(Action(len(actions), "send", source.device, after={source.number}, node=send))
    actions.append(Action(len(actions), "recv", target.device, node=recv))
    return actions[-1]


def _renumbered(actions: Sequence[Action]) -> list[Action]:
    numbers = {action.number: at for at, action in enumerate(actions)}
    for action in actions:
        action.number, action.after = numbers[action.number], {numbers[n] for n in action.after}
    return [*actions]


def _part(
    call_plan: PlanOverDevices, actions: Sequence[Action], task: int, positions: Sequence[int],
) -> WorkerPart:
    mine = [a for a in actions if process_of(a.device) == task]
    at = [positions[a.number] for a in mine]
    mine = _renumbered(mine)
    inputs = len(call_plan.graph.inputs)
    residence = call_plan.partition.residence_of
    there = [i for i, v in enumerate(call_plan.graph.inputs)
             if process_of(residence(v.node).name) == task]
    writes = [pair for pair in call_plan.writes if pair[0] in there]
    read = {n for a in mine for n in a.reads if n < inputs} | {n for _, n in writes if n < inputs}
    part = WorkerPart(task, next_number(), mine, sorted(read & {*there}), writes)
    part.text = json.dumps({
        "name": call_plan.graph.name, "values": call_plan.values, "variables": part.variables,
        "writes": writes, "actions": [*_texts(mine, at)]})
    return part


def _texts(actions: Sequence[Action], positions: Sequence[int]) -> Iterator[dict[str, Any]]:
    for action, position in zip(actions, positions, strict=True):
        text: dict[str, Any] = {
            "kind": action.kind, "device": action.device.type, "reads": action.reads,
            "writes": action.writes, "after": sorted(action.after), "position": position}
        if action.node is not None:
            attrs = action.node.attrs
            text |= {"key": attrs["key"], "lossy": action.is_lossy,
                     "peer": str(attrs.get("target") or attrs.get("source"))}
        else:
            assert action.call_plan is not None
            inside = "" if action.device.type == "CPU" else f"/device:{action.device.short}"
            text["graph"] = unfused(action.call_plan.graph, inside).to_json()
        yield text


__all__ = ["WorkerPart", "divide_by_worker", "next_number", "process_of"]
