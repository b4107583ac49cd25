"""One trace for calls of several shapes: its graph has symbols for sizes, a plan is made for each
combination of them.

The first call is traced for its own sizes.  A second one that differs in sizes alone is traced with
symbols in their place, and the passes run on that graph; from then on a call of other sizes has
them substituted into the optimised graph.  Questions of the trace and the passes about sizes (see
`symbolic_numbers`) must have the same answers; a size of which the trace asked the value
is a constant, as if the argument were another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from fusec.core.records import dataclass, field, replace
from fusec.ir import Graph
from fusec.ir.sizes.graph_at_sizes import GraphAtSizes
from fusec.ir.sizes.instantiate import Instantiation
from fusec.ir.sizes.size_questions import Question
from fusec.ir.sizes.symbolic_numbers import Sizes
from fusec.passes.options import PassOptions
from fusec.passes.pipeline import PassRecord, run_pipeline
from fusec.placement.placers import placer_for
from fusec.trace.call.flat_call import FlatCall
from fusec.trace.call.placement_settings import trace_key
from fusec.trace.call.symbolic_arguments import (
    OpenArguments,
    SymbolicArguments,
    symbolic_arguments,
)

from ..stages import OptimizedStage, TracedStage
from .outside_sizes import (
    MOST_EARLIER,
    EarlierCall,
    HeldGuards,
    HeldLayouts,
    differ_in_sizes,
    varying_attributes,
)
from .size_families import MOST_SEEN, MOST_TRACES, Family
from .symbolic_plans import OpenPlans

if TYPE_CHECKING:
    from fusec.trace.tracer import Traced

    from ..concrete_function import ConcreteFunction

MOST_OPTIMISED = 8  # graphs of one trace; further sizes go through the passes by themselves
_Tracer = Callable[[FlatCall], "Traced"]
_Sized = Mapping[str, int]


@dataclass(frozen=True)
class _Optimised:
    """A trace's graph after the passes, for sizes of which these questions have these answers."""

    questions: dict[Question, str]
    graph: Graph
    records: list[PassRecord]
    plans: OpenPlans


@dataclass
class SymbolicTrace:
    """A trace with symbols, and its graph after the passes."""

    name: str
    traced: Traced
    options: PassOptions
    named: frozenset[str]  # symbols that arguments have; others are sizes of arrays outside
    optimised: list[_Optimised] = field(default_factory=list)
    refusal: str = ""  # why the passes run for each combination of sizes

    def __post_init__(self) -> None:
        self.guards = HeldGuards(self.traced)

    @property
    def arguments(self) -> OpenArguments:
        assert self.traced.symbolic is not None
        return self.traced.symbolic

    @property
    def is_alive(self) -> bool:
        """Whether the Variables that it uses are."""
        return all(met.reference() is not None for met in self.traced.variables)

    @property
    def constants(self) -> set[str]:
        """The symbols of arguments of which it needs the values."""
        return self.arguments.sizes.constants().keys() & self.named

    def served(self, sizes: _Sized) -> _Sized | None:
        """The sizes of a call whose arguments have these, if its size questions are answered alike
        and the guards hold."""
        bound = self.guards.bound(sizes) if self.is_alive else None
        holds = bound is not None and self.arguments.sizes.hold(bound) and self.guards.hold(bound)
        return bound if holds else None

    def at_sizes(self, call: FlatCall, sizes: _Sized) -> OptimizedStage:
        """The stage after the passes, for a call of these sizes."""
        optimised, instantiation = self._optimised(sizes), Instantiation(sizes)
        traced = self.traced.instantiated(instantiation)
        traced.guards, traced.known_checks = self.guards.at(sizes), self.guards.checks
        stage = TracedStage(self.name, call, traced, self.options)
        if optimised is None:
            if self.refusal:
                stage.traced.notes = [*stage.traced.notes, f"passes for each size: {self.refusal}"]
            return stage.optimize()
        graph = GraphAtSizes(optimised.graph, instantiation, before=stage.graph)
        return OptimizedStage(stage, graph, optimised.records, 0.0,
                              partial(optimised.plans.at_sizes, instantiation))

    def optimised_for(self, sizes: _Sized) -> Graph | None:
        """The graph with symbols after the passes, as it is for these sizes."""
        optimised = self._optimised(sizes)
        return None if optimised is None else optimised.graph

    def _optimised(self, sizes: _Sized) -> _Optimised | None:
        """The graph after passes whose questions have the same answers for these sizes; None where
        the passes must run on the graph of these sizes."""
        if self.refusal:
            return None
        if placer_for(self.traced.graph) is not None:  # sizes decide where nodes run
            return None
        for optimised in self.optimised:
            if all(question.holds(sizes) for question in optimised.questions):
                return optimised
        if len(self.optimised) >= MOST_OPTIMISED:
            return None
        try:
            self.optimised.append(_run_passes(self.traced, sizes, self.options))
        except Exception as error:  # on the graph of these sizes they say what is wrong
            self.refusal = _reason(error)
            return None
        return self.optimised[-1]


def _run_passes(trace: Traced, hints: _Sized, options: PassOptions) -> _Optimised:
    """The passes on symbols of which these are the hints."""
    sizes = Sizes.of(hints)
    records: list[PassRecord] = []
    with sizes.asked_by_passes() as questions:
        graph = Instantiation(sizes.symbols()).graph(trace.graph)
        fused = run_pipeline(graph, options, records)
    plans = OpenPlans(fused, trace.input_strides, trace.output_strides)
    return _Optimised(questions, fused, records, plans)


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"


class SymbolicTraces:
    """The traces with symbols of one function."""

    def __init__(self) -> None:
        self._families: dict[tuple, Family] = {}

    def clear(self) -> None:
        self._families.clear()

    def find(self, call: FlatCall) -> tuple[SymbolicTrace, _Sized] | None:
        """A trace that serves the call, and its sizes."""
        arguments, family = self._family(call)
        if arguments is None or family is None:
            return None
        for trace in family.candidates(arguments.sizes):
            sizes = trace.served(arguments.sizes)
            if sizes is not None:
                return trace, sizes
        return None

    def adopt(self, call: FlatCall, traces: Iterable[SymbolicTrace]) -> None:
        """Keep traces that another instance's calls like this one have made."""
        arguments = _arguments(call)
        if arguments is None:
            return
        family = self._family_of(arguments)
        for trace in traces:
            if trace.arguments.key == arguments.key:
                family.add(trace)
                family.first_of(family.values(arguments.sizes), arguments.sizes)

    def foresee(self, call: FlatCall) -> None:
        """Calls of other sizes than this one's will come: its trace has symbols at once."""
        arguments = _arguments(call)
        if arguments is not None:
            family = self._family_of(arguments)
            family.seen[family.values(arguments.sizes)] = {}

    def make(
        self, name: str, call: FlatCall, tracer: _Tracer, options: PassOptions, *, at_once: bool,
        others: Callable[[], Iterator[ConcreteFunction]] = lambda: iter(()),
    ) -> tuple[SymbolicTrace, _Sized] | None:
        """A new trace with symbols; None where the call is the first of its kind (unless
        ``at_once``), or sizes cannot be symbols.  ``others``: plans that there are."""
        arguments = _arguments(call)
        if arguments is None:
            return None
        family = self._family_of(arguments)
        values = family.values(arguments.sizes)
        first = family.first_of(values, arguments.sizes)
        is_full = len(family.traces.get(values, ())) >= MOST_TRACES
        if family.refusal or is_full:
            return None
        earlier = list(islice(_like(call, others()), MOST_EARLIER if family.follows_outside else 0))
        is_first = first == arguments.sizes and not (at_once and first)
        if is_first and not any(differ_in_sizes(other.guards) for other, _ in earlier):
            return None
        try:
            trace = _made(name, call, tracer, options, arguments, earlier, family)
        except Exception as error:  # the trace without symbols says what is wrong, if anything is
            family.refusal = _reason(error)
            return None
        is_for_once = trace.traced.created or any(g.is_once for g in trace.traced.guards)
        if not is_for_once:
            family.add(trace)
        return trace, trace.arguments.sizes.hints

    def drop_dead(self) -> None:
        """Forget traces of which a Variable is gone.  This may happen at any moment: no table
        changes its size."""
        for family in self._families.values():
            family.general = [trace for trace in family.general if trace.is_alive]
            for values, traces in family.traces.items():
                family.traces[values] = [trace for trace in traces if trace.is_alive]

    def supersede(
        self, concrete: ConcreteFunction, others: Iterator[ConcreteFunction], guards: HeldGuards,
    ) -> None:
        """Traces without symbols whose calls this one serves, too, count as its plans."""
        symbolic = concrete.build.traced.symbolic
        assert symbolic is not None
        for other, arguments in _like(concrete.build.call, others):
            if other.build.traced.symbolic is None and arguments.key == symbolic.key and (
                    guards.held_for(arguments.sizes, other.guards)):
                other.build.traced.symbolic = symbolic

    def take_back_refusal(self, call: FlatCall) -> None:
        """The call cannot be traced at all: that says nothing of symbols."""
        _, family = self._family(call)
        if family is not None:
            family.refusal = ""

    def varying(
        self, call: FlatCall, others: Callable[[], Iterator[ConcreteFunction]],
    ) -> frozenset[str]:
        """The attributes whose numbers varied from call to call, where traces follow them."""
        _, family = self._family(call)
        if family is None or not family.follows_outside:
            return frozenset()
        return _varying(islice(_like(call, others()), MOST_EARLIER))

    def give_up_outside(self, call: FlatCall) -> None:
        """Traces that follow sizes of arrays outside fail."""
        _, family = self._family(call)
        if family is not None:
            family.follows_outside = False

    def reason(self, call: FlatCall) -> str:
        """Why calls that differ from this one in sizes alone are traced each by itself."""
        arguments, family = self._family(call)
        return "" if arguments is None or family is None else family.refusal or (
            family.fixed_sizes(arguments, call.paths))

    def _family_of(self, arguments: SymbolicArguments) -> Family:
        """The family of such arguments, a new one where there is none."""
        if len(self._families) >= MOST_SEEN and arguments.key not in self._families:
            self._families.pop(next(iter(self._families)))
        return self._families.setdefault(arguments.key, Family())

    def _family(self, call: FlatCall) -> tuple[SymbolicArguments | None, Family | None]:
        arguments = _arguments(call)
        return arguments, None if arguments is None else self._families.get(arguments.key)


_Like = tuple["ConcreteFunction", SymbolicArguments]


def _made(
    name: str, call: FlatCall, tracer: _Tracer, options: PassOptions,
    arguments: SymbolicArguments, earlier: list[_Like], family: Family,
) -> SymbolicTrace:
    """The trace of a call.  Arrays read from outside have symbols where they varied and are all
    compared, which in lists they are not."""
    def traced(opened: OpenArguments, varying: frozenset[str] = frozenset()) -> SymbolicTrace:
        traced = tracer(replace(call, symbolic=opened, varying=varying))
        return SymbolicTrace(name, traced, options, frozenset(arguments.sizes))

    opened, varying = arguments.opened(), _varying(earlier)
    layouts = HeldLayouts(opened, [
        EarlierCall.of(other.build.traced, sizes.sizes) for other, sizes in earlier])
    opened.layout_outside = layouts.of
    try:
        trace = traced(opened, varying)
        if trace.guards.are_complete:
            return trace
        trace.traced.container_changes.take_back()
    except Exception:  # perhaps only so
        if not (layouts.are_used or varying):
            raise
    trace = traced(arguments.opened())
    family.follows_outside = False
    return trace


def _varying(earlier: Iterable[_Like]) -> frozenset[str]:
    return frozenset().union(*(varying_attributes(other.guards) for other, _ in earlier))


def _like(call: FlatCall, others: Iterator[ConcreteFunction]) -> Iterator[_Like]:
    """Those for calls with arguments of the same structure, and these arguments."""
    for other in others:
        arguments = _seen_as(call, other.build.call)
        if arguments is not None:
            yield other, arguments


def differs_in_sizes(call: FlatCall, earlier: FlatCall) -> bool:
    """Whether the arguments of two calls are the same but for sizes."""
    now, then = _arguments(call), _seen_as(call, earlier)
    return now is not None and then is not None and now.key == then.key and (
        now.sizes != then.sizes)


def _arguments(call: FlatCall) -> SymbolicArguments | None:
    return None if call.separate is not None else symbolic_arguments(
        trace_key(call), call.needed, opens_empty=call.opens_empty)


def _seen_as(call: FlatCall, earlier: FlatCall) -> SymbolicArguments | None:
    """The arguments of an earlier call, its ints unknown where those of this one are."""
    if earlier.separate is not None or len(earlier.key) != len(call.key) or (
            earlier.placing != call.placing):
        return None
    parts = (now if now == (int,) and before[0] is int else before
             for before, now in zip(trace_key(earlier), trace_key(call), strict=True))
    needed = [i for i in call.needed if len(earlier.key[i + 1]) > 1]
    return symbolic_arguments(tuple(parts), needed)
