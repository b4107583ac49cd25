"""The data of a page: it says the same as `fusec.explain`, and is read back as it was written."""

from __future__ import annotations

import json
import linecache
import re
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pytest
from page_checks import says_what_explain_says
from page_programs import CASES, X, smooth, standardise, storm

import fusec
from fusec.codegen.cpu import code_links as cpu_code_links
from fusec.codegen.cpu.nests.modes import emit_nest
from fusec.compiled.reports.passes_report import headline
from fusec.inspect.page.document import FORMAT
from fusec.inspect.page.page import read, save
from fusec.inspect.page.texts import UNKNOWN, GraphTexts, Sources
from fusec.inspect.page.views import sections_of, sections_of_function


def texts(part: Any) -> list[str]:
    """The graphs of a page as text, made of the edits as the page's script makes them."""
    result, last = [], list[int]()
    for graph in part["graphs"]:
        lines, at = list[int](), 0
        for start, end, fresh in graph["edits"]:
            lines += [*last[at:start], *fresh]
            at = end
        last = [*lines, *last[at:]]
        result.append("\n".join(part["lines"][line] for line in last))
    return result


@pytest.mark.parametrize("name", CASES)
def test_the_page_says_what_explain_says(name: str) -> None:
    function, args = CASES[name]
    sections, report = sections_of_function(function, args), str(fusec.explain(function, *args))
    at = len(sections["head"]["traces"]) - 1
    says_what_explain_says(sections, at, report)
    assert report.count("\n") == str(function.concrete(*args).explanation()).count("\n")


@pytest.mark.parametrize("name", CASES)
def test_graphs_are_their_own_texts(name: str) -> None:
    function, args = CASES[name]
    concrete = function.concrete(*args)
    part = sections_of(concrete)["passes/0"]
    shown = texts(part)
    for record, data in zip(concrete.passes, part["passes"], strict=True):
        assert headline(record).startswith(data["name"])
        for graph, number in ((record.before, data["before"]), (record.after, data["after"])):
            bare = re.sub(r" *  # \S.*(?m:$)", "", str(graph))
            assert [line.rstrip() for line in shown[number].splitlines()] == [
                line.rstrip() for line in bare.splitlines()]


def test_each_line_says_where_it_is_of() -> None:
    concrete = standardise.concrete(X, 0.5)
    sections = sections_of(concrete)
    part, sources = sections["passes/0"], sections["sources/0"]
    for line, number in zip(part["lines"], part["at"], strict=True):
        name = re.match(r"\s+%([\w.]+) =", line)
        if name and "Fused" not in line:
            node = next(n for r in concrete.passes for g in (r.before, r.after)
                        for n in (*g.nodes, *(m for f in g.nodes for b in f.graphs
                                              for m in b.nodes)) if n.name == name[1])
            file, row = sources["locs"][number][:2]
            assert node.loc is not None
            assert (sources["files"][file]["name"], row) == (node.loc.file, node.loc.line)


def test_rules_are_told_by_node() -> None:
    part = sections_of(standardise.concrete(X, 0.5))["passes/0"]["passes"]
    rules = {name: rule for p in part for name, rule in p.get("rules", {}).items()}
    assert rules["Mul"] == ["Mul(x, x) -> Square(x)"]
    assert rules["Mean"][0].startswith("decompose: it is written in simpler operations")
    assert "cse: another node computes the same (Const_2 -> Const)" in rules["Const_2"]
    assert rules["Tanh"] == ["fusion: in the kernel fused"]


def test_each_pass_says_what_it_is_for() -> None:
    from fusec.passes.options import PassOptions
    from fusec.passes.pipeline import Repeat, body_passes, pipeline
    from fusec.passes.told_rules import OF_PASSES

    names = {each.name for options in (PassOptions(), PassOptions(fp="fast", check_indices=False))
             for step in (*pipeline(options), *body_passes(is_way_back=True, kernels_alone=True))
             for each in (step.passes if isinstance(step, Repeat) else (step,))}
    assert names - {*OF_PASSES} == {"simplify", "fusion"}


def test_kernels_are_linked_with_nodes() -> None:
    sections = sections_of(standardise.concrete(X, 0.5))
    code = sections["code0/0"]
    loops = code["parts"][0][1].splitlines()
    names = [node[0] for node in code["links"]["nodes"]]
    of = {line.strip(): {names[n] for n in numbers}
          for line, numbers in zip(loops, code["links"]["loops"], strict=True)}
    assert of["t13: f64 = tanh(t12)"] == {"Tanh"}
    assert of["t10: f64 = sqrt(t9)"] == {"Sqrt"}
    assert of["r1: f64 = add-reduce t5"] == {"Sum_1"}
    assert of["Tanh[i0, i1] = t13"] == {"Tanh"}


def test_code_is_linked_with_loops() -> None:
    concrete = standardise.concrete(X, 0.5)
    code = sections_of(concrete)["code0/0"]
    loops = code["parts"][0][1].splitlines()
    (tanh,) = [row for row, line in enumerate(loops) if "= tanh(" in line]
    (root,) = [row for row, line in enumerate(loops) if "= sqrt(" in line]
    for title, call in (("LLVM", "@fusec.tanh"), ("LLVM, optimised", ""), ("assembly", "")):
        text = dict(code["parts"])[title].splitlines()
        rows = code["links"]["code"][title]
        assert sum(tanh in of for of in rows) >= (1 if call else 40), title
        for line, of in zip(text, rows, strict=False):
            if call and call in line:
                assert tanh in of, line
            if "call double @llvm.sqrt" in line:  # in assembly moved code has no place
                assert root in of, line


def test_code_of_a_huge_module_has_no_links_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_code_links, "MOST_LINES", 10)
    monkeypatch.setattr(cpu_code_links, "_last", WeakKeyDictionary())
    function, args = CASES["standardise"]
    sections = sections_of(function.concrete(*args))
    for kernel in sections["kernels/0"]["kernels"]:
        links = sections[f"code{kernel['text']}/0"]["links"]
        assert any(links["code"]["LLVM"])
        for title in ("LLVM, optimised", "assembly"):
            assert not any(links["code"][title]) and "lines of LLVM" in links["unlinked"][title]


def test_code_is_the_same_whether_its_lines_are_noted() -> None:
    for function, args in CASES.values():
        for kernel in function.concrete(*args).kernels:
            for form in kernel.step.forms:
                plain, noted = emit_nest(form, "f"), emit_nest(form, "f", is_noted=True)
                assert plain.functions == noted.functions and not plain.of_lines
                for first, notes in noted.origins.values():
                    assert first >= 2 and notes


def test_nodes_of_derivatives_are_known() -> None:
    function, args = CASES["gradient"]
    concrete = function.concrete(*args)
    part = sections_of(concrete)["graph/0"]
    names = made_by_derivatives(part, part["optimized"])
    assert {"Transpose", "MatMul_1"} <= names
    assert not names & {"MatMul", "Tanh", "Sub", "Square"}
    part = sections_of(smooth.concrete(X[0]))["graph/0"]
    assert not any(node.get("q") for graph in part["graphs"] for node in graph["nodes"])


def made_by_derivatives(part: Any, number: int) -> set[str]:
    """Nodes of a graph, and of those in it."""
    nodes = part["graphs"][number]["nodes"]
    return {n["n"] for n in nodes if n.get("q")}.union(
        *(made_by_derivatives(part, g) for n in nodes for _, g in n.get("g", ())))


def test_derivatives_in_loops_are_known_and_so_is_what_is_kept() -> None:
    def loss(w: Any, x: Any) -> Any:
        h = x
        for _ in range(2000):
            h = np.tanh(h * w) + 0.1 * np.sin(h)
        return (h * h).sum()

    w, x = np.linspace(0.1, 1, 50), np.ones(50)
    part = sections_of(fusec.jit(fusec.value_and_grad(loss)).concrete(w, x))["graph/0"]
    nodes = part["graphs"][part["optimized"]]["nodes"]
    forth, back = (n for n in nodes if n["o"] == "Loop")
    (body,) = (g for key, g in back["g"] if key == "body")
    assert {"Mul", "Add"} <= {n["o"] for n in part["graphs"][body]["nodes"] if n.get("q")}
    assert not forth.get("q")
    read = {out for source, out in back["i"] if nodes[source] is forth}
    assert sum(forth["bs"][out] or 0 for out in read) >= 2000 * 50 * 8  # a row each iteration


def test_variables_and_broadcasts_are_those_of_explain() -> None:
    w, bias = fusec.Variable(np.ones(3), name="w"), fusec.Variable(np.nan, name="bias")

    @fusec.jit
    def mistake(x: Any, labels: Any) -> Any:
        bias.assign(bias * 2)
        return np.mean((x @ w + bias - labels) ** 2)

    concrete = mistake.concrete(np.ones((100, 3)), np.ones((100, 1)))
    sections, report = sections_of(concrete), str(concrete.explanation())
    part, sources = sections["report/0"], sections["sources/0"]
    assert len(part["variables"]) == 2 and part["variables_bytes"] == 32
    for words in part["variables"]:
        assert re.search(r"\n  " + r" +".join(map(re.escape, words)), report)
    (found,) = part["broadcasts"]
    file, line = sources["locs"][found["line"]][:2]
    assert f"  {found['text']} at {sources['files'][file]['name']}:{line}" in report
    assert found["bytes"] == 80_000


def test_the_graph_has_every_node_and_edge() -> None:
    for function, args in CASES.values():
        concrete = function.concrete(*args)
        part = sections_of(concrete)["graph/0"]
        graph, shown = concrete.optimized_graph, part["graphs"][part["optimized"]]
        assert [n["n"] for n in shown["nodes"]] == [n.name for n in graph.nodes]
        for node, data in zip(graph.nodes, shown["nodes"], strict=True):
            assert [shown["nodes"][source]["n"] for source, _ in data["i"]] == [
                v.node.name for v in node.inputs]


def test_memory_lives_from_its_first_use_to_its_last() -> None:
    function, args = CASES["gradient"]
    memory = sections_of(function.concrete(*args))["runs/0"]["memory"]
    temps = [a for a in memory["arrays"] if a["origin"] == "temp"]
    assert {(memory["steps"][a["from"]], memory["steps"][a["to"]]) for a in temps} == {
        ("MatMul", "fused"), ("fused", "MatMul_1")}


def test_times_are_those_of_steps(tmp_path: Path) -> None:
    standardise.save_html(tmp_path / "p.html", X, 0.5)
    sections = read(tmp_path / "p.html")
    at = len(sections["head"]["traces"]) - 1
    assert [name for name, _ in sections[f"runs/{at}"]["steps"]] == ["fused"]
    assert sections[f"runs/{at}"]["call_us"] > 0
    assert any(e.get("cat") == "kernel" for e in sections[f"runs/{at}"]["events"])


def test_what_takes_longest_is_found_first() -> None:
    """A library call that takes most of the time, behind more kernels than findings are shown."""
    def chain(x: np.ndarray) -> Any:
        parts = [x[k:].sum() for k in range(8)]
        for n in range(3):
            y = x * (n + 2.0)
            parts += [(y - y.mean()).max(), (y - y.max()).min()]
        return parts, np.sort(x.reshape(-1, 10), axis=0)

    x = np.random.default_rng(0).random(200_000)
    sections = sections_of_function(fusec.jit(chain), (x,))
    report, steps = sections["report/0"], dict(sections["runs/0"]["steps"])
    assert report["findings"][0]["text"].startswith("np.sort at ")
    assert report["findings"][0]["us"] == steps["Sort"] == max(steps.values())
    shown = [one["us"] for one in report["findings"]]
    assert shown == sorted(shown, reverse=True)
    told = sum(len(kernel["boundaries"]) for kernel in sections["kernels/0"]["kernels"]) + 1
    assert len(shown) + report["more"] == told


def test_arguments_are_left_as_they_were() -> None:
    function, args = CASES["relax"]
    before = args[0].copy()
    sections = sections_of_function(function, args)
    assert np.array_equal(args[0], before)
    assert sections[f"runs/{len(sections['head']['traces']) - 1}"]["call_us"] > 0


def test_calls_that_change_the_program_are_not_made() -> None:
    count = fusec.Variable(0.0)

    @fusec.jit
    def add(x: Any) -> Any:
        count.assign_add(x)
        return count * 2

    sections = sections_of_function(add, (1.0,))
    assert "outlives" in sections["runs/0"]["not_measured"]
    assert count.numpy() == 0.0


def test_a_storm_of_traces_names_its_argument() -> None:
    storm.clear()
    for axis in (0, 1, (0, 1), None, (1, 0)):
        storm(X, axis)
    head = sections_of_function(storm)["head"]
    assert len(head["keys"]) == storm.trace_count and head["left_out"] == storm.trace_count - 4
    (finding,) = head["findings"]
    assert finding["view"] == "runs" and "axis" in finding["text"]
    storm.clear()


def test_a_graph_of_a_million_nodes_is_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    from fusec.inspect.page import graph_part
    from fusec.ir import Graph, Node, TensorType

    kind = TensorType(np.dtype("f8"), (3,), "array")
    value = x = Node("Input", (), (kind,), {"index": 0, "path": "x", "type": kind}, name="x").out()
    nodes = [x.node]
    for number in range(100_000):
        nodes.append(Node("Neg", (value,), (kind,), name=f"Neg_{number}"))
        value = nodes[-1].out()
    graph = Graph((x,), (value,), (), tuple(nodes))
    part = graph_part.GraphPart(Sources())
    shown = part.graphs[part.number(graph)]
    assert shown["count"] == 100_001 and len(shown["nodes"]) <= graph_part.MOST_FOLDED
    assert shown["folded"] * len(shown["nodes"]) >= 100_001
    assert all(source < number for number, node in enumerate(shown["nodes"])
               for source, _ in node["i"])
    written = GraphTexts(Sources())
    assert written.number(graph) == 0 and written.data()["graphs"][0]["left_out"]


# -- bad input


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    standardise(X, 0.5)
    for path in (tmp_path / "none" / "p.html", tmp_path, "a\0b.html"):
        with pytest.raises(OSError, match="cannot be written"):
            standardise.save_html(path)
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="needs /dev/full")
def test_a_full_disk_and_what_is_no_file(tmp_path: Path) -> None:
    sections = sections_of(smooth.concrete(X[0]))
    with pytest.raises(OSError, match=r"No space left.*(\n.*)*another disk"):
        save("/dev/full", sections)
    assert Path("/dev/full").is_char_device()  # and not a file in its place
    save(tmp_path / "a.html", sections)
    (tmp_path / "link.html").symlink_to("a.html")
    save(tmp_path / "link.html", {**sections, "more": {}})
    assert (tmp_path / "link.html").is_symlink() and "more" in read(tmp_path / "a.html")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.html", "link.html"]


def test_hostile_strings_stay_strings(tmp_path: Path) -> None:
    hostile = "</script><script>alert(1)</script><!-- \" ' ]]> \u202e \U0001f4a5"
    key = f"{hostile} \udc80"  # a lone surrogate, which no file in UTF-8 can hold
    source = f"def evil(x):\n    y = np.exp(x)  # {hostile}\n    return {{{key!r}: y}}\n"
    linecache.cache["evil<&>.py"] = len(source), None, source.splitlines(True), "evil<&>.py"
    scope: dict[str, Any] = {"np": np}
    exec(compile(source, "evil<&>.py", "exec"), scope)
    made = fusec.jit(lambda tree: scope["evil"](tree[key]))
    sections = sections_of_function(made, ({key: np.ones(4)},))
    path = save(tmp_path / "p.html", sections)
    text = path.read_text("utf-8")
    assert "<script>alert" not in text and "<script>alert(1)" in json.dumps(read(path))
    assert "<script" not in made._repr_html_()


def test_a_long_text_among_the_arguments_makes_no_long_page(tmp_path: Path) -> None:
    text = "ab" * 500_000
    page = fusec.jit(lambda x, tag: x + len(tag)).concrete(X, text).save_html(tmp_path / "p.html")
    assert page.stat().st_size < 600_000 and text[:3000] not in page.read_text()
    assert text in read(page)["head"]["traces"][0]["signature"]


def test_nothing_to_show(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has not been compiled"):
        fusec.jit(lambda x: x).save_html(tmp_path / "p.html")


def test_files_that_are_no_pages(tmp_path: Path) -> None:
    page = tmp_path / "p.html"
    standardise.concrete(X, 0.5).save_html(page)
    text = page.read_text()
    for wrong, message in (
            ("<html></html>", "no page of fusec's"), (b"\xff\xfe", "no page of fusec's"),
            (text.replace(f", page {FORMAT}", ", page 99"), "another format"),
            (text.replace(">H4sIA", ">H4sIX", 1), "is damaged")):
        page.write_bytes(wrong if isinstance(wrong, bytes) else wrong.encode())
        with pytest.raises(ValueError, match=message):
            read(page)
    with pytest.raises(FileNotFoundError, match="cannot be read"):
        read(tmp_path / "absent.html")


def test_lines_of_a_program_that_has_no_file() -> None:
    """Of ``exec`` and ``python - <<E`` the numbers of lines are known, and are linked."""
    scope: dict[str, Any] = {"np": np, "fusec": fusec}
    exec("@fusec.jit\ndef g(x):\n    y = np.cos(x)\n\n    return y + 1\n", scope)
    sections = sections_of(scope["g"].concrete(np.ones(5)))
    (file,) = sections["sources/0"]["files"]
    assert (file["first"], file["lines"]) == (3, [UNKNOWN, "", UNKNOWN])


@pytest.mark.parametrize("path", [None, 3, b"p.html"])
def test_what_is_no_path(path: Any) -> None:
    with pytest.raises(TypeError, match="it is no path"):
        smooth.save_html(path, X[0])


def test_a_page_without_its_first_section(tmp_path: Path) -> None:
    path = save(tmp_path / "p.html", sections_of(smooth.concrete(X[0])))
    path.write_text(path.read_text().replace('data-section="head"', 'data-section="hood"'))
    with pytest.raises(ValueError, match="is damaged: its first section is missing"):
        read(path)
