"""Fixtures of every test: a disk cache of its own, so that runs never meet the user's; the workers
of a run have one, and runs that are told one by FUSEC_TEST_CACHE.

``--part`` runs every eightieth test of each file, but for those marked ``one_python``, and fewer
random programs, for the Pythons and NumPys beside the first; ``--half 0`` and ``--half 1`` of it a
half of the files each, others each day.  ``--on-device /device:CUDAHOST:0`` runs tests in the scope
of a device, ``/device:HEAP:0`` in that of `heap_backend`, but for those marked ``one_device``;
``--one-in 200`` every two hundredth, from another one each day.  ``--one-case-in 5`` runs a fifth
of the cases of each function that has many, others each day, in the folders of `PRODUCTS`, and of
those marked ``repeats``; but all of those marked ``every_case``, lists of faults that were found.
"""

from __future__ import annotations

import atexit
import datetime
import gc
import os
import shutil
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PART = 80
MANY_CASES = 8
# Where cases are products of dtypes, layouts, seeds; elsewhere each is a program that once failed.
PRODUCTS = ("bench", "codegen", "cuda", "devices", "differential", "gradients", "graphs", "ops",
            "passes", "symbolic", "variables")

# Before anything imports fusec: settings are read once, and child processes inherit them.
if "FUSEC_TEST_CACHE" not in os.environ:
    os.environ["FUSEC_TEST_CACHE"] = tempfile.mkdtemp(prefix="fusec-test-cache-")
    atexit.register(shutil.rmtree, os.environ["FUSEC_TEST_CACHE"], ignore_errors=True)
os.environ["FUSEC_CACHE_DIR"] = os.environ["FUSEC_TEST_CACHE"]
os.environ["FUSEC_PROGRESS"] = "0"  # a slow machine adds no lines to what children write


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--part", action="store_true", help=f"every {PART}th test of each file")
    parser.addoption("--half", type=int, choices=(0, 1), help="of the files, others each day")
    parser.addoption("--on-device", default="", help="the device that tests run on")
    parser.addoption("--one-in", type=int, default=1, help="of so many tests, others each day")
    parser.addoption("--one-case-in", type=int, default=1,
                     help=f"of functions with {MANY_CASES} cases or more, others each day")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--part"):
        os.environ["FUZZ_FEW"] = "30"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Files of the other half are not even imported; None leaves it to others."""
    half = config.getoption("--half")
    if half is None or collection_path.suffix != ".py":
        return None
    number = zlib.crc32(str(collection_path.relative_to(config.rootpath)).encode())
    return True if (number + rotation()) % 2 != half else None


def pytest_report_header(config: pytest.Config) -> str:
    shares = ((config.getoption("--one-in"), "test"),
              (config.getoption("--one-case-in"), "case of functions with many"))
    return "; ".join(f"one {of} in {every}, from number {rotation() % every}"
                     for every, of in shares if every > 1)


def rotation() -> int:
    """The number of the day, or the variable ROTATION: to run a day's tests again."""
    return int(os.environ.get("ROTATION") or datetime.date.today().toordinal())


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    chosen = items[:]
    if config.getoption("--on-device"):
        chosen = [i for i in chosen if not i.get_closest_marker("one_device")]
    chosen = cases_of_today(chosen, config.getoption("--one-case-in"))
    every = config.getoption("--one-in")
    chosen = chosen[rotation() % every::every]
    if config.getoption("--part"):
        chosen = part_of_each_file(chosen)
    kept = set(chosen)
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = chosen


def part_of_each_file(items: list[pytest.Item]) -> list[pytest.Item]:
    places: Counter[object] = Counter()
    chosen = []
    for item in items:
        if item.get_closest_marker("one_python"):
            continue
        if places[item.path] % PART == 0:
            chosen.append(item)
        places[item.path] += 1
    return chosen


def cases_of_today(items: list[pytest.Item], every: int) -> list[pytest.Item]:
    """All of functions with few cases; of the others one case in so many, begun elsewhere in each
    function, so that a day's cases do not all have the first dtype, say."""
    families: dict[str, list[pytest.Item]] = {}
    for item in items:
        families.setdefault(item.nodeid.partition("[")[0], []).append(item)
    chosen = set[pytest.Item]()
    for function, cases in families.items():
        share = min(every, len(cases)) if repeat_one_another(cases) else 1
        chosen.update(cases[(rotation() + zlib.crc32(function.encode())) % share::share])
    return [item for item in items if item in chosen]


def repeat_one_another(cases: list[pytest.Item]) -> bool:
    first = cases[0]
    if first.get_closest_marker("every_case"):
        return False
    is_product = len(cases) >= MANY_CASES and first.path.parent.name in PRODUCTS
    return is_product or first.get_closest_marker("repeats") is not None


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

    if "HEAP" in name:
        _register_heap()
    with fusec.device(name):
        yield


def _register_heap() -> None:
    from heap_backend import KIND

    from fusec.codegen import backends

    backends.KINDS["heap"] = KIND


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The modules that went through LLVM, none of them from disk."""
    from fusec import config
    from fusec.codegen.machine_code import llvm

    texts: list[str] = []
    compile_ = llvm._compile

    def counted(text: str, *rest: Any) -> Any:
        texts.append(text)
        return compile_(text, *rest)

    monkeypatch.setattr(llvm, "_compile", counted)
    with config.override(cache_dir="off"):
        yield texts
