"""Kernels inside of branches, loops and recursion: their loops, code and nodes linked in a page."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from page_programs import CASES

import fusec
from fusec.codegen.cuda.persistent import choice
from fusec.inspect.page.views import sections_of

HOST = "/device:CUDAHOST:0"
CPU = ("LLVM", "LLVM, optimised", "assembly")
X = np.linspace(0, 1, 3000)


def waves(u: Any) -> Any:
    steps = 0
    while steps < 7 and u.sum() < 1e9:
        v = np.sin(u) * 0.5 + np.sqrt(u[::-1])
        u = v - v.mean()
        steps += 1
    return u, steps


def bordered(u: Any) -> Any:
    steps = 0
    while steps < 7 and u.sum() < 1e9:
        v = u.copy()
        v[1:-1] = np.tanh(u[:-2]) + u[2:]
        u = v
        steps += 1
    return u


def counted(x: Any) -> Any:
    largest = x[0]
    for value in x:
        largest = np.maximum(np.sin(value) * 2.0, largest)
    return largest


@fusec.jit
def added_up(n: Any, x: Any) -> Any:
    if n < 1:
        return np.sqrt(x)
    return added_up(n - 1, x * 0.5) + np.exp(x)


class Shown:
    """A branch or loop of a page; ``own`` are its statements, steps and loops."""

    def __init__(self, concrete: Any) -> None:
        sections = sections_of(concrete)
        self.control = sections["kernels/0"]["control"][0]
        code = sections[f"code{self.control['text']}/0"]
        (self.title, own), *_ = code["parts"]
        self.own, self.texts, self.links = own.split("\n"), dict(code["parts"]), code["links"]

    def rows(self, of: str) -> list[int]:
        rows = [k for k, line in enumerate(self.own) if of in line]
        assert rows, self.own
        return rows

    def ops(self, of: str) -> set[str]:
        return {self.links["nodes"][k][1] for row in self.rows(of)
                for k in self.links["loops"][row]}

    def lines(self, of: str) -> set[int]:
        """The lines of the program that the nodes of these rows are of."""
        return {self.links["nodes"][k][2] for row in self.rows(of)
                for k in self.links["loops"][row]}

    def code(self, title: str, of: str) -> str:
        rows = self.rows(of)
        lines = self.texts[title].split("\n")
        found = self.links["code"][title]
        assert len(found) <= len(lines)
        return "\n".join(line for line, own in zip(lines, found, strict=False)
                         if set(own) & set(rows))


def test_nests_of_a_native_loop() -> None:
    loop = Shown(fusec.jit(waves).concrete(X))
    assert loop.control["native"] and "kernel " in "\n".join(loop.own)
    assert loop.ops("= sqrt(") == {"Sqrt"} and loop.ops("= sin(") == {"Sin"}
    assert min(loop.lines("= sqrt(")) >= 0
    assert "@llvm.sqrt" in loop.code("LLVM", "= sqrt(")
    assert "@llvm.sqrt" not in loop.code("LLVM", "= sin(")
    assert "@llvm.sqrt" in loop.code("LLVM, optimised", "= sqrt(")
    assert "sqrtpd" in loop.code("assembly", "= sqrt(")
    assert "add-reduce" in "\n".join(loop.own) and loop.code("LLVM", "add-reduce")


def test_two_calls_of_the_same_kernel_have_its_code_once() -> None:
    def twice(u: Any) -> Any:
        while u.sum() > 1:
            u = np.sqrt(u) * 0.3
            u = np.sqrt(u + u.mean()) * 0.3
            u = np.sqrt(u + u.mean()) * 0.3
        return u

    loop = Shown(fusec.jit(twice).concrete(X))
    texts = "\n".join(loop.own).split("\nkernel ")[1:]
    bodies = [text.partition("\n")[2].rstrip() for text in texts]
    assert len(set(bodies)) == len(bodies)


@pytest.mark.parametrize("forced", ["persistent", "launched"])
def test_nests_of_a_loop_of_a_device(forced: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "forced", forced)
    loop = Shown(fusec.jit(waves, device=HOST).concrete(np.linspace(0, 1, 100_000)))
    assert loop.control["native"] and loop.title == "structured"
    assert "sqrt" in loop.code("CUDA C++", "= sqrt(") or "root" in loop.code("CUDA C++", "= sqrt(")
    assert "sin_f64(" in loop.code("CUDA C++", "= sin(")
    assert "sin_f64(" not in loop.code("CUDA C++", "= sqrt(")
    for title in ("PTX", "SASS"):
        assert title not in loop.texts or loop.code(title, "= sqrt(")
    if forced == "launched":  # scalar ops that a kernel of one thread does
        assert "launch" in loop.code("launches", "run fused")
        assert loop.code("CUDA C++", " < ")


def test_nests_that_one_launch_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "forced", "launched")
    loop = Shown(fusec.jit(bordered, device=HOST).concrete(np.linspace(0, 1, 100_000)))
    assert "joined(" in loop.texts["CUDA C++"]
    assert "tanh_f64(" in loop.code("CUDA C++", "= tanh(")


def test_lanes_of_a_device() -> None:
    def ends(x: Any) -> Any:
        steps = 0
        while x > 0.1 and steps < 50:
            x = np.sin(x) * 0.9
            steps += 1
        return x, steps

    loop = Shown(fusec.jit(fusec.vmap(ends), device=HOST).concrete(np.linspace(0, 1, 5000)))
    assert "a thread a lane" in loop.control["reason"]
    assert "sin_f64(" in loop.code("CUDA C++", "= sin(")


def test_functions_that_call_themselves() -> None:
    """Of numbers: native functions beside that of the loop."""
    call = Shown(added_up.concrete(np.array(5), np.array(2.0)))
    assert call.control["native"] and "def f" in "\n".join(call.own)
    assert min(call.lines("= sqrt(")) >= 0
    body = [k for k, line in enumerate(call.own) if line.startswith("    ")]
    inside = {row for row in body if "sqrt(" in call.own[row] or "exp(" in call.own[row]}
    assert len(inside) >= 2
    for title in CPU:
        assert inside & {row for of in call.links["code"][title] for row in of}, title
    assert "@llvm.sqrt" in call.code("LLVM", "= sqrt(")
    text = call.texts["LLVM"].split("\n")
    first = next(k for k, line in enumerate(text) if line.startswith("define internal i64 @call_"))
    function = call.links["code"]["LLVM"][first:text.index("}", first)]
    assert inside & {row for of in function for row in of}


def test_arrays_of_a_function_that_calls_itself() -> None:
    """They are steps of Python's, which the page has once, whatever the depth."""
    call = Shown(added_up.concrete(np.array(5), X))
    assert not call.control["native"] and call.title == "steps"
    assert "Recursion" in "\n".join(call.own)
    assert call.ops("= sqrt(") == {"Sqrt"}
    assert "@llvm.sqrt" in call.code("LLVM", "= sqrt(")
    assert "sqrt" in call.code("assembly", "= sqrt(")


def test_steps_of_a_loop_that_python_runs() -> None:
    """Numbers of the host's and arrays of a device: both have their code."""
    def noisy(x: Any, seed: Any) -> Any:
        generator = np.random.default_rng(seed)
        for _ in range(200):
            x = np.tanh(x) + generator.random(x.size)
        return np.cos(x) * 2

    loop = Shown(fusec.jit(noisy, device=HOST).concrete(np.ones(400_000), 3))
    assert not loop.control["native"] and loop.title == "steps"
    assert "tanh_f64(" in loop.code("CUDA C++", "= tanh(")
    assert any(loop.links["code"]["LLVM"])  # of what the host does


def test_a_trace_at_other_sizes() -> None:
    """Its code is that of all sizes, by their names; no page could be made of it."""
    function = fusec.jit(waves)
    for n in (1000, 2000, 3000):
        function(np.linspace(0, 1, n))
    concrete = function.concrete(np.linspace(0, 1, 3000))
    loop = Shown(concrete)
    assert "in s0" in "\n".join(loop.own)
    for title in CPU:
        assert loop.code(title, "= sqrt("), title


@pytest.mark.parametrize("name", ["standardise", "smooth", "scoped"])
def test_kernels_at_other_sizes(name: str) -> None:
    function, (x, *more) = CASES[name]
    function = fusec.jit(function.python_function)
    for n in (60, 80, 100):
        concrete = function.concrete(np.ascontiguousarray(x[:n]), *more)
        sections = sections_of(concrete)
    for kernel in sections["kernels/0"]["kernels"]:
        links = sections[f"code{kernel['text']}/0"]["links"]
        assert links["nodes"] and any(links["loops"]), kernel["name"]
        assert all(any(links["code"][title]) for title in CPU), kernel["name"]


def test_kernels_that_write_back_and_scatter() -> None:
    def added(x: Any, at: Any, by: Any) -> None:
        np.add.at(x, at, by)

    sections = sections_of(fusec.jit(added).concrete(
        np.zeros(16), np.arange(50) % 16, np.ones(50)))
    for kernel in sections["kernels/0"]["kernels"]:
        links = sections[f"code{kernel['text']}/0"]["links"]
        assert any(links["loops"]), kernel["name"]
        assert all(any(links["code"][title]) for title in CPU), kernel["name"]
