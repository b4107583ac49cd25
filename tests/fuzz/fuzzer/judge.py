"""Whether a program is compiled rightly: every back end, every pass, any number of threads."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "differential"))
from harness import Outcome, assert_outcomes, clone, run, run_with
from tolerance import Tolerance, same_bits

import fusec
from fusec.codegen.kernels.reference import run_kernel
from fusec.codegen.python.python_source import kernel_source
from fusec.errors import ConcreteValueError, FusecError, TraceError, UnsupportedError
from fusec.ir import Graph
from fusec.ops.graphs.evaluate import evaluate_all
from fusec.ops.graphs.verify import verify
from fusec.passes.options import PassOptions
from fusec.passes.pipeline import Repeat, pipeline

from .program import ORACLE, Program
from .rounding import MORE_RUNS, RUNS, Span

REFUSALS = (UnsupportedError, ConcreteValueError, TraceError)


class Failure(AssertionError):
    """A program is compiled wrongly."""


@dataclass
class Verdict:
    """A program's outcome.  ``program`` is the rest of it once refusals were taken out."""

    program: Program
    refused: list[str] = field(default_factory=list)
    rows: Counter[str] = field(default_factory=Counter)
    checks: Counter[str] = field(default_factory=Counter)


class _Spanned(Tolerance):
    """Notes which leaves differ from NumPy's; `settle` asks whether they may."""

    def __init__(self, span: Callable[[int], Span]) -> None:
        self.span, self.differ = span, list[tuple[int, Any, Any, str]]()

    def check(self, got: np.ndarray, want: np.ndarray, wide: Any, what: str) -> None:
        if not same_bits(got, want).all():
            self.differ.append((int(wide), got, want, what))

    def settle(self) -> None:
        for runs in (RUNS, MORE_RUNS) if self.differ else ():
            span = self.span(runs)
            wrong = [self._wrong(span, *each) for each in self.differ]
            if span.is_unstable or not any(wrong):
                return
        if self.differ:
            raise Failure(next(filter(None, wrong)))

    def _wrong(self, span: Span, number: int, got: Any, want: Any, what: str) -> str:
        bad = span.outside(number, got, want)
        if not bad.any():
            return ""
        at = tuple(int(i) for i in np.argwhere(bad)[0]) if bad.ndim else ()
        spanned = [np.asarray(r[number])[at] for r in span.runs[:6]]
        return (f"{what}: {int(bad.sum())} of {bad.size} elements are wrong, the first at {at}: "
                f"{got[at]!r} for {want[at]!r}; other roundings give {spanned}")


class Judge:
    """All checks of one program; ``turn`` (a number of the seed) says which of the costly ones."""

    def __init__(self, program: Program, turn: int = 0) -> None:
        self.program, self.turn = program, turn
        self.verdict = Verdict(program)
        self.spans: dict[int, Span] = {}
        self.compiled: Any = None

    def judge(self) -> Verdict:
        """Raises `Failure`, or whatever fusec raised that NumPy did not."""
        while True:
            try:
                self._agree()
                self.verdict.program = self.program
                return self.verdict
            except REFUSALS as refusal:
                if not self._drop_refused(refusal):
                    raise Failure(f"nothing left to refuse: {refusal}") from refusal

    def _drop_refused(self, refusal: FusecError) -> bool:
        """Take out the statement that is refused; False when it is none of them."""
        line = refusal.loc.line if refusal.loc is not None else 0
        number = line - 2
        if not 0 <= number < len(self.program.statements):
            number = len(self.program.statements) - 1
        if number < 0:
            return False
        self.verdict.refused.append(f"{self.program.statements[number].op}: {short(refusal)}")
        rest = self.program.without(number)
        self.program = replace(rest, results=rest.results or ("x0",))
        self.spans.clear()
        return True

    # -- whole calls

    def _agree(self) -> None:
        program = self.program
        args = program.make()
        eager = program.function(ORACLE)
        compiled = self.compiled = fusec.jit(program.function(), fp=program.fp)
        want = run(eager, args)
        self._compare(run(compiled, args), want, "first call")
        traces = compiled.trace_count
        self._compare(run(compiled, args), want, "second call")
        if compiled.trace_count != traces:
            raise Failure("the second call was traced again")
        if want.error is not None:
            self.verdict.checks["errors"] += 1
            return
        concrete = compiled.concrete(*clone(tuple(args)))
        self.verdict.rows.update(rows_of(concrete.graph) | rows_of(concrete.optimized_graph))
        for turn, every, name, check in (
            (0, 3, "reference", self._reference), (1, 6, "source", self._source),
            (2, 4, "passes", self._passes), (3, 8, "threads", self._threads),
        ):
            if self.turn % every == turn % every:
                self.verdict.checks[name] += 1
                check(compiled, concrete, args, want)

    def _compare(self, got: Outcome, want: Outcome, what: str) -> None:
        if isinstance(got.error, REFUSALS):
            raise got.error
        if (got.error is None) != (want.error is None) and self._span(RUNS).is_unstable:
            return
        if _data_decides(want.error) and isinstance(got.error, FusecError):
            return  # what shapes and dtypes decide is found first, while tracing
        tolerance = _Spanned(self._span)
        try:
            assert_outcomes(got, want, tolerance, _numbered(want), f"{what}:")
        except AssertionError as error:
            if got.error is None and self._span(MORE_RUNS).is_unstable:
                return  # rounding decides sizes: which values are unique, say
            if _is_of_layouts(str(error)) and self._has_sizes_of_the_run():
                return  # of which layouts depend; fusec's are those of sizes above 1
            raise
        tolerance.settle()

    def _has_sizes_of_the_run(self) -> bool:
        graphs = [concrete.graph for concrete in self.compiled.traces] if self.compiled else []
        return any(not t.is_static for g in graphs for n in g.nodes for t in n.types)

    def _span(self, runs: int) -> Span:
        if runs not in self.spans:
            self.spans[runs] = Span(self.program, lambda: clone(self.program.make()), runs)
        return self.spans[runs]

    # -- costly ones

    def _reference(self, compiled: Any, concrete: Any, args: Any, want: Outcome) -> None:
        self._compare(run(lambda *a: run_with(concrete, run_kernel, a), args), want, "reference")

    def _source(self, compiled: Any, concrete: Any, args: Any, want: Outcome) -> None:
        self._compare(run(lambda *a: run_with(concrete, _run_source, a), args), want, "source")

    def _threads(self, compiled: Any, concrete: Any, args: Any, want: Outcome) -> None:
        """Any number of threads gives the bits of one."""
        with fusec.config.override(num_threads=1):
            one = run(compiled, args)
        with fusec.config.override(num_threads=2):
            two = run(compiled, args)
        assert_outcomes(two, one, what="two threads:")

    def _passes(self, compiled: Any, concrete: Any, args: Any, want: Outcome) -> None:
        spec = concrete.executable.spec
        leaves = concrete.call_of(clone(tuple(args)), {}).leaves
        inputs: list[Any] = [None] * len(spec.input_types)
        for leaf, value in zip(spec.leaves, leaves, strict=True):
            if leaf.input >= 0:  # dense: NumPy's own functions round by how operands lie
                inputs[leaf.input] = np.array(value) if isinstance(value, np.ndarray) else value
        inputs[len(inputs) - len(spec.captured):] = spec.captured
        check_passes(concrete.graph, inputs)


def _is_of_layouts(text: str) -> bool:
    """One element is contiguous however it lies: a view, say, where more would be copied."""
    return ": strides " in text or text.endswith("share memory than in NumPy")


def _data_decides(error: Exception | None) -> bool:
    """Whether NumPy raises because of an array's elements, which only the run knows."""
    return isinstance(error, np.linalg.LinAlgError) or any(
        isinstance(error, kind) and text in str(error) for kind, text in (
            (IndexError, "is out of bounds for axis"), (ValueError, "autodetected range")))


class _ElementWise:
    """NumPy as array loops see it: its ``power`` of one element takes a shortcut for 0.5."""

    @staticmethod
    def power(a: Any, b: Any) -> Any:
        return np.power(np.stack([a, a]), np.stack([b, b]))[0]

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


def _run_source(kernel: Any, buffers: Any) -> None:
    """The kernel's readable source, as plain Python."""
    scope: dict[str, Any] = {"np": _ElementWise()}
    text = kernel_source(kernel).replace("import numpy as np\n", "", 1)
    exec(compile(text, "<fuzz kernel>", "exec"), scope)
    functions = [v for v in scope.values() if isinstance(v, FunctionType)]
    with np.errstate(all="ignore"):
        functions[-1](*buffers)


def short(error: Exception) -> str:
    """A refusal as a campaign counts it."""
    return str(error).partition("\n")[0].replace(
        " is not supported inside a fusec.jit function", "")[:100]


def _numbered(want: Outcome) -> Outcome:
    """An outcome whose leaves are their numbers: results first, then arguments."""
    count = len(want.leaves)
    return Outcome(list(range(count)), [count + i for i in range(len(want.arg_leaves))], None)


def rows_of(graph: Graph) -> Counter[str]:
    """The ops of a graph and of the graphs in it."""
    rows = Counter(node.op for node in graph.nodes)
    for node in graph.nodes:
        for body in node.attrs.values():
            if isinstance(body, Graph):
                rows += rows_of(body)
    return rows


def check_passes(graph: Graph, leaves: list[np.ndarray]) -> None:
    """Every pass but the fma pass keeps each value bit for bit, and is idempotent."""
    with np.errstate(all="ignore"):
        before, has_powers = evaluate_all(graph, leaves), "Pow" in rows_of(graph)
        for step in pipeline(PassOptions("strict")):
            for item in step.passes if isinstance(step, Repeat) else (step,):
                after = item.run(graph)
                verify(after)
                if not isinstance(step, Repeat) and item.run(after) is not after:
                    raise Failure(f"the pass {item.name} changes its own result")
                found = evaluate_all(after, leaves)
                _assert_kept(found, before, item.name, has_powers)
                graph, before = after, found


def _assert_kept(found: Any, wanted: Any, name: str, has_powers: bool) -> None:
    old, new = dict(wanted[1]), dict(found[1])
    pairs = [*zip(found[0], wanted[0], strict=True), *[(new[k], old[k]) for k in new]]
    for a, b in pairs:
        a, b = np.asarray(a), np.asarray(b)
        # NumPy's float_power of 2 is its power function; x * x is the exact one.
        is_power = name == "simplify" and has_powers and a.dtype.kind == "f"
        kept = same_bits(a, b) | (np.isclose(a, b, rtol=1e-15, atol=0) if is_power else False)
        if a.dtype != b.dtype or a.shape != b.shape or not kept.all():
            raise Failure(f"the pass {name} makes {b!r} into {a!r}")
