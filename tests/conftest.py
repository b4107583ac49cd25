"""What every test shares: a disk cache of its own, so that runs never meet the user's; the workers
of a run have one, and runs that are told one by FUSEC_TEST_CACHE.

``--part`` runs every fortieth test of each file, and fewer random programs, for the Pythons and
NumPys beside the first.  ``--on-device /device:CUDAHOST:0`` runs tests in the scope of a device,
but for those marked ``one_device``; ``--one-in 200`` every two hundredth, from another one each
day.
"""

from __future__ import annotations

import atexit
import datetime
import gc
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

PART = 40

# Before anything imports fusec: settings are read once, and child processes inherit them.
if "FUSEC_TEST_CACHE" not in os.environ:
    os.environ["FUSEC_TEST_CACHE"] = tempfile.mkdtemp(prefix="fusec-test-cache-")
    atexit.register(shutil.rmtree, os.environ["FUSEC_TEST_CACHE"], ignore_errors=True)
os.environ["FUSEC_CACHE_DIR"] = os.environ["FUSEC_TEST_CACHE"]
os.environ["FUSEC_PROGRESS"] = "0"  # a slow machine adds no lines to what children write


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--part", action="store_true", help=f"every {PART}th test of each file")
    parser.addoption("--on-device", default="", help="the device that tests run on")
    parser.addoption("--one-in", type=int, default=1, help="of so many tests, others each day")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--part"):
        os.environ["FUZZ_FEW"] = "30"


def pytest_report_header(config: pytest.Config) -> str:
    every = config.getoption("--one-in")
    return f"one test in {every}, from number {rotation() % every}" if every > 1 else ""


def rotation() -> int:
    """The number of the day, or what the variable ROTATION says: to run a day's tests again."""
    return int(os.environ.get("ROTATION") or datetime.date.today().toordinal())


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--on-device"):
        of_one = [i for i in items if i.get_closest_marker("one_device")]
        items[:] = [i for i in items if i not in set(of_one)]
        config.hook.pytest_deselected(items=of_one)
    every = config.getoption("--one-in")
    if every > 1:
        chosen = items[rotation() % every::every]
        config.hook.pytest_deselected(items=[i for i in items if i not in set(chosen)])
        items[:] = chosen
    if not config.getoption("--part"):
        return
    places: Counter[object] = Counter()
    chosen, left = [], []
    for item in items:
        (left if places[item.path] % PART else chosen).append(item)
        places[item.path] += 1
    items[:] = chosen
    config.hook.pytest_deselected(items=left)


def pytest_collection_finish() -> None:
    """Twenty thousand items are two million objects, two seconds of each later collection."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def scope_of_a_device(request: pytest.FixtureRequest) -> Iterator[None]:
    name = request.config.getoption("--on-device")
    if not name:
        yield
        return
    import fusec

    with fusec.device(name):
        yield


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The modules that went through LLVM, none of them from disk."""
    from fusec import config
    from fusec.codegen import llvm

    texts: list[str] = []
    compile_ = llvm._compile

    def counted(text: str, *rest: Any) -> Any:
        texts.append(text)
        return compile_(text, *rest)

    monkeypatch.setattr(llvm, "_compile", counted)
    with config.override(cache_dir="off"):
        yield texts
