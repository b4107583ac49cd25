"""Powers of open sizes, in functions that leave the process: ``x / len(x)**0.5``."""

from __future__ import annotations

import ctypes
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fusec

from .calling import CFunction
from .test_c_library import SPEC, V3, pytestmark

assert pytestmark
SIZES = (1, 2, 3, 7, 20, 1000, 12_345)


def root(x: Any) -> Any:
    return x / len(x) ** 0.5


def third(x: Any) -> Any:
    return x * pow(len(x), 1 / 3)


def inverse(x: Any) -> Any:
    return x * len(x) ** -2


def square(x: Any) -> Any:
    return x * len(x) ** 2, np.full(3, len(x) ** 3)


def of_math(x: Any) -> Any:
    return x * math.pow(len(x) + 1, 1.7)


ALL = pytest.mark.parametrize("f", [root, third, inverse, square, of_math])


def results(x: Any) -> list[np.ndarray]:
    return [np.asarray(r) for r in (x if isinstance(x, tuple) else (x,))]


@ALL
def test_in_c_they_have_pythons_bits(f: Any, tmp_path: Path) -> None:
    made = fusec.export_c({"fn": (f, (SPEC((None,)),))}, tmp_path / "powers", V3)
    call = CFunction(ctypes.CDLL(str(made.shared)), made.functions[0])
    for n in SIZES:
        x = np.linspace(0.5, 2.0, n)
        code, found, _ = call([x])
        assert not code
        for a, b in zip(found, results(f(x)), strict=True):
            assert a.tobytes() == b.tobytes()


@ALL
def test_saved_functions_have_them(f: Any, tmp_path: Path) -> None:
    fusec.save(tmp_path, {"f": fusec.jit(f).concrete(SPEC((None,)))})
    loaded = fusec.load(tmp_path).f
    for n in SIZES:
        x = np.linspace(0.5, 2.0, n)
        for a, b in zip(results(loaded(x)), results(f(x)), strict=True):
            assert a.dtype == b.dtype and a.tobytes() == b.tobytes()


@ALL
def test_models_have_them(f: Any) -> None:
    runtime = pytest.importorskip("onnxruntime")
    model = fusec.to_onnx(f, (SPEC((None,)),)).SerializeToString()
    session = runtime.InferenceSession(model)
    for n in SIZES[1:]:
        x = np.linspace(0.5, 2.0, n)
        for a, b in zip(session.run(None, {"x": x}), results(f(x)), strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=1e-14)


def test_a_power_that_is_an_integer_is_a_size() -> None:
    """Each size had a trace of its own, as it is asked for the sizes of an array."""
    concrete: Any = fusec.jit(lambda x: np.zeros(len(x) ** 2) + x.sum()).concrete(SPEC((None,)))
    assert "f64[s0*s0]" in str(concrete.graph) and not concrete.narrowed


def test_a_power_in_a_file_has_a_bound(tmp_path: Path) -> None:
    fusec.save(tmp_path, {"f": fusec.jit(lambda x: x * 2 ** len(x)).concrete(SPEC((None,)))})
    loaded = fusec.load(tmp_path).f
    assert loaded(np.ones(60)).tolist() == [2.0**60] * 60
    with pytest.raises((TypeError, OverflowError)):
        loaded(np.ones(1 << 20))
