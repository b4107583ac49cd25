"""Traces that estimates placed are timed in their first calls, and placed anew where that pays."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fusec
from fusec import config
from fusec.passes.placement.costs import PARALLEL_NS, on_cores
from fusec.placement.device_models import machine
from fusec.placement.placement_trial import CALLS, Trial
from fusec.runtime.devices import node_times, registry

MS = 1e6
SMALL = np.random.default_rng(0).normal(size=(2, 8, 8))
LARGE = np.random.default_rng(0).normal(size=(2, 150, 150))


def two_products(a: np.ndarray, b: np.ndarray) -> Any:
    return np.linalg.inv(a)[0, 0] + np.linalg.inv(b)[0, 0]


@pytest.fixture(autouse=True)
def two_devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(node_times, "_known", {})
    with config.override(logical_cpu_devices=2, cache_dir=str(tmp_path / "cache")):
        yield


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """Nanoseconds that nodes are said to have taken, by op; those of other ops are measured."""
    said: dict[str, float] = {}
    usual = Trial._measured

    def measured(self: Trial, node: Any, ns: float) -> tuple[str, float]:
        name, ns = usual(self, node, ns)
        return name, said.get(node.op, ns)

    monkeypatch.setattr(Trial, "_measured", measured)
    return said


def is_divided(f: Any) -> bool:
    return f.traces[-1].build.call_plan.is_partitioned


def called(f: Any, args: Any, count: int) -> set[str]:
    """The bits of the results of so many calls."""
    return {float(f(*args)).hex() for _ in range(count)}


@pytest.mark.parametrize(("arrays", "ns", "was"), [
    (SMALL, 5 * MS, False), (LARGE, 1e3, True)], ids=["divided", "on one device"])
def test_what_the_first_calls_took_decides(
    arrays: np.ndarray, ns: float, was: bool, measured: dict[str, float]
) -> None:
    measured.update(LinalgInv=ns, Fused=1e3)
    f = fusec.jit(two_products)
    results = called(f, arrays, CALLS - 1)
    assert is_divided(f) is was and "placed anew" not in str(fusec.explain(f, *arrays))
    results |= called(f, arrays, 1)
    assert is_divided(f) is not was
    assert "placed anew: " in str(fusec.explain(f, *arrays))
    results |= called(f, arrays, 3)
    assert len(results) == 1 and f.trace_count == 1


@pytest.mark.parametrize("ns", [5 * MS, 5 * MS / 1.1])
def test_a_gain_that_is_small_changes_nothing(ns: float, measured: dict[str, float]) -> None:
    measured.update(LinalgInv=ns, Fused=1e3)
    f = fusec.jit(two_products)
    called(f, LARGE, CALLS + 2)
    assert is_divided(f) and "placed anew" not in str(fusec.explain(f, *LARGE))


def test_it_happens_once(measured: dict[str, float]) -> None:
    measured.update(LinalgInv=5 * MS, Fused=1e3)
    f = fusec.jit(two_products)
    called(f, SMALL, CALLS)
    concrete = f.traces[-1]
    assert concrete.trial is None and is_divided(f)
    executable = concrete.executable
    measured.update(LinalgInv=1e3)
    called(f, SMALL, 2 * CALLS)
    assert concrete.executable is executable
    assert f._fast.positional[0][1] is concrete, "later calls are not looked up"


def test_other_traces_know_at_once(measured: dict[str, float]) -> None:
    measured.update(LinalgInv=5 * MS, Fused=1e3)
    called(fusec.jit(two_products), SMALL, CALLS)
    f = fusec.jit(two_products)
    called(f, SMALL, 1)
    assert is_divided(f) and f.traces[-1].trial is None
    text = str(fusec.explain(f, *SMALL))
    assert "LinalgInv at" in text and "µs by measured times, on one device" in text
    assert text.count("µs as it was measured") == 3 and "by estimate" not in text


def test_with_no_folder_a_trace_decides_for_itself(measured: dict[str, float]) -> None:
    measured.update(LinalgInv=5 * MS, Fused=1e3)
    with config.override(cache_dir="off"):
        f, g = fusec.jit(two_products), fusec.jit(two_products)
        called(f, SMALL, CALLS)
        called(g, SMALL, 1)
        assert is_divided(f) and not is_divided(g) and not machine().measured


def test_an_error_is_the_programs_own() -> None:
    f = fusec.jit(two_products)
    for _ in range(CALLS + 2):
        with pytest.raises(np.linalg.LinAlgError, match="Singular"):
            f(np.zeros((8, 8)), SMALL[0])
    assert f.traces[-1].trial is not None, "calls that failed say nothing"


def test_kernels_too_small_to_be_divided_are_not_timed() -> None:
    f = fusec.jit(lambda x, y: np.exp(x) + np.sin(y))
    f(np.ones(4), np.ones(4))
    assert f.traces[-1].trial is None
    with config.override(logical_cpu_devices=1):
        f(np.ones(4), np.ones(4))
        assert f.traces[-1].trial is None


# ---- what is kept ----------------------------------------------------------------------------


def file() -> Path:
    return Path(config.cache_dir) / "node_times.json"


def test_the_least_is_kept() -> None:
    devices = registry.devices()
    for ns in (3.0, 2.0, 4.0):
        node_times.add(devices, {"CPU a": ns, f"CPU {ns}": ns})
        node_times._known.clear()  # another process
    assert node_times.kept_times(devices) == {
        "CPU a": 2.0, "CPU 3.0": 3.0, "CPU 2.0": 2.0, "CPU 4.0": 4.0}
    with config.override(num_threads=1, logical_cpu_devices=3):
        assert not node_times.kept_times(registry.devices()), "other devices"


@pytest.mark.parametrize("text", [
    b"", b"[]", b"\xff", b"{\"KEY\": []}", b"{\"KEY\": {\"CPU a\": -1.0, \"CPU b\": \"fast\"}}",
    b"{\"KEY\": {\"CPU a\": NaN, \"CPU b\": null, \"CPU c\": true}}"])
def test_a_file_that_is_something_else_is_no_table(text: bytes) -> None:
    devices = registry.devices()
    node_times.add(devices, {"CPU a": 1.0})
    (key,) = json.loads(file().read_text())
    file().write_bytes(text.replace(b"KEY", key.encode()))
    node_times._known.clear()
    assert node_times.kept_times(devices) == {}
    node_times.add(devices, {"CPU a": 5.0})
    assert json.loads(file().read_text())[key] == {"CPU a": 5.0}


def test_the_file_does_not_grow_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_times, "_MOST_NODES", 5)
    devices = registry.devices()
    for number in range(8):
        node_times.add(devices, {f"CPU {number}": 1.0})
    assert [*node_times.kept_times(devices)] == [f"CPU {n}" for n in range(3, 8)]


def test_kernels_on_other_cores() -> None:
    long, short = 10 * PARALLEL_NS, PARALLEL_NS / 10
    assert on_cores(long, 2, 1) == 2 * long and on_cores(long, 1, 4) == long / 4
    assert on_cores(short, 1, 4) == short and on_cores(long, 2, 2) == long
