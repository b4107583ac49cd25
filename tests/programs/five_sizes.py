"""Every program of the corpus and the bench at five sizes, which one trace is to serve.

``python -m tests.programs.five_sizes`` prints the cost of a new size, by itself and as a plan.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import fusec
from fusec.bench.programs import all_programs

from .compare import difference, outcome
from .corpus import programs
from .measure import renewed

# Above the few iterations that are unrolled, whose traces are others.
SIZES = (40, 48, 57, 66, 83)
PIXELS = (1600, 2304, 3249, 4356, 6889)
SMALL = (22, 25, 28, 33, 40)
OTHER_SIZES: dict[str, tuple[int, ...]] = {
    # Powers of two, and grids of them.
    "fft_radix2": (4, 8, 16, 32, 64), "fft_recursive": (4, 8, 16, 32, 64),
    "haar": (32, 64, 128, 256, 512), "multigrid_poisson": (5, 9, 17, 33, 65),
    "brent": (6, 7, 8, 9, 10),  # digits
    "bench_tone_map": PIXELS, "bench_unsharp": PIXELS, "bench_hdiff": PIXELS,
    # What grows faster than the size, in plain NumPy above all.
    "poisson_sor": SMALL, "jacobi_eigenvalues": SMALL, "matrix_chain": SMALL, "sandpile": SMALL,
    "convolution_layer": (40, 44, 48, 52, 56),
    "nqueens": (4, 5, 6, 7, 8), "lennard_jones": (3, 4, 5, 6, 7),
    "welch": (128, 160, 200, 240, 320), "sieve": (400, 500, 650, 800, 1000),
}


@dataclass(frozen=True)
class Sized:
    """A program with its arguments at five sizes."""

    name: str
    function: Callable[..., Any]
    inputs: Callable[[int], tuple[Any, ...]]
    sizes: tuple[int, ...]
    is_chaotic: bool = False

    @property
    def options(self) -> dict[str, Any]:
        """Of ``fusec.jit``: a chaotic program has NumPy's result where it rounds as NumPy does."""
        return {"fp": "strict"} if self.is_chaotic else {}

    def differences(self, jitted: Callable[..., Any], first: tuple[Any, ...]) -> list[str]:
        """Of calls at all sizes, in order, from NumPy's results and its arguments after it.
        Objects are those of ``first``: traces are per object."""
        found = []
        for n in self.sizes:
            got = outcome(jitted, renewed(first, self.inputs(n)))
            want = outcome(self.function, self.inputs(n))
            text = difference(got[0], want[0]) or difference(got[1], want[1], "arguments")
            if text:
                found.append(f"size {n}: {text}")
        return found


def sized_programs() -> list[Sized]:
    """The corpus, then the bench's programs in double precision."""
    corpus = [Sized(p.name, p.function, p.inputs, OTHER_SIZES.get(p.name, SIZES),
                    "chaotic" in p.traits) for p in programs()]
    bench = [(f"bench_{p.name}", p) for p in all_programs()]
    return [*corpus, *(Sized(name, p.function, _arguments(p), OTHER_SIZES.get(name, SIZES))
                       for name, p in bench)]


def _arguments(program: Any) -> Callable[[int], tuple[Any, ...]]:
    return lambda n: tuple(program.make_args(n, "float64", 0))


def built(concrete: Any) -> tuple[Any, ...]:
    """The parts of a plan: the loops of its kernels, branches and loops, library calls."""
    return ([kernel.loops for kernel in concrete.kernels],
            [(type(step).__name__, step.is_native) for step in concrete.control],
            [str(call) for call in concrete.externs])


def times(program: Sized) -> tuple[float, float]:
    """Milliseconds of processor time, the mean of the last two sizes: of a trace for the size
    alone, and of the plan of a trace with symbols; the machine code of other sizes is there."""
    found = []
    for reduce_retracing in (False, True):
        jitted: Any = fusec.jit(program.function, reduce_retracing=reduce_retracing,
                                **program.options)
        first, took = program.inputs(program.sizes[0]), []
        for n in program.sizes:
            arguments = renewed(first, program.inputs(n))
            start = time.process_time()
            jitted.concrete(*arguments)
            took.append(1e3 * (time.process_time() - start))
        found.append(sum(took[-2:]) / 2)
    return found[0], found[1]


def main() -> None:
    """Print the table of `times`, as Markdown."""
    print("| program | traced for its size ms | plan of the trace ms | ratio |")
    print("| --- | ---: | ---: | ---: |")
    for program in sized_programs():
        static, plan = times(program)
        print(f"| {program.name} | {static:.1f} | {plan:.1f} | {static / plan:.1f} |", flush=True)


if __name__ == "__main__":
    main()
