"""Which of the sizes that specs leave open are one size, by trial."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TypeVar

Found = TypeVar("Found")
MOST_AXES = 8  # more are too many trials


def refined(
    count: int, tried: Callable[[Sequence[int]], Found | None], coarsest: Found
) -> tuple[list[int], Found]:
    """The group of each of so many axes, beginning with one group: one axis, then two are set apart
    where ``tried`` gives something for such groups; with what it gave at last."""
    groups, best = [0] * count, coarsest
    for together in (1, 2):
        for chosen in itertools.combinations(range(count), together):
            if len({groups[k] for k in chosen}) != 1 or groups.count(
                    groups[chosen[0]]) <= together:
                continue
            trial = [1 + max(groups) if k in chosen else g for k, g in enumerate(groups)]
            found = tried(trial)
            if found is not None:  # else these axes are of one size
                groups, best = trial, found
    return groups, best
