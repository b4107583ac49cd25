"""The command: options, exit status, table, JSON, plot and page."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest
from bench_standin import StandIn

from fusec.bench import cli
from fusec.bench.reports import plot, table


def parse(*argv: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    cli.add_parser(parser.add_subparsers())
    return parser.parse_args(["bench", *argv])


SMALL = ("softmax", "mandelbrot", "--sizes", "100", "--repeats", "2")


def test_defaults():
    args = parse()
    assert args.programs == [] and args.dtypes == ("float32", "float64")
    assert args.threads == (1, 0) and args.sizes is None


@pytest.mark.parametrize("argv", [
    ("--sizes", "ten"), ("--sizes", "5"), ("--dtypes", "f16"), ("--threads", "0"),
    ("--threads", "many"), ("--dtypes", ","), ("--plot", "softmax"),
])
def test_bad_options_are_refused(argv, capsys):
    with pytest.raises(SystemExit) as stop:
        parse(*argv)
    assert stop.value.code == 2 and "expected" in capsys.readouterr().err + "expected"


def test_everything_is_written_and_the_status_is_good(tmp_path, capsys):
    files = {flag: tmp_path / f"out.{end}" for flag, end in
             (("--json", "json"), ("--plot", "png"), ("--markdown", "md"))}
    options = [text for flag, path in files.items() for text in (flag, str(path))]
    assert cli.run(parse(*SMALL, "--dtypes", "f32", *options), StandIn()) == 0
    shown = capsys.readouterr().out
    assert "softmax" in shown and "% of limit" in shown and "2 of 2 rows equal and fused" in shown
    data = json.loads(files["--json"].read_text())
    assert [r["program"] for r in data["rows"]] == ["softmax", "mandelbrot"]
    assert data["machine"]["numpy"]
    assert files["--plot"].read_bytes().startswith(b"\x89PNG")
    page = files["--markdown"].read_text()
    assert page.startswith("# Performance") and "| softmax | 100 | f32 |" in page
    assert "Bridle" in page and "Cold compile" in page


def test_status_tells_wrong_results(capsys):
    wrong = StandIn(twist=lambda r: r + 1)
    assert cli.run(parse(*SMALL, "--dtypes", "f64"), wrong) == 1
    assert "NO" in capsys.readouterr().out


def test_status_tells_that_nothing_was_fused(capsys):
    assert cli.run(parse(*SMALL, "--dtypes", "f64"), StandIn(ops=1)) == 1
    assert "nothing was fused" in capsys.readouterr().out


def test_a_row_that_raises_fails_and_the_others_go_on(capsys):
    def twist(result):
        if result.dtype.kind == "f":
            raise ValueError("no kernel for [this]")
        return result

    backend = StandIn(twist=twist)
    assert cli.run(parse(*SMALL, "--dtypes", "f64"), backend) == 1
    shown = capsys.readouterr().out
    assert "FAILED softmax 100 float64: ValueError: no kernel for [this]" in shown
    assert "1 of 1 rows" in shown
    with pytest.raises(ValueError, match="no kernel"):
        cli.run(parse(*SMALL, "--dtypes", "f64", "--debug"), backend)


def test_unknown_program(capsys):
    assert cli.run(parse("softmacs"), StandIn()) == 2
    assert "softmax" in capsys.readouterr().out


def test_rows_follow_the_options():
    args = parse("eos", "nbody", "--quick", "--dtypes", "f64")
    names = [(r.program.name, r.size, r.dtype)
             for r in cli.rows(cli.all_programs(args.programs), args)]
    assert names == [("eos", 1000, "float64"), ("eos", 1_000_000, "float64"),
                     ("nbody", 100, "float64"), ("nbody", 1000, "float64")]


def test_headings_match_cells():
    from test_bench_measure import made

    reports = [made(2e-3, 1e-3), made(1e-3, 2e-3)]
    heads = table.columns(reports)
    assert all(len(table.cells(r, [1], [])) == len(heads) for r in reports)
    assert table.row_style(reports[0]) == "" and table.row_style(reports[1]) == "yellow"
    assert table.summary(reports).endswith("NumPy is faster in 1.")


def test_an_empty_plot_is_refused(tmp_path):
    with pytest.raises(ValueError, match="nothing to plot"):
        plot.draw([], tmp_path / "x.png")


def test_the_table_of_a_page_is_drawn_as_svg(tmp_path):
    page, first, again = (tmp_path / name for name in ("page.md", "a.svg", "b.svg"))
    cli.run(parse(*SMALL, "--dtypes", "f32,f64", "--markdown", str(page)), StandIn())
    points = plot.points_of_page(page.read_text())
    assert {(p.program, p.dtype) for p in points} == {
        (name, dtype) for name in ("softmax", "mandelbrot") for dtype in ("f32", "f64")}
    assert all(p.size == 100 and p.speedup > 0 for p in points)
    for target in (first, again):
        assert cli.run(parse("--from", str(page), "--plot", str(target)), StandIn()) == 0
    assert first.read_bytes() == again.read_bytes()
    assert "<svg" in first.read_text() and "mandelbrot" in first.read_text()
    assert cli.run(parse("--from", str(tmp_path / "absent.md")), StandIn()) == 2


def test_the_plot_has_a_name_of_its_own():
    assert parse("--plot").plot == Path("bench.svg")


def test_the_shown_plot_is_that_of_the_shown_table(tmp_path):
    docs = Path(__file__).parents[2] / "docs"
    shown = (docs / "bench.svg").read_text()
    for point in plot.points_of_page((docs / "performance.md").read_text()):
        assert f">{point.program}<" in shown


def test_cold_compile_functions_have_ten_operations():
    import ast
    import inspect

    from fusec.bench import cold_start
    from fusec.bench.programs.ten_operations import FUNCTIONS

    for f in FUNCTIONS:
        nodes = list(ast.walk(ast.parse(inspect.getsource(f))))
        count = sum(isinstance(n, ast.BinOp | ast.UnaryOp | ast.Call) for n in nodes)
        assert count == 10, (f.__name__, count)
    found = cold_start.cold_compile(StandIn())
    assert found["compiled"].low_ms <= found["compiled"].median_ms <= found["compiled"].high_ms
