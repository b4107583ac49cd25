"""Every bench program and every program of the corpus on the emulated device, against NumPy.

``python -m tests.cuda.every_program [--nvrtc] [NAME ...]``: some 3 minutes of a core, by hand.
With ``--nvrtc`` NVRTC compiles all that is compiled, too, and kernels that spill registers are
listed.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import optree

import fusec
from fusec.bench.programs import NAMES, program
from fusec.codegen import backends
from fusec.codegen.cuda import emulated_backend
from fusec.codegen.cuda.driver import nvrtc
from fusec.codegen.cuda.emulation.driver import EmulatedDriver
from fusec.codegen.cuda.emulation.loading import EmulatedModule
from fusec.codegen.cuda.module import CudaModule
from tests.programs.corpus import programs
from tests.programs.expected_failures import EXPECTED_FAILURES
from tests.programs.measure import check

SIZES = {"nbody": 20, "hdiff": 1000}


def of_bench(name: str, dtype: str) -> str:
    """How results differ from NumPy's by more than rounding; empty if they do not."""
    args = program(name).make_args(SIZES.get(name, 100), dtype, 0)
    want = optree.tree_leaves(program(name).function(*args))
    got = optree.tree_leaves(fusec.jit(program(name).function)(*args))
    near = 2e3 * np.finfo(dtype).eps
    return "" if all(np.allclose(a, b, rtol=near, atol=near) for a, b in zip(
        got, want, strict=True)) else "other results"


class AlsoByNvrtc(EmulatedDriver):
    """Everything that is compiled is compiled for an A100 as well."""

    modules = 0

    def compile(self, module: CudaModule) -> EmulatedModule:
        AlsoByNvrtc.modules += 1
        for name, usage in nvrtc.compile(module, nvrtc.ARCHITECTURES[0]).usage.items():
            if usage.spill_stores:
                print(f"    {name}: {usage}")
        return super().compile(module)


def main(names: list[str]) -> int:
    """The number of programs that differ."""
    wrong = 0
    if "--nvrtc" in names:
        names = [n for n in names if n != "--nvrtc"]
        emulated_backend.DRIVER.__class__ = AlsoByNvrtc
    jobs = [(f"{n} {d}", lambda n=n, d=d: of_bench(n, d)) for n in NAMES
            for d in ("float32", "float64")]
    jobs += [(p.name, lambda p=p: check(p, p.small)) for p in programs()
             if p.name not in EXPECTED_FAILURES]
    with backends.using("cudahost"):
        for name, run in jobs:
            if not names or name.split()[0] in names:
                start = time.perf_counter()
                text = run()
                wrong += bool(text)
                print(f"{name:28} {time.perf_counter() - start:5.1f} s  {text or 'equal'}")
    if AlsoByNvrtc.modules:
        print(f"NVRTC compiled {AlsoByNvrtc.modules} modules")
    print(f"{wrong} differ")
    return wrong


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1:])))
