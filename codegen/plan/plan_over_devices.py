"""From a partition to its executor's actions: tasks, sends and receives, and their order.

Nodes of one device that wait for the same receives become one task: a graph of its own, with a
plan of its own.  A task ends with a value that is sent, so that the other device need not wait
for more.  (To contract nodes with the same receives makes no circle: where a path left a task and
came back, it would come back through a receive that the task's first node waits for too.)  A size
that another device learns is such a receive: nothing is sent, but who needs it waits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from fusec.core.records import dataclass, field
from fusec.ir import Graph, Node, Value
from fusec.ir.device_names import DeviceName
from fusec.ir.lazy_values import lazy
from fusec.ops import get
from fusec.ops.calls.subgraph_ops import has_placed_parts
from fusec.ops.rows.sizes import told_symbols
from fusec.ops.rows.windows import is_made_anywhere
from fusec.passes.placement.machine import DeviceModel
from fusec.passes.placement.partition import Part, Partition
from fusec.passes.placement.schedule_simulation import is_placed, is_view

from .. import backends
from ..backend import DeviceArrays, Strides
from . import host_work
from .call_plan import CallPlan, Divide, Traffic, contiguous_strides, may_fail, packed_strides
from .call_planner import CallPlanner
from .sizes_of_tasks import learners_of, tellers
from .task_graphs import task_graph


@dataclass(eq=False)
class Action:
    """One thing that a device does in a step: ``kind`` is ``task``, ``send`` or ``recv``.

    ``reads`` and ``writes`` are numbers of the step's values, -1: there is none.  ``after`` are
    numbers of actions that it waits for.
    """

    number: int
    kind: str
    device: DeviceName
    reads: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()
    after: set[int] = field(default_factory=set)
    node: Node | None = None  # of a send or receive
    call_plan: CallPlan | None = None  # of a task
    layouts: tuple[Strides, ...] = ()  # of what a task reads
    position: int = 0  # in the program's order: where the first node is that it computes
    is_on_caller: bool = False  # it calls the program's own objects, in the calling thread

    @property
    def is_lossy(self) -> bool:
        """Whether it cuts the values that it sends."""
        return self.node is not None and bool(self.node.attrs.get("lossy"))

    def __str__(self) -> str:
        after = f", after {', '.join(map(str, sorted(self.after)))}" if self.after else ""
        return f"{self.name}{after}" if self.call_plan is None else f"{self.call_plan}{after}"

    @property
    def name(self) -> str:
        if self.node is not None:
            return f"{self.kind} {self.node.attrs['key']}"
        assert self.call_plan is not None
        return self.call_plan.graph.name


@dataclass
class PlanOverDevices(CallPlan):
    """The plan of a graph over several devices.

    ``results`` and ``updates`` say which of the step's values they are; a constant result stands
    for itself.
    """

    is_partitioned: ClassVar[bool] = True

    partition: Any = None  # a `Partition`
    actions: list[Action] = field(default_factory=list)
    values: int = 0
    results: list[int | None] = field(default_factory=list)
    writes: list[tuple[int, int]] = field(default_factory=list)
    placement: Any = None
    runners: Mapping[DeviceName, Any] = field(default_factory=dict)  # the devices of then
    remote: Any = None  # what other processes do of it: see `fusec.runtime.remote`
    memories: Mapping[str, DeviceArrays] = field(default_factory=dict)  # by their names
    residents: Any = None  # `ResidentArrays`, where arguments and results are such

    def __str__(self) -> str:
        return "\n".join(f"{action.number}: on {action.device} {action}" for action in self.actions)

    @property
    def devices(self) -> Collection[DeviceName]:
        return {action.device for action in self.actions}

    @lazy
    def traffic(self) -> Traffic:
        every = [action.call_plan.traffic for action in self.tasks if action.call_plan is not None]
        return Traffic(
            tuple(n for t in every for n in t.points), sum(t.operations for t in every),
            tuple(n for t in every for n in t.nbytes), tuple(n for t in every for n in t.work))

    @property
    def tasks(self) -> list[Action]:
        return [a for a in self.actions if a.kind == "task"]

    def by_backend(self) -> list[CallPlan]:
        """The tasks of each back end as one plan."""
        merged: dict[str, CallPlan] = {}
        for action in self.tasks:
            assert action.call_plan is not None
            part = action.call_plan
            whole = merged.setdefault(part.backend.name, CallPlan(
                [], [], 0, [], self.graph, part.backend, arrays=part.arrays, divide=self.divide))
            whole.steps.extend(part.steps)
        return [*merged.values()]


def plan_over_devices(
    partition: Partition, input_strides: Sequence[Strides], output_strides: Sequence[Strides],
    traced: Graph | None, divide: Divide | None = None,
) -> PlanOverDevices:
    """See the module docstring."""
    call_plan = _Maker(partition, input_strides, output_strides).run(traced)
    call_plan.divide = divide
    if call_plan.residents is not None:
        host_work.tell(host_work.on_host(partition), partition.home.name)
    return call_plan


def _memories(partition: Partition) -> dict[str, DeviceArrays]:
    """What makes arrays in the memories of its devices that are not the host's."""
    devices = (partition.home, *partition.parts)
    found = {device.memory: backends.backend(device.backend).arrays for device in devices}
    return {memory: arrays for memory, arrays in found.items() if arrays is not None}


class _Group:
    """Nodes of one device that become one task."""

    def __init__(self, is_on_caller: bool) -> None:
        self.nodes: list[Node] = []
        self.is_on_caller = is_on_caller
        self.is_closed = False


class _Maker:
    def __init__(
        self, partition: Partition, input_strides: Sequence[Strides],
        output_strides: Sequence[Strides],
    ) -> None:
        self.partition, self.whole = partition, partition.whole
        self.actions: list[Action] = []
        self.count = len(self.whole.inputs)
        self.numbers: dict[Value, int] = {}  # of values of the parts
        self.producer: dict[int, int] = {}  # the action that makes a value, by its number
        self.action_of: dict[int, int] = {}  # by a node's id
        self.strides: dict[Value, Strides] = {}
        self._know_layouts(input_strides, output_strides)

    def _know_layouts(
        self, input_strides: Sequence[Strides], output_strides: Sequence[Strides]
    ) -> None:
        """Values lie in C order, arguments and results as they were traced; arguments that are
        copied to another memory lie there without gaps."""
        layouts = dict(zip(self.whole.outputs, output_strides, strict=True))
        layouts.update(zip(self.whole.inputs, input_strides, strict=True))
        numbers = {v.node.name: i for i, v in enumerate(self.whole.inputs)}
        for part in self.partition.parts.values():
            for value, here in part.values.items():
                if value in layouts:
                    self.strides[here] = layouts[value]
                    if value.node.op == "Input" and here.node.op == "Recv":
                        self.strides[here] = packed_strides(
                            layouts[value], value.shape, value.dtype.itemsize)
                if value.node.op == "Input" and here.node.op == "Input":
                    self.numbers[here] = numbers[value.node.name]

    def run(self, traced: Graph | None) -> PlanOverDevices:
        self._readers = _readers(self.partition)
        self._learners = learners_of(self.partition)
        units = [unit for part in self.partition.parts.values()
                 for unit in _units(part, self._learners, self._readers)]
        for part, unit in units:
            for node in _nodes_of(unit):
                self.action_of[node.id] = len(self.actions)
            self.actions.append(self._begun(part, unit))
        for action, (_, unit) in zip(self.actions, units, strict=True):
            self._finish(action, unit)
        self._tell_sizes()
        self._order_effects(units)
        first = next(iter(self.partition.parts), self.partition.home)
        backend, memories = backends.backend(first.backend), _memories(self.partition)
        results = [None if v.node.op == "Const" else self._result(v) for v in self.whole.outputs]
        writes = [(i, self._result(v, self._residence(i))) for i, v in self.whole.updates]
        plans = [a.call_plan for a in self.actions if a.call_plan is not None]
        return PlanOverDevices(
            [s for each in plans for s in each.steps],
            [t for each in plans for t in each.temps], 0,
            [v.node.attrs["value"] if v.node.op == "Const" else None for v in self.whole.outputs],
            self.whole, backend, traced, partition=self.partition, actions=self.actions,
            values=self.count, results=results, writes=writes, memories=memories,
            residents=memories.get(self.partition.home.memory))

    # -- values

    def _number(self, value: Value) -> int:
        if value not in self.numbers:
            self.numbers[value] = self.count
            self.count += 1
        return self.numbers[value]

    def _residence(self, number: int) -> DeviceModel:
        """Where an input is, and with it what is assigned to it."""
        return self.partition.residence_of(self.whole.inputs[number].node)

    def _result(self, value: Value, device: DeviceModel | None = None) -> int:
        """The number of a value of the whole graph, where it ends up: by itself at home."""
        for part in self.partition.parts.values():
            if value in part.values and part.device is (device or self.partition.home):
                return self._number(part.values[value])
        raise AssertionError(f"internal error: {value.name} does not come home")

    # -- actions

    def _begun(self, part: Part, unit: _Group | Node) -> Action:
        number, name = len(self.actions), part.device.name
        if isinstance(unit, Node):
            return Action(number, unit.op.lower(), name, node=unit)
        return Action(number, "task", name, is_on_caller=unit.is_on_caller)

    def _finish(self, action: Action, unit: _Group | Node) -> None:
        if isinstance(unit, Node):
            action.reads = tuple(self._read(v) for v in unit.inputs)
            action.writes = tuple(map(self._number, unit.outputs))
            for node in (*(v.node for v in unit.inputs), *unit.control_inputs):
                if node.id in self.action_of:
                    action.after.add(self.action_of[node.id])
        else:
            self._task(action, unit)
        action.after.discard(action.number)
        self.producer.update(dict.fromkeys(action.writes, action.number))

    def _read(self, value: Value) -> int:
        assert not is_view(value.node), "views are sent as what they are views of"
        return self._number(value)

    def _task(self, action: Action, group: _Group) -> None:
        inside = {n.id for n in group.nodes}
        graph, reads, writes = task_graph(group.nodes, self._is_wanted(group, inside))
        action.reads = tuple(map(self._number, reads))
        action.writes = tuple(map(self._number, writes))
        for node in (*(v.node for v in reads), *(n for m in group.nodes for n in m.control_inputs)):
            if node.id in self.action_of:
                action.after.add(self.action_of[node.id])
        backend = backends.backend(self._part_of(action).device.backend)
        action.layouts = tuple(map(self._layout, reads))
        action.call_plan = CallPlanner(
            graph, action.layouts, [*map(self._layout, writes)]).run(backend, None)
        action.call_plan.arrays = backend.arrays

    def _part_of(self, action: Action) -> Part:
        return next(p for p in self.partition.parts.values() if p.device.name == action.device)

    def _layout(self, value: Value) -> Strides:
        return self.strides.get(value) or contiguous_strides(value.shape, value.dtype.itemsize)

    def _is_wanted(self, group: _Group, inside: set[int]) -> set[Value]:
        """The values of a group that something outside of it reads."""
        return {v for n in group.nodes for v in n.outputs
                if any(reader not in inside for reader in self._readers.get(v, ()))}

    def _tell_sizes(self) -> None:
        """A task whose operands do not show a size that it needs waits for what learns it."""
        for action in self.actions:
            if action.call_plan is not None:
                told = told_symbols(action.call_plan.graph).intersection(self._learners)
                action.after |= {self.action_of[self._learners[s].id] for s in told}
                action.after.discard(action.number)

    def _order_effects(self, units: Sequence[tuple[Part, _Group | Node]]) -> None:
        """Effects that the program shows wait for actions before them that may raise."""
        order = {copy.id: number for part in self.partition.parts.values()
                 for number, copy in part.homes.items()}
        fallible = [(order[n.id], self.action_of[n.id]) for _, u in units
                    for n in _nodes_of(u) if n.id in order and (
                        get(n.op).may_raise or may_fail(n))]
        for action, (_, unit) in zip(self.actions, units, strict=True):
            if isinstance(unit, _Group):
                action.position = min(order[n.id] for n in unit.nodes)
                if unit.is_on_caller:
                    action.after |= {
                        a for at, a in fallible if at < action.position and a != action.number}


def _units(
    part: Part, learners: Mapping[str, Node], readers: Mapping[Value, list[int]]
) -> Iterable[tuple[Part, _Group | Node]]:
    """The part's groups of nodes, its sends and receives, in an order of dependence; arrays that
    begin with nothing are made where they are written to."""
    waits: dict[int, frozenset[int]] = {}
    groups: dict[tuple[frozenset[int], bool], _Group] = {}
    units: list[_Group | Node] = []
    sent = {v.node.id for n in part.nodes if n.op == "Send" for v in n.inputs}
    sent |= {c.id for n in part.nodes if get(n.op).is_transfer for c in n.control_inputs}
    for node in part.nodes:
        before = (*(v.node for v in node.inputs), *node.control_inputs, *tellers(node, learners))
        mine = frozenset().union(*(  # what is of another device counts as received
            waits.get(n.id, frozenset((n.id,))) for n in before))
        waits[node.id] = mine | {node.id} if node.op == "Recv" else mine
        if get(node.op).is_transfer:
            units.append(node)
        elif is_placed(node) and not (is_made_anywhere(node) and node.id not in sent
                                      and -1 not in readers.get(node.out(), ())):
            calls = _runs_on_caller(node)
            group = groups.get((mine, calls))
            if calls:  # what comes after it is not to be in a task that it waits for
                groups.clear()
            if group is None or group.is_closed or calls:
                group = groups[mine, calls] = _Group(calls)
                units.append(group)
            group.nodes.append(node)
            group.is_closed = node.id in sent
    return [(part, unit) for unit in units]


def _runs_on_caller(node: Node) -> bool:
    """Whether it calls the program's objects, or starts steps of its own: a device's thread that
    waited for other devices could be what they wait for."""
    return node.op == "HostCall" or any("HostCall" in g.ops for g in node.graphs) or (
        has_placed_parts(node))


def _nodes_of(unit: _Group | Node) -> Sequence[Node]:
    return [unit] if isinstance(unit, Node) else unit.nodes


def _readers(partition: Partition) -> dict[Value, list[int]]:
    """The ids of the nodes that read each value, through views too; -1 reads results."""
    readers: dict[Value, list[int]] = {}
    for part in partition.parts.values():
        for node in part.nodes:
            for value in node.inputs:
                while is_view(value.node):
                    value = value.node.inputs[0]
                readers.setdefault(value, []).append(node.id)
        for value in partition.whole.roots:
            if value in part.values:
                readers.setdefault(part.values[value], []).append(-1)
    return readers
