"""A function compiled for one signature, and its calls."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import optree

from fusec.core import timeline
from fusec.core.records import replace
from fusec.errors import unsupported, user_error
from fusec.ir.lazy_values import lazy
from fusec.ops.calls.host_calls import is_generator
from fusec.runtime.call_spec import CallSpec, GeneratorKind, LeafSpec, ResultSpec
from fusec.runtime.executor import Executable
from fusec.trace.call.flat_call import FlatCall, explain_miss
from fusec.trace.call.overlap import merged
from fusec.trace.choice.choice import sides
from fusec.trace.facts.trees import flattened
from fusec.trace.guards.guard import Checks
from fusec.trace.guards.relations import SameCode
from fusec.trace.values.array import TracedArray
from fusec.trace.values.trace import current

from .assignments import assigner
from .compiled_trace import Build, CompiledTrace
from .run_metadata import RunMetadata, RunOptions, Times, run_with
from .structure import inputs_of, outputs_of

if TYPE_CHECKING:
    from fusec.placement.placement_trial import (
        Trial,  # loaded where graphs are placed, which few are
    )


class ConcreteFunction(CompiledTrace):
    """A traced and compiled function for one signature.

    ``graph`` is as traced, ``optimized_graph`` after the passes, fusion included.
    """

    def __init__(self, build: Build) -> None:
        kind = build.call_plan.executable or Executable
        super().__init__(build, kind(build.call_plan, _call_spec(build)))
        build.call = replace(build.call, leaves=())  # the first call's arrays are not ours to keep
        self.result_treespec = build.traced.treespec
        self._leaf_result = build.traced.treespec.is_leaf()
        assigned = build.traced.assignments
        self._assign: Any = assigner(
            assigned, self.result_treespec.num_leaves) if assigned else None
        self.checks = build.traced.checks or Checks(self.guards)
        self.unchanged = self.checks.watched
        self.is_scope_watched = False  # whether that compares the device scope, too
        self.is_for_once = self.checks.is_once
        self.trial: Trial | None = None  # what times its first calls, where estimates placed it
        self.hits = 0
        self.number = 0  # how many of its function were made before it
        self._deaths: list[Any] = []  # weak references to its Variables
        self.flatten: Callable[[tuple, dict[str, Any]], FlatCall] | None = None

    def when_one_dies(self, drop: Callable[[ConcreteFunction], None]) -> None:
        """Call this when a Variable that it uses has died: it holds the memory of it."""
        itself = weakref.ref(self)

        def dead(_: Any, is_ending: Callable[[], bool] = sys.is_finalizing) -> None:
            concrete = itself()
            # At the interpreter's end the globals of modules are gone, and nothing need be dropped.
            if concrete is not None and not is_ending():
                drop(concrete)

        self._deaths = [weakref.ref(variable, dead) for variable in self.variables]

    @property
    def structured_inputs(self) -> Any:
        """``(args, kwargs)`` as the function has them: a `TensorSpec` for each argument that a call
        may change, and the values of the others."""
        return inputs_of(self.build, self.executable.spec)

    @property
    def structured_outputs(self) -> Any:
        """The result as it is returned, a `TensorSpec` for each array and number of the graph.

        Sizes that only the run knows are None.
        """
        return outputs_of(self.build)

    def guards_hold(self) -> bool:
        """Whether Python values read while tracing are unchanged."""
        return all(g.holds() for g in self.guards)

    def call_of(self, args: tuple, kwargs: dict[str, Any]) -> FlatCall:
        """The leaves of these arguments; overlapping arrays as their memory, if that was traced.

        Raises ``TypeError`` for a function compiled from stages.
        """
        if self.flatten is None:
            raise TypeError(f"{self!r} was compiled from stages and belongs to no function: call "
                            f"run_leaves with its argument leaves")
        call: FlatCall = self.flatten(args, kwargs)
        return call if self.build.call.separate is None else merged(call) or call

    def run_leaves(self, leaves: Sequence[Any], times: Times | None = None) -> Any:
        """Result for argument leaves that match the signature; ``times`` gets those of steps."""
        if self.trial is not None and times is None:
            results = self._timed(self.trial, leaves)
        else:
            results = self.executable.run(leaves, times)
        if self._assign is not None:
            self._assign(results)
        if self._leaf_result:
            return results[0]
        own = results[: self.result_treespec.num_leaves]
        return optree.tree_unflatten(self.result_treespec, own)

    def _timed(self, trial: Trial, leaves: Sequence[Any]) -> list[Any]:
        """One of the first calls, the last of which may change the plan of the next ones."""
        if timeline.on:  # a profile shows what calls do that nobody times in this way
            return self.executable.run(leaves)
        executable, times = self.executable, Times()
        results = executable.run(leaves, times)
        if trial.note(executable.call_plan, times):
            anew = trial.decide(trial.least)
            if anew is not None:
                call_plan, self.build.placed = anew
                kind = call_plan.executable or Executable
                self.executable = kind(call_plan, self.executable.spec)
                self.build.call_plan = call_plan
                self.__dict__.pop("gpu_call", None)
            self.trial = None
        return results

    def shaped(self, fast: Callable[..., Any]) -> Callable[..., Any]:
        """The native call, which gives a leaf or a tuple of them, with results as they were
        returned and assignments done; the sign that it does not answer is no tuple."""
        tree = self.result_treespec
        if self._assign is not None:
            return self._assigning(fast)
        if tree.is_leaf() or _is_flat_tuple(tree):
            return fast

        def call(*leaves: Any) -> Any:
            results = fast(*leaves)
            return tree.unflatten(results) if type(results) is tuple else results

        return call

    @lazy
    def recorded(self) -> Callable[..., Any]:
        """A recent plan's function that runs step by step, for the timeline."""
        return self.shaped(self.executable.guarded)

    def _assigning(self, fast: Callable[..., Any]) -> Callable[..., Any]:
        tree, assign, count = self.result_treespec, self._assign, self.result_treespec.num_leaves
        is_leaf = tree.is_leaf()

        def call(*leaves: Any) -> Any:
            results = fast(*leaves)
            if type(results) is not tuple:
                return results
            assign(results)
            return results[0] if is_leaf else tree.unflatten(results[:count])

        return call

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.run(*args, **kwargs)[0]

    def run(
        self, *args: Any, options: RunOptions | None = None, **kwargs: Any
    ) -> tuple[Any, RunMetadata]:
        """The result and the report of the run; arguments must have this signature.

        Raises ``TypeError`` when they do not, ``ReferenceError`` when a Variable is gone, and
        ``TimeoutError`` after the timeout of the options.
        """
        self.check_alive()
        self._check_untraced(args, kwargs)
        call = self.call_of(args, kwargs)
        if call.key != self.build.call.key:
            raise user_error(
                TypeError, f"the arguments do not fit {self.signature}", None,
                "call the jitted function itself: it traces new signatures",
                values=[("difference", explain_miss(call.paths, self.build.call.key, call.key))],
            )
        return run_with(options, self.build.call_plan,
                        lambda times: self.run_leaves(call.leaves, times), self.name)

    def _check_untraced(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Raise where this is called in a trace, for which its result would be a constant: with
        values of the trace, or though the function does more than compute with its arguments."""
        trace = current()
        if trace is None:
            return
        spec = self.executable.spec
        if spec.captured or spec.updates or spec.calls_host or any(
                isinstance(leaf, TracedArray) for leaf in flattened((args, kwargs))[0]):
            raise unsupported(
                f"a call of {self.name} for one signature in a function that is traced",
                loc=trace.loc, cure="call the jitted function itself, or this one outside")


def _call_spec(build: Build) -> CallSpec:
    traced, call = build.traced, build.call
    leaves: list[LeafSpec] = []
    weak = {id(v): reference for *_, reference in traced.variables
            if (v := reference()) is not None}
    for position, (leaf, index) in enumerate(zip(call.leaves, traced.positions, strict=True)):
        alias = -1
        if index >= 0 and isinstance(leaf, np.ndarray) and leaf.size:
            first = call.key[position + 1][4]
            alias = first if first != position else -1
        if index < 0 and is_generator(leaf):
            leaves.append(LeafSpec(index, type(leaf), generator=GeneratorKind.of(leaf)))
            continue
        leaves.append(LeafSpec(
            index, weak.get(id(leaf), leaf) if index < 0 else None, alias, id(leaf) in weak))
    results = tuple(
        ResultSpec(o.kind, o.index, o.views(), o.value)
        for o in traced.outputs
    )
    return CallSpec(
        build.name, tuple(leaves), call.paths, traced.graph.input_types,
        tuple(traced.input_strides), traced.graph.output_types,
        tuple(traced.captured), results, tuple(traced.updates),
        bare=traced.treespec.is_leaf() and not traced.assignments, calls_host=traced.calls_host,
        read_only=frozenset(traced.read_only), asked_flags=frozenset(traced.asked_flags.items()),
        apart=traced.apart,
        variables=tuple((met.input, met.occupancy) for met in traced.variables),
        code=tuple((g.read(), g.measure.code) for g in traced.guards
                   if type(g.measure) is SameCode and g.is_native),
        sides=tuple(sides([traced.treespec, *(tree for _, tree in traced.assignments)])),
    )


def _is_flat_tuple(tree: Any) -> bool:
    leaves: Any = (0,) * tree.num_leaves
    return not tree.is_leaf() and bool(
        tree == flattened(leaves)[1])
