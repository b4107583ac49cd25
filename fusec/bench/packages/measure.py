"""One function of a package: is it compiled, is it right, how fast is it?"""

from __future__ import annotations

import contextlib
import re
import signal
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import fusec
from fusec.errors import FusecError

from ..measuring.inputs import copied
from .case import Cases

SECONDS = 0.4  # for the rounds of one function
LONGEST = 60.0  # for its first call
TOLERANCE = 1e-9  # of the largest element: sums may be taken in another order


@dataclass(frozen=True)
class Finding:
    """The result for one function: seconds of an eager, a compiled and the first compiled call.

    Where fusec refuses it there are no times but a ``refusal`` and its ``place``; where results
    differ from NumPy's, ``problem`` says how.
    """

    package: str
    function: str
    eager: float = 0.0
    compiled: float = 0.0
    first: float = 0.0
    refusal: str = ""
    place: str = ""
    problem: str = ""

    @property
    def speedup(self) -> float:
        return self.eager / self.compiled if self.compiled else 0.0


def measured(package: str, cases: Cases, name: str) -> Finding:
    """The finding for one function; raises its exceptions without fusec."""
    function, args = cases.function(name), cases.calls[name]
    eager_args, compiled_args = copied(args), copied(args)
    with _quiet():
        want = function(*eager_args)
        compiled = fusec.jit(function)
        start = time.perf_counter()
        try:
            with _at_most(LONGEST):
                result = compiled(*compiled_args)
        except Exception as error:
            return Finding(package, name, refusal=_reason(error), place=_place(error))
        first = time.perf_counter() - start
        problem = difference(result, want) or difference(compiled_args, eager_args)
        times = _rounds(function, compiled, args)
    return Finding(package, name, *times, first, problem=problem)


def _reason(error: Exception) -> str:
    """The refusal, and its callee."""
    if not isinstance(error, FusecError):
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    called = [text.partition(" (")[0] for label, text in error.diagnostic.values
              if label == "called"]
    within = f" (in {called[0]})" if called and called[0] not in error.diagnostic.title else ""
    short = re.sub(r" while \S+ is traced, but this value is only known when the compiled code "
                   r"runs| is not supported inside a fusec\.jit function", "",
                   error.diagnostic.title)
    return short + within


def _place(error: Exception) -> str:
    """The user's line: the file's name is enough to find it in the package."""
    loc = error.loc if isinstance(error, FusecError) else None
    if loc is None:
        return ""
    return f"{loc.file.rpartition('/')[2]}:{loc.line}"


def _rounds(
    eager: Callable[..., Any], compiled: Callable[..., Any], args: tuple[Any, ...]
) -> tuple[float, float]:
    """Medians of a call of each, in turns, on fresh copies."""
    samples: dict[Any, list[float]] = {eager: [], compiled: []}
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end or len(samples[eager]) < 5:
        for call, seconds in samples.items():
            own_args = copied(args)
            start = time.perf_counter()
            call(*own_args)
            seconds.append(time.perf_counter() - start)
    first, second = (statistics.median(seconds) for seconds in samples.values())
    return first, second


def difference(ours: Any, numpys: Any) -> str:
    """How results differ in kind or value; '' where they do not."""
    if isinstance(numpys, (tuple, list)):
        if type(ours) is not type(numpys) or len(ours) != len(numpys):
            return f"{type(ours).__name__} for {type(numpys).__name__}"
        return next(filter(None, map(difference, ours, numpys)), "")
    if isinstance(numpys, dict):
        return f"keys {list(ours)} for {list(numpys)}" if list(ours) != list(numpys) else (
            difference(list(ours.values()), list(numpys.values())))
    if not isinstance(numpys, (np.ndarray, np.generic, int, float, complex)):
        return _kinds(ours, numpys)
    if type(ours) is not type(numpys):
        return _kinds(ours, numpys)
    return _numbers(np.asarray(ours), np.asarray(numpys))


def _kinds(ours: Any, numpys: Any) -> str:
    if type(ours) is type(numpys):
        return ""
    return f"{type(ours).__name__} for {type(numpys).__name__}"


def _numbers(a: np.ndarray, b: np.ndarray) -> str:
    if a.dtype != b.dtype or a.shape != b.shape:
        return f"{a.dtype}{list(a.shape)} for {b.dtype}{list(b.shape)}"
    if b.dtype.kind not in "fc":
        return "" if np.array_equal(a, b) else "other values"
    finite = np.isfinite(b)
    if not np.array_equal(np.isfinite(a), finite) or not np.array_equal(
            a[~finite], b[~finite], equal_nan=True):
        return "other NaN or infinities"
    scale = np.abs(b[finite]).max(initial=0.0)
    error = np.abs(a[finite] - b[finite]).max(initial=0.0)
    return "" if error <= TOLERANCE * scale else f"differs by {error / scale:.1e} of the largest"


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Raises ``TimeoutError`` in the block after ``seconds``; on systems without SIGALRM, never."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def stop(*_: Any) -> None:
        raise TimeoutError(f"the first call takes longer than {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


__all__ = ["Finding", "difference", "measured"]
