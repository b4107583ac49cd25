"""`fusec.config`: typed settings, environment, overrides, listeners."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import fusec.config
from fusec import config
from fusec.core import machine


@pytest.fixture(autouse=True)
def _restore() -> Iterator[None]:
    before = config.as_dict()
    yield
    for name, value in before.items():
        setattr(config, name, value)


def test_every_row_is_a_typed_attribute() -> None:
    assert set(config.SETTINGS) <= set(config.__annotations__)
    assert set(config.as_dict()) == set(config.SETTINGS)
    assert all(row.doc and row.env.startswith("FUSEC_") for row in config.SETTINGS.values())


def test_assignment_is_seen_by_every_import_form() -> None:
    config.num_threads = 3
    assert fusec.config.num_threads == 3
    assert sys.modules["fusec.config"].num_threads == 3


def test_values_are_normalised(tmp_path: Path) -> None:
    config.num_threads = np.int64(2)
    config.dump_dir = tmp_path
    assert type(config.num_threads) is int
    assert config.dump_dir == str(tmp_path)
    config.dump_dir = None
    assert config.dump_dir is None


def test_unknown_names_are_refused_with_close_matches() -> None:
    text = r"^fusec.config has no setting 'num_thread'; did you mean num_threads\?$"
    with pytest.raises(AttributeError, match=text):
        config.num_thread = 2
    with pytest.raises(AttributeError, match=text):
        _ = config.num_thread
    with pytest.raises(AttributeError, match=text), config.override(num_thread=2):
        raise AssertionError("unreachable")
    with pytest.raises(AttributeError, match="there are log_level, dump_dir, progress"):
        config.zzzzzzzz = 1


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("num_threads", "2", "fusec.config.num_threads = '2': expected an int from 1 to 1024, "
                             "got str"),
        ("num_threads", 2.0, "fusec.config.num_threads = 2.0: expected an int from 1 to 1024, "
                             "got float"),
        ("num_threads", True, "fusec.config.num_threads = True: expected an int from 1 to 1024, "
                              "got bool"),
        ("verify", 1, "fusec.config.verify = 1: expected True or False, got int"),
        ("dump_dir", 3, "fusec.config.dump_dir = 3: expected a path (str or os.PathLike) or None, "
                        "got int"),
        ("memory_cap_bytes", None, "fusec.config.memory_cap_bytes = None: expected an int of at "
                                   "least 0, got NoneType"),
    ],
)
def test_wrong_types_say_the_cure(name: str, value: object, message: str) -> None:
    before = getattr(config, name)
    with pytest.raises(TypeError) as caught:
        setattr(config, name, value)
    assert str(caught.value) == message
    assert getattr(config, name) == before


@pytest.mark.parametrize(("name", "value"), [("log_level", 6), ("num_threads", 0),
                                             ("logical_cpu_devices", -1)])
def test_values_out_of_range(name: str, value: int) -> None:
    with pytest.raises(ValueError, match=f"fusec.config.{name} = {value}: expected an int from"):
        setattr(config, name, value)


def test_override_restores_also_after_an_exception() -> None:
    before = config.as_dict()
    with pytest.raises(KeyError), config.override(num_threads=1, log_level=0):
        assert (config.num_threads, config.log_level) == (1, 0)
        raise KeyError
    assert config.as_dict() == before


def test_override_checks_everything_first() -> None:
    before = config.as_dict()
    with pytest.raises(TypeError), config.override(log_level=0, verify="yes"):
        raise AssertionError("unreachable")
    assert config.as_dict() == before


def test_listeners_hear_changes_until_removed() -> None:
    heard: list[int] = []
    remove = config.on_change("num_threads", heard.append, call_now=True)
    start = config.num_threads
    with config.override(num_threads=7):
        pass
    remove()
    config.num_threads = 9
    assert heard == [start, 7, start]


def test_a_listener_that_refuses_keeps_the_old_value() -> None:
    def refuse(value: int) -> None:
        raise RuntimeError("no")

    before = config.num_threads
    remove = config.on_change("num_threads", refuse)
    with pytest.raises(RuntimeError):
        config.num_threads = before + 1
    remove()
    assert config.num_threads == before


def test_settings_cannot_be_deleted() -> None:
    with pytest.raises(AttributeError, match="assign to it"):
        del config.num_threads


def test_environment_is_typed() -> None:
    rows = config.SETTINGS
    read = config._from_environment
    assert read(rows["memory_cap_bytes"], {"FUSEC_MEMORY_CAP": "512M"}) == 512 << 20
    assert read(rows["verify"], {"FUSEC_VERIFY": "on"}) is True
    assert read(rows["verify"], {"FUSEC_VERIFY": "0"}) is False
    assert read(rows["log_level"], {}) == 1
    with pytest.raises(ValueError, match=r"^environment variable FUSEC_LOG='loud': expected an int "
                                         r"from 0 to 5; unset it or correct it"):
        read(rows["log_level"], {"FUSEC_LOG": "loud"})
    with pytest.raises(ValueError, match="FUSEC_LOG='9'"):
        read(rows["log_level"], {"FUSEC_LOG": "9"})


def test_misspelt_variables_are_found() -> None:
    assert config.unknown_environment({"FUSEC_LGO": "1", "FUSEC_LOG": "1", "HOME": "x"}) == [
        "FUSEC_LGO"
    ]


def test_threads_start_from_the_environment() -> None:
    code = "from fusec import config; print(config.num_threads)"
    env = {k: v for k, v in os.environ.items() if k != "FUSEC_NUM_THREADS"}

    def run(**extra: str) -> str:
        done = subprocess.run([sys.executable, "-c", code], env={**env, **extra},
                              capture_output=True, text=True, check=True)
        return done.stdout.strip()

    assert run(OMP_NUM_THREADS="1,2") == "1"
    assert run(OMP_NUM_THREADS="1", FUSEC_NUM_THREADS="5") == "5"


def test_default_threads() -> None:
    cores = machine.usable_cores()
    assert cores >= 1
    assert machine.default_threads({"OMP_NUM_THREADS": "1, 4"}) == 1
    for text in ("", "0", "many", "100000"):
        assert machine.default_threads({"OMP_NUM_THREADS": text}) == cores
    assert 0 < machine.default_memory_cap() <= 1 << 30


def test_cgroup_quotas_of_both_versions(tmp_path: Path) -> None:
    member = tmp_path / "cgroup"
    assert machine.cgroup_cores(tmp_path, member) == math.inf
    member.write_text("0::/user/app\n")
    inner = tmp_path / "user" / "app"
    inner.mkdir(parents=True)
    (inner / "cpu.max").write_text("max 100000\n")
    assert machine.cgroup_cores(tmp_path, member) == math.inf
    (tmp_path / "user" / "cpu.max").write_text("150000 100000\n")
    assert machine.cgroup_cores(tmp_path, member) == 1.5
    member.write_text("5:memory:/x\n4:cpu,cpuacct:/job\n")
    job = tmp_path / "cpu" / "job"
    job.mkdir(parents=True)
    (job / "cpu.cfs_quota_us").write_text("-1\n")
    (job / "cpu.cfs_period_us").write_text("100000\n")
    assert machine.cgroup_cores(tmp_path, member) == math.inf
    (job / "cpu.cfs_quota_us").write_text("250000\n")
    assert machine.cgroup_cores(tmp_path, member) == 2.5


def test_describe_names_every_setting() -> None:
    text = config.describe()
    assert all(row.name in text and row.env in text for row in config.SETTINGS.values())
