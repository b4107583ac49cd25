"""The progress bar of a training: steps, steps a second, the time left, metrics."""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
import optree

_EVERY = 0.1  # seconds between two looks at metrics


class Progress:
    """A bar on stderr; ``shows=None``: where that is a terminal."""

    def __init__(self, shows: bool | None, steps: int | None) -> None:
        self.steps, self._bar, self._at = steps, None, 0.0
        if not (sys.stderr.isatty() if shows is None else shows):
            return
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        self._bar = Progress(
            TextColumn("training"), BarColumn(), MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"), TimeElapsedColumn(), TextColumn("left"),
            TimeRemainingColumn(), TextColumn("{task.fields[metrics]}"),
            console=Console(stderr=True))

    def __enter__(self) -> Progress:
        if self._bar is not None:
            self._bar.start()
            self._task = self._bar.add_task("", total=self.steps, rate="", metrics="")
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, step: int, rate: float, metrics: Any, is_last: bool = False) -> None:
        """After a step; asks the metrics for their numbers a few times a second."""
        if self._bar is None or (time.monotonic() - self._at < _EVERY and not is_last):
            return
        self._at = time.monotonic()
        self._bar.update(self._task, completed=step, rate=f"{rate:.4g} steps/s",
                         metrics=text_of(metrics))

    def say(self, text: str) -> None:
        """A line, above the bar."""
        if self._bar is not None:
            self._bar.console.print(text, markup=False, highlight=False)


def text_of(metrics: Any) -> str:
    """Numbers in a line, with their names: ``loss 0.25``."""
    paths, leaves, _ = optree.tree_flatten_with_path(metrics, none_is_leaf=False)
    parts = [" ".join([*map(str, path), f"{number:.4g}"])
             for path, leaf in zip(paths, leaves, strict=True)
             if (number := number_of(leaf)) is not None]
    return ", ".join(parts)


def number_of(x: Any) -> float | None:
    """A real number of the host's; None: it is none."""
    if isinstance(x, np.ndarray) and x.ndim == 0:
        x = x[()]
    return float(x) if isinstance(x, int | float | np.integer | np.floating) else None
