"""Calls of NumPy's functions on large arrays: the samples of the coverage page, made larger."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import fusec
from fusec.core.records import dataclass
from fusec.inspect.coverage import find, numpy_names
from fusec.inspect.coverage_samples import SAMPLES, Sample, V, generic_samples

Call = Callable[..., Any]

# Of vectors as long as the side of a square of so many elements: their results, or the steps to
# them, are as many as such a square has.
OF_SIDES = frozenset((
    "convolve", "correlate", "diag", "diagflat", "ix_", "kron", "linalg.outer", "meshgrid", "outer",
    "poly", "polydiv", "polymul", "polyval", "roots", "vander",
))


def _of_parts(function: Call) -> Call:
    return lambda x, y: function([x, y])


# Samples that name a size, and those of a few parts that are long, where a vector is many parts.
OF_ONE_SIZE: dict[str, list[Sample]] = {
    "arange": [(lambda x: np.arange(len(x)) + x, (V,))],
    "broadcast_to": [(lambda x: np.broadcast_to(x, (2, len(x))), (V,))],
    "empty": [(lambda x: np.empty(len(x)) * 0 + x, (V,))],
    "full": [(lambda x: np.full(len(x), x[0]), (V,))],
    "geomspace": [(lambda x: np.geomspace(1.0, x[1], len(x)), (V,))],
    "lexsort": [(lambda x, y: np.lexsort((x, y)), (V, V))],
    "linspace": [(lambda x: np.linspace(0.0, x[0], len(x)), (V,))],
    "logspace": [(lambda x: np.logspace(0.0, x[0], len(x)), (V,))],
    "ones": [(lambda x: np.ones(len(x)) + x, (V,))],
    "reshape": [(lambda x: np.reshape(x, (2, -1)), (V,))],
    "resize": [(lambda x: np.resize(x, (2, len(x))), (V,))],
    "tri": [(lambda x: np.tri(len(x)) + x, (np.eye(3),))],
    "eye": [(lambda x: np.eye(len(x)) + x, (np.eye(3),))],
    "identity": [(lambda x: np.identity(len(x)) + x, (np.eye(3),))],
    "zeros": [(lambda x: np.zeros(len(x)) + x, (V,))],
    **{name: [(_of_parts(find(name)), (V, V))] for name in (
        "column_stack", "concat", "concatenate", "dstack", "hstack", "stack", "vstack")},
}


@dataclass(frozen=True)
class FirstCallCase:
    """A call of the function of this name on arguments of about so many elements."""

    name: str
    size: int
    call: Call
    arguments: tuple[Any, ...]

    def fresh(self) -> list[Any]:
        """Arguments that the call may write to."""
        return [x.copy() if isinstance(x, np.ndarray) else x for x in self.arguments]


def cases(size: int, names: frozenset[str] = frozenset()) -> Iterator[FirstCallCase]:
    """A case of every function that is not refused, or of those of these names."""
    for name in numpy_names():
        if name in names if names else name != "info":  # which prints its array
            case = _case(name, size)
            if case is not None:
                yield case


def _case(name: str, size: int) -> FirstCallCase | None:
    """The first sample call of the function that NumPy takes at this size, and fusec traces."""
    function = find(name)
    if isinstance(function, type) and issubclass(function, np.generic):
        return None
    vectors = math.isqrt(size) if name in OF_SIDES else size
    for call, arguments in OF_ONE_SIZE.get(name) or SAMPLES.get(name) or generic_samples(function):
        if not any(isinstance(x, np.ndarray) for x in arguments) or not _is_taken(call, arguments):
            continue
        for scaled in _scalings(arguments, size, vectors):
            case = FirstCallCase(name, size, call, scaled)
            if _answers(call, case.fresh()):
                return case
    return None


def _is_taken(call: Call, arguments: tuple[Any, ...]) -> bool:
    """Whether NumPy takes the small sample, and fusec compiles it."""
    small = FirstCallCase("", 0, call, arguments)
    if not _answers(call, small.fresh()):
        return False
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            graph = fusec.jit(call).trace(*small.fresh()).graph
    except Exception:  # what cannot be traced at all is on the coverage page
        return False
    return bool(graph.inputs)


def _answers(call: Call, arguments: list[Any]) -> bool:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            call(*arguments)
        except Exception:
            return False
    return True


def _scalings(
    arguments: tuple[Any, ...], size: int, vectors: int
) -> Iterator[tuple[Any, ...]]:
    """The arguments with more elements: square matrices, then rows as long as they were."""
    for matrix in (_square, _taller):
        yield tuple(_larger(x, size, vectors, matrix) for x in arguments)


def _larger(x: Any, size: int, vectors: int, matrix: Callable[[Any, int], np.ndarray]) -> Any:
    if not isinstance(x, np.ndarray) or not x.ndim:
        return x
    if x.ndim == 1:
        return np.resize(x, vectors)
    return matrix(x, size)


def _square(x: np.ndarray, size: int) -> np.ndarray:
    """Equally many times as long along each axis; a square matrix is regular, as it was."""
    times = max(1, round((size / x.size) ** (1 / x.ndim)))
    larger = np.tile(x, (times,) * x.ndim)
    if x.ndim == 2 and x.shape[0] == x.shape[1]:
        noise = np.random.default_rng(0).uniform(0, 1, larger.shape)
        larger = larger / len(larger) + noise + len(larger) * np.eye(len(larger))
    return larger


def _taller(x: np.ndarray, size: int) -> np.ndarray:
    return np.tile(x, (max(1, size // x.size), *[1] * (x.ndim - 1)))
