"""The compiled trace of one signature of a function: graphs, steps and the story of both."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fusec import config
from fusec.codegen.machine_code.native_nest import CompileStats
from fusec.codegen.plan.call_plan import CallPlan
from fusec.core.records import dataclass, field
from fusec.errors import user_error
from fusec.ir import Graph
from fusec.ir.lazy_values import lazy
from fusec.ir.sizes.symbolic_numbers import text_of_number
from fusec.passes.gpu.narrow_products import product_lines
from fusec.passes.pipeline import PassRecord
from fusec.runtime.executor import Executable
from fusec.state.variable import Variable
from fusec.trace.call.flat_call import FlatCall, describe_part
from fusec.trace.tracer import Traced

from .compiled_steps import (
    CompiledControl,
    CompiledExtern,
    CompiledKernel,
    control_steps,
    library_steps,
)
from .reports.broadcasts import SilentBroadcast, silent_broadcasts
from .reports.explain import Assumed, Explanation
from .reports.variable_records import VariableRecord, variable_records
from .reports.viewed import Viewed

if TYPE_CHECKING:
    from fusec.placement.placed_graph import Placed
    from fusec.runtime.resident.gpu_call import GpuCall


MOST_STATEMENTS = 40  # of a plan, in the report


@dataclass
class Build:
    """Everything the stages produced for one signature."""

    name: str
    call: FlatCall
    traced: Traced
    optimized: Graph
    fused: Graph
    records: Sequence[PassRecord]
    call_plan: CallPlan
    stats: CompileStats
    times: dict[str, float]
    placed: Placed | None = None  # which device does what, where there are several
    origin: Any = field(default_factory=object)  # the same for all that one trace is bound to


class CompiledTrace(Viewed):
    """``graph`` is as traced, ``optimized_graph`` after the passes, fusion included."""

    def __init__(self, build: Build, executable: Executable) -> None:
        self.build, self.executable = build, executable
        self.name = build.name
        self.guards = build.traced.guards
        self.reason = ""  # why it was traced
        self.line: str | None = None  # where the function is defined
        self.narrowed = ""  # why it is for size 2 where any was asked for

    @property
    def origin(self) -> Any:
        """The same object for all plans of one trace: for other sizes, other instances."""
        symbolic = self.build.traced.symbolic
        return self.build.origin if symbolic is None else symbolic.sizes

    @property
    def graph(self) -> Graph:
        return self.build.traced.graph

    @property
    def optimized_graph(self) -> Graph:
        return self.build.fused

    @lazy
    def devices(self) -> str:
        """The devices that share its steps, as ``CPU:0, CPU:1``; "" where the calling thread does
        them all."""
        return ", ".join(sorted(name.short for name in self.build.call_plan.devices))

    @property
    def passes(self) -> Sequence[PassRecord]:
        """The pass log: name, ms, rewrites, before, after."""
        return self.build.records

    @property
    def kernels(self) -> list[CompiledKernel]:
        return [CompiledKernel(s) for s in self.build.call_plan.kernels]

    @property
    def externs(self) -> list[CompiledExtern]:
        return library_steps(self.build.call_plan)

    @property
    def partitions(self) -> dict[str, Graph]:
        """The graph of each device, with its sends and receives, by the device's name; empty
        where one device, the first, does it all."""
        placed = self.build.placed
        return placed.partition().graphs if placed is not None and placed.is_divided else {}

    @property
    def control(self) -> list[CompiledControl]:
        """The branches and loops that data decides."""
        return control_steps(self.build.call_plan)

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The Variables that it reads or writes, in the order in which the program met them."""
        variables = (met.reference() for met in self.build.traced.variables)
        return tuple(variable for variable in variables if variable is not None)

    @property
    def trainable_variables(self) -> tuple[Variable, ...]:
        """Those of them that are trainable."""
        return tuple(variable for variable in self.variables if variable.trainable)

    @property
    def broadcasts(self) -> list[SilentBroadcast]:
        """The operations whose result is larger than each of their operands, though the program
        has inserted no axes for it."""
        return silent_broadcasts(self.graph)

    def variable_records(self) -> list[VariableRecord]:
        """Its Variables with shapes, bytes, devices, and the norms of their values now."""
        written = {met.input for met in self.build.traced.variables} & set(
            self.executable.spec.updates)
        assigned = {id(met.reference()) for met in self.build.traced.variables
                    if met.input in written}
        return variable_records(self.variables, assigned)

    def check_alive(self) -> None:
        """Raise ``ReferenceError`` where one of its Variables is gone: traces keep none alive."""
        gone = [met.title for met in self.build.traced.variables if met.reference() is None]
        if gone:
            raise user_error(
                ReferenceError, f"{gone[0]}, which {self.name} uses, is gone", None,
                "keep it in an object or a global variable: a trace keeps no Variable alive")

    @property
    def times(self) -> dict[str, float]:
        """Milliseconds per stage: ``trace``, ``passes``, ``codegen``, ``llvm``, ``plan``.

        The trace that loaded the compiler into the process says how long that took: ``imports``.
        """
        return {**self.build.times, "plan": self.executable.made_ms}

    @property
    def signature(self) -> str:
        parts = zip(self.build.call.paths, self.build.call.key[1:], strict=True)
        text = f"{self.name}({', '.join(f'{p}: {describe_part(k)}' for p, k in parts)})"
        return f"{text}, 2 for each open size: {self.narrowed}" if self.narrowed else text

    def __repr__(self) -> str:
        return f"<ConcreteFunction {self.signature}>"

    def as_text(self) -> str:
        """The whole story: passes with diffs, kernels, library calls."""
        return str(self.explanation())

    def explanation(self, function: str = "") -> Explanation:
        """Everything the compiler decided about it."""
        return Explanation(
            function=function or self.name,
            signature=self.signature,
            retrace=self.reason,
            passes=self.passes,
            kernels=self.kernels,
            boundaries=[b for k in self.kernels for b in k.boundaries],
            externs=self.externs,
            control=self.control,
            products=self._product_lines(),
            devices=self._device_lines(),
            broadcasts=self.broadcasts,
            variables=self.variable_records(),
            plan="\n".join(self._plan_lines()),
            threads=f"{config.num_threads} threads for kernels above "
                    f"{config.parallel_threshold} ns of estimated work",
            assumed=[Assumed(g.place, " ".join(g.value.splitlines())) for g in self.guards
                     if not (g.is_once or g.is_quiet)],
        )

    @lazy
    def gpu_call(self) -> GpuCall:
        """How calls with CuPy's arrays run."""
        # Few programs have such arrays.
        calls: Any = importlib.import_module("fusec.runtime.resident.gpu_calls")
        call: GpuCall = calls.gpu_call(self.build.call_plan, self.executable.spec)
        return call

    def _product_lines(self) -> list[str]:
        before = {p.name: p.before for p in self.passes}
        if "narrow_products" not in before:
            return []
        return product_lines(before["kernel_products"], before["narrow_products"])

    def _device_lines(self) -> list[str]:
        lines = [] if self.build.placed is None else self.build.placed.lines()
        if not any(n.device for n in self.graph.nodes):
            return lines
        report: Any = importlib.import_module("fusec.placement.placement_report")
        asked = next((p.before for p in self.passes if p.name == "device_constraints"), self.graph)
        return [*lines, *report.refusal_lines(asked)]

    def _plan_lines(self) -> list[str]:
        spec, call_plan = self.executable.spec, self.build.call_plan
        times = ", ".join(f"{k} {v:.1f} ms" for k, v in self.times.items())
        how = "one native call" if self.executable.uses_native else (
            "kernels and library calls step by step")
        if call_plan.is_partitioned:
            how = "a step over several devices"
        placing = self.build.call.placing
        kept = "" if call_plan.native is call_plan else ", by a plan of the disk cache"
        lines = [f"compiled in: {times}{kept}", f"runs as {how}",
                 *([f"in the device scope {placing.scope}"] if placing and placing.scope else []),
                 *([f"calls with arrays of the GPU: {self.gpu_call}"]
                   if placing and placing.residence else []),
                 f"temporaries: {len(call_plan.temps)}"]
        if spec.updates:
            written = ", ".join(v.node.name for v in
                                (self.graph.inputs[i] for i in spec.updates))
            lines.append(f"writes to arguments: {written}")
        if self.build.traced.assignments:
            effects = dict.fromkeys(str(effect) for effect, _ in self.build.traced.assignments)
            lines.append(f"after the call: {', '.join(effects)}")
        notes = (f"note: {n}" for n in self.build.traced.notes)
        return [*lines, *self._size_lines(), *notes, *_shortened(str(call_plan).splitlines())]

    def _size_lines(self) -> list[str]:
        """The symbols of a trace that serves several sizes, and where it does."""
        symbolic = self.build.traced.symbolic
        if symbolic is None:
            return []
        shapes = (f"{self.build.call.paths[leaf]}[{','.join(map(text_of_number, shape))}]"
                  for leaf, (shape, _) in symbolic.layouts.items())
        ints = (f"{self.build.call.paths[leaf]}={text_of_number(number)}"
                for leaf, number in symbolic.ints.items())
        return [f"traced once for sizes {', '.join([*shapes, *ints])}",
                *(f"where {question}{f', asked at {where}' if where else ''}"
                  for question, where in symbolic.sizes.questions.items())]


def _shortened(lines: list[str]) -> list[str]:
    """The first statements of a long plan."""
    more = len(lines) - MOST_STATEMENTS
    return lines if more <= 0 else [
        *lines[:MOST_STATEMENTS], f"  and {more} more, which FUSEC_DUMP writes to plan.txt"]
