"""The per-op table: measuring, reasons, and its section of the page."""

from __future__ import annotations

import argparse

import pytest

from fusec.bench import cli, ops
from fusec.bench.cases import op_cases

PAGE = "# Performance\n\nhead\n\n## The programs\n\n- one\n"


def parse(*argv: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    cli.add_parser(parser.add_subparsers())
    return parser.parse_args(["bench", *argv])


def result(numpy_s: float, fusec_s: float, externs: tuple[str, ...] = ()) -> ops.OpResult:
    case = op_cases.all_cases()[0]
    return ops.OpResult(case, "float32", 1000, {"numpy": numpy_s, "fusec": fusec_s}, externs)


@pytest.mark.parametrize("case", op_cases.all_cases(), ids=lambda c: c.name)
def test_every_op_runs_and_equals_numpys(case: op_cases.OpCase) -> None:
    for dtype in case.dtypes:
        found = ops.measure(case, dtype, 100, budget=0.0)
        assert not found.failure
        assert {"numpy", "fusec"} <= set(found.seconds)


def test_the_slower_come_first_with_a_reason() -> None:
    fast, slow = [result(2e-6, 1e-6)], [result(1e-6, 21e-6, ("np.sort",))]
    text = ops.render([fast, slow], (1000,))
    first, rest = text.split("### The rest")
    assert "Slower than NumPy (1 of 2)" in first
    assert "library call" in first and "20.0 µs" in first
    assert "2.00x | fused |" in rest


def test_reasons() -> None:
    assert "fixed cost" in ops.reason([result(1e-6, 2e-6), result(1e-3, 5e-4)])
    assert ops.reason([result(1e-6, 2e-6), result(1e-3, 2e-3)]) == "the kernel is slower"
    failed = ops.OpResult(op_cases.all_cases()[0], "float32", 9, {}, (), "gives other values")
    assert ops.is_slower([failed]) and ops.reason([failed]) == "gives other values"


def test_the_section_is_put_into_a_page_and_replaced() -> None:
    section = ops.TITLE + "\n\ntable\n"
    once = ops.with_section(PAGE, section)
    assert once.endswith(section) and once.startswith(PAGE.rstrip())
    assert ops.with_section(once, section) == once
    middle = once + "\n## After\n\nlast\n"
    assert ops.section_of(middle).rstrip() == section.rstrip()
    other = ops.with_section(middle, ops.TITLE + "\n\nnew\n")
    assert "new" in other and "table" not in other and other.endswith("\n## After\n\nlast\n")
    assert ops.with_section(PAGE, ops.section_of(PAGE)) == PAGE


def test_the_command_writes_the_page(tmp_path, capsys) -> None:
    path = tmp_path / "page.md"
    path.write_text(PAGE)
    argv = ("add", "sort", "--ops", "--sizes", "100", "--markdown", str(path))
    assert cli.run(parse(*argv)) == 0
    text = path.read_text()
    assert text.startswith(PAGE.rstrip()) and "| add | float32 |" in text
    assert cli.run(parse("add", "--ops", "--sizes", "100")) == 0
    assert "| add | float64 |" in capsys.readouterr().out
