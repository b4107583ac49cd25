"""Folders that earlier versions of the format wrote, and the ops that they may have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.compiled.saved.reading import SAVED_VERSION
from fusec.ir.text.json_form import VERSION
from fusec.ops import all_ops

GOLDEN = Path(__file__).parent / "golden"


def plain(x: Any) -> Any:
    """Results as JSON has them."""
    if isinstance(x, dict):
        return {key: plain(value) for key, value in x.items()}
    if isinstance(x, (tuple, list)):
        return [plain(value) for value in x]
    return x.tolist() if isinstance(x, (np.ndarray, np.generic)) else x


def same(a: Any, b: Any) -> bool:
    """Values stay from release to release; last bits may differ."""
    if isinstance(a, dict):
        return set(a) == set(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(np.isclose(a, b, rtol=1e-6 if isinstance(a, float) else 0, atol=0))


def test_there_is_a_folder_of_each_version() -> None:
    for name, newest in (("format", SAVED_VERSION), ("ops", VERSION)):
        found = sorted(path.stem for path in GOLDEN.glob(f"{name}-*"))
        assert found == sorted(f"{name}-{n}" for n in range(1, newest + 1))


@pytest.mark.parametrize("folder", sorted(GOLDEN.glob("format-*")), ids=lambda path: path.name)
def test_folders_of_earlier_versions_give_their_values(folder: Path) -> None:
    program = fusec.load(folder)
    x = np.array([[1.0, 2.0], [3.0, -4.0], [0.5, 0.25]])
    y, z = np.array([0.3, -1.0, 4.0, 0.75]), np.arange(3, dtype=np.int32)
    program.write(z, np.array([0, 2]))
    found = {"step": program.step(x), "count": program.variables["count"].numpy(),
             "select": program.select(y), "any_size": program.any_size(x), "write": z}
    expected = json.loads((folder / "expected.json").read_text())
    assert found["step"]["pair"]._fields == ("low", "high")
    for name, value in found.items():
        assert same(plain(value), expected[name]), name
    with pytest.raises(ValueError, match="a NaN"):
        program.select(np.array([1.0, np.nan, 2.0, 3.0]))
    with pytest.raises(fusec.SavedProgramError, match="Refused: large"):
        program.select(y + 100.0)


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("ops-*.json")), ids=lambda path: path.stem)
def test_ops_and_attributes_of_earlier_versions_stay(path: Path) -> None:
    """Each op is admitted with the attributes that it had; what came later says since when."""
    version = int(path.stem.removeprefix("ops-"))
    listed, rows = json.loads(path.read_text()), {row.name: row for row in all_ops()}
    for name, (needed, optional) in listed.items():
        admission = rows[name].admits
        assert admission is not None and not admission.refused, name
        assert {*admission.attrs} <= {*needed}, f"{name} needs an attribute that it had not"
        assert {*needed, *optional} <= {
            *admission.attrs, *admission.optional, *admission.claims}, name
    for name, row in rows.items():
        if row.admits is None or row.admits.refused:
            continue
        assert (row.since <= version) == (name in listed), f"{name}: since {row.since}"
        later = {attr for attr, since in row.attrs_since if since > version}
        attrs = {*row.admits.attrs, *row.admits.optional, *row.admits.claims} - later
        assert row.since > version or attrs == {*listed[name][0], *listed[name][1]}, name


def test_a_newer_graph_is_refused_with_both_versions() -> None:
    text = fusec.jit(lambda x: x + 1.0).concrete(np.ones(2)).graph.to_json()
    with pytest.raises(ValueError, match=f"has version {VERSION + 1} of the format, this fusec "
                                         f"reads versions up to {VERSION}"):
        fusec.admit(text.replace(f'"version": {VERSION}', f'"version": {VERSION + 1}'))
