"""``fusec.explain`` and the dump: what the stages have, handed to the reports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import config
from .concrete import ConcreteFunction
from .inspect.dump import dump_artifacts
from .inspect.explain import Assumed, Explanation


def explanation_of(concrete: ConcreteFunction, function: str = "") -> Explanation:
    """Everything the compiler decided about one trace."""
    build = concrete.build
    code = build.traced
    return Explanation(
        function=function or concrete.name,
        signature=concrete.signature,
        retrace=concrete.reason,
        passes=concrete.passes,
        kernels=concrete.kernels,
        boundaries=[b for k in concrete.kernels for b in k.boundaries],
        externs=concrete.externs,
        control=concrete.control,
        plan="\n".join(_plan_lines(concrete)),
        threads=f"{config.num_threads} threads for kernels above "
                f"{config.parallel_threshold} ns of estimated work",
        assumed=[Assumed(g.place, g.value) for g in code.guards
                 if not (g.is_once or g.is_quiet)],
    )


def _plan_lines(concrete: ConcreteFunction) -> list[str]:
    spec, schedule = concrete.executable.spec, concrete.build.schedule
    times = ", ".join(f"{k} {v:.1f} ms" for k, v in concrete.times.items())
    how = "one native call" if concrete.executable.uses_native else (
        "kernels and library calls step by step")
    lines = [f"compiled in: {times}", f"runs as {how}",
             f"temporaries: {len(schedule.temps)}"]
    if spec.updates:
        written = ", ".join(v.node.name for v in
                            (concrete.graph.inputs[i] for i in spec.updates))
        lines.append(f"writes to arguments: {written}")
    if concrete.build.traced.assignments:
        done = dict.fromkeys(str(effect) for effect, _ in concrete.build.traced.assignments)
        lines.append(f"after the call: {', '.join(done)}")
    return lines + [f"note: {n}" for n in concrete.build.traced.notes]


def explain(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Explanation:
    """What becomes of ``f(*args)``: passes, kernels, what was not fused and why, assumptions.

    ``f`` may be jitted or plain; it is compiled for these arguments but not run.
    """
    from .function import Function
    from .jit import jit

    f = getattr(f, "function", f)  # of a bound method
    function = f if isinstance(f, Function) else jit(f)
    return explanation_of(function.concrete(*args, **kwargs), function.__name__)


def dump(concrete: ConcreteFunction, directory: str) -> Any:
    """Write every artefact of a trace as a file below ``directory``; returns the folder."""
    files: dict[str, str] = {"trace.graph": str(concrete.graph)}
    for number, record in enumerate(concrete.passes):
        if record.changed:
            files[f"{number:02d}-{record.name}.graph"] = str(record.after)
    files["optimized.graph"] = str(concrete.optimized_graph)
    for kernel in concrete.kernels:
        asm = kernel.asm
        files[f"{kernel.name}.loops"] = kernel.loops
        files[f"{kernel.name}.py"] = kernel.source
        files[f"{kernel.name}.ll"] = asm["ll"]
        files[f"{kernel.name}.asm"] = asm["asm"]
    files["explain.txt"] = str(explanation_of(concrete))
    return dump_artifacts(directory, concrete.name, files)
