"""Whether the function is going to be differentiated: asked where a program gives a derivative.

A rule is only traced for derivatives; all other calls are those of the function itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Differentiated:
    """Of a trace: how often, and the function that gives a value partial derivatives."""

    times = 0
    with_partials: Callable[..., Any] | None = None

    @contextmanager
    def more(self, by: int) -> Iterator[None]:
        """The traced code is differentiated so many times more."""
        self.times += by
        try:
            yield
        finally:
            self.times -= by
