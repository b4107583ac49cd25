"""Which nodes share a kernel: groups of roots with one iteration domain.

A *root* is a reduction or a materialised value.  A group has a domain and, once it holds a
reduction, reduced axes; the other axes are its outer loops.  Roots merge when they are on one
device, every value they exchange inside the group is exchanged at the same outer point, and no
path leads out of the group and back in.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Collection
from typing import Any

from fusec.core.records import dataclass, field
from fusec.ir import Graph, Node, Value
from fusec.ir.device_names import runs_cuda
from fusec.ir.sizes.dims import is_static
from fusec.ir.sizes.symbolic_sizes import text_of_shape
from fusec.ops import get
from fusec.ops.calls.checks import has_effects
from fusec.ops.regions.cones import Cone, has_unit_region, is_boundary, is_piecewise, view_base
from fusec.ops.regions.index_maps import AxisIndex, IndexMap, identity, without_loop
from fusec.ops.rows.picking import PICKS

from .kernel_work import MAX_ENTANGLED_WORK, MAX_EXCHANGED, MAX_WORK, work_of
from .known_cones import KnownCones
from .narrow_sums import MAX_TOTALS, is_a_total, totals_of

MAX_OPERANDS = 48  # more pointers than this in one loop spill registers
MAX_RESULTS = 48  # the same for arrays that the graph gives back: LLVM takes their square
MAX_CANDIDATES = 32  # groups looked at per root: keeps huge graphs linear


@dataclass(eq=False)
class Unit:
    """A group of roots, or one opaque node (library call, reshape).

    ``before`` has a bit, by their numbers, for every unit that it runs after by some path.
    """

    number: int
    domain: tuple[int, ...] = ()
    axes: tuple[int, ...] | None = None
    device: str = ""
    roots: list[Value] = field(default_factory=list)
    cones: list[Cone] = field(default_factory=list)
    producers: dict[Value, Cone] = field(default_factory=dict)
    operands: set[tuple[Value, IndexMap]] = field(default_factory=set)
    computed: set[Value] = field(default_factory=set)
    work: float = 0.0
    results: int = 0  # of the graph
    piecewise: bool = False
    opaque: Node | None = None
    deps: set[Unit] = field(default_factory=set)
    before: int = 0
    is_followed: bool = False  # whether any unit runs after it
    is_alone: bool = False  # nothing joins it: see `borders`
    boundaries: list[str] = field(default_factory=list)

    def __hash__(self) -> int:
        # Sets of units are walked: by address their order would differ between processes.
        return self.number

    @property
    def outer(self) -> list[int]:
        return [d for d in range(len(self.domain)) if d not in (self.axes or ())]

    @property
    def row_shape(self) -> tuple[int, ...]:
        return tuple(self.domain[d] for d in self.outer)

    def take(self, root: Value, reach: Cone) -> None:
        """Compute this root too."""
        self.roots.append(root)
        self.cones.append(reach)
        self.producers[root] = reach
        self.piecewise |= reach.piecewise
        self.operands.update((v, i) for v, maps in reach.reads.items() for i in maps)
        self.work += self.work_added(root, reach)
        self.computed.update(reach.inlined)

    def work_added(self, root: Value, reach: Cone) -> float:
        """The additional work of one point of the kernel with this root and its cone."""
        inlined = (work_of(v) for v in reach.inlined if v not in self.computed)
        return work_of(root) + sum(inlined)

    def depends_on(self, other: Unit) -> bool:
        """Whether this unit runs after ``other`` by some path."""
        return bool(self.before >> other.number & 1)

    def follow(self, deps: set[Unit], units: list[Unit]) -> None:
        """Make it run after these units, and those after it too."""
        self.deps |= deps
        before = self.before
        for dep in deps:
            before |= dep.before | 1 << dep.number
        if before == self.before:
            return
        self.before = before
        for dep in deps:
            dep.is_followed = True
        for unit in units if self.is_followed else ():
            if unit.depends_on(self):
                unit.before |= before


def may_stop(node: Node) -> bool:
    """Whether nodes after this one may never run: it raises, or does not end."""
    if node.op in PICKS:
        return len(node.attrs["safe"]) < len(node.attrs["axes"])
    row = get(node.op)
    return row.is_control or row.kind == "extern"


def may_lack_elements(node: Node) -> bool:
    """Whether it raises where the run gives its operand no elements."""
    return get(node.op).chooses and not is_static(node.inputs[0].shape)


def _is_reduction(value: Value) -> bool:
    return get(value.node.op).kind == "reduce"


def _accumulates(value: Value) -> bool:
    """Whether it needs a loop over its axes inside the others."""
    return get(value.node.op).kind in ("reduce", "scan")


def group(
    graph: Graph, cones: KnownCones, tied: set[Value], alone: Collection[Value] = (),
    has_registers: bool = False,
) -> tuple[list[Unit], dict[Value, Unit]]:
    """The units, and the one that each root or opaque node's result is in.

    ``alone``: roots that have a unit of their own.  ``has_registers``: numbers cost nothing, and
    are grouped with those that wait for the same units.
    """
    units: list[Unit] = []
    home: dict[Value, Unit] = {}
    check: Unit | None = None  # the last: what may raise, or go on for ever, comes after it
    stop: Unit | None = None  # the last library call that may: what has no element comes after it
    results = set(graph.outputs)
    for node in graph.nodes:
        value = Value(node, 0)
        if is_boundary(node) and not _accumulates(value):
            if node.op != "Input":
                bases = (view_base(v, tied) for v in node.inputs)
                unit = Unit(len(units), opaque=node, device=node.device)
                deps = {home[v] for v in bases if v in home}
                deps.update(_before(node, home))
                unit.follow(deps | {check} if check and may_stop(node) else deps, units)
                check = unit if has_effects(node) else check
                stop = unit if may_stop(node) else stop
                home.update((out, unit) for out in node.outputs)
                units.append(unit)
        elif _accumulates(value) or value in cones.materialised:
            _place(value, cones.of(value), units, home,
                   {stop} if stop and may_lack_elements(node) else set(), value in alone,
                   has_registers)
            home[value].results += value in results
    return units, home


def _place(
    root: Value, reach: Cone, units: list[Unit], home: dict[Value, Unit], before: set[Unit],
    alone: bool, has_registers: bool,
) -> None:
    """Add the root to the latest group that may take it, or to a new one, after ``before``."""
    before = before | _before(root.node, home)
    is_free = has_registers and not reach.domain
    deps = {home[v] for v in reach.reads if v in home}
    deps.update(before)
    ahead = functools.reduce(operator.or_, (dep.before for dep in deps), 0)
    refusals: dict[Unit, str] = {}
    candidates = [u for u in units[-MAX_CANDIDATES:] if u.opaque is None]
    candidates += [u for u in deps if u.opaque is None and u not in candidates]
    for unit in () if alone else reversed(candidates):
        if reach.domain != unit.domain and unit not in deps:
            continue
        reason = "a control edge is between them" if unit in before else (
            "they wait for other kernels" if is_free and not _wait_for_the_same(unit, deps)
            else _refusal(unit, root, reach, deps, ahead))
        if reason is None:
            _join(unit, root, reach, deps, units, home)
            return
        refusals[unit] = reason
    unit = Unit(len(units), domain=reach.domain, device=root.node.device, is_alone=alone)
    units.append(unit)
    _join(unit, root, reach, deps, units, home)
    for dep in deps:
        reason = refusals.get(dep) or _apart(dep)
        unit.boundaries.append(f"{root.name} not fused with {_title(dep)}: {reason}")


def _wait_for_the_same(unit: Unit, deps: set[Unit]) -> bool:
    """Whether a number that comes after ``deps`` makes the group wait for no others."""
    before = 0
    for dep in deps - {unit}:
        before |= dep.before | 1 << dep.number
    return bool(unit.domain) or before == unit.before or (
        unit in deps and not before & ~unit.before)


def _before(node: Node, home: dict[Value, Unit]) -> set[Unit]:
    """The units that the node's control inputs are in."""
    return {home[v] for before in node.control_inputs for v in before.outputs if v in home}


def _join(
    unit: Unit, root: Value, reach: Cone, deps: set[Unit], units: list[Unit],
    home: dict[Value, Unit],
) -> None:
    if _accumulates(root):
        unit.axes = root.node.attrs["axes"]
    unit.take(root, reach)
    unit.follow(deps - {unit}, units)
    home[root] = unit


def _title(unit: Unit) -> str:
    if unit.opaque is not None:
        return f"{unit.opaque.name} ({unit.opaque.op})"
    return ", ".join(v.name for v in unit.roots)


def _apart(unit: Unit) -> str:
    """Why nothing joins an opaque unit."""
    if unit.opaque is not None and get(unit.opaque.op).kind == "view":
        return "it is a view of its own, which the kernel reads in its new shape"
    is_control = unit.opaque is not None and get(unit.opaque.op).is_control
    return f"a {'branch or loop' if is_control else 'library call'} is between them"


def _border(one: str, other: str) -> str:
    """Why nothing is fused across a border of scopes.  Where the rest runs is decided later, which
    may be on the same device."""
    return ("the program puts them on different devices" if one and other
            else "the program names a device for one of them alone")


def _refusal(
    unit: Unit, root: Value, reach: Cone, deps: set[Unit], ahead: int
) -> str | None:
    """Why the root may not join the group; ``None`` when it may.  ``ahead``: units before
    ``deps``."""
    if unit.is_alone:
        return "it sets borders in place"
    if unit.device != root.node.device:
        return _border(unit.device, root.node.device)
    shape = _shape_refusal(unit, root, reach, deps)
    if shape is not None:
        return shape
    if ahead >> unit.number & 1:
        return "a path leads through another kernel or library call"
    if _read_too_much(unit, reach):
        return f"together they read more than {MAX_OPERANDS} operands"
    if unit.results >= MAX_RESULTS and unit.domain:
        return f"it gives back {MAX_RESULTS} arrays"
    if unit.work + unit.work_added(root, reach) > _most_work(unit, reach):
        return "one kernel of both computes so much that it compiles and runs slower than two"
    if totals_of(root, reach) and totals_of(root, reach) + sum(
            map(totals_of, unit.roots, unit.cones)) > MAX_TOTALS:
        return f"a thread would keep more than {MAX_TOTALS} totals"
    return None if unit not in deps else _exchange_refusal(unit, root, reach)


def _read_too_much(unit: Unit, reach: Cone) -> bool:
    """Whether the group would have too many operands with this cone: common ones count once."""
    own, more = len(unit.operands), len(reach.reads)
    if own + more <= MAX_OPERANDS or own > MAX_OPERANDS or more > MAX_OPERANDS:
        return own + more > MAX_OPERANDS
    return own + sum(
        (value, index) not in unit.operands
        for value, maps in reach.reads.items() for index in maps) > MAX_OPERANDS


def _most_work(unit: Unit, reach: Cone) -> float:
    """How much the group may compute with this cone: more where they share so many values that
    storing or recomputing them would take longer."""
    shared = sum(1 for v in reach.inlined if v in unit.computed and work_of(v))
    return MAX_ENTANGLED_WORK if shared > MAX_EXCHANGED else MAX_WORK


def _shape_refusal(unit: Unit, root: Value, reach: Cone, deps: set[Unit]) -> str | None:
    if _accumulates(root):
        axes = root.node.attrs["axes"]
        if reach.domain != unit.domain:
            return _domains_differ(reach.domain, unit.domain)
        if unit.axes is not None and unit.axes != axes:
            return f"reduced axes differ: {axes} and {unit.axes}"
        if any(_accumulates(v) and v.node.op != root.node.op and "Scan" in (
                v.node.op, root.node.op) for v in unit.roots):
            return "a scan and a reduction take a row's elements in different orders"
        if _mixes_sums(unit, root):
            return "float32 and float64 sums keep their own order of addition"
        if unit.axes is None and any(_computed_over(unit, v) != unit.domain for v in unit.roots):
            return "the group's loops do not match the reduction"
        splits = unit.piecewise or reach.piecewise
        return "piecewise operands split the domain" if splits and not (
            _may_be_split(unit) and "in_parts" in root.node.attrs) else None
    if reach.domain == unit.domain:
        if reach.piecewise and not _may_be_split(unit):
            return "piecewise operands split the domain of a reduction"
        return None
    if unit.axes is None or reach.domain != unit.row_shape or unit not in deps:
        return _domains_differ(reach.domain, unit.domain)
    if any("in_parts" in v.node.attrs for v in unit.roots):
        return "a sum in parts is complete after the last of them"
    return "piecewise operands split the domain" if reach.piecewise else None


def _computed_over(unit: Unit, root: Value) -> tuple[Any, ...]:
    """The points at which a root without axes is computed; on a GPU without those of its parts."""
    return unit.producers[root].domain if runs_cuda(unit.device) else root.shape


def _may_be_split(unit: Unit) -> bool:
    """Whether all that it accumulates is added up in parts."""
    return all("in_parts" in v.node.attrs for v in unit.roots if _accumulates(v))


def _domains_differ(one: tuple[Any, ...], other: tuple[Any, ...]) -> str:
    return f"iteration domains differ: {text_of_shape(one)} and {text_of_shape(other)}"


def _is_sum(node: Node) -> bool:
    row = get(node.op)
    return row.kind == "reduce" and row.scalar in ("add", "mul")


def _mixes_sums(unit: Unit, root: Value) -> bool:
    """Whether the group would add up floats of two sizes: each has its own number of lanes."""
    sums = [v for v in (*unit.roots, root) if _is_sum(v.node)]
    return len({v.dtype for v in sums if v.dtype.kind == "f"}) > 1


def _exchange_refusal(unit: Unit, root: Value, reach: Cone) -> str | None:
    """Values made and used inside one group must be exchanged at the same point."""
    is_full = _is_reduction(root) or reach.domain == unit.domain
    for value in filter(unit.producers.get, reach.reads):
        if value.node.op == "CheckIndex" and reach.piecewise:
            return f"{value.name} is checked as a whole before pieces of it are read"
        producer = unit.producers[value]
        for index in reach.reads[value]:
            if producer.unrolled is not None:
                if reach.unrolled == producer.unrolled and not _is_reduction(value) and (
                        index in _parts(value, producer.unrolled)):
                    continue
                if _is_reduction(value) and reach.unrolled is not None and not is_full and (
                        runs_cuda(unit.device) and is_a_total(value, index)):
                    continue
                return f"{value.name} is computed part by part"
            if root.node.op == "Scatter" and value in root.node.inputs[1:]:
                return f"{value.name} is computed as a whole before any of it is written"
            if is_piecewise(value.node) and not has_unit_region(value.node):
                return f"{value.name} is written in strided pieces"
            if value.shape == unit.domain and not _is_reduction(value):
                # Of an axis of size 1 one element is the whole; a scan is in its loop alone.
                if index != identity(unit.domain) or (_accumulates(value) and not is_full):
                    return f"{value.name} is read at other indices than it is computed at"
            elif is_full and unit.axes is not None and not unit.outer:
                return f"{value.name} needs the whole domain before its first use"
            elif index != _row_index(unit, value, is_full):
                return f"{value.name} is read at another outer index than it is reduced at"
    return None


def _parts(value: Value, axis: int) -> list[IndexMap]:
    """Where the parts of a value are."""
    return [without_loop(identity(value.shape), axis, at) for at in range(value.shape[axis])]


def _row_index(unit: Unit, value: Value, is_full: bool) -> IndexMap:
    """How a value over the outer loops is read at its own point."""
    if not is_full:
        return identity(value.shape)
    return tuple(
        AxisIndex(loop, 1, 0) if size != 1 else AxisIndex(-1, 0, 0)
        for loop, size in zip(unit.outer, value.shape, strict=True)
    )
