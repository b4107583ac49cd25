"""Constraints that no device can meet: the message names node, line, constraint and candidates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.codegen import backends
from fusec.codegen.backends import DeviceKind
from fusec.codegen.reference_backend import ReferenceBackend


class NoSines(ReferenceBackend):
    """A back end without a kernel for sines."""

    name = "dull"

    def has_kernel(self, node: Any) -> bool:
        return node.op != "Sin"


@pytest.fixture(autouse=True)
def devices(monkeypatch: Any) -> Iterator[None]:
    monkeypatch.setitem(backends.KINDS, "dull", DeviceKind(__name__))
    monkeypatch.setitem(backends._loaded, "dull", NoSines())
    with fusec.config.override(logical_cpu_devices=2):
        yield


@fusec.jit
def waves(x):
    with fusec.device("/device:DULL:0"):
        y = np.cos(x)
        return np.sin(y) + 1


def test_a_device_without_a_kernel_for_a_node() -> None:
    with pytest.raises(ValueError) as raised:
        waves(np.ones(3))
    text = str(raised.value)
    for part in ("Sin cannot run where it is placed", "DULL:0 has no kernel for Sin",
                 "/device:DULL:0", "CPU:0, /job:localhost/task:0/device:CPU:1",
                 "soft_placement = True", "return np.sin(y) + 1", "in waves"):
        assert part in text, text


def test_softly_it_runs_where_there_is_one(capsys: Any) -> None:
    with fusec.config.override(soft_placement=True):
        np.testing.assert_allclose(waves(np.ones(3)), np.sin(np.cos(1.0)) + 1)
    nodes = waves.traces[-1].optimized_graph.nodes
    assert {n.device.rpartition("/")[2] for n in nodes if n.op == "Fused"} >= {"device:DULL:0"}
    assert "has no kernel for Sin" in capsys.readouterr().err


def test_a_function_of_nodes_that_contradicts_a_colocation() -> None:
    @fusec.jit
    def f(x):
        with fusec.device("CPU:1"):
            y = np.cos(x)
        with fusec.colocate_with(y), fusec.device(lambda node: "CPU:0"):
            return np.sin(y)

    with pytest.raises(ValueError) as raised:
        f(np.ones(3))
    text = str(raised.value)
    assert "CPU:0" in text and "CPU:1" in text and "colocate_with" in text
    assert "return np.sin(y)" in text


# --------------------------------------------------------------------- nodes to be beside that go


X = np.arange(4.0)


def devices_of(f: Any, *args: Any) -> dict[str, str]:
    """By its op, where each node is, before fusion."""
    graph = f.trace(*args).optimize().graph
    inner = [n for node in graph.nodes for n in (
        node.attrs["body"].nodes if node.op == "Fused" else [node])]
    return {n.op: n.device for n in inner if n.op not in ("Input", "Const")}


def test_beside_a_node_that_is_another_ones_twin() -> None:
    @fusec.jit
    def f(x):
        a = np.sort(x)
        b = np.sort(x)  # is the same node in the end
        with fusec.colocate_with(b):
            c = np.linalg.inv(x.reshape(2, 2))
        return a, c, b.sum()

    found = devices_of(f, X)
    assert found["LinalgInv"] == found["Sort"] and "@" in found["Sort"]


def test_beside_a_node_that_nobody_needs() -> None:
    @fusec.jit
    def f(x):
        a = np.sort(x)
        with fusec.colocate_with(a):
            b = np.linalg.eigvalsh(x.reshape(2, 2))
            c = np.linalg.inv(x.reshape(2, 2))
        return b, c

    found = devices_of(f, X)
    assert found["LinalgEigvalsh"] == found["LinalgInv"] and "@" in found["LinalgInv"]
