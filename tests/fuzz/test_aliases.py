"""Names of one list, array or object: some seeds, so that a change is judged by what it changes."""

from __future__ import annotations

import warnings

import pytest
from aliases import failure

from fusec.errors import FirstCallWarning


@pytest.mark.parametrize("first", range(0, 12, 6))
def test_names_of_one_thing(first: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FirstCallWarning)
        found = [failure(seed) for seed in range(first, first + 6)]
    assert not any(found), "\n".join(filter(None, found))
