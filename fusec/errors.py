"""The exceptions of fusec: errors of programs, and faults of fusec's own.

Every message names the fault, the values involved, the candidates, the cure, and shows the
user's source line with carets.  Where NumPy would raise, `user_error` makes an exception that is an
instance of `FusecError` *and* of NumPy's type, so ``except ValueError`` keeps working.
"""

from __future__ import annotations

import builtins
import linecache
from collections.abc import Iterable
from types import TracebackType
from typing import Any, TypeVar

import numpy as np

from fusec import config
from fusec.core.code_roles import is_ours
from fusec.core.locations import Loc
from fusec.core.records import dataclass, replace
from fusec.core.tracers import note_made

Pairs = tuple[tuple[str, str], ...]
Raised = TypeVar("Raised", bound=BaseException)


@dataclass(frozen=True)
class Diagnostic:
    """The parts of a message: title, labelled values, candidates, notes, cure and place."""

    title: str
    values: Pairs = ()
    cure: str = ""
    loc: Loc | None = None
    candidates: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def render(self) -> str:
        """The message as text; the first line is the title alone."""
        lines = [self.title, *_aligned(self.values)]
        lines += [f"  note: {note}" for note in self.notes]
        if self.candidates:
            lines.append(f"  did you mean {_alternatives(self.candidates)}?")
        if self.cure:
            lines.append(f"  cure: {self.cure}")
        if self.loc is not None:
            lines += _place(self.loc)
        return "\n".join(lines)

    __str__ = render


def _aligned(values: Pairs) -> list[str]:
    width = max((len(label) for label, _ in values), default=0)
    return [f"  {label + ':':{width + 1}} {text}" for label, text in values]


def _alternatives(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def _place(loc: Loc) -> list[str]:
    """``at file:line in function``, the line, and carets under its columns."""
    where = f"  at {loc}" + (f" in {loc.function}" if loc.function else "")
    source = linecache.getline(loc.file, loc.line).rstrip()
    if not source.strip():
        return [where]
    text = source.lstrip()
    return [where, f"    {text}", *_carets(source, loc)]


def _carets(source: str, loc: Loc) -> list[str]:
    """The caret line, or nothing when the columns are unknown or not on this line.

    CPython's columns count UTF-8 bytes; an expression that ends on a later line is marked to the
    end of this one.
    """
    if loc.col < 0:
        return []
    indent = len(source) - len(source.lstrip())
    start = max(_character(source, loc.col), indent)
    stop = _character(source, loc.end_col) if loc.end_col > loc.col else len(source)
    if start >= len(source):
        return []
    blank = "".join("\t" if c == "\t" else " " for c in source[indent:start])
    return [f"    {blank}{'^' * max(1, min(stop, len(source)) - start)}"]


def _character(source: str, byte: int) -> int:
    return len(source.encode()[:byte].decode(errors="replace"))


# --- classes -----------------------------------------------------------------------------------


class FusecError(Exception):
    """The base of every exception that fusec raises on purpose.

    ``diagnostic`` holds the message in parts; ``str()`` renders it.
    """

    diagnostic: Diagnostic
    in_numpys_words: Exception | None = None  # what NumPy raises for it when the line is reached

    def __init__(
        self, message: str | Diagnostic, *, loc: Loc | None = None, cure: str = "",
        values: Iterable[tuple[str, Any]] = (), candidates: Iterable[str] = (),
        notes: Iterable[str] = (),
    ) -> None:
        if not isinstance(message, Diagnostic):
            pairs = tuple((label, str(value)) for label, value in values)
            message = Diagnostic(message, pairs, cure, loc, tuple(candidates), tuple(notes))
        super().__init__(message.title)
        self.diagnostic = message
        note_made(self)

    @property
    def loc(self) -> Loc | None:
        """The user's line, where it is known."""
        return self.diagnostic.loc

    def located(self, loc: Loc | None) -> FusecError:
        """Itself, with the user's line filled in where it was not known when it was made."""
        if self.diagnostic.loc is None and loc is not None:
            self.diagnostic = replace(self.diagnostic, loc=loc)
        return self

    def __str__(self) -> str:
        return self.diagnostic.render()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.diagnostic,)


class TraceError(FusecError, TypeError):
    """The function cannot be traced as it is written."""


class ConcreteValueError(FusecError, TypeError):
    """A traced value stands where Python needs a concrete one."""


class UnsupportedError(FusecError, NotImplementedError):
    """NumPy or Python can do this and fusec cannot; the message names the nearest it can."""


class OverlapError(UnsupportedError):
    """Arguments that share memory in a way that the trace of this call does not know."""


def overlap_error(written: str, other: str) -> OverlapError:
    """For arguments of these paths."""
    return OverlapError(f"argument {written} is written and overlaps argument {other} in memory",
                        cure=f"pass a copy of {other}, or the same array for both")


def entangled_error(written: str) -> UnsupportedError:
    """For an argument of this path."""
    return unsupported(f"writing to argument {written}, of which several elements share memory,",
                       cure="write to the array behind it, or pass a copy")


class SideEffectWarning(UserWarning):
    """A side effect of a compiled function happens while it is traced, not at each call."""


class RetraceWarning(UserWarning):
    """A function is traced again and again, each time for some milliseconds."""


class DtypeWarning(UserWarning):
    """A variable is an array of one dtype for all of a loop that NumPy would change it in."""


class UnrolledWarning(UserWarning):
    """A loop that Python runs while tracing made so many operations that compiling takes long."""


class FirstCallWarning(UserWarning):
    """A first call takes long: its line, and why."""


class FallbackWarning(UserWarning):
    """A function jitted with ``fallback="eager"`` runs uncompiled."""


class PlacementWarning(UserWarning):
    """A device that a program asked for is left out, as ``config.soft_placement`` allows."""


class CheckpointWarning(UserWarning):
    """Something that has the name of a checkpoint is none, and an older one is taken."""


class InternalError(FusecError):
    """A defect of fusec, never of the user's program."""

    def __init__(self, message: str | Diagnostic, **parts: Any) -> None:
        if isinstance(message, Diagnostic):
            super().__init__(message)
            return
        notes = (*parts.pop("notes", ()), f"this happened with {version_line()}")
        cure = "this is a defect of fusec, not of your program: please report it with this text"
        super().__init__(f"internal error: {message}", notes=notes, cure=cure, **parts)


def version_line() -> str:
    """One line for bug reports: fusec, Python, platform and dependencies."""
    from fusec.core.versions import summary

    return summary()


def unsupported(
    what: str,
    known: Iterable[str] = (),
    *,
    loc: Loc | None = None,
    cure: str = "",
    values: Iterable[tuple[str, Any]] = (),
    notes: Iterable[str] = (),
) -> UnsupportedError:
    """An `UnsupportedError` for ``what``, with the nearest of the ``known`` names."""
    return UnsupportedError(
        f"{what} is not supported inside a fusec.jit function",
        loc=loc, cure=cure, values=values, candidates=nearest(what, known), notes=notes,
    )


def nearest(name: str, known: Iterable[str], count: int = 3) -> list[str]:
    """The ``known`` names most like ``name``, best first; dotted names by their last part."""
    import difflib  # a millisecond, which only errors cost

    by_tail: dict[str, list[str]] = {}
    for candidate in known:
        by_tail.setdefault(candidate.rpartition(".")[2], []).append(candidate)
    close = difflib.get_close_matches(name.rpartition(".")[2], by_tail, count)
    return [full for tail in close for full in by_tail[tail]][:count]


# --- NumPy's exception types -------------------------------------------------------------------


_classes: dict[type[Exception], type[FusecError]] = {}


def error_class(base: type[Exception]) -> type[FusecError]:
    """The class that is both a `FusecError` and ``base``, e.g. ``FusecValueError``; cached."""
    if issubclass(base, FusecError):
        return base
    if base not in _classes:
        namespace = {"__module__": __name__, "__reduce__": _reduce_user_error,
                     "__doc__": f"A {base.__name__} with a diagnostic."}
        combined = type(f"Fusec{base.__name__}", (FusecError, base), namespace)
        _classes.setdefault(base, combined)  # another thread may have been first
    return _classes[base]


def importable(kind: type[Exception]) -> type[Exception]:
    """The nearest public class: NumPy's UFuncTypeError and its like are private TypeErrors."""
    return next(c for c in kind.__mro__ if not c.__module__.startswith("numpy._core"))


def _reduce_user_error(error: FusecError) -> tuple[Any, ...]:
    """Pickle by the base class, which the reading process can import."""
    return _rebuild, (type(error).__bases__[1], error.diagnostic)


def _rebuild(base: type[Exception], diagnostic: Diagnostic) -> FusecError:
    return error_class(base)(diagnostic)


def user_error(
    base: type[Exception],
    message: str,
    loc: Loc | None = None,
    cure: str = "",
    notes: Iterable[str] = (),
    *,
    values: Iterable[tuple[str, Any]] = (),
    candidates: Iterable[str] = (),
) -> FusecError:
    """An exception that is a `FusecError` and a ``base``, e.g. ``np.exceptions.AxisError``.

    ``message`` is the first line (NumPy's own wording where NumPy would raise), ``values`` labelled
    operands such as ``("left", "f64[3]")``, ``candidates`` names the user may have meant.
    """
    return error_class(base)(
        message, loc=loc, cure=cure, notes=notes, values=values, candidates=candidates
    )


def __getattr__(name: str) -> Any:
    """``FusecValueError`` and its like, so that the made classes can be imported and pickled."""
    plain = name.removeprefix("Fusec")
    for home in (builtins, np.exceptions, np.linalg):
        base = getattr(home, plain, None)
        if plain != name and isinstance(base, type) and issubclass(base, Exception):
            return error_class(base)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)


# --- tracebacks --------------------------------------------------------------------------------

def _without_ours(traceback: TracebackType | None) -> TracebackType | None:
    users: list[TracebackType] = []
    while traceback is not None:
        if not is_ours(traceback.tb_frame.f_globals):
            users.append(traceback)
        traceback = traceback.tb_next
    chain: TracebackType | None = None
    for tb in reversed(users):
        chain = TracebackType(chain, tb.tb_frame, tb.tb_lasti, tb.tb_lineno)
    return chain


def hide_frames(error: BaseException) -> BaseException:
    """Take fusec's own frames out of an exception's traceback and those it came from.

    Returns the same exception, for ``raise hide_frames(error)``.  Internal errors keep theirs, and
    so does everything under ``FUSEC_VERBOSE_ERRORS=1``.
    """
    if config.verbose_errors or isinstance(error, InternalError):
        return error
    todo, visited = [error], set[int]()
    while todo:
        current = todo.pop()
        if id(current) in visited:
            continue
        visited.add(id(current))
        current.__traceback__ = _without_ours(current.__traceback__)
        todo += [e for e in (current.__cause__, current.__context__) if e is not None]
    return error


def innermost_line(error: BaseException) -> Loc | None:
    """The last line of user code in an exception's traceback."""
    loc, traceback = None, error.__traceback__
    while traceback is not None:
        if not is_ours(traceback.tb_frame.f_globals):
            code = traceback.tb_frame.f_code
            loc = Loc(code.co_filename, traceback.tb_lineno, -1, code.co_name)
        traceback = traceback.tb_next
    return loc


def users_own(error: Raised) -> Raised:
    """Mark an exception that the user's own code raised: `short_errors` shows it as such."""
    error.__dict__["_fusec_users_own"] = True
    return error


RAISED = "raised by compiled code"


def located(error: Raised, loc: Loc | None) -> Raised | Exception:
    """An exception that compiled code raised, with the innermost line of the user's: as a note, or
    in the message of one of fusec's own."""
    if isinstance(error, FusecError):
        return error.located(loc)
    for classes, handler in getattr(loc, "handlers", ()):
        if isinstance(error, classes):
            return _would_be_caught(error, loc, handler)
    is_located = any(note.startswith(RAISED) for note in getattr(error, "__notes__", ()))
    if loc is not None and not is_located:
        error.add_note("\n".join([RAISED, *_place(loc)]))
    return users_own(error)


def _would_be_caught(error: BaseException, loc: Loc | None, handler: Loc) -> UnsupportedError:
    """Compiled code cannot go on in a handler of the program's."""
    message = f": {error}" if str(error) else ""
    refusal = unsupported(
        f"catching {type(error).__name__}, which compiled code raises here,", loc=loc,
        cure="test for it before it happens, or catch it outside of the compiled function",
        values=[("raised", f"{type(error).__name__}{message}"),
                ("caught by", f"the `try` or `with` at {handler}")])
    refusal.__cause__ = error
    return refusal


class _ShortErrors:
    """``with short_errors:`` around a public entry: users see only their own frames.

    Exceptions that are neither fusec's nor marked by `users_own` are defects and keep all frames.
    """

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if isinstance(error, FusecError) or getattr(error, "_fusec_users_own", False):
            hide_frames(error)  # type: ignore[arg-type]


short_errors = _ShortErrors()
