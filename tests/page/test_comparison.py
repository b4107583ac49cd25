"""Two pages compared: nodes and kernels are matched, and what differs is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from page_programs import loss

import fusec
from fusec import __main__ as cli
from fusec.inspect.page.comparison import compared, save_comparison
from fusec.inspect.page.page import read
from fusec.inspect.page.views import sections_of, sections_of_function

X = np.linspace(0.0, 1.0, 4_000).reshape(40, 100)


def page(f: Any, *args: Any, **options: Any) -> Any:
    return sections_of(fusec.jit(f, **options).concrete(*args))


def plain(x: Any) -> Any:
    return np.exp(-x) * x + np.sqrt(x + 1)


def other(x: Any) -> Any:
    return np.exp(-x) * x - np.sqrt(x + 1)


def apart(x: Any) -> Any:
    y = x.copy()
    y[1:-1] = np.exp(-x[1:-1])
    return y.sum()


def difference(before: Any, after: Any) -> Any:
    return compared(before, after, ["a", "b"])["comparison"]


def test_a_page_and_itself() -> None:
    made = difference(page(plain, X), page(plain, X))
    assert not made["changed"] and not made["gone"] and not made["new"] and not made["moved"]
    assert [row[:3] for row in made["kernels"]] == [[0, 0, "the same loops"]]
    assert made["same"] >= 5


def test_another_operation() -> None:
    made = difference(page(plain, X, fp="strict"), page(other, X, fp="strict"))
    assert [row[0] for row in made["gone"]] == ["Add_1"]
    assert [row[0] for row in made["new"]] == ["Sub"]
    assert made["same"] == 5
    assert [row[:3] for row in made["kernels"]] == [[0, 0, "also Sub, without Add_1"]]


def test_library_calls_and_loops_have_their_times() -> None:
    """They were the cause of what took 34 times as long, and only kernels were listed."""
    def ordered(x: Any) -> Any:
        y = np.sort(x, axis=0)
        while y.sum() > 1.0:
            y = y * 0.5
        return y

    def median(x: Any) -> Any:
        return np.sort(x, axis=0) + np.median(x)

    rows = difference(*(sections_of_function(fusec.jit(f), (X,), {})
                        for f in (ordered, median)))["others"]
    names = [[step and step[1] for step in row[:2]] for row in rows]
    assert names == [["np.sort", "np.sort"], ["loop", None], [None, "np.median"]]
    assert [[us is not None for us in row[2:]] for row in rows] == [
        [True, True], [True, False], [False, True]]


def test_other_sizes() -> None:
    made = difference(page(plain, X), page(plain, X[:7]))
    assert made["kernels"][0][2] == "other sizes or constants"
    assert all("type" in how for _, _, how in made["changed"]) and made["changed"]


def test_a_function_and_its_gradient() -> None:
    args = np.ones((100, 10)), X, np.ones((40, 10))
    made = difference(page(loss, *args), page(fusec.value_and_grad(loss), *args))
    assert not made["gone"] and len(made["new"]) >= 5
    assert made["kernels"][0][2].startswith("also")


def test_what_is_not_fused_any_more() -> None:
    made = difference(page(plain, X), page(apart, X))
    assert not made["boundaries"][0]
    assert "piecewise operands split the domain" in made["boundaries"][1][0]
    assert [row[2] for row in made["kernels"]].count("only after") == 1


def test_pages_are_compared_by_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, f in (("a", plain), ("b", other)):
        fusec.jit(f).concrete(X).save_html(tmp_path / f"{name}.html")
    a, b, out = (str(tmp_path / f"{n}.html") for n in "abc")
    assert cli.main(["view", "--diff", a, b, "-o", out]) == 0
    assert capsys.readouterr().out.strip() == out
    sections = read(out)
    assert [t["title"] for t in sections["head"]["traces"]] == ["before: a", "after: b"]
    assert {"passes/0", "passes/1", "graph/0", "graph/1", "comparison"} <= set(sections)


def test_what_cannot_be_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fusec.jit(plain).concrete(X).save_html(tmp_path / "a.html")
    (tmp_path / "b.html").write_text("<p>")
    assert cli.main(["view", "--diff", str(tmp_path / "a.html"), str(tmp_path / "b.html")]) == 1
    assert "no page of fusec's" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cli.main(["view"])
    with pytest.raises(OSError, match="cannot be written"):
        save_comparison(tmp_path / "a.html", tmp_path / "a.html", tmp_path / "no" / "c.html")
    twice = save_comparison(tmp_path / "a.html", tmp_path / "a.html", tmp_path / "c.html")
    save_comparison(twice, twice, tmp_path / "d.html")
