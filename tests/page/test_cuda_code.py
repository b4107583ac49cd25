"""CUDA C++, PTX and SASS of a page: linked with the loops, and the code that runs."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from page_programs import X, smooth, standardise

import fusec
from fusec.codegen.cuda import code_links, disassembly
from fusec.codegen.cuda.driver import nvrtc
from fusec.inspect.page.machine_part import kernel_rates
from fusec.inspect.page.views import sections_of

HOST = "/device:CUDAHOST:0"
HAS_NVRTC = nvrtc.is_available()
HAS_SASS = HAS_NVRTC and disassembly.disassembler() is not None


def kernel_of(function: Any, *args: Any) -> Any:
    (kernel, *_) = fusec.jit(function.__wrapped__, device=HOST).concrete(*args).kernels
    return kernel


def linked(kernel: Any, title: str, of: str) -> list[str]:
    """The lines of a text that are of a line of the loops."""
    listing = code_links.listings(kernel.step)[title]
    (row,) = (k for k, line in enumerate(kernel.loops.split("\n")) if of in line)
    return [text for text, rows in zip(listing.text.split("\n"), listing.rows, strict=False)
            if row in rows]


@pytest.mark.one_python
def test_cuda_lines() -> None:
    kernel = kernel_of(standardise, X, 0.5)
    lines = linked(kernel, "CUDA C++", "= tanh(")
    assert any("math_tanh_f64(" in line for line in lines)
    assert not any("root(" in line for line in lines)
    assert any("acc" in line for line in linked(kernel, "CUDA C++", "add-reduce t5"))
    assert any("store" in line for line in linked(kernel, "CUDA C++", "Tanh[i0, i1] = "))
    assert any("load" in line for line in linked(kernel, "CUDA C++", "= gain["))


@pytest.mark.skipif(not HAS_NVRTC, reason="NVRTC: of the extra test-cuda")
def test_ptx_lines() -> None:
    kernel = kernel_of(standardise, X, 0.5)
    roots = linked(kernel, "PTX", "= sqrt(")
    assert any("sqrt.rn.f64" in line for line in roots)
    assert not any("sqrt.rn" in line for line in linked(kernel, "PTX", "= tanh("))
    assert len(linked(kernel, "PTX", "= tanh(")) > 40  # of functions that were inlined, too
    text = code_links.listings(kernel.step)["PTX"].text
    assert not re.search(r"(?m)^\s*\.(loc|file|section)\b", text)


@pytest.mark.skipif(not HAS_SASS, reason="NVRTC and nvdisasm: of the extra test-cuda")
def test_sass_lines() -> None:
    kernel = kernel_of(standardise, X, 0.5)
    roots = linked(kernel, "SASS", "= sqrt(")
    assert any("MUFU.RSQ64H" in line for line in roots)
    assert len(linked(kernel, "SASS", "= tanh(")) > 40
    assert any("STG" in line for line in linked(kernel, "SASS", "Tanh[i0, i1] = "))


@pytest.mark.skipif(not HAS_SASS, reason="NVRTC and nvdisasm: of the extra test-cuda")
@pytest.mark.parametrize("case", [(standardise, (X, 0.5)), (smooth, (X[0],))],
                         ids=["rows", "boxes"])
def test_lines_change_no_code(case: Any) -> None:
    function, args = case
    for kernel in fusec.jit(function.__wrapped__, device=HOST).concrete(*args).kernels:
        for nest in kernel.step.code:
            plain, noted = (nvrtc.compile(nest.asm.module, "sm_90", options).cubin
                            for options in ((), ("-lineinfo",)))
            assert disassembly.disassembled(plain) == disassembly.disassembled(noted)


MODES = {
    "map": lambda x: x * 2 + 1, "rows": lambda x: x.sum(axis=1), "columns": lambda x: x.sum(axis=0),
    "all": lambda x: x.sum(), "scans": lambda x: np.cumsum(x, axis=1),
    "tiles": lambda x: x + np.ascontiguousarray(x.T).T, "places": lambda x: x.argmax(axis=1),
    "long scan": lambda x: np.cumsum(x.ravel()),
}


@pytest.mark.repeats
@pytest.mark.parametrize("mode", MODES)
def test_texts_are_those_that_run(mode: str) -> None:
    """Notes are of a text that is written again: it has to be the one that was loaded."""
    x = np.ones((300, 300))
    for kernel in fusec.jit(MODES[mode], device=HOST).concrete(x).kernels:
        found = code_links.listings(kernel.step)
        assert set(found) == set(code_links.TITLES[:3 if HAS_SASS else 2 if HAS_NVRTC else 1])
        listing = found["CUDA C++"]
        assert any(listing.rows), listing.text
        count = kernel.loops.count("\n") + 1
        for title, listing in found.items():
            assert len(listing.rows) == listing.text.count("\n"), title
            assert all(0 <= row < count for rows in listing.rows for row in rows)


def test_pages_have_them() -> None:
    sections = sections_of(fusec.jit(standardise.__wrapped__, device=HOST).concrete(X, 0.5))
    code = sections["code0/0"]
    assert [title for title, _ in code["parts"]][:3] == ["loops", "Python", "CUDA C++"]
    assert set(code["links"]["code"]) == {title for title, _ in code["parts"]} - {
        "loops", "Python"}


def test_rates_are_of_kernels_that_have_ended() -> None:
    """Launches return at once: times are those until the device is done."""
    found = kernel_rates(HOST, 1 << 14)
    assert found is not None
    read, computed = found
    assert 0 < read < 20 and 0 < computed < 50  # this machine's cores, emulating
