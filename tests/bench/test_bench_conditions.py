"""Remarks of `fusec.benchmark` on conditions that are not the program's doing."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import fusec
from fusec.core import machine
from fusec.inspect import conditions
from fusec.inspect.conditions import Counters, counters, remarks

QUIET = Counters(at=10.0, own=5.0, busy=100.0, stolen=0.0, stopped=0.0, throttles=3)


@pytest.fixture(autouse=True)
def of_two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditions.os, "cpu_count", lambda: 2)
    monkeypatch.setattr(machine, "usable_cores", lambda: 2)
    monkeypatch.setattr(conditions, "blas_threads", lambda: 1)


def after(seconds: float = 2.0, threads: int = 2, **more: float) -> tuple[str, ...]:
    """The remarks on so many seconds in which the process was busy, and whatever is ``more``."""
    grown = {"at": seconds, "own": seconds, "busy": seconds} | more
    now = dataclasses.replace(
        QUIET, **{name: getattr(QUIET, name) + value for name, value in grown.items()})
    return remarks(QUIET, now, threads)


def test_nothing_is_said_of_a_quiet_machine() -> None:
    assert after() == () and after(busy=2.1) == ()


def test_other_processes_matter_where_they_take_cores_away() -> None:
    assert "other processes used 1.0 of 2 cores" in after(busy=4.0)[0]
    assert after(busy=4.0, threads=1) == ()
    assert after(busy=5.0, threads=1) != ()


@pytest.mark.parametrize("more, said", [
    ({"stolen": 0.5}, "25 % of a core's time"), ({"stopped": 0.2}, "stopped the process for 10 %"),
    ({"throttles": 1}, "too hot")])
def test_hosts_quotas_and_heat(more: dict[str, float], said: str) -> None:
    (remark,) = after(**more)
    assert said in remark


def test_a_blas_with_more_threads_than_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditions, "blas_threads", lambda: 64)
    (remark,) = after()
    assert "64 threads" in remark and "OPENBLAS_NUM_THREADS=2" in remark
    monkeypatch.setattr(conditions, "blas_threads", lambda: 2)
    assert after() == () and "OPENBLAS_NUM_THREADS=1" in after(busy=4.0)[1]


def test_counters_where_the_system_has_none(tmp_path: Path) -> None:
    found = counters(tmp_path / "stat", tmp_path)
    assert found.busy == found.stolen == found.throttles == 0


def test_time_that_quotas_took(tmp_path: Path) -> None:
    membership = tmp_path / "cgroup"
    membership.write_text("0::/a/b\n")
    (tmp_path / "a" / "b").mkdir(parents=True)
    assert machine.stopped_by_quota(tmp_path, membership) == 0
    (tmp_path / "a" / "cpu.stat").write_text("usage_usec 7\nthrottled_usec 1500000\n")
    assert machine.stopped_by_quota(tmp_path, membership) == 1.5
    membership.write_text("4:cpu,cpuacct:/a/b\n")
    (tmp_path / "cpu").symlink_to(tmp_path)
    (tmp_path / "a" / "b" / "cpu.stat").write_text("nr_throttled 3\nthrottled_time 2000000000\n")
    assert machine.stopped_by_quota(tmp_path, membership) == 2.0


def test_a_report_shows_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditions, "blas_threads", lambda: 64)
    monkeypatch.setattr(conditions, "_disturbances", lambda *counted: ())
    x = np.ones((9, 9))
    assert not fusec.benchmark(lambda x: np.sin(x) + 1, x, time_budget_s=0.02).to_dict()["remarks"]
    report = fusec.benchmark(lambda x: x @ x + 1, x, time_budget_s=0.02)
    assert any("BLAS has 64 threads" in remark for remark in report.remarks)
    assert "\n  note: NumPy's BLAS" in str(report) and "BLAS has 64" in report.html()
