"""Where `fusec.save` writes: nothing of others is lost, and errors say which folder."""

from __future__ import annotations

import os
import resource
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fusec


def save(folder: Path, factor: float) -> None:
    fusec.save(folder, {"f": fusec.jit(lambda x: x * factor).concrete(np.ones(2))})


def factor(folder: Path) -> float:
    return float(fusec.load(folder).f(np.ones(2))[0])


@pytest.mark.parametrize("name", ["README", ".git/HEAD", "graph-0.json.orig", "weights/a.npy"])
def test_files_of_others_in_the_folder_stay(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "p"
    save(folder, 2.0)
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text("precious")
    with pytest.raises(ValueError, match=r"fusec\.save did not write: it would") as caught:
        save(folder, 3.0)
    assert name.split("/")[0] in str(caught.value)
    assert (folder / name).read_text() == "precious" and factor(folder) == 2.0
    assert os.listdir(tmp_path) == ["p"]


def test_a_folder_with_the_name_of_a_file_stays(tmp_path: Path) -> None:
    save(tmp_path, 2.0)
    (tmp_path / "graph-7.json").mkdir()
    (tmp_path / "graph-7.json" / "notes").write_text("precious")
    with pytest.raises(ValueError, match=r"it would remove graph-7\.json"):
        save(tmp_path, 3.0)
    assert factor(tmp_path) == 2.0


@pytest.mark.parametrize("text", ["", "{}", '{"scores": [1, 2]}'])
def test_a_saved_json_of_another_program_stays(tmp_path: Path, text: str) -> None:
    (tmp_path / "saved.json").write_text(text)
    with pytest.raises(ValueError, match=r"no folder that fusec\.save wrote"):
        save(tmp_path, 3.0)
    assert (tmp_path / "saved.json").read_text() == text


def test_a_name_that_no_attribute_has(tmp_path: Path) -> None:
    r"""Python reads ``program.\ufb01`` as ``program.fi``."""
    with pytest.raises(ValueError, match="is no name of a saved function"):
        fusec.save(tmp_path, {"\ufb01": fusec.jit(lambda x: x + 1).concrete(np.ones(2))})


def test_files_of_others_that_come_meanwhile_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fusec.state import checkpoint_files

    save(tmp_path / "p", 2.0)
    write_values = checkpoint_files.write_values

    def slow(*args: Any) -> None:
        (tmp_path / "p" / "notes").write_text("precious")
        write_values(*args)

    monkeypatch.setattr(checkpoint_files, "write_values", slow)
    with pytest.raises(ValueError, match="notes"):
        save(tmp_path / "p", 3.0)
    assert (tmp_path / "p" / "notes").read_text() == "precious"


def test_a_folder_that_is_exchanged_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index of one and the graphs of the other were a damaged folder."""
    from fusec.compiled.saved import reading

    save(tmp_path / "p", 2.0)
    later, read_variables = [3.0, 4.0], reading.read_variables

    def slow(*args: Any) -> Any:
        if later and args[0] == tmp_path / "p":
            save(tmp_path / "p", later.pop())
        return read_variables(*args)

    monkeypatch.setattr(reading, "read_variables", slow)
    assert factor(tmp_path / "p") == 3.0 and not later


def test_an_older_folder_with_more_graphs_is_replaced(tmp_path: Path) -> None:
    f = fusec.jit(lambda x: x * 2.0)
    fusec.save(tmp_path / "p", {"f": [f.concrete(np.ones(n)) for n in range(2, 14)]})
    save(tmp_path / "p", 3.0)
    assert factor(tmp_path / "p") == 3.0 and not (tmp_path / "p" / "graph-1.json").exists()


def test_through_a_link_its_folder_is_written(tmp_path: Path) -> None:
    save(tmp_path / "v1", 2.0)
    link = tmp_path / "current"
    link.symlink_to("v1")
    save(link, 3.0)
    assert link.is_symlink() and factor(tmp_path / "v1") == 3.0
    link.unlink()
    link.symlink_to("nowhere")
    with pytest.raises(ValueError, match="is there already"):
        save(link, 4.0)


def test_a_write_that_fails_says_where(tmp_path: Path) -> None:
    save(tmp_path / "p", 2.0)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    f = fusec.jit(lambda x: x * 3.0).concrete(np.ones(2))
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (300, limits[1]))
        with pytest.raises(OSError, match="File too large") as caught:
            fusec.save(tmp_path / "p", {"f": f})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    assert str(tmp_path / "p") in str(caught.value) and factor(tmp_path / "p") == 2.0
