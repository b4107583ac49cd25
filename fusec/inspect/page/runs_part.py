"""The runs of a page: why there are so many traces, where time went, and what memory lived when."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from fusec.codegen.plan.call_plan import CallPlan
from fusec.codegen.structured.memory import Memory, View
from fusec.compiled.compiled_trace import CompiledTrace
from fusec.compiled.concrete_function import ConcreteFunction
from fusec.compiled.reports import history
from fusec.compiled.run_metadata import RunOptions
from fusec.core import timeline
from fusec.core.records import dataclass, field
from fusec.trace.call.flat_call import describe_part

from ..timeline_rows import TimelineRows

Json = dict[str, Any]
CALLS, LONGEST = 7, 2.0  # calls that are timed, of which the median counts; seconds of them at most
MOST_LAUNCHES, MOST_EVENTS, MOST_KEYS = 500, 5_000, 300


@dataclass
class Measured:
    """Measured calls of one trace: microseconds of each step, of whole calls, and a timeline; or
    the reason why there are none."""

    steps: dict[str, list[float]] = field(default_factory=dict)
    calls_us: list[float] = field(default_factory=list)
    events: list[Json] = field(default_factory=list)
    reason: str = ""

    def medians(self) -> dict[str, float]:
        """The middle time of each step."""
        return {name: sorted(times)[len(times) // 2] for name, times in self.steps.items()}


Given = Callable[[], tuple[tuple[Any, ...], dict[str, Any]]]


def measured(concrete: ConcreteFunction, call: Callable[..., Any], given: Given) -> Measured:
    """Call a function some times, as its user does, and its steps one by one beside.

    ``given`` makes the arguments of each call, of those that the trace was made for.
    """
    result = Measured()
    begun = time.perf_counter()
    for number in range(CALLS + 1):
        args, kwargs = given()
        start = timeline.now()
        call(*args, **kwargs)
        if number:  # the first one is of cold caches
            result.calls_us.append((timeline.now() - start) / 1e3)
        if number and time.perf_counter() - begun > LONGEST:
            break
    for _ in result.calls_us:
        args, kwargs = given()
        _, report = concrete.run(*args, options=RunOptions(trace=True), **kwargs)
        for node in report.nodes:
            result.steps.setdefault(node.name, []).append(node.us)
    args, kwargs = given()
    result.events = _timeline(lambda: call(*args, **kwargs))
    return result


def _timeline(call: Callable[[], Any]) -> list[Json]:
    """The events of one call; none where a profile is being taken."""
    if timeline.on:
        return []
    recording = timeline.begin()
    history.watch()
    try:
        call()
    finally:
        timeline.end()
        history.watch()
    return [*TimelineRows(recording).events()][:MOST_EVENTS]


def median(values: Sequence[float]) -> float | None:
    """The middle one; None of none."""
    ordered = sorted(values)
    return ordered[len(ordered) // 2] if ordered else None


def runs(trace: CompiledTrace, calls: Measured | None) -> Json:
    """Compile times by stage, measured calls, memory by step."""
    made: Json = {"times": trace.times, "memory": memory_of(trace.build.call_plan)}
    if calls is not None and calls.reason:
        made["not_measured"] = calls.reason
    elif calls is not None:
        made["call_us"] = median(calls.calls_us)
        made["steps"] = [[name, us] for name, us in calls.medians().items()]
        made["events"] = calls.events
    return made


# -- memory


def memory_of(call_plan: CallPlan) -> Json:
    """The steps of a plan, and each array's memory: its bytes, from which step to which it lives.

    Arguments live before the first step, results after the last one.
    """
    steps = list(call_plan.steps)
    spans: dict[int, list[Any]] = {}
    for number, step in enumerate(steps):
        for memory, is_written in _touched(step):
            span = spans.setdefault(id(memory), [memory, number, number, number])
            span[2] = number
            span[3] = min(span[3], number) if is_written else span[3]
    return {"steps": [step.name for step in steps],
            "arrays": [_array(span, len(steps)) for span in spans.values()]}


def _array(span: Sequence[Any], count: int) -> Json:
    memory, first, last, _ = span
    kind = memory.origin
    return {"name": f"{memory}", "origin": kind, "position": memory.position,
            "bytes": memory.nbytes if isinstance(memory.nbytes, int) and memory.nbytes >= 0
            else None,
            "from": -1 if kind == "operand" else first, "to": count if kind == "target" else last}


def _touched(step: Any) -> Iterator[tuple[Memory, bool]]:
    for operand in step.operands:
        yield from ((memory, False) for memory in _memory(operand))
    for result in step.results:
        yield from ((memory, True) for memory in _memory(result))


def _memory(place: Any) -> Iterator[Memory]:
    if isinstance(place, View):
        yield place.memory


# -- traces and launches


def tree_of_keys(traces: Sequence[CompiledTrace]) -> list[Json]:
    """Each trace's reason and the parts of its key, from which a page makes the tree."""
    return [{"reason": trace.reason, "hits": getattr(trace, "hits", 0),
             "ms": sum(trace.times.values()), "signature": trace.signature,
             "parts": [[path, describe_part(key)] for path, key in zip(
                 trace.build.call.paths, trace.build.call.key[1:], strict=True)]}
            for trace in traces[-MOST_KEYS:]]


def launches(function: str) -> list[Json]:
    """The recorded calls of a function: see `fusec.history`."""
    rows = [row for row in history.history().as_dicts() if row["function"] == function]
    return rows[-MOST_LAUNCHES:]
