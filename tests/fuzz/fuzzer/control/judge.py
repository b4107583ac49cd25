"""Whether a control program agrees with Python and NumPy: results, mutations, exceptions."""

from __future__ import annotations

import ast
import functools
import itertools
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import fusec
from fusec.errors import FusecError, FusecTypeError

from ..judge import (
    REFUSALS,
    Outcome,
    Tolerance,
    Verdict,
    assert_outcomes,
    rows_of,
    run,
    short,
)
from ..orders import AnyOrder
from .module_state import assert_state
from .program import ControlProgram, StatefulProgram
from .trees import without_line

TRIALS, STATEFUL_TRIALS = 2, 3
ORDERS = 4  # in which sums are taken to see whether they decide
EAGER_SECONDS = 2.0  # a shortened program may have lost what ends its loop


class TookTooLong(Exception):
    """The eager run does not end."""


_NOT_JUDGED = (UnboundLocalError, NameError, TookTooLong)


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raises `TookTooLong` in the block when the time is up."""
    def stop(*_: Any) -> None:
        raise TookTooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


class Near(Tolerance):
    """Sums may be taken in another order; values that follow from them are as near."""

    def check(self, got: np.ndarray, want: np.ndarray, wide: Any, what: str) -> None:
        with np.errstate(all="ignore"):
            near = np.isclose(got, want, rtol=1e-9, atol=1e-9, equal_nan=True)
        if not near.all():
            super().check(np.where(near, want, got), want, wide, what)


class AnyZero(Tolerance):
    """Which of two zeros an extremum is, is not promised."""

    def check(self, got: np.ndarray, want: np.ndarray, wide: Any, what: str) -> None:
        super().check(np.where((got == 0) & (want == 0), want, got), want, wide, what)


def tolerance_of(program: ControlProgram) -> Tolerance:
    if program.rounds:
        return Near()
    return AnyZero() if re.search(r"\b(max|min)", program.source) else Tolerance()


class ControlJudge:
    """Runs the program on a few draws of its arguments, refused parts taken out of it."""

    def __init__(self, program: ControlProgram, turn: int = 0) -> None:
        self.program = program
        self.verdict = Verdict(program)

    def judge(self) -> Verdict:
        """Raises `Failure`, or whatever fusec raised that NumPy did not."""
        while True:
            try:
                self._agree()
                self.verdict.program = self.program
                return self.verdict
            except FusecError as refusal:
                if not (isinstance(refusal, REFUSALS) or _has_two_kinds(refusal)):
                    raise
                if refusal.loc is None:  # it happened when the code ran
                    self.verdict.refused.append(short(refusal))
                    return self.verdict
                if not self._drop_refused(refusal):  # what refuses it is no statement of its own
                    self.verdict.refused.append(short(refusal))
                    return self.verdict

    def _drop_refused(self, refusal: FusecError) -> bool:
        line = refusal.loc.line if refusal.loc is not None else 0
        shorter = without_line(self.program.source, line)
        if shorter is None:
            return False
        self.verdict.refused.append(short(refusal))
        self.program = self.program.with_source(shorter)
        return True

    def _agree(self) -> None:
        program = self.program
        compiled = fusec.jit(program.function(), fp="strict")
        for trial, args in enumerate(self._argument_sets()):
            with limited(EAGER_SECONDS):
                want = run(program.function(), args)
            if isinstance(want.error, _NOT_JUDGED):
                return
            got = run(compiled, args)
            if isinstance(got.error, REFUSALS) or (
                    program.resizes and _has_two_kinds(got.error)):
                raise got.error
            if program.resizes and want.error is not None and got.error is not None:
                return  # of two mistakes the later one may be seen while tracing
            if program.resizes or chosen_by_data(program.source):
                got.result, want.result = unshared(got.result), unshared(want.result)
            tolerance = tolerance_of(program)
            try:
                assert_outcomes(plain(got), plain(want), tolerance, what=f"trial {trial}:")
            except AssertionError:
                if not program.rounds or not self._is_unstable(want, args):
                    raise
                self.verdict.checks["unstable"] += 1
                return
            self.verdict.checks["errors"] += want.error is not None
        for concrete in compiled.traces:
            self.verdict.rows.update(rows_of(concrete.graph))


    def _argument_sets(self) -> Iterator[list[Any]]:
        """Those of each trial, and arrays apart from each other where these share memory: no trace
        of one kind serves the other."""
        args: list[Any] = []
        for trial in range(TRIALS):
            args = self.program.make(trial)
            yield args
        args = self.program.make(TRIALS - 1)
        arrays = [x for x in args if isinstance(x, np.ndarray)]
        if any(np.may_share_memory(a, b) for a, b in itertools.combinations(arrays, 2)):
            yield [x.copy() if isinstance(x, np.ndarray) else x for x in args]

    def _is_unstable(self, want: Outcome, args: list[Any]) -> bool:
        """Whether the eager run itself depends on the order in which it adds."""
        return any(self._differs(want, args) for _ in range(ORDERS))

    def _differs(self, want: Outcome, args: list[Any]) -> bool:
        function = self.program.function()

        def in_any_order(*given: Any) -> Any:
            result = function(*(v.view(AnyOrder) if isinstance(v, np.ndarray) else v
                                for v in given))
            return tuple(r.view(np.ndarray) if isinstance(r, AnyOrder) else r for r in result)

        other = run(in_any_order, args)
        if want.error is not None or other.error is not None:
            return type(want.error) is not type(other.error)
        try:
            assert_outcomes(plain(other), plain(want), Near())
        except AssertionError:
            return True
        return False


def _has_two_kinds(error: Exception | None) -> bool:
    """Whether a variable is a number on one way through the program and None on another."""
    return isinstance(error, FusecTypeError) and any(
        text in str(error) for text in ("different things", "changes its type"))


class StatefulJudge(ControlJudge):
    """Calls it again after the module's state was changed, and compares that state as well."""

    program: StatefulProgram

    def _agree(self) -> None:
        program = self.program
        eager, own = program.module(), program.module()
        compiled = fusec.jit(own["program"], fp="strict")
        tolerance = Near()
        for trial in range(STATEFUL_TRIALS):
            try:
                eager["touch"](trial)
            except LookupError:  # of what an earlier call or touch took away
                return
            own["touch"](trial)
            args = program.make(trial)
            with limited(EAGER_SECONDS):
                want = run(eager["program"], args)
            if isinstance(want.error, (*_NOT_JUDGED, AttributeError)):
                return
            got = run(compiled, args)
            if isinstance(got.error, REFUSALS) or _has_two_kinds(got.error):
                raise got.error
            if want.error is None:
                got.result, want.result = unshared(got.result), unshared(want.result)
            assert_outcomes(plain(got), plain(want), tolerance, what=f"trial {trial}:")
            if want.error is not None:
                self.verdict.checks["errors"] += 1
                return  # what a call that raises leaves behind is not promised
            assert_state(own, eager, tolerance, f"after trial {trial}",
                         rebinds_arrays(program.source))
            self.verdict.checks["states"] += 1
        for concrete in compiled.traces:
            self.verdict.rows.update(rows_of(concrete.graph))


@functools.lru_cache(maxsize=16)
def rebinds_arrays(source: str) -> bool:
    """Whether the program binds an array that outlives the call: where data decides to which, it
    is a copy of it, which `docs/ir.md` says."""
    body = source[source.index("def program"):source.index("def touch")]
    return "BUFFER = " in body or ".data = " in body


@functools.lru_cache(maxsize=16)
def chosen_by_data(source: str) -> bool:
    """Whether branches or loops decide which arrays are returned: then they are copies of them,
    which `docs/ir.md` says."""
    nodes = list(ast.walk(ast.parse(source)))
    loops = [n for n in nodes if isinstance(n, ast.For | ast.While)]
    inside = [n for loop in loops for n in ast.walk(loop)]
    return _returns_differ(nodes) or any(isinstance(n, ast.Return) or (
        isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and n.id in ("v", "x", "y"))
        for n in inside)


def _returns_differ(nodes: list[ast.AST]) -> bool:
    """Whether one place of the result is another array for another ``return``."""
    results = [n.value.elts for n in nodes
               if isinstance(n, ast.Return) and isinstance(n.value, ast.Tuple)]
    named = [[e.id if isinstance(e, ast.Name) and e.id in ("v", "x", "y") else "" for e in elements]
             for elements in results]
    return any(len(set(place)) > 1 for place in itertools.zip_longest(*named))


def unshared(result: Any) -> Any:
    """The result with arrays that share no memory, in C order."""
    return tuple(r.copy() if isinstance(r, np.ndarray) else r for r in result or ())


def plain(outcome: Outcome) -> Outcome:
    """Scalars as floats: a Python number that another path makes a NumPy scalar is one of these."""
    def one(leaf: Any) -> Any:
        return leaf if leaf is None or isinstance(leaf, np.ndarray) else float(leaf)

    if outcome.error is not None:
        return outcome
    return Outcome(tuple(map(one, outcome.result)), outcome.args, None)
