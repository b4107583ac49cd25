"""Interleaved timing: every case in every round, in random order, on inputs not seen before."""

from __future__ import annotations

import contextlib
import gc
import itertools
import math
import random
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from .inputs import Inputs, copied, pool_size
from .stats import Timing, summarise

KEPT_RESULTS = 8
BATCH_SECONDS = 3e-4
MAX_CALLS = 4096
MAX_POOL = 32
MIN_ROUNDS = 7
MAX_ROUNDS = 300


@dataclass
class Case:
    """One thing to time.

    ``prepare`` turns NumPy arguments into the case's own (outside the timing), ``context`` is
    entered around a batch, ``keep`` holds on to the last eight results.
    """

    name: str
    call: Callable[..., Any]
    keep: bool = False
    prepare: Callable[[tuple[Any, ...]], tuple[Any, ...]] | None = None
    context: Callable[[], contextlib.AbstractContextManager[Any]] = contextlib.nullcontext
    calls: int = 1
    samples: list[float] = field(default_factory=list)
    kept: deque[Any] = field(default_factory=lambda: deque(maxlen=KEPT_RESULTS))

    def batch(self, pool: Sequence[tuple[Any, ...]]) -> float:
        """Seconds of ``calls`` calls that go round the pool."""
        call, keep = self.call, self.kept.append
        turns = itertools.islice(itertools.cycle(pool), self.calls)
        if self.keep:
            start = time.perf_counter()
            for args in turns:
                keep(call(*args))
            return time.perf_counter() - start
        start = time.perf_counter()
        for args in turns:
            call(*args)
        return time.perf_counter() - start

    @property
    def timing(self) -> Timing:
        return summarise(self.samples, self.calls)


@contextlib.contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Collections inside a batch would be charged to whoever runs then."""
    enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _pool(case: Case, base: Sequence[tuple[Any, ...]], mutates: bool) -> Sequence[tuple[Any, ...]]:
    sets = [copied(args) for args in base] if mutates else base
    return sets if case.prepare is None else [case.prepare(args) for args in sets]


def _warm_up(case: Case, args: tuple[Any, ...], mutates: bool) -> float:
    """The better of two calls, in seconds."""
    pool = _pool(case, [args, args], mutates)
    with case.context():
        return min(case.batch([own]) for own in pool)


def _choose_calls(cases: Sequence[Case], args: tuple[Any, ...], mutates: bool) -> float:
    """Set how many calls a batch has; returns the seconds a round will take."""
    total = 0.0
    for case in cases:
        seconds = _warm_up(case, args, mutates)
        calls = math.ceil(BATCH_SECONDS / max(seconds, 1e-8))
        # A function that writes to its arguments must meet each set of them once.
        case.calls = min(calls, MAX_POOL if mutates else MAX_CALLS)
        total += seconds * case.calls
    return total


def run(
    cases: Sequence[Case], inputs: Inputs, *, repeats: int | None, budget: float,
    mutates: bool = False, seed: int = 0,
) -> None:
    """Fill every case's samples: ``repeats`` rounds, or as many as fit in ``budget`` seconds.

    At least seven rounds are run whatever they cost.  Making and copying inputs is never timed.
    """
    rng = random.Random(seed)
    round_seconds = _choose_calls(cases, inputs(0), mutates)
    rounds = repeats or max(MIN_ROUNDS, min(MAX_ROUNDS, int(budget / max(round_seconds, 1e-6))))
    requested = min(MAX_POOL, max(case.calls for case in cases))
    deadline = time.perf_counter() + 3.0 * budget
    with no_garbage_collection():
        for k in range(rounds):
            base = _round_inputs(inputs, k, requested)
            for case in rng.sample(list(cases), len(cases)):
                pool = _pool(case, base, mutates)
                with case.context():
                    case.samples.append(case.batch(pool) / case.calls)
            if repeats is None and k + 1 >= MIN_ROUNDS and time.perf_counter() > deadline:
                break


def _round_inputs(inputs: Inputs, k: int, requested: int) -> list[tuple[Any, ...]]:
    """This round's sets of arguments: never those of the round before."""
    first = inputs(1 + k * requested)
    count = requested if requested == 1 else pool_size(first, requested)
    return [first, *(inputs(1 + k * requested + j) for j in range(1, count))]
