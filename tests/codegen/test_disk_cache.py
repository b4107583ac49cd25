"""Machine code kept on disk: hits in a second process, misses, damage, limits, refusals."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from forks import does_well

from fusec import config
from fusec.codegen.machine_code import disk_cache, llvm
from fusec.core import machine
from fusec.runtime.devices import table_files

IR = """
declare double @llvm.sqrt.f64(double)
declare double @cbrt(double)
declare ptr @memset(ptr, i32, i64)

define double @f(double %x) {{
  %s = call double @llvm.sqrt.f64(double %x)
  %c = call double @cbrt(double %s)
  %r = fmul double %c, {factor}
  ret double %r
}}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Iterator[Path]:
    disk_cache._State.warned, disk_cache._State.stored = False, 0
    with config.override(cache_dir=str(tmp_path / "cache"), log_level=1):
        yield tmp_path / "cache"


def run(code: llvm.NativeCode, x: float) -> float:
    return ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(code.address("f"))(x)


def entries(folder: Path) -> list[Path]:
    return sorted(folder.glob("??/*.fusec-object"))


def test_known_text_is_loaded_without_compiling(folder: Path,
                                                monkeypatch: pytest.MonkeyPatch) -> None:
    first = llvm.compile_ir(IR.format(factor=2.0))
    assert not first.times.cached and {"parse", "optimise", "emit", "load"} == set(first.times)
    monkeypatch.setattr(llvm, "_compile", None)
    second = llvm.compile_ir(IR.format(factor=2.0))
    assert second.times.cached and set(second.times) == {"load"}
    assert run(first, 64.0) == run(second, 64.0) == 4.0
    assert len(entries(folder)) == 1


def test_texts_of_a_loaded_module_are_made_when_asked(folder: Path) -> None:
    first, second = (llvm.compile_ir(IR.format(factor=3.0)) for _ in range(2))
    assert second.times.cached
    assert second.llvm_ir == first.llvm_ir and "@cbrt" in second.llvm_ir
    assert second.assembly == first.assembly
    assert second.object_code == first.object_code


def test_a_constant_in_the_text_or_the_speed_makes_another_entry(folder: Path) -> None:
    assert run(llvm.compile_ir(IR.format(factor=2.0)), 64.0) == 4.0
    assert run(llvm.compile_ir(IR.format(factor=4.0)), 64.0) == 8.0
    llvm.compile_ir(IR.format(factor=2.0), speed=0)
    assert len(entries(folder)) == 3


def test_another_machine_makes_another_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    llvm.compile_ir(IR.format(factor=2.0))
    monkeypatch.setattr(llvm, "settings", lambda: ("another",))
    assert not llvm.compile_ir(IR.format(factor=2.0)).times.cached


def test_keys_do_not_run_together() -> None:
    assert disk_cache.key_of(["ab", "c"]) != disk_cache.key_of(["a", "bc"])


@pytest.mark.parametrize("damage", [
    b"", b"nonsense", "truncated", "flipped",
])
def test_a_damaged_entry_is_compiled_anew(folder: Path, damage: bytes | str) -> None:
    llvm.compile_ir(IR.format(factor=2.0))
    (path,) = entries(folder)
    good = path.read_bytes()
    flipped = good[:-9] + bytes([good[-9] ^ 1]) + good[-8:]
    path.write_bytes({"truncated": good[:-1], "flipped": flipped}.get(damage, damage))  # type: ignore[arg-type]
    again = llvm.compile_ir(IR.format(factor=2.0))
    assert not again.times.cached and run(again, 64.0) == 4.0
    assert path.read_bytes() == good  # repaired
    assert llvm.compile_ir(IR.format(factor=2.0)).times.cached


def test_a_folder_that_cannot_be_used_costs_one_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str],
) -> None:
    blocked = tmp_path / "file"
    config.cache_dir = str(blocked)
    blocked.write_text("not a folder")
    for factor in (2.0, 4.0):
        assert run(llvm.compile_ir(IR.format(factor=factor)), 64.0) == 2 * factor
    warning = capsys.readouterr().err
    assert warning.count("\n") == 1 and "fusec warning: the disk cache" in warning
    assert str(blocked) in warning and "FUSEC_CACHE_DIR" in warning


def test_a_file_of_another_user_is_not_executed(monkeypatch: pytest.MonkeyPatch) -> None:
    llvm.compile_ir(IR.format(factor=2.0))
    mine = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
    trusted = mine == 0  # the administrator's files are
    assert llvm.compile_ir(IR.format(factor=2.0)).times.cached is trusted


@pytest.mark.parametrize("off", ["", "off", "OFF"])
def test_it_can_be_switched_off(tmp_path: Path, off: str) -> None:
    config.cache_dir = off
    for _ in range(2):
        assert not llvm.compile_ir(IR.format(factor=2.0)).times.cached
    assert disk_cache.info() == disk_cache.CacheInfo(None, 0, 0) and disk_cache.clear() == 0
    assert list(tmp_path.iterdir()) == []


def test_the_entries_used_longest_ago_go_first(folder: Path) -> None:
    keys = [disk_cache.key_of([str(i)]) for i in range(8)]
    for age, key in enumerate(keys):
        disk_cache.store(key, bytes(1000))
        os.utime(disk_cache._path(folder, key), (1e9 - age, 1e9 - age))
    assert disk_cache.trim(folder, 10_000) == 0
    assert disk_cache.load(keys[7]) == bytes(1000)  # the oldest, used just now
    assert disk_cache.trim(folder, 6_000) == 4
    left = [i for i, key in enumerate(keys) if disk_cache.load(key) is not None]
    assert left == [0, 1, 2, 7]


def test_a_process_that_stores_much_trims(folder: Path) -> None:
    with config.override(cache_cap_bytes=20_000):
        for number in range(40):
            disk_cache.store(disk_cache.key_of([str(number)]), bytes(2000))
        assert disk_cache.info().size <= 20_000 + 2 * 2100


@pytest.mark.parametrize(("platform", "environ", "path"), [
    ("linux", {"HOME": "/home/a"}, "/home/a/.cache/fusec"),
    ("linux", {"HOME": "/home/a", "XDG_CACHE_HOME": "/fast"}, "/fast/fusec"),
    ("linux", {"HOME": "/home/a", "XDG_CACHE_HOME": "relative"}, "/home/a/.cache/fusec"),
    ("linux", {"HOME": "relative"}, "off"),
    ("darwin", {"HOME": "/Users/a"}, "/Users/a/Library/Caches/fusec"),
    ("win32", {}, "off"),
])
def test_the_platforms_own_folder(
    monkeypatch: pytest.MonkeyPatch, platform: str, environ: dict[str, str], path: str,
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    assert machine.default_cache_dir(environ) == path


def test_clear_and_info(folder: Path) -> None:
    assert disk_cache.info() == disk_cache.CacheInfo(folder, 0, 0)
    llvm.compile_ir(IR.format(factor=2.0))
    assert disk_cache.info().entries == 1 and disk_cache.info().size > 100
    assert disk_cache.clear() == 1 and disk_cache.info().entries == 0


def test_no_temporary_files_are_left(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    llvm.compile_ir(IR.format(factor=2.0))
    assert [p for p in folder.rglob("*") if p.is_file()] == []


def test_threads_compile_and_load_at_once(folder: Path) -> None:
    results: list[float] = []

    def work(number: int) -> None:
        code = llvm.compile_ir(IR.format(factor=float(1 + number % 2)))
        results.append(run(code, 64.0))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [2.0] * 4 + [4.0] * 4


def test_a_child_forked_while_another_thread_compiles_can_compile() -> None:
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with llvm._lock:
            held.set()
            release.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(10)
    threading.Timer(0.1, release.set).start()
    assert does_well(lambda: run(llvm.compile_ir(IR.format(factor=8.0)), 64.0) == 16.0)
    thread.join()


PROGRAM = """
import numpy as np
import fusec
from fusec.codegen.machine_code import llvm

seen = []
def spy(function):
    def call(*args, **kwargs):
        code = function(*args, **kwargs)
        seen.append(code.times.cached)
        return code
    return call
llvm.compile_ir = spy(llvm.compile_ir)
from fusec.codegen.cpu import compile as compiler
compiler.compile_ir = llvm.compile_ir

FACTOR = {factor}

@fusec.jit
def f(x, y):
    return (np.exp(-x) * y + FACTOR * 0.5).sum(axis=1), x @ y.T

x = np.linspace(0, 1, 200_000).reshape(1000, 200)
result = f(x, x + 1)[0]
np.testing.assert_allclose(result, (np.exp(-x) * (x + 1) + FACTOR * 0.5).sum(axis=1), rtol=1e-12)
print(len(seen), sum(seen))
"""


def _process(folder: Path, factor: float) -> tuple[int, int]:
    """(modules, of them from disk) of a program in a new process."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(factor=factor)], capture_output=True, text=True,
        env={**os.environ, "FUSEC_CACHE_DIR": str(folder), "FUSEC_PARALLEL_THRESHOLD": "0"},
    )
    assert done.returncode == 0, done.stderr
    modules, cached = done.stdout.split()
    return int(modules), int(cached)


def test_a_second_process_compiles_nothing(folder: Path) -> None:
    modules, cached = _process(folder, 1.0)
    assert modules >= 2 and cached == 0
    assert _process(folder, 1.0) == (modules, modules)


def test_the_command_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from fusec.__main__ import main

    llvm.compile_ir(IR.format(factor=2.0))
    assert main(["cache"]) == 0
    assert capsys.readouterr().out.startswith(f"disk cache: {folder}\n1 entries, 0.0 MB")
    assert main(["cache", "--clear"]) == 0
    assert capsys.readouterr().out == f"disk cache: 1 entries deleted from {folder}\n"
    table_files.store("devices", {"a": 1})
    assert main(["cache"]) == 0
    assert capsys.readouterr().out.endswith("\ndevices.json: measured times, 11 bytes\n")
    assert main(["cache", "--clear"]) == 0
    assert capsys.readouterr().out.endswith("\ndevices.json deleted\n")
    assert not table_files.load("devices")
    config.cache_dir = "off"
    assert main(["cache"]) == 0
    assert "off" in capsys.readouterr().out
