"""Measures every function's error and speed: prints the table of docs/accuracy.md.

``python -m fusec.codegen.vecmath.accuracy [--points N] [--dense N] [name ...]``
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from .. import vecmath
from .builder import format_of
from .harness import WIDTH, ArrayFunction, compiled
from .reference import DOMAIN, errors, numpy_function, operands

CACHED = 1024  # elements: the three arrays stay in the first-level cache
ELEMENTS = 1_000_000


def best_seconds(call: Callable[[], object], runs: int = 20) -> float:
    """The least time of ``runs`` calls."""
    best = float("inf")
    for _ in range(runs):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


def timing_operands(name: str, dtype: np.dtype) -> list[np.ndarray]:
    """Ordinary arguments, where neither side takes a rare path."""
    low, high = DOMAIN.get(name, (-4.0, 4.0))
    low, high = max(low, -4.0), min(high, 4.0)
    rng = np.random.default_rng(0)
    margin = 0.02 * (high - low)
    return [rng.uniform(low + margin, high - margin, CACHED).astype(dtype) for _ in range(2)]


def nanoseconds(name: str, dtype: np.dtype, kernel: ArrayFunction) -> tuple[float, float]:
    """ns per element on one thread: ours and NumPy's (SciPy's)."""
    x, y = timing_operands(name, dtype)
    out, ufunc = np.empty_like(x), numpy_function(name)
    args = (x, y)[: vecmath.ARITY[name]]
    addresses = (x.ctypes.data, y.ctypes.data, out.ctypes.data)
    times = ELEMENTS // CACHED
    ours = best_seconds(lambda: kernel.raw(*addresses, CACHED, times))
    wide = [np.resize(a, 16 * CACHED) for a in args]  # so that NumPy's overhead per call is small
    result = np.empty_like(wide[0])
    theirs = best_seconds(lambda: ufunc(*wide, out=result))
    return 1e9 * ours / (times * CACHED), 1e9 * theirs / result.size


def dense_error(name: str, dtype: np.dtype, count: int) -> str:
    """The largest error over many points, against the next wider format's NumPy function.

    A dash where NumPy (or SciPy) has no wider function of that name on this machine.
    """
    wide = np.dtype(np.longdouble) if dtype == np.float64 else np.dtype(np.float64)
    ufunc, fmt = numpy_function(name), format_of(dtype)
    signature = wide.char * vecmath.ARITY[name] + "->" + wide.char
    if signature not in ufunc.types or np.finfo(wide).nmant < fmt.mantissa + 11:
        return "-"
    args = operands(name, dtype, vecmath.ARITY[name], count)
    with np.errstate(all="ignore"):
        exact = ufunc(*(a.astype(wide) for a in args))
    got = compiled(dtype, WIDTH[dtype.name], name)(*args).astype(wide)
    exponent = np.clip(np.frexp(exact)[1] - 1, 1 - fmt.bias, fmt.bias)
    both = np.isfinite(got) & np.isfinite(exact)
    unit = np.ldexp(wide.type(1), exponent - fmt.mantissa)
    return f"{float(np.max(np.abs(got[both] - exact[both]) / unit[both])):.3f}"


def row(name: str, dtype: np.dtype, count: int, dense: int) -> str:
    """One line of the table."""
    kernel = compiled(dtype, WIDTH[dtype.name], name)
    args = operands(name, dtype, vecmath.ARITY[name], count)
    ulps = errors(name, kernel(*args), args, format_of(dtype))
    ours, theirs = nanoseconds(name, dtype, kernel)
    return (
        f"| {name} | {dtype.name} | {vecmath.BOUNDS[name, dtype.name]} "
        f"| {ulps.max():.3f} | {dense_error(name, dtype, dense)} | {ours:.2f} | {theirs:.2f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=12_000, help="arguments against mpmath")
    parser.add_argument("--dense", type=int, default=2_000_000, help="against a wider NumPy")
    parser.add_argument("names", nargs="*", default=sorted(vecmath.FUNCTIONS))
    options = parser.parse_args()
    print("| function | dtype | bound | mpmath | dense | ns | NumPy ns |")
    print("|---|---|---|---|---|---|---|")
    for name in options.names:
        for dtype in (np.dtype(np.float64), np.dtype(np.float32)):
            print(row(name, dtype, options.points, options.dense), flush=True)


if __name__ == "__main__":
    main()
