"""Every program of the corpus: each of its branches and loops is a program of a GPU, or `explain`
says why a CPU is faster.

Each has to be traced, which takes a minute for all; small sizes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import pytest
from fake_cupy import as_gpu

import fusec
from fusec.codegen import backends
from fusec.ir import Node
from fusec.ops import get
from fusec.placement.placement_report import refusal_lines
from tests.programs.corpus import Program, programs

DEVICE = "/device:GPU:0"
FASTER = re.compile(r": it (goes through elements one by one, beside arrays of fewer than [\d,]+: "
                    r"a CPU is faster|has arrays of sizes that the run decides, of up to [\d,]+ "
                    r"elements: a CPU is faster, which passes over them in some \d+ us)")
ALL = programs()
# Those whose loops had no kernels when fusec first ran on a GPU.
NAMED = ("leapfrog_planets", "langtons_ant", "xorshift_stream", "floyd_warshall", "cholesky",
         "lstm", "lu_solve", "lennard_jones", "crr_american_put", "fft_radix2", "train_two_layers",
         "longstaff_schwartz", "boids", "pagerank", "light_curve")


def control_of(program: Program, size: int) -> Iterator[tuple[Node, str]]:
    """The outermost branches and loops in the graph that is divided, each with what `explain` says
    against the device."""
    stage = fusec.jit(program.function, device=DEVICE).trace(*program.inputs(size)).optimize()
    asked = next((p.before for p in stage.passes if p.name == "device_constraints"), None)
    if asked is None:
        return
    lines = refusal_lines(asked)
    gpu = backends.backend("gpu")
    for node in asked.nodes:
        if get(node.op).is_control:
            told = _of_node(lines, node)
            assert bool(told) == (not gpu.has_kernel(node))
            yield node, told


def _of_node(lines: Sequence[str], node: Node) -> str:
    return next((x for x in lines if f"no kernel for {node.name} at {node.loc}:" in x), "")


def _check(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    with as_gpu(monkeypatch):
        for node, told in control_of(program, program.small):
            assert not told or FASTER.search(told), (node.name, told)


@pytest.mark.parametrize("name", NAMED)
def test_loops_run_on_a_gpu_or_say_why_not(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _check(next(p for p in ALL if p.name == name), monkeypatch)


@pytest.mark.repeats
@pytest.mark.parametrize("program", ALL, ids=lambda p: p.name)
def test_loops_of_the_corpus(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    _check(program, monkeypatch)


def test_windows_rows_and_slices_of_some_size_are_kernels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Sizes from which one kernel for all iterations is ahead of a CPU; no large size of these is
    a launch's.  Of the last three the iteration decides the sizes."""
    large = {"heston_paths": True, "bilateral_filter": True, "floyd_warshall": False,
             "lu_solve": True, "haar": True, "sieve": True}
    with as_gpu(monkeypatch):
        for program in ALL:
            if program.name in large:
                (_, told), *_ = control_of(program, program.large)
                assert (not told) == large[program.name], told


@pytest.mark.parametrize("name", ["lattice_boltzmann", "adam_rosenbrock"])
def test_iterations_cost_no_python(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The two whose large loops were launched by text of Python when they were counted."""
    program = next(p for p in ALL if p.name == name)
    with as_gpu(monkeypatch):
        stage = fusec.jit(program.function, device=DEVICE).concrete(*program.inputs(program.large))
    reasons = [control.reason for control in stage.control]
    assert reasons and all(r.startswith("one kernel that does all of it") for r in reasons), reasons
