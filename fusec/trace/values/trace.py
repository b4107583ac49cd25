"""The trace in progress: its graph builder, inputs and captured arrays."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FunctionType
from typing import Any, TypeVar

import numpy as np

from fusec.core.code_roles import converted_files, is_ours
from fusec.core.display import progress
from fusec.core.process import stack
from fusec.core.process.signal_handlers import handlers_around
from fusec.core.tracers import TRACERS
from fusec.errors import FusecError, importable, user_error
from fusec.ir import Loc, TensorType, Value
from fusec.ir.sizes.dims import Size, UndecidedSizeError
from fusec.ops import Builder
from fusec.ops.calls.checks import describe_error
from fusec.ops.calls.index_checks import may_refuse

from ..convert.hooks import Hooks
from ..facts.code_names import names_in
from ..facts.cures import cure_for
from ..facts.error_states import State
from ..facts.layout import Strides
from ..facts.origins import access_path, describe
from ..facts.refusals import check_array
from .exception_handlers import Handlers, check_decided, under_handlers
from .operations import OPERATIONS
from .parts import Feeds, Local, TraceRecord, World
from .storage import Storage

Layout = tuple[tuple[Size, ...], Strides]  # shape and strides of an array
_LIBRARIES = ("numpy", "optree")
_state = threading.local()
_TOLD = 256  # operations, after which `progress` is told


Part = TypeVar("Part")


class Trace:
    """Collects the nodes of one traced call."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.builder = Builder()
        self.feeds, self.record = Feeds(), TraceRecord()
        self.world, self.local = World(), Local()
        self.entry: tuple[FunctionType, ...] = ()  # the traced function itself
        self.hooks: Hooks | None = None
        self.handlers: Handlers = []
        self.active = True
        self._parts: dict[type, Any] = {}

    def part(self, kind: type[Part]) -> Part:
        """The part of this trace that another module keeps: ``kind()``, made at first use."""
        part: Part | None = self._parts.get(kind)
        if part is None:
            part = self._parts[kind] = kind()
        return part

    def put(self, part: Any) -> None:
        """`part` gives this from now on."""
        self._parts[type(part)] = part

    @property
    def in_region(self) -> bool:
        """Whether a side of a branch, or a loop body, is being traced."""
        return bool(self.record.regions)

    @property
    def writes(self) -> int:
        """How often arrays and objects were changed so far."""
        return len(self.record.journal) + self.local.changes

    def is_older_than_region(self, born: int) -> bool:
        """Whether an object made at ``born`` was there before the innermost of these."""
        return bool(self.record.regions) and born < self.record.regions[-1]

    def note_chosen(self, copy: Any, *chosen_of: Any) -> None:
        """Data chose one of several lists or dicts, for which a copy stands: `chosen` has them all,
        and whether each is a copy."""
        self.local.chosen[id(copy)] = copy, True
        for container in chosen_of:
            self.local.chosen.setdefault(id(container), (container, False))

    # -- locations

    @property
    def loc(self) -> Loc | None:
        """The innermost place in the user's source reached by the trace."""
        hooks = self.hooks
        is_known = hooks is not None and hooks.where[0] and hooks.where[0] not in converted_files
        loc = hooks.loc if hooks is not None and is_known else user_frame()
        return under_handlers(self.handlers, loc) if self.handlers else loc

    @property
    def entry_loc(self) -> Loc | None:
        """Where the traced function itself stands."""
        codes = [fn.__code__ for fn in self.entry]
        return Loc(codes[0].co_filename, codes[0].co_firstlineno, -1, self.name) if codes else None

    # -- nodes

    def emit(self, op: str, *inputs: Value, **attrs: Any) -> Value:
        """A new node at the user's line; shape and type errors name that line."""
        self.builder.loc = self.loc
        try:
            value = self.builder.emit(op, *inputs, **attrs)
        except (FusecError, UndecidedSizeError):
            raise
        except (ValueError, TypeError, IndexError) as error:
            raise self.error(error, inputs) from None
        if may_refuse(value.node):
            self.record.index_uses.append(value.node)
        if not value.node.id % _TOLD:
            progress.traced(value.node.id)
        return value

    def check(self, holds: Value, error: BaseException, state: State | None = None) -> None:
        """Raise the exception where the condition is false, when the code runs.

        ``state``: the assignments by then, by default those by now.  The exception's arguments
        must be plain data: see `describe_error`.
        """
        check_decided(self, error, holds)
        node = self.emit("Check", holds, error=describe_error(error)).node
        self.record.checks.append(node)
        OPERATIONS.note_state(self, node, state)

    def error(
        self, error: Exception, operands: Sequence[Value] = (), labels: Sequence[str] = (),
    ) -> FusecError:
        """The user error for an exception in NumPy's terms: its type, message, operands, line.
        A refusal of fusec's stays one."""
        if isinstance(error, FusecError):
            return error
        loc, message = self.loc, str(error).rstrip()
        values = [(label, describe(v, loc, self.feeds.outside))
                  for label, v in zip(
                      labels or _labels(len(operands)), operands, strict=True)]
        kind = importable(type(error))
        failure = user_error(kind, message, loc, cure_for(message), values=values)
        failure.in_numpys_words = _made_anew(kind, error, message)
        return failure

    # -- inputs

    def add_input(self, type_: TensorType, path: str) -> Value:
        index = len(self.feeds.inputs)
        self.builder.loc = None
        path = self.feeds.paths.fresh(path)
        value = self.builder.source("Input", name=_identifier(path), index=index, path=path,
                                   type=type_)
        self.feeds.inputs.append(value)
        return value

    def add_array(self, array: np.ndarray, path: str, layout: Layout | None = None) -> Storage:
        """An array argument (or captured array) as a storage backed by a graph input; ``layout``:
        shape and strides, where they are not to be the array's own."""
        shape, strides = layout or (array.shape, array.strides)
        value = self.add_input(TensorType(array.dtype, shape), path)
        storage = Storage(value, strides, origin=value.node.attrs["index"],
                          writeable=array.flags.writeable)
        self.feeds.storages.append(storage)
        return storage

    def add_scalar(self, type_: TensorType, path: str) -> Value:
        value = self.add_input(type_, path)
        self.feeds.storages.append(None)
        return value

    def capture(self, array: np.ndarray) -> Storage:
        """The storage of an array that the function reads from outside its arguments.

        It becomes an input of the graph: later calls read its contents anew.
        """
        storage = self.feeds.by_array.get(id(array))
        if storage is None:
            what = self.feeds.titles.get(id(array)) or self.name_outside(array) or (
                "an array from outside the function")
            self.feeds.outside[len(self.feeds.inputs)] = what
            array, path = check_array(array, what, self.loc), access_path(what)
            is_anew = id(array) in self.feeds.readers and id(array) not in self.local.arrays
            layout = self.feeds.layout_of(path, array) if is_anew else None
            storage = self.add_array(array, path, layout)
            storage.born = 0  # older than any branch or loop that reads it first
            storage.is_constant = id(array) in self.local.arrays
            self.feeds.captured.append(self.feeds.readers.get(id(array), array))
            self.feeds.by_array[id(array)] = storage
        return storage

    def as_plain(self, array: np.ndarray) -> np.ndarray:
        """A file that is mapped to memory as an array of that memory; others as they are."""
        if type(array) is not np.memmap:
            return array
        _, plain = self.feeds.mapped.setdefault(id(array), (array, np.asarray(array)))
        return plain

    def capture_number(self, type_: TensorType, name: str, reader: Callable[[], Any]) -> Value:
        """A number that is read at each call."""
        self.feeds.outside[len(self.feeds.inputs)] = name
        value = self.add_scalar(type_, access_path(name))
        self.feeds.captured.append(reader)
        return value

    def name_outside(self, array: Any) -> str:
        """``global W``, ``closure variable W``, or another description of an array or container;
        nothing where no name holds it."""
        if id(array) in self.local.arrays:
            return "an array made in the function"
        for guard in self.world.guards.values():
            if guard.is_of(array):
                return guard.subject
        for fn in (*self.entry, *getattr(self.hooks, "functions", ())):
            for name in names_in(fn.__code__):
                if fn.__globals__.get(name) is array:
                    return f"global {name}"
            for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=False):
                if _contents(cell) is array:
                    return f"closure variable {name}"
        return ""


def assign(trace: Trace, storage: Storage, value: Value) -> None:
    """Give a storage new contents as a whole, in a way that can be taken back."""
    trace.record.journal.append((storage, storage.value, storage.version, trace.loc))
    storage.replace(value, storage.version + 1)


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # an empty cell
        return None


def _labels(count: int) -> list[str]:
    if count <= 2:
        return ["left", "right"] if count == 2 else ["operand"] * count
    return [f"operand {i}" for i in range(count)]


def _identifier(path: str) -> str:
    return re.sub(r"\W+", "_", path).strip("_") or "arg"


def user_frame() -> Loc | None:
    """The innermost frame that is not ours or NumPy's, for code that could not be converted."""
    frame = sys._getframe(1)
    while frame is not None:
        root = frame.f_globals.get("__name__", "").partition(".")[0]
        if root not in _LIBRARIES and not is_ours(frame.f_globals):
            code = frame.f_code
            return Loc(code.co_filename, frame.f_lineno, -1, code.co_name)
        frame = frame.f_back  # type: ignore[assignment]
    return None


def _made_anew(kind: type[Exception], error: Exception, message: str) -> Exception:
    """An exception like it, without its references; with its ``axis``, if it is of an axis."""
    if all(type(a) in (str, int, type(None)) for a in error.args):
        try:
            made = kind(*error.args)
        except Exception:  # a class of other arguments than those that it keeps
            return kind(message)
        if str(made).rstrip() == message:
            return made
    return kind(message)


def current() -> Trace | None:
    """The innermost trace in progress in this thread, for functions that the program calls."""
    stack = getattr(_state, "stack", None)
    trace, handlers = stack[-1] if stack else (None, None)
    return None if handlers is not None and handlers.one_runs() else trace


@contextmanager
def tracing(trace: Trace) -> Iterator[Trace]:
    """Make ``trace`` the current one; its arrays die with the block."""
    if not hasattr(_state, "stack"):
        _state.stack = []
    # Two frames below is the function with the block.
    _state.stack.append((trace, handlers_around(sys._getframe(2).f_code)))
    thread = threading.get_ident()
    TRACERS.append(thread)
    try:
        with stack.deeper():
            yield trace
    finally:
        TRACERS.remove(thread)
        _state.stack.pop()
        trace.active = False


@contextmanager
def untraced() -> Iterator[None]:
    """Code that runs as Python runs it, jitted functions that it calls too."""
    if not hasattr(_state, "stack"):
        _state.stack = []
    _state.stack.append((None, None))
    try:
        yield
    finally:
        _state.stack.pop()
