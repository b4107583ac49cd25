"""Compilers, folders and caches of the emulated device that are not as they should be."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from emulated import Run, module

import fusec
from fusec.codegen.cuda.emulation import loading, toolchain
from fusec.codegen.cuda.emulation.faults import KernelFault
from fusec.codegen.cuda.emulation.toolchain import CompilationError, NoFolderError, Toolchain
from fusec.inspect import doctor

SOURCE = r"""
__device__ __noinline__ void put(int *at, int value) { *at = value; }
__device__ __forceinline__ void put_twice(int *at) { at[0] = 1; at[1] = 2; }
extern "C" __global__ void inlined(int *x) {
  put_twice(x + threadIdx.x);
}
extern "C" __global__ void called(int *x) {
  put(x + threadIdx.x, 1);
}
"""
FULL = OSError(28, "No space left on device")


class _NoFolder:
    def __init__(self, **_: Any) -> None:
        raise FULL


@pytest.fixture
def no_cache() -> Any:
    with fusec.config.override(cache_dir="off"):
        yield


@pytest.mark.usefixtures("no_cache")
def test_no_folder_for_the_compilers_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "TemporaryDirectory", _NoFolder)
    with pytest.raises(NoFolderError) as caught:
        loading.load(module(SOURCE))
    text = str(caught.value)
    assert "No space left on device" in text and "let TMPDIR name a folder" in text
    f = fusec.jit(lambda x: np.sin(x) * 1.75, device="/device:CUDAHOST:0")
    with pytest.raises(NoFolderError):
        f(np.ones(3))
    monkeypatch.undo()
    np.testing.assert_array_equal(f(np.ones(3)), np.sin(np.ones(3)) * 1.75)


def test_a_fault_is_told_though_its_line_cannot_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(SOURCE)
    monkeypatch.setattr(tempfile, "TemporaryDirectory", _NoFolder)
    with pytest.raises(KernelFault, match="kernel inlined writes outside") as caught:
        run("inlined", 1, 4, np.zeros(4, np.int32))
    assert "line:" not in str(caught.value)


@pytest.mark.skipif(toolchain.addr2line() is None, reason="lines need addr2line")
def test_lines_of_functions_that_are_inlined() -> None:
    run = Run(SOURCE)
    with pytest.raises(KernelFault) as caught:
        run("inlined", 1, 4, np.zeros(4, np.int32))
    assert re.search(r"line: +3: .*put_twice\(int", str(caught.value))
    assert "called at: 5: put_twice(x + threadIdx.x);" in str(caught.value)
    with pytest.raises(KernelFault) as caught:
        run("called", 1, 4, np.zeros(3, np.int32))
    assert re.search(r"line: +2: ", str(caught.value)) and "called at" not in str(caught.value)


@pytest.mark.usefixtures("no_cache")
@pytest.mark.parametrize(("script", "words"), [
    ("kill -9 $$", "was ended by a signal (Killed)"),
    ("echo 'c++: fatal error: Killed signal terminated program cc1plus' >&2; exit 1",
     "was ended by a signal (Killed)"),
    ("echo 'error: /tmp/x.s: No space left on device' >&2; exit 1", "has no space left in"),
    ("echo 'error: no such word' >&2; exit 1", "refuses a source:\nerror: no such word"),
])
def test_compilers_that_fail(script: str, words: str, tmp_path: Path) -> None:
    program = tmp_path / "g++"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o700)
    with pytest.raises(CompilationError) as caught:
        Toolchain((str(program),), "g++ 99", False).runtime("int x;")
    assert words in str(caught.value) and "(g++ 99)" in str(caught.value)


def test_a_compiler_that_has_gone() -> None:
    with pytest.raises(CompilationError, match=r"cannot be run: .*/nowhere/g"):
        Toolchain(("/nowhere/g++",), "g++ 99", False).runtime("int x;")


def test_the_doctor_says_which_compiler_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "/device:CUDAHOST:0, which runs a GPU's kernels on the CPU"
    assert f"{name}: compiled by {toolchain.toolchain().version}" in str(doctor.examine())
    monkeypatch.setattr(toolchain, "_candidates", list)
    toolchain.toolchain.cache_clear()
    try:
        text = str(doctor.examine())
    finally:
        toolchain.toolchain.cache_clear()
    assert f"{name}: it needs a C++ compiler, and there is none: install g++" in text


TWO = """
import numpy as np, fusec
f = fusec.jit(lambda x: np.cos(x) * 2.5 + x.sum(), device="/device:CUDAHOST:0")
print(f(np.arange(5.0)).tobytes().hex())
"""


def test_processes_that_compile_the_same_at_once(tmp_path: Path) -> None:
    own = dict(os.environ, FUSEC_CACHE_DIR=str(tmp_path))
    started = [subprocess.Popen([sys.executable, "-c", TWO], env=own, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = {each.communicate() for each in started}
    assert len(said) == 1 and [each.returncode for each in started] == [0, 0], said
