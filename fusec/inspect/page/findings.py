"""The findings of a page: decisions that commonly cost time, each with the view that shows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fusec.compiled.compiled_trace import CompiledTrace
from fusec.core.display.amounts import bytes_text, count_text
from fusec.ir.device_names import DeviceName

from .subject import Subject

Json = dict[str, Any]
MANY_TRACES = 3  # of one function: more than calls of other types and structures usually need
MOST = 12


def findings(subject: Subject, times: Mapping[str, float]) -> Json:
    """Of one trace: kernels apart, loops step by step, library calls and transfers.

    ``times``: measured microseconds of steps, by name; what takes longest comes first then.
    ``more``: how many are left out.
    """
    found = [*_not_fused(subject), *_loops(subject), *_transfers(subject), *_libraries(subject)]
    for one in found:
        one["us"] = times.get(one.pop("step"))
    found.sort(key=lambda one: -(one["us"] or 0.0))
    return {"findings": found[:MOST], "more": len(found[MOST:])}


def _found(text: str, view: str, step: str = "", **parts: Any) -> Json:
    return {"text": text, "view": view, "step": step, "parts": parts}


def _not_fused(subject: Subject) -> Iterator[Json]:
    for kernel in subject.kernels:
        for reason in kernel.boundaries:
            yield _found(f"{kernel.name} is a kernel of its own: {reason}", "graph",
                         kernel.name, node=kernel.name)


def _loops(subject: Subject) -> Iterator[Json]:
    for number, step in enumerate(subject.control):
        if not step.is_native:
            yield _found(f"the {step.name} at {step.loc} runs {step.reason}", "kernels",
                         step.step.node.name, control=number)
        elif step.calls:
            yield _found(f"the {step.name} at {step.loc} calls Python: {', '.join(step.calls)}",
                         "kernels", step.step.node.name, control=number)


def _transfers(subject: Subject) -> Iterator[Json]:
    partitions = {} if subject.trace is None else subject.trace.partitions
    for name, graph in partitions.items():
        device = DeviceName.parse(name).short
        sent = [node for node in graph.nodes if node.op == "Send"]
        if sent:
            sizes = [v.type.nbytes for node in sent for v in node.inputs]
            known = sum(size for size in sizes if isinstance(size, int))
            leave = f"{count_text(len(sent), 'value')} leave{'s' * (len(sent) == 1)} {device}"
            yield _found(f"{leave}: {bytes_text(known)} are copied at each call", "graph",
                         graph=name, node=sent[0].name)


def _libraries(subject: Subject) -> Iterator[Json]:
    for extern in subject.externs:
        place, node = f" at {extern.loc}" if extern.loc else "", extern.step.node.name
        yield _found(f"{extern.name}{place} is a library call: {extern.reason}", "graph", node,
                     node=node)


def of_traces(traces: Sequence[CompiledTrace]) -> list[Json]:
    """Of all traces of a function: what made the most of them."""
    if len(traces) < MANY_TRACES:
        return []
    causes = Counter(word for trace in traces[1:] for word in _causes(trace))
    cause = f", mostly by {causes.most_common(1)[0][0]}" if causes else ""
    spent = sum(sum(trace.times.values()) for trace in traces)
    return [_found(f"{len(traces)} traces, compiled in {spent:.0f} ms{cause}", "runs")]


def _causes(trace: CompiledTrace) -> Iterator[str]:
    """The arguments that differed from those of an earlier trace."""
    for part in trace.reason.split("; "):
        path, colon, _ = part.partition(": ")
        if colon and " now" in part:
            yield path
