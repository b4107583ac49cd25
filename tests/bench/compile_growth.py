"""How the time of a first call grows with a program: kinds of programs in three sizes each.

``python -m tests.bench.compile_growth [kinds] --size 200`` makes each kind of n, 2n and 4n lines
(or levels), and prints CPU milliseconds a line, the exponent of the growth from the first to the
last, and where the largest spends its time.  No machine code is read from disk.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import fusec

FLOATS = ("    a = {sin}(a) + b * {n}.5", "    b = a - {maximum}(b, {n}.25)",
          "    a = a * b + {n}.0", "    b = b / (abs(a) + {n}.0)")
HEAD, X = "import math\nimport numpy as np\n\n", np.linspace(0.1, 1.0, 10)


def _lines(n: int, start: str, templates: tuple[str, ...], end: str, **names: str) -> str:
    lines = [templates[k % len(templates)].format(n=k, ten=k % 10, **names) for k in range(n)]
    return HEAD + "\n".join(["def f(x, y):", start, *lines, end])


def arrays(n: int) -> str:
    """Elementwise lines, with a sum in each fifth."""
    return _lines(n, "    a, b = x, y", (*FLOATS, "    b = b + a.sum() * {n}.0"),
                  "    return a + b", sin="np.sin", maximum="np.maximum")


def elementwise(n: int) -> str:
    return _lines(n, "    a, b = x, y", FLOATS, "    return a + b",
                  sin="np.sin", maximum="np.maximum")


def writes(n: int) -> str:
    """Parts of an array are assigned."""
    return _lines(n, "    a, b = x, y.copy()", ("    b[{ten}] = a[{ten}] * {n}.5 + b[3]",),
                  "    return a + b")


def scalars(n: int) -> str:
    return _lines(n, "    a, b = x[0], y[1]", FLOATS, "    return a + b",
                  sin="math.sin", maximum="max")


def branches(n: int) -> str:
    """Ifs that data decides."""
    return _lines(n, "    s = 0.0", ("    if x[{ten}] > {n}.5 * y[0]: s = s + {n}.0",),
                  "    return s")


def outputs(n: int) -> str:
    made = ", ".join(f"x * {k}.0 + y" for k in range(n))
    return HEAD + f"def f(x, y):\n    return ({made})"


def gradients(n: int) -> str:
    """Lines that are differentiated."""
    lines = "\n".join(f"    a = np.sin(a) * {k}.5 + b" if k % 2 else f"    b = b * a + {k}.0"
                      for k in range(n))
    return HEAD + f"def loss(a, b):\n{lines}\n    return (a + b).sum()\n" + (
        "def f(x, y):\n    return fusec.grad(loss)(x, y)\n").replace(
            "fusec.", "__import__('fusec').")


def nests(n: int) -> str:
    """Short loops inside of one another, which data may leave: a hundred lines are a level."""
    lines = []
    for k in range(max(n // 100, 1)):
        lines += [f"{'    ' * (k + 1)}for i{k} in range(3):",
                  f"{'    ' * (k + 2)}if s > {50 + k}.0 and x[i{k}] > 0.2: break"]
    inside = "    " * (max(n // 100, 1) + 1)
    return "\n".join([HEAD + "def f(x, y):\n    s = 0.0", *lines, f"{inside}s = s + x[i0]",
                      "    return s"])


KINDS: dict[str, Callable[[int], str]] = {kind.__name__: kind for kind in (
    arrays, elementwise, writes, scalars, branches, outputs, gradients, nests)}


def first_call(source: str) -> tuple[float, dict[str, float]]:
    """CPU seconds of a first call, and milliseconds of its stages."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "grown.py"
        path.write_text(source)
        spec = importlib.util.spec_from_file_location("grown", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        jitted = fusec.jit(module.f)
        start = time.process_time()
        jitted(X.copy(), X + 1.0)
        spent = time.process_time() - start
    (trace,) = jitted.traces
    return spent, dict(trace.times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kinds", nargs="*", help=", ".join(KINDS))
    parser.add_argument("--size", type=int, default=200, help="lines of the smallest program")
    chosen = parser.parse_args()
    fusec.config.cache_dir = "off"
    for kind in chosen.kinds or KINDS:
        first_call(KINDS[kind](4))  # what is imported at the first use
        sizes = [chosen.size * factor for factor in (1, 2, 4)]
        spent, times = zip(*(first_call(KINDS[kind](n)) for n in sizes), strict=True)
        grown = math.log(spent[-1] / spent[0]) / math.log(4)
        per_line = ", ".join(f"{n}: {1e3 * s / n:.2f}" for n, s in zip(sizes, spent, strict=True))
        stages = ", ".join(f"{stage} {ms:.0f}" for stage, ms in times[-1].items() if ms > 1)
        print(f"{kind:12} ms a line {per_line}; exponent {grown:.2f}; ms {stages}", flush=True)


if __name__ == "__main__":
    main()
