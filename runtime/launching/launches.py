"""Launches of a plan's kernels: argument blocks with everything to be filled in per call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from fusec import config
from fusec.codegen.machine_code.native_nest import NONE, NativeNest, NestBlock
from fusec.codegen.structured.kernel_statements import NestToRun
from fusec.codegen.structured.memory import View
from fusec.core.records import dataclass, field

from .grain import grain_of


@dataclass
class NestLaunch:
    """One call of a nest function: address, block, tasks, tasks per claim, threads or not."""

    function: int
    block: np.ndarray
    tasks: int
    grain: int
    parallel: bool


@dataclass
class PointerSlot:
    """A word of a block that receives the address of a place's memory plus an offset."""

    block: np.ndarray
    slot: int
    place: View
    offset: int

    @property
    def address(self) -> int:
        return int(self.block.ctypes.data) + 8 * self.slot


@dataclass
class ArgumentBlocks:
    """Launches of a run of kernel steps, with everything to be patched per call."""

    launches: list[NestLaunch] = field(default_factory=list)
    pointers: list[PointerSlot] = field(default_factory=list)
    partials: list[tuple[np.ndarray, int, int]] = field(default_factory=list)  # block, slot, bytes
    status: list[tuple[np.ndarray, int]] = field(default_factory=list)  # words for its address


def make_blocks(
    nests: Iterable[NestToRun], cells: np.ndarray
) -> tuple[ArgumentBlocks, float]:
    """Fill the argument blocks of these nests; returns them with the estimated work in ns."""
    blocks, total = ArgumentBlocks(), 0.0
    for nest in nests:
        total += _add_launches(blocks, nest.places, nest.block, nest.code, cells)
    return blocks, total


def _add_launches(
    blocks: ArgumentBlocks, places: Sequence[View], nest: NestBlock, code: NativeNest,
    cells: np.ndarray,
) -> float:
    block: np.ndarray = nest.words
    tasks, work = nest.tasks, nest.ns * nest.points
    for slot, buffer, offset in nest.pointers:
        place = places[buffer]
        if place.is_cell:
            block[slot] = int(cells.ctypes.data) + 8 * place.memory.position + offset
        else:
            blocks.pointers.append(PointerSlot(block, slot, place, offset))
    if nest.status != NONE:
        blocks.status.append((block, nest.status))
    if nest.partials != NONE:
        blocks.partials.append((block, nest.partials, nest.partial_bytes * tasks))
    grain = grain_of(nest, tasks, work, config.parallel_threshold)
    if tasks:
        blocks.launches.append(NestLaunch(code.entry, block, tasks, grain, grain < tasks))
    if code.finish:
        blocks.launches.append(NestLaunch(code.finish, block, 1, 1, False))
    return work
