"""How fast devices are: measured once, kept in a file that may be anything, or estimated."""

from __future__ import annotations

import ctypes
import io
import json
import math
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import fusec
import fusec.placement.devices
from fusec import config
from fusec.core import machine
from fusec.ir.device_names import DeviceName
from fusec.runtime.devices import calibration, registry, table_files
from fusec.runtime.devices.calibration import MeasuredRates
from fusec.runtime.devices.device import Device
from fusec.runtime.native import speed

KNOWN = MeasuredRates(20.0, 50.0, 10.0, 5000.0)


@pytest.fixture(autouse=True)
def nothing_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(calibration, "_known", {})
    monkeypatch.setattr(calibration, "_ceilings", {})
    with config.override(cache_dir=str(tmp_path / "cache")):
        yield


@pytest.fixture(autouse=True)
def one_blas_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["fusec.placement.devices"], "blas_threads", lambda: 1)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[Device]:
    """The devices that are measured, by something quick."""
    seen: list[Device] = []

    def measured(device: Device) -> MeasuredRates:
        seen.append(device)
        return KNOWN

    monkeypatch.setattr(calibration, "_measure", measured)
    return seen


def cpu(number: int = 0) -> Device:
    return registry.matching(DeviceName(type="CPU", index=number))[0]


def new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "_known", {})


def file() -> Path:
    return Path(config.cache_dir) / "devices.json"


@pytest.mark.parametrize("count", [1, 2])
def test_what_is_measured(count: int) -> None:
    with config.override(logical_cpu_devices=count):
        start = time.perf_counter()
        rates = calibration.rates(cpu(count - 1))
        seconds = time.perf_counter() - start
    assert 0.5 < rates.bytes_per_ns < 2000 and 0.5 < rates.flops_per_ns < 20_000
    assert 0.2 < rates.transfer_bytes_per_ns < 500 and 100 < rates.launch_ns < 1e7
    assert seconds < 5.0  # 0.2 on an idle machine


def test_little_memory_is_filled_where_that_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    filled: list[int] = []

    def slow(count: int) -> np.ndarray:
        filled.append(8 * count)
        time.sleep(count / 100e6)  # 0.8 GB/s
        return np.empty(count)

    monkeypatch.setattr(calibration.np, "ones", slow)
    monkeypatch.setattr(calibration, "_cache_bytes", lambda cores: 128 << 20)
    monkeypatch.setattr(calibration, "_nest_rate", lambda *args: 1.0)
    calibration._stream_rate(cpu())
    assert sum(filled[1:]) == pytest.approx(calibration._TOTAL_BYTES[0], rel=0.4)
    assert filled[0] < calibration._TOTAL_BYTES[0] / 2


def test_the_kernels_compute_what_they_say() -> None:
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    size = 3 * speed.BLOCK
    a, b, c = np.zeros(size), np.arange(size) * 1.0, np.full(size, 0.5)
    block = (ctypes.c_int64 * 3)(a.ctypes.data, b.ctypes.data, c.ctypes.data)
    triad = kind(speed.code().address("triad"))
    triad(ctypes.addressof(block), 1, 2)
    part = slice(speed.BLOCK, 2 * speed.BLOCK)
    assert np.array_equal(a[part], 3 * b[part] + 0.5) and np.count_nonzero(a) == speed.BLOCK
    chain, result = kind(speed.code().address("multiply_add")), ctypes.c_int64()
    chain(ctypes.addressof(result), 0, 1)
    assert 1.9 < np.int64(result.value).view(np.float64) < 2.1  # where x = x / 2 + 1 ends


def test_a_device_is_measured_once(
    counted: list[Device], monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert calibration.rates(cpu()) == KNOWN == calibration.rates(cpu())
    new_process(monkeypatch)
    assert calibration.rates(cpu()) == KNOWN
    assert len(counted) == 1
    with config.override(num_threads=machine.usable_cores() + 1):  # another device, in effect
        calibration.rates(cpu())
    assert len(counted) == 2
    assert len(json.loads(file().read_text())) == 2
    assert file().stat().st_mode & 0o077 == 0


def test_without_a_folder_a_process_measures_for_itself(
    counted: list[Device], monkeypatch: pytest.MonkeyPatch,
) -> None:
    with config.override(cache_dir="off"):
        calibration.rates(cpu()), calibration.rates(cpu())
        assert len(counted) == 1
        new_process(monkeypatch)
        calibration.rates(cpu())
    assert len(counted) == 2 and not file().exists()


def test_estimates_measure_nothing(counted: list[Device]) -> None:
    guess = calibration.rates(cpu(), estimate=True)
    assert not counted and not file().exists()
    assert all(math.isfinite(x) and x > 0 for x in (
        guess.bytes_per_ns, guess.flops_per_ns, guess.transfer_bytes_per_ns, guess.launch_ns))
    calibration.rates(cpu())
    assert calibration.rates(cpu(), estimate=True) == KNOWN


def test_estimates_grow_with_threads() -> None:
    device = Device(DeviceName("localhost", 0, "CPU", 5), (0, 1), threads=2)
    one = Device(DeviceName("localhost", 0, "CPU", 6), (0,), threads=1)
    two_rates, rates = (calibration.rates(d, estimate=True) for d in (device, one))
    assert two_rates.flops_per_ns == 2 * rates.flops_per_ns


@pytest.mark.parametrize("bad", [
    b"", b"{", b"[]", b"7", b"\xff\xfe", b"{\"KEY\": null}", b"{\"KEY\": {}}",
    b"{\"KEY\": {\"bytes_per_ns\": \"x\", \"flops_per_ns\": 1.0, \"transfer_bytes_per_ns\": 1.0,"
    b" \"launch_ns\": 1.0}}",
    b"{\"KEY\": {\"bytes_per_ns\": NaN, \"flops_per_ns\": 1.0, \"transfer_bytes_per_ns\": 1.0,"
    b" \"launch_ns\": 1.0}}",
    b"{\"KEY\": {\"bytes_per_ns\": -1.0, \"flops_per_ns\": 1.0, \"transfer_bytes_per_ns\": 1.0,"
    b" \"launch_ns\": 1.0}}",
    b"[" * 100_000,
])
def test_a_bad_file_is_measured_anew(counted: list[Device], bad: bytes) -> None:
    file().parent.mkdir()
    file().write_bytes(bad.replace(b"KEY", calibration._key(cpu()).encode()))
    assert calibration.rates(cpu()) == KNOWN and len(counted) == 1
    assert [*json.loads(file().read_text()).values()] == [
        {"bytes_per_ns": 20.0, "flops_per_ns": 50.0, "transfer_bytes_per_ns": 10.0,
         "launch_ns": 5000.0}]


def test_a_file_that_others_may_write_is_not_believed(counted: list[Device]) -> None:
    calibration._keep(calibration._key(cpu()), MeasuredRates(1.0, 1.0, 1.0, 1.0))
    file().chmod(0o666)
    assert calibration.rates(cpu()) == KNOWN and len(counted) == 1


def test_a_file_that_is_no_file(
    counted: list[Device], capsys: pytest.CaptureFixture[str],
) -> None:
    file().parent.mkdir()
    file().mkdir()
    assert calibration.rates(cpu()) == KNOWN
    assert f"{file()} cannot be written" in capsys.readouterr().err
    table_files.store("devices", {})
    assert not capsys.readouterr().err, "once"
    file().rmdir()
    os.mkfifo(file())  # opening it must not wait for a writer
    assert table_files.load("devices") == {}


def test_old_entries_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "_MOST_ENTRIES", 3)
    for i in range(5):
        calibration._keep(f"key {i}", KNOWN)
    assert [*json.loads(file().read_text())] == ["key 2", "key 3", "key 4"]


def test_threads_that_ask_at_once_measure_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[Device] = []

    def slow(device: Device) -> MeasuredRates:
        seen.append(device)
        time.sleep(0.05)
        return KNOWN

    monkeypatch.setattr(calibration, "_measure", slow)
    asking = [threading.Thread(target=lambda: calibration.rates(cpu())) for _ in range(4)]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    assert len(seen) == 1


def test_what_fails_on_the_thread_is_raised_here() -> None:
    def fails() -> None:
        raise MemoryError("too much")

    with pytest.raises(MemoryError, match="too much"):
        calibration.on_its_thread(cpu(), fails)
    assert calibration.on_its_thread(cpu(), lambda: 5) == 5


# ---- fusec.devices ---------------------------------------------------------------------------

def test_devices_are_listed(counted: list[Device]) -> None:
    with config.override(logical_cpu_devices=2):
        listed = fusec.devices()
        assert [d.name for d in listed] == [
            "/job:localhost/task:0/device:CPU:0", "/job:localhost/task:0/device:CPU:1",
            "/job:localhost/task:0/device:REFERENCE:0", "/job:localhost/task:0/device:NULL:0",
            "/job:localhost/task:0/device:CUDAHOST:0"]
        assert [(d.type, d.index) for d in listed][1:3] == [("CPU", 1), ("REFERENCE", 0)]
        assert listed[-1].name.endswith("CUDAHOST:0")
        assert len(listed[:2]) == 2 and len(listed) == 5
        assert not counted
        assert (listed[0].bandwidth, listed[0].flops) == (20e9, 50e9)
        assert listed[0].transfer_bandwidth == 10e9
        assert (listed[2].bandwidth, listed[2].flops, listed[2].threads) == (None, None, 0)
        assert listed[0].memory_bytes == machine.usable_memory() > 1 << 20
        assert len(counted) == 1


def test_devices_as_a_table(
    counted: list[Device], monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(machine, "usable_memory", lambda: 16_000_000_000)
    monkeypatch.setattr(machine, "usable_cpus", lambda: (0, 1, 2, 3, 8))
    with config.override(num_threads=4, logical_cpu_devices=2):
        config.logical_cpu_devices = 1
        assert str(fusec.devices()) == repr(fusec.devices()) == """\
device               cores  threads  memory GB  GB/s  GFLOP/s  transfer GB/s
/device:CPU:0        0-3,8        4       16.0  20.0     50.0           10.0
/device:REFERENCE:0                       16.0
/device:NULL:0                            16.0
/device:CUDAHOST:0                         8.0"""
        console = Console(file=io.StringIO(), width=100)
        console.print(fusec.devices())
        assert "/device:CPU:0" in console.file.getvalue()  # type: ignore[attr-defined]
        assert "<td" in fusec.devices().html()


def test_the_table_says_which_cores_are_shared(
    counted: list[Device], monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(machine, "usable_cpus", lambda: (0, 1))
    with config.override(logical_cpu_devices=3):
        assert str(fusec.devices()).endswith("\n(core 0 is shared by CPU:0, CPU:2)")


def test_the_table_says_when_libraries_use_more_threads_than_a_device(
    counted: list[Device], monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys.modules["fusec.placement.devices"], "blas_threads", lambda: 4)
    assert "linear algebra" not in str(fusec.devices())
    with config.override(logical_cpu_devices=2):
        assert "linear algebra uses 4 threads, more than a device has" in str(fusec.devices())


def test_threads_of_the_linear_algebra_are_those_that_it_was_told() -> None:
    code = "from fusec.runtime.devices import blas; print(blas.blas_threads())"
    told = os.environ | {"OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          check=True, env=told)
    assert done.stdout in ("1\n", "None\n")


@pytest.mark.parametrize(("limits", "want"), [
    ({"memory.max": "1000000\n"}, 1_000_000), ({"memory.max": "max\n"}, 1 << 40),
    ({"../memory/memory.limit_in_bytes": "2000000\n"}, 2_000_000), ({}, 1 << 40)])
def test_memory_that_control_groups_leave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limits: dict[str, str], want: int,
) -> None:
    monkeypatch.setattr(machine, "physical_memory", lambda: 1 << 40)
    group = tmp_path / "group"
    (tmp_path / "memory" / "group").mkdir(parents=True)
    group.mkdir()
    for name, text in limits.items():
        (tmp_path / "memory" / "group" / Path(name).name if name.startswith("..") else
         group / name).write_text(text)
    membership = tmp_path / "membership"
    membership.write_text("0::/group\n4:memory:/group\n2:cpu:/other\n")
    assert machine.usable_memory(tmp_path, membership) == want


def test_asking_for_the_names_imports_no_compiler_of_kernels() -> None:
    code = ("import sys, fusec; print([d.index for d in fusec.devices()]); "
            "print('fusec.trace.tracer' in sys.modules, 'numba' in sys.modules)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[0, 0, 0, 0]\nFalse False\n"


def test_a_measured_device_is_no_guess(counted: list[Device]) -> None:
    assert calibration.measured(cpu()) is None
    calibration.rates(cpu())
    assert calibration.measured(cpu()) == KNOWN
    oracle: Any = registry.matching(DeviceName(type="REFERENCE"))[0]
    assert calibration.measured(oracle) is None


def test_ceilings_are_the_best_that_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """One under load was kept for good, and pages told of kernels at 1,868 % of the limit."""
    busy, idle = MeasuredRates(6.0, 60.0, 3.0, 9000.0), MeasuredRates(25.0, 50.0, 10.0, 5000.0)
    best = MeasuredRates(25.0, 60.0, 10.0, 5000.0)
    monkeypatch.setattr(calibration, "_measure", lambda device: busy)
    assert calibration.rates(cpu()) == busy
    monkeypatch.setattr(calibration, "_measure", lambda device: idle)
    assert calibration.ceilings(cpu()) == best
    assert calibration.rates(cpu()) == busy  # what is placed by them stays where it is
    monkeypatch.setattr(calibration, "_measure", lambda device: busy)
    assert calibration.ceilings(cpu()) == best
    new_process(monkeypatch)
    assert calibration.rates(cpu()) == best
