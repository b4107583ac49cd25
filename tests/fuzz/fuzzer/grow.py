"""Programs from a seed, grown by running each statement as it is drawn.

So shapes and dtypes are known, and statements that NumPy refuses are left out, or, now and then,
end the program: an exception must be the same exception.  Left out are casts that NumPy leaves
open: floats to unsigned integers that do not hold them (the vector loops and scalar ones differ).
"""

from __future__ import annotations

import random
import re
import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from .parameters import Draw
from .program import _NAME, Program, Statement, crashes_numpy, names
from .rounding import BY_BLAS
from .statements import draw_statement, with_out
from .values import DTYPES, draw_argument, make

KINDS = frozenset(DTYPES)
LARGEST, MOST_AXES, TRIES = 400, 5, 40
ENDS_WITH_ERROR = 0.02
LENGTHS = [1, 1, 2, 2, 2, 3, 3, 4, 5, 7]
USER_ERRORS = (ValueError, TypeError, IndexError, OverflowError, ZeroDivisionError)


class Growing:
    """A program under way, with the present values of its variables."""

    def __init__(self, seed: str) -> None:
        self.rng, self.seed = random.Random(seed), seed
        first = draw_argument(self.rng)
        more = [draw_argument(self.rng, first) for _ in range(self.rng.choice([0, 1, 1, 2]))]
        self.arguments = (first, *more)
        self.scope = names()
        self.names = [f"x{i}" for i in range(len(self.arguments))]
        self.scope.update(zip(self.names, make(list(self.arguments)), strict=True))
        self.statements: list[Statement] = []
        self.ended = False

    def grow(self, length: int) -> None:
        """Draw until there are ``length`` statements, or one that raises."""
        for _ in range(TRIES):
            if len(self.statements) >= length or self.ended:
                return
            draw = Draw(self.rng, self.scope, self.names)
            statement = draw_statement(draw)
            result = self._try(statement)
            if result is not None and not result.assigns and self.rng.random() < 0.12:
                self._instead(draw, statement)

    def _instead(self, draw: Draw, statement: Statement) -> None:
        """The statement just kept, with ``out=``."""
        last = self.statements[-1]
        changed = with_out(draw, statement, self.scope.get(last.target))
        if changed is not None and not self.ended:
            self._try(changed)

    def _try(self, drawn: Statement) -> Statement | None:
        """Run the statement; keep it when NumPy takes it and its result is one of ours."""
        target = "" if drawn.assigns else f"t{len(self.statements)}"
        statement = replace(drawn, target=target)
        if self._is_numpys_fault(statement):
            return None
        before = self._contents()
        try:
            run_line(statement.line, self.scope)
        except SyntaxError:
            raise
        except Exception as error:  # whatever NumPy raises; a user error may end the program
            self._restore(before)
            if not isinstance(error, USER_ERRORS) or not self._may_end(statement):
                return None
            self.ended = True
            self.statements.append(statement)
            return statement
        if target:
            statement = self._named(statement, before)
        self.statements += [statement] if statement is not None else []
        if statement is not None and isinstance(self.scope.get(statement.target), (tuple, list)):
            self._take_apart(statement.target)
        elif statement is not None and statement.target:
            self.names.append(target)
        return statement

    def _is_numpys_fault(self, statement: Statement) -> bool:
        """Cases that NumPy does not look after: ``place`` and masks read elements just written,
        ``bincount`` writes outside of its result for huge values, ``at`` into read-only arrays;
        ``"wrap"`` of huge indices takes for ever, and so do LAPACK with some infinities and
        Python's powers and factorials of large ints; ``where=`` of comparisons with ints out of
        range crashes.
        """
        if crashes_numpy(statement) or (
                statement.op in _GROWING and self._is_huge(statement)):
            return True
        if statement.op in _COUNTING and self._is_large(statement):
            return True
        if statement.op in _COMPARING and "where=" in statement.text:
            return True
        values = [np.asarray(self.scope[n]) for n in statement.reads]
        if statement.op == "np.einsum_path" and "'" not in statement.text:
            return True  # it takes numbers for letters
        if statement.op == "np.linalg.tensorinv" and "ind=np." in statement.text:
            return True  # which of two errors an array as index raises, its value decides
        if "choose" in statement.op and "out=" in statement.text:
            return "mode=" in statement.text or "'" in statement.text  # reads what it has written
        if statement.op in _FROM_ITSELF and len(values) > 1:
            return np.may_share_memory(values[0], values[-1])
        if statement.op == "x[...] =" and (
                self._masked_overlap(statement.text) or self._strided_overlap(statement.text)):
            return True
        if statement.op.rpartition(".")[2] in BY_BLAS and any(v.dtype.kind == "c" and (
                not np.isfinite(v).all() or _NOT_FINITE.search(statement.text)) for v in values):
            return True  # its routines make infinity or NaN of infinities, one so, one so
        if "where=" in statement.text and self._overlapping_out(statement):
            return True  # what the mask leaves out is cast to the result's dtype and back
        if statement.op == "operator @=" and values[0].ndim < max(2, values[-1].ndim):
            return True  # shapes that NumPy takes by accident
        if statement.op == "np.bincount":
            return any(v.dtype.kind in "iu" and v.size and v.max() > 1000 for v in values)
        if "'wrap'" in statement.text:
            return any(v.dtype.kind in "iu" and ((v > 1000) | (v < -1000)).any() for v in values)
        if (".fft." in statement.op or statement.op == "np.unpackbits") and any(
                v.size == 0 for v in values):
            return True  # it gives memory that nobody wrote
        if ".linalg." in statement.op or statement.op in ("np.polyfit", "np.roots", "np.corrcoef"):
            return any(v.dtype.kind in "fc" and not np.isfinite(v).all() for v in values)
        return statement.op.endswith(".at") and not values[0].flags.writeable

    def _is_huge(self, statement: Statement) -> bool:
        """Whether Python would compute an int of very many digits."""
        numbers = [v for n in statement.reads if type(v := self.scope[n]) is int]
        return bool(numbers) and (max(map(abs, numbers)) > 64 or any(
            text in statement.text for text in ("100", "300", "2147483648")))

    def _is_large(self, statement: Statement) -> bool:
        """Whether Python would multiply very many integers."""
        values = [np.asarray(self.scope[n]) for n in statement.reads]
        return any(v.dtype.kind in "iu" and v.size and abs(int(v.max())) > 1000 for v in values)

    def _masked_overlap(self, text: str) -> bool:
        """Whether memory is written to itself through a mask."""
        left, _, right = text.partition("] = ")
        target, *index = [self.scope[n] for n in _NAME.findall(left)]
        masked = any(c in left for c in "<>!") or any(
            np.asarray(v).dtype == bool for v in index)
        values = [self.scope[n] for n in _NAME.findall(right)]
        if "." in left.partition("[")[0] or "][" in left:  # it may be a view of what it selects in
            values += index
        return masked and any(isinstance(v, np.ndarray) and np.may_share_memory(v, target)
                              for v in values)

    def _overlapping_out(self, statement: Statement) -> bool:
        """Whether ``out=`` is memory of an operand, seen in another way."""
        named = re.search(r"out=\(?([a-z]\w*)\b", statement.text)
        out = self.scope.get(named[1]) if named else None
        return isinstance(out, np.ndarray) and any(
            isinstance(v := self.scope[n], np.ndarray) and v is not out
            and np.may_share_memory(v, out) for n in statement.reads)

    def _strided_overlap(self, text: str) -> bool:
        """Whether elements of memory go to others of it in one row that has another stride, for
        which NumPy makes no copy."""
        left, _, right = text.partition(" = ")
        try:
            target, value = (eval(part, dict(self.scope)) for part in (left, right))
        except Exception:
            return False
        both = [np.asarray(a) for a in (target, value)]
        return both[0].ndim == 1 and both[1].ndim > 0 and np.may_share_memory(*both) and (
            both[0].strides[-1] != both[1].strides[-1])

    def _named(self, statement: Statement, before: Any) -> Statement | None:
        """The expression with a name for its result, without one where that is None."""
        result = self.scope[statement.target]
        if result is None:
            return replace(statement, target="", assigns=True)
        if self._is_fine(result):
            return statement
        self._restore(before)
        del self.scope[statement.target]
        return None

    def _may_end(self, statement: Statement) -> bool:
        """Python's numbers raise where compiled ones give inf or NaN: that is documented."""
        return self.rng.random() < ENDS_WITH_ERROR and not statement.op.startswith(
            ("math", "builtins"))

    def _take_apart(self, name: str) -> None:
        """A name for one of several results."""
        found = self.scope[name]
        if found and self._is_fine(found[-1]):
            number = self.rng.randrange(len(found))
            part = Statement(f"{name}[{number}]", "item", f"t{len(self.statements)}", "exact")
            if self._is_leaf(found[number]):
                run_line(part.line, self.scope)
                self.statements.append(part)
                self.names.append(part.target)

    def _contents(self) -> list[tuple[np.ndarray, np.ndarray]]:
        values = [self.scope[n] for n in self.names]
        return [(v, v.copy()) for v in values if isinstance(v, np.ndarray) and v.flags.writeable]

    def _restore(self, before: list[tuple[np.ndarray, np.ndarray]]) -> None:
        for array, old in before:
            array[...] = old

    def _is_fine(self, value: Any) -> bool:
        if isinstance(value, (tuple, list)):
            return 0 < len(value) < 9 and all(map(self._is_fine, value))
        return self._is_leaf(value)

    def _is_leaf(self, value: Any) -> bool:
        if isinstance(value, (bool, int, float, complex)):
            return not isinstance(value, int) or abs(value) < 2**62
        if not isinstance(value, (np.ndarray, np.generic)) or type(value) is np.matrix:
            return False
        name = "?" if value.dtype == bool else value.dtype.str[1:]
        return name in KINDS and value.dtype.isnative and (
            value.size <= LARGEST and value.ndim <= MOST_AXES)

    def finished(self) -> Program:
        """With a few variables as results, the last one among them."""
        targets = [s.target for s in self.statements if s.target]
        pool = [n for n in self.names if n in targets] + self.names + targets
        count = self.rng.choice([0, 1, 1, 2, 3])
        chosen = dict.fromkeys([*self.rng.choices(pool, k=count), *targets[-1:]])
        fp = self.rng.choice(["contract", "contract", "strict"])
        return Program(self.arguments, tuple(self.statements), tuple(chosen) or ("x0",), fp,
                       self.seed)


class Refused(Exception):
    """The statement has a result that NumPy leaves open."""


def run_line(line: str, scope: dict[str, Any]) -> None:
    """Run it as the oracle does; raises `Refused` for casts whose result NumPy leaves open."""
    if "casting='unsafe'" in line and not _fits_out(line, scope):
        raise Refused
    for name in _UNSIGNED.findall(line):
        if not all(_fits(v, np.dtype(name)) for v in map(scope.get, _NAME.findall(line))):
            raise Refused
        if _SPREAD.search(line) and not (
                _fits(_in_floats(line, scope), np.dtype(name))
                and all(_fits(_squares(v), np.dtype(name)) for v in map(
                    scope.get, _NAME.findall(line)))):
            raise Refused
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        exec(line, scope)
    if any("invalid value encountered in cast" in str(w.message) for w in seen):
        raise Refused
    if "argwhere(" in line and len(scope[line.partition(" = ")[0]]) == 1:
        raise Refused  # one row is in every order, which a trace for any number does not know


_COMPARING = {f"np.{name}" for name in (
    "less", "less_equal", "greater", "greater_equal", "equal", "not_equal")}
_GROWING = {f"operator {op}" for op in ("**", "<<", "**=", "<<=")}
_COUNTING = {"math.perm", "math.comb", "math.factorial"}
_FROM_ITSELF = {"np.place", "np.fill_diagonal"}  # they read what they have just written
_NOT_FINITE = re.compile(r"\b(inf|nan)\b")
_OUT = re.compile(r",? *out=(\w+)(?=[,)])")
_UNSIGNED = re.compile(r"'(u\d)'")
_SPREAD = re.compile(r"^\w+ = .*\b(mean|var|std)\(")


def _squares(value: Any) -> Any:
    """The range of sums of squares of the elements."""
    array = np.asarray(value)
    if array.dtype.kind not in "fiu" or not array.size:
        return 0.0
    with np.errstate(all="ignore"):
        return np.square(array.astype(np.float64)).sum()


def _in_floats(line: str, scope: dict[str, Any]) -> Any:
    """The result of a mean or variance before it is cast to an unsigned dtype."""
    if "out=" in line:
        return 0.0
    text = _UNSIGNED.sub("'f8'", line.partition(" = ")[2])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(text, dict(scope))


def _fits_out(line: str, scope: dict[str, Any]) -> bool:
    """Whether a ufunc's result is in the range of an unsigned array that it writes to."""
    named = _OUT.search(line)
    target = scope.get(named[1]) if named else None
    if not isinstance(target, np.ndarray) or target.dtype.kind != "u":
        return True
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        computed = eval(_OUT.sub("", line.partition(" = ")[2]), dict(scope))
    return all(_fits(v, target.dtype) for v in (
        computed if isinstance(computed, tuple) else (computed,)))


def _fits(value: Any, dtype: np.dtype) -> bool:
    """Whether floats are in the range of an unsigned dtype."""
    array = np.asarray(value) if isinstance(value, (np.ndarray, np.generic, float)) else np.zeros(1)
    with np.errstate(all="ignore"):
        return array.dtype.kind != "f" or bool(
            ((array > -1) & (array < 2.0 ** (8 * dtype.itemsize))).all())


def program_of(seed: str) -> Program:
    """The program of that seed."""
    growing = Growing(seed)
    growing.grow(growing.rng.choice(LENGTHS))
    return growing.finished()
