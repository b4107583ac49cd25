"""The programs in ``examples/`` run, at tiny sizes, and their results are right."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def load(name: str) -> ModuleType:
    """``examples/name.py`` as a module."""
    spec = importlib.util.spec_from_file_location(f"examples_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_example_is_tested_and_short() -> None:
    files = sorted(EXAMPLES.glob("*.py"))
    assert [f.stem for f in files] == [
        "black_scholes", "diffusivity", "digits", "digits_on_workers", "digits_stale", "epidemic",
        "layers_on_workers", "photo_filter", "shallow_water"]
    assert all(len(f.read_text().splitlines()) < 80 for f in files)


def test_photo_filter(capsys: pytest.CaptureFixture[str]) -> None:
    from skimage.io import imread

    folder = load("photo_filter").main(64 * 64)
    assert imread(folder / "after.png").shape == (64, 64, 3)
    assert not np.array_equal(imread(folder / "before.png"), imread(folder / "after.png"))
    assert "NOT EQUAL" not in capsys.readouterr().out


def test_digits(capsys: pytest.CaptureFixture[str]) -> None:
    _, here, restored = load("digits").main()
    assert here == restored >= 0.97
    assert "traces of the training step: 1\n" in capsys.readouterr().out


def test_shallow_water(capsys: pytest.CaptureFixture[str]) -> None:
    assert load("shallow_water").main(24, 20) < 1e-13
    assert "traced 1 time" in capsys.readouterr().out


def test_black_scholes(capsys: pytest.CaptureFixture[str]) -> None:
    totals = load("black_scholes").main(500)
    text = capsys.readouterr().out
    assert "call          10.4506" in text  # Hull's textbook value for this option
    assert "NOT EQUAL" not in text
    assert all(type(t) is np.float64 and np.isfinite(t) for t in totals)


def test_diffusivity() -> None:
    assert load("diffusivity").main(16, 15) < 0.02


def test_epidemic(capsys: pytest.CaptureFixture[str]) -> None:
    contacts, recoveries, _ = load("epidemic").main()
    assert contacts / recoveries == pytest.approx(3.93, abs=0.01)
    assert "+- 0.055" in capsys.readouterr().out


def load_of_workers(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The same, of one whose processes need the extra `distributed`."""
    pytest.importorskip("distributed")
    monkeypatch.syspath_prepend(str(EXAMPLES))  # they read digits.py
    return load(name)


def test_digits_on_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    accuracy, is_same = load_of_workers("digits_on_workers", monkeypatch).main(epochs=2)
    assert accuracy > 0.85 and is_same


def test_digits_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    accuracy, staleness = load_of_workers("digits_stale", monkeypatch).main(steps=40)
    assert accuracy > 0.5 and len(staleness) == 80 and max(staleness) > 0


def test_layers_on_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    first, last, gap = load_of_workers("layers_on_workers", monkeypatch).main(steps=20)
    assert last < first and gap < 1e-12
