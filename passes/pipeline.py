"""The pipeline: every pass, in order, in one list; sub-graphs go through lists of it too.

`run_pipeline` runs it, keeps a record of each pass, runs the verifier between passes when asked,
and stops the build with an internal error when a pass fails.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from fusec.core import timeline
from fusec.core.display import progress
from fusec.core.records import dataclass, replace
from fusec.errors import FusecError, InternalError
from fusec.ir import Graph, Node
from fusec.ir.text.compare import UNCHANGED, graph_diff
from fusec.ir.text.text import print_graph
from fusec.ops.graphs.verify import VerificationError, verify
from fusec.ops.graphs.verify_pass import verify_pass

from .backward.contracted_additions import contracted_additions
from .backward.given_derivatives import without_rules
from .backward.padded_slices import padded_slices
from .backward.scalar_factors import scalar_factors
from .backward.shared_reciprocals import shared_reciprocals
from .backward.strided_additions import strided_additions
from .backward.sums_in_parts import sums_in_parts
from .calls.repeated_calls import place_bodies, place_contracted
from .copies import separate_results
from .cse import cse
from .estimates import mark_estimates
from .fusion.fusion import fuse
from .fusion.kernel_checks import kernel_checks
from .gpu.batched_products import batched_products
from .gpu.folded_totals import folded_totals
from .gpu.narrow_products import kernel_products, narrow_products
from .options import PassOptions
from .placement.reshaped_views import copy_all_reshaped_views
from .products.contracted_axes import contracted_axes
from .products.open_products import open_products
from .products.outer_products import outer_products
from .prune import prune
from .rewrite_counts import count_rewrites
from .rules.complex_calls import complex_calls
from .rules.constant_folding import constant_folding
from .rules.decompose import decompose
from .rules.element_kernels import element_kernels
from .rules.fma import form_fmas
from .rules.powers import expand_powers
from .rules.short_axes import short_axes
from .rules.simplify import simplify
from .rules.unchecked_indices import unchecked_indices
from .size_order import size_order
from .subgraphs import optimise_subgraphs
from .told_rules import told
from .twins import merge_twins

# Each round removes nodes or moves towards the rules' normal forms, so this is never reached by
# ordinary programs (two or three rounds are usual); reaching it costs speed, not correctness.
MAX_ROUNDS = 12
LONG = 2_000  # operations of a graph of which a pass may take more than a second


@dataclass(frozen=True, slots=True)
class Pass:
    """A named ``Graph -> Graph`` function that returns its argument itself when it is idle.

    Only one that ``places`` nodes changes the devices that they are on.  ``inner``: where it logs
    the passes that it runs on sub-graphs.
    """

    name: str
    run: Callable[[Graph], Graph]
    places: bool = False
    inner: list[BodyPasses] | None = None


@dataclass(frozen=True, slots=True)
class Repeat:
    """Passes that run in turn until a round changes nothing, at most `MAX_ROUNDS` times."""

    passes: tuple[Pass, ...]


CLEAN_UP = Repeat((
    Pass("constant_folding", constant_folding),
    Pass("simplify", simplify),
    Pass("cse", cse),
    Pass("prune", prune),
))

SIZE_ORDER = Pass("size_order", size_order)
# Idle if fp="strict".
CONTRACTING = frozenset(("contracted_axes", "powers", "repeated_calls", "fma", "estimates"))


def pipeline(options: PassOptions) -> list[Pass | Repeat]:
    """The passes of a traced graph before it is lowered.

    A sub-graph of a branch or loop is simplified where `subgraphs` stands.  How it goes on is
    known when it is lowered: see `body_passes`.
    """
    fusion = [Pass("fusion", fuse)] if options.fuse else []
    placed = [] if options.constrain is None else [
        Pass("kernel_products", kernel_products),
        Pass("device_constraints", options.constrain, places=True),
        Pass("folded_totals", folded_totals),
        Pass("narrow_products", narrow_products),
        Pass("batched_products", batched_products)]
    inner: list[BodyPasses] = []
    return [
        *simplification(options),
        Pass("subgraphs", partial(
            optimise_subgraphs, optimise=partial(_simplified, options, {}, inner)), inner=inner),
        Pass("separate_results", separate_results),
        Pass("kernel_checks", kernel_checks),
        *placed,
        *fusion,
        SIZE_ORDER,
    ]


def simplification(options: PassOptions) -> list[Pass | Repeat]:
    """The passes that sub-graphs go through too."""
    contracted = [] if options.fp == "strict" else [
        Pass("repeated_calls", partial(_contracted, options))]
    return [
        *before_contraction(options),
        *contracted,
        Pass("fma", partial(form_fmas, options=options)),
        Pass("padded_slices", padded_slices),
        CLEAN_UP,                                   # the Neg nodes that fma makes
        Pass("short_axes", short_axes),
        *([Pass("estimates", partial(mark_estimates, options=options))]
          if options.fp == "fast" else []),
    ]


def before_contraction(options: PassOptions) -> list[Pass | Repeat]:
    """Up to where products are contracted."""
    unchecked = [] if options.check_indices else [Pass("unchecked_indices", unchecked_indices)]
    return [
        Pass("twins", merge_twins),
        Pass("given_derivatives", without_rules),
        Pass("prune", prune),
        Pass("place_bodies", place_bodies),
        Pass("complex_calls", complex_calls),
        *unchecked,
        CLEAN_UP,                                   # composites whole: mean(x) twice is one mean
        Pass("decompose", decompose),
        Pass("contracted_axes", partial(contracted_axes, options=options)),
        Pass("outer_products", outer_products),
        CLEAN_UP,
        Pass("powers", partial(expand_powers, options=options)),
    ]


def _contracted(options: PassOptions, graph: Graph) -> Graph:
    """See `place_contracted`; a body goes through the graph's passes."""
    steps = [*before_contraction(options), Pass("repeated_calls", partial(_contracted, options))]
    return place_contracted(
        graph, lambda body: _run_steps(steps, body, options, []),
        lambda with_bodies: _run_steps((CLEAN_UP,), with_bodies, options, []))


def body_passes(
    is_way_back: bool = False, in_registers: bool = False, kernels_alone: bool = False
) -> list[Pass]:
    """The passes of a simplified sub-graph of a branch or loop when it is lowered, wherever that
    runs.

    ``is_way_back``: of a loop that gradients made.  ``in_registers``: it becomes statements of a
    structured program, whose numbers are in registers; otherwise it is a plan of its own, on a
    device that has kernels alone or on any other.
    """
    of_way_back = [Pass("strided_additions", strided_additions),
                   Pass("shared_reciprocals", shared_reciprocals),
                   Pass("scalar_factors", scalar_factors),
                   Pass("contracted_additions", contracted_additions),
                   Pass("sums_in_parts", sums_in_parts)] if is_way_back else []
    of_plan = [] if in_registers else [Pass("separate_results", separate_results)]
    elements = [Pass("element_kernels", element_kernels),
                Pass("reshaped_views", copy_all_reshaped_views)] if kernels_alone else []
    return [Pass("open_products", open_products), *of_way_back, Pass("short_axes", short_axes),
            *elements, *of_plan, Pass("fusion", partial(fuse, has_registers=in_registers)),
            SIZE_ORDER]


def _simplified(
    options: PassOptions, simplified: dict[tuple[int, str], tuple[Graph, Graph]],
    inner: list[BodyPasses], graph: Graph, holder: Node,
) -> Graph:
    """A sub-graph, simplified, and those inside it; a function may round in its own way.  Calls
    that share a graph share the result.  The passes are logged in ``inner``."""
    options = replace(options, fp=holder.attrs.get("fp", options.fp))
    key = id(graph), options.fp
    if key not in simplified:
        log: list[PassRecord] = []
        inner.append(BodyPasses(graph.name, log))
        after = _run_steps(simplification(options), graph, options, log)
        simplified[key] = graph, optimise_subgraphs(
            after, partial(_simplified, options, simplified, inner))
    return simplified[key][1]


@dataclass(frozen=True, slots=True)
class PassRecord:
    """One run of a pass: its time in milliseconds, the two graphs, how many nodes were changed
    where these do not tell, and the passes that it ran on sub-graphs."""

    name: str
    ms: float
    before: Graph
    after: Graph
    counted: int | None = None
    inner: Sequence[BodyPasses] = ()

    @property
    def rewrites(self) -> int:
        """How many nodes it removed, replaced or changed: see `count_rewrites`."""
        return count_rewrites(self.before, self.after) if self.counted is None else self.counted

    @property
    def changed(self) -> bool:
        return self.after is not self.before

    @property
    def rules(self) -> dict[str, list[str]]:
        """The rules that it applied, by the name of the node before: see `told`."""
        return told(self.name, self.before, self.after) if self.changed else {}

    @property
    def diff(self) -> str:
        """The changed lines of the text form, or "(unchanged)"."""
        return graph_diff(self.before, self.after) if self.changed else UNCHANGED

    def __str__(self) -> str:
        plural = "" if self.rewrites == 1 else "s"
        head = f"{self.name}: {self.ms:.2f} ms, {self.rewrites} rewrite{plural}"
        return f"{head}\n{self.diff}" if self.changed else f"{head} {UNCHANGED}"


def run_pipeline(
    graph: Graph, options: PassOptions | None = None, log: list[PassRecord] | None = None
) -> Graph:
    """The optimised graph; a `PassRecord` per pass is appended to ``log``.

    A round of a `Repeat` that changes nothing is logged when it is the first.  Raises `PassError`,
    an internal error, when a pass fails or, with ``options.verify``, leaves an invalid graph.
    """
    options = options or PassOptions()
    log = [] if log is None else log
    if options.verify:
        verify(graph)
    return _run_steps(pipeline(options), graph, options, log)


class BodyPasses(NamedTuple):
    """The passes that a sub-graph went through when it was lowered; ``body`` is its name."""

    body: str
    records: list[PassRecord]


def run_passes(
    passes: Sequence[Pass], graph: Graph, verified: bool = False,
    log: list[PassRecord] | None = None,
) -> Graph:
    """The graph after these passes; a `PassRecord` per pass is appended to ``log``.  Raises
    `PassError`."""
    log = [] if log is None else log
    for item in passes:
        start, after = time.perf_counter(), _run(item, graph)
        if verified and after is not graph:
            _verify_after(item, graph, after)
        log.append(PassRecord(item.name, 1e3 * (time.perf_counter() - start), graph, after))
        graph = after
    return graph


def _run_steps(
    steps: Sequence[Pass | Repeat], graph: Graph, options: PassOptions, log: list[PassRecord]
) -> Graph:
    settled: Any = None  # what a `Repeat` left: until that changes, it would be idle again
    for step in steps:
        if isinstance(step, Pass):
            graph = _run_logged(step, graph, options, log)
        elif settled == (id(step), id(graph)):
            log += [PassRecord(item.name, 0.0, graph, graph) for item in step.passes]
        else:
            graph = _run_repeated(step, graph, options, log)
            settled = id(step), id(graph)
    return graph


def _run_repeated(
    step: Repeat, graph: Graph, options: PassOptions, log: list[PassRecord]
) -> Graph:
    for turn in range(MAX_ROUNDS):
        before, records = graph, list[PassRecord]()
        for item in step.passes:
            graph = _run_logged(item, graph, options, records)
        if turn == 0 or graph is not before:
            log += records
        if graph is before:
            break
    return graph


def _run_logged(
    item: Pass, graph: Graph, options: PassOptions, log: list[PassRecord]
) -> Graph:
    start = time.perf_counter()
    count = len(graph.nodes)
    progress.stage(f"pass {item.name} of {count:,} operations", is_long=count > LONG)
    after = _run(item, graph)
    ms = (time.perf_counter() - start) * 1e3
    if timeline.on:
        timeline.since("passes", item.name, start)
    if options.verify and after is not graph:
        _verify_after(item, graph, after)
    log.append(PassRecord(item.name, ms, graph, after, inner=tuple(item.inner or ())))
    return after


class PassError(InternalError):
    """A pass failed; the message holds its input graph, enough to run it again."""


def _run(item: Pass, graph: Graph) -> Graph:
    try:
        return item.run(graph)
    except Exception as error:
        if item.places and isinstance(error, FusecError):  # the program asks for what is not there
            raise
        raise _pass_error(item, graph, f"raised {type(error).__name__}: {error}") from error


def _verify_after(item: Pass, before: Graph, after: Graph) -> None:
    try:
        verify(after)
        if not item.places:
            verify_pass(before, after)
    except VerificationError as error:
        raise _pass_error(item, before, f"left an invalid graph: {error}") from error


def _pass_error(item: Pass, graph: Graph, what: str) -> PassError:
    return PassError(f"the pass {item.name!r} {what}\nits input was:\n{print_graph(graph)}")


def splittable(graph: Graph, options: PassOptions) -> Graph:
    """A traced graph as it is split into blocks, and the graphs inside: clean, composites whole."""
    def steps(options: PassOptions) -> list[Pass | Repeat]:
        found = before_contraction(options)
        return found[:[getattr(step, "name", "") for step in found].index("decompose")]

    return _everywhere(steps, graph, options)


def contracted(graph: Graph, options: PassOptions) -> Graph:
    """A graph that is to be split, in primitive ops, its products contracted: which sum takes which
    product is decided once, so that blocks have the bits that the whole has."""
    return _everywhere(lambda options: [
        *before_contraction(options), Pass("fma", partial(form_fmas, options=options)), CLEAN_UP,
    ], graph, options)


def _everywhere(
    steps: Callable[[PassOptions], list[Pass | Repeat]], graph: Graph, options: PassOptions
) -> Graph:
    """The graph after these steps, and those inside it; a function may round in its own way."""
    return optimise_subgraphs(
        _run_steps(steps(options), graph, options, []), lambda inner, holder: _everywhere(
            steps, inner, replace(options, fp=holder.attrs.get("fp", options.fp))))
