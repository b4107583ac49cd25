"""``python -m fusec bench``: measure the programs, print the table, write JSON and a plot."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fusec.codegen.cuda import disassembly
from fusec.codegen.cuda.driver.nvrtc import NoNvrtcError
from fusec.core import gpus

from . import cold_start, gpu_suite, ops
from .cases import gpu_figures, lane_figures
from .gradients import suite
from .measure import benchmark
from .measuring import host
from .measuring.adapter import FusecBackend, MeasuredBackend
from .measuring.program import DTYPES, Program
from .peers import peers
from .programs import NAMES, all_programs
from .reports import page, plot, table
from .reports.report import Report

DTYPE_NAMES = {"f32": "float32", "f64": "float64"} | {name: name for name in DTYPES}
SEEDS = 3
SMALL_ELEMENTS = 200_000
QUICK_BUDGET = 0.35


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    """Add the ``bench`` command to the parser of ``python -m fusec``."""
    parser = subparsers.add_parser(
        "bench", help="measure the benchmark programs against eager NumPy",
        description=f"Programs: {', '.join(NAMES)}.  The exit status is 1 when a result is not "
                    "equal to NumPy's or a program was not fused.")
    parser.add_argument("programs", nargs="*", metavar="program", help="default: all of them")
    parser.add_argument("--sizes", type=_sizes, metavar="N,N", help="such as 1000,1e6")
    parser.add_argument("--dtypes", type=_dtypes, default=DTYPES, metavar="f32,f64")
    parser.add_argument("--threads", type=_threads, default=(1, 0), metavar="1,all")
    parser.add_argument("--budget", type=float, default=1.0, metavar="SECONDS",
                        help="time per row spent timing (default 1)")
    parser.add_argument("--repeats", type=int, metavar="N", help="rounds, instead of a budget")
    parser.add_argument("--peers", action="store_true",
                        help="add JAX, torch.compile, numexpr and Numba where installed")
    parser.add_argument("--ops", action="store_true",
                        help="time every op alone, not the programs; names pick ops")
    parser.add_argument("--suite", choices=("cpu", "gpu", "gradients"), default="cpu",
                        help="gpu: times on the first GPU, beside CuPy, JAX and torch where they "
                             "are installed; and what kernels take of one, from NVIDIA's compiler, "
                             "for which none is needed; gradients: what they cost, beside JAX")
    parser.add_argument("--quick", action="store_true", help="two sizes each, short timings")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--plot", type=_figure, nargs="?", const=Path("bench.svg"),
                        metavar="FILE.svg", help="draw the table (default bench.svg)")
    parser.add_argument("--from", dest="page", type=Path, metavar="FILE.md",
                        help="with --plot: draw the table of a page that --markdown wrote, and "
                             "measure nothing")
    parser.add_argument("--markdown", type=Path, metavar="FILE.md",
                        help="write the page that docs/performance.md is")
    parser.add_argument("--debug", action="store_true", help="stop at the first row that raises")
    parser.set_defaults(run=run)
    return parser


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def _sizes(text: str) -> tuple[int, ...]:
    try:
        sizes = tuple(int(float(item)) for item in _items(text))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: expected numbers such as 1000,1e6") from None
    if not sizes or min(sizes) < 10:
        raise argparse.ArgumentTypeError(f"{text!r}: sizes start at 10")
    return sizes


def _dtypes(text: str) -> tuple[str, ...]:
    unknown = [item for item in _items(text) if item not in DTYPE_NAMES]
    if unknown or not _items(text):
        raise argparse.ArgumentTypeError(f"{text!r}: expected f32, f64 or both")
    return tuple(DTYPE_NAMES[item] for item in _items(text))


def _figure(text: str) -> Path:
    path = Path(text)
    if path.suffix not in plot.FORMATS:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a name in {', '.join(plot.FORMATS)}")
    return path


def _threads(text: str) -> tuple[int, ...]:
    """Thread counts; ``all`` is 0 here and the setting's value later."""
    items = _items(text)
    if not items or any(item != "all" and not (item.isdigit() and int(item)) for item in items):
        raise argparse.ArgumentTypeError(f"{text!r}: expected numbers from 1, or all")
    return tuple(0 if item == "all" else int(item) for item in items)


@dataclasses.dataclass(frozen=True)
class TableRow:
    """One line of the table to be."""

    program: Program
    size: int
    dtype: str

    def check_sets(self) -> list[tuple[Any, ...]]:
        """Inputs for the equality check: three seeds where they are small, one where large."""
        first = self.program.make_args(self.size, self.dtype, 0)
        small = sum(a.size for a in first if isinstance(a, np.ndarray)) <= SMALL_ELEMENTS
        return [first, *(self.program.make_args(self.size, self.dtype, seed)
                         for seed in range(1, SEEDS if small else 1))]


def rows(programs: Sequence[Program], args: argparse.Namespace) -> Iterator[TableRow]:
    """Every program at its sizes and dtypes, as asked for."""
    for program in programs:
        sizes = args.sizes or (program.quick_sizes if args.quick else program.sizes)
        for dtype in args.dtypes:
            for size in sizes:
                yield TableRow(program, size, dtype)


def measure(row: TableRow, args: argparse.Namespace, backend: MeasuredBackend) -> Report:
    """Benchmark one row."""
    checks = row.check_sets()
    counts = sorted({n or backend.max_threads() for n in args.threads})
    report = benchmark(
        row.program.function, *checks[0], checks=checks, threads=counts, repeats=args.repeats,
        time_budget_s=QUICK_BUDGET if args.quick else args.budget, backend=backend,
        peers=peers.for_program(row.program) if args.peers else None)
    assert isinstance(report, Report)  # of NumPy's arrays
    return dataclasses.replace(
        report, program=row.program.name, size=row.size, dtype=row.dtype)


def run(args: argparse.Namespace, backend: MeasuredBackend | None = None) -> int:
    """Run the command; 0 when every program was equal and fused, else 1, 2 for a wrong name."""
    from rich.console import Console
    from rich.markup import escape

    console = Console()
    if args.page:
        return _draw_page(args, console)
    if args.ops:
        return _run_ops(args, console)
    if args.suite == "gradients":
        budget = QUICK_BUDGET if args.quick else args.budget
        return suite.run(args.programs, args.quick, budget, args.markdown)
    try:
        programs = all_programs(args.programs)
    except KeyError as error:
        console.print(f"[red]error[/red]: {error.args[0]}")
        return 2
    if args.suite == "gpu":
        return max(_measure_gpu(programs, args, console),
                   _show_gpu_figures(programs, args, console))
    requested = list(rows(programs, args))
    reports, failures = _measure_all(requested, args, backend or FusecBackend(), console)
    _show(reports, console)
    for line in failures:
        console.print(f"  [red]FAILED[/red] {escape(line)}", highlight=False, soft_wrap=True)
    if reports:
        _write(reports, args, backend or FusecBackend(), console)
    return 0 if not failures and all(r.equality.equal and r.fused for r in reports) else 1


def _measure_gpu(programs: Sequence[Program], args: argparse.Namespace, console: Any) -> int:
    """The suite on a GPU, where there is one; 1 when a result is wrong."""
    reason = gpus.missing()
    if reason:
        print(f"nothing was measured: {reason}")
        return 0
    try:
        for line in gpu_suite.run(programs, args.dtypes, args.quick):
            print(line, flush=True)
    except gpu_suite.Failed as error:
        console.print(f"[red]error[/red]: {error}")
        return 1
    return 0


def _show_gpu_figures(
    programs: Sequence[Program], args: argparse.Namespace, console: Any
) -> int:
    """The table of CUDA kernels; 2 without NVRTC."""
    try:
        figures = gpu_figures.table(programs, args.dtypes)
        lanes = lane_figures.table(args.dtypes) if disassembly.disassembler() else ""
    except NoNvrtcError as error:
        console.print(f"[red]error[/red]: {error}")
        return 2
    print(figures, lanes, sep="\n\n")
    return 0


def _draw_page(args: argparse.Namespace, console: Any) -> int:
    target = args.plot or Path("bench.svg")
    points = plot.points_of_page(args.page.read_text("utf-8")) if args.page.exists() else []
    if not points:
        console.print(f"[red]error[/red]: {args.page} is no page with the table of a benchmark")
        return 2
    plot.draw(points, target)
    console.print(f"wrote {target}", highlight=False)
    return 0


def _run_ops(args: argparse.Namespace, console: Any) -> int:
    """The per-op table, on the screen or into a page; 1 when an op fails."""
    sizes = args.sizes or ops.SIZES
    with console.status("") as status:
        table = ops.measure_all(args.programs, sizes, ops.BUDGET, status.update)
    section = ops.render(table, sizes)
    if args.markdown:
        ops.write(args.markdown, section)
        console.print(f"wrote {args.markdown}", highlight=False)
    else:
        print(section)
    return int(any(r.failure for row in table for r in row))


def _measure_all(
    requested: Sequence[TableRow], args: argparse.Namespace, backend: MeasuredBackend, console: Any
) -> tuple[list[Report], list[str]]:
    """Measure under a progress bar; a row that raises becomes a line, and the others go on."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    bar = Progress(TextColumn("{task.description:32}"), BarColumn(), MofNCompleteColumn(),
                   TimeElapsedColumn(), console=console, transient=True, auto_refresh=False,
                   disable=not console.is_terminal)
    reports, failures = [], []
    with bar:
        task = bar.add_task("", total=len(requested))
        for row in requested:
            name = f"{row.program.name} {row.size:,} {row.dtype}"
            # A bar that redraws itself would take time from the kernels being timed.
            bar.update(task, description=name, refresh=True)
            try:
                reports.append(measure(row, args, backend))
            except Exception as error:
                if args.debug:
                    raise
                failures.append(f"{name}: {type(error).__name__}: {error}")
            bar.advance(task)
    return reports, failures


def _show(reports: Sequence[Report], console: Any) -> None:
    # A table squeezed into a narrow terminal or a log file is unreadable; let it be wide.
    if console.width < 150:
        console.width = 150
    console.print(host.sentence(), style="dim", highlight=False, soft_wrap=True)
    if not reports:
        return
    console.print(table.rich_table(reports))
    for line in table.remarks(reports):
        console.print(f"  {line}", highlight=False, soft_wrap=True)
    console.print(table.summary(reports), highlight=False, soft_wrap=True)


def _write(
    reports: Sequence[Report], args: argparse.Namespace, backend: MeasuredBackend, console: Any
) -> None:
    """Write the files that were asked for, and print the name of each."""
    if args.json:
        data = {"machine": host.describe(), "rows": [r.to_dict() for r in reports]}
        args.json.write_text(json.dumps(data, indent=1, default=_plain) + "\n")
        console.print(f"wrote {args.json}", highlight=False)
    if args.plot:
        plot.draw(plot.points_of(reports), args.plot)
        console.print(f"wrote {args.plot}", highlight=False)
    if args.markdown:
        old = args.markdown.read_text() if args.markdown.exists() else ""
        text = page.render(reports, cold_start.cold_compile(backend))
        args.markdown.write_text(page.with_others(text, old))
        console.print(f"wrote {args.markdown}", highlight=False)


def _plain(value: Any) -> Any:
    """NumPy scalars in the data as Python numbers."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"internal error: {type(value).__name__} in a report's data")
