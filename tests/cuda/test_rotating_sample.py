"""A few random programs on the emulated CUDA device, others each day; `emulated_campaign` is all.

``ROTATION=739579`` in the environment runs those of that day again.
"""

from __future__ import annotations

import warnings
from collections import Counter

import pytest
from conftest import rotation
from emulated_campaign import campaign, seeds

# By the campaign: pointers to the first of no elements; memory that is sent before it is written.
FOUND = ("45", "69", "w691", "w400107")
COUNT = 10


@pytest.mark.parametrize("seed", [*FOUND, *seeds(rotation() % 100_000 * COUNT, COUNT)])
def test_programs(seed: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        counts: Counter[str] = campaign([seed])
    assert not counts["wrong"], "python tests/cuda/emulated_campaign.py --only prints what"
