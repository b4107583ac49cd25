"""The options of a run, and its report."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from fusec.codegen.plan.call_plan import CallPlan
from fusec.codegen.structured.calls.call_statements import NodeCall
from fusec.codegen.structured.kernel_statements import RunKernel
from fusec.core.process.deadline import within
from fusec.core.records import dataclass, field
from fusec.errors import user_error
from fusec.ir import Graph, Loc
from fusec.ir.device_names import DeviceName

T = TypeVar("T")
Times = list[tuple[str, float]]


@dataclass(frozen=True)
class RunOptions:
    """Options of a run: ``trace`` asks for the time of every step.

    ``timeout`` in seconds ends a run that takes longer with ``TimeoutError``; it is looked at
    between steps and, in native loops, ten times a second.  A kernel is not stopped half way, and
    writes to arguments by then stay, as after Ctrl-C.
    """

    trace: bool = False
    timeout: float | None = None

    def __post_init__(self) -> None:
        seconds = self.timeout
        if seconds is not None and not (
                isinstance(seconds, (int, float)) and math.isfinite(seconds) and seconds > 0):
            raise user_error(ValueError, "a timeout is a number of seconds above 0", None,
                             "RunOptions(timeout=1.5)", values=[("given", repr(seconds))])


@dataclass(frozen=True)
class NodeStats:
    """One step of a run: a kernel, a library call, a branch or a loop.

    ``name`` is that of its node or kernel and ``op`` its kind, ``us`` how many microseconds it
    took on ``device``, ``loc`` the line of the program.  ``nodes`` names the nodes that it
    computes, after the passes; ``bytes`` counts each element read or written once, None where only
    the run knows sizes.
    """

    name: str
    op: str
    us: float
    bytes: int | None
    nodes: tuple[str, ...]
    loc: Loc | None
    device: str

    def __str__(self) -> str:
        size = "" if self.bytes is None else f", {self.bytes} bytes"
        place = "" if self.loc is None else f"  {self.loc}"
        device = f" on {DeviceName.parse(self.device).short}" if self.device else ""
        return f"{self.name} ({self.op}): {self.us:.1f} µs{size}{place}{device}"


@dataclass
class RunMetadata:
    """The report of a run: microseconds in all (``total_us``) and, with ``trace``, of each step
    (``nodes``).

    ``graphs`` are the graphs that ran, after the passes.
    """

    total_us: float = 0.0
    nodes: list[NodeStats] = field(default_factory=list)
    graphs: tuple[Graph, ...] = ()

    @property
    def steps(self) -> Times:
        """(step, microseconds) pairs."""
        return [(node.name, node.us) for node in self.nodes]

    @property
    def bytes(self) -> int | None:
        """The bytes that all steps read and wrote; None where that is not known of one."""
        each = [node.bytes for node in self.nodes]
        return None if None in each else sum(b for b in each if b is not None)

    def __str__(self) -> str:
        return "\n".join([f"{self.total_us:.1f} µs", *map(str, self.nodes)])


def run_with(
    options: RunOptions | None, call_plan: CallPlan, run: Callable[[Times | None], T], name: str
) -> tuple[T, RunMetadata]:
    """The result of ``run``, which takes a list for the times of steps, and its report."""
    options = RunOptions() if options is None else options
    if not isinstance(options, RunOptions):
        raise user_error(TypeError, f"options= takes RunOptions, and got {options!r}", None,
                         "run(x, options=fusec.RunOptions(trace=True))")
    times: Times | None = [] if options.trace else None
    result, seconds = within(options.timeout, lambda: run(times), name)
    nodes = [] if times is None else _stats(call_plan, times)
    return result, RunMetadata(1e6 * seconds, nodes, (call_plan.graph,))


def _stats(call_plan: CallPlan, times: Times) -> list[NodeStats]:
    return [_kernel(call_plan.graph, step, us) if isinstance(step, RunKernel) else _call(step, us)
            for step, (_, us) in zip(call_plan.steps, times, strict=True)]


def _kernel(graph: Graph, step: RunKernel, us: float) -> NodeStats:
    kernel = step.kernel
    node = next((n for n in graph.nodes if n.name == kernel.name), None)
    body: Any = None if node is None else node.attrs.get("body")
    inside = () if body is None else tuple(n.name for n in body.nodes if n.op != "Input")
    sizes: Sequence[Any] = [kernel.bytes_of(i) for i in range(len(kernel.buffers))]
    return NodeStats(kernel.name, "kernel", us, _total(sizes), inside,
                     kernel.locs[0] if kernel.locs else None, "" if node is None else node.device)


def _call(step: NodeCall, us: float) -> NodeStats:
    node = step.node
    types = [*(v.type for v in node.inputs), *node.types]
    return NodeStats(node.name, node.op, us, _total([t.nbytes for t in types]), (node.name,),
                     node.loc, node.device)


def _total(sizes: Sequence[Any]) -> int | None:
    return sum(sizes) if all(isinstance(s, int) for s in sizes) else None


