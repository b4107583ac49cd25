"""Numbers, histograms, pictures and texts of a run, for TensorBoard.

    with fusec.summary.writer("runs/1", every=10):
        for i in range(1000):
            loss = step(x, i)          # a jitted function with fusec.summary.scalar("loss", ...)

Each function works in compiled functions, also in branches and loops, where it writes at each
call in the program's order, as `fusec.print` does, and outside.  ``step`` is an int, which may be
traced; the values are written where it is a multiple of the writer's ``every``.  Outside of a
writer each raises ``RuntimeError``; in ``writer(None)`` they do nothing, at no cost: compiled
functions are compiled without them.

The files are TensorBoard's event files, written with tensorboardX (``pip install fusec[summary]``).
"""

from __future__ import annotations

from typing import Any

from fusec.api.summaries import Writer as writer
from fusec.api.summaries import every_now, record
from fusec.core.code_roles import CONVERTED

__all__ = ["histogram", "image", "scalar", "text", "writer"]
FUSEC_ROLE = CONVERTED  # the condition is one of the graph where data decides the step


def scalar(name: str, value: Any, *, step: Any) -> None:
    """Write a number under a name; an array of one element is one.

    Raises ``TypeError`` for other arrays and complex numbers.
    """
    every = every_now()
    if every and (every == 1 or step % every == 0):
        record("scalar", name, value, step)


def histogram(name: str, values: Any, *, step: Any) -> None:
    """Write how the elements of an array of any shape are distributed, over TensorBoard's own
    buckets, which grow by a tenth; elements that are not finite are left out.
    """
    every = every_now()
    if every and (every == 1 or step % every == 0):
        record("histogram", name, values, step)


def image(name: str, pixels: Any, *, step: Any) -> None:
    """Write a picture: an array of shape (height, width) or (height, width, channels) with 1, 3
    or 4 channels, uint8, or floats of which 0 is black and 1 is white.

    Raises ``TypeError`` for other shapes and dtypes.  Floats are clipped; NaN is black.
    """
    every = every_now()
    if every and (every == 1 or step % every == 0):
        record("image", name, pixels, step)


def text(name: str, words: str, *, step: Any) -> None:
    """Write a text, which TensorBoard reads as Markdown.  In a compiled function it is fixed while
    tracing."""
    every = every_now()
    if every and (every == 1 or step % every == 0):
        record("text", name, words, step)
