"""Functions that call themselves until data ends it: a `Call` node instead of the calls inlined.

A jitted function that is called in a branch of its own call, with arguments of the same types, has
a depth that only the run knows.  Its body is traced once, on values that stand for the arguments of
any call.  What it returns is the least fixed point: at first a call of itself returns nothing, so
that the sides of branches that do not recurse say what the result is; then with a result of those
types, until it returns what is supposed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fusec.errors import TraceError, unsupported
from fusec.ir import Graph, Node, TensorType, Value

from ..choice.merge import Disagreement, flatten, is_traced, joined, same, unflatten
from ..choice.optional_values import assuming, bound, settled
from ..choice.regions import Region, captures, placeholder, subgraph
from ..control.raised_exceptions import note_state
from ..facts.layout import Strides
from ..operands.index_uses import lost_checks, note_inside
from ..places.cells import Variables
from ..values.array import TracedArray, from_value
from ..values.selected_arrays import Copied, roots
from ..values.storage import Storage
from ..values.trace import Trace

MOST_ROUNDS = 8
BOOL = TensorType(np.dtype(np.bool_), (), "scalar")  # of a function that returns no value


class NoResultYet(TraceError):
    """A call of the function itself, of which it is not known what it returns: that side of a
    branch says nothing of it.  No handler of the program's may catch it."""

    in_numpys_words = RecursionError("a function that calls itself has not returned yet")


@dataclass(frozen=True)
class Result:
    """A leaf that the function returns as a value of the graph."""

    type: TensorType
    strides: Strides


@dataclass
class Function:
    """A function that calls itself, while its body is traced."""

    name: str
    structure: Any = None
    results: list[Any] | None = None  # what it is supposed to return; None: not known yet
    raises: bool = False
    aliases: bool = False  # an array that it returns may be an argument, or older
    changed: bool = False

    @property
    def types(self) -> tuple[TensorType, ...]:
        return tuple(r.type for r in self.results or () if type(r) is Result)

    def suppose(self, structure: Any, results: list[Any]) -> None:
        """The body has returned this: go on until it returns what was supposed."""
        if self.results is not None and structure == self.structure:
            results = [_joined(a, b) for a, b in zip(self.results, results, strict=True)]
            if all(a is b or a == b for a, b in zip(self.results, results, strict=True)):
                return
        self.structure, self.results, self.changed = structure, results, True


@dataclass
class Activation:
    """A call of a jitted function in the program that is traced."""

    function: Callable[..., Any]
    arguments: Arguments
    regions: int  # branches and loops around it
    recursive: Function | None = None  # of which this is the body


class Activations(list[Activation]):
    """Of a trace: the calls in progress, the traced function's own first."""

    def of(self, function: Callable[..., Any]) -> Iterator[Activation]:
        """Those of a function, the innermost first: in the body that is traced, and the bodies of
        functions around it."""
        is_inside = True
        for activation in reversed(self):
            if activation.function == function and (is_inside or activation.recursive is not None):
                yield activation
            is_inside = is_inside and activation.recursive is None

    @property
    def is_in_body(self) -> bool:
        """Whether a body is traced, which may not be the last attempt at it."""
        return any(activation.recursive is not None for activation in self)


@dataclass
class Arguments:
    """The arguments of a call: the leaves of tuples, traced ones and others."""

    leaves: list[Any]
    structure: Any
    traced: list[TracedArray] = field(init=False)

    def __post_init__(self) -> None:
        self.traced = [x for x in self.leaves if is_traced(x)]

    @classmethod
    def of(cls, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
        leaves: list[Any] = []
        return cls(leaves, _taken_apart((args, tuple(kwargs.items())), leaves))

    def are_like(self, other: Arguments) -> bool:
        """Whether the body is the same for both."""
        return self.structure == other.structure and all(
            _are_like(a, b) for a, b in zip(self.leaves, other.leaves, strict=True))

    def with_traced(self, values: list[TracedArray]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The same call of other values."""
        news = iter(values)
        leaves = iter([next(news) if is_traced(x) else x for x in self.leaves])
        args, named = _put_together(self.structure, leaves)
        return args, dict(named)


def _taken_apart(x: Any, leaves: list[Any]) -> Any:
    """The structure of tuples; their items are added to the leaves.  Lists and dicts are leaves:
    the program may know them by another name."""
    if type(x) is tuple:
        return tuple(_taken_apart(item, leaves) for item in x)
    leaves.append(x)
    return None


def _put_together(structure: Any, leaves: Any) -> Any:
    if structure is None:
        return next(leaves)
    return tuple(_put_together(part, leaves) for part in structure)


def _are_like(a: Any, b: Any) -> bool:
    if is_traced(a) and is_traced(b):
        return a.type == b.type and a.is_array == b.is_array
    return same(a, b)


def called(
    trace: Trace, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """What a jitted function returns that the program calls: traced with it, or a `Call`."""
    arguments, active = Arguments.of(args, kwargs), trace.part(Activations)
    for before in active.of(function):
        if len(trace.record.regions) > before.regions and before.arguments.are_like(arguments):
            if before.recursive is not None:
                return _again(trace, before.recursive, arguments)
            return _call(trace, function, arguments)
    active.append(Activation(function, arguments, len(trace.record.regions)))
    try:
        return _inlined(trace, function, args, kwargs)
    finally:
        active.pop()


def _inlined(
    trace: Trace, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    assert trace.hooks is not None
    return trace.hooks.call(trace.hooks.where, function, *args, **kwargs)


# ------------------------------------------------------------------------- a call of itself


def _again(trace: Trace, recursive: Function, arguments: Arguments) -> Any:
    """In the body: what the function returns for other arguments."""
    if recursive.results is None:
        raise NoResultYet("a call of a function that has not returned", loc=trace.loc)
    op = "CheckedRecursion" if recursive.raises else "Recursion"
    node = trace.emit(op, *(x.value for x in arguments.traced), function=recursive.name,
                      results=recursive.types or (BOOL,)).node
    if recursive.raises:
        trace.record.checks.append(node)
        note_state(trace, node)
    return _returned(trace, recursive, node, arguments)


def _returned(trace: Trace, recursive: Function, node: Node, arguments: Arguments) -> Any:
    """The result, of a node that gives its traced leaves."""
    assert recursive.results is not None
    values = iter(node.outputs)
    others = [root for x in arguments.traced if x.storage is not None for root in roots(x.storage)]
    return unflatten(recursive.structure, [
        _leaf(trace, next(values), leaf, others if recursive.aliases else [])
        if type(leaf) is Result else leaf for leaf in recursive.results])


def _leaf(trace: Trace, value: Value, result: Result, others: list[Storage]) -> TracedArray:
    if others and value.type.kind == "array":
        return TracedArray(trace, Copied(trace, value, others, result.strides))
    return from_value(trace, value, result.strides or None)


# ------------------------------------------------------------------------------- the first call


def _call(trace: Trace, function: Callable[..., Any], arguments: Arguments) -> Any:
    """A call whose depth only the run knows."""
    operands = [x.value for x in arguments.traced]
    known = trace.part(Bodies).find(trace, function, arguments)
    if known is not None:
        return known.emit(operands, arguments)
    recursive = Function(trace.builder.namer.fresh(getattr(function, "__name__", "function")))
    for _ in range(MOST_ROUNDS):
        recursive.changed = False
        body = _Body(trace, function, arguments, recursive)
        if not recursive.changed:
            body.finish()
            if not trace.part(Activations).is_in_body:
                trace.part(Bodies).append(body)
            return body.emit(operands, arguments)
    raise unsupported(f"the function {recursive.name}, which calls itself and whose result does "
                      f"not settle", loc=trace.loc,
                      cure="return numbers and arrays of the same types on every path")


class Bodies(list["_Body"]):
    """Of a trace: the bodies of its functions that call themselves."""

    def find(
        self, trace: Trace, function: Callable[..., Any], arguments: Arguments
    ) -> _Body | None:
        """One that does the same for these arguments."""
        return next((body for body in self if body.function == function
                     and body.arguments.are_like(arguments) and body.is_valid()), None)


class _Body:
    """The body, traced on what stands for any arguments."""

    def __init__(
        self, trace: Trace, function: Callable[..., Any], arguments: Arguments,
        recursive: Function,
    ) -> None:
        self.trace, self.function, self.recursive = trace, function, recursive
        self.arguments = arguments
        self.region = Region(trace)
        self.parameters = [placeholder(trace, x.type, "argument") for x in arguments.traced]
        self.stand_ins = [
            from_value(trace, parameter, x.strides or None)
            for parameter, x in zip(self.parameters, arguments.traced, strict=True)]
        self.results: list[Value] = []
        self.checks: list[Node] = []
        self.graph: Graph
        self.others: list[Value] = []
        hooks: Any = trace.hooks
        where, variables = hooks.where, Variables(trace, ())
        self.before = before = variables.read()
        activation = Activation(
            function, Arguments.of(*arguments.with_traced(self.stand_ins)),
            len(trace.record.regions) + 1, recursive)
        trace.part(Activations).append(activation)
        try:
            self._run(lambda: _inlined(trace, function, *arguments.with_traced(self.stand_ins)))
            if variables.differ_from(before):
                raise self._writes()
        finally:
            trace.part(Activations).pop()
            variables.restore(before)
            self.region.take_checks()
            self.region.undo()
            hooks.where = where

    def _run(self, run: Callable[[], Any]) -> None:
        trace, hooks = self.trace, self.trace.hooks
        try:
            with assuming(trace), hooks.effects.region(run):  # type: ignore[union-attr]
                result = settled(trace, bound(trace, run()))
        except NoResultYet:
            raise unsupported(
                f"the function {self.recursive.name}, which calls itself on every path",
                loc=trace.loc, cure="return without a further call where a condition holds",
            ) from None
        leaves, structure = flatten(result)
        changed = [s.storage for s in self.stand_ins if s.storage is not None and s.storage.version]
        if self.region.written() or changed:
            raise self._writes()
        values = [x for x in leaves if is_traced(x)]
        self.results = [x.value for x in values]
        self._note_aliases(values)
        is_known = self.recursive.results is not None
        self.recursive.suppose(structure, [
            Result(x.type, x.strides) if is_traced(x) else x for x in leaves])
        self.checks = self.region.take_checks() if is_known else []
        uses = self.region.take_index_uses()
        self.checks += lost_checks(
            trace, uses, [*(v.node for v in self.results), *self.checks])
        if is_known and self.checks and not self.recursive.raises:
            self.recursive.raises = self.recursive.changed = True

    def _note_aliases(self, values: list[TracedArray]) -> None:
        """Whether the run decides that what is returned is memory from before the call."""
        older = [root for x in values if x.storage is not None for root in roots(x.storage)
                 if root.born < self.region.start or isinstance(root, Copied) or any(
                     root is s.storage for s in self.stand_ins)]
        if older and not self.recursive.aliases:
            self.recursive.aliases = self.recursive.changed = True

    def _writes(self) -> Exception:
        return unsupported(
            f"the function {self.recursive.name}, which calls itself until data ends it and "
            f"changes what is older than the call", loc=self.trace.loc,
            cure="return what it computes, or write the recursion as a loop; prints and draws of "
            "random numbers are changes, too")

    def finish(self) -> None:
        """Make the graph, once the results have settled."""
        gives = self.results or [self.trace.builder.const(BOOL.dtype.type(True))]
        self.others = captures(self.region, [*gives, *(n.out() for n in self.checks)])
        self.graph = subgraph(
            self.recursive.name, gives, self.parameters, self.others, (), self.checks)

    def is_valid(self) -> bool:
        """Whether it would be the same now: nothing that it reads has been written since."""
        storages = self.trace.feeds.storages
        return not Variables(self.trace, ()).differ_from(self.before) and all(
            v.node.op == "Input" and v in self.trace.feeds.inputs and (
                (storage := storages[v.node.attrs["index"]]) is None or not storage.version)
            for v in self.others)

    def emit(self, operands: list[Value], arguments: Arguments) -> Any:
        """Put a call into the graph; its result."""
        trace = self.trace
        node = trace.emit("Call", *operands, *self.others, body=self.graph, own=len(operands),
                          function=self.recursive.name).node
        if self.checks:
            trace.record.checks.append(node)
            note_state(trace, node)
        note_inside(trace, node)
        return _returned(trace, self.recursive, node, arguments)


def _joined(supposed: Any, found: Any) -> Any:
    """A leaf that holds both."""
    if type(supposed) is Result and type(found) is Result:
        try:
            type_ = joined(supposed.type, found.type)
        except Disagreement:
            return found
        return supposed if type_ == supposed.type else Result(type_, found.strides)
    return supposed if type(supposed) is not Result and same(supposed, found) else found
