"""Loop fusion: the last pass; groups of nodes become ``Fused`` nodes, one kernel each.

does    chooses the values to materialise, puts roots that share an iteration domain into groups,
        and replaces each group by a ``Fused`` node whose body recomputes everything else
needs   primitive ops only (after decomposition)
leaves  Input, Const, Fused, extern and Reshape nodes; each Fused node carries, in ``boundaries``,
        why it was not merged with the kernels it reads from

A *root* is a reduction or a materialised value.  A group has a domain and, once it holds a
reduction, reduced axes; the other axes are its outer loops.  Roots merge when every value they
exchange inside the group is exchanged at the same outer point, and no path leads out of the group
and back in.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from fusec.ir import Graph, Node, Value
from fusec.ops import Namer, get
from fusec.ops.checks import CHECKS, has_effects
from fusec.ops.cones import (
    Cone,
    cone,
    cone_cost,
    has_unit_region,
    is_boundary,
    is_piecewise,
    view_base,
)
from fusec.ops.index_maps import AxisIndex, IndexMap, identity, without_loop

from .apart import apart_axes
from .materialise import RECOMPUTE_LIMIT, materialised_values

MAX_OPERANDS = 48  # more pointers than this in one loop spill registers
MAX_CANDIDATES = 32  # groups looked at per root: keeps huge graphs linear
# A step of time that all later ones compute again takes two rounds; a round looks at every node.
MAX_ROUNDS, MAX_VISITS, MIN_ROUNDS = 64, 40_000, 8


@dataclass(eq=False)
class Unit:
    """A group of roots, or one opaque node (library call, reshape).

    ``before`` has a bit, by their numbers, for every unit that it runs after by some path.
    """

    number: int
    domain: tuple[int, ...] = ()
    axes: tuple[int, ...] | None = None
    roots: list[Value] = field(default_factory=list)
    cones: list[Cone] = field(default_factory=list)
    opaque: Node | None = None
    deps: set[Unit] = field(default_factory=set)
    before: int = 0
    is_followed: bool = False  # whether any unit runs after it
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

    @property
    def piecewise(self) -> bool:
        return any(c.piecewise for c in self.cones)

    @property
    def operand_count(self) -> int:
        return len({(v, i) for c in self.cones for v, maps in c.reads.items() for i in maps})

    def depends_on(self, other: Unit) -> bool:
        """Whether this unit runs after ``other`` by some path."""
        return bool(self.before >> other.number & 1)

    def follow(self, deps: set[Unit], units: list[Unit]) -> None:
        """Make it run after these units, and what runs after it too."""
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


def fuse(graph: Graph) -> Graph:
    """Replace groups of nodes by ``Fused`` nodes; see the module docstring."""
    extra: set[Value] = set()
    apart = apart_axes(graph)
    for _ in range(max(MIN_ROUNDS, min(MAX_ROUNDS, MAX_VISITS // max(len(graph.nodes), 1)))):
        materialised = materialised_values(graph, extra, apart)
        units, home = _group(graph, materialised, apart)
        duplicated = _most_expensive_duplicate(units, materialised)
        if duplicated is None:
            break
        extra.add(duplicated)
    if all(unit.opaque is not None for unit in units):
        return graph
    return _rebuild(graph, units, home, materialised, apart)


# -------------------------------------------------------------------------------------- grouping


def may_stop(node: Node) -> bool:
    """Whether what follows the node may never run: it raises, or does not end."""
    if node.op in ("Pick", "PickUpdate"):
        return len(node.attrs["safe"]) < len(node.attrs["axes"])
    return node.op in ("Loop", "Cond") or node.op in CHECKS or get(node.op).kind == "extern"


def _is_reduction(value: Value) -> bool:
    return get(value.node.op).kind == "reduce"


def _accumulates(value: Value) -> bool:
    """Whether it needs a loop over its axes inside the others."""
    return get(value.node.op).kind in ("reduce", "scan")


def _group(
    graph: Graph, materialised: set[Value], apart: dict[Value, int]
) -> tuple[list[Unit], dict[Value, Unit]]:
    units: list[Unit] = []
    home: dict[Value, Unit] = {}
    check: Unit | None = None  # the last: what may raise, or go on for ever, comes after it
    for node in graph.nodes:
        value = Value(node, 0)
        if is_boundary(node) and not _accumulates(value):
            if node.op != "Input":
                bases = map(view_base, node.inputs)
                unit = Unit(len(units), opaque=node)
                deps = {home[v] for v in bases if v in home}
                unit.follow(deps | {check} if check and may_stop(node) else deps, units)
                check = unit if has_effects(node) else check
                home.update((out, unit) for out in node.outputs)
                units.append(unit)
        elif _accumulates(value) or value in materialised:
            _place(value, cone(value, materialised, apart.get(value)), units, home)
    return units, home


def _place(root: Value, reach: Cone, units: list[Unit], home: dict[Value, Unit]) -> None:
    """Add the root to the latest group that may take it, or to a new one."""
    deps = {home[v] for v in reach.reads if v in home}
    refusals: dict[Unit, str] = {}
    candidates = [u for u in units[-MAX_CANDIDATES:] if u.opaque is None]
    candidates += [u for u in deps if u.opaque is None and u not in candidates]
    for unit in reversed(candidates):
        reason = _refusal(unit, root, reach, deps)
        if reason is None:
            _join(unit, root, reach, deps, units, home)
            return
        refusals[unit] = reason
    unit = Unit(len(units), domain=reach.domain)
    units.append(unit)
    _join(unit, root, reach, deps, units, home)
    for dep in deps:
        reason = refusals.get(dep, "a library call is between them")
        unit.boundaries.append(f"{root.name} not fused with {_title(dep)}: {reason}")


def _join(
    unit: Unit, root: Value, reach: Cone, deps: set[Unit], units: list[Unit],
    home: dict[Value, Unit],
) -> None:
    if _accumulates(root):
        unit.axes = root.node.attrs["axes"]
    unit.roots.append(root)
    unit.cones.append(reach)
    unit.follow(deps - {unit}, units)
    home[root] = unit


def _title(unit: Unit) -> str:
    if unit.opaque is not None:
        return f"{unit.opaque.name} ({unit.opaque.op})"
    return ", ".join(v.name for v in unit.roots)


def _refusal(unit: Unit, root: Value, reach: Cone, deps: set[Unit]) -> str | None:
    """Why the root may not join the group; ``None`` when it may."""
    shape = _shape_refusal(unit, root, reach, deps)
    if shape is not None:
        return shape
    if any(dep is not unit and dep.depends_on(unit) for dep in deps):
        return "a path leads through another kernel or library call"
    if unit.operand_count + len(reach.reads) > MAX_OPERANDS:
        return f"together they read more than {MAX_OPERANDS} operands"
    return None if unit not in deps else _exchange_refusal(unit, root, reach)


def _shape_refusal(unit: Unit, root: Value, reach: Cone, deps: set[Unit]) -> str | None:
    if _accumulates(root):
        axes = root.node.attrs["axes"]
        if reach.domain != unit.domain:
            return f"iteration domains differ: {reach.domain} and {unit.domain}"
        if unit.axes is not None and unit.axes != axes:
            return f"reduced axes differ: {axes} and {unit.axes}"
        if any(_accumulates(v) and v.node.op != root.node.op and "Scan" in (
                v.node.op, root.node.op) for v in unit.roots):
            return "a scan and a reduction take a row's elements in different orders"
        if _mixes_sums(unit, root):
            return "float32 and float64 sums keep their own order of addition"
        if unit.axes is None and any(v.shape != unit.domain for v in unit.roots):
            return "the group's loops do not match the reduction"
        return "piecewise operands split the domain" if unit.piecewise else None
    if reach.domain == unit.domain:
        if unit.axes is not None and reach.piecewise:
            return "piecewise operands split the domain of a reduction"
        return None
    if unit.axes is None or reach.domain != unit.row_shape or unit not in deps:
        return f"iteration domains differ: {reach.domain} and {unit.domain}"
    return "piecewise operands split the domain" if reach.piecewise else None


def _mixes_sums(unit: Unit, root: Value) -> bool:
    """Whether the group would add up floats of two sizes: each has its own number of lanes."""
    sums = [v for v in (*unit.roots, root) if v.node.op in ("Sum", "Prod")]
    return len({v.dtype for v in sums if v.dtype.kind == "f"}) > 1


def _exchange_refusal(unit: Unit, root: Value, reach: Cone) -> str | None:
    """Values made and used inside one group must be exchanged at the same point."""
    is_full = _is_reduction(root) or reach.domain == unit.domain
    for value, made in zip(unit.roots, unit.cones, strict=True):
        for index in reach.reads.get(value, ()):
            if made.apart is not None:
                if reach.apart == made.apart and not _is_reduction(value) and (
                        index in _parts(value, made.apart)):
                    continue
                return f"{value.name} is computed part by part"
            if root.node.op == "Scatter" and value in root.node.inputs[1:]:
                return f"{value.name} is computed as a whole before any of it is written"
            if is_piecewise(value.node) and not has_unit_region(value.node):
                return f"{value.name} is written in strided pieces"
            if value.shape == unit.domain and not _is_reduction(value):
                if index != identity(unit.domain):
                    return f"{value.name} is read at other indices than it is computed at"
            elif is_full and unit.axes is not None and not unit.outer:
                return f"{value.name} needs the whole domain before its first use"
            elif index != _row_index(unit, value, is_full):
                return f"{value.name} is read at another outer index than it is reduced at"
    return None


def _parts(value: Value, apart: int) -> list[IndexMap]:
    """Where the parts of a value are."""
    return [without_loop(identity(value.shape), apart, at) for at in range(value.shape[apart])]


def _row_index(unit: Unit, value: Value, is_full: bool) -> IndexMap:
    """How a value over the outer loops is read at its own point."""
    if not is_full:
        return identity(value.shape)
    return tuple(
        AxisIndex(loop, 1, 0) if size != 1 else AxisIndex(-1, 0, 0)
        for loop, size in zip(unit.outer, value.shape, strict=True)
    )


def _most_expensive_duplicate(units: list[Unit], materialised: set[Value]) -> Value | None:
    """The last value that two kernels both recompute although storing it would be cheaper."""
    owners: dict[Value, set[int]] = {}
    for number, unit in enumerate(units):
        for reach in unit.cones:
            for value in reach.inlined:
                owners.setdefault(value, set()).add(number)
    shared = [v for v, kernels in owners.items() if len(kernels) > 1]
    for value in sorted(shared, key=lambda v: v.node.id, reverse=True):
        cost = cone_cost(value, materialised, 2 * RECOMPUTE_LIMIT)
        # Within one group a stored value costs one store; the other kernels save the whole cone.
        if cost * (len(owners[value]) - 1) > RECOMPUTE_LIMIT / 2:
            return value
    return None


# ------------------------------------------------------------------------------------ rebuilding


def _rebuild(
    graph: Graph, units: list[Unit], home: dict[Value, Unit], materialised: set[Value],
    apart: dict[Value, int],
) -> Graph:
    namer = Namer(n.name for n in graph.nodes)
    replaced: dict[Value, Value] = {v: v for v in graph.inputs}
    wanted = _wanted_outside(graph, units, home)
    effects: list[Node] = []
    newest = 0
    for unit in _in_order(units):
        if unit.opaque is not None:
            node = unit.opaque.with_inputs([_view(v, replaced) for v in unit.opaque.inputs])
            if effects and node.id < newest:  # what follows a check is not to come before it
                node = node.copied()
            newest = node.id
            effects += [node] if has_effects(node) else []
            replaced.update(zip(unit.opaque.outputs, node.outputs, strict=True))
        else:
            node = _emit_group(unit, wanted, apart, replaced, namer)
            newest = node.id
            effects += [node] if has_effects(node) else []
    return Graph.build(
        graph.inputs, [_value(v, replaced) for v in graph.outputs],
        [(i, _value(v, replaced)) for i, v in graph.updates], graph.name, effects,
    )


def _value(value: Value, replaced: dict[Value, Value]) -> Value:
    return value if value.node.op == "Const" else replaced[value]


def _view(value: Value, replaced: dict[Value, Value]) -> Value:
    """An operand of a library call: views of its base stay views."""
    chain = []
    while value not in replaced and value.node.op != "Const":
        chain.append(value)
        value = value.node.inputs[0]
    result = _value(value, replaced)
    for shown in reversed(chain):
        result = shown.node.with_inputs([result]).out()
        replaced[shown] = result
    return result


def _wanted_outside(graph: Graph, units: list[Unit], home: dict[Value, Unit]) -> set[Value]:
    wanted = set(graph.roots)
    for unit in units:
        wanted.update(v for v in unit.roots if has_effects(v.node))
        if unit.opaque is not None:
            wanted.update(map(view_base, unit.opaque.inputs))
        for reach in unit.cones:
            wanted.update(v for v in reach.reads if home.get(v) is not unit)
    return wanted


def _in_order(units: list[Unit]) -> list[Unit]:
    """Units after those they read from."""
    order: list[Unit] = []
    done: set[Unit] = set()
    for start in units:
        stack = [(start, False)]
        while stack:
            unit, expanded = stack.pop()
            if unit in done:
                continue
            if expanded:
                done.add(unit)
                order.append(unit)
            else:
                stack.append((unit, True))
                stack.extend((d, False) for d in unit.deps if d not in done)
    return order


def _emit_group(
    unit: Unit, wanted: set[Value], apart: dict[Value, int], replaced: dict[Value, Value],
    namer: Namer,
) -> Node:
    """The group's node, entered into ``replaced``."""
    results = [v for v in unit.roots if v in wanted]
    body, externals = _body(unit, results, namer.fresh("fused"))
    attrs = {
        "body": body, "domain": unit.domain, "axes": unit.axes or (),
        "boundaries": tuple(unit.boundaries),
    }
    parts = tuple((v.node.name, apart[v]) for v in unit.roots if v in apart)
    if parts:
        attrs["apart"] = parts
    node = Node(
        "Fused", [_value(v, replaced) for v in externals], [v.type for v in results], attrs,
        name=body.name, loc=results[-1].node.loc,
    )
    replaced.update(zip(results, node.outputs, strict=True))
    return node


def _body(unit: Unit, results: list[Value], name: str) -> tuple[Graph, list[Value]]:
    """The group's own graph, reading its external operands through Input nodes."""
    inside = set(unit.roots)
    nodes, externals = _collect(unit, inside)
    mapping: dict[Value, Value] = {}
    namer = Namer(node.name for node in nodes)
    for position, value in enumerate(externals):  # several outputs of a node are several inputs
        title = namer.fresh(value.node.name)
        attrs = {"index": position, "path": title, "type": value.type}
        source = Node("Input", (), (value.type,), attrs, name=title, loc=value.node.loc)
        mapping[value] = source.out()
    for node in nodes:
        # A copy even when nothing changed: ids must follow the new inputs' ids.
        inputs = [mapping[v] for v in node.inputs]
        copy = Node(
            node.op, inputs, node.types, node.attrs, name=node.name, loc=node.loc,
        )
        mapping.update(zip(node.outputs, copy.outputs, strict=True))
    graph = Graph.build(
        [mapping[v] for v in externals], [mapping[v] for v in results], name=name,
    )
    return graph, externals


def _collect(unit: Unit, inside: set[Value]) -> tuple[list[Node], list[Value]]:
    """Nodes recomputed by the group in order, and the values it reads from outside."""
    nodes: dict[int, Node] = {}
    externals: dict[Value, None] = {}
    for root, reach in zip(unit.roots, unit.cones, strict=True):
        nodes[root.node.id] = root.node
        nodes.update((v.node.id, v.node) for v in reach.inlined)
        externals.update((v, None) for v in reach.reads if v not in inside)
    for node in list(nodes.values()):
        nodes.update((v.node.id, v.node) for v in node.inputs if v.node.op == "Const")
    ordered = [nodes[i] for i in sorted(nodes)]
    return ordered, sorted(externals, key=lambda v: (v.node.id, v.index))
