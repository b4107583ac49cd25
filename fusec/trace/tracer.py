"""Running a function once on traced values: from a call to a `Graph`."""

from __future__ import annotations

import functools
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from traceback import walk_tb
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from fusec.core.code_roles import is_ours
from fusec.core.records import dataclass, field, replace
from fusec.errors import (
    ConcreteValueError,
    FusecError,
    UnsupportedError,
    unsupported,
    users_own,
)
from fusec.ir import Graph, Node, Value
from fusec.ir.sizes.dims import UndecidedSizeError
from fusec.ir.sizes.graph_at_sizes import GraphAtSizes
from fusec.ir.sizes.instantiate import Instantiation
from fusec.ops.calls.checks import describe_error, has_effects
from fusec.ops.calls.index_checks import may_refuse
from fusec.state.variable import snapshot

from .boundary.arguments import (
    asked_flags,
    ids_of_own_arrays,
    input_strides,
    layout_guards,
    read_only,
    traced_arguments,
)
from .boundary.bundles import bundled
from .boundary.leftovers import check_containers, check_kept
from .boundary.one_moment import of_one_moment
from .boundary.results import ResultLeaf, outputs_of
from .boundary.size_order import is_tied
from .boundary.sized_results import output_at
from .call.flat_call import FlatCall
from .call.foreign_arrays import check_names
from .call.symbolic_arguments import OpenArguments
from .choice.choice import unbound
from .choice.flat_results import flat_results
from .control.branches import Endless
from .control.raised_exceptions import as_checked, free_variable, is_programs, state_now
from .control.unrolling import SlowLoops
from .convert.cache import convert
from .facts.code_names import with_inner
from .facts.dict_versions import Rebindings
from .facts.error_states import States, StatesAtSizes
from .facts.graph_length import warn_of_length
from .facts.trees import flattened, too_deep
from .guards.array_values import GuardedArrays, Handles
from .guards.container_changes import ContainerChanges
from .guards.growing_structures import checked_result
from .guards.guard import Checks, Guard, itself
from .guards.process_state import builtin_guards, code_guards
from .guards.static_arguments import note_arguments
from .hooks.loop_forms import in_other_forms
from .hooks.policy import hooks_of_program
from .index import indexing  # noqa: F401 (answers for arrays: see `values.operations`)
from .library.callees import in_numpys_words
from .library.host_calls import HostCalls
from .numpy import methods  # noqa: F401 (as above)
from .objects.activations import Activation, Activations, Arguments
from .objects.recursion import numbers_vary
from .objects.tracing_hooks import TracingHooks
from .objects.variables import Created, Met, TraceVariables
from .operands.index_uses import lost_checks
from .operands.sizes import SizeTable, undecided
from .operands.texts import without_values
from .places.outside_memory import apart_guards
from .places.shared_results import linked
from .python import dlpack, numpy_source, vectorized_calls  # noqa: F401 (as above)
from .scipy import special  # noqa: F401 (as above)
from .source.errors import SourceUnavailable
from .ufuncs import operators  # noqa: F401 (as above)
from .values.assigned_names import AssignedNames, settled_trace
from .values.differentiation import Differentiated
from .values.exception_handlers import leaving_refusals, raised_at
from .values.own_arrays import OwnArrays
from .values.trace import Trace, tracing

_WALK = 50  # frames of fusec in a row; between two of the program's there are fewer


@dataclass
class Traced:
    """A finished trace."""

    graph: Graph
    outputs: list[ResultLeaf]
    treespec: Any
    output_strides: list[tuple[int, ...]]
    input_strides: list[tuple[int, ...]]
    captured: list[Any]
    read_only: set[int]  # inputs that are arrays from outside which cannot be written
    positions: list[int]  # input position of each leaf, -1 for static leaves
    guards: list[Any]
    ms: float
    notes: list[str] = field(default_factory=list)
    # Places assigned after the call, with the structure of their values, whose leaves follow
    # the result's among the outputs.
    assignments: list[tuple[Any, Any]] = field(default_factory=list)
    calls_host: bool = False  # whether it calls objects of the user's: generators, print
    container_changes: ContainerChanges = field(default_factory=ContainerChanges)
    # What was assigned where it may raise.
    states: States | StatesAtSizes = field(default_factory=States)
    variables: list[Met] = field(default_factory=list)
    created: list[Created] = field(default_factory=list)
    symbolic: OpenArguments | None = None  # where sizes are, or were, symbols
    apart: frozenset[tuple[int, int]] = frozenset()  # inputs that are to be different arrays
    rebindings: Rebindings = field(default_factory=Rebindings)
    own_arrays: frozenset[int] = frozenset()  # captured arrays that the trace made, by identity
    made_for_sizes: frozenset[int] = frozenset()  # the same, of arrays that `instantiated` makes
    own_bytes: int = 0  # of arrays from outside that are made for these sizes
    of_gradient: frozenset[str] = frozenset()  # nodes of the graph that derivatives made
    asked_flags: Mapping[int, bool] = field(default_factory=dict)  # whether inputs may be written
    known_checks: Checks | None = None  # of guards that plans share; see `checks`

    @property
    def updates(self) -> list[int]:
        return list(self.graph.updated)

    def at_sizes(self, sizes: Mapping[str, int]) -> Traced:
        """The trace for arguments of these sizes, which its symbols stand for."""
        return self.instantiated(Instantiation(sizes))

    def captured_now(self) -> list[Any]:
        """What is read from outside, as it is now: copies of arrays, for who computes later."""
        values = [source() if callable(source) else source for source in self.captured]
        return [np.array(v) if isinstance(v, np.ndarray) else v for v in values]

    def instantiated(self, mapping: Instantiation) -> Traced:
        """The same, of nodes that another graph may share."""
        start = time.perf_counter()
        assert isinstance(self.states, States)
        graph = GraphAtSizes(self.graph, mapping)
        if any(step.operands for o in self.outputs for step in o.steps):
            graph.made  # noqa: B018  # which they name the nodes of
        captured = [mapping.data(source) for source in self.captured]
        made = [new for new, old in zip(captured, self.captured, strict=True)
                if new is not old and isinstance(new, np.ndarray)]
        return replace(
            self, graph=graph, outputs=[output_at(mapping, output) for output in self.outputs],
            output_strides=[mapping.data(row) for row in self.output_strides],
            input_strides=[mapping.data(row) for row in self.input_strides],
            captured=captured, made_for_sizes=frozenset(map(id, made)),
            own_bytes=sum(array.nbytes for array in made),
            states=StatesAtSizes(self.states, mapping), container_changes=ContainerChanges(),
            ms=1e3 * (time.perf_counter() - start))

    @property
    def checks(self) -> Checks | None:
        """The checks of its guards, where other plans share them: not those of another instance."""
        known = self.known_checks
        return known if known is not None and known.guards is self.guards else None

    @property
    def written_leaves(self) -> frozenset[int]:
        """Positions of the leaves that a call writes to."""
        updates = set(self.updates)
        return frozenset(i for i, number in enumerate(self.positions) if number in updates)


def trace_function(fn: Callable[..., Any], name: str, call: FlatCall) -> Traced:
    """Run ``fn`` on traced arguments; raises the user's errors at the user's lines."""
    start = time.perf_counter()
    try:
        traced = of_one_moment(lambda: in_other_forms(partial(_traced_again, lambda: settled_trace(
            lambda names: _traced(fn, name, call, names), call.varying))))
    except RecursionError as error:
        if not _is_of_walk(error):
            raise
        raise too_deep() from None
    traced.ms = 1e3 * (time.perf_counter() - start)
    return traced


def _traced_again(run: Callable[[], Traced]) -> Traced:
    """Traced with counters of a function that calls itself as values of the run, if need be."""
    try:
        return run()
    except UnsupportedError as error:
        if type(error.__context__) is not RecursionError:
            raise
    with numbers_vary():
        return run()


def _traced(fn: Callable[..., Any], name: str, call: FlatCall, names: AssignedNames) -> Traced:
    trace = _begun(name, names)
    trace.builder.devices = call.placing and call.placing.scope
    if call.symbolic is not None:
        trace.builder.is_symbolic = call.symbolic.sizes.is_open = True
        call.symbolic.sizes.where = lambda: str(trace.loc or "")
        trace.feeds.layout_of = call.symbolic.layout_outside
    hooks = hooks_of_program(trace)
    args, kwargs, positions = traced_arguments(trace, call)
    _enter(trace, fn, name)
    trace.part(Activations).append(Activation(fn, Arguments.of(args, kwargs), 0))
    note_arguments(trace, call)
    runnable = _converted(trace, fn, hooks)
    for function in trace.entry:
        check_names(function, trace.entry_loc)
        trace.world.reachable.enter(function)
    taken: Any = (args, kwargs)
    given = flattened(taken)
    containers = trace.world.containers
    with (trace.part(ContainerChanges), tracing(trace), trace.world.outer_names.held(trace.entry),
          containers.during_trace()):
        result = _run(trace, runnable, args, kwargs)
        check_containers(trace, given, taken)
        once = check_kept(trace)
        containers.check_new_items()
        once += [*containers.once(), *trace.part(TraceVariables).guards()]
        effects = containers.effects()
        containers.check_unchosen([value for _, value in effects])
        later, result = bundled(trace, linked(trace, [value for _, value in effects], result))
        leaves, treespec = flat_results(trace, result)
        leaves = list(map(snapshot, leaves))
        assigned = [flat_results(trace, v) for v in later]
        leaves += [leaf for part, _ in assigned for leaf in part]
        outputs, values, strides = outputs_of(trace, leaves)
        graph = _graph(trace, values)
    if not trace.part(SlowLoops).is_told:
        warn_of_length(graph, trace.record.notes)
    if call.symbolic is not None:
        call.symbolic.sizes.is_open = False
    guards = [*once, *_guards(trace, hooks, graph)]
    trace.world.reachable.close()
    return Traced(
        graph, outputs, treespec, strides, input_strides(trace), trace.feeds.captured,
        read_only(trace), positions, guards, 0.0,
        [*trace.record.notes, *trace.builder.notes, *map(str, once)],
        [(assignment, tree) for (assignment, _), (_, tree) in zip(effects, assigned, strict=True)],
        trace.part(HostCalls).any, trace.part(ContainerChanges), trace.part(States),
        *trace.part(TraceVariables).close(trace), call.symbolic,
        frozenset(trace.part(Handles).apart), trace.part(Rebindings), ids_of_own_arrays(trace),
        of_gradient=trace.part(Differentiated).made(graph), asked_flags=asked_flags(trace))


def _begun(name: str, names: AssignedNames) -> Trace:
    """A trace with its collaborators; the hooks give the rest."""
    trace = Trace(name)
    trace.put(HostCalls.begun(trace))
    trace.local.memory = OwnArrays(trace)
    trace.world.assigned_names = names
    return trace


def _enter(trace: Trace, fn: Callable[..., Any], name: str) -> None:
    """Note the function that is traced; the parts of a partial are guarded."""
    function: Any = fn
    while isinstance(function, functools.partial):
        function = function.func
    function = getattr(function, "__func__", function)
    trace.entry = (function,) if isinstance(function, FunctionType) else ()
    if isinstance(fn, functools.partial):
        trace.world.guards[id(fn), ""] = Guard(
            name, f"what {name} is a partial of", partial(itself, fn))


def _graph(trace: Trace, values: list[Value]) -> Graph:
    """The graph that computes the values, writes to the inputs, and checks."""
    storages, checks = trace.feeds.storages, trace.record.checks
    updates: Any = [(s.origin, s.value) for s in storages if s is not None and s.version > 0]
    needed = [*values, *(v for _, v in updates), *(n.out() for n in checks)]
    checks += lost_checks(trace, trace.record.index_uses, [v.node for v in needed])
    graph = Graph.build(trace.feeds.inputs, values, updates, trace.name, checks)
    while is_tied(graph, trace.part(SizeTable).definers):
        graph = Graph.build(trace.feeds.inputs, values, updates, trace.name, checks)
    _refuse_parameters_of_loops(graph)
    return graph


def _refuse_parameters_of_loops(graph: Graph) -> None:
    """Values of an iteration that a function keeps, say, have no meaning after the loop."""
    own = set(graph.inputs)
    for node in graph.nodes:
        if node.op == "Input" and node.out() not in own:
            raise unsupported(
                f"using {node.attrs['path']!r} of an iteration after its loop, which a function "
                "that the iteration made keeps,", loc=node.loc,
                cure="bind what is needed later to a variable, as an array or number")


def _guards(trace: Trace, hooks: TracingHooks, graph: Graph) -> list[Any]:
    """All that must hold for the graph to answer another call."""
    world = trace.world
    functions = [*hooks.functions, *world.watch.functions, *trace.entry]
    for guard in world.guards.values():
        if guard.refresh():
            trace.part(Rebindings).is_of_name = True
    taken = [g for _, guards in trace.part(GuardedArrays).values() for g in guards]
    return [*taken, *(g for g in world.guards.values() if not world.reachable.is_read(g)),
            *layout_guards(trace), *apart_guards(trace, {i for i, _ in graph.updates}),
            *world.reachable.guards(functions, world.outer_names.are_inputs()),
            *builtin_guards(functions), *code_guards(functions, trace.entry)]


def _run(trace: Trace, runnable: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Any:
    """The function's result; exceptions of its own leave marked as the user's."""
    handled = sys.exception()  # what made an earlier attempt fail
    try:
        with leaving_refusals(), trace.world.watch.around():
            return checked_result(runnable(*args, **kwargs), trace.entry_loc)
    except FusecError as error:
        if _raises_in_the_run(trace, error):
            return None
        raise
    except UndecidedSizeError as error:
        raise undecided(trace, error) from None
    except Exception as error:
        cause = error.__cause__ or error.__context__
        if isinstance(cause, ConcreteValueError) and cause is not handled and (
                type(error) in (TypeError, ValueError)):
            raise cause from None  # NumPy's C code replaced it by a message about sequences
        if type(error) is TypeError and (text := in_numpys_words(str(error))) != str(error):
            raise trace.error(TypeError(text)) from None
        if name := free_variable(error):
            if not _is_free(trace, error, name):
                error = unbound(name).with_traceback(error.__traceback__)
            users_own(error)
            raise error from None
        if isinstance(error, RecursionError) and _is_of_walk(error):
            raise
        if isinstance(error, RecursionError) and trace.part(Endless).loc is not None:
            raise unsupported(
                "a function that calls itself until data ends it", loc=trace.part(Endless).loc,
                cure="put fusec.jit on the function that calls itself, where what it returns has "
                "one shape, or write a loop",
                notes=("tracing takes both sides of a branch that data decides",)) from None
        if _raises_in_the_run(trace, error):
            return None
        without_values(error)
        users_own(error)
        raise


def _is_of_walk(error: RecursionError) -> bool:
    """Whether fusec met it in a container, not the program in its own calls."""
    innermost = deque(walk_tb(error.__traceback__), maxlen=_WALK)
    return all(is_ours(frame.f_globals) or frame.f_globals.get("__name__") == "contextlib"
               for frame, _ in innermost)


def _is_free(trace: Trace, error: Exception, variable: str) -> bool:
    """Whether the variable without a value is one of an outer function in the program itself: in
    converted code variables of the function are free ones of its parts."""
    where = raised_at(error)
    name = where.tb_frame.f_code.co_qualname if where is not None else ""
    owners = [code for fn in (*trace.entry, *getattr(trace.hooks, "functions", ()))
              for code in with_inner(fn.__code__)
              if name == code.co_qualname or name.startswith(f"{code.co_qualname}.<locals>.")]
    inmost = max(owners, key=lambda code: len(code.co_qualname), default=None)
    return inmost is not None and variable in inmost.co_freevars


def _raises_in_the_run(trace: Trace, error: BaseException) -> bool:
    """Whether the program's own exception becomes a check: others come before it, as data decides,
    or assignments."""
    is_own = not isinstance(error, FusecError) and describe_error(error) is not None
    record = trace.record
    if not is_programs(error) or not (
            any(map(has_effects, record.checks)) or any(
                not isinstance(use, Node) or not may_refuse(use)
                for use in record.index_uses) or (
            is_own and state_now(trace) is not None)):
        return False
    record.checks += lost_checks(trace, record.index_uses, record.checks)  # before this one
    record.index_uses.clear()
    trace.check(trace.builder.const(np.bool_(False)), as_checked(trace, error))
    return True


def _converted(trace: Trace, fn: Callable[..., Any], hooks: TracingHooks) -> Callable[..., Any]:
    if not isinstance(fn, (FunctionType, MethodType)):
        return hooks.resolve(fn)
    try:
        return convert(fn, hooks)
    except SourceUnavailable as error:
        raise error.located(trace.entry_loc) from None
