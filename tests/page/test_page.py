"""The page in a browser: every kind of link, keys alone, both themes, no error on its console."""

from __future__ import annotations

import json
import linecache
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chromium import Chromium, missing
from page_programs import CASES, X, smooth, storm

import fusec
from fusec.codegen.cuda.driver import nvrtc
from fusec.inspect.page.comparison import save_comparison
from fusec.inspect.page.page import save
from fusec.inspect.page.views import sections_of, sections_of_function

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())
VIEWS = ("overview", "passes", "graph", "kernels", "runs")
LIMIT = 1_000_000  # bytes of a page


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with Chromium() as chromium:
        yield chromium


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    made = {}
    for name, (function, args) in CASES.items():
        function.clear()
        made[name] = save(folder / f"{name}.html", sections_of_function(function, args))
    for axis in (0, 1, (0, 1), None, (1, 0)):
        storm(np.ones((3, 4)), axis)
    made["storm"] = save(folder / "storm.html", sections_of_function(storm))
    cuda = fusec.jit(smooth.__wrapped__, device="/device:CUDAHOST:0").concrete(X[0])
    made["cuda"] = save(folder / "cuda.html", sections_of(cuda))
    return made


@pytest.fixture(autouse=True)
def no_errors(browser: Chromium) -> Iterator[None]:
    browser.errors.clear()
    yield
    assert not browser.errors


def texts(browser: Chromium, selector: str) -> list[str]:
    return browser.run(f"[...document.querySelectorAll({json.dumps(selector)})].map("
                       "e => e.textContent)")


@pytest.mark.parametrize("name", [*CASES, "storm", "cuda"])
def test_every_link_leads_to_a_view(browser: Chromium, pages: dict[str, Path], name: str) -> None:
    assert pages[name].stat().st_size < LIMIT
    browser.open(pages[name])
    todo, seen = [f"#{view}?trace=0" for view in VIEWS], dict[tuple[str, ...], str]()
    while todo:
        address = todo.pop(0)
        view, _, words = address[1:].partition("?")
        kind = view, *sorted(word.partition("=")[0] for word in words.split("&"))
        if kind in seen:
            continue
        seen[kind] = address
        browser.run(f"location.hash = {json.dumps(address)}")
        browser.until(f"document.getElementById('main').className === '{view}'")
        browser.settled()
        shown = browser.run("document.getElementById('main').textContent")
        assert len(shown) > 10 and not re.search(r"\bnull|undefined|NaN|\[object", shown)
        todo += browser.run("[...document.querySelectorAll('a[href^=\"#\"]')].map("
                            "e => e.getAttribute('href')).filter(h => h !== '#main')")
    assert {view for view, *_ in seen} == set(VIEWS)


def test_passes_side_by_side(browser: Chromium, pages: dict[str, Path]) -> None:
    browser.open(pages["standardise"])
    browser.view("passes", pass_="x")
    assert {"simplify", "fusion"} <= set(texts(browser, "a.pass .name"))
    assert texts(browser, "td.out mark.out") and texts(browser, "td.in mark.in")
    browser.move(*browser.at("span.rule"))
    assert "Mul(x, x) -> Square(x)" in texts(browser, "#tip")[0]
    browser.run("const s = document.querySelector('select[aria-label=\"right stage\"]');"
                "s.value = s.lastElementChild.value; s.dispatchEvent(new Event('change'))")
    browser.until("location.hash.includes('right=')")
    browser.settled()
    assert any("Fused" in text for text in texts(browser, "td.in"))


def test_why_an_edge_is_not_fused(browser: Chromium, pages: dict[str, Path]) -> None:
    browser.open(pages["smooth"])
    browser.view("graph")
    x, y = browser.run(
        "(() => { const {model, whereEdge} = canvas.fusec, r = canvas.getBoundingClientRect();"
        "const e = model.root.edges.find(e => e.at); const [x, y] = whereEdge(e);"
        "return [x + r.left, y + r.top]; })()")
    browser.move(x, y)
    assert "piecewise operands split the domain" in texts(browser, "#tip")[0]


def test_a_finding_leads_to_its_cause(browser: Chromium, pages: dict[str, Path]) -> None:
    browser.open(pages["smooth"])
    browser.click(*browser.at(".findings a"))
    browser.until("document.getElementById('main').className === 'graph'")
    browser.settled()
    (details,) = texts(browser, ".details")
    assert details.startswith("fused_1") and "piecewise operands split the domain" in details
    browser.click(*browser.at(".details a[href^='#kernels']"))
    browser.until("document.getElementById('main').className === 'kernels'")
    browser.open(pages["storm"])
    browser.click(*browser.at(".findings a"))
    browser.until("document.getElementById('main').className === 'runs'")
    browser.settled()
    assert any("axis" in text for text in texts(browser, ".runs p code"))


def test_boxes_fold_and_unfold(browser: Chromium, pages: dict[str, Path]) -> None:
    browser.open(pages["relax"])
    browser.view("graph")
    shown = browser.run("canvas.fusec.model.items.length")
    browser.click(*browser.at(".graph-view button"))
    folded = browser.run("canvas.fusec.model.items.length")
    assert folded < shown
    x, y = browser.run(
        "(() => { const {model, where} = canvas.fusec, r = canvas.getBoundingClientRect();"
        "const [x, y] = where(model.items.find(i => i.folds));"
        "return [x + r.left, y + r.top]; })()")
    browser.click(x, y)
    assert texts(browser, ".details h2") == [browser.run("canvas.fusec.api.chosen.node.n")]
    browser.press("Enter") if browser.run("document.activeElement === canvas") else browser.click(
        *browser.at(".details button"))
    assert browser.run("canvas.fusec.model.items.length") > folded


def test_lines_nodes_and_loops_light_up_together(browser: Chromium, pages: dict[str, Path]) -> None:
    browser.open(pages["standardise"])
    browser.view("kernels", kernel=0)
    browser.click(*browser.at(".panes section:nth-of-type(1) li.linked:last-of-type, li.linked"))
    lit = browser.run("[...document.querySelectorAll('.pane')].map(p => [p.querySelector('h3')"
                      ".textContent, p.querySelectorAll('li.chosen').length])")
    assert all(count for title, count in lit if title in ("nodes", "loops"))
    assert dict(lit)["loops"] < len(texts(browser, "ol[aria-label=loops] li"))


def test_keys_alone(browser: Chromium, pages: dict[str, Path]) -> None:
    browser.open(pages["gradient"])
    for key, view in (("2", "passes"), ("3", "graph"), ("4", "kernels"), ("5", "runs"),
                      ("1", "overview")):
        browser.press(key)
        browser.until(f"document.getElementById('main').className === '{view}'")
    browser.press("2")
    before = browser.run("location.hash")
    browser.press("j")
    assert browser.run("location.hash") != before
    browser.press("/")
    assert browser.run("document.activeElement.type") == "search"
    for letter in "Tanh":
        browser.press(letter)
    assert texts(browser, ".count")[0].endswith("hits")
    browser.press("Escape")
    browser.press("3")
    browser.until("document.getElementById('main').className === 'graph'")
    for _ in range(40):
        browser.press("Tab")
        if browser.run("document.activeElement.id") == "canvas":
            break
    names = []
    for key in ("ArrowDown", "ArrowDown", "ArrowUp", "ArrowRight", "ArrowLeft"):
        browser.press(key)
        names.append(browser.run("canvas.fusec.api.chosen.node.n"))
    assert len(set(names)) > 1 and texts(browser, ".details h2") == names[-1:]
    browser.press("?")
    assert browser.run("document.getElementById('keys').open")
    browser.press("Escape")


def test_each_control_is_named(browser: Chromium, pages: dict[str, Path]) -> None:
    for view in VIEWS:
        browser.open(pages["smooth"], f"#{view}")
        unnamed = browser.run(
            "[...document.querySelectorAll('a, button, input, select, canvas')].filter(e => "
            "!(e.textContent.trim() || e.getAttribute('aria-label') || e.dataset.tip"
            " || e.closest('label')))"
            ".map(e => e.outerHTML.slice(0, 80))")
        assert unnamed == []


def test_themes_are_readable(browser: Chromium, pages: dict[str, Path]) -> None:
    browser.open(pages["standardise"])
    grounds = set()
    for theme in ("light", "dark"):
        if browser.run("document.documentElement.dataset.theme") != theme:
            browser.press("t")
        colours = browser.run(
            "(() => { const s = getComputedStyle(document.documentElement); const c = n => "
            "d3.rgb(s.getPropertyValue('--' + n).trim()); const l = c => [c.r, c.g, c.b].map(v => "
            "(v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4).reduce((a, v, i) =>"
            "a + v * [0.2126, 0.7152, 0.0722][i], 0); const pairs = [['text', 'ground'], "
            "['text', 'panel'], ['soft', 'ground'], ['soft', 'panel'], ['link', 'ground'], "
            "['link', 'panel'], ['text', 'out-word'], ['text', 'in-word'], ['text', 'chosen'], "
            "['text', 'kernel'], ['text', 'library'], ['text', 'control'], ['text', 'transfer'], "
            "['soft', 'kernel'], ['soft', 'library'], ['text', 'hit']];"
            "return pairs.map(([a, b]) => {"
            "const [x, y] = [l(c(a)), l(c(b))].sort((p, q) => q - p); "
            "return [a + ' on ' + b, (x + 0.05) / (y + 0.05)]; }); })()")
        assert all(ratio >= 4.5 for _, ratio in colours), colours  # WCAG 2.1, level AA
        grounds.add(browser.run("getComputedStyle(document.body).backgroundColor"))
    assert len(grounds) == 2


def test_code_lights_up_with_the_loops(browser: Chromium, pages: dict[str, Path]) -> None:
    browser.open(pages["standardise"])
    for code in ("LLVM", "assembly"):
        browser.view("kernels", kernel=0, node="Tanh", code=code)
        lit = texts(browser, ".code li.chosen .text")
        assert lit and (code != "LLVM" or any("@fusec.tanh" in line for line in lit))


def test_code_of_a_gpu_lights_up_with_the_loops(
    browser: Chromium, pages: dict[str, Path]
) -> None:
    browser.open(pages["cuda"])
    for code in ("CUDA C++", *(("PTX",) if nvrtc.is_available() else ())):
        browser.run("location.hash = '#kernels?' + new URLSearchParams({trace: 0, kernel: 0, "
                    f"code: {json.dumps(code)}}})")
        browser.until("document.querySelector('.code li.linked') && document.querySelector('.code"
                      f" h3').textContent === {json.dumps(code)}")
        browser.move(*browser.at(".code li.linked"))
        over = browser.run("[...document.querySelectorAll('.pane')].map(p => "
                           "p.querySelectorAll('li.over').length)")
        assert len(over) == 4 and all(over)  # the program, nodes, loops, code
        browser.click(*browser.at(".code li.linked"))
        assert texts(browser, ".pane li.chosen .no")


def test_a_loop_lights_up_with_its_code(browser: Chromium, pages: dict[str, Path]) -> None:
    browser.open(pages["relax"])
    browser.run("location.hash = '#kernels?' + new URLSearchParams({trace: 0, control: 1, "
                "code: 'assembly', node: 'Abs_5'})")
    browser.until("document.querySelector('.code li.chosen')")
    lit = [text for text in texts(browser, ".pane li.chosen .text") if text.strip()]
    assert any("abs(change" in text or "abs(new" in text for text in lit)  # the program
    assert any(text.startswith("Abs") for text in lit) and any("= abs(" in text for text in lit)


def test_a_loop_is_found_from_its_line(browser: Chromium, tmp_path: Path) -> None:
    def halves(x: Any) -> Any:
        while x > 1:
            x = x / 2
        return x

    browser.open(fusec.jit(halves).save_html(tmp_path / "halves.html", 9.0))
    assert "Nothing stands out." in texts(browser, "p.fine")
    assert texts(browser, "#main h2") == ["Branches and loops"]
    line = next(t for t in texts(browser, "li") if "while x > 1" in t)
    assert line.endswith("loop")
    browser.settled()  # what is still drawn moves the line away from the click
    browser.click(*browser.at(".chip"))
    browser.until("document.querySelector('.kernels-view tr.chosen') !== null")
    assert "loop" in texts(browser, ".kernel-list tr.chosen")[0]


def test_variables_and_broadcasts_are_shown(browser: Chromium, tmp_path: Path) -> None:
    w = fusec.Variable(np.ones(3), name="w")
    made = fusec.jit(lambda x, y: x @ w - y).concrete(np.ones((9, 3)), np.ones((9, 1)))
    browser.open(save(tmp_path / "p.html", sections_of(made)))
    assert texts(browser, ".variables tbody td") == [
        "Variable w", "f64[3]", "24 B", "1.732", "CPU:0", "read"]
    assert "gives f64[9,9]" in texts(browser, ".broadcasts a")[0]
    browser.click(*browser.at(".broadcasts a"))
    browser.until("document.getElementById('main').className === 'graph'")
    browser.settled()
    assert texts(browser, ".details h2") == ["Sub"]


def test_two_pages_compared(
    browser: Chromium, pages: dict[str, Path], tmp_path: Path
) -> None:
    path = save_comparison(pages["standardise"], pages["smooth"], tmp_path / "d.html")
    browser.open(path)
    assert browser.run("document.getElementById('main').className") == "compared"
    addresses = browser.run("[...document.querySelectorAll('main a')].map("
                            "e => e.getAttribute('href'))")
    assert {address.partition("?")[0] for address in addresses} == {"#graph", "#kernels"}
    for address in addresses[:3]:
        browser.run(f"location.hash = {json.dumps(address)}")
        browser.until(f"document.getElementById('main').className === "
                      f"{json.dumps(address[1:].partition('?')[0])}")
        browser.settled()


@pytest.mark.alone
def test_ten_thousand_nodes_open_in_a_second(browser: Chromium, tmp_path: Path) -> None:
    lines = "\n".join(f"    y = np.sin(y) * x + {number}.5" for number in range(2_600))
    scope: dict[str, Any] = {"np": np}
    source = f"def many(x):\n    y = x\n{lines}\n    return y\n"
    linecache.cache["many.py"] = len(source), None, source.splitlines(keepends=True), "many.py"
    exec(compile(source, "many.py", "exec"), scope)
    stage = fusec.jit(scope["many"]).trace(np.ones(5))
    assert len(stage.graph.nodes) >= 10_000
    path = save(tmp_path / "many.html", sections_of(stage))
    assert path.stat().st_size < LIMIT
    assert min(browser.open(path) for _ in range(3)) < 1.0
    assert min(browser.open(path, "#graph") for _ in range(3)) < 3.0
    frame = browser.run(
        "(() => { let least = 1e9; for (let i = 0; i < 10; i++) { const t = performance.now();"
        "canvas.fusec.api.fit(); least = Math.min(least, performance.now() - t); }"
        "return least; })()")
    assert frame < 50  # ms, of all boxes at once
