"""``fusec.device(..., sends="bfloat16")``: values lose bits where they go to another device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fusec

X = np.linspace(0.1, 2.0, 100, dtype=np.float32)
ZERO, ONE = "/job:localhost/task:0/device:CPU:0", "/job:localhost/task:0/device:CPU:1"


@pytest.fixture(autouse=True)
def _two() -> Iterator[None]:
    with fusec.config.override(logical_cpu_devices=2):
        yield


def cut(x: np.ndarray) -> np.ndarray:
    """Without the lower 16 bits."""
    return (x.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)


def constraints(f: Any, *args: Any) -> dict[str, str]:
    return {n.op: n.device for n in fusec.jit(f).trace(*args).graph.nodes}


def test_constraints() -> None:
    def f(x):
        with fusec.device("cpu:1", sends="bfloat16"):
            y = np.exp(x)
            with fusec.device("cpu:0"):
                y = np.sin(y)
                with fusec.device("", sends="exact"):
                    y = np.cos(y)
            with fusec.colocate_with(y):
                y = np.tan(y)
            with fusec.device(None):
                y = np.log(y)
        with fusec.device(None, sends="bfloat16"):
            y = np.sqrt(y)
        with fusec.colocate_with(y):
            return np.abs(y)

    found = constraints(f, X)
    assert found == {
        "Input": "", "Exp": "/device:CPU:1~bfloat16", "Sin": "/device:CPU:0~bfloat16",
        "Cos": "/device:CPU:0", "Tan": "/device:CPU:0@Cos~bfloat16", "Log": "",
        "Sqrt": "~bfloat16", "Abs": "@Sqrt"}


def test_it_is_part_of_the_key_and_of_no_variable() -> None:
    f = fusec.jit(lambda x: np.exp(x))
    f(X)
    with fusec.device("cpu:1", sends="bfloat16"):
        f(X), f(X)
        assert fusec.Variable(1.0).device == ONE
    with fusec.device(lambda node: "cpu:1", sends="bfloat16"):
        assert fusec.Variable(1.0).device == ONE
    assert [t.reason for t in f.traces] == [
        "first call", "device scope: none before, /device:CPU:1 > sends bfloat16 now"]


def test_values_lose_bits_on_the_way() -> None:
    @fusec.jit
    def f(x, sends):
        with fusec.device("cpu:1", sends=sends):
            y = np.exp(x)
        with fusec.device("cpu:0"):
            return np.sqrt(y)

    exact = f(X, "exact")
    lossy = f(X, "bfloat16")
    np.testing.assert_array_equal(exact, fusec.jit(lambda x: np.sqrt(np.exp(x)))(X))
    np.testing.assert_array_equal(lossy, np.sqrt(cut(fusec.jit(lambda x: np.exp(x))(X))))
    assert (exact != lossy).any()
    np.testing.assert_allclose(lossy, exact, rtol=2 ** -7)


def test_other_dtypes_and_one_device_lose_nothing() -> None:
    @fusec.jit
    def f(x):
        with fusec.device("cpu:1", sends="bfloat16"):
            y = np.exp(x)
        with fusec.device("cpu:0"):
            return np.sqrt(y)

    double = X.astype(np.float64)
    np.testing.assert_array_equal(f(double), fusec.jit(lambda x: np.sqrt(np.exp(x)))(double))

    @fusec.jit
    def g(x):
        with fusec.device("cpu:0", sends="bfloat16"):
            return np.sqrt(np.exp(x))

    np.testing.assert_array_equal(g(X), fusec.jit(lambda x: np.sqrt(np.exp(x)))(X))


@pytest.mark.parametrize("sends", ["float16", "", 3, ["bfloat16"], True])
def test_formats_that_there_are_not(sends) -> None:
    with pytest.raises(ValueError, match="values cannot be sent as") as caught:
        fusec.device("cpu:0", sends=sends)
    assert "formats: 'exact', 'bfloat16'" in str(caught.value)
