"""Write the code of a fixed set of programs, for a change that should change none of it.

``python -m tests.record OUT`` writes one file a program below ``OUT``: graphs as traced and after
the passes, the plan, loops, statements, LLVM and CUDA text of every trace that the corpus, the
bench programs and fixed fuzz seeds make.  Do it before and after, then ``diff -r BEFORE AFTER``;
``--fuzz 200`` takes fewer.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "fuzz"))

import numpy as np

import fusec
from fusec.bench.programs import all_programs
from fusec.codegen.cuda.kernels.kernel_sources import write_form
from fusec.compiled.concrete_function import ConcreteFunction
from tests.programs.corpus import programs
from tests.programs.measure import check

BENCH_SIZE = {"tone_map": 64, "unsharp": 64, "hdiff": 64, "nbody": 50}
# Addresses, the checkout's folder, and names that the fuzzer makes from hashes of texts.
VARYING = re.compile(rf"0x[0-9a-f]{{6,}}|{re.escape(str(Path(__file__).parents[1]))}/|<fuzz -?\d+>")
KINDS = ("", "c", "s")  # straight lines, control flow, Python's state: a half, a third, the rest


def described(concrete: ConcreteFunction) -> Iterator[str]:
    """Every text form of one trace."""
    yield f"=== {concrete.signature}\n{concrete.graph}\n--- optimized\n{concrete.optimized_graph}"
    call_plan = concrete.build.call_plan
    yield f"--- plan\n{'of several devices' if call_plan.is_partitioned else call_plan}"
    for kernel, step in zip(concrete.kernels, call_plan.kernels, strict=True):
        yield f"--- {kernel.name}\n{kernel.loops}\n{kernel.asm['ll']}\n{cuda_text(step)}"
    for step in concrete.control:
        yield f"--- {step!r}\n{step.structured}\n{step.asm.get('ll', '')}"


def cuda_text(step: Any) -> str:
    """Its nests as CUDA kernels, or why there are none."""
    try:
        kernels = [k for number, form in enumerate(step.forms)
                   for k in write_form(form, "i32", f"{step.name}_{number}")]
    except Exception as error:
        return f"no CUDA: {type(error).__name__}: {error}"
    return "\n".join(kernel.text for kernel in kernels)


class Recorder:
    """Collects the traces that are made while a program runs."""

    def __init__(self, out: Path) -> None:
        self.out, self.made, self.texts = out, hashlib.sha256(), []
        self.files = self.traces = 0
        # While a function lives, others share its code, and show the module that it was made in.
        self.kept: list[ConcreteFunction] = []
        init = ConcreteFunction.__init__

        def recorded(concrete: ConcreteFunction, build: Any) -> None:
            init(concrete, build)
            self.traces += 1
            self.kept.append(concrete)
            self.texts.extend(described(concrete))

        ConcreteFunction.__init__ = recorded  # type: ignore[method-assign]

    def record(self, name: str, run: Callable[[], Any]) -> None:
        """One file of ``run``'s traces; a program that raises is recorded as far as it came."""
        self.texts = []
        try:
            run()
        except Exception as error:
            self.texts.append(f"=== {type(error).__name__}")
        text = VARYING.sub("", "\n".join(self.texts))
        path = self.out / f"{name}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        self.made.update(text.encode())
        self.files += 1


def record_corpus(to: Recorder, only: Sequence[str]) -> None:
    for program in programs():
        if only and program.name not in only:
            continue
        to.record(f"corpus/{program.name}", lambda p=program: check(p, p.small))


def record_bench(to: Recorder) -> None:
    for program in all_programs():
        for dtype in program.dtypes:
            size = BENCH_SIZE.get(program.name, 300)
            args = program.make_args(size, np.dtype(dtype), 0)
            to.record(f"bench/{program.name}-{dtype}",
                      lambda p=program, a=args: fusec.jit(p.function)(*a))


def record_fuzz(to: Recorder, count: int) -> None:
    from fuzzer.child import failure_of, program_of

    shares = (count // 2, count // 3, count - count // 2 - count // 3)
    for kind, share in zip(KINDS, shares, strict=True):
        for number in range(share):
            seed = f"{kind}{number}"
            to.record(f"fuzz/{seed}", lambda s=seed: failure_of(program_of(s)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="a folder to write to")
    parser.add_argument("--fuzz", type=int, default=2000, help="fuzz programs (2000)")
    parser.add_argument("--only", nargs="+", default=(), help="these programs of the corpus alone")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    to = Recorder(chosen.out)
    record_corpus(to, chosen.only)
    if chosen.only:
        chosen.fuzz = 0
    else:
        record_bench(to)
    record_fuzz(to, chosen.fuzz)
    print(f"{to.files} programs, {to.traces} traces, sha256 {to.made.hexdigest()[:16]}")


if __name__ == "__main__":
    main()
