"""The document of a page: everything that it shows, as one JSON object of several sections.

A function of the stages alone, but for the measured calls that it is given.  A page keeps each
section by itself, compressed, and reads it when it is looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import fusec
from fusec.compiled.compiled_trace import CompiledTrace
from fusec.compiled.reports.broadcasts import silent_broadcasts
from fusec.compiled.reports.passes_report import PassRun

from .findings import findings, of_traces
from .graph_part import GraphPart, boundaries, mark_gradient
from .kernels_part import KernelPart
from .machine_part import machine_data
from .runs_part import Measured, launches, runs, tree_of_keys
from .subject import Subject, subject_of
from .texts import GraphTexts, Sources

Json = dict[str, Any]
FORMAT = 1  # of the document; pages of other formats are refused
MOST_TRACES = 4  # whose stages a page has: the newest ones
MOST_RULED = 3_000  # nodes of a graph up to which rules are looked for


def document(
    name: str, stages: Sequence[Any], line: str | None = None,
    calls: dict[int, Measured] | None = None,
) -> Json:
    """The sections of a page about these stages, the newest last; ``calls``: measured calls of
    some, by their position."""
    kept = list(range(len(stages)))[-MOST_TRACES:]
    subjects = [subject_of(stages[number]) for number in kept]
    is_measured = any(measured.steps for measured in (calls or {}).values())
    sections: Json = {"head": _head(name, subjects, stages, line, is_measured)}
    for place, (number, subject) in enumerate(zip(kept, subjects, strict=True)):
        measured = (calls or {}).get(number)
        sections |= {f"{key}/{place}": part for key, part in _parts(subject, measured).items()}
    return sections


def _head(
    name: str, subjects: Sequence[Subject], stages: Sequence[Any], line: str | None,
    is_measured: bool,
) -> Json:
    compiled = [stage for stage in stages if isinstance(stage, CompiledTrace)]
    return {
        "format": FORMAT, "fusec": fusec.__version__, "function": name, "line": line,
        "machine": machine_data(is_measured, _devices(subjects)), "keys": tree_of_keys(compiled),
        "launches": launches(name),
        "left_out": len(stages) - len(subjects), "findings": of_traces(compiled),
        "traces": [{"stage": s.stage, "signature": s.signature, "reason": s.reason,
                    "kernels": len(s.kernels), "externs": len(s.externs),
                    "control": len(s.control), "nodes": len(s.graph.nodes)} for s in subjects]}


def _devices(subjects: Sequence[Subject]) -> set[str]:
    """The devices that their kernels were placed on."""
    traces = [subject.trace for subject in subjects if subject.trace is not None]
    return {name for trace in traces for name in trace.partitions} | {
        node.device for trace in traces for node in trace.optimized_graph.nodes if node.device}


def _parts(subject: Subject, calls: Measured | None) -> Json:
    sources = Sources()
    texts, graphs, kernels = GraphTexts(sources), GraphPart(sources), KernelPart(subject, sources)
    traced = texts.number(subject.traced)
    passes = [_pass(record, texts) for record in subject.passes]
    parts: Json = {
        "passes": {"traced": traced, "last": texts.number(subject.graph), "passes": passes},
        "graph": _graph(subject, graphs),
        "kernels": {"kernels": kernels.kernels(), "control": kernels.control(),
                    "externs": [{"name": e.name, "node": e.step.node.name, "reason": e.reason,
                                 "line": sources.number(e.loc)} for e in subject.externs]},
        "report": {"text": subject.text, "plan": _plan(subject),
                   "broadcasts": _broadcasts(subject, sources),
                   **findings(subject, {} if calls is None else calls.medians())},
    }
    if subject.trace is not None:
        parts["runs"] = runs(subject.trace, calls)
        parts["report"] |= _assumptions(subject.trace)
    parts["passes"] |= texts.data()
    for number, texts_of_kernel in enumerate(kernels.texts):
        parts[f"code{number}"] = texts_of_kernel
    parts["graph"]["graphs"] = graphs.graphs
    parts["sources"] = sources.data()
    return parts


def _plan(subject: Subject) -> str:
    return "" if subject.call_plan is None else str(subject.call_plan)


def _assumptions(trace: CompiledTrace) -> Json:
    parts = trace.explanation()
    return {"devices": list(parts.devices), "threads": parts.threads,
            "assumed": [[a.path, a.value] for a in parts.assumed],
            "variables": [record.words for record in parts.variables],
            "variables_bytes": sum(record.nbytes for record in parts.variables)}


def _broadcasts(subject: Subject, sources: Sources) -> list[Json]:
    """Those that the program did not ask for: see `silent_broadcasts`."""
    return [{"text": str(found._replace(loc=None)), "node": found.node, "bytes": found.nbytes,
             "line": sources.number(found.loc)} for found in silent_broadcasts(subject.traced)]


def _graph(subject: Subject, graphs: GraphPart) -> Json:
    made: Json = {"traced": graphs.number(subject.traced)}
    if subject.optimized is not None:
        made |= {"optimized": graphs.number(subject.optimized),
                 "boundaries": boundaries(subject.optimized)}
    if subject.trace is not None:
        made["partitions"] = {name: graphs.number(part)
                              for name, part in subject.trace.partitions.items()}
        _place(graphs.graphs, made)
        names = subject.trace.build.traced.of_gradient
        for number in dict.fromkeys([made["traced"], made["optimized"],
                                     *made["partitions"].values()]):
            mark_gradient(graphs.graphs, number, names)
    return made


def _place(graphs: list[Json], made: Json) -> None:
    """Tell each node of the last graph the device that placement chose for it."""
    chosen = {node["n"]: device for device, number in made["partitions"].items()
              for node in graphs[number]["nodes"]}
    for node in graphs[made["optimized"]]["nodes"] if chosen else ():
        if node["i"] and node["n"] in chosen:
            node["d"] = chosen[node["n"]]


def _pass(record: PassRun, texts: GraphTexts) -> Json:
    made: Json = {"name": record.name, "ms": record.ms, "rewrites": record.rewrites,
                  "before": texts.number(record.before), "after": texts.number(record.after)}
    inner = [{"body": part.body, "passes": [_pass(r, texts) for r in part.records]}
             for part in record.inner if part.records]
    if inner:
        made["inner"] = inner
    if len(record.before.nodes) < MOST_RULED and (rules := record.rules):
        made["rules"] = rules
    return made
