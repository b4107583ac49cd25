"""The trace in progress: its graph builder, inputs and captured arrays."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from fusec.errors import FusecError, user_error
from fusec.ir import Loc, TensorType, Value, is_supported_dtype
from fusec.ops import Builder

from .storage import Storage

if TYPE_CHECKING:
    from .convert import Hooks

_INTERNAL = ("fusec.", "numpy.", "optree.")
_state = threading.local()


class Trace:
    """Collects the nodes of one traced call."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.builder = Builder()
        self.inputs: list[Value] = []
        self.storages: list[Storage | None] = []  # by input position
        self.captured: list[np.ndarray] = []  # arrays read from outside, after the arguments
        self._captured_storage: dict[int, Storage] = {}
        self.hooks: Hooks | None = None
        self.active = True
        self.guards: list[Any] = []
        self.local_arrays: dict[int, np.ndarray] = {}  # made by plain NumPy calls in the trace
        self.local_objects: dict[int, Any] = {}

    # -- locations

    @property
    def loc(self) -> Loc | None:
        """The innermost place in the user's source reached by the trace."""
        if self.hooks is not None and self.hooks.where[0]:
            return self.hooks.loc
        return _user_frame()

    # -- nodes

    def emit(self, op: str, *inputs: Value, **attrs: Any) -> Value:
        """A new node at the user's line; shape and type errors name that line."""
        self.builder.loc = self.loc
        try:
            return self.builder.emit(op, *inputs, **attrs)
        except FusecError:
            raise
        except (ValueError, TypeError, IndexError) as error:
            raise self.error(error, inputs) from None

    def error(self, error: Exception, operands: Sequence[Value] = ()) -> FusecError:
        """The user error for an exception in NumPy's terms: its type, message, operands, line."""
        base = type(error)
        values = [(f"operand {i}", f"{v.type} from {_origin(v)}") for i, v in enumerate(operands)]
        return user_error(base, str(error), self.loc, _cure(error), values=values)

    # -- inputs

    def add_input(self, type_: TensorType, path: str) -> Value:
        index = len(self.inputs)
        self.builder.loc = None
        value = self.builder.emit("Input", name=_identifier(path), index=index, path=path,
                                  type=type_)
        self.inputs.append(value)
        return value

    def add_array(self, array: np.ndarray, path: str) -> Storage:
        """An array argument (or captured array) as a storage backed by a graph input."""
        value = self.add_input(TensorType(array.dtype, array.shape), path)
        storage = Storage(value, array.strides, origin=value.node.attrs["index"],
                          writeable=array.flags.writeable)
        self.storages.append(storage)
        return storage

    def add_scalar(self, type_: TensorType, path: str) -> Value:
        value = self.add_input(type_, path)
        self.storages.append(None)
        return value

    def capture(self, array: np.ndarray) -> Storage:
        """The storage of an array that the function reads from outside its arguments.

        It becomes an input of the graph: later calls read its contents anew.
        """
        found = self._captured_storage.get(id(array))
        if found is None:
            found = self.add_array(check_array(array, "a captured array", self.loc),
                                   f"captured_{len(self.captured)}")
            if id(array) in self.local_arrays:
                found.is_constant = True
            self.captured.append(array)
            self._captured_storage[id(array)] = found
        return found


def check_array(array: np.ndarray, what: str, loc: Loc | None = None) -> np.ndarray:
    """The array itself when fusec can hold it; else an error that says why and how to cure it."""
    if type(array) is not np.ndarray:
        raise user_error(
            TypeError, f"{what} is a {type(array).__module__}.{type(array).__qualname__}, a "
            f"subclass of ndarray: its own rules would be lost", loc,
            "pass np.asarray(x), if plain array semantics are what you want",
        )
    if not array.dtype.isnative:
        native = array.dtype.newbyteorder("=")
        raise user_error(
            TypeError, f"{what} has the non-native byte order {array.dtype.str!r}", loc,
            f"pass x.astype({native.str!r})",
        )
    if not is_supported_dtype(array.dtype) or array.dtype.kind not in "biuf":
        raise user_error(
            TypeError, f"{what} has dtype {array.dtype}, which fusec does not compile yet", loc,
            "bool, integers, float32 and float64 are compiled; convert with x.astype(...)",
        )
    if array.dtype == np.float16:
        raise user_error(
            TypeError, f"{what} has dtype float16, which fusec does not compile yet", loc,
            "pass x.astype(np.float32)",
        )
    return array


def _identifier(path: str) -> str:
    return "".join(c if c.isalnum() or c == "_" else "_" for c in path).strip("_") or "arg"


def _origin(value: Value) -> str:
    node = value.node
    if node.op == "Input":
        return f"argument {node.attrs['path']}"
    return f"{node.op} at {node.loc}" if node.loc is not None else node.op


def _cure(error: Exception) -> str:
    text = str(error)
    if "broadcast" in text:
        return "make the shapes equal from the right, or insert axes of length 1 with np.newaxis"
    if "align" in text or "matmul" in text:
        return "transpose one operand so that the inner axes agree"
    return ""


def _user_frame() -> Loc | None:
    """The innermost frame that is not ours or NumPy's, for code that could not be converted."""
    frame = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if not (module + ".").startswith(_INTERNAL) or module.startswith("fusec.bench.programs"):
            code = frame.f_code
            return Loc(code.co_filename, frame.f_lineno, -1, code.co_name)
        frame = frame.f_back  # type: ignore[assignment]
    return None


def current() -> Trace | None:
    """The innermost trace in progress in this thread."""
    stack = getattr(_state, "stack", None)
    return stack[-1] if stack else None


@contextmanager
def tracing(trace: Trace) -> Iterator[Trace]:
    """Make ``trace`` the current one; its arrays die with the block."""
    if not hasattr(_state, "stack"):
        _state.stack = []
    _state.stack.append(trace)
    try:
        yield trace
    finally:
        _state.stack.pop()
        trace.active = False
