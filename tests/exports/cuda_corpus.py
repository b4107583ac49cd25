"""Every program of the corpus and the bench as launch functions for CUDA, compared with fusec's own
emulated device at five sizes.

``python -m tests.exports.cuda_corpus [NAME ...]`` prints a line a program; ``--refused`` only asks
which of them can be exported; ``--cpu`` compares with the CPU, which takes less time.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import optree

import fusec
from fusec.trace.facts.trees import flattened
from tests.programs.five_sizes import Sized, sized_programs

from .corpus import exported_products_here, open_specs
from .cuda_calling import CudaProgram

DEVICE = "/device:CUDAHOST:0"
ULPS = 64  # of the largest element: sums of floats in another order


def exported(program: Sized, folder: str) -> tuple[Any, bool]:
    """The library, and whether its one function is for all sizes; else one for each."""
    arguments = [program.inputs(n) for n in program.sizes]
    fixed = [[x for x in flattened((a, {}))[0] if type(x) is not np.ndarray] for a in arguments]
    jitted = fusec.jit(program.function, **program.options)
    if all(repr(f) == repr(fixed[0]) for f in fixed):
        try:
            return fusec.export_cuda({"f": (jitted, open_specs(arguments[0]))}, folder), True
        except Exception:  # sizes that are known may do
            pass
    return fusec.export_cuda({f"f{n}": (jitted, a) for n, a in zip(
        program.sizes, arguments, strict=True)}, f"{folder}_of_sizes"), False


def differences(
    program: Sized, made: Any, is_open: bool, device: str = DEVICE
) -> tuple[list[str], bool]:
    """Of the library's results from the device's, and whether all bits are the same."""
    running = CudaProgram(made)
    try:
        return _compared(program, made, is_open, device, running)
    finally:
        running.close()


def _compared(
    program: Sized, made: Any, is_open: bool, device: str, running: CudaProgram
) -> tuple[list[str], bool]:
    found, is_same = list[str](), True
    own: Any = fusec.jit(program.function, device=device, **program.options)
    for k, n in enumerate(program.sizes):
        of = made.functions[0 if is_open else k]
        code, results, written = running.call(of, flattened((program.inputs(n), {}))[0])
        if code:
            found.append(f"size {n}: code {code}, {running.error}")
            continue
        arguments = program.inputs(n)
        want = [np.asarray(x) for x in optree.tree_leaves(own(*arguments))
                if isinstance(x, (np.ndarray, np.generic, int, float, complex))]
        after = flattened((arguments, {}))[0]
        pairs = [*_paired(results, want), *((a, after[leaf]) for leaf, a in written.items())]
        for a, b in pairs:
            if not np.array_equal(a, b, equal_nan=b.dtype.kind in "fc"):
                is_same = False
                if not _is_close(a, b):
                    found.append(f"size {n}: {a.ravel()[:5]} instead of {b.ravel()[:5]}")
    return found, is_same


def _paired(results: Sequence[np.ndarray], want: list[np.ndarray]) -> list[Any]:
    rest, pairs = [*want], []
    for k, result in enumerate(results):  # some of Python's are arguments, or constants
        while rest and rest[0].size != result.size and len(rest) > len(results) - k:
            rest.pop(0)
        array = rest.pop(0)
        pairs.append((result.reshape(array.shape), array))
    return pairs


def _is_close(a: np.ndarray, b: np.ndarray) -> bool:
    if b.dtype.kind not in "fc":
        return False
    most = np.max(np.abs(b), initial=0, where=np.isfinite(b))
    return bool(np.allclose(a, b, rtol=0, atol=ULPS * most * np.finfo(b.dtype).eps,
                            equal_nan=True))


def report(program: Sized, only_refusals: bool = False, device: str = DEVICE) -> str:
    """A line: what became of it."""
    start = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        try:
            made, is_open = exported(program, f"{folder}/lib")
        except fusec.UnsupportedError as error:
            return f"refused: {error.diagnostic.values[:1] or error.diagnostic.title}"
        took = time.process_time() - start
        kind = f"{'open' if is_open else 'five'}, {len(made.functions[0].variants)} variants, " \
               f"{len(made.module.kernels)} kernels, {took:.1f} s"
        if only_refusals:
            return f"exported ({kind})"
        with exported_products_here():
            found, is_same = differences(program, made, is_open, device)
    word = "DIFFERS " + "; ".join(found) if found else "same bits" if is_same else "close"
    return f"{word} ({kind})"


def main(names: Sequence[str]) -> None:
    only_refusals, device = "--refused" in names, "CPU" if "--cpu" in names else DEVICE
    names = [name for name in names if not name.startswith("--")]
    for program in sized_programs():
        if not names or program.name in names:
            try:
                line = report(program, only_refusals, device)
            except Exception as error:  # a defect: the others go on
                line = f"ERROR {type(error).__name__}: {str(error)[:300]}"
            print(f"{program.name}: {line}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
