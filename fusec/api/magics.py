"""``%load_ext fusec``: the cell magic ``%%fusec``.

The cell runs once, as with ``%%time``, names and all.  Every jitted function that it called is then
measured as `fusec.benchmark` does it, eager against compiled, on the arguments of its first call:
each is called many times, as with ``%%timeit``.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from fusec.bench.gpu_benchmark import GpuReport
from fusec.bench.measure import benchmark
from fusec.bench.reports.report import Report
from fusec.core.display.notebook import Shown, escape, preformatted
from fusec.core.records import dataclass
from fusec.dispatch.function import Function
from fusec.trace.facts.trees import flattened
from fusec.trace.values.trace import current

_NOTHING = ("no jitted function was called in this cell: put @fusec.jit above a function and call "
            "it here")
_SECONDS = 1.0
Calls = dict[Function, tuple[Any, ...]]


@dataclass(frozen=True)
class CellTimes(Shown):
    """The result of ``%%fusec``: a report for each jitted function that the cell called."""

    reports: tuple[Report | GpuReport, ...]

    def __str__(self) -> str:
        return "\n\n".join(f"{r.name}: {r}" for r in self.reports) or _NOTHING

    def html(self) -> str:
        return "".join(f"<h4>{escape(r.name)}</h4>{r.html()}" for r in self.reports) or (
            preformatted(_NOTHING))


@contextmanager
def _recorded() -> Iterator[Calls]:
    """The positional arguments, copied, of the first call of each jitted function."""
    calls: Calls = {}
    plain = Function.__call__

    def call(self: Function, *args: Any, **kwargs: Any) -> Any:
        if current() is None and self not in calls:
            calls[self] = _copied(self._signature.bind(args, kwargs)[0])
        return plain(self, *args, **kwargs)

    Function.__call__ = call  # type: ignore[method-assign]
    try:
        yield calls
    finally:
        Function.__call__ = plain  # type: ignore[method-assign]


def _copied(args: Any) -> Any:
    leaves, structure = flattened(args)
    return structure.unflatten([x.copy() if isinstance(x, np.ndarray) else x for x in leaves])


def load_ipython_extension(shell: Any) -> None:
    """Called by ``%load_ext fusec``."""

    def fusec(line: str, cell: str) -> CellTimes | None:
        """``%%fusec [seconds]``: run the cell, then time the jitted functions that it called,
        eager against compiled, each for about so many seconds (by default 1)."""
        with _recorded() as calls:
            if shell.run_cell(cell).success is False:
                return None
        seconds = float(line) if line.strip() else _SECONDS
        with warnings.catch_warnings():  # the cell's run has given them
            warnings.simplefilter("ignore")
            return CellTimes(tuple(benchmark(f, *args, time_budget_s=seconds)
                                   for f, args in calls.items()))

    shell.register_magic_function(fusec, magic_kind="cell", magic_name="fusec")
