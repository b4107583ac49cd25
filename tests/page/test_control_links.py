"""Branches and loops of a page: nodes, statements and code linked, as those of kernels are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from page_programs import relax

import fusec
from fusec.codegen.cuda.driver import nvrtc
from fusec.codegen.cuda.persistent import choice
from fusec.inspect.page.views import sections_of

HOST = "/device:CUDAHOST:0"


def decays(u: Any) -> Any:
    steps = 0
    while u.sum() > 1e-3 and steps < 100:
        u = u * 0.9 - 0.001 * np.sin(u)
        steps += 1
    return u, steps


def either(x: Any) -> Any:
    if x.sum() > 0:  # noqa: SIM108
        y = np.exp(x) * 2
    else:
        y = np.abs(x)
    return y


class Linked:
    """A branch or loop of a page."""

    def __init__(self, function: Any, *args: Any, device: str | None = None, number: int = 0):
        sections = sections_of(fusec.jit(function, device=device).concrete(*args))
        self.control = sections["kernels/0"]["control"][number]
        code = sections[f"code{self.control['text']}/0"]
        self.texts, self.links = dict(code["parts"]), code["links"]

    def statements(self, of: str) -> list[int]:
        """The lines of the program that have these letters."""
        rows = [k for k, line in enumerate(self.texts["structured"].split("\n")) if of in line]
        assert rows, self.texts["structured"]
        return rows

    def nodes(self, of: str) -> set[str]:
        """The ops of the nodes that the statements with these letters are of."""
        return {self.links["nodes"][k][1] for row in self.statements(of)
                for k in self.links["loops"][row]}

    def code(self, title: str, of: str) -> str:
        """The lines of a text that the statements with these letters are of."""
        rows = self.statements(of)
        lines = self.texts[title].split("\n")
        return "\n".join(line for line, own in zip(
            lines, self.links["code"][title], strict=False) if set(own) & set(rows))


def test_a_native_loop() -> None:
    loop = Linked(relax.__wrapped__, np.linspace(0, 1, 30) ** 2, 1e-3, number=1)
    assert loop.nodes("= abs(") == {"Abs"} and loop.nodes("store m0") == {"PickUpdate"}
    assert loop.nodes("leave unless") == {"Loop"}
    assert "llvm.fabs" in loop.code("LLVM", "= abs(")
    assert "llvm.fabs" in loop.code("LLVM, optimised", "= abs(")
    assert "vandpd" in loop.code("assembly", "= abs(") or "vand" in loop.code("assembly", "= abs(")
    assert "fmul" in loop.code("LLVM", "0.5 *") and "fmul" not in loop.code("LLVM", "= abs(")
    assert {place >= 0 for _, _, place in loop.links["nodes"]} == {True}


def test_a_branch_and_its_kernels() -> None:
    branch = Linked(either, np.ones(50_000))
    assert branch.nodes("into") >= {"Exp", "Mul"} and "Abs" in branch.nodes("into")
    assert branch.nodes("if ") >= {"Cond"}
    assert "br i1" in branch.code("LLVM", "if ")


@pytest.mark.parametrize("forced", ["persistent", "launched"])
def test_a_loop_of_a_device(forced: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "forced", forced)
    loop = Linked(decays, np.linspace(0, 1, 100_000), device=HOST)
    assert {"Sin", "Sub"} <= loop.nodes("into")
    if forced == "launched":
        assert "launch" in loop.code("launches", "into") and loop.texts["CUDA C++"]
        assert "break" in loop.code("launches", "leave unless")
        return
    assert "nest_1_0(" in loop.code("CUDA C++", "into")
    assert "break" in loop.code("CUDA C++", "leave unless")
    if nvrtc.is_available():
        assert loop.code("PTX", "into")
