"""Names that a checkpoint cannot tell apart, or hold: refused before anything is written."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import fusec


class Part:
    def __init__(self, **attributes: Any) -> None:
        for name, value in attributes.items():
            setattr(self, name, value)


def test_two_variables_of_one_name(tmp_path: Path) -> None:
    dotted = Part(d=Part(y=fusec.Variable(1.0)), **{"d.y": fusec.Variable(2.0)})
    keyed = Part(d={"x": fusec.Variable(1.0)}, **{"d['x']": fusec.Variable(2.0)})
    roots: list[dict[str, Any]] = [
        {"m": dotted}, {"m": keyed}, {"a.b": fusec.Variable(5.0), "a": Part(b=fusec.Variable(1.0))}]
    for root in roots:
        for act in (lambda c: c.save(tmp_path / "t"), lambda c: c.variables):
            with pytest.raises(ValueError, match="two Variables would have the name"):
                act(fusec.Checkpoint(**root))
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("name", ["__metadata__", "\ud800"])
def test_names_that_files_cannot_hold(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot hold a Variable of the name"):
        fusec.Checkpoint(**{name: fusec.Variable(1.0)}).save(tmp_path / "t")
    assert not os.listdir(tmp_path)


def test_one_variable_of_two_names(tmp_path: Path) -> None:
    part = Part(b=fusec.Variable(1.0))
    fusec.Checkpoint(m=part, n=part).save(tmp_path / "t")
    part.b.assign(3.0)
    fusec.Checkpoint(n=part, m=part).restore(tmp_path / "t")
    assert part.b.numpy() == 1.0
