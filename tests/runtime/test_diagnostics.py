"""Reports about a call never fail it; refusals of the system cost speed or an error."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import fusec
from fusec import config
from fusec.core import log
from fusec.runtime.launching import threads

PROGRAM = """
import os, sys
import numpy as np
import fusec

{before}

@fusec.jit
def f(x):
    print("traced")
    return np.sin(x) + 1.0

x = np.linspace(0.0, 1.0, 50)
np.testing.assert_array_equal(f(x), f(x))
np.testing.assert_allclose(f(x), np.sin(x) + 1.0)
{after}
"""
BROKEN = {
    "closed": "sys.stderr.close()",
    "closed below": "os.close(2)",
    "full": "sys.stderr = open('/dev/full', 'w', buffering=1)",
    "broken pipe": "r, w = os.pipe(); os.close(r); sys.stderr = open(w, 'w', buffering=1)",
    "none": "sys.stderr = None",
    "no blocking, full": (
        "r, w = os.pipe(); os.set_blocking(w, False); os.write(w, bytes(1 << 16)); "
        "sys.stderr = open(w, 'w', buffering=1)"),
    "an object of its own": "sys.stderr = type('S', (), {'write': lambda s, t: 1 / 0})()",
}


def run(program: str, folder: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    file = folder / "program.py"
    file.write_text(program)
    return subprocess.run([sys.executable, str(file)], capture_output=True, text=True,
                          timeout=100, env={**os.environ, **environ})


@pytest.mark.skipif(sys.platform != "linux", reason="/dev/full is Linux's")
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_stderr_fails_no_call(name: str, tmp_path: Path) -> None:
    program = PROGRAM.format(before=BROKEN[name], after="print('done', flush=True); os._exit(0)")
    done = run(program, tmp_path, FUSEC_LOG="5", FUSEC_HISTORY="1", FUSEC_DUMP="/dev/null/folder")
    assert done.returncode == 0 and done.stdout.endswith("done\n"), done.stdout + done.stderr


@pytest.mark.parametrize("folder", ["/dev/null/folder", "/proc/nothing/here", "/dev/null"])
def test_a_dump_folder_that_is_none_costs_a_warning(folder: str, tmp_path: Path) -> None:
    done = run(PROGRAM.format(before="", after=""), tmp_path, FUSEC_DUMP=folder)
    assert done.returncode == 0, done.stderr
    assert f"nothing of f was written to {folder}" in done.stderr and "FUSEC_DUMP" in done.stderr


@pytest.mark.parametrize("folder", ["/dev/null/cache", "/dev/null"])
def test_a_cache_folder_that_is_none_costs_a_warning(folder: str, tmp_path: Path) -> None:
    done = run(PROGRAM.format(before="", after=""), tmp_path, FUSEC_CACHE_DIR=folder)
    assert done.returncode == 0 and "the disk cache" in done.stderr, done.stderr


def test_lost_lines_are_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", None)
        log.write(log.WARN, "lost")
        log.warn("lost", UserWarning, "file", 1)
    before = log._lost
    assert before >= 1
    log.write(log.WARN, "seen")
    log.write(log.WARN, "again")
    assert capsys.readouterr().err == (
        f"fusec warning: ({before} lines before this one could not be written) seen\n"
        "fusec warning: again\n")


def test_a_warning_that_the_program_raises_is_raised() -> None:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning):
            log.warn("text", UserWarning, "file", 1)


# --- settings ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["cache_dir", "dump_dir"])
def test_folders_are_checked_when_they_are_set(name: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    before = getattr(config, name)
    for wrong, reason in ((str(file), "is no folder"), (str(file / "inner"), "is no folder"),
                          ("a\0b", "NUL character")):
        with pytest.raises(ValueError, match=rf"^fusec.config.{name} = .*{reason}; give a folder"):
            setattr(config, name, wrong)
        with pytest.raises(ValueError, match=reason), config.override(**{name: wrong}):
            raise AssertionError("unreachable")
    with pytest.raises(ValueError, match="there is no such user"):
        setattr(config, name, "~no-such-user/cache")
    with pytest.raises(TypeError, match="expected a path"):
        setattr(config, name, b"bytes")
    assert getattr(config, name) == before
    with config.override(**{name: tmp_path / "made" / "later"}):
        assert getattr(config, name) == str(tmp_path / "made" / "later")


def test_a_relative_folder_stays_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    with config.override(cache_dir="cache"):
        assert config.cache_dir == str(tmp_path / "cache")
    with config.override(cache_dir="off"):
        assert config.cache_dir == "off"


@pytest.mark.parametrize("name", [
    "memory_cap_bytes", "parallel_threshold", "history_size", "cache_cap_bytes"])
def test_numbers_that_the_machine_cannot_hold_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"fusec.config.{name} = .*expected an int of at least"):
        setattr(config, name, 1 << 63)


# --- threads -----------------------------------------------------------------------------------


def test_threads_that_cannot_start_leave_the_work_to_those_that_did(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:
    asked = []

    def refuse(self: threading.Thread) -> None:
        asked.append(self)
        raise RuntimeError("can't start new thread")

    running = len(threads._workers.threads)
    with config.override(num_threads=running + 3, parallel_threshold=0, log_level=1):
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", refuse)
            f = fusec.jit(lambda x: np.sqrt(x) + 2.0)
            x = np.linspace(0.0, 1.0, 1_000_000)
            for _ in range(3):
                np.testing.assert_allclose(f(x), np.sqrt(x) + 2.0)
        warning = capsys.readouterr().err
        assert len(asked) == 1 and warning.count("\n") == 1
        assert f"only {running + 1} of {running + 3} threads could be started" in warning
        assert len(threads._workers.threads) == running
        config.num_threads = running + 2  # asks again
        np.testing.assert_allclose(f(x), np.sqrt(x) + 2.0)
        assert len(threads._workers.threads) == running + 1


# --- memory ------------------------------------------------------------------------------------

LITTLE_MEMORY = """
import resource, sys
import numpy as np
import fusec

def program(n):
    def f(x):
        for _ in range(n):
            x = np.sqrt(x * x + 1.0) + np.sin(x) * np.exp(-x)
        return x
    return f

x = np.linspace(0.0, 1.0, 1000)
expected = fusec.jit(program(1))(x)
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
_, hard = resource.getrlimit(resource.RLIMIT_AS)
failed = 0
for extra in (0, 1, 2, 4, 8, 16, 64, 256):
    resource.setrlimit(resource.RLIMIT_AS, (used + (extra << 20), hard))
    f = fusec.jit(program(2 + extra % 7))
    try:
        result = f(x)
    except MemoryError:
        failed += 1
        continue
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
    np.testing.assert_allclose(result, program(2 + extra % 7)(x), rtol=1e-12)
print(failed)
assert np.array_equal(fusec.jit(program(1))(x), expected)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of address space as Linux has them")
@pytest.mark.parametrize("cache", ["off", "on"])
def test_too_little_memory_for_llvm_is_a_memory_error(cache: str, tmp_path: Path) -> None:
    folder = "off" if cache == "off" else str(tmp_path / "cache")
    for _ in range(2 if cache == "on" else 1):
        done = run(LITTLE_MEMORY, tmp_path, FUSEC_CACHE_DIR=folder, FUSEC_NUM_THREADS="1")
        assert done.returncode == 0, done.stderr
        assert 1 <= int(done.stdout) <= 7
