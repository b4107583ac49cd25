"""The cost of gradients: the time of a gradient over that of the function, for the corpus and the
benchmark's programs.

``python -m tests.gradients.costs [NAME ...]`` prints a line for each program and the geometric
means, of programs with loops and without.  Both are compiled; times are the processor time
of calls on one thread, the least of many, the two in turn in one process.  A program is as large as
its table says, or as lets a call of the function take a tenth of a second.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import fusec
from fusec.bench.programs import all_programs
from tests.gradients.corpus import leaf, leaves, positions
from tests.programs.corpus import Program, programs
from tests.programs.measure import renewed

BUDGET = 0.3  # seconds of repeated calls
LONGEST = 0.1  # seconds of a call of the function
PATIENCE = 200  # seconds for a program
STENCILS = ("heat_plate", "burgers_maccormack", "poisson_sor", "gray_scott", "cavity_flow",
            "shallow_water", "adi_step", "crank_nicolson", "multigrid_poisson", "lattice_boltzmann")


def weighted(x: Any) -> Any:
    """A sum of the elements with weights of both signs."""
    x = np.asarray(x)
    if x.dtype.kind == "c":
        return weighted(x.real) + weighted(x.imag)
    return (x * np.cos(1.0 + np.arange(x.size)).reshape(x.shape)).sum()


def objective(program: Program, args: tuple[Any, ...], paths: Sequence[Any]) -> Callable[..., Any]:
    """One number of all floats that the program returns, and leaves in its arguments."""
    arrays = [i for i in positions(args) if isinstance(args[i], np.ndarray)]
    function = program.function

    def total(*args: Any) -> Any:
        result = function(*args)
        value = 0.0
        for path in paths:
            value = value + weighted(leaf(result, path))
        for i in arrays:
            value = value + weighted(args[i])
        return value

    return total


def candidates() -> list[Program]:
    """The programs, those of the benchmark as the corpus has its own."""
    bench = [Program("bench", p.function, lambda n, p=p: p.make_args(n, np.float64, 0),
                     p.quick_sizes[0], p.sizes[len(p.sizes) // 2], frozenset())
             for p in all_programs()]
    return [*bench, *programs()]


def timed(function: Callable[..., Any], args: Sequence[Any]) -> float:
    start = time.thread_time()
    function(*args)
    return time.thread_time() - start


def size_for(program: Program, call: Callable[..., Any]) -> int:
    """A size at which a call of the function takes no longer than `LONGEST`."""
    size = program.large
    while size > 2 * program.small:
        first = program.inputs(size)
        call(*first)
        if timed(call, renewed(first, program.inputs(size))) <= LONGEST:
            break
        size = size * 2 // 3
    return size


def cost(program: Program) -> dict[str, Any]:
    """The row of a program; ``why`` there is none."""
    args = program.inputs(program.small)
    chosen = positions(args)
    paths = list(leaves(program.function(*program.inputs(program.small)), "fc"))
    if not chosen or not (paths or any(isinstance(args[i], np.ndarray) for i in chosen)):
        return {"why": "no floats"}
    f = objective(program, args, paths)
    function, gradient = fusec.jit(f), fusec.grad(f, chosen)
    size = size_for(program, function)
    first = program.inputs(size)
    try:
        for call in (function, gradient):
            call(*renewed(first, program.inputs(size)))
    except (fusec.UnsupportedError, MemoryError) as error:
        return {"why": str(error).partition("\n")[0]}
    found: dict[str, list[float]] = {"forward": [], "gradient": []}
    began = time.process_time()
    while time.process_time() - began < BUDGET or len(found["gradient"]) < 3:
        for name, call in (("forward", function), ("gradient", gradient)):
            found[name].append(timed(call, renewed(first, program.inputs(size))))
    row: dict[str, Any] = {name: 1e3 * min(filter(None, times)) for name, times in found.items()}
    concrete = gradient.concrete(*renewed(first, program.inputs(size)))
    has_loops = any(node.op == "Loop" for node in function.trace(
        *renewed(first, program.inputs(size))).graph.nodes)
    return row | {
        "size": size, "ratio": row["gradient"] / row["forward"],
        "kind": "loops" if has_loops else "straight",
        "stepwise": [c.run.reason for c in concrete.control if not c.is_native]}


def row_of(name: str) -> dict[str, Any]:
    """`cost` in a process of its own."""
    try:
        environment = os.environ | {"FUSEC_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        done = subprocess.run([sys.executable, "-m", "tests.gradients.costs", "--one", name],
                              capture_output=True, text=True, timeout=PATIENCE, check=False,
                              env=environment)
    except subprocess.TimeoutExpired:
        return {"why": f"no answer in {PATIENCE} s"}
    if done.returncode:
        return {"why": (done.stderr.strip().splitlines() or ["?"])[-1]}
    row: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return row


def mean(ratios: Sequence[float]) -> str:
    if not ratios:
        return "-"
    value = math.exp(sum(map(math.log, ratios)) / len(ratios))
    return f"{value:.2f} ({len(ratios)} programs)"


def main(names: list[str]) -> int:
    known = {p.name: p for p in candidates()}
    if names[:1] == ["--one"]:
        print(json.dumps(cost(known[names[1]])))
        return 0
    ratios: dict[str, list[float]] = {"loops": [], "straight": [], "stencil time loops": []}
    for name in names or known:
        row = row_of(name)
        if "why" in row:
            print(f"{name:28} {row['why']}", flush=True)
            continue
        ratios[row["kind"]].append(row["ratio"])
        if name in STENCILS:
            ratios["stencil time loops"].append(row["ratio"])
        print(f"{name:28} {row['size']:8} {row['forward']:9.3f} ms {row['gradient']:9.3f} ms "
              f"{row['ratio']:7.2f}  {row['kind']:8} {'; '.join(row['stepwise'])}", flush=True)
    for kind, found in ratios.items():
        print(f"{kind}: {mean(found)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
