"""The timeline: its entries, its cost, and files that can or cannot be written."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import threading
import timeit
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from test_threads import _child_status

import fusec
from fusec import config
from fusec.api.profile import Profile
from fusec.compiled.reports import history
from fusec.core import device_rates, timeline
from fusec.ir.device_names import DeviceName
from fusec.runtime.devices import registry
from tests.programs.corpus import programs
from tests.programs.expected_failures import EXPECTED_FAILURES
from tests.programs.measure import check

Event = dict[str, Any]
CPU0, CPU1 = (f"/job:localhost/task:0/device:CPU:{i}" for i in range(2))


@pytest.fixture(autouse=True)
def no_profile_is_left() -> Iterator[None]:
    yield
    assert not timeline.on and Profile._taken is None and not history.on


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "trace.json"


def events(path: Path) -> list[Event]:
    """The file's events, after checks of the invariants of viewers."""
    written = json.loads(path.read_text(), parse_constant=pytest.fail)
    found: list[Event] = written["traceEvents"]
    named = {e["pid"] for e in found if e["name"] == "process_name"}
    rows = {(e["pid"], e["tid"]) for e in found if e["name"] == "thread_name"}
    for event in found:
        assert event["pid"] in named
        assert event["ph"] in "MXCsf"
        assert event["ph"] == "M" or (event["pid"], event["tid"]) in rows
        assert event["ph"] == "M" or event["ts"] >= 0
    _check_nesting(spans(found))
    return found


def _check_nesting(found: list[Event]) -> None:
    """Spans of one row lie within each other or apart, as viewers draw them."""
    rows: dict[tuple[int, int], list[Event]] = {}
    for event in found:
        rows.setdefault((event["pid"], event["tid"]), []).append(event)
    for row in rows.values():
        open_: list[float] = []
        for event in sorted(row, key=lambda e: (e["ts"], -e["dur"])):
            end = event["ts"] + event["dur"]
            while open_ and open_[-1] <= event["ts"]:
                open_.pop()
            assert not open_ or end <= open_[-1] + 0.5, event
            open_.append(end)


def spans(found: list[Event], kind: str | None = None) -> list[Event]:
    return [e for e in found if e["ph"] == "X" and kind in (None, e["cat"])]


def titles(found: list[Event], name: str = "process_name") -> dict[int, str]:
    return {e["pid"]: e["args"]["name"] for e in found if e["name"] == name}


def program(x: np.ndarray, y: np.ndarray) -> Any:
    z = np.sin(x) * y
    w = z @ z.T
    s = np.sort(w, axis=1)
    t = 0.0
    for i in range(len(x)):
        t = t + s[i, 0] * i
    return s * t, (w + 1).sum()


X = np.random.default_rng(0).random((40, 40))
Y = X + 1


def within(inner: Event, outer: Event) -> bool:
    return bool(outer["ts"] <= inner["ts"]
                and inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"] + 0.001)


def test_a_first_call_and_a_second(path: Path) -> None:
    f = fusec.jit(program)
    with fusec.profile(path):
        f(X, Y)
        f(X, Y)
    found = events(path)
    first, second = spans(found, "call")
    assert first["name"] == second["name"] == "program"
    assert first["args"]["line"] == second["args"]["line"] == (
        f"{__file__}:{program.__code__.co_firstlineno}")
    (trace,) = spans(found, "trace")
    assert trace["name"] == "trace of program" and within(trace, first)
    assert {e["name"] for e in spans(found, "passes")} >= {"passes of program", "fusion", "cse"}
    assert {"lowering of program", "code of program"} == {
        e["name"] for e in spans(found, "codegen")}
    assert spans(found, "compile")
    kernels, calls = spans(found, "kernel"), spans(found, "library")
    assert len(kernels) == 4 and [e["args"]["op"] for e in calls] == ["MatMul", "Sort"] * 2
    line = program.__code__.co_firstlineno
    assert [e["args"]["line"] for e in calls[:2]] == [f"{__file__}:{line + 2}",
                                                      f"{__file__}:{line + 3}"]
    assert kernels[0]["args"]["bytes"] == 3 * X.nbytes  # x and y read, z written
    assert kernels[0]["args"]["operations"] == 2 * X.size
    (loop, _) = spans(found, "control")
    assert loop["args"]["runs"] == "native"
    assert titles(found) == {1: "program and compiler", 2: "/device:CPU:0"}
    assert {e["pid"] for e in kernels} == {2} and {e["pid"] for e in spans(found, "call")} == {1}
    assert within({**calls[2], "pid": 1}, second)


@pytest.mark.parametrize("make", [
    lambda x: (np.sin(x) * 2).sum(), lambda x: {"a": x * 2, "b": [x.sum(), 3]},
    lambda x: np.sort(x)[::-1] * 2, lambda x: (x[0], x[1])])
def test_results_are_those_without_a_profile(path: Path, make: Callable[..., Any]) -> None:
    f, x = fusec.jit(make), np.random.default_rng(1).random(1000)
    want = [f(x) for _ in range(3)][-1]
    for _ in range(2):
        with fusec.profile(path):
            got = [f(x) for _ in range(3)]
        assert len(spans(events(path), "call")) == 3
        for each in [*got, f(x)]:
            assert str(each) == str(want)


def test_sizes_that_only_the_run_knows(path: Path) -> None:
    f, x = fusec.jit(lambda x: np.sin(x[x > 0.5]) * 2), np.random.default_rng(1).random(1000)
    want = f(x)
    with fusec.profile(path):
        np.testing.assert_array_equal(f(x), want)
    (kernel,) = (e for e in spans(events(path), "kernel") if "bytes" not in e["args"])
    assert "operations" not in kernel["args"] and "line" in kernel["args"]


@pytest.mark.parametrize("devices", [1, 2])
def test_programs_of_the_corpus(path: Path, devices: int) -> None:
    with config.override(logical_cpu_devices=devices):
        for program in programs()[devices::7]:
            if program.name not in EXPECTED_FAILURES:
                with fusec.profile(path):
                    assert check(program, program.small) == ""
                kinds = {e["cat"] for e in spans(events(path))}
                assert {"call", "trace"} <= kinds and kinds & {"kernel", "library", "control"}


def test_variables_and_written_arguments(path: Path) -> None:
    v = fusec.Variable(np.zeros(1000))

    @fusec.jit
    def f(x: np.ndarray) -> np.ndarray:
        v.assign_add(x)
        x[0] = 7.0
        return v * 2

    x, want = np.ones(1000), np.zeros(1000)
    f(x), f(x)
    with fusec.profile(path):
        for _ in range(3):
            x[0] = 1.0
            want = f(x)
    np.testing.assert_array_equal(v.numpy()[1:], 5.0)
    assert x[0] == 7.0 and want[1] == 10.0
    assert len(spans(events(path), "kernel")) >= 3


def test_errors_are_the_programs_and_the_file_is_written(path: Path) -> None:
    @fusec.jit
    def f(x: np.ndarray, i: int) -> Any:
        return x[i] * 2

    x = np.ones(3)
    f(x, 0), f(x, 1)
    with pytest.raises(IndexError, match="out of bounds"), fusec.profile(path):
        f(x, 2)
        f(x, 9)
    assert len(spans(events(path), "call")) >= 1
    assert f(x, 2) == 2.0


def test_calls_of_several_threads_have_rows_of_their_own(path: Path) -> None:
    f = fusec.jit(lambda x: np.sin(x) * 2)
    f(X)
    meet = threading.Barrier(3)

    def work() -> None:
        meet.wait(30)
        for _ in range(20):
            f(X)

    with fusec.profile(path):
        callers = [threading.Thread(target=work, name=f"caller-{i}") for i in range(3)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
    found = events(path)
    rows = {e["tid"] for e in spans(found, "kernel")}
    assert len(rows) == 3 and len(spans(found, "call")) == 60
    names = [e["args"]["name"] for e in found if e["name"] == "thread_name"]
    assert sum(name.startswith("caller-1 (") for name in names) == 2  # of the program, of CPU:0


def test_what_a_device_runs_is_in_its_row(path: Path) -> None:
    f = fusec.jit(lambda x: np.cos(x) * 2)
    f(X)
    with config.override(logical_cpu_devices=2):
        f(X), f(X)
        device = registry.matching(DeviceName(type="CPU", index=1))[0]
        ended = threading.Event()
        with fusec.profile(path):

            def work() -> None:
                f(X)
                ended.set()

            device.submit(work)
            assert ended.wait(30)
    found = events(path)
    (kernel,) = spans(found, "kernel")
    assert titles(found)[kernel["pid"]] == "/device:CPU:1"
    (name,) = (e["args"]["name"] for e in found if e["name"] == "thread_name" and (
        e["pid"], e["tid"]) == (kernel["pid"], kernel["tid"]))
    assert name.startswith("fusec-CPU:1 (")


def over_two(x: np.ndarray) -> Any:
    with fusec.device("/device:CPU:1"):
        a = np.cos(np.sort(x, axis=0)) * 2
    with fusec.device("/device:CPU:0"):
        b = np.sin(x) + 1
        return a + b


def test_a_step_over_two_devices(path: Path) -> None:
    with config.override(logical_cpu_devices=2, history=True):
        f = fusec.jit(over_two)
        f(X)
        want = f(X)
        history.clear()
        with fusec.profile(path):
            got = [f(X) for _ in range(3)]
        assert {row.device for row in fusec.history()} == {"CPU:0, CPU:1"}
    for each in got:
        np.testing.assert_array_equal(each, want)
    found = events(path)
    assert [*titles(found).values()] == ["program and compiler", "/device:CPU:0", "/device:CPU:1"]
    where = titles(found)
    assert {where[e["pid"]] for e in spans(found, "library")} == {"/device:CPU:1"}
    assert {where[e["pid"]] for e in spans(found, "kernel")} == {"/device:CPU:0", "/device:CPU:1"}
    assert spans(found, "wait") and spans(found, "task") and spans(found, "copy")
    arrows = [e for e in found if e["ph"] in "sf"]
    for e in arrows:
        assert where[e["pid"]] == f"/device:CPU:{int(e['ph'] == 's')}"
        assert any(s["pid"] == e["pid"] and s["tid"] == e["tid"]
                   and s["ts"] <= e["ts"] <= s["ts"] + s["dur"] for s in spans(found))
    assert len(arrows) == 6 and len({e["id"] for e in arrows}) == 3


def test_memory_is_counted(path: Path) -> None:
    f = fusec.jit(lambda x: np.sort(np.sin(x) * 2) + 1)
    x = np.ones(300_000)
    with fusec.profile(path):
        kept = [f(x) for _ in range(3)]
    counted = [e["args"]["bytes in use"] for e in events(path) if e["ph"] == "C"]
    assert max(counted) >= 2 * kept[0].nbytes
    assert counted[-1] > counted[0]


# ---- what the runtime records ----------------------------------------------------------------

def test_arrows_lead_from_span_to_span(path: Path) -> None:
    """The value is received by the sender's thread, while its device is still at something else."""
    with fusec.profile(path):
        t = timeline.now()
        timeline.span(CPU0, "kernel", "a", t, t + 1000)
        timeline.flow("key", True, CPU0, t + 900)
        timeline.flow("key", False, CPU1, t + 1500)
        timeline.span(CPU1, "kernel", "b", t + 2000, t + 3000)
        timeline.flow("other", True, CPU1, t + 2500)
        timeline.flow("other", False, CPU0, t + 2600)
        timeline.span(CPU0, "kernel", "c", t + 2550, t + 4000)
    found = events(path)
    arrows = [e for e in found if e["ph"] in "sf"]
    assert [e["ph"] for e in arrows] == ["s", "f", "s", "f"]
    assert arrows[0]["id"] == arrows[1]["id"] != arrows[2]["id"] == arrows[3]["id"]
    assert arrows[1]["bp"] == "e"
    by_name = {e["name"]: e for e in spans(found)}
    for arrow, name in zip(arrows, "abbc", strict=True):
        span = by_name[name]
        assert (arrow["pid"], arrow["tid"]) == (span["pid"], span["tid"])
        assert span["ts"] <= arrow["ts"] <= span["ts"] + span["dur"]


def test_an_arrow_without_spans_is_left_out(path: Path) -> None:
    with fusec.profile(path):
        timeline.flow("key", True, CPU0, timeline.now())
    assert [e for e in events(path) if e["ph"] in "sf"] == []


def test_devices_are_in_order(path: Path) -> None:
    with fusec.profile(path):
        t = timeline.now()
        for i in (10, 2, 1):
            timeline.span(f"/job:localhost/task:0/device:CPU:{i}", "kernel", "k", t, t + 1)
        timeline.span("", "wait", "w", t, t + 1, None, seconds=math.inf, what=object)
    found = events(path)
    assert [*titles(found).values()] == [
        "program and compiler", "/device:CPU:1", "/device:CPU:2", "/device:CPU:10"]
    assert spans(found, "wait")[0]["args"]["seconds"] == "inf"


def test_what_is_too_much_is_left_out(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "MOST", 10 * timeline.FIELDS)
    with fusec.profile(path):
        for i in range(20):
            timeline.span("", "wait", str(i), i, i)
    assert [e["name"] for e in spans(json.loads(path.read_text())["traceEvents"])] == [
        str(i) for i in range(10)]
    assert "left out" in json.loads(path.read_text())["otherData"]


def test_nothing_is_kept_while_off(path: Path) -> None:
    timeline.span("", "wait", "before", 1, 2)
    with fusec.profile(path):
        pass
    timeline.span("", "wait", "after", 1, 2)
    with fusec.profile(path):
        timeline.span("", "wait", "during", 1, 2)
    assert [e["name"] for e in spans(json.loads(path.read_text())["traceEvents"])] == ["during"]


def kept(
    rows: list[Any], device: str, kind: str, name: str, start: int, end: int, loc: Any, **args: Any
) -> None:
    """The least that a span can be: one call that keeps eight values."""
    rows.extend(("X", device, name, start, end, kind, loc, args))


@pytest.mark.alone
def test_a_span_costs_a_few_times_what_keeping_it_does(path: Path) -> None:
    """Twice, 0.7 µs, where this was written; the machine's speed is not asked for."""
    rows: list[Any] = []

    def seconds(one: Callable[..., None], *given: Any) -> float:
        return timeit.timeit(lambda: one(*given, CPU0, "kernel", "k", 1, 2, None, bytes=3),
                             number=2000)

    with fusec.profile(path):
        turns = [(seconds(timeline.span), seconds(kept, rows)) for _ in range(20)]
    span, least = map(min, zip(*turns, strict=True))
    assert span < 4 * least


# ---- as a picture ----------------------------------------------------------------------------

def test_a_picture(tmp_path: Path) -> None:
    path = tmp_path / "trace.svg"
    with fusec.profile(path):
        t = timeline.now()
        timeline.span("", "call", "f <&>", t, t + 9_000_000, "file.py:3")
        timeline.span(CPU0, "task", "a", t, t + 4_000_000)
        timeline.span(CPU0, "kernel", "inner", t + 1_000_000, t + 3_000_000)
        timeline.flow("key", True, CPU0, t + 4_000_000)
        timeline.flow("key", False, CPU1, t + 5_000_000)
        timeline.span(CPU1, "kernel", "b", t + 5_000_000, t + 9_000_000)
        for i in range(1000):  # a pixel holds a hundred of them
            timeline.span(CPU1, "copy", "c", t + 6_000_000 + i, t + 6_000_001 + i)
    root = ElementTree.fromstring(path.read_text())
    space = "{http://www.w3.org/2000/svg}"
    bars = {e[0].text: e for e in root.iter(f"{space}rect") if len(e)}
    assert "f <&> (call): 9.000 ms file.py:3" in bars
    a, inner, b = (bars[text] for text in (
        "a (task): 4.000 ms", "inner (kernel): 2.000 ms", "b (kernel): 4.000 ms"))
    assert float(a.get("width", 0)) == pytest.approx(2 * float(inner.get("width", 0)), abs=0.1)
    assert float(inner.get("y", 0)) > float(a.get("y", 0)) and float(b.get("y", 0)) > float(
        inner.get("y", 0))
    assert float(b.get("x", 0)) == pytest.approx(
        float(a.get("x", 0)) + 1.25 * float(a.get("width", 0)), abs=0.1)
    assert len(bars) < 10 and len([*root.iter(f"{space}path")]) == 2  # an arrow, and its tip
    texts = [e.text for e in root.iter(f"{space}text")]
    assert "program and compiler · MainThread" in texts and "/device:CPU:1 · MainThread" in texts


def test_titles_of_rows_are_not_cut_at_the_left(tmp_path: Path) -> None:
    path = tmp_path / "trace.SVG"
    with fusec.profile(path):
        timeline.span("", "call", "f", timeline.now(), timeline.now() + 1)
        worker = threading.Thread(name="x\0" + 100 * "y", target=lambda: timeline.span(
            CPU1, "task", "a", timeline.now(), timeline.now() + 1))
        worker.start()
        worker.join()
    titles_ = [e for e in ElementTree.fromstring(path.read_text()).iter(
        "{http://www.w3.org/2000/svg}text") if e.get("text-anchor") == "end"]
    assert [e.text for e in titles_] == [
        "program and compiler · MainThread", "/device:CPU:1 · x?" + 29 * "y" + "…"]
    for title in titles_:
        assert float(title.get("x", 0)) > 6.2 * len(title.text or "")


def test_a_picture_of_nothing(tmp_path: Path) -> None:
    path = tmp_path / "trace.svg"
    with fusec.profile(path):
        pass
    ElementTree.fromstring(path.read_text())


# ---- beginning and end -----------------------------------------------------------------------

def test_begun_and_ended_by_hand(path: Path) -> None:
    profile = fusec.profile(str(path)).start()
    assert not path.exists()
    profile.stop()
    assert events(path) == []
    profile.stop()  # does nothing
    assert repr(profile) == f"<fusec.profile {str(path)!r}>"
    with profile:
        pass
    assert [p.name for p in path.parent.iterdir()] == ["trace.json"]


def test_one_at_a_time(path: Path) -> None:
    with fusec.profile(path), pytest.raises(RuntimeError, match="is being taken already, for"):
        fusec.profile(path.with_name("other.json")).start()
    assert [p.name for p in path.parent.iterdir()] == ["trace.json"]


@pytest.mark.parametrize("bad", ["missing/trace.json", ".", "a\0b", "file/trace.json", ""])
def test_paths_that_cannot_be_written(tmp_path: Path, bad: str) -> None:
    (tmp_path / "file").write_text("")
    text = os.path.join(tmp_path, bad)
    entered = False
    with pytest.raises(OSError, match="a profile cannot be written to"), fusec.profile(text):
        entered = True
    assert not entered


@pytest.mark.parametrize("bad", [None, 5, b"trace.json"])
def test_what_is_no_path(bad: Any) -> None:
    with pytest.raises(TypeError, match="a profile is written to a file, and got"):
        fusec.profile(bad)


def test_a_file_that_is_there_stays_until_the_end(path: Path) -> None:
    path.write_text("old")
    with fusec.profile(path):
        assert path.read_text() == "old"
    assert events(path) == []


def test_a_full_disk_leaves_no_half_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_text("old")

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"), fusec.profile(path):
        monkeypatch.setattr(sys.modules["fusec.api.profile"], "_parts", full)
    assert path.read_text() == "old" and len([*path.parent.iterdir()]) == 1


@pytest.mark.parametrize("links", [0, 1])
def test_a_pipe_and_a_device_are_written_to_and_stay(path: Path, links: int) -> None:
    os.mkfifo(path)
    given = path
    if links:
        given = path.with_name("link.json")
        given.symlink_to(path)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(path.read_text()))
    reader.start()
    with fusec.profile(given):
        pass
    reader.join(10)
    assert json.loads(read[0])["traceEvents"] == [] and path.is_fifo()
    assert given.is_symlink() == bool(links)


def test_a_link_stays_and_the_file_that_it_leads_to_is_written(path: Path) -> None:
    link = path.with_name("link.json")
    link.symlink_to(path)
    with fusec.profile(link):
        pass
    assert link.is_symlink() and events(path) == []


def test_a_file_that_takes_no_more_is_an_error_and_hides_no_other(path: Path) -> None:
    os.mkfifo(path)

    def taken() -> Profile:
        reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        profile = fusec.profile(path).start()
        os.close(reader)
        return profile

    with pytest.raises(OSError, match=r"cannot be written to .*trace.json': Broken pipe"):
        taken().stop()
    with pytest.raises(ZeroDivisionError) as caught:
        try:
            profile = taken()
            raise ZeroDivisionError
        except ZeroDivisionError as error:
            profile.__exit__(type(error), error, None)
            raise
    assert "Broken pipe" in caught.value.__notes__[0]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_leaves_the_file_to_its_parent(path: Path) -> None:
    f = fusec.jit(lambda x: x + 1)
    with fusec.profile(path) as profile:
        f(X)
        pid = os.fork()
        if pid == 0:
            good = not timeline.on and not history.on and f(X)[0, 0] == X[0, 0] + 1
            profile.stop()
            good = good and not path.exists()
            with fusec.profile(path.with_name("child.json")):
                f(X)
            os._exit(0 if good else 3)
        assert _child_status(pid) == 0
        f(X)
    assert len(spans(events(path), "call")) == 2
    assert len(spans(events(path.with_name("child.json")), "call")) == 1


def test_a_profile_that_nobody_ends_is_written_at_exit(path: Path) -> None:
    code = f"import fusec; fusec.profile({str(path)!r}).start(); raise SystemExit(3)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 3
    assert events(path) == []


# ---- history ---------------------------------------------------------------------------------

def test_history_is_what_it_is_without_a_profile(path: Path) -> None:
    history.clear()
    f = fusec.jit(lambda x: x + 1)
    with fusec.profile(path):
        f(X), f(X)
    assert [row.hit for row in fusec.history()] == [False]


def test_history_knows_device_rates_and_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    class Known:
        bytes_per_ns, flops_per_ns = 10.0, 2.0

    history.clear()
    with config.override(history=True):
        monkeypatch.setattr(device_rates, "rates_of", {"CPU:0": Known}.get)
        f = fusec.jit(lambda x: np.sin(x) * x + 2)
        g = fusec.jit(lambda x: np.sort(x * 2))
        x = np.ones(100_000)
        f(x), f(x), g(x)
        row, called = fusec.history().rows[1:]
        assert (row.device, row.nbytes, row.work) == ("CPU:0", 1_600_000, 300_000)
        assert row.gflops == pytest.approx(300_000 / (1e3 * row.run_us))
        assert row.limit_percent == pytest.approx(100 * 160.0 / row.run_us)
        assert called.has_calls and called.limit_percent is None
        text = str(fusec.history())
        assert "GFLOP/s" in text and "% of limit" in text and "device" not in text
        assert fusec.history().as_dicts()[1]["limit_percent"] == row.limit_percent
        history.record("f", elements=1, ops=1, hit=True, device="CPU:1")
        assert "device" in str(fusec.history())


def test_limits_are_blank_where_nothing_was_measured(tmp_path: Path) -> None:
    fusec.devices()
    with config.override(cache_dir=str(tmp_path), num_threads=3, history=True):
        history.clear()
        f = fusec.jit(lambda x: np.sin(x) * x + 2)
        f(X)
        assert fusec.history().rows[-1].limit_percent is None
        assert "% of limit" not in str(fusec.history())
