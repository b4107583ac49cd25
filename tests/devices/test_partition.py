"""The parts of a placed graph: asserted on the graphs of the devices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.codegen import backends
from fusec.codegen.backends import DeviceKind
from fusec.core import machine
from fusec.ir import Graph

CPU = "/job:localhost/task:0/device:CPU:"


@pytest.fixture(autouse=True)
def two_devices() -> Iterator[None]:
    with fusec.config.override(logical_cpu_devices=2, verify=True):
        yield


@pytest.fixture
def far(monkeypatch: Any) -> str:
    """A device with memory of its own."""
    monkeypatch.setitem(backends.KINDS, "far", DeviceKind(
        backends.KINDS["cpu"].home, memory=machine.usable_memory))
    monkeypatch.setattr(backends, "_loaded", {**backends._loaded})
    return "/device:FAR:0"


def graphs(function: Any, *args: Any) -> dict[str, Graph]:
    return function.concrete(*args).partitions


def ops(graph: Graph) -> list[str]:
    return [n.op for n in graph.nodes]


def test_a_value_is_sent_once_however_many_nodes_read_it() -> None:
    @fusec.jit
    def f(x):
        with fusec.device("/device:CPU:1"):
            y = np.sin(x)
        with fusec.device("/device:CPU:0"):
            return np.sort(y), np.linalg.norm(y), y @ y, y + 1

    x = np.linspace(0, 1, 40)
    here, there = (graphs(f, x)[CPU + n] for n in "01")
    assert ops(there).count("Send") == ops(here).count("Recv") == 1
    readers = [n for n in here.nodes if any(v.node.op == "Recv" for v in n.inputs)]
    assert len(readers) >= 3
    send = next(n for n in there.nodes if n.op == "Send")
    recv = next(n for n in here.nodes if n.op == "Recv")
    assert send.attrs["key"] == recv.attrs["key"]
    assert (send.attrs["target"], recv.attrs["source"]) == (CPU + "0", CPU + "1")
    for got, want in zip(f(x), f.__wrapped__(x), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)


def test_a_control_edge_between_devices_is_sent_without_a_value() -> None:
    @fusec.jit
    def f(x):
        with fusec.device("/device:CPU:1"):
            y = np.sort(x)
        with fusec.device("/device:CPU:0"), fusec.control_dependencies([y]):
            z = np.argsort(x)
        return z, y

    x = np.linspace(1, 0, 40)
    here = graphs(f, x)[CPU + "0"]
    token = next(n for n in here.nodes if n.op == "Recv" and not n.types)
    assert token.attrs["key"].startswith("^")
    argsort = next(n for n in here.nodes if n.op == "Argsort")
    assert argsort.control_inputs == (token,)
    assert f(x)[0].tolist() == np.argsort(x).tolist()


def test_arguments_are_read_where_they_are_unless_memory_is_elsewhere(far: str) -> None:
    def program(device):
        @fusec.jit
        def f(x):
            with fusec.device(device):
                return np.sort(x)
        return f

    x = np.linspace(1, 0, 40)
    near, remote = program("/device:CPU:1"), program(far)
    assert "Recv" not in ops(graphs(near, x)[CPU + "1"])
    there = graphs(remote, x)[f"/job:localhost/task:0{far}"]
    assert ops(there)[:2] == ["Recv", "Sort"]
    for f in (near, remote):
        assert f(x).tolist() == np.sort(x).tolist()


def test_what_is_sent_lossy_has_the_upper_bits_of_float32() -> None:
    def values(graph_of: Any) -> Any:
        x = np.random.default_rng(0).normal(size=1000).astype(np.float32)
        x[:3] = np.inf, -np.inf, np.nan
        return x, graph_of(x)

    @fusec.jit
    def f(x):
        with fusec.device("/device:CPU:1", sends="bfloat16"):
            y = x * np.float32(2)
            k = y.astype(np.float64)
        with fusec.device("/device:CPU:0"):
            return np.sort(y), y + np.float32(0), k + 0

    x, (_, got, exact) = values(f)
    bits = (x * 2).view(np.uint32)
    want = (bits & np.uint32(0xFFFF0000)).view(np.float32)
    assert np.isnan(got[2]) and np.array_equal(got[3:], want[3:]) and got[0] == np.inf
    assert np.abs(got[3:] / (2 * x[3:]) - 1).max() < 2.0**-7
    assert exact[3:].tolist() == (2 * x[3:]).astype(float).tolist()
    sends = [n for n in graphs(f, x)[CPU + "1"].nodes if n.op == "Send"]
    assert sorted((n.inputs[0].dtype.name, n.attrs["lossy"]) for n in sends) == [
        ("float32", True), ("float64", False)]


def early_values(device: str, count: int = 8, n: int = 200_000) -> Any:
    """Many large values that one device makes at once and another needs one after the other."""
    @fusec.jit
    def f(x, a):
        parts = []
        for i in range(count):
            with fusec.device("/device:CPU:0"):
                parts.append(np.sort(x[i:]))
        with fusec.device("/device:CPU:0"):
            last = np.sort(x[count:])[0]
        total = np.zeros((3, 3)) + last  # so that the other begins when all parts are there
        for i in range(count):
            with fusec.device(device):
                for _ in range(4):
                    a = np.linalg.inv(a) @ a + np.eye(60) * 0.5
                total = 1e-3 * total + np.sort(parts[i] + total[0, 0])[:9].reshape(3, 3) * a[0, 0]
        return total

    random = np.random.default_rng(0)
    return f, (random.normal(size=n), random.normal(size=(60, 60)))


def test_receives_wait_until_they_are_needed(far: str) -> None:
    f, args = early_values(far)
    there = graphs(f, *args)[f"/job:localhost/task:0{far}"]
    receives = [n for n in there.nodes if n.op == "Recv" and n.types and "Sort" in n.attrs["key"]]
    assert len(receives) == 8
    delayed = [n for n in receives if n.control_inputs]
    assert len(delayed) >= 6, "all but the first have something to wait for"
    order = {n.name: i for i, n in enumerate(there.nodes)}
    for recv in delayed:
        readers = [n for n in there.nodes if any(v.node is recv for v in n.inputs)]
        assert order[recv.control_inputs[0].name] < min(order[n.name] for n in readers)


def test_the_peak_of_memory_with_and_without(far: str, monkeypatch: Any) -> None:
    peaks = {}
    for delayed in (True, False):
        if not delayed:
            monkeypatch.setattr(
                "fusec.placement.placed_graph.order_receives", lambda parts, *rest: parts)
        f, args = early_values(far)
        want = f.__wrapped__(*args)
        np.testing.assert_allclose(f(*args), want, rtol=1e-9)
        f(*args)
        step = f.traces[0].executable._idle[-1].last_step
        peaks[delayed] = step.peak[f"/job:localhost/task:0{far}"]
    print(f"peak: {peaks[True] / 1e6:.1f} MB, {peaks[False] / 1e6:.1f} where nothing is delayed")
    assert peaks[True] < 0.6 * peaks[False]
