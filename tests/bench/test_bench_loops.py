"""The loops that are measured against Numba: a section of the page that is replaced."""

from __future__ import annotations

from fusec.bench import loops


def test_a_section_is_replaced_not_repeated() -> None:
    page = loops.written("# Page\n", "first")
    again = loops.written(page, "second")
    assert again.count(loops.BEGIN) == again.count(loops.END) == 1
    assert "second" in again and "first" not in again and again.startswith("# Page\n")
