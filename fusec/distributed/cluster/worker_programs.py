"""Programs that a client has sent to a worker: admitted, and as tables of a step."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from fusec.compiled.graph_function import GraphFunction
from fusec.core import locks
from fusec.core.records import dataclass
from fusec.errors import FusecError
from fusec.ir import Graph, Node
from fusec.ir.device_names import DeviceName
from fusec.ops.graphs.admit import NotAdmittedError, admit
from fusec.runtime.devices.device import Device
from fusec.runtime.partitions.step_program import Action, StepProgram

from ..replicas.ring_spec import RING, RingSpec

_KINDS = ("task", "send", "recv", RING)
_MOST_KEPT = 256
_kept: OrderedDict[str, tuple[Graph, GraphFunction]] = OrderedDict()
_lock = locks.Lock()


@dataclass(frozen=True)
class WorkerProgram:
    """``variables`` are numbers of values that are Variables of this worker, ``writes`` pairs of
    such a number and of the value that becomes its own; ``rings`` are sums over all workers, by
    the number of their action."""

    name: str
    program: StepProgram
    variables: Sequence[int]
    writes: Sequence[tuple[int, int]]
    rings: Mapping[int, RingSpec]


def read_program(text: str, devices: Mapping[str, Device]) -> WorkerProgram:
    """The program of a text; raises `NotAdmittedError` for one that may not run."""
    try:
        form = json.loads(text)
        return _Reader(form, devices).read()
    except FusecError:
        raise
    except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        raise NotAdmittedError(f"the program is not admitted: {error!r}") from None


def _function(text: str) -> tuple[Graph, GraphFunction]:
    """A graph's function; programs that have the same graph, and pieces of a batch, share it."""
    with _lock:
        found = _kept.get(text)
        if found is None:
            graph = admit(text)  # its products were contracted where it was made
            found = _kept[text] = graph, GraphFunction(graph, "strict")
        _kept.move_to_end(text)
        while len(_kept) > _MOST_KEPT:
            _kept.popitem(last=False)
        return found


class _Reader:
    def __init__(self, form: Mapping[str, Any], devices: Mapping[str, Device]) -> None:
        self.form, self.devices, self.values = form, devices, int(form["values"])
        self.count = len(form["actions"])

    def read(self) -> WorkerProgram:
        form = self.form
        actions = [self._action(number, each) for number, each in enumerate(form["actions"])]
        writes = [(self._value(i), self._value(n)) for i, n in form["writes"]]
        variables = [*map(self._value, form["variables"])]
        followers: list[list[int]] = [[] for _ in actions]
        for action in actions:
            for before in action.after:
                followers[before].append(action.number)
        uses = [0] * self.values
        for number in (*(n for a in actions for n in a.reads), *variables, *(n for _, n in writes)):
            uses[number] += 1
        program = StepProgram(
            actions, [self.devices[str(each["device"])] for each in form["actions"]],
            [len(a.after) for a in actions], followers,
            [int(each["position"]) for each in form["actions"]], uses,
            [self._run(a, each) for a, each in zip(actions, form["actions"], strict=True)],
            lambda error, number: actions[number].position, {})
        rings = {a.number: RingSpec.read(each["ring"], len(a.reads), len(a.writes))
                 for a, each in zip(actions, form["actions"], strict=True) if a.kind == RING}
        return WorkerProgram(str(form["name"]), program, variables, writes, rings)

    def _action(self, number: int, form: Mapping[str, Any]) -> Action:
        kind = form["kind"]
        if kind not in _KINDS:
            raise ValueError(f"an action {kind!r}")
        device = self.devices[str(form["device"])].name
        action = Action(number, kind, device, tuple(map(self._value, form["reads"])),
                        tuple(map(self._value, form["writes"])), {*map(self._other, form["after"])},
                        position=int(form["position"]))
        if kind in ("send", "recv"):
            peer = str(DeviceName.parse(form["peer"]))
            action.node = Node(kind.capitalize(), (), (), {
                "key": str(form["key"]), "lossy": bool(form["lossy"]),
                "target" if kind == "send" else "source": peer})
        return action

    def _run(self, action: Action, form: Mapping[str, Any]) -> Any:
        if action.kind != "task":
            return None
        graph, function = _function(str(form["graph"]))
        if len(graph.inputs) != len(action.reads) or len(graph.outputs) != len(action.writes) or (
                graph.updates):
            raise ValueError(f"the graph {graph.name!r} is not that of its action")
        is_single = len(action.writes) == 1

        def run(operands: Sequence[Any], sizes: dict[str, int], times: Any) -> Sequence[Any]:
            results = function(*operands)
            return (results,) if is_single else results

        return run

    def _value(self, number: Any) -> int:
        if type(number) is not int or not 0 <= number < self.values:
            raise ValueError(f"a value {number!r}")
        return number

    def _other(self, number: Any) -> int:
        if type(number) is not int or not 0 <= number < self.count:
            raise ValueError(f"an action {number!r}")
        return number
