"""The kernels, library calls, branches and loops of a page, with their texts."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any

from fusec.codegen.plan.call_plan import CallPlan
from fusec.codegen.structured.kernel_statements import RunKernel
from fusec.compiled.compiled_steps import CompiledControl, CompiledExtern, CompiledKernel
from fusec.core.display.amounts import count_text
from fusec.ir import Graph
from fusec.ir.sizes.size_questions import sizes_as_text

from .links import Links, Steps, control_links, links_of
from .subject import Subject
from .texts import Sources

Json = dict[str, Any]
MOST_TEXT = 400_000  # letters of one text of a kernel
MOST_OF_ALL = 6_000_000  # letters of the texts of all kernels
_TITLES = {"ll": "LLVM", "opt": "LLVM, optimised", "asm": "assembly", "cu": "CUDA C++",
           "ptx": "PTX", "sass": "SASS", "py": "launches"}


class KernelPart:
    """The kernels of one trace; ``texts`` holds what is read when a kernel is looked at."""

    def __init__(self, subject: Subject, sources: Sources) -> None:
        self._subject, self._sources, self._left = subject, sources, MOST_OF_ALL
        self.texts: list[Json] = []

    def kernels(self) -> list[Json]:
        """One for each kernel, in the order of the plan."""
        with sizes_as_text():
            return [self._kernel(kernel) for kernel in self._subject.kernels]

    def _kernel(self, kernel: CompiledKernel) -> Json:
        links, texts = self._linked(kernel, self._graphs(), self._backend(kernel.step))
        return {
            "name": kernel.name, "ops": kernel.ops, "work": _known(kernel.kernel.work),
            "mode": kernel.mode, "device": self._device(kernel.name),
            "lines": [self._sources.number(loc) for loc in kernel.lines],
            "operands": [[o.name, o.dtype, _known(o.nbytes), o.direction] for o in kernel.operands],
            "loaded": _sum(kernel.bytes_loaded), "stored": _sum(kernel.bytes_stored),
            "boundaries": list(kernel.boundaries), "nodes": links.names,
            "text": self._added(texts, links)}

    def _linked(
        self, kernel: CompiledKernel, graphs: Sequence[Graph], backend: Any
    ) -> tuple[Links, dict[str, str]]:
        """The links and texts of a kernel, whose code may be that of all sizes."""
        step = kernel.step.pattern or kernel.step
        links = links_of(step.kernel, graphs)
        texts = {"loops": str(step.kernel), "Python": kernel.source}
        if self._subject.is_compiled:
            module = _code_links(backend)
            found = {} if module is None else module.listings(step)
            texts |= links.take(found) or _code_of(kernel)
        return links, texts

    def _backend(self, step: Any) -> Any:
        """The back end of a step; None where it is not known."""
        plan = self._subject.call_plan
        return None if plan is None else next(
            (part.backend for part in plan.by_backend()
             if any(own is step for own in part.steps)), plan.backend)

    def _graphs(self) -> list[Graph]:
        trace = self._subject.trace
        patterns = [getattr(self._subject.call_plan, "pattern", None)]
        return [*filter(None, patterns), self._subject.graph,
                *(trace.partitions.values() if trace is not None else ())]

    def _device(self, name: str) -> str:
        return next((n.device for graph in self._graphs() for n in graph.nodes if n.name == name
                     and n.device), "")

    def control(self) -> list[Json]:
        """The branches and loops."""
        with sizes_as_text():
            return [self._control(step) for step in self._subject.control]

    def _control(self, step: CompiledControl) -> Json:
        links, texts = Links(), dict[str, str]()
        if self._subject.is_compiled:
            links, texts = self._linked_control(step, self._backend(step.step), frozenset())
        return {"name": step.name, "node": step.step.node.name, "op": step.step.node.op,
                "reason": step.reason, "native": step.is_native,
                "line": self._sources.number(step.loc), "nodes": links.names,
                "text": self._added(_control_texts(step, texts), links)}

    def _linked_control(
        self, step: CompiledControl, backend: Any, inside: frozenset[int]
    ) -> tuple[Links, dict[str, str]]:
        """The links and texts of a branch or loop, or of the steps of its sub-graphs; ``inside``:
        the ids of the plans that it is in."""
        if step.is_native:
            module = _code_links(backend)
            return control_links(step, None if module is None else module.control_listings, backend)
        steps = Steps("steps", f"{step.step.node.name}, {step.reason}")
        for name, body in step.run.plans.items():
            if id(body) in inside:
                steps.line(f"{name}: it is in this one")
                continue
            steps.line(f"{name}:")
            for plan in body.call_plan.by_backend():
                for one in plan.steps:
                    self._add_step(steps, one, plan, body.call_plan, inside | {id(body)})
        return steps.finish()

    def _add_step(
        self, steps: Steps, step: Any, plan: CallPlan, whole: CallPlan, inside: frozenset[int]
    ) -> None:
        if isinstance(step, RunKernel):
            graphs = [plan.graph, *_graphs_of_tasks(whole)]
            steps.add(*self._linked(CompiledKernel(step), graphs, plan.backend))
        elif step.run is not None:
            steps.add(*self._linked_control(CompiledControl(step), plan.backend, inside))
        else:
            steps.line(f"{CompiledExtern(step).name}: {step.name}", step.node)

    def _added(self, texts: Mapping[str, str], links: Links) -> int:
        """The number of these texts; what is too long is cut, and says so."""
        self.texts.append({"parts": [[name, self._fitting(text)] for name, text in texts.items()],
                           "links": links.data(self._sources)})
        return len(self.texts) - 1

    def _fitting(self, text: str) -> str:
        most = max(0, min(MOST_TEXT, self._left))
        self._left -= min(len(text), most)
        if len(text) <= most:
            return text
        cut = text[:most].rpartition("\n")[0]
        more = count_text(text.count("\n") - cut.count("\n"), "line")
        return f"{cut}\n… {more} more, which FUSEC_DUMP writes to a file"


def _code_links(backend: Any) -> Any:
    """The module of a back end that links code; None where it has none."""
    name = f"{type(backend).__module__.rpartition('.')[0]}.code_links"
    if backend is None or importlib.util.find_spec(name) is None:
        return None
    return importlib.import_module(name)


def _graphs_of_tasks(plan: CallPlan) -> list[Graph]:
    return [action.call_plan.graph for action in getattr(plan, "tasks", ())]


def _code_of(kernel: CompiledKernel) -> dict[str, str]:
    try:
        return _code(kernel.asm)
    except AttributeError:  # a back end that makes none
        return {}


def _code(texts: Mapping[str, str]) -> dict[str, str]:
    return {_TITLES.get(kind, kind): texts[kind] for kind in texts}


def _control_texts(step: CompiledControl, linked: Mapping[str, str]) -> dict[str, str]:
    if not linked and step.is_native:
        linked = {"structured": step.structured}
    return {**linked, **({} if len(linked) > 1 else _code(step.asm))}


def _known(size: Any) -> int | None:
    return size if isinstance(size, int) else None


def _sum(sizes: Mapping[str, Any]) -> int | None:
    each: Sequence[Any] = list(sizes.values())
    return sum(each) if all(isinstance(size, int) for size in each) else None
