"""float16 in compiled code: NumPy's bits for every half, with and without the CPU's conversions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.codegen.cpu import compile as native
from fusec.codegen.cpu.scalars import half_precision

ALL = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
OTHER = np.random.default_rng(0).permutation(ALL)
OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y, "sqrt": lambda x, y: np.sqrt(x), "neg": lambda x, y: -x,
    "less": lambda x, y: x < y, "maximum": lambda x, y: np.maximum(x, y),
    "where": lambda x, y: np.where(x > y, x, y),
    "python number": lambda x, y: x * 2.5 + 1, "chain": lambda x, y: (x * y + x) / (y - x),
    "single": lambda x, y: x.astype(np.float32) * 3, "double": lambda x, y: x.astype(float) * 3,
    "floor": lambda x, y: np.floor(x), "sign": lambda x, y: np.sign(x),
}


@pytest.fixture(params=["F16C", "integer arithmetic"])
def conversions(request: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(half_precision, "WITHOUT_F16C", request.param != "F16C")
    native.clear_cache()
    yield
    native.clear_cache()


def same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and bool(((a == b) | ((a != a) & (b != b))).all())


@pytest.mark.usefixtures("conversions")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", OPERATIONS)
def test_every_half(name: str) -> None:
    fn = OPERATIONS[name]
    jitted = fusec.jit(fn)
    assert same(jitted(ALL, OTHER), fn(ALL, OTHER))
    assert same(jitted(ALL[::-3], OTHER[::-3]), fn(ALL[::-3], OTHER[::-3]))


@pytest.mark.usefixtures("conversions")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("wide", [np.float32, np.float64])
def test_narrowing_rounds_once(wide: type) -> None:
    exact = ALL[np.isfinite(ALL)].astype(wide)
    between = np.sort(exact)
    middle = (between[:-1] + between[1:]) / 2
    x = np.concatenate([
        exact, middle, np.nextafter(middle, wide(np.inf)), np.nextafter(middle, wide(-np.inf)),
        np.array([65519.99, 65520.0, 1e-8, 1e30, -1e30, np.inf, -np.inf, np.nan], wide)])
    def narrow(x):
        return x.astype(np.float16)

    assert same(fusec.jit(narrow)(x), narrow(x))


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "var", "std", "max", "min", "argmax"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_reductions(name: str, axis: int | None) -> None:
    x = np.random.default_rng(1).random((300, 70)).astype(np.float16)
    fn = getattr(np, name)
    result = fusec.jit(lambda x: fn(x, axis=axis))(x)
    expected = fn(x, axis=axis)
    assert type(result) is type(expected) and result.dtype == expected.dtype
    exact = fn(x.astype(float), axis=axis)
    error = np.abs(expected.astype(float) - exact).max()
    assert np.abs(result.astype(float) - exact).max() <= 4 * error + 4 * np.spacing(
        np.float16(np.abs(exact).max()))


def test_loops_and_scalars() -> None:
    def decay(x):
        s = np.float16(0)
        for v in x:
            s = s * np.float16(0.5) + v
        return s

    x = np.random.default_rng(2).random(100).astype(np.float16)
    result = fusec.jit(decay)(x)
    assert result == decay(x) and type(result) is np.float16
