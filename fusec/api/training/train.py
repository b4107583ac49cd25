"""`train`: a step again and again, watched, saved, and gone on with."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Literal

from fusec.core.records import dataclass
from fusec.errors import user_error

from .checkpoints import TrainingCheckpoints
from .loop import Training, TrainingLimits, TrainingRun
from .positions import TrainingInputs, first_position
from .progress import Progress
from .restarts import Restarts
from .signals import ending
from .states import TrainedState

Hook = Callable[[TrainingRun], Any]


@dataclass(frozen=True)
class TrainingReport:
    """The end of a training.

    ``state`` is the last one, ``metrics`` those of the last step, ``step`` counts steps from the
    first training on, ``seconds`` this one's, ``reason`` says why it ended, ``checkpoint`` is the
    path of its last checkpoint and ``resumed_from`` of the one it began with ("": none).
    """

    state: Any
    metrics: Any
    step: int
    seconds: float
    reason: str
    checkpoint: str
    resumed_from: str

    def __str__(self) -> str:
        parts = [f"{self.step} steps in {self.seconds:.1f} s, until {self.reason}"]
        parts += [f"begun at {self.resumed_from}"] if self.resumed_from else []
        parts += [f"saved at {self.checkpoint}"] if self.checkpoint else []
        return "; ".join(parts)


def train(
    step: Callable[..., Any], state: Any, inputs: Iterable[Any], *,
    hooks: Sequence[Hook] = (), steps: int | None = None, seconds: float | None = None,
    epochs: int | None = None, checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_steps: int | None = None, checkpoint_seconds: float | None = 600.0,
    keep: int | None = 3, resume: bool = True,
    on_nan: Literal["raise", "stop", "ignore"] = "raise", prefetch: int = 2,
    progress: bool | None = None,
) -> TrainingReport:
    """Call ``step`` for each example of ``inputs`` until that is enough (docs/training.md).

    ``state``: objects that hold Variables, and ``step(*example)`` returns metrics (numbers); or a
    tree of arrays, and ``step(state, *example)`` returns the new state and metrics.  ``inputs``:
    anything to iterate over, read by a thread, ``prefetch`` examples ahead: once, ``epochs`` times,
    or, with ``steps`` or ``seconds`` alone, as often as it takes.

    It ends when inputs do, after ``steps`` (counted from the first training on), after ``seconds``,
    when a hook calls ``run.stop(reason)``, at SIGINT or SIGTERM, after the step that runs, and
    where a metric is NaN or infinite: with ``FloatingPointError``, or ``on_nan="stop"``.  Hooks are
    functions of a `TrainingRun`, called in order after each step.

    ``checkpoint``: a path as for `fusec.Checkpoint`, for the state with its generators, the step
    and the place in the inputs, every ``checkpoint_steps``, every ``checkpoint_seconds`` and at the
    end; the newest ``keep`` stay.  With ``resume`` the newest one there is gone on with.
    Where a worker of `fusec.cluster` is lost it goes on from the last one (docs/workers.md); a step
    that loses a worker three times is a ``RuntimeError``.

    ``progress``: whether to draw a bar on stderr; None: where that is a terminal.

    Raises what step, hooks and inputs raise (a note says which step it was), ``ValueError`` for a
    checkpoint of another state and for options that do not fit, ``TypeError`` for a state that
    cannot be saved, and ``OSError`` where a checkpoint cannot be written.
    """
    limits = TrainingLimits(steps, seconds, checkpoint_steps, checkpoint_seconds, on_nan)
    _check(step, limits, epochs, prefetch)
    own = TrainedState(state)
    saved = None if checkpoint is None else TrainingCheckpoints(checkpoint, keep)
    found = saved.restore(own) if saved is not None and resume else None
    path, first, position = found or ("", 0, first_position(inputs))
    is_one_pass = epochs is None and steps is None and seconds is None
    source = TrainingInputs(inputs, 1 if is_one_pass else epochs, position)
    run = TrainingRun(own, first, path)
    total = min((n for n in (steps, source.steps) if n is not None), default=None)
    with Progress(progress, total) as bar, ending(run.interrupt):
        if path:
            bar.say(f"goes on after step {first}, of {path}")
        made = partial(Training, step, own, run, hooks, limits, saved, bar=bar)
        Restarts(own, saved, bar).over(made, run, source, prefetch)
    return TrainingReport(own.given, run.metrics, run.step, run.seconds, run.reason,
                          run.checkpoint, path)


def _check(step: Any, limits: TrainingLimits, epochs: Any, prefetch: Any) -> None:
    if not callable(step):
        raise user_error(TypeError, "the step of a training is a function",
                         values=[("given", type(step).__name__)])
    counts = (("steps", limits.steps, 0), ("epochs", epochs, 0), ("prefetch", prefetch, 0),
              ("checkpoint_steps", limits.checkpoint_steps, 1))
    for name, value, least in counts:
        if value is not None and (type(value) is not int or value < least):
            raise user_error(ValueError, f"{name} is a number from {least} on",
                             values=[("given", repr(value))])
    for name in ("seconds", "checkpoint_seconds"):
        time: Any = getattr(limits, name)
        if time is not None and not (isinstance(time, int | float) and time >= 0):
            raise user_error(ValueError, f"{name} is a time in seconds, or None",
                             values=[("given", repr(time))])
    if limits.on_nan not in ("raise", "stop", "ignore"):
        raise user_error(ValueError, "on_nan is 'raise', 'stop' or 'ignore'",
                         values=[("given", repr(limits.on_nan))])
