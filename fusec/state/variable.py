"""`Variable`: state with a name, one buffer of fixed dtype, shape and address.

    W = fusec.Variable(np.zeros((3, 2)), name="W")

    @fusec.jit
    def step(x, y, rate):
        error = x @ W - y
        W.assign_sub(rate * (x.T @ error))
        return (error ** 2).mean()

In compiled functions and outside of them a Variable means the same: reading gives the value that it
has at that point of the program, assigning changes it for everyone who holds it.  A read gives a
*snapshot*, never the buffer, so that nothing but an assignment changes a Variable.

This module imports nothing of the front end: that says of itself how Variables are read and
assigned in a trace (`answer_in_traces`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np

from fusec.core.occupancy import Hold, Occupancy, reduced_away
from fusec.errors import FusecError, user_error

from .device_context import DEFAULT, device_of_variable
from .variable_values import describe, first_buffer, fitting, operand, title

Trace = Any
# Functions of NumPy that write to their first argument.
WRITERS = frozenset({
    "copyto", "put", "place", "putmask", "put_along_axis", "fill_diagonal", "at"})
# Methods of arrays that would change, or show, what is only a snapshot.
_REFUSED = frozenset({"fill", "sort", "partition", "put", "resize", "itemset", "setfield",
                      "byteswap", "setflags", "data", "ctypes", "base", "getfield", "flat"})


class InTraces(Protocol):
    """The front end's answers for Variables."""

    def current(self) -> Trace | None:
        """The trace in progress in this thread."""

    def read(self, trace: Trace, variable: Variable) -> Any:
        """Its value at this point of the program, as memory of its own."""

    def write(self, trace: Trace, variable: Variable, value: Any, casting: str) -> None:
        """Its new value from here on."""

    def write_part(self, trace: Trace, variable: Variable, key: Any, value: Any) -> None:
        """The same of ``variable[key]``, as NumPy assigns items."""

    def create(self, trace: Trace, variable: Variable, value: Any, dtype: Any) -> bool:
        """Give a new Variable its buffer, and its first value now, or when the code runs; whether
        it is known now."""


class _NoTraces:
    """Before the front end is imported there are none."""

    def current(self) -> None:
        return None


_traces: Any = _NoTraces()


def answer_in_traces(front_end: InTraces) -> None:
    """The front end that Variables ask from now on."""
    global _traces
    _traces = front_end


_noted: Callable[[Variable, bool], None] | None = None


def note_creations(note: Callable[[Variable, bool], None]) -> None:
    """Call this with each new Variable from now on, and with whether its first value is known."""
    global _noted
    _noted = note


def in_trace() -> bool:
    """Whether a function is being traced in this thread."""
    return _traces.current() is not None


class Variable(np.lib.mixins.NDArrayOperatorsMixin):
    """A value that programs read and assign, compiled and not.

    ``value``: a number, an array or another argument of `np.array`, or a function that gives one;
    it is copied.  ``dtype``: by default that of the value; bool, integers, floats, complex numbers.
    ``name`` is for messages, graphs and checkpoints; ``trainable`` is for who goes over variables.
    It lives on the device that `fusec.device` says where it is made.

    Operators, NumPy's functions, indexing and the methods of arrays read it; `assign`,
    `assign_add`, `assign_sub`, ``v[i] = x`` and ``v += x`` assign it.  Two Variables are the same
    one only if they are one object, and `hash` goes by that; ``==`` compares elements.

    Raises ``TypeError`` for dtypes that are not compiled, and for values that ``dtype`` would cut.
    """

    __slots__ = ("__weakref__", "_device", "buffer", "name", "occupancy", "trainable")
    __array_priority__ = 500.0
    __hash__ = object.__hash__

    buffer: np.ndarray

    def __init__(
        self, value: Any, dtype: Any = None, name: str | None = None, trainable: bool = True,
    ) -> None:
        self.name, self.trainable = name or "Variable", bool(trainable)
        self.occupancy = Occupancy()
        value = value() if callable(value) and not isinstance(value, np.generic) else value
        trace = _traces.current()
        self._device = device_of_variable(trace, self.name)
        is_known = True
        if trace is None:
            self.buffer = first_buffer(snapshots(value), dtype, self.name)
        else:
            is_known = _traces.create(trace, self, value, dtype)
        if _noted is not None:
            _noted(self, is_known)

    # -- what it is

    @property
    def title(self) -> str:
        """Its name in messages."""
        return title(self.name)

    @property
    def device(self) -> str:
        """The whole name of the device that it lives on."""
        return self._device

    @property
    def stated_device(self) -> str:
        """The same, empty where that is the one which Variables are on by themselves."""
        return "" if self._device == DEFAULT else self._device

    @property
    def dtype(self) -> np.dtype:
        return self.buffer.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.buffer.shape

    @property
    def ndim(self) -> int:
        return self.buffer.ndim

    @property
    def size(self) -> int:
        return self.buffer.size

    @property
    def nbytes(self) -> int:
        return self.buffer.nbytes

    # -- reading

    def read_value(self) -> Any:
        """Its value now, an array of its own: later assignments do not change it."""
        trace = _traces.current()
        if trace is not None:
            return _traces.read(trace, self)
        with Hold([(self.occupancy, False)]):
            return self.buffer.copy()

    def numpy(self) -> Any:
        """`read_value`: a NumPy array, traced in compiled functions."""
        return self.read_value()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """A copy; raises ``ValueError`` where ``copy=False`` forbids one."""
        if copy is False:
            raise user_error(ValueError, f"{self.title} is never shown without a copy",
                             cure="assign to it, or leave copy= out")
        return np.asarray(self.read_value(), dtype)

    def __dlpack__(self, *, copy: bool | None = None, **asked: Any) -> Any:
        """A capsule of DLPack with a copy of its value; raises ``ValueError`` for ``copy=False``.

        ``asked``: what the consumer says of streams, versions and devices, as for an ndarray.
        """
        if copy is False:
            self.__array__(copy=False)
        return np.asarray(self.read_value()).__dlpack__(**asked)

    def __dlpack_device__(self) -> tuple[int, int]:
        """The host, where values are read: ``(1, 0)``."""
        return 1, 0

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        targets = kwargs.pop("out", ())
        called: Any = getattr(ufunc, method)
        if method in WRITERS and isinstance(inputs[0], Variable):
            raise self.in_place(f"np.{ufunc.__name__}.{method}")
        if not any(isinstance(x, Variable) for x in targets):
            kwargs |= {"out": targets} if targets else {}
            return called(*map(snapshot, inputs), **{k: snapshot(x) for k, x in kwargs.items()})
        return self._into(targets, called, inputs, kwargs)

    def _into(
        self, targets: tuple[Any, ...], called: Callable[..., Any], inputs: Any, kwargs: Any
    ) -> Any:
        """``np.add(v, x, out=v)`` and ``v += x``: cast as NumPy casts in place."""
        if len(targets) > 1:
            raise user_error(TypeError, "Variables as out= of a function with several results",
                             cure="assign the results: v.assign(...)")
        target: Variable = targets[0]
        with target.alone():
            value = called(*map(snapshot, inputs), **kwargs)
            target.take(value, "same_kind")
        return target

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if isinstance(kwargs.get("out"), Variable) or func.__name__ in WRITERS:
            raise self.in_place(f"np.{func.__name__}")
        return func(*snapshots(args), **snapshots(kwargs))

    def __getitem__(self, key: Any) -> Any:
        return self.read_value()[snapshots(key)]

    def answers(self, name: str) -> bool:
        """Whether an attribute is its own, or refused, rather than one of the value's."""
        return hasattr(type(self), name) or name in _REFUSED

    def __getattr__(self, name: str) -> Any:
        if name in _REFUSED:
            raise self.in_place(f".{name}", AttributeError)
        if name.startswith("_") or not hasattr(np.ndarray, name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.read_value(), name)

    def in_place(self, what: str, kind: type[Exception] = TypeError) -> FusecError:
        """The error for an operation that would write to a snapshot."""
        return user_error(
            kind, f"{what} would change or show a copy of {self.title}, not itself",
            None, "compute the new value and assign it: v.assign(np.sort(v))")

    def __bool__(self) -> bool:
        return bool(self.read_value())

    def __int__(self) -> int:
        return int(self.read_value())

    def __float__(self) -> float:
        return float(self.read_value())

    def __complex__(self) -> complex:
        return complex(self.read_value())

    def __index__(self) -> int:
        return operator.index(self.read_value())

    def __len__(self) -> int:
        return len(self.buffer)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.read_value())

    def __contains__(self, item: Any) -> bool:
        return item in self.read_value()

    def __format__(self, spec: str) -> str:
        return format(self.read_value(), spec) if spec else str(self)

    def __str__(self) -> str:
        return str(self.read_value())

    def __repr__(self) -> str:
        place = self.stated_device and f" on {self.stated_device}"
        what = f"fusec.Variable {self.name} {self.dtype}{list(self.shape)}{place}"
        return f"<{what}>" if _traces.current() is not None else f"<{what}\n{self.read_value()}>"

    # -- assigning

    def alone(self) -> Hold:
        """``with v.alone():`` only this thread reads and assigns it."""
        return Hold([(self.occupancy, True)])

    def assign(self, value: Any) -> Any:
        """Take this value; gives it back, as `read_value` does.

        Raises ``ValueError`` for another shape, ``TypeError`` for a dtype that does not cast to the
        Variable's without loss (Python's numbers adapt, lists of them too).
        """
        with self.alone():
            self.take(value, "safe")
            return self.read_value()

    def assign_add(self, delta: Any) -> Any:
        """Take ``self + delta``, which must have its shape; gives the new value."""
        with self.alone():
            return self.assign(np.add(self, operand(delta, self.dtype)))

    def assign_sub(self, delta: Any) -> Any:
        """Take ``self - delta``, which must have its shape; gives the new value."""
        with self.alone():
            return self.assign(np.subtract(self, operand(delta, self.dtype)))

    def take(self, value: Any, casting: Any) -> None:
        """Take a value with the casts that NumPy calls ``safe`` or ``same_kind``."""
        trace = _traces.current()
        value = snapshot(value)
        if trace is not None:
            self._check_place(trace)
            given = fitting(self, value) if casting == "safe" else value
            _traces.write(trace, self, given, casting)
            return
        if casting == "safe":
            value = fitting(self, value)
        array = np.asarray(value)
        self.check_dtype(array.dtype, None, casting)
        self.check_shape(array.shape)
        np.copyto(self.buffer, array, casting="same_kind")

    def __setitem__(self, key: Any, value: Any) -> None:
        """``v[key] = value`` as NumPy assigns items: broadcast, and cast to the dtype."""
        key, value = snapshots(key), snapshot(value)
        trace = _traces.current()
        if trace is not None:
            self._check_place(trace)
            _traces.write_part(trace, self, key, value)
            return
        with self.alone():
            self.buffer[key] = value

    def _check_place(self, trace: Trace) -> None:
        """Raise where a scope places the assignment on another device."""
        if trace.builder.devices is not None:
            trace.builder.devices.check_assigned(self.title, self.device, trace.loc)

    def check_shape(self, shape: tuple[Any, ...], loc: Any = None) -> None:
        """Raise unless it is the Variable's."""
        if shape != self.shape:
            raise user_error(
                ValueError, f"{self.title} has one shape, which an assignment keeps", loc,
                "assign v[...] = x to broadcast, or make another Variable",
                values=[(self.name, describe(self.dtype, self.shape)),
                        ("assigned", f"an array of shape {list(shape)}")])

    def check_dtype(self, dtype: np.dtype, loc: Any = None, casting: Any = "safe") -> None:
        """Raise unless values of this dtype are values of the Variable's."""
        if not np.can_cast(dtype, self.dtype, casting):
            cure = f"assign x.astype(np.{self.dtype})"
            raise user_error(
                TypeError, f"{self.title} keeps its dtype, and {dtype} does not fit into "
                f"{self.dtype} without loss", loc,
                cure if dtype.kind in "biufc" else "assign numbers, or an array of them",
                values=[(self.name, describe(self.dtype, self.shape)), ("assigned", dtype)])

    # -- copies: another Variable with the same value

    def __copy__(self) -> Variable:
        copy = type(self)(self.read_value(), self.dtype, self.name, self.trainable)
        copy._device = self._device
        return copy

    def __deepcopy__(self, memo: Any) -> Variable:
        return self.__copy__()

    def __reduce__(self) -> tuple[Any, ...]:
        if self._device.startswith("/job:worker"):
            return reduced_away(self)  # to a handle: a copy would be another Variable
        made_of = self.read_value(), self.dtype, self.name, self.trainable
        return type(self), made_of, (None, {"_device": self._device})


def snapshot(x: Any) -> Any:
    """The value of a Variable, others as they are."""
    return x.read_value() if isinstance(x, Variable) else x


def snapshots(x: Any) -> Any:
    """The same of items of lists, tuples and dicts."""
    if isinstance(x, Variable):
        return x.read_value()
    if type(x) in (list, tuple):
        return type(x)(map(snapshots, x))
    if type(x) is dict:
        return {key: snapshots(value) for key, value in x.items()}
    return x


__all__ = ["WRITERS", "InTraces", "Variable", "answer_in_traces", "in_trace",
           "note_creations", "snapshot", "snapshots"]
