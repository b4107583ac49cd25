"""`F.concrete` of specs with open sizes: a graph with symbols, and runs for any size."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fusec.errors import user_error
from fusec.ir import Graph
from fusec.ir.sizes.dims import argument_size
from fusec.ir.sizes.dynamic_sizes import OpenInstantiation, assuming, open_sizes
from fusec.runtime.call_spec import LeafSpec
from fusec.signature.example_arguments import example_of, known_sizes
from fusec.signature.specs import TensorSpec
from fusec.signature.unwritten_arrays import unwritten
from fusec.trace.call.flat_call import FlatCall, explain_miss

from ..compiled_trace import CompiledTrace
from ..run_metadata import RunMetadata, RunOptions
from ..structure import inputs_of, outputs_of
from .partitions import MOST_AXES, refined

if TYPE_CHECKING:
    from ..concrete_function import ConcreteFunction
    from ..tracing_compiler import TracingCompiler
    from .symbolic_traces import SymbolicTrace

FIRST_HINT = 11  # of a size that a spec leaves open: loops over fewer would rather be unrolled


def open_function(
    compiler: TracingCompiler, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> OpenFunction | None:
    """The function for specs with open sizes; None where its sizes cannot be symbols.

    Sizes that are open are taken for different ones; where the program cannot be traced so
    (``x + y``), those that it does not need for one stay different ones.
    """
    fixed, drawn_sizes = known_sizes((args, kwargs)), list[int]()

    def drawn() -> Iterator[int]:
        while True:
            drawn_sizes.append(1)
            yield 1

    example_of((args, kwargs), drawn(), unwritten)
    count = len(drawn_sizes)
    hints = [*itertools.islice((n for n in itertools.count(FIRST_HINT) if n not in fixed), count)]

    def tried(groups: Sequence[int]) -> OpenFunction | None:
        try:
            examples, named = example_of((args, kwargs), iter([hints[g] for g in groups]))
            return _traced(compiler, examples, named, fixed)
        except MemoryError:
            raise
        except Exception:  # the trace of one size, or that of size 2, says what is wrong
            return None

    found = tried(range(count))
    if found is None and count > 1:
        found = tried([0] * count)
        if found is not None and count <= MOST_AXES:
            found = refined(count, tried, found)[1]
    return found


def _traced(
    compiler: TracingCompiler, args: tuple[Any, ...], kwargs: dict[str, Any], fixed: set[int],
) -> OpenFunction | None:
    call = compiler.foreseen(args, kwargs)
    plan, match = compiler.concrete_of(args, kwargs), compiler.symbolic.find(call)
    if match is None or plan.build.traced.symbolic is None:
        return None
    trace, sizes = match
    constants = {name: n for name, n in sizes.items() if n in fixed}
    if trace.arguments.sizes.constants().keys() - constants.keys():
        return None
    return OpenFunction(compiler, plan, trace, constants)


class OpenFunction(CompiledTrace):
    """A function for arguments of one structure and dtype, whose sizes may differ.

    ``graph`` is as traced, with symbols ``s0`` for sizes of 2 and more; ``optimized_graph`` after
    the passes; kernels and plan are those of an example.  Arrays of other sizes have a plan of
    their own, made at the first call of each; those that the graph does not serve, such as empty
    ones, have a trace of their own, as in calls of the jitted function.
    """

    def __init__(
        self, compiler: TracingCompiler, plan: ConcreteFunction, trace: SymbolicTrace,
        constants: dict[str, int],
    ) -> None:
        names = sorted(trace.arguments.sizes.hints.keys() - constants.keys())
        self._found = OpenInstantiation(constants | {name: argument_size(name) for name in names})
        traced = trace.traced.instantiated(self._found)
        traced.graph = assuming(traced.graph, [*trace.arguments.sizes.questions], constants)
        super().__init__(replace(plan.build, traced=traced), plan.executable)
        self.reason = plan.reason
        self._compiler, self._trace = compiler, trace
        types = tuple(v.type for v in traced.graph.inputs)
        self._spec = replace(plan.executable.spec, input_types=types)

    @property
    def optimized_graph(self) -> Graph:
        """The graph after the passes; of the example's sizes where they run for each anew."""
        optimised = self._trace.optimised_for(self._trace.arguments.sizes.hints)
        return self.build.fused if optimised is None else self._found.graph(optimised)

    @property
    def structured_inputs(self) -> Any:
        """As `ConcreteFunction.structured_inputs`; open sizes are None."""
        return inputs_of(self.build, self._spec)

    @property
    def structured_outputs(self) -> Any:
        """As `ConcreteFunction.structured_outputs`; values that follow from open sizes are None."""
        return outputs_of(self.build)

    @property
    def graph_symbols(self) -> frozenset[str]:
        """The names of the sizes that are open."""
        return open_sizes(self.graph)

    @property
    def argument_leaves(self) -> tuple[LeafSpec, ...]:
        """The leaves of its arguments."""
        return self._spec.leaves

    @property
    def compiler(self) -> TracingCompiler:
        """The compiler of the function that it is of."""
        return self._compiler

    @property
    def signature(self) -> str:
        parts = zip(self.build.call.paths, self._specs(), strict=True)
        return f"{self.name}({', '.join(f'{path}: {spec}' for path, spec in parts)})"

    def _specs(self) -> Iterator[Any]:
        """By leaf: the type of an array or number, else the value."""
        for leaf in self._spec.leaves:
            yield self._spec.input_types[leaf.input] if leaf.input >= 0 else repr(leaf.object)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.run(*args, **kwargs)[0]

    def run(
        self, *args: Any, options: RunOptions | None = None, **kwargs: Any
    ) -> tuple[Any, RunMetadata]:
        """The result and the report of the run, as `ConcreteFunction.run`; ``metadata.graphs`` are
        the graphs of these sizes.  Raises ``TypeError`` for arguments that do not fit the specs.
        """
        self._check(self._compiler.flatten(args, kwargs))
        return self._compiler.concrete_of(args, kwargs).run(*args, options=options, **kwargs)

    def _check(self, call: FlatCall) -> None:
        traced = self.build.call
        if call.treespec != traced.treespec:
            raise self._misfit("difference", explain_miss(call.paths, traced.key, call.key))
        specs = inputs_of(self.build, self._spec)
        leaves = self.build.call.treespec.flatten_up_to(specs)
        for path, spec, leaf, ours, theirs in zip(
                call.paths, leaves, call.leaves, traced.key[1:], call.key[1:], strict=True):
            fits = spec.admits(leaf) if isinstance(leaf, np.ndarray) and isinstance(
                spec, TensorSpec) else ours == theirs
            if not fits:
                given = TensorSpec.like(leaf) if isinstance(leaf, np.ndarray) else repr(leaf)
                raise self._misfit(path, f"expected {spec}, got {given}")

    def _misfit(self, label: str, why: str) -> Exception:
        return user_error(
            TypeError, f"the arguments do not fit {self.signature}", None,
            "call the jitted function itself: it traces new signatures", values=[(label, why)])


