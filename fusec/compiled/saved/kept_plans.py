"""Plans of loaded functions that outlive the process: later loads compute with them at once.

An entry of the disk cache holds what one native call needs, as JSON (`fusec.codegen.kept`), under a
hash of all that decides it: the traced graph, how its arrays lie, options and settings, the CPU,
the versions of fusec, Python, NumPy and LLVM.  It also names the sources of fusec that had a part
in it, with their sizes and times, as Python's own bytecode does.  The cache answers for who wrote
it (`disk_cache`); whatever is not as it should be is made anew.  Passes, kernels and texts are made
when somebody reads them.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

import numpy as np

from fusec import config
from fusec.codegen import backends
from fusec.codegen.kept.kept_plan import KeptPlan
from fusec.codegen.kept.plan_form import plan_form
from fusec.codegen.machine_code import disk_cache, llvm
from fusec.codegen.machine_code.native_nest import CompileStats
from fusec.core import log
from fusec.core.versions import version_of
from fusec.placement.placers import placer_for

from ..compiled_trace import Build
from ..concrete_function import ConcreteFunction
from ..stages import TracedStage
from .graph_identity import NoIdentityError, identity
from .later_stages import LaterStages

FORM = 1  # one more with each change of the data
# Settings that decide nothing of a plan.
_REPORTS = frozenset({
    "log_level", "dump_dir", "progress", "history", "history_size", "verbose_errors", "cache_dir",
    "cache_cap_bytes", "plan_cache_bytes", "memory_cap_bytes"})
_seen: dict[str, str] = {}  # states of sources, by their names: those of a process stay as loaded


def compiled(stage: TracedStage) -> ConcreteFunction:
    """The function of a stage, by the plan that an earlier process has kept if there is one; else
    compiled, and kept."""
    key = _key(stage)
    found = None if key is None else _found(key, stage)
    if found is not None:
        return found
    made = stage.optimize().lower().compile()
    if key is not None:
        _keep(key, made)
    return made


def _key(stage: TracedStage) -> str | None:
    """The name of the entry; None where there can be none."""
    placing, traced = stage.call.placing, stage.traced
    residence = "" if placing is None else placing.residence
    if disk_cache.directory() is None or config.verify or backends.current().name != "cpu" or (
            placer_for(stage.graph, residence) is not None):
        return None
    try:
        graph = identity(stage.graph)
    except NoIdentityError:
        return None
    settings = [(name, getattr(config, name)) for name in config.SETTINGS if name not in _REPORTS]
    return disk_cache.key_of((
        f"plan {FORM}", str(version_of("fusec")), _root(), sys.version, np.__version__,
        os.environ.get("NPY_DISABLE_CPU_FEATURES", ""), *llvm.settings(), repr(settings),
        repr((stage.options.fp, stage.options.check_indices, stage.name)),
        repr((traced.input_strides, traced.output_strides)), graph))


def _found(key: str, stage: TracedStage) -> ConcreteFunction | None:
    start = time.perf_counter()
    data = disk_cache.load(key)
    if data is None:
        return None
    try:
        form = json.loads(data)
        if form["sources"] != _state(form["modules"]):
            return None
        later = LaterStages(stage)
        plan = KeptPlan(
            form["plan"], backends.current(), later.graph, stage.graph, lambda: later.plan)
    except Exception as error:  # data of another form are none
        log.write(log.COMPILE, f"a kept plan of {stage.name} is of no use ({type(error).__name__}:"
                               f" {error}): it is made anew")
        return None
    plan.states, plan.passes = stage.traced.states or None, later.passes
    times = {"trace": stage.traced.ms, "passes": 0.0, "codegen": 0.0,
             "llvm": 1e3 * (time.perf_counter() - start)}
    stats = CompileStats(reused=len(form["plan"]["nests"]), llvm_ms=times["llvm"])
    return ConcreteFunction(Build(
        stage.name, stage.call, stage.traced, later.graph, later.graph, later.passes, plan, stats,
        times))


def _keep(key: str, made: ConcreteFunction) -> None:
    plan = plan_form(made.build.call_plan) if made.executable.uses_native else None
    if plan is None:
        return
    modules = _modules()
    try:
        text = json.dumps({"modules": modules, "sources": _state(modules), "plan": plan},
                          default=_plain)
    except TypeError:  # objects among numbers
        return
    disk_cache.store(key, text.encode())


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r} is no number")


# -- the sources that made a plan


def _root() -> str:
    """The folder that fusec lies in."""
    return os.path.dirname(sys.modules["fusec"].__path__[0])


def _modules() -> str:
    """The files of fusec that this process has loaded, a line each, in the root."""
    root = _root() + os.sep
    files = {getattr(module, "__file__", None) or "" for name, module in [*sys.modules.items()]
             if name.partition(".")[0] == "fusec"}
    return "\n".join(sorted(file.removeprefix(root) for file in files if file.startswith(root)))


def _state(modules: str) -> str:
    """Sizes and times of these files."""
    if modules not in _seen:
        root = _root() + os.sep
        found = [os.stat(root + name) for name in modules.split("\n")]
        _seen[modules] = disk_cache.key_of([repr([(s.st_size, s.st_mtime_ns) for s in found])])
    return _seen[modules]
