"""Graphs of real programs: one or more for each row of the registry, branches and loops."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
from test_walk import ROWS, runs_of

import fusec
from fusec.ir import Graph


def real_graphs(each: int = 2) -> Iterator[tuple[str, Graph]]:
    """Up to ``each`` graphs for each row; rows that trace to nothing of their own are left out."""
    for row in ROWS:
        made = 0
        for program, args, _ in runs_of(row):
            given = ([args[0][0]],) if program.__name__ == "every_layout" else args
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                try:
                    graph = fusec.jit(program).trace(*given).graph
                except Exception:  # NumPy refuses the dtype: another one will do
                    continue
            yield row.name, graph
            made += 1
            if made == each:
                break
