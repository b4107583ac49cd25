"""The loop of a training: a step, its metrics, hooks, a checkpoint; and the next one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any, NamedTuple

import numpy as np
import optree

from fusec.errors import user_error

from .checkpoints import TrainingCheckpoints
from .handover import Prefetched
from .handover import prefetch as read_ahead
from .positions import Position, TrainingInputs
from .progress import Progress
from .states import TrainedState

_PATIENCE = 0.2  # seconds


class TrainingLimits(NamedTuple):
    """The options of `train` that say when it saves, and when it ends."""

    steps: int | None
    seconds: float | None
    checkpoint_steps: int | None
    checkpoint_seconds: float | None
    on_nan: str


class TrainingRun:
    """A training as hooks see it.

    ``step``: how many steps are done, from the first training on; ``metrics`` of the last one;
    ``seconds`` since this training began; ``checkpoint``: the path of the last one; ``reason``: why
    it ends, "" while it goes on.
    """

    def __init__(self, state: TrainedState, step: int, checkpoint: str) -> None:
        self._state, self.step, self.checkpoint = state, step, checkpoint
        self.metrics: Any = None
        self.reason = ""
        self._is_interrupted = False  # by a signal, which also ends what goes on after a loss
        self._first, self._start = step, time.monotonic()

    @property
    def state(self) -> Any:
        """The state as it is now."""
        return self._state.given

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._start

    @property
    def steps_per_second(self) -> float:
        """Of this training, on average."""
        return (self.step - self._first) / max(self.seconds, 1e-9)

    def stop(self, reason: str = "a hook stopped it") -> None:
        """End it after this step; the first reason counts."""
        self.reason = self.reason or str(reason) or "stopped"

    def interrupt(self, signal: str) -> None:
        """The same, for a signal."""
        self._is_interrupted = True
        self.stop(signal)

    def go_back(self, checkpoint: str, step: int) -> None:
        """Steps after a checkpoint are done again; they may end it again."""
        self.checkpoint, self.step = checkpoint, step
        if not self._is_interrupted:
            self.reason = ""


class Training:
    """See `fusec.api.training.train.train`."""

    def __init__(
        self, step: Callable[..., Any], state: TrainedState, run: TrainingRun,
        hooks: Sequence[Callable[[TrainingRun], Any]], limits: TrainingLimits,
        saved: TrainingCheckpoints | None, position: Position, bar: Progress,
    ) -> None:
        self.step, self.state, self.run, self.hooks = step, state, run, hooks
        self.limits, self.saved, self.position, self.bar = limits, saved, position, bar
        self._saved_step, self._saved_at = run.step, time.monotonic()

    def over(self, source: TrainingInputs, ahead: int) -> None:
        """Train on these inputs until it is enough, and save."""
        try:
            examples: Any = read_ahead(source, ahead) if ahead else iter(source)
            with closing(examples):
                self._go_on(examples)
        except BaseException as error:
            self._note(error)
            raise
        self.bar.show(self.run.step, self.run.steps_per_second, self.run.metrics, is_last=True)
        if self.saved is not None and self._saved_step != self.run.step:
            self._save()

    def _go_on(self, examples: Iterator[tuple[Any, Position]]) -> None:
        run = self.run
        while not self._is_enough():
            # Who waits for an example looks up now and then, as a signal may end it.
            if isinstance(examples, Prefetched) and not examples.wait(_PATIENCE):
                continue
            try:
                example, position = next(examples)
            except StopIteration:
                run.stop("inputs ended")
                return
            run.metrics = self.state.call(self.step, example)
            run.step, self.position = run.step + 1, position
            if self.limits.on_nan != "ignore" and not self._are_finite():
                return
            for hook in self.hooks:
                hook(run)
            self.bar.show(run.step, run.steps_per_second, run.metrics)
            if self._is_time_to_save():
                self._save()

    def _is_enough(self) -> bool:
        limits, run = self.limits, self.run
        if limits.steps is not None and run.step >= limits.steps:
            run.stop(f"step {limits.steps}")
        if limits.seconds is not None and run.seconds >= limits.seconds:
            run.stop(f"{limits.seconds:g} seconds")
        return bool(run.reason)

    def _are_finite(self) -> bool:
        """Whether metrics are numbers; a state after others is not saved."""
        run = self.run
        paths, leaves, _ = optree.tree_flatten_with_path(run.metrics)
        for path, leaf in zip(paths, leaves, strict=True):
            if is_finite(leaf):
                continue
            name = " ".join(["the metric", *map(str, path)])
            self._saved_step = run.step
            run.stop(f"{name} was {leaf} in step {run.step}")
            if self.limits.on_nan == "stop":
                return False
            raise user_error(
                FloatingPointError, f"{name} is {leaf} in step {run.step}", None,
                "fusec.config.check_numerics names the operation that makes it; on_nan='stop' ends "
                "the training without an error", values=[
                    ("last checkpoint", run.checkpoint)] if run.checkpoint else [])
        return True

    def _is_time_to_save(self) -> bool:
        limits = self.limits
        if self.saved is None:
            return False
        if limits.checkpoint_steps is not None and self.run.step % limits.checkpoint_steps == 0:
            return True
        return limits.checkpoint_seconds is not None and (
            time.monotonic() - self._saved_at >= limits.checkpoint_seconds)

    def _save(self) -> None:
        assert self.saved is not None
        self.run.checkpoint = self.saved.save(self.state, self.run.step, self.position)
        self._saved_step, self._saved_at = self.run.step, time.monotonic()

    def _note(self, error: BaseException) -> None:
        """Say where the training was, and how to go on."""
        where = f"in a training, after {self.run.step} steps"
        if self.run.checkpoint:
            where += f"; the same call goes on from {self.run.checkpoint}"
        error.add_note(where)


def is_finite(x: Any) -> bool:
    """Whether a metric holds no NaN and no infinity, as far as that can be asked of it."""
    if hasattr(x, "__cuda_array_interface__") and hasattr(x, "get"):
        x = x.get()
    if isinstance(x, float | complex | np.inexact):
        return bool(np.isfinite(x))
    if isinstance(x, np.ndarray) and x.dtype.kind in "fc":
        return bool(np.isfinite(x).all())
    return True
