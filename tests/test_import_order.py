"""Data flows down the folders and imports go up; only the registry names a back end."""

from __future__ import annotations

import ast
import functools
import importlib.util
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
# What codegen hands the runtime: plans, what back ends make, and the assembler of its own parts.
HANDED = {f"fusec.codegen.{name}" for name in (
    "backend", "machine_code.llvm", "machine_code.native_nest", "plan.control_program",
    "plan.partitioned_schedule", "plan.schedule")}
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


def test_docstrings_name_their_nouns() -> None:
    assert house().vague_docstrings() == []


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


def test_nobody_names_a_back_end_but_the_registry() -> None:
    """In imports or as the text of a module's name."""
    naming = {e.source for e in house().imports if is_of(e.target, CPU)}
    for name, module in house().modules.items():
        texts = (n.value for n in ast.walk(module.tree) if isinstance(n, ast.Constant))
        if any(isinstance(text, str) and is_of(text, CPU) for text in texts):
            naming.add(name)
    assert {name for name in naming if not is_of(name, CPU)} == {REGISTRY}
