"""Rules that the program gives, as graphs: `fusec.passes.gradient.given_rules` uses them.

A rule is traced where the function is called, on values that stand for cotangents or tangents; its
nodes of other values are computed there, once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fusec.core.display.amounts import count_text
from fusec.core.records import dataclass, field
from fusec.errors import unsupported, user_error
from fusec.ir import Graph, Node, TensorType, Value
from fusec.ir.walks import nodes_behind
from fusec.ops.calls.checks import has_effects
from fusec.ops.calls.given_derivatives import GIVEN
from fusec.ops.derivatives import DIFFERENTIABLE
from fusec.trace.choice.optional_values import assuming, bound, settled
from fusec.trace.choice.regions import TraceRegion, captures, placeholder, subgraph
from fusec.trace.facts.trees import flattened
from fusec.trace.operands.operands import as_traced
from fusec.trace.places.cells import CellVariables
from fusec.trace.values.array import TracedArray, from_value
from fusec.trace.values.differentiation import Differentiated
from fusec.trace.values.selected_arrays import Copied, roots
from fusec.trace.values.storage import Storage
from fusec.trace.values.trace import Trace

from .point import called, direction, drawn

Tree = Any


@dataclass
class Argument:
    """One that has derivatives: ``inside`` is the function's own, whose leaves at
    ``places`` are the values by which there are derivatives."""

    number: int
    structure: Any
    leaves: list[Any]
    places: list[int]
    inside: Tree

    @property
    def primals(self) -> list[TracedArray]:
        return [self.leaves[k] for k in self.places]


class RuleCall:
    """A call of a function with a rule; its arguments are arrays with memory of their own."""

    def __init__(
        self, trace: Trace, name: str, args: tuple[Any, ...], nondiff_argnums: Sequence[int]
    ) -> None:
        wrong = [n for n in nondiff_argnums if not -len(args) <= n < len(args)]
        if wrong:
            raise user_error(
                TypeError, f"{name}: nondiff_argnums has {wrong[0]}, and the call "
                f"{count_text(len(args), 'argument')}", trace.loc,
                "count positional arguments from 0")
        self.trace, self.name, self.args = trace, name, list(args)
        constant = {n % len(args) for n in nondiff_argnums}
        self.given: dict[int, list[Storage]] = {}  # by the id of a storage what it stands for
        self.arguments = [self._argument(n, arg) for n, arg in enumerate(args)
                          if n not in constant]
        self.constants = [args[n] for n in sorted(constant)]
        for argument in self.arguments:
            self.args[argument.number] = argument.inside
        self.region = TraceRegion(trace)

    def _argument(self, number: int, arg: Any) -> Argument:
        leaves, structure = flattened(arg)
        leaves = [self._stand_in(leaf) for leaf in leaves]
        places = [k for k, leaf in enumerate(leaves) if _is_differentiable(leaf)]
        return Argument(number, structure, leaves, places, structure.unflatten(leaves))

    def _stand_in(self, leaf: Any) -> Any:
        if not _is_number(leaf):
            return leaf
        x = as_traced(self.trace, leaf)
        if x.dtype.kind not in DIFFERENTIABLE or x.storage is None:
            return leaf
        inside = from_value(self.trace, x.value, x.strides or None)
        assert inside.storage is not None
        self.given[id(inside.storage)] = roots(x.storage)
        return inside

    @property
    def primals(self) -> list[TracedArray]:
        return [x for argument in self.arguments for x in argument.primals]

    def check_unwritten(self) -> None:
        """Raise where the function has written to memory that it did not make."""
        written = any(x.storage is not None and x.storage.version for x in self.primals)
        if written or self.region.written():
            raise unsupported(
                f"{self.name}, which writes to what is older than its call,", loc=self.trace.loc,
                cure="compute on a copy and return it; random numbers are drawn outside")

    def closed(self, values: Sequence[Value]) -> list[Value]:
        """Values that they depend on beside the arguments that have derivatives."""
        own = {x.value for x in self.primals}
        return [v for v in captures(self.region, values)
                if v not in own and v.dtype.kind in DIFFERENTIABLE]

    def apart(self, run: Callable[[], Any]) -> Any:
        """The result of a part of the rule, which may change only objects of its own."""
        trace, hooks = self.trace, self.trace.hooks
        assert hooks is not None
        where, variables, region = hooks.where, CellVariables(trace, ()), TraceRegion(trace)
        before = variables.read()
        try:
            with assuming(trace), hooks.effects.region(run):  # type: ignore[attr-defined]
                result = settled(trace, bound(trace, run()))
            changed = variables.differ_from(before) or bool(region.written())
        finally:
            variables.restore(before)
            checks = region.take_checks()
            region.undo()
            hooks.where = where
        if changed or checks:
            raise unsupported(
                f"{self.name}: a rule that writes to what is older than its call, or raises, "
                "prints or draws as data decides,", loc=trace.loc,
                cure="do that in the function, and keep what the rule needs of it")
        return result

    def pair(self, result: Any, what: str) -> tuple[Any, Any]:
        """The two things that a rule returns."""
        if not isinstance(result, tuple) or len(result) != 2:
            raise user_error(TypeError, f"{self.name}: the rule returns no pair", self.trace.loc,
                             f"return {what}", values=[("returned", type(result).__name__)])
        return result


def _is_number(leaf: Any) -> bool:
    """Whether it is an array or a number of the run: constants of the trace have no derivative."""
    return type(leaf) is TracedArray or hasattr(leaf, "__array_interface__")


def _is_differentiable(leaf: Any) -> bool:
    return type(leaf) is TracedArray and leaf.dtype.kind in DIFFERENTIABLE


@dataclass
class RuleResult:
    """The function's result: leaves that have derivatives, at ``places``, and others."""

    call: RuleCall
    structure: Any
    leaves: list[Any]
    places: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, call: RuleCall, tree: Tree) -> RuleResult:
        leaves, structure = flattened(tree)
        return cls(call, structure, leaves,
                   [k for k, leaf in enumerate(leaves) if _is_differentiable(leaf)])

    @property
    def values(self) -> list[Value]:
        return [self.leaves[k].value for k in self.places]

    def with_rule(self, direction: str, rule: DerivativeRule, primals: Sequence[Value]) -> Tree:
        """The result, with a rule for the leaves that have derivatives."""
        trace, closed = self.call.trace, self.call.closed(self.values)
        if not self.places:
            return self.structure.unflatten(self.leaves)
        values = [trace.emit("StopGradient", v) for v in self.values]  # memory of its own
        node = trace.emit(
            GIVEN, *values, *rule.read, *closed, *primals, rule=rule.graph, direction=direction,
            values=len(values), read=len(rule.read), closed=len(closed)).node
        leaves = list(self.leaves)
        for k, value in zip(self.places, node.outputs, strict=True):
            leaves[k] = self._leaf(leaves[k], value)
        return self.structure.unflatten(leaves)

    def _leaf(self, leaf: TracedArray, value: Value) -> TracedArray:
        """One that may be an argument's memory is read as long as that is unchanged."""
        if leaf.storage is None:
            return from_value(self.call.trace, value)
        older = [root for root in roots(leaf.storage)
                 if id(root) in self.call.given or root.born < self.call.region.start]
        shared = [x for root in older for x in self.call.given.get(id(root), [root])]
        if not shared:
            return from_value(self.call.trace, value, leaf.strides or None)
        return TracedArray(self.call.trace, Copied(
            self.call.trace, value, shared, leaf.strides or None))


@dataclass(frozen=True)
class DerivativeRule:
    """A graph over directions and other values that it reads."""

    graph: Graph
    read: list[Value]


def _rule(
    call: RuleCall, name: str, outs: Sequence[Value], seeds: Sequence[Value]
) -> DerivativeRule:
    """The nodes behind ``outs`` that depend on the seeds."""
    given, dependent, read = set(seeds), set(seeds), set[Value]()
    first = min((v.node.id for v in seeds), default=0)
    nodes = nodes_behind(outs, lambda v: v in given or v.node.id < first)
    for node in nodes:
        if not dependent.isdisjoint(node.inputs):
            _check_pure(call, node)
            dependent.update(node.outputs)
            read.update(node.inputs)
    needed = sorted({v for v in (*read, *outs) if v not in dependent and v.node.op != "Const"},
                    key=lambda v: (v.node.id, v.index))
    return DerivativeRule(subgraph(name, outs, seeds, needed), needed)


def _check_pure(call: RuleCall, node: Node) -> None:
    if has_effects(node):
        raise unsupported(f"{call.name}: a rule with effects", loc=node.loc,
                          cure="print and draw in the function, not in its rule")


def _seed(trace: Trace, value: Value, name: str) -> Value:
    kind: Any = "array" if value.type.kind == "array" else "scalar"
    return placeholder(trace, TensorType(value.dtype, value.shape, kind), name)


# ----------------------------------------------------------------------------------- custom_vjp


def backward_rule(call: RuleCall, forward: Any, backward: Any) -> Tree:
    """The function's result, which ``forward`` computes."""
    trace = call.trace
    given = settled(trace, bound(trace, called(trace, forward, tuple(call.args), {})))
    call.check_unwritten()
    tree, residuals = call.pair(given, "(result, residuals)")
    result = RuleResult.of(call, tree)
    seeds = [_seed(trace, v, "cotangent") for v in result.values]
    leaves = [_zeros(trace, leaf) for leaf in result.leaves]
    for k, seed in zip(result.places, seeds, strict=True):
        leaves[k] = from_value(trace, seed, result.leaves[k].strides or None)
    cotangents = result.structure.unflatten(leaves)

    def run() -> Any:
        return called(trace, backward, (*call.constants, residuals, cotangents), {})

    primals, outs = _cotangents(call, call.apart(run))
    rule = _rule(call, "backward", outs, seeds)
    return result.with_rule("back", rule, primals)


def _zeros(trace: Trace, leaf: Any) -> Any:
    """The cotangent of a leaf that has none."""
    return leaf * 0 if _is_number(leaf) or isinstance(leaf, (int, float)) else None


def _cotangents(call: RuleCall, found: Any) -> tuple[list[Value], list[Value]]:
    """Of the rule's results: values, and their cotangents."""
    if not isinstance(found, tuple) or len(found) != len(call.arguments):
        count = len(found) if isinstance(found, tuple) else type(found).__name__
        raise user_error(
            TypeError, f"{call.name}: bwd returns no tuple of a cotangent for each argument",
            call.trace.loc, "return (by_x, by_y, ...), with None for zero; of one argument (by_x,)",
            values=[("arguments", len(call.arguments)), ("returned", count)])
    primals, outs = [], []
    for argument, tree in zip(call.arguments, found, strict=True):
        if tree is None:
            continue
        leaves = _like(call, argument.structure, tree, "cotangents")
        for k in argument.places:
            if leaves[k] is not None:
                primals.append(argument.leaves[k].value)
                outs.append(_fitted(call, leaves[k], argument.leaves[k], "cotangents"))
    return primals, outs


def _like(call: RuleCall, structure: Any, tree: Tree, what: str) -> list[Any]:
    """The leaves of a tree of this structure."""
    try:
        leaves: list[Any] = structure.flatten_up_to(tree)
    except (ValueError, TypeError):
        leaves = [(tree,)]
    if any(isinstance(leaf, (list, tuple, dict)) for leaf in leaves):
        raise user_error(
            ValueError, f"{call.name}: the {what} have another structure than the values",
            call.trace.loc, values=[
                ("values", drawn(structure)), (what, drawn(flattened(tree)[1]))])
    return leaves


def _fitted(call: RuleCall, leaf: Any, like: TracedArray, what: str) -> Value:
    return direction(call.trace, call.name, leaf, like, what).value


# ----------------------------------------------------------------------------------- custom_jvp


def forward_rule(call: RuleCall, jvp: Any) -> Tree:
    """The function's result, which ``jvp`` computes beside the tangent."""
    trace, seeds, tangents = call.trace, list[Value](), list[Any]()
    for argument in call.arguments:
        leaves = [_zeros(trace, leaf) for leaf in argument.leaves]
        for k in argument.places:
            seed = _seed(trace, argument.leaves[k].value, "tangent")
            leaves[k] = from_value(trace, seed, argument.leaves[k].strides or None)
            seeds.append(seed)
        tangents.append(argument.structure.unflatten(leaves))
    inside = tuple(argument.inside for argument in call.arguments)

    def run() -> Any:
        return called(trace, jvp, (*call.constants, inside, tuple(tangents)), {})

    tree, tangent = call.pair(call.apart(run), "(result, tangent)")
    call.check_unwritten()
    result = RuleResult.of(call, tree)
    _check_independent(call, result, seeds)
    found = _like(call, result.structure, tangent, "tangents")
    outs = [_fitted(call, 0.0 * result.leaves[k] if found[k] is None else found[k],
                    result.leaves[k], "tangents") for k in result.places]
    return result.with_rule(
        "forward", _rule(call, "tangents", outs, seeds), [x.value for x in call.primals])


def _check_independent(call: RuleCall, result: RuleResult, seeds: Sequence[Value]) -> None:
    if any(v in seeds for node in nodes_behind(result.values) for v in node.inputs) or any(
            v in seeds for v in result.values):
        raise user_error(ValueError, f"{call.name}: the result depends on the tangents",
                         call.trace.loc, "return (result, tangent), in this order")


# ------------------------------------------------------------------------------- vectorize


def with_partials(
    trace: Trace, name: str, args: Sequence[TracedArray], f: Callable[..., TracedArray],
    *partials: Callable[..., TracedArray],
) -> Tree:
    """An elementwise function of the arguments, with its partial derivatives by each."""
    call, seeds = RuleCall(trace, name, tuple(args), ()), list[Value]()
    result, total = RuleResult.of(call, f(*call.args)), None
    if not result.places:
        return result.structure.unflatten(result.leaves)
    for argument, partial in zip(call.arguments, partials, strict=True):
        for x in argument.primals:
            seeds.append(_seed(trace, x.value, "tangent"))
            part: Any = partial(*call.args)
            part = part * from_value(trace, seeds[-1])
            total = part if total is None else total + part
    outs = [_fitted(call, leaf * 0 if total is None else total, leaf, "tangents")
            for leaf in result.leaves]
    return result.with_rule("forward", _rule(call, "tangents", outs, seeds),
                            [x.value for x in call.primals])


Differentiated.with_partials = staticmethod(with_partials)
