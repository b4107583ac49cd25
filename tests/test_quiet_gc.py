"""The compiler is imported without collections; the program's own settings and garbage are kept."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

import fusec
from fusec.compiled.stages import TracedStage
from fusec.core.process.quiet_gc import no_collections


@pytest.fixture(autouse=True)
def nothing_is_frozen() -> Iterator[None]:
    """Objects frozen by the session are as usual in between; the count falls where some die."""
    gc.unfreeze()
    yield
    gc.collect()
    gc.freeze()


class Cycle:
    def __init__(self) -> None:
        self.me = self


def test_nothing_is_collected_inside_and_all_afterwards() -> None:
    seen: list[int] = []
    frozen = gc.get_freeze_count()
    before, inside = weakref.ref(Cycle()), None
    gc.callbacks.append(lambda phase, info: seen.append(info["generation"]))
    try:
        with no_collections():
            kept = [[] for _ in range(100_000)]
            inside = weakref.ref(Cycle())
            assert seen == []
        assert gc.isenabled() and gc.get_freeze_count() == frozen
    finally:
        gc.callbacks.pop()
    gc.collect()
    assert before() is None and inside() is None and len(kept) == 100_000


def test_a_program_that_collects_by_itself_goes_on_to() -> None:
    gc.disable()
    try:
        with no_collections():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_what_the_program_froze_stays_frozen() -> None:
    gc.freeze()
    count = gc.get_freeze_count()
    try:
        with no_collections():
            pass
        assert gc.get_freeze_count() == count and gc.isenabled()
    finally:
        gc.unfreeze()


def test_collections_go_on_after_an_exception() -> None:
    with pytest.raises(ImportError), no_collections():
        raise ImportError
    assert gc.isenabled()


def test_compiling_a_graph_is_not_interrupted_by_collections(
        monkeypatch: pytest.MonkeyPatch) -> None:
    enabled: list[bool] = []
    optimize = TracedStage.optimize

    def recording(stage: TracedStage) -> object:
        enabled.append(gc.isenabled())
        return optimize(stage)

    monkeypatch.setattr(TracedStage, "optimize", recording)
    assert fusec.jit(lambda x: x + 1)(1.0) == 2.0
    assert enabled == [False] and gc.isenabled()
