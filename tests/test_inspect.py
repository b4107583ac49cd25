"""The log ladder, the launch history, dumps, pass reports and explanations: their exact text."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import fusec
from fusec import config
from fusec.compiled.reports import dump, history, passes_report
from fusec.compiled.reports.explain import Assumed, Explanation, KernelOperand
from fusec.core import log
from fusec.core.display import amounts
from fusec.core.versions import parse_requirement, requirements, summary, within
from fusec.ir.graph import Graph, Loc, Node
from fusec.ir.types import TensorType


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    with config.override(log_level=1, history=False):
        history.clear()
        yield
        history.clear()


# --- log ---------------------------------------------------------------------------------------


def test_only_enabled_rungs_are_written(capsys: pytest.CaptureFixture[str]) -> None:
    log.write(log.WARN, "fell back")
    log.write(log.COMPILE, "f compiled")
    with config.override(log_level=4):
        assert log.enabled(log.CODE)
        assert not log.enabled(log.LAUNCH)
        log.write(log.COMPILE, "f compiled")
        log.write(log.CODE, "graph\nx\n\ny")
    with config.override(log_level=0):
        log.write(log.WARN, "unheard")
    assert capsys.readouterr().err == (
        "fusec warning: fell back\n"
        "fusec compile: f compiled\n"
        "fusec code: graph\n    x\n\n    y\n"
    )


# --- history -----------------------------------------------------------------------------------


def _record(hit: bool, **more: Any) -> None:
    history.record("prog.f", elements=1_000_000, ops=3, hit=hit, run_us=800.0,
                   **{"nbytes": 24_000_000, **more})


def test_misses_are_always_recorded_and_hits_when_asked() -> None:
    _record(False, build_ms=12.5)
    _record(True)
    assert len(history.history()) == 1
    config.history = True
    assert history.on
    _record(True)
    assert [row.hit for row in history.history()] == [False, True]


def test_history_as_text_and_data() -> None:
    config.history = True
    _record(False, build_ms=12.5)
    _record(True)
    seen = history.history()
    assert str(seen) == """\
id  function   elements  ops  cache  build ms  run us   GB/s
 1  prog.f    1,000,000    3  miss       12.5   800.0  30.00
 2  prog.f    1,000,000    3  hit               800.0  30.00"""
    assert seen.as_dicts()[1]["gbps"] == 30.0
    console = Console(file=io.StringIO(), width=100)
    console.print(seen)
    assert "prog.f" in console.file.getvalue()  # type: ignore[attr-defined]


def test_rates_are_blank_where_no_kernel_read_anything() -> None:
    _record(False, build_ms=12.5, nbytes=0)
    line = str(history.history()).splitlines()[1]
    assert line.split() == ["1", "prog.f", "1,000,000", "3", "miss", "12.5", "800.0"]
    assert str(next(iter(history.history()))).endswith("800.0 us")


def test_empty_history_says_how_to_fill_it() -> None:
    assert str(history.history()) == (
        "no launch was recorded\n"
        "(only calls that compiled; fusec.config.history = True records every launch)"
    )


def test_history_is_bounded() -> None:
    with config.override(history_size=3, history=True):
        for _ in range(5):
            _record(True)
        assert len(history.history()) == 3


def test_launch_rung(capsys: pytest.CaptureFixture[str]) -> None:
    config.log_level = 5
    _record(False, build_ms=12.5)
    assert capsys.readouterr().err == (
        "fusec launch: #1 prog.f: 1000000 elements, 3 ops, miss, built in 12.5 ms, "
        "800.0 us, 30.00 GB/s\n"
    )


# --- dumps -------------------------------------------------------------------------------------


def test_dump_numbers_graphs_and_writes_an_index(tmp_path: Path) -> None:
    artefacts = {"trace.graph": "a\nb", "cse.graph": "a\n", "kernel_0.ll": "x"}
    folder = dump.dump_artifacts(tmp_path / "d", "m:f.<locals>.g", artefacts)
    assert folder == tmp_path / "d" / "m_f._locals_.g-000"
    assert sorted(p.name for p in folder.iterdir()) == [
        "00-trace.graph", "01-cse.graph", "index.txt", "kernel_0.ll"
    ]
    assert (folder / "00-trace.graph").read_text() == "a\nb\n"
    assert (folder / "index.txt").read_text() == """\
m:f.<locals>.g
00-trace.graph       2 lines
01-cse.graph         1 lines
kernel_0.ll          1 lines
"""


def test_dumps_never_overwrite_also_in_a_race(tmp_path: Path) -> None:
    def write(number: int) -> None:
        dump.dump_artifacts(tmp_path, "f", {"trace.graph": str(number)})

    threads = [threading.Thread(target=write, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(p.name for p in tmp_path.iterdir()) == [f"f-{i:03}" for i in range(8)]
    texts = {(p / "00-trace.graph").read_text() for p in tmp_path.iterdir()}
    assert len(texts) == 8


def test_a_failed_dump_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"not the name of an artefact: '\.\./x'"):
        dump.dump_artifacts(tmp_path, "f", {"../x": ""})
    with pytest.raises(UnicodeEncodeError):
        dump.dump_artifacts(tmp_path, "f", {"x.py": "\ud800"})
    assert list(tmp_path.iterdir()) == []


# --- passes ------------------------------------------------------------------------------------


@dataclass
class Record:
    name: str
    ms: float
    rewrites: int
    before: Any
    after: Any
    inner: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Body:
    body: str
    records: list[Record]


def test_pass_report() -> None:
    bodies = Body("body", [Record("cse", 0.1, 2, "a", "b"), Record("prune", 0.1, 0, "a", "a")])
    records = [Record("prune", 0.1, 0, "a\nb", "a\nb"), Record("cse", 0.25, 1, "a\nb\nc", "a\nc"),
               Record("subgraphs", 0.5, 0, "a", "a", (bodies, Body("test", [])))]
    assert passes_report.passes_text(records) == """\
prune: 0.10 ms, 0 rewrites (unchanged)
cse: 0.25 ms, 1 rewrite
  @@ -1,3 +1,2 @@
   a
  -b
   c
subgraphs: 0.50 ms, 0 rewrites
  in body: cse (2)
total: 0.85 ms, 1 of 3 passes changed the graph"""
    assert passes_report.passes_text([]) == "no pass ran"


def test_graphs_are_compared_without_locations() -> None:
    def graph(line: int) -> Graph:
        kind = TensorType(np.dtype("f8"), (3,))
        x = Node("Input", (), (kind,), name="x").out()
        y = Node("Neg", (x,), (kind,), name="y", loc=Loc("p.py", line)).out()
        return Graph.build([x], [y])

    assert passes_report.text_diff(graph(1), graph(2)) == "(unchanged)"


# --- explain -----------------------------------------------------------------------------------


@dataclass
class Kernel:
    name: str
    lines: list[Loc]
    operands: list[KernelOperand]
    ops: int


@dataclass
class Edge:
    producer: str
    consumer: str
    reason: str


@dataclass
class Extern:
    name: str
    loc: Loc | None
    reason: str


@dataclass
class Control(Extern):
    passes: list[Body]


def test_full_explanation() -> None:
    lines = [Loc("p.py", n) for n in (7, 3, 5, 6, 6)] + [Loc("q.py", 2)]
    operands = [KernelOperand("a", "f64[1000]", 8000, "in"),
                KernelOperand("out0", "f64[1000]", 80_000, "out"),
                KernelOperand("x", "f32[5]", 20, "inout")]
    text = str(Explanation(
        "p.f", Loc("p.py", 2), "f(a: f64[1000]) -> f64[1000]", "('f64', 1)", "first call",
        [Record("cse", 0.25, 0, "a", "a")], [Kernel("kernel_0", lines, operands, 4)],
        [Edge("sin_1", "matmul_2", "matmul is a library call"), "Add_1 not fused with Sum: why"],
        [Extern("np.matmul", Loc("p.py", 9), "BLAS is faster")],
        [Control("loop", Loc("p.py", 7), "one native function", [
            Body("body", [Record("fusion", 0.1, 2, "a", "b"), Record("cse", 0.1, 0, "a", "a")])])],
        "kernel_0\nnp.matmul", "2 threads above 32768 elements",
        [Assumed("self.name", "'x'", Loc("p.py", 4))],
    ))
    assert text == """\
p.f (p.py:2): 1 kernel, 1 library call, 1 branch or loop

signature
  f(a: f64[1000]) -> f64[1000]
  key: ('f64', 1)

why it was traced
  first call

passes
  cse: 0.25 ms, 0 rewrites (unchanged)
  total: 0.25 ms, 0 of 1 passes changed the graph

kernels
  kernel_0: 4 operations per element, 8020 B in, 80.0 kB out
    fuses p.py:3, 5-7; q.py:2
    in    a     f64[1000]  8000 B
    out   out0  f64[1000]  80.0 kB
    inout x     f32[5]     20 B

not fused
  sin_1 -> matmul_2: matmul is a library call
  Add_1 not fused with Sum: why

library calls
  np.matmul at p.py:9: BLAS is faster

branches and loops
  loop at p.py:7: one native function
    passes of body: fusion (2), cse

plan
  kernel_0
  np.matmul

threads
  2 threads above 32768 elements

assumed, and checked at each call
  self.name = 'x' (read at p.py:4)"""


def test_empty_parts_are_left_out() -> None:
    assert str(Explanation("f", kernels=[Kernel("k", [], [], 1)])) == """\
f: 1 kernel, 0 library calls

kernels
  k: 1 operation per element, 0 B in, 0 B out
    fuses no line of yours (made by fusec)"""
    assert "none: everything is a library call" in str(Explanation("f"))


@pytest.mark.parametrize(
    ("count", "text"),
    [(9999, "9999 B"), (10_000, "10.0 kB"), (999_600, "1.00 MB"), (1_600_000_000, "1.60 GB"),
     (999_400, "999 kB"), (5 * 10**15, "5000 TB")],
)
def test_bytes(count: int, text: str) -> None:
    assert amounts.bytes_text(count) == text


# --- versions ----------------------------------------------------------------------------------


def test_versions() -> None:
    assert f"numpy {np.__version__}" in summary()
    names = {r.package for r in requirements() if not r.extra}
    assert {"numpy", "numba", "llvmlite"} <= names
    assert all(r.satisfied for r in requirements() if not r.extra)


def test_requirement_lines() -> None:
    need = parse_requirement('scipy>=1.14,<2; extra == "bench"')
    assert (need.package, need.bounds, need.extra) == ("scipy", ">=1.14,<2", "bench")
    assert str(need) == "scipy>=1.14,<2"
    assert within("1.14.0rc1", ">=1.14,<2")
    assert not within("2.0", ">=1.14,<2")
    assert within("2", "==2.0.0,!=2.1")


def test_sizes_of_data_are_not_called_slices() -> None:
    compiled = fusec.jit(lambda k: np.zeros(k.max()))
    text = str(fusec.explain(compiled, np.array([2, 3])))
    assert "  size at " in text and "an integer of data is the length of an array" in text
    assert "slice at" not in text
