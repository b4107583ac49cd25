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
LEAVES = {"fusec.errors", "fusec.config", "fusec.gpus", "fusec.interruption", "fusec.locks",
          "fusec.machine", "fusec.occupancy", "fusec.inspect.log",
          "fusec.inspect.progress", "fusec.inspect.timeline", "fusec.records", "fusec.stack"}
# From the top down.  The verifier and the evaluator of `ir` read the rows of `ops`.
MAY_IMPORT = {
    "fusec.ir": {"fusec.ops"},
    "fusec.ops": {"fusec.ir"},
    "fusec.passes": {"fusec.ir", "fusec.ops"},
    "fusec.codegen": {"fusec.ir", "fusec.ops", "fusec.passes"},
    "fusec.runtime": {"fusec.ir", "fusec.ops", "fusec.codegen"},
}
# What codegen hands the runtime: plans, what back ends make, and the assembler of its own parts.
HANDED = {f"fusec.codegen.{name}" for name in (
    "backend", "control_program", "llvm", "native_nest", "partitioned_schedule", "schedule")}
CPU, REGISTRY = "fusec.codegen.cpu", "fusec.codegen.backends"


@functools.cache
def house() -> Any:
    spec = importlib.util.spec_from_file_location("house", ROOT / ".ci" / "house.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules["house"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.House(ROOT)


def folder(module: str) -> str:
    return ".".join(module.split(".")[:2])


@pytest.mark.parametrize("name", MAY_IMPORT)
def test_folders_import_those_above_them(name: str) -> None:
    edges = [e for e in house().imports if folder(e.source) == name]
    assert edges
    wrong = {(e.source, e.target) for e in edges
             if folder(e.target) not in {name, *MAY_IMPORT[name]} and e.target not in LEAVES}
    assert not wrong


def test_the_runtime_takes_what_it_is_handed() -> None:
    taken = {(e.source, e.target) for e in house().imports
             if folder(e.source) == "fusec.runtime" and folder(e.target) == "fusec.codegen"}
    assert taken and {target for _, target in taken} <= HANDED


def test_rooms_of_tracing_stand_on_each_other() -> None:
    """`.ci/house.py` has them from the ground up; late imports and those for types count."""
    rooms = house().rooms()
    assert set(rooms) == set(house().ROOMS) and all(rooms.values())
    assert house().running_up() == 0
    assert house().circles("fusec.trace") == 1, "no file imports another that imports it"
    assert max(rooms.values()) <= 14, "a room has at most fourteen files"


def test_everything_that_traced_values_ask_for_is_there() -> None:
    from fusec.trace import tracer  # noqa: F401 (imports all that answers)
    from fusec.trace.values.operations import OPERATIONS, missing

    assert missing() == []
    assert len(OPERATIONS.methods) > 40


def is_of(module: str, package: str) -> bool:
    return f"{module}.".startswith(f"{package}.")


def test_nobody_names_a_back_end_but_the_registry() -> None:
    """In imports or as the text of a module's name."""
    naming = {e.source for e in house().imports if is_of(e.target, CPU)}
    for name, module in house().modules.items():
        texts = (n.value for n in ast.walk(module.tree) if isinstance(n, ast.Constant))
        if any(isinstance(text, str) and is_of(text, CPU) for text in texts):
            naming.add(name)
    assert {name for name in naming if not is_of(name, CPU)} == {REGISTRY}
