"""Libraries for aarch64, made here and run by qemu: fusec's bits."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fusec

from . import arm_programs
from .test_c_library import SPEC, axpy, centred, running, taken
from .test_state import until

rng = np.random.default_rng(64)
needs_qemu = pytest.mark.skipif(
    shutil.which(arm_programs.QEMU) is None, reason="needs qemu-aarch64 (package qemu-user)")


def elementary(x: Any) -> Any:
    return np.exp(x) * np.log1p(x) + np.tanh(x) ** 3 / np.sqrt(x) + np.arctan2(x, 2.0)


def narrow(x: Any) -> Any:
    return (x.astype(np.float16) * np.float16(1.3)).astype(np.float32), x.astype(np.int8) // 3


@pytest.fixture(scope="module")
def library(tmp_path_factory: Any) -> Any:
    vector = SPEC((None,))
    return fusec.export_c({
        "axpy": (axpy, (2.5, vector, vector)), "centred": (centred, (SPEC((None, 70)),)),
        "taken": (taken, (vector, SPEC((None,), np.int64))), "until": (until, (vector, 1.0)),
        "running": (running, (vector, 3.0)), "elementary": (elementary, (vector,)),
        "narrow": (narrow, (SPEC((None,), np.float32),))},
        tmp_path_factory.mktemp("arm") / "shapes", ("aarch64",))


def test_the_files_are_of_the_machine(library: Any) -> None:
    assert library.shared.read_bytes()[18:20] == (183).to_bytes(2, "little")
    assert '"machine": "aarch64"' in (library.folder / "description.json").read_text()
    assert fusec.wheel_stub(library.folder).name.endswith("manylinux_2_17_aarch64.whl")
    if shutil.which("readelf") is not None:
        shown = subprocess.run(["readelf", "-aW", library.shared], check=True,
                               capture_output=True, text=True)
        assert "Machine:                           AArch64" in shown.stdout
        assert not shown.stderr


def called(library: Any, name: str, leaves: list[Any], results: list[np.ndarray],
           folder: Path) -> int:
    function = next(f for f in library.functions if f.name == name)
    arrays = [np.asarray(x, p.dtype) for x, p in zip(leaves, function.arguments, strict=True)]
    sizes = [arrays[k].shape[axis] for k, axis in function.axes]
    return arm_programs.run(library, function, sizes, arrays, results, 1 << 16, folder)


@needs_qemu
@pytest.mark.parametrize("n", [1, 5, 200])
def test_bits(library: Any, tmp_path: Path, n: int) -> None:
    x, y = rng.random(n) + 0.1, rng.random(n)
    for name, f, leaves in (("axpy", axpy, [1.5, x, y]), ("elementary", elementary, [x])):
        out = np.empty(n)
        assert called(library, name, leaves, [out], tmp_path) == 0
        assert np.array_equal(out, fusec.jit(f)(*leaves))
    single = (x * 90).astype(np.float32)
    results = [np.empty(n, np.float32), np.empty(n, np.int8)]
    assert called(library, "narrow", [single], results, tmp_path) == 0
    for result, want in zip(results, fusec.jit(narrow)(single), strict=True):
        assert np.array_equal(result, want)


@needs_qemu
def test_bits_of_reductions_and_loops(library: Any, tmp_path: Path) -> None:
    x = rng.random((90, 70))
    results = [np.empty((90, 70)), np.empty(())]
    assert called(library, "centred", [x], results, tmp_path) == 0
    for result, want in zip(results, fusec.jit(centred)(x), strict=True):
        assert np.array_equal(result, want)
    v, mine = rng.random(60), None
    mine, results = v.copy(), [np.empty(()), np.empty((), np.int64)]
    want = fusec.jit(running)(mine, 3.0)
    assert called(library, "running", [v, 3.0], results, tmp_path) == 0
    assert (results[0], results[1]) == want
    assert np.array_equal(v, mine)


@needs_qemu
def test_a_failed_check(library: Any, tmp_path: Path) -> None:
    x, i, out = rng.random(30), np.array([1, 31]), np.empty(2)
    assert called(library, "taken", [x, i], [out], tmp_path) > 0
    assert called(library, "taken", [x, i - 2], [out], tmp_path) == 0
    assert np.array_equal(out, x[i - 2] * 2)
