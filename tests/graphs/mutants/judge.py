"""The fate of one mutant: it is refused, or gives the reference interpreter's results."""

from __future__ import annotations

import copy
import random
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np

from fusec.compiled.graph_function import GraphFunction
from fusec.core.records import dataclass
from fusec.errors import FusecError, InternalError, UnsupportedError
from fusec.ir import Graph, TensorType
from fusec.ops.graphs import evaluate
from fusec.ops.graphs.admit import Limits, admit
from fusec.ops.graphs.carve import carve
from fusec.ops.graphs.evaluate import as_type, evaluate_all
from fusec.ops.rows import windows

from .changes import mutated
from .guards import Guarded
from .seeds import INDEXING

SECONDS = 0.5  # of the interpreter: what ends needs less
SIGNED = ("Signbit", "Copysign", "Reinterpret")  # which see the sign of a NaN
LIMITS = Limits(nodes=2000, value_bytes=1 << 20)
# What Python's own numbers raise, traces check before; a graph that does not has what wraps.
# A recursion needs more of Python's frames in the interpreter than in machine code.
PYTHONS = (ZeroDivisionError, OverflowError, RecursionError)
NEGATIVE_SHIFT = "negative shift count"
WILD = (0, 1, -1, 2, 3, 9, 10, 11, -10, -11, 200, 2**31, -(2**31), 2**40, 2**62, 2**63 - 1,
        -(2**63))


class EndlessError(Exception):
    """It did not end in time."""


@dataclass
class Judge:
    """Makes mutants of seeds and runs them on guarded arguments."""

    seeds: dict[str, list[Graph]]
    rows: list[str]

    def __post_init__(self) -> None:
        self.pages: list[Guarded] = []
        self.seen: set[int] = set()
        weights = [3 if row in INDEXING else 1 for row in self.rows]
        self.turns = [row for row, n in zip(self.rows, weights, strict=True) for _ in range(n)]

    def row(self, number: int) -> str:
        return self.turns[number % len(self.turns)]

    def mutant(self, number: int) -> tuple[Graph, random.Random]:
        rng, row = random.Random(number), self.row(number)
        return mutated(rng.choice(self.seeds[row]), row, rng), rng

    def outcome(self, number: int) -> str:
        """``refused``, ``right``, ``raises``, ``endless``, ``python`` (an exception of its
        numbers) or ``again`` (one like it was run); raises `AssertionError` where it is none."""
        graph, rng = self.mutant(number)
        try:
            admitted = admit(_as_text(graph) if rng.random() < 0.05 else graph, LIMITS)
        except FusecError as error:
            assert not isinstance(error, InternalError), f"admission: {error}"
            return "refused"
        key = hash(str(admitted))
        if key in self.seen:
            return "again"
        self.seen.add(key)
        return self.run(admitted, rng)

    def run(self, graph: Graph, rng: random.Random) -> str:
        loops = bool(graph.ops & {"Loop", "Call"})
        for turn in range(2):
            given = [argument(v.type, rng) for v in graph.inputs]
            try:
                with at_most(SECONDS):
                    expected = _interpreted(graph, copy.deepcopy(given))
                with at_most(9.0):
                    found = self._compiled(graph, given, rng, loops, turn)
            except EndlessError:
                return "endless"
            if found == "refused":
                return found
            if isinstance(expected, PYTHONS) or str(expected) == NEGATIVE_SHIFT:
                return "python"
            _compare(found, expected, _undefined(graph, given, expected))
        return "raises" if isinstance(expected, Exception) else "right"

    def _compiled(
        self, graph: Graph, given: Sequence[Any], rng: random.Random, loops: bool, turn: int
    ) -> Any:
        if turn == 0:
            try:
                self.function = GraphFunction(graph, fp="strict")
            except FusecError as error:
                assert not isinstance(error, InternalError), f"compiling: {error}"
                return "refused"
        guarded = self._guarded(given, rng)
        try:
            result = self.function(*guarded)
        except EndlessError:
            raise
        except (InternalError, SystemError) as error:
            raise AssertionError(f"{type(error).__name__}: {error}") from error
        except Exception as error:
            return error
        results = result if len(graph.outputs) != 1 else (result,)
        return [np.array(x) for x in results], [np.array(guarded[i]) for i, _ in graph.updates]

    def _guarded(self, given: Sequence[Any], rng: random.Random) -> list[Any]:
        while len(self.pages) < len(given):
            self.pages.append(Guarded())
        return [pages.array(x, rng.random() < 0.8) if isinstance(x, np.ndarray) else x
                for pages, x in zip(self.pages, given, strict=False)]


def _as_text(graph: Graph) -> Graph | str:
    """The graph's text, if there is one: some types have no text."""
    try:
        return str(graph)
    except (KeyError, AttributeError, TypeError):
        return graph


def argument(type_: TensorType, rng: random.Random) -> Any:
    """Small numbers of this type; of integers now and then large ones."""
    numbers = np.random.default_rng(rng.getrandbits(32))
    values = numbers.integers(0, 4, type_.shape)
    array = np.asarray(values).astype(type_.dtype)
    if type_.dtype == np.int64 and rng.random() < 0.4:
        array = np.asarray(numbers.choice(WILD, type_.shape), np.int64)
    if type_.kind == "array":
        return array
    return array[()] if type_.kind == "scalar" else array.item()


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raises `EndlessError` after so long on the processor; not in the middle of a kernel."""
    def ring(number: int, frame: object) -> None:
        raise EndlessError

    before = signal.signal(signal.SIGVTALRM, ring)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _interpreted(graph: Graph, given: list[Any]) -> Any:
    try:
        outputs, updates = evaluate_all(carve(graph), given)
    except EndlessError:
        raise
    except Exception as error:
        return error
    return outputs, [v for _, v in updates]


def _undefined(graph: Graph, given: list[Any], expected: Any) -> Any:
    """The results for other contents of unwritten memory and NaNs of the other sign; None where
    these cannot matter."""
    text = str(graph)
    if isinstance(expected, Exception) or not any(op in text for op in ("Reserve", *SIGNED)):
        return None
    with mock.patch.object(windows, "_undefined", lambda dtype: dtype.type(0)), \
            mock.patch.object(evaluate, "as_type", _of_other_sign):
        return _interpreted(graph, copy.deepcopy(given))


def _of_other_sign(value: Any, *of: Any) -> Any:
    """A node's results, with NaNs whose sign is the other one."""
    result = as_type(value, *of)
    if getattr(result, "dtype", np.dtype(int)).kind not in "fc" or not np.isnan(result).any():
        return result
    return np.where(np.isnan(result), -result, result)[()]


def _compare(found: Any, expected: Any, other: Any) -> None:
    if isinstance(other, Exception):
        return
    if isinstance(found, Exception) or isinstance(expected, Exception):
        if isinstance(expected, UnsupportedError):  # a claim that compiled code had no use for
            return
        if not isinstance(found, Exception):
            raise AssertionError(f"the interpreter raises {expected!r}, the code gives {found}")
        told = isinstance(found, (FusecError, MemoryError))
        if not isinstance(expected, Exception) and not told:
            raise AssertionError(f"the interpreter gives {expected}, the code raises {found!r}")
        return
    for part, wanted, others in zip(found, expected, other or expected, strict=True):
        for values in zip(part, wanted, others, strict=True):
            _same(*map(np.asarray, values))


def _same(one: np.ndarray, two: np.ndarray, other: np.ndarray) -> None:
    """They are equal where ``two`` and ``other`` are: elsewhere nothing is defined."""
    if (one.dtype, one.shape) != (two.dtype, two.shape):
        raise AssertionError(f"{one!r} is not {two!r}")
    if one.tobytes() == two.tobytes():
        return
    if other is not two:
        defined = (two == other) | ((two != two) & (other != other))
        one, two = one[defined], two[defined]
    rtol = 2e-2 if one.dtype.itemsize <= 2 else 1e-4 if one.dtype.itemsize <= 4 else 1e-9
    np.testing.assert_allclose(one, two, rtol=rtol, atol=1e-6, equal_nan=True)
