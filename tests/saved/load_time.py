"""Milliseconds from `fusec.load` to the first result of Black-Scholes: ``python -m
tests.saved.load_time [PROCESSES]``.

Each is of a new process in which fusec's modules are loaded and another function was compiled; the
least of many, of the processor (of all threads) and of the clock, with machine code from the disk
cache and without.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

PROGRAM = """
import sys, time
import numpy as np
import fusec
from fusec.bench.programs import program
arguments = program("black_scholes").make_args(10_000, np.float64, 0)
fusec.load, fusec.jit(lambda x: x + 1.0)(np.ones(3))
cpu, clock = time.process_time(), time.perf_counter()
fusec.load(sys.argv[1]).f(*arguments)
print(1e3 * (time.process_time() - cpu), 1e3 * (time.perf_counter() - clock))
"""
SAVE = """
import sys
import numpy as np
import fusec
from fusec.bench.programs import program
chosen = program("black_scholes")
f = fusec.jit(chosen.function)
fusec.save(sys.argv[1], {"f": f.concrete(*chosen.make_args(10_000, np.float64, 0))})
"""


def main(processes: int) -> None:
    """See the module."""
    with tempfile.TemporaryDirectory() as at:
        subprocess.run([sys.executable, "-c", SAVE, f"{at}/saved"], check=True)
        for words, cache in (("warm", f"{at}/cache"), ("cold", "off")):
            env = {**os.environ, "FUSEC_CACHE_DIR": cache}
            lines = [subprocess.run(
                [sys.executable, "-c", PROGRAM, f"{at}/saved"], env=env, check=True, text=True,
                stdout=subprocess.PIPE).stdout.split() for _ in range(processes + 1)][1:]
            cpu, clock = (min(map(float, column)) for column in zip(*lines, strict=True))
            print(f"{words}: {cpu:.0f} ms of the processor, {clock:.0f} ms")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
