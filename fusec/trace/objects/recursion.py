"""Functions that call themselves until data ends it: a `Call` node instead of the calls inlined.

A jitted function that is called in a branch of its own call, with arguments of the same types, has
a depth that only the run knows.  Its body is traced once, on values that stand for the arguments of
any call.  The type of its result is the least fixed point: at first a call of itself returns
nothing, so that the sides of branches that do not recurse give the type; then a result of that
type, until it returns the type that is supposed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

import numpy as np

from fusec.errors import ConcreteValueError, TraceError, UnsupportedError, unsupported
from fusec.ir import Graph, Node, TensorType, Value
from fusec.ir.sizes.dims import UndecidedSizeError, symbols_of
from fusec.ir.sizes.polynomials import is_argument

from ..choice.merge import flatten, is_traced, unflatten
from ..choice.optional_values import assuming, bound, settled
from ..choice.regions import TraceRegion, captures, placeholder, subgraph
from ..control.raised_exceptions import note_state
from ..operands.index_uses import lost_checks, note_inside
from ..places.cells import CellVariables
from ..values.array import TracedArray, from_value
from ..values.selected_arrays import Copied, roots
from ..values.storage import Storage
from ..values.trace import Trace
from .activations import Activation, Activations, Arguments, RecursiveFunction, ReturnedLeaf

MOST_ROUNDS = 8
FP = ("strict", "contract", "fast")  # each allows what those before it do
fp_around: ContextVar[str] = ContextVar("fp", default="fast")  # of what is traced
BOOL = TensorType(np.dtype(np.bool_), (), "scalar")  # of a function that returns no value


_numbers_vary: ContextVar[bool] = ContextVar("numbers_vary", default=False)


@contextmanager
def numbers_vary() -> Iterator[None]:
    """Numbers that a function gives itself are values of the run, though it is known while tracing,
    all of them: ``depth + 1``.  A second way, for recursion that has no end otherwise."""
    token = _numbers_vary.set(True)
    try:
        yield
    finally:
        _numbers_vary.reset(token)


class NoResultYet(TraceError):
    """A call of the function itself, whose result's type is not known: that side of a
    branch says nothing of it.  No handler of the program's may catch it."""

    in_numpys_words = RecursionError("a function that calls itself has not returned yet")


def called(
    trace: Trace, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
    fp: str,
) -> Any:
    """The result of a jitted function that the program calls: traced with it, or a `Call`."""
    arguments, active = Arguments.of(args, kwargs), trace.part(Activations)
    for before in active.of(function):
        if _numbers_vary.get() and len(trace.record.regions) > before.regions:
            arguments = arguments.with_numbers(trace)
            before = replace(before, arguments=before.arguments.with_numbers(trace))
        if len(trace.record.regions) > before.regions and before.arguments.are_like(arguments):
            if before.recursive is not None:
                return _again(trace, before.recursive, arguments)
            return _call(trace, function, arguments)
    if FP.index(fp) < FP.index(fp_around.get()):
        body = _apart(trace, function, arguments, fp)
        if body is not None:
            return body.emit([x.value for x in arguments.traced], arguments)
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


# --------------------------------------------------------------------------------- rounding


@contextmanager
def rounding(fp: str) -> Iterator[None]:
    """The traced code may round so."""
    token = fp_around.set(fp)
    try:
        yield
    finally:
        fp_around.reset(token)


def _apart(
    trace: Trace, function: Callable[..., Any], arguments: Arguments, fp: str
) -> _Body | None:
    """The body of a function that must not round as its caller may; None where it has to be traced
    with the caller: it writes to older memory, or needs to know its arguments."""
    try:
        with rounding(fp):
            body = settled_body(trace, function, arguments, fp)
    except (UnsupportedError, ConcreteValueError, UndecidedSizeError) as error:
        reason = str(error).partition("\n")[0]
    else:
        if not body.recursive.aliases:
            return body
        reason = "it returns an array that it was given"
    name, around = getattr(function, "__name__", "a function"), fp_around.get()
    trace.record.notes.append(f"{name} has fp={fp!r} and is traced with fp={around!r}: {reason}")
    return None


# ------------------------------------------------------------------------- a call of itself


def _again(trace: Trace, recursive: RecursiveFunction, arguments: Arguments) -> Any:
    """In the body: the function's result for other arguments."""
    recursive.asked = True
    if recursive.results is None:
        raise NoResultYet("a call of a function that has not returned", loc=trace.loc)
    op = "CheckedRecursion" if recursive.raises else "Recursion"
    node = trace.emit(op, *(x.value for x in arguments.traced), function=recursive.name,
                      results=recursive.types or (BOOL,)).node
    if recursive.raises:
        trace.record.checks.append(node)
        note_state(trace, node)
    return _returned(trace, recursive, node, arguments)


def _returned(trace: Trace, recursive: RecursiveFunction, node: Node, arguments: Arguments) -> Any:
    """The result, of a node that gives its traced leaves."""
    assert recursive.results is not None
    values = iter(node.outputs)
    others = [root for x in arguments.traced if x.storage is not None for root in roots(x.storage)]
    return unflatten(recursive.structure, [
        _leaf(trace, next(values), leaf, others if recursive.aliases else [])
        if type(leaf) is ReturnedLeaf else leaf for leaf in recursive.results])


def _leaf(trace: Trace, value: Value, result: ReturnedLeaf, others: list[Storage]) -> TracedArray:
    if others and value.type.kind == "array":
        return TracedArray(trace, Copied(trace, value, others, result.strides))
    return from_value(trace, value, result.strides or None)


# ------------------------------------------------------------------------------- the first call


def _call(trace: Trace, function: Callable[..., Any], arguments: Arguments) -> Any:
    """A call whose depth only the run knows."""
    operands = [x.value for x in arguments.traced]
    earlier = trace.part(Bodies).find(trace, function, arguments)
    if earlier is not None:
        return earlier.emit(operands, arguments)
    body = settled_body(trace, function, arguments)
    if not trace.part(Activations).is_in_body:
        trace.part(Bodies).append(body)
    return body.emit(operands, arguments)


def settled_body(
    trace: Trace, function: Callable[..., Any], arguments: Arguments, fp: str | None = None
) -> _Body:
    """The body that returns the type supposed of calls in it."""
    name = trace.builder.namer.fresh(getattr(function, "__name__", "function"))
    recursive = RecursiveFunction(name, fp=fp)
    for _ in range(MOST_ROUNDS):
        recursive.changed = False
        body = _Body(trace, function, arguments, recursive)
        if not (recursive.changed and recursive.asked):
            body.finish()
            return body
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
    """The body, traced on stand-ins for any arguments."""

    def __init__(
        self, trace: Trace, function: Callable[..., Any], arguments: Arguments,
        recursive: RecursiveFunction,
    ) -> None:
        self.trace, self.function, self.recursive = trace, function, recursive
        self.arguments = arguments
        self.region = TraceRegion(trace)
        self.parameters = [placeholder(trace, x.type, "argument") for x in arguments.traced]
        self.stand_ins = [
            from_value(trace, parameter, x.strides or None)
            for parameter, x in zip(self.parameters, arguments.traced, strict=True)]
        self.results: list[Value] = []
        self.checks: list[Node] = []
        self.graph: Graph
        self.others: list[Value] = []
        hooks: Any = trace.hooks
        where, variables = hooks.where, CellVariables(trace, ())
        self.before = before = variables.read()
        args, kwargs = arguments.with_traced(self.stand_ins)
        activation = Activation(
            function, Arguments.of(args, kwargs), len(trace.record.regions) + 1, recursive)
        trace.part(Activations).append(activation)
        try:
            self._run(lambda: _inlined(trace, function, args, kwargs))
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
        self.returned = values = [x for x in leaves if is_traced(x)]
        self.results = [x.value for x in values]
        if not all(map(is_argument, symbols_of(tuple(x.type for x in values)))):
            raise unsupported(
                f"a call of {self.recursive.name} in the graph, whose result has a size that only "
                f"the run knows", loc=trace.loc, cure="return arrays of a known size")
        self._note_aliases(values)
        is_known = self.recursive.results is not None or not self.recursive.asked
        self.recursive.suppose(structure, [
            ReturnedLeaf(x.type, x.strides) if is_traced(x) else x for x in leaves])
        self.checks = self.region.take_checks() if is_known else []
        uses = self.region.take_index_uses()
        self.checks += lost_checks(
            trace, uses, [*(v.node for v in self.results), *self.checks])
        if is_known and self.checks and not self.recursive.raises:
            self.recursive.raises = self.recursive.changed = True

    def _note_aliases(self, values: list[TracedArray]) -> None:
        """Whether the run decides that the result is memory from before the call."""
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
        return not CellVariables(self.trace, ()).differ_from(self.before) and all(
            v.node.op == "Input" and v in self.trace.feeds.inputs and (
                (storage := storages[v.node.attrs["index"]]) is None or not storage.version)
            for v in self.others)

    def emit(self, operands: list[Value], arguments: Arguments) -> Any:
        """Put a call into the graph; its result."""
        trace = self.trace
        fp = {} if self.recursive.fp is None else {"fp": self.recursive.fp}
        node = trace.emit("Call", *operands, *self.others, body=self.graph, own=len(operands),
                          function=self.recursive.name, **fp).node
        if self.checks:
            trace.record.checks.append(node)
        note_inside(trace, node)
        return _returned(trace, self.recursive, node, arguments)
