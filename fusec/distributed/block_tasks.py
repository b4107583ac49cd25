"""What tasks run, where blocks are: plain functions of plain data, which any process imports.

A `StageCode` travels as the texts of its graphs, which are admitted where they arrive, as those of
a stranger are, and compiled there: on a worker as soon as they are there, while the blocks of the
first task may be on their way.  Machine code and bytecode never travel.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from fusec.compiled.graph_function import GraphFunction
from fusec.core import locks
from fusec.core.versions import version_of
from fusec.errors import user_error
from fusec.ops.graphs.admit import admit
from fusec.trace.facts.refusals import check_array

from . import joins
from .threads import is_workers_own, keep_to_slot

_MOST_KEPT = 256
_MOST_PREPARED = 4  # graphs of a stage: corners and edges beyond these are for few workers
_kept: OrderedDict[bytes, StageCode] = OrderedDict()
_functions: OrderedDict[str, GraphFunction] = OrderedDict()  # by text: many stages have one
_lock = locks.Lock()
Slices = tuple[tuple[int, int], ...]


def versions() -> tuple[str, str]:
    """Those that client and workers must share: of fusec, and of NumPy without its last part."""
    return str(version_of("fusec")), ".".join(np.__version__.split(".")[:2])


class StageCode:
    """The graphs of one stage, one for each kind of block, as functions.

    ``texts``: their JSON; ``outputs``: for each of them the number of the graph's output by number
    of the stage's result, None where such a block has none; ``kept``: likewise the part that is
    kept of the output, None where that is all.
    """

    def __init__(
        self, name: str, texts: Sequence[str], outputs: Sequence[Sequence[int | None]],
        kept: Sequence[Sequence[Slices | None]],
    ) -> None:
        self.name, self.texts = name, tuple(texts)
        self.outputs, self.kept = tuple(map(tuple, outputs)), tuple(map(tuple, kept))
        self._functions: dict[int, GraphFunction] = {}
        self._lock = locks.Lock()

    def function(self, number: int) -> GraphFunction:
        """The function of one of its graphs; the first call of a process admits it."""
        with self._lock:
            function = self._functions.get(number)
            if function is None:
                function = self._functions[number] = _function_of(self.texts[number])
            return function

    def prepare(self) -> None:
        """Compiles its first graphs; what cannot be compiled raises in the task that needs it."""
        keep_to_slot()
        for number in range(min(len(self.texts), _MOST_PREPARED)):
            with suppress(Exception):
                self.function(number).prepare()

    def run(self, number: int, arguments: Sequence[Any]) -> tuple[Any, ...]:
        """The stage's results for a block of that kind."""
        results = self.function(number)(*arguments)
        results = results if isinstance(results, tuple) else (results,)
        return tuple(None if place is None else _own(_part(results[place], kept)) for place, kept
                     in zip(self.outputs[number], self.kept[number], strict=True))

    def __reduce__(self) -> tuple[Any, ...]:
        return _arrived, (versions(), self.name, self.texts, self.outputs, self.kept)


def _function_of(text: str) -> GraphFunction:
    """The function of a graph's text: iterations of a loop that are alike have one."""
    with _lock:
        function = _functions.get(text)
        if function is None:  # contracted products are nodes of the graph: none are formed here
            function = _functions[text] = GraphFunction(admit(text), "strict")
        _functions.move_to_end(text)
        while len(_functions) > _MOST_KEPT:
            _functions.popitem(last=False)
        return function


def _arrived(
    made_with: tuple[str, str], name: str, texts: tuple[str, ...],
    outputs: tuple[tuple[int | None, ...], ...], kept: tuple[tuple[Slices | None, ...], ...],
) -> StageCode:
    """The stage of these texts: the one that came before, or a new one."""
    if made_with != versions():
        raise user_error(
            RuntimeError, f"{name} was made with another version than this worker's", None,
            "install the client's versions on every worker",
            values=[(label, f"fusec {ours}, NumPy {numpy}") for label, (ours, numpy) in (
                ("client", made_with), ("worker", versions()))])
    key = hashlib.sha256(repr((texts, outputs, kept)).encode()).digest()
    with _lock:
        code = _kept.get(key)
        if code is None:
            code = _kept[key] = StageCode(name, texts, outputs, kept)
            if is_workers_own():
                threading.Thread(target=code.prepare, name=f"fusec-{name}", daemon=True).start()
        _kept.move_to_end(key)
        while len(_kept) > _MOST_KEPT:
            _kept.popitem(last=False)
        return code


def _own(result: Any) -> Any:
    """The result without the memory of a larger array that it would keep."""
    base = getattr(result, "base", None)
    is_part = isinstance(base, np.ndarray) and base.nbytes > result.nbytes
    return result.copy() if is_part else result


Layout = tuple[tuple[int, ...] | None, Slices | None]


def run_block(
    code: StageCode, number: int, starts: Sequence[int], layouts: Sequence[Layout], is_single: bool,
    *parts: Any,
) -> Any:
    """The stage's results for one block, or its one result.

    ``layouts``: for each array that the block reads, the grid of parts that it is put together of
    (None: one part), and what of it is read (None: all).
    """
    keep_to_slot()
    rest, arguments = iter(parts), list[Any]()
    for grid, slices in layouts:
        given = [_as_given(next(rest)) for _ in range(int(np.prod(grid or ())))]
        whole = given[0] if grid is None else _put_together(grid, given)
        arguments.append(_part(whole, slices))
    results = code.run(number, [*arguments, *starts])
    return results[0] if is_single else results


def _as_given(part: Any) -> Any:
    """A block as NumPy's array: its task may have given a file's memory, or a list.

    One that a message left at an odd address is copied: NumPy adds up products of such otherwise.
    Raises ``TypeError`` for subclasses that compute otherwise, which Dask did not tell of.
    """
    if isinstance(part, (np.generic, bool, int, float, complex)):
        return part
    array = part if type(part) is np.ndarray else np.asanyarray(part)
    if isinstance(array, np.memmap):
        array = np.asarray(array)
    check_array(array, "a block")
    return array if array.flags.aligned else array.copy()


def _put_together(grid: tuple[int, ...], parts: list[Any]) -> np.ndarray:
    """Neighbouring parts as one array, along one axis after the other."""
    for axis in reversed(range(len(grid))):
        count = grid[axis]
        if count > 1:
            parts = [np.concatenate(parts[k:k + count], axis=axis)
                     for k in range(0, len(parts), count)]
    return parts[0]


def _part(array: Any, slices: Slices | None) -> Any:
    return array if slices is None else cut_part(array, slices)


def cut_part(block: Any, slices: Slices) -> Any:
    """A part of a block; of little of it a copy, so that the rest need not stay in memory."""
    part = block[tuple(slice(start, stop) for start, stop in slices)]
    return part.copy() if isinstance(part, np.ndarray) and 2 * part.nbytes < block.nbytes else part


def take_result(results: tuple[Any, ...], number: int) -> Any:
    """One of a block's results."""
    return results[number]


def join_blocks(wanted: Sequence[joins.JoinOf], *results: Any) -> tuple[joins.Partial, ...]:
    """The partials of several barriers, each joined."""
    return tuple(joins.joined(join.name, join.row(results)) for join in wanted)


def finish_blocks(join: joins.JoinOf, options: Mapping[str, Any], *results: Any) -> Any:
    """The result of a barrier, of the last of its partials."""
    return joins.finished(join.name, joins.joined(join.name, join.row(results)), options)


__all__ = ["StageCode", "cut_part", "finish_blocks", "join_blocks", "run_block", "take_result"]
