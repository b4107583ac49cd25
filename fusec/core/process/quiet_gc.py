"""Importing and compiling without the garbage collector going over everything again and again."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collections() -> Iterator[None]:
    """A block that makes much that stays: no collections in it, and none soon after because of it.

    Objects made in it count as old afterwards, as if collections had found them alive.
    """
    if not gc.isenabled():
        yield
        return
    with no_collections_inside():
        yield
        if not gc.get_freeze_count():  # the program has frozen nothing of its own
            gc.freeze()
            gc.unfreeze()


@contextmanager
def no_collections_inside() -> Iterator[None]:
    """A block that makes much, of which some may go: the next collection looks at all of it."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
