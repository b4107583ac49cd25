"""Random programs on the CPU and on the emulated CUDA device, which must agree.

``python tests/cuda/emulated_campaign.py -n 20000`` takes programs of the fuzzers in turn: straight
lines, branches and loops, arrays that shrink and grow, gradients of branches and loops (``g17``).
Those that add up no floats give the same bits.  Of others a straight line is judged against NumPy
as the fuzzers judge it, within what other roundings could give; the rest within
`own_order.OwnOrder`.  Where NumPy itself gives something else
in another order, the program is counted as unstable.  A number of a program is its seed, and the
device's, so that threads and blocks run in another order each time.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

TESTS = Path(__file__).resolve().parents[1]
for folder in ("..", "fuzz", "differential", "devices"):
    sys.path.insert(0, str(TESTS / folder))

from fuzzer.child import program_of  # noqa: E402
from fuzzer.control.program import ControlProgram  # noqa: E402
from fuzzer.judge import REFUSALS, Failure, Judge  # noqa: E402
from fuzzer.program import ORACLE  # noqa: E402
from harness import Outcome, assert_outcomes, clone, run  # noqa: E402
from other_orders import scans_decide, sums_decide  # noqa: E402
from own_order import OwnOrder, has_own_order  # noqa: E402
from random_placements import bits, published  # noqa: E402

import fusec  # noqa: E402
from fusec.codegen import backends  # noqa: E402
from fusec.codegen.cuda.emulated_backend import DRIVER  # noqa: E402
from fusec.codegen.kernels import kernel_nodes  # noqa: E402


class Device:
    """The device that programs run on besides the CPU."""

    name = "/device:CUDAHOST:0"

    @classmethod
    def launched(cls) -> int:
        """How many kernels it was asked for."""
        driver: Any = DRIVER if "HOST" in cls.name else backends.backend("gpu").driver
        return driver.launched


KINDS = ("", "g", "c", "w")  # of the fuzzers, in turn


def agree(function: Any, args: Any, counts: Counter[str], **options: Any) -> Outcome | None:
    """The outcome on the device where other bits may be; None where they are the CPU's.

    Raises `Failure`, and refusals of both.
    """
    here, there = fusec.jit(function, **options), fusec.jit(function, device=Device.name, **options)
    want, launched = run(here, args), Device.launched()
    if isinstance(want.error, REFUSALS):
        raise want.error
    got = run(there, args)
    counts["launches"] += Device.launched() - launched
    counts["on the device"] += Device.launched() > launched
    if (type(got.error), str(got.error)) != (type(want.error), str(want.error)):
        raise Failure(f"{got.error!r} there, {want.error!r} here") from got.error
    try:
        assert_outcomes(got, want, what="on the device:")
    except AssertionError:
        if not any(has_own_order(trace.optimized_graph) for trace in there.traces):
            raise
        return got
    counts["same bits"] += 1
    return None


class DeviceJudge(Judge):
    """A straight line of statements; those that are refused are taken out."""

    counts: Counter[str]

    def _agree(self) -> None:
        program = self.program
        args = program.make()
        got = agree(program.function(), args, self.counts, fp=program.fp)
        if got is not None:
            self.counts[self._nearness(got, args)] += 1

    def _nearness(self, got: Outcome, args: list[Any]) -> str:
        """How its results are NumPy's; raises `Failure` where they are not."""
        try:
            self._compare(got, run(self.program.function(ORACLE), args), "on the device")
        except Failure:
            here = fusec.jit(self.program.function(), fp=self.program.fp)
            if not scans_decide(here.trace(*clone(tuple(args))), args):
                raise
            return "unstable"
        return "within rounding"


def check(seed: str, counts: Counter[str]) -> None:
    """The program of a seed; raises its failure."""
    if seed.startswith("g"):
        check_gradient(seed, counts)
        return
    program = program_of(seed)
    if not isinstance(program, ControlProgram):
        judge = DeviceJudge(program)
        judge.counts = counts
        judge.judge()
        return
    args = program.make(0)
    try:
        got = agree(program.function(), args, counts)
    except REFUSALS:
        counts["refused"] += 1
        return
    if got is not None:
        counts[nearness(program, got, args)] += 1


def check_gradient(seed: str, counts: Counter[str]) -> None:
    """The gradient, by all arrays of floats, of the sum of a program's results."""
    program = program_of(f"c{seed[1:]}")
    args, function = program.make(0), program.function()
    by = tuple(n for n, x in enumerate(args) if isinstance(x, np.ndarray) and x.dtype.kind == "f")

    def total(*args: Any) -> Any:
        least = 0.0 * np.sum(args[by[0]])  # a float, also where no result is one
        return sum((np.sum(np.sin(r)) for r in function(*args) if np.result_type(r).kind == "f"),
                   start=least)

    try:
        got = agree(fusec.grad(total, by), args, counts)
    except (*REFUSALS, TypeError):  # a program of ints has no gradient
        counts["refused"] += 1
        return
    if got is not None:
        want = run(fusec.jit(fusec.grad(total, by)), args)
        try:
            assert_outcomes(got, want, OwnOrder())
        except AssertionError:
            if not sums_decide(program, args):
                raise
            counts["unstable"] += 1
            return
        counts["within rounding"] += 1


def nearness(program: ControlProgram, got: Outcome, args: list[Any]) -> str:
    """How its outcome on the device agrees with that on the CPU; raises where it does not."""
    try:
        assert_outcomes(got, run(fusec.jit(program.function()), args), OwnOrder())
    except AssertionError:
        if not sums_decide(program, args):
            raise
        return "unstable"
    return "within rounding"


def check_published(name: str, counts: Counter[str]) -> None:
    """A program of the corpus or of the benchmark: its results and its arguments after it."""
    case = next(case for case in published() if case.name == name)
    here = fusec.jit(case.function, **case.options)
    there = fusec.jit(case.function, device=Device.name, **case.options)
    launched, outcomes = Device.launched(), []
    for function in (here, there):
        args = case.arguments()
        outcomes.append((function(*args), args))
    counts["launches"] += Device.launched() - launched
    counts["on the device"] += Device.launched() > launched
    if Device.launched() == launched:
        print(f"{name}: nothing of it has a kernel there")
    if bits(outcomes[0]) == bits(outcomes[1]):
        counts["same bits"] += 1
        return
    if not any(has_own_order(trace.optimized_graph) for trace in there.traces):
        raise Failure("other bits, and nothing is added up")
    for want, got in zip(*map(numbers, outcomes), strict=True):
        OwnOrder(ulp=1e6).check(np.asarray(got), np.asarray(want), None, name)
    counts["within rounding"] += 1


def numbers(x: Any) -> list[Any]:
    """All arrays and numbers in a value, those of objects included."""
    if isinstance(x, (np.ndarray, np.generic, int, float, complex)):
        return [] if getattr(x, "dtype", None) == np.dtype(object) else [x]
    if isinstance(x, dict):
        return [n for value in x.values() for n in numbers(value)]
    if isinstance(x, (list, tuple)):
        return [n for value in x for n in numbers(value)]
    return numbers(vars(x)) if hasattr(x, "__dict__") and not isinstance(x, type) else []


def campaign(names: Iterable[str]) -> Counter[str]:
    """Check each: the seed of a program, or the name of a published one."""
    counts, began = Counter[str](), time.monotonic()
    for number, name in enumerate(names, 1):
        is_seed = name.lstrip("cgw").isdigit()
        try:
            with fusec.config.override(cuda_host_seed=number):
                (check if is_seed else check_published)(name, counts)
        except Exception as error:
            counts["wrong"] += 1
            print(f"{name}: {type(error).__name__}: {str(error)[:500]}", flush=True)
        counts["programs"] += 1
        if number % 100 == 0:
            print(f"{dict(counts)} in {time.monotonic() - began:.0f} s", flush=True)
    return counts


def seeds(first: int, count: int) -> list[str]:
    """Seeds of the fuzzers' programs, each kind in turn."""
    return [f"{KINDS[n % len(KINDS)]}{n}" for n in range(first, first + count)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", "--programs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0, help="the first")
    parser.add_argument("--published", action="store_true", help="the corpus and the benchmark")
    parser.add_argument("--device", default=Device.name, help="such as /device:GPU:0")
    parser.add_argument("--any-size", action="store_true",
                        help="loops are the device's whatever the size of their arrays")
    parser.add_argument("--only", nargs="*", help="seeds, or names of published programs")
    given = parser.parse_args()
    Device.name = given.device
    if given.any_size:
        kernel_nodes.LARGE = kernel_nodes.ONE_KERNEL = 0
    warnings.simplefilter("ignore")
    names = given.only or seeds(given.seed, given.programs)
    if given.published:
        names = [case.name for case in published()]
    counts = campaign(names)
    print(dict(counts))
    return int(counts["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main())
