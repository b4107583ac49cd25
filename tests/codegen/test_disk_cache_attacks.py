"""Files in the place of an entry of the disk cache: code is executed, so they are not believed."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fusec import config
from fusec.codegen.machine_code import disk_cache, llvm
from fusec.core import machine

IR = "define double @f(double %x) {{\n  %r = fmul double %x, {factor}\n  ret double %r\n}}\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Iterator[Path]:
    disk_cache._State.warned, disk_cache._State.stored = False, 0
    with config.override(cache_dir=str(tmp_path / "cache"), log_level=1):
        yield tmp_path / "cache"


def compiled(factor: float) -> llvm.NativeCode:
    """The code that multiplies by a factor, which it must do wherever it came from."""
    code = llvm.compile_ir(IR.format(factor=factor))
    function = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(code.address("f"))
    assert function(3.0) == 3.0 * factor
    return code


def entry_of(folder: Path, factor: float) -> Path:
    before = set(folder.glob("??/*.fusec-object"))
    compiled(factor)
    (path,) = set(folder.glob("??/*.fusec-object")) - before
    return path


def _copied_from(other: Path, path: Path) -> None:
    shutil.copyfile(other, path)


def _linked_to(other: Path, path: Path) -> None:
    path.symlink_to(other)


def _a_pipe(_: Path, path: Path) -> None:
    os.mkfifo(path)


def _a_device(_: Path, path: Path) -> None:
    path.symlink_to("/dev/zero")


def _a_dead_link(_: Path, path: Path) -> None:
    path.symlink_to("/nowhere/at/all")


def _enormous(_: Path, path: Path) -> None:
    with open(path, "wb") as file:
        file.truncate(disk_cache.MAX_ENTRY + 1)


def _an_older_format(other: Path, path: Path) -> None:
    path.write_bytes(b"fusec object 1\n" + other.read_bytes()[15:])


@pytest.mark.parametrize("attack", [
    _copied_from, _linked_to, _a_pipe, _a_device, _a_dead_link, _enormous, _an_older_format,
])
def test_what_is_no_entry_of_this_key_is_replaced(
    folder: Path, attack: Callable[[Path, Path], None],
) -> None:
    other, path = entry_of(folder, 2.0), entry_of(folder, 4.0)
    good = path.read_bytes()
    path.unlink()
    attack(other, path)
    assert not compiled(4.0).times.cached
    assert path.read_bytes() == good and not path.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o600
    assert compiled(4.0).times.cached and compiled(2.0).times.cached


def test_an_entry_that_others_may_write_is_replaced(folder: Path) -> None:
    path = entry_of(folder, 2.0)
    path.chmod(0o620)
    assert not compiled(2.0).times.cached
    assert path.stat().st_mode & 0o777 == 0o600 and compiled(2.0).times.cached


def test_a_bad_entry_is_gone_even_where_nothing_can_be_stored(
    folder: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = entry_of(folder, 2.0)
    path.write_bytes(b"nonsense")
    monkeypatch.setattr(disk_cache, "store", lambda *_: None)
    compiled(2.0)
    assert not path.exists()


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_folders_and_files_are_the_users_alone_whatever_the_umask(
    folder: Path, umask: int,
) -> None:
    deep = folder / "not" / "made" / "yet"
    config.cache_dir = str(deep)
    before = os.umask(umask)
    try:
        path = entry_of(deep, 2.0)
    finally:
        os.umask(before)
    made = [path.parent, *[p for p in path.parents if folder in (p, *p.parents)]]
    assert {p.stat().st_mode & 0o777 for p in made} == {0o700} and len(made) >= 5
    assert path.stat().st_mode & 0o777 == 0o600
    assert compiled(2.0).times.cached


@pytest.mark.parametrize("inner", [False, True])
def test_a_folder_that_others_may_write_is_not_used(
    folder: Path, capsys: pytest.CaptureFixture[str], inner: bool,
) -> None:
    path = entry_of(folder, 2.0)
    (path.parent if inner else folder).chmod(0o770)
    for _ in range(2):
        assert not compiled(2.0).times.cached
    warning = capsys.readouterr().err
    assert warning.count("\n") == 1 and "others may write to it (chmod 700)" in warning
    (path.parent if inner else folder).chmod(0o700)
    assert compiled(2.0).times.cached


def test_a_folder_of_another_user_is_not_used(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:
    entry_of(folder, 2.0)
    real = os.stat

    def of_another(path: os.PathLike[str], **options: bool) -> os.stat_result:
        found = list(real(path, **options))
        found[4] = 12345 if Path(path) == folder else found[4]
        return os.stat_result(found)

    monkeypatch.setattr(os, "stat", of_another)
    assert not compiled(2.0).times.cached
    assert "is another user's" in capsys.readouterr().err


def test_an_inner_folder_may_not_lead_elsewhere(folder: Path, tmp_path: Path) -> None:
    path = entry_of(folder, 2.0)
    elsewhere = path.parent.rename(tmp_path / "elsewhere")
    path.parent.symlink_to(elsewhere)
    assert not compiled(2.0).times.cached
    assert disk_cache.info().entries == 0 and disk_cache.clear() == 0
    assert (elsewhere / path.name).exists()


def test_the_folder_itself_may_be_a_link(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir(mode=0o700)
    folder.symlink_to(tmp_path / "disk")
    entry_of(folder, 2.0)
    assert compiled(2.0).times.cached


def test_files_of_others_are_left_alone(folder: Path) -> None:
    path = entry_of(folder, 2.0)
    mine = path.with_name("notes.tmp")
    mine.write_text("not fusec's")
    assert disk_cache.clear() == 1 and mine.exists()


def test_an_empty_home_is_not_the_root_folder() -> None:
    asked = "import fusec; print(fusec.config.cache_dir)"
    elsewhere = ("FUSEC_CACHE_DIR", "XDG_CACHE_HOME")
    environ = {k: v for k, v in os.environ.items() if k not in elsewhere}
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True,
                          env={**environ, "HOME": ""})
    assert done.stdout.strip() == machine.default_cache_dir({})
    assert not done.stdout.startswith(("/.cache", "/Library"))


def test_a_user_without_an_entry_has_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 3_999_999_999)
    assert machine.default_cache_dir({"HOME": ""}) == "off"
