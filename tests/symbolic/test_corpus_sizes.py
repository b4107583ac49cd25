"""Every program of the corpus and the bench at five sizes: one trace, NumPy's results, and the
plan of a trace for that size alone."""

from __future__ import annotations

from typing import Any

import pytest

import fusec
from tests.programs.five_sizes import Sized, built, renewed, sized_programs

PROGRAMS = sized_programs()
LEVELS = "it halves its arrays until nothing is left: each size is another program"
TRACES = {
    "multigrid_poisson": (5, LEVELS),
    "fft_radix2": (5, LEVELS),
    "fft_recursive": (4, LEVELS),
}
FOLDED = "arrays such as np.arange(n) * 2 are computed by a kernel, not while tracing"
RUN = "an int is a value of the run in the plan, a constant in the static trace"
OTHER_KERNELS = {
    "advect": "its grid's dx is a value of the run in the plan, a constant in the static trace",
    "buffon_pi": FOLDED, "dct_denoise": FOLDED, "dpss_like_multitaper": FOLDED,
    "fft_recursive": FOLDED,
    "ising_checkerboard": FOLDED, "levinson_durbin": FOLDED, "viterbi": FOLDED, "welch": FOLDED,
    "breadth_first": RUN, "dijkstra": RUN, "flood_fill": RUN,
    "crr_american_put": "they differ in the order of values",
    "dynamic_time_warping": "they differ in the names of values",
    "heston_paths": "a division by a count that is a power of two is a multiplication there",
    "nqueens": "loops of at most 16 iterations are unrolled there",
    "sieve": "its first 16 iterations are unrolled there",
}


def test_the_tables_name_programs() -> None:
    assert {*TRACES, *OTHER_KERNELS} <= {p.name for p in PROGRAMS}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_five_sizes(program: Sized) -> None:
    jitted: Any = fusec.jit(program.function, **program.options)
    first = program.inputs(program.sizes[0])
    assert program.differences(jitted, first) == []
    assert jitted.trace_count == TRACES.get(program.name, (1, ""))[0]
    arguments = program.inputs(program.sizes[2])
    check_plan(program, jitted.concrete(*renewed(first, arguments)))
    assert jitted.trace_count == TRACES.get(program.name, (1, ""))[0]


def check_plan(program: Sized, plan: Any) -> None:
    """A plan has the kernels, native loops and library calls of a trace for its size."""
    alone: Any = fusec.jit(program.function, reduce_retracing=False, **program.options)
    static = alone.concrete(*program.inputs(program.sizes[2]))
    kernels, steps, calls = built(plan)
    if program.name in OTHER_KERNELS:
        assert all(is_native for _, is_native in steps)
    else:
        assert (kernels, steps, calls) == built(static)
