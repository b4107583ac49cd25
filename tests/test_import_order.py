"""Data flows down the folders and imports go up; only the registry names a back end."""

from __future__ import annotations

import ast
import functools
import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
# Modules of codegen that the runtime is handed: plans and their statements, the writer of text, the
# products of back ends, and the assembler of its own parts.
HANDED = {f"fusec.codegen.{name}" for name in (
    "backend", "backends", "machine_code.llvm", "machine_code.native_backend",
    "machine_code.native_nest", "plan.call_plan", "plan.control_program", "plan.control_runs",
    "plan.plan_over_devices", "structured.calls.call_statements", "structured.kernel_statements",
    "structured.memory", "structured.still_views", "structured.text_writer")}
# Names of two classes: a protocol and the class that it is of, and what plans and statements share.
TWICE = {"Builder", "Containers", "Function", "Guard", "OuterNames", "OwnArrays", "Segment",
         "Store", "Variable", "Watch"}
CPU, CUDA, REGISTRY = "fusec.codegen.cpu", "fusec.codegen.cuda", "fusec.codegen.backends"


@functools.cache
def house() -> Any:
    spec = importlib.util.spec_from_file_location("house", ROOT / ".ci" / "house.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules["house"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.House(ROOT)


def folder(module: str) -> str:
    return ".".join(module.split(".")[:2])


def test_rooms_stand_on_each_other() -> None:
    """`.ci/house.py` has them from the ground up; late imports and those for types count."""
    assert {house().room(name) for name in house().modules} == {None, *house().ROOMS}
    assert house().upward() == []


def test_the_runtime_takes_what_it_is_handed() -> None:
    taken = {(e.source, e.target) for e in house().imports
             if folder(e.source) == "fusec.runtime" and folder(e.target) == "fusec.codegen"}
    assert taken and {target for _, target in taken} <= HANDED


def test_folders_of_tracing_stand_on_each_other() -> None:
    assert {*house().TRACE_FOLDERS} <= {house().trace_folder(name) for name in house().modules}
    assert house().upward_in_trace() == []
    assert house().circles("fusec.trace") == 1, "no file imports another that imports it"


def test_no_folder_is_a_hall() -> None:
    assert max(house().folders().values()) <= 14


def test_a_name_is_one_class() -> None:
    assert {*house().repeated_classes()} <= TWICE


def test_a_docstring_that_names_no_noun_is_found(tmp_path: Path) -> None:
    once, twice = (f'"""{text}"""\n' for text in ("What a step needs.", "What What's it?"))
    for folder in ("passes", "tests"):
        (tmp_path / folder).mkdir()
    (tmp_path / "passes" / "step.py").write_text(f"{once}def f():\n    {twice}", encoding="utf-8")
    (tmp_path / "tests" / "test_step.py").write_text(f"{twice}x = 'what what'\n", encoding="utf-8")
    vague = type(house())(tmp_path).vague_docstrings()
    assert vague == ["passes/step.py:3", "tests/test_step.py:1"]


def test_everything_that_traced_values_ask_for_is_there() -> None:
    from fusec.trace import tracer  # noqa: F401 (imports all that answers)
    from fusec.trace.values.operations import OPERATIONS, missing

    assert missing() == []
    assert len(OPERATIONS.methods) > 40


def is_of(module: str, package: str) -> bool:
    return f"{module}.".startswith(f"{package}.")


@pytest.mark.parametrize(("package", "others"), [
    (CPU, set()),
    (CUDA, {"fusec.bench.cli", "fusec.bench.cases.gpu_figures",
            "fusec.bench.cases.lane_figures", "fusec.compiled.exports.cuda_library"})])
def test_nobody_names_a_back_end_but_the_registry(package: str, others: set[str]) -> None:
    """In imports or as the text of a module's name; the benchmark measures what CUDA's compiler
    makes, and libraries for CUDA are its sources."""
    naming = {e.source for e in house().imports if is_of(e.target, package)}
    for name, module in house().modules.items():
        texts = (n.value for n in ast.walk(module.tree) if isinstance(n, ast.Constant))
        if any(isinstance(text, str) and is_of(text, package) for text in texts):
            naming.add(name)
    assert {name for name in naming if not is_of(name, package)} == {REGISTRY, *others}


def test_who_knows_a_gpu() -> None:
    """By its name or CuPy's, or by asking whether there is one: its folders, its line, calls that
    are given arrays of a GPU, tables of what libraries are called.  No new device has to be there.
    """
    names = {"GPU", "gpu", "CUDA", "cuda", "CUDAHOST", "cudahost", "cupy", "CuPy"}
    knowing = {e.source for e in house().imports if e.target == "fusec.core.gpus"}
    for name, module in house().modules.items():
        if names & {n.value for n in ast.walk(module.tree) if isinstance(n, ast.Constant)}:
            knowing.add(name)
    own = (CUDA, "fusec.runtime.resident", "fusec.bench")
    assert {name for name in knowing if not any(is_of(name, package) for package in own)} == {
        REGISTRY, "fusec.core.gpus",
        "fusec.signature.binding", "fusec.signature.gpu_arguments",
        "fusec.ir.device_names", "fusec.api.absent_names",  # what other libraries call it
        "fusec.distributed.cluster.cluster", "fusec.distributed.cluster.service",  # a worker's
        "fusec.distributed.cluster.sessions",
        "fusec.trace.call.foreign_arrays", "fusec.trace.facts.policy"}  # libraries by name
