"""A training goes on after a worker is lost: from its last checkpoint, with as many workers."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from fusec.core.program_errors import WorkerLostError
from fusec.errors import user_error

from .checkpoints import TrainingCheckpoints
from .loop import Training, TrainingRun
from .positions import Position, TrainingInputs
from .progress import Progress
from .states import TrainedState

MOST_LOSSES = 3  # of one step: then it is the step that ends workers
RECOVERY_SECONDS = 600.0  # a process takes minutes to begin on a machine with other work


def present_cluster() -> Any:
    """The cluster of `fusec.cluster`, None where there is none: then nothing of it is imported."""
    module = sys.modules.get("fusec.distributed.cluster.cluster")
    return None if module is None else module.present_cluster()


class Restarts:
    """The losses of one training, and how it goes on."""

    def __init__(
        self, state: TrainedState, saved: TrainingCheckpoints | None, bar: Progress
    ) -> None:
        self.state, self.saved, self.bar = state, saved, bar
        self._losses: Counter[int] = Counter()  # by step

    def over(
        self, training: Callable[..., Training], run: TrainingRun, source: TrainingInputs,
        ahead: int,
    ) -> None:
        """Train on these inputs, again from a position where a worker was lost."""
        if self.saved is not None and not run.checkpoint and present_cluster() is not None:
            run.checkpoint = self.saved.save(self.state, run.step, source.start)
        while True:
            try:
                training(position=source.start).over(source, ahead)
                return
            except WorkerLostError as error:
                position = self.after(error, run, source.inputs)
            source = TrainingInputs(source.inputs, source.epochs, position)

    def after(self, error: WorkerLostError, run: TrainingRun, inputs: Any) -> Position:
        """Wait for workers, restore the last checkpoint: the position to go on from.

        Raises the error where that cannot be, ``RuntimeError`` for a step that loses workers again
        and again, and ``TimeoutError`` where they do not come back.
        """
        step, cluster = run.step + 1, present_cluster()
        self._losses[step] += 1
        if self.saved is None or not run.checkpoint or cluster is None:
            raise error
        if self._losses[step] >= MOST_LOSSES:
            raise user_error(
                RuntimeError, f"step {step} has lost a worker {MOST_LOSSES} times", None,
                "it may need more memory than a worker has, or end its process: look at the "
                "workers' logs", values=[("last", error.worker), ("checkpoint", run.checkpoint)],
            ) from error
        if isinstance(inputs, Iterator) and not hasattr(inputs, "set_state"):
            error.add_note("the inputs can be passed once, so this process cannot go on: give a "
                           "list, or an object whose __iter__ begins anew")
            raise error
        cluster.recover(RECOVERY_SECONDS)
        found = self.saved.restore(self.state)
        assert found is not None
        path, done, position = found
        run.go_back(path, done)
        self.bar.say(f"worker {error.worker} was lost in step {step}; goes on after step "
                     f"{run.step}, of {run.checkpoint}")
        return position


__all__ = ["Restarts"]
