"""Every program of the corpus as a C function, compared with fusec at five sizes.

``python -m tests.exports.corpus [LEVEL ...] [NAME ...]`` prints a line a program, and how many had
fusec's bits.  C programs call the functions where there is a ``cc``, else this process does.  A
library takes the highest of its levels that the CPU has: of ``v3`` alone the code is run where
there is v4, too.
"""

from __future__ import annotations

import ctypes
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import optree

import fusec
from fusec.codegen.exported.parts import ExportedFunction
from fusec.compiled.sizes import symbolic_traces
from fusec.passes.products.exported_products import exported_products
from fusec.placement import placers
from fusec.trace.facts.trees import flattened
from tests.programs.five_sizes import Sized, sized_programs

from .c_program import CProgram
from .calling import CFunction


def open_specs(arguments: Sequence[Any]) -> tuple[Any, ...]:
    """Specs with all sizes open."""
    return tuple(map(_opened, arguments))


def _opened(argument: Any) -> Any:
    if type(argument) is np.ndarray:
        return fusec.TensorSpec((None,) * argument.ndim, argument.dtype)
    if type(argument) in (list, tuple):
        return type(argument)(map(_opened, argument))
    return argument


def exported(program: Sized, folder: str, levels: Sequence[str]) -> tuple[Any, bool]:
    """The library, and whether its one function is for all sizes; else one for each."""
    arguments = [program.inputs(n) for n in program.sizes]
    fixed = [[x for x in flattened((a, {}))[0] if type(x) is not np.ndarray] for a in arguments]
    jitted = fusec.jit(program.function, **program.options)
    if all(repr(f) == repr(fixed[0]) for f in fixed):
        try:
            made = fusec.export_c({"f": (jitted, open_specs(arguments[0]))}, folder, levels)
            if _serves(made, arguments):
                return made, True
        except Exception as error:
            print("   open sizes:", type(error).__name__, str(error).split("\n")[0][:150])
    return fusec.export_c({f"f{n}": (jitted, a) for n, a in zip(
        program.sizes, arguments, strict=True)}, f"{folder}_of_sizes", levels), False


@contextmanager
def exported_products_here() -> Iterator[None]:
    """Products of matrices are compiled in this process, too, where a BLAS does them."""
    places = [placers, symbolic_traces]
    before = placers.run_pipeline

    def run(graph: Any, *rest: Any, **more: Any) -> Any:
        return before(exported_products(graph), *rest, **more)

    for module in places:
        module.run_pipeline = run
    try:
        yield
    finally:
        for module in places:
            module.run_pipeline = before


def _serves(made: Any, arguments: Sequence[Any]) -> bool:
    """Whether it has code for all of these sizes."""
    function = CFunction(ctypes.CDLL(str(made.shared)), made.functions[0])
    leaves = [flattened((a, {}))[0] for a in arguments]
    return not any(function.nbytes(function.sizes_of(
        [np.asarray(x[k]) for k in made.functions[0].leaves]))[0] for x in leaves)


def caller(made: Any, function: ExportedFunction) -> Any:
    """What calls it, with the first values of its state."""
    if shutil.which("cc"):
        return CProgram(made, function)
    called = CFunction(ctypes.CDLL(str(made.shared)), function)

    def call(leaves: Sequence[Any]) -> Any:
        called.reset(made.name)
        return called(leaves)

    return call


def differences(program: Sized, made: Any, is_open: bool) -> list[str]:
    """Of the library's results from fusec's, bit by bit."""
    jitted: Any = fusec.jit(program.function, **program.options)
    found, callers = list[str](), dict[str, Any]()
    for k, n in enumerate(program.sizes):
        of = made.functions[0 if is_open else k]
        leaves = flattened((program.inputs(n), {}))[0]
        if of.name not in callers:
            callers[of.name] = caller(made, of)
        code, results, written = callers[of.name](leaves)
        if code:
            found.append(f"size {n}: code {code}")
            continue
        arguments = program.inputs(n)
        want = [np.asarray(x) for x in optree.tree_leaves(jitted(*arguments))
                if isinstance(x, (np.ndarray, np.generic, int, float, complex))]
        after = flattened((arguments, {}))[0]
        found += _compared(n, results, want)
        found += [f"size {n}: argument {leaf}" for leaf, array in written.items()
                  if not _same(array, after[leaf])]
    return found


def _compared(n: int, results: Sequence[np.ndarray], want: Sequence[np.ndarray]) -> list[str]:
    if len(results) > len(want):
        return [f"size {n}: {len(results)} results instead of {len(want)}"]
    found, rest = [], [*want]
    for k, result in enumerate(results):  # some of Python's are arguments, or constants
        while rest and rest[0].size != result.size and len(rest) > len(results) - k:
            rest.pop(0)
        array = rest.pop(0)
        if not _same(result.reshape(array.shape), array):
            error = np.max(np.abs(result.reshape(array.shape).astype(complex) - array))
            found.append(f"size {n}: result {k} differs by {error}")
    return found


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and bool(np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"))


def report(program: Sized, levels: Sequence[str] = ("v3", "v4")) -> str:
    """A line: what became of it."""
    start = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        try:
            made, is_open = exported(program, f"{folder}/lib", levels)
        except fusec.UnsupportedError as error:
            return f"refused: {error.diagnostic.values or error.diagnostic.title}"
        took, size = time.process_time() - start, made.shared.stat().st_size
        found, products = differences(program, made, is_open), ""
        if found:
            with exported_products_here():
                found = differences(program, made, is_open) or []
            products = "" if found else " with products as exported"
    kind = "open" if is_open else "five"
    variants = len(made.functions[0].variants)
    return f"{'DIFFERS ' + '; '.join(found) if found else f'same bits{products}'} ({kind}, " \
           f"{variants} variants, {took:.1f} s, {size} bytes)"


def main(words: Sequence[str]) -> None:
    levels = [word for word in words if word in ("v2", "v3", "v4")] or ["v3", "v4"]
    names, same, count = {*words} - {*levels}, 0, 0
    for program in sized_programs():
        if not names or program.name in names:
            try:
                line = report(program, levels)
            except Exception as error:  # a defect: the others go on
                line = f"ERROR {type(error).__name__}: {str(error)[:300]}"
            same, count = same + line.startswith("same bits"), count + 1
            print(f"{program.name}: {line}", flush=True)
    print(f"{same} of {count} with levels {', '.join(levels)} have fusec's bits")


if __name__ == "__main__":
    main(sys.argv[1:])
