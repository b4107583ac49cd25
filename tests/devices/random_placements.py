"""Programs at random placements, which must give the bits of one device.

``python tests/devices/random_placements.py -n 20000`` takes programs of the fuzzers, of the corpus
and of the benchmark in turn, compiles each once for one device, and then places its graph after
the passes at random, over two and over four devices.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from types import FunctionType
from typing import Any

import numpy as np

TESTS = Path(__file__).resolve().parents[1]
for folder in ("..", "fuzz", "differential"):
    sys.path.insert(0, str(TESTS / folder))

from fuzzer.control.module_state import _state_of as state_of  # noqa: E402
from fuzzer.control.program import ControlProgram, StatefulProgram  # noqa: E402

import fusec  # noqa: E402
from fusec.errors import ConcreteValueError, TraceError, UnsupportedError  # noqa: E402
from fusec.placement.placed_graph import choosing  # noqa: E402

REFUSALS = (UnsupportedError, ConcreteValueError, TraceError)


@dataclass
class Case:
    """A program: ``arguments`` makes fresh ones, ``options`` are those of ``jit``."""

    name: str
    function: Callable[..., Any]
    arguments: Callable[[], Any]
    options: dict[str, Any] = field(default_factory=dict)
    stateful: StatefulProgram | None = None  # with a module whose state calls read and change


def fuzzed(seed: str) -> Case:
    """A program of the fuzzers."""
    from fuzzer.child import program_of

    program = program_of(seed)
    if isinstance(program, StatefulProgram):
        return Case(seed, program.function(), lambda: program.make(0), stateful=program)
    if isinstance(program, ControlProgram):
        return Case(seed, program.function(), lambda: program.make(0))
    return Case(seed, program.function(), program.make, {"fp": program.fp})


def published() -> Iterator[Case]:
    """The corpus and the benchmark's programs."""
    from fusec.bench.programs import all_programs
    from tests.programs.corpus import programs

    for program in programs():
        yield Case(program.name, program.function, partial(program.inputs, program.small))
    for bench in all_programs():
        yield Case(f"bench {bench.name}", bench.function,
                   partial(bench.make_args, 40, "float64", 0))


class Placements:
    """One program, compiled once for one device and then for several."""

    def __init__(self, case: Case) -> None:
        self.name, self.case = case.name, case
        self.jitted = fusec.jit(case.function, **case.options)
        self.divided = 0
        self.want, self.error = self.run(1, None)

    def check(self, count: int, devices: int, random: Random) -> None:
        """``count`` random placements over so many devices; raises ``AssertionError``."""
        for _ in range(count):
            got, error = self.run(devices, lambda node, feasible: random.choice(feasible))
            assert (type(error), str(error)) == (type(self.error), str(self.error)), (
                f"over {devices} devices {error!r}, on one {self.error!r}")
            assert got == self.want, f"other bits over {devices} devices"

    def run(self, devices: int, choose: Any) -> tuple[Any, Exception | None]:
        """The bits of the result and of the arguments after the call, and the exception."""
        args, result = self.case.arguments(), None
        with fusec.config.override(logical_cpu_devices=devices), np.errstate(all="ignore"):
            try:
                result = self._called(args, choose)
            except Exception as error:
                return bits(args), error
        return bits((result, args)), None

    def _called(self, args: Any, choose: Any) -> Any:
        stage = self.jitted.trace(*args)
        with nullcontext() if choose is None else choosing(choose):
            lowered = stage.optimize().lower()
        concrete = lowered.compile()
        self.divided += lowered.call_plan.is_partitioned
        return concrete.run_leaves(stage.call.leaves)


class StatefulPlacements(Placements):
    """One program with a state: called three times, which is changed in between."""

    def run(self, devices: int, choose: Any) -> tuple[Any, Exception | None]:
        """The bits of results, arguments and the state after each call, up to one that raises."""
        program = self.case.stateful
        assert program is not None
        module, seen = program.module(), list[Any]()
        jitted = fusec.jit(module["program"], fp="strict")
        with fusec.config.override(logical_cpu_devices=devices), np.errstate(all="ignore"), (
                nullcontext() if choose is None else choosing(choose)):
            for trial in range(3):
                args = program.make(trial)
                try:
                    module["touch"](trial)
                    result = jitted(*args)
                except Exception as error:
                    return seen, error
                seen.append((bits((result, args)), sorted(
                    (path, bits(value)) for path, value in state_of(module))))
        self.divided += sum(t.build.call_plan.is_partitioned for t in jitted.traces)
        return seen, None


def placements_of(case: Case) -> Placements:
    return StatefulPlacements(case) if case.stateful else Placements(case)


def bits(x: Any) -> Any:
    """All that can be seen of a value, down to the bits and strides of its arrays."""
    if isinstance(x, np.ndarray):
        return x.dtype.str, x.shape, x.strides if x.size > 1 else (), (
            x.tolist() if x.dtype == object else x.tobytes())
    if isinstance(x, (np.generic, complex, float)):
        return type(x), np.asarray(x).tobytes()
    if isinstance(x, (list, tuple)):
        return type(x), [*map(bits, x)]
    if isinstance(x, dict):
        return type(x), [(key, bits(value)) for key, value in x.items()]
    if hasattr(x, "bit_generator"):
        return repr(x.bit_generator.state)
    if isinstance(x, (FunctionType, type)):
        return repr(x)
    return (type(x), bits(vars(x))) if hasattr(x, "__dict__") else repr(x)


def campaign(cases: Iterator[Case], total: int, each: int, seed: int) -> Counter[str]:
    """Check cases until there are ``total`` placements that were divided."""
    random, counts = Random(seed), Counter[str]()
    began = time.monotonic()
    for case in cases:
        try:
            placements = placements_of(case)
        except REFUSALS:
            counts["refused"] += 1
            continue
        if isinstance(placements.error, REFUSALS):
            counts["refused"] += 1
            continue
        try:
            for devices in (2, 4):
                placements.check(each, devices, random)
        except Exception as error:
            counts["wrong"] += 1
            print(f"{case.name}: {type(error).__name__}: {str(error)[:600]}", flush=True)
        counts["programs"] += 1
        counts["raised"] += placements.error is not None
        counts["placements"] += placements.divided
        if counts["programs"] % 100 == 0:
            print(f"{dict(counts)} in {time.monotonic() - began:.0f} s", flush=True)
        if counts["placements"] >= total:
            break
    return counts


def every_case(first: int) -> Iterator[Case]:
    """Published programs, then those of the fuzzers in turn."""
    yield from published()
    number = first
    while True:
        for kind in ("", "c", "w", "s"):
            yield fuzzed(f"{kind}{number}")
            number += 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", "--placements", type=int, default=2000)
    parser.add_argument("--each", type=int, default=3, help="placements of a program and a count")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", help="names or seeds")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    cases = every_case(given.seed)
    if given.only:
        by_name = {case.name: case for case in published()}
        cases = iter([by_name.get(name) or fuzzed(name) for name in given.only])
    counts = campaign(cases, given.placements, given.each, given.seed)
    print(dict(counts))
    return int(counts["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main())
