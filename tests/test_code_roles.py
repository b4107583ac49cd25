"""Whose code a function is: said by markers, not by names of modules."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import fusec
from fusec.core.code_roles import is_on_behalf, is_ours, is_written_as_users

ROOT = Path(fusec.__file__).parent.parent


@pytest.mark.parametrize(("module", "ours", "converted", "on_behalf"), [
    ("fusec.trace.tracer", True, False, False),
    ("fusec.trace.hooks.calls", True, False, True),
    ("fusec.trace.convert.hooks", True, False, True),  # by its package
    ("fusec.trace.convert.in_python", True, True, True),
    ("fusec.bench.programs.eos", False, True, True),
    ("fusecake", False, False, True),
    ("numpy", False, False, True),
])
def test_roles(module, ours, converted, on_behalf):
    try:
        found = vars(__import__(module, fromlist=["__name__"]))
    except ImportError:
        found = {"__name__": module}
    assert is_ours(found) == ours
    assert is_written_as_users(found) == converted
    assert is_on_behalf(found) == on_behalf


def test_no_name_of_a_module_of_ours_decides_anything():
    named = []
    for path in [*ROOT.glob("fusec/trace/**/*.py"), *ROOT.glob("fusec/errors.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and (
                    node.value.startswith("fusec.") and " " not in node.value):
                named.append(f"{path.relative_to(ROOT)}:{node.lineno} {node.value}")
    assert [name.split()[-1] for name in sorted(named)] == [
        "fusec.print",  # as programs call it
        "fusec.trace.tracer"]  # where the frames of a trace begin


def test_roles_ask_no_module_for_names_that_it_lacks(monkeypatch):
    """An absent name of ``fusec`` costs a search for names like it, and frames are many."""
    asked = []
    monkeypatch.setattr("fusec._made_or_absent", asked.append)
    assert is_ours(vars(fusec)) and is_ours({"__name__": "fusec.x", "__package__": "fusec"})
    assert asked == []
