"""How a nest's tasks are shared out to threads."""

from __future__ import annotations

import math

from fusec.codegen.machine_code.native_nest import NestBlock

GRAIN_NS = 20_000.0  # work one thread takes at a time: well above the cost of taking it


def grain_of(block: NestBlock, tasks: int, work: float, threshold: float) -> int:
    """How many tasks a thread takes at a time; all of them where one thread does the nest."""
    if work < threshold or tasks <= 1 or block.in_order:
        return max(tasks, 1)
    grain = max(1, math.ceil(tasks * GRAIN_NS / work))
    return min(-(-grain // block.together) * block.together, tasks)
