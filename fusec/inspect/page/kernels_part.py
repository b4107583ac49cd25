"""The kernels, library calls, branches and loops of a page, with their texts."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any

from fusec.compiled.compiled_steps import CompiledControl, CompiledKernel
from fusec.core.display.amounts import count_text
from fusec.ir import Graph

from .links import Links, control_links, links_of
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
        return [self._kernel(kernel) for kernel in self._subject.kernels]

    def _kernel(self, kernel: CompiledKernel) -> Json:
        links, texts = links_of(kernel, self._graphs()), _kernel_texts(kernel)
        if self._subject.is_compiled:
            texts |= links.take(self._listings(kernel)) or _code_of(kernel)
        return {
            "name": kernel.name, "ops": kernel.ops, "work": _known(kernel.kernel.work),
            "mode": kernel.mode, "device": self._device(kernel.name),
            "lines": [self._sources.number(loc) for loc in kernel.lines],
            "operands": [[o.name, o.dtype, _known(o.nbytes), o.direction] for o in kernel.operands],
            "loaded": _sum(kernel.bytes_loaded), "stored": _sum(kernel.bytes_stored),
            "boundaries": list(kernel.boundaries), "nodes": links.names,
            "text": self._added(texts, links)}

    def _listings(self, kernel: CompiledKernel) -> dict[str, Any]:
        """The code of a kernel with links, where its back end has a module that makes them."""
        module, _ = self._code_links(kernel.step)
        found: dict[str, Any] = {} if module is None else module.listings(kernel.step)
        return found

    def _code_links(self, step: Any) -> tuple[Any, Any]:
        """The module of a step's back end that links code, or None, and the back end."""
        plans = [] if self._subject.call_plan is None else self._subject.call_plan.by_backend()
        backend = next((plan.backend for plan in plans
                        if any(own is step for own in plan.steps)), None)
        name = f"{type(backend).__module__.rpartition('.')[0]}.code_links"
        if backend is None or importlib.util.find_spec(name) is None:
            return None, backend
        return importlib.import_module(name), backend

    def _graphs(self) -> list[Graph]:
        trace = self._subject.trace
        return [self._subject.graph, *(trace.partitions.values() if trace is not None else ())]

    def _device(self, name: str) -> str:
        return next((n.device for graph in self._graphs() for n in graph.nodes if n.name == name
                     and n.device), "")

    def control(self) -> list[Json]:
        """The branches and loops."""
        return [self._control(step) for step in self._subject.control]

    def _control(self, step: CompiledControl) -> Json:
        links, texts = Links(), dict[str, str]()
        if self._subject.is_compiled:
            module, backend = self._code_links(step.step)
            links, texts = control_links(
                step, None if module is None else module.control_listings, backend)
        return {"name": step.name, "node": step.step.node.name, "op": step.step.node.op,
                "reason": step.reason, "native": step.is_native,
                "line": self._sources.number(step.loc), "nodes": links.names,
                "text": self._added(_control_texts(step, texts), links)}

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


def _kernel_texts(kernel: CompiledKernel) -> dict[str, str]:
    return {"loops": kernel.loops, "Python": kernel.source}


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
