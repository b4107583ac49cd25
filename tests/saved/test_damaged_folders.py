"""Folders that are damaged, foreign or newer: an error that names what is wrong."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import fusec
from fusec.state.checkpoint_files import entry_of

from . import mutations
from .mutations import campaign, save_all


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved")
    save_all(folder)
    return folder


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    for file in (saved / "state").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path


def index_of(folder: Path) -> Any:
    return json.loads((folder / "saved.json").read_text())


def refuses(folder: Path, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        fusec.load(folder).f(np.linspace(-1.0, 1.0, 5))


def test_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there are no saved functions"):
        fusec.load(tmp_path / "nothing")


@pytest.mark.parametrize("name", ["variables.safetensors", "constants.safetensors",
                                  "graph-0.json"])
def test_a_missing_file(folder: Path, name: str) -> None:
    (folder / name).unlink()
    refuses(folder, f"{name} cannot be loaded: it")


@pytest.mark.parametrize("name", ["variables.safetensors", "constants.safetensors",
                                  "graph-0.json"])
@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_no_file(folder: Path, name: str, make: Any) -> None:
    (folder / name).unlink()
    make(folder / name)
    refuses(folder, f"{name} cannot be loaded: it is no ordinary file")


@pytest.mark.parametrize("name", ["variables.safetensors", "graph-0.json", "saved.json"])
def test_an_error_of_the_system_names_the_file(folder: Path, name: str) -> None:
    (folder / name).unlink()
    (folder / name).symlink_to("/proc/self/mem")  # which can be opened, and not read
    with pytest.raises((OSError, ValueError), match=name):
        fusec.load(folder)


@pytest.mark.parametrize("name", ["variables.safetensors", "constants.safetensors",
                                  "graph-0.json", "saved.json"])
def test_a_truncated_file(folder: Path, name: str) -> None:
    data = (folder / name).read_bytes()
    (folder / name).write_bytes(data[: len(data) // 2])
    refuses(folder, f"{name} cannot be loaded")


def test_foreign_and_missing_tensors(folder: Path) -> None:
    path = folder / "variables.safetensors"
    values = load_file(path)
    save_file({**values, "other": np.ones(2)}, path)
    refuses(folder, "it has values of other, which nothing asks for")
    save_file({"state": np.ones(4)}, path)
    refuses(folder, r"state is F64\[4\] there, and its index says float64\[5\]")
    save_file({"state": np.ones(5)}, path)
    refuses(folder, "the values of state are not those that were saved")
    save_file({"stat": np.ones(5)}, path)
    refuses(folder, "values of stat, which nothing")


def test_newer_and_foreign_formats(folder: Path) -> None:
    index = index_of(folder)
    (folder / "saved.json").write_text(json.dumps({**index, "version": 2, "fusec": "9.1"}))
    refuses(folder, r"was saved by a newer fusec\n.*2, of fusec 9.1\n.*up to 1, by fusec")
    (folder / "saved.json").write_text(json.dumps({**index, "format": "x"}))
    refuses(folder, "its format is not")
    (folder / "saved.json").write_text("[1")
    refuses(folder, "it is no JSON")


def test_texts_of_a_file_move_no_cursor(folder: Path) -> None:
    (folder / "saved.json").write_text(json.dumps(
        {**index_of(folder), "version": 10**4000, "fusec": "\x1b[2J\n9"}))
    refuses(folder, r"format: +10{19}, of fusec \\x1b\[2J\n9\n")
    (folder / "saved.json").write_text(json.dumps({**index_of(folder), "version": 1}))
    _with(folder, lambda index: index["functions"]["f"]["signatures"][0].update(
        graph=0, outputs=[{"kind": "\x1b[2J"}]))
    refuses(folder, r"'\\x1b\[2J'.* is no result")


@pytest.mark.parametrize("dtype", ["S2000000000", "U400000000", "V1000000000", "(99999999,)f8"])
def test_a_constant_result_of_a_long_dtype(folder: Path, dtype: str) -> None:
    """Its memory was made at the call, 50 seconds of it, and then was too much."""
    _with(folder, lambda index: index["functions"]["f"]["signatures"][0]["outputs"].__setitem__(
        0, {"kind": "fresh", "array": [dtype, {"list": [0, 1, 2]}]}))
    refuses(folder, "an array: .* is too long")


def test_a_graph_that_was_exchanged(folder: Path, saved: Path) -> None:
    (folder / "graph-0.json").write_bytes((saved / "loop" / "graph-0.json").read_bytes())
    refuses(folder, r"it is not what was saved \(SHA-256\)")


def _with(folder: Path, change: Any) -> None:
    index = index_of(folder)
    change(index)
    (folder / "saved.json").write_text(json.dumps(index))


@pytest.mark.parametrize("name", ["variables", "constants"])
@pytest.mark.parametrize("other", [np.ones(1), np.ones(4), np.ones((5, 1)), np.ones(5, np.float32),
                                   np.ones(5, np.int64)], ids=str)
def test_arrays_of_another_type_than_the_graph_says(
    folder: Path, name: str, other: np.ndarray
) -> None:
    """They lie in the file as the index says: kernels would read beyond them."""
    def change(index: Any) -> None:
        (row,) = index[name].values()
        row["tensor"] = entry_of(other)._asdict()
        if name == "constants":
            row["order"] = [*range(other.ndim)]

    (key,) = index_of(folder)[name]
    save_file({key: other}, folder / f"{name}.safetensors")
    _with(folder, change)
    refuses(folder, "its value from outside .* and its graph says f64")


def test_an_array_made_of_sizes_that_is_shorter_than_the_graph_says(
    saved: Path, tmp_path: Path
) -> None:
    """`numpy.arange` of mutation 1-24154, from s0 up to s0."""
    for file in (saved / "open").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())

    def change(index: Any) -> None:
        index["functions"]["f"]["signatures"][0]["outside"][0]["computed"]["args"] = ["s0", "s0"]

    _with(tmp_path, change)
    with pytest.raises(fusec.FusecError, match=r"is i64\[0\], and its graph says i64\[6\]"):
        fusec.load(tmp_path).f(np.arange(6.0))


def test_changed_folders_are_refused_or_answer() -> None:
    fates = Counter[str]()
    assert [*campaign(range(60), 40, fates=fates)] == []
    assert fates["refused"] > 30 and fates["answer"] >= 1 and fates.total() == 60


def test_another_answer_than_the_interpreters_is_told(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {path.name: path.read_bytes() for path in (saved / "open").iterdir()}
    assert mutations.outcome(files, "open") == ("answer", "")
    answers = iter([("answer", np.ones(2)), ("answer", np.array([1.0, 2.0]))])
    monkeypatch.setattr(mutations, "_called", lambda *given: next(answers))
    fate, text = mutations.outcome(files, "open")
    assert fate == "wrong" and "Not equal to tolerance" in text


@pytest.mark.repeats
@pytest.mark.parametrize("seed", range(100, 110))
def test_more_changed_folders(seed: int) -> None:
    assert [*campaign(range(100), seed)] == []
