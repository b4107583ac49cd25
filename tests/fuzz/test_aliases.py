"""Names of one list, array or object, lists that loops fill, and state that outlives the call: some
seeds, so that a change is judged by its effect on them."""

from __future__ import annotations

import warnings
from types import ModuleType

import aliases
import growing
import outliving
import pytest

from fusec.errors import FirstCallWarning


@pytest.mark.parametrize("first", range(0, 12, 6))
@pytest.mark.parametrize("of", [aliases, growing, outliving])
def test_names_and_what_outlives_the_call(of: ModuleType, first: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FirstCallWarning)
        found = [of.failure(seed) for seed in range(first, first + 6)]
    assert not any(found), "\n".join(filter(None, found))
