"""First calls of NumPy's functions on small and large arrays: their cost beside NumPy's own.

``python -m fusec.bench.first_calls [NAME ...] [--sizes N,N] [--markdown PAGE]``.  Times are CPU
times, so that a machine with other work gives them too.  Memory is the peak of NumPy's and
Python's, beyond the arguments.  The exit status is 1 where a first call takes over a second more
than NumPy, or over four times the memory of its arguments and results where NumPy does not.
"""

from __future__ import annotations

import argparse
import gc
import time
import tracemalloc
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import fusec
from fusec.core.records import dataclass
from fusec.errors import FusecError
from fusec.ops.calls.library import leaves_of

from .cases.first_call_cases import FirstCallCase, cases

SIZES = (1_000, 1_000_000)
MOST_MS = 1000.0  # more than NumPy
MOST_TIMES = 4.0  # the bytes of arguments and results
_SMALL = 2**21  # bytes that a trace itself may take
_SHOWN = 15  # functions in the page's table


@dataclass(frozen=True)
class FirstCallRow:
    """Milliseconds of NumPy, of the first call and of a later one; bytes at their most."""

    name: str
    size: int
    eager_ms: float
    first_ms: float
    later_ms: float
    held: int  # by arguments and results
    eager_peak: int
    first_peak: int

    @property
    def extra_ms(self) -> float:
        return self.first_ms - self.eager_ms

    @property
    def times(self) -> float:
        """How often the bytes of arguments and results the first call takes more than NumPy."""
        return max(0, self.first_peak - self.eager_peak - _SMALL) / max(self.held, 1)

    @property
    def is_within(self) -> bool:
        return self.extra_ms <= MOST_MS and self.times <= MOST_TIMES


def measured(case: FirstCallCase) -> FirstCallRow:
    """Of one function, which is compiled anew each time."""
    eager = min(_cpu_ms(case.call, case) for _ in range(2))
    compiled = fusec.jit(_copied(case.call))
    first = _cpu_ms(compiled, case)
    later = min(_cpu_ms(compiled, case) for _ in range(2))
    result, eager_peak = _peak(case.call, case)
    _, first_peak = _peak(fusec.jit(_copied(case.call)), case)
    held = sum(x.nbytes for x in (*case.arguments, *leaves_of(result)) if isinstance(x, np.ndarray))
    return FirstCallRow(case.name, case.size, eager, first, later, held, eager_peak, first_peak)


def _copied(call: Callable[..., Any]) -> Callable[..., Any]:
    """The function as another one, of which nothing is compiled."""
    return types.FunctionType(call.__code__, call.__globals__, call.__name__, call.__defaults__,
                              call.__closure__)


def _cpu_ms(call: Callable[..., Any], case: FirstCallCase) -> float:
    arguments = case.fresh()
    start = time.process_time()
    call(*arguments)
    return 1e3 * (time.process_time() - start)


def _peak(call: Callable[..., Any], case: FirstCallCase) -> tuple[Any, int]:
    """The call's result, and its peak of bytes."""
    arguments = case.fresh()
    gc.collect()
    tracemalloc.start()
    try:
        result = call(*arguments)
        return result, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def rows(sizes: Sequence[int], names: frozenset[str]) -> Iterator[FirstCallRow]:
    """Of all functions, or of those of these names, at each size."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for size in sizes:
            for case in cases(size, names):
                try:
                    yield measured(case)
                except FusecError as error:  # at this size alone
                    print(f"{case.name}, {size:,} elements: {str(error).splitlines()[0]}")


def line(row: FirstCallRow) -> str:
    return (f"{row.name:28s} {row.size:>9,d}  NumPy {row.eager_ms:8.2f} ms  "
            f"first {row.first_ms:8.2f}  later {row.later_ms:8.2f}  memory {row.times:5.2f}"
            + ("" if row.is_within else "  TOO MUCH"))


def page(found: Sequence[FirstCallRow]) -> str:
    """The table as Markdown: how many there are, and the slowest."""
    lines = ["| elements | functions | slowest first call beyond NumPy | 99 % are below | median | "
             "over 1 s | over 4 times the memory |", "|---|---|---|---|---|---|---|"]
    for size in sorted({row.size for row in found}):
        of_size = [row for row in found if row.size == size]
        extra = np.array([row.extra_ms for row in of_size])
        slowest = max(of_size, key=lambda row: row.extra_ms)
        lines.append(
            f"| {size:,} | {len(of_size)} | {slowest.extra_ms:.0f} ms (`{slowest.name}`) | "
            f"{np.percentile(extra, 99):.0f} ms | {np.median(extra):.1f} ms | "
            f"{sum(extra > MOST_MS)} | {sum(row.times > MOST_TIMES for row in of_size)} |")
    most = max((row.size for row in found), default=0)
    lines += ["", f"The {_SHOWN} slowest at {most:,} elements, in ms of CPU time:", "",
              "| function | NumPy | first call | later call | memory beyond NumPy's |",
              "|---|---|---|---|---|"]
    for row in sorted((r for r in found if r.size == most), key=lambda r: -r.extra_ms)[:_SHOWN]:
        lines.append(f"| `{row.name}` | {row.eager_ms:.1f} | {row.first_ms:.1f} | "
                     f"{row.later_ms:.1f} | {row.times:.1f} times |")
    return "\n".join([*lines, ""])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m fusec.bench.first_calls", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all of them")
    parser.add_argument("--sizes", type=lambda text: tuple(int(float(n)) for n in text.split(",")),
                        default=SIZES, metavar="N,N")
    parser.add_argument("--markdown", type=Path, help="write the table to this file")
    options = parser.parse_args(arguments)
    found = []
    for row in rows(options.sizes, frozenset(options.names)):
        found.append(row)
        print(line(row), flush=True)
    if options.markdown:
        options.markdown.write_text(page(found), encoding="utf-8")
    return int(not all(row.is_within for row in found))


if __name__ == "__main__":
    raise SystemExit(main())
