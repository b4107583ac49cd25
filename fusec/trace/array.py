"""`TracedArray`: what a traced function sees in place of an ndarray or a number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np

from fusec.errors import ConcreteValueError, TraceError, unsupported
from fusec.ir import TensorType, Value

from .context import Trace
from .layout import Strides, contiguous
from .storage import Storage, ViewStep

_PYTHON = {"b": bool, "i": int, "u": int, "f": float, "c": complex}


class TracedArray:
    """An array (a storage seen through view steps) or a scalar (a value alone) in a trace.

    It answers NumPy's protocols, operators and ndarray's methods; whatever needs its elements while
    Python runs raises `ConcreteValueError`.
    """

    __slots__ = ("_scalar", "steps", "storage", "trace")
    __array_priority__ = 1000.0

    def __init__(
        self, trace: Trace, storage: Storage | None, steps: tuple[ViewStep, ...] = (),
        scalar: Value | None = None,
    ) -> None:
        self.trace = trace
        self.storage = storage
        self.steps = steps
        self._scalar = scalar

    # -- what it is

    @property
    def value(self) -> Value:
        """The graph value it holds now."""
        if not self.trace.active:
            raise TraceError(
                "a traced value is used after its trace ended",
                loc=self.origin.node.loc,
                cure="return it from the function; do not keep it in a global or an attribute",
            )
        if self.storage is None:
            assert self._scalar is not None
            return self._scalar
        self.trace.builder.loc = self.trace.loc
        return self.storage.read(self.trace.builder, self.steps)

    @property
    def origin(self) -> Value:
        """The value of the whole storage, for messages; valid after the trace too."""
        return self._scalar if self.storage is None else self.storage.value  # type: ignore[return-value]

    @property
    def type(self) -> TensorType:
        return self.value.type

    @property
    def is_array(self) -> bool:
        """Whether NumPy would hold an ndarray here (not a scalar or a Python number)."""
        return self.storage is not None

    @property
    def strides(self) -> Strides:
        """Byte strides as NumPy's array would have them."""
        if self.storage is None:
            return ()
        return self.steps[-1].strides if self.steps else self.storage.strides

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """So that ``isinstance(x, np.ndarray)`` holds as it does for the real argument."""
        if self.storage is not None:
            return np.ndarray
        type_ = self.origin.type
        return _PYTHON[type_.dtype.kind] if type_.is_weak else type_.dtype.type

    @property
    def dtype(self) -> np.dtype:
        return self.origin.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return self.type.size

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.itemsize

    def __repr__(self) -> str:
        state = "" if self.trace.active else " of a finished trace"
        return f"<traced {self.origin.type}{state} {self.origin.name}>"

    # -- protocols

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        from .ufuncs import call_ufunc

        return call_ufunc(self.trace, ufunc, method, inputs, kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        from .functions import call_function

        return call_function(self.trace, func, args, kwargs)

    def _concrete(self, wanted: str, cure: str) -> NoReturn:
        raise ConcreteValueError(
            f"{wanted} is needed while the function is traced, but this value is only known when "
            f"the compiled code runs",
            loc=self.trace.loc, values=[("value", f"{self.type} from {self.origin.node.op}")],
            cure=cure,
        )

    def __bool__(self) -> bool:
        if self.is_array and self.size > 1:
            error = ValueError("The truth value of an array with more than one element is "
                               "ambiguous. Use a.any() or a.all()")
            raise self.trace.error(error, [self.value])
        self._concrete("a truth value", "select with np.where(condition, a, b), or make the "
                       "argument static: fusec.jit(static=('name',))")

    def __int__(self) -> int:
        self._concrete("an integer", "use .astype(int) to stay in the graph, or make the argument "
                       "static: fusec.jit(static=('name',))")

    def __float__(self) -> float:
        self._concrete("a float", "drop the conversion, or use .astype(float)")

    def __complex__(self) -> complex:
        self._concrete("a complex number", "use .astype(complex)")

    def __index__(self) -> int:
        self._concrete("an index or a length", "make the argument static: "
                       "fusec.jit(static=('name',))")

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        self._concrete("an ndarray", "call the NumPy function from the traced function itself, or "
                       "compute it before the call and pass the result")

    def __hash__(self) -> int:
        if self.is_array:
            raise TypeError("unhashable type: 'numpy.ndarray'")
        self._concrete("a hash", "make the argument static: fusec.jit(static=('name',))")

    def __format__(self, spec: str) -> str:
        self._concrete("text", "format the result after the call")

    def __str__(self) -> str:
        return repr(self)

    def __len__(self) -> int:
        if self.ndim == 0:
            raise self.trace.error(TypeError("len() of unsized object"), [self.value])
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        if self.ndim == 0:
            raise self.trace.error(TypeError("iteration over a 0-d array"), [self.value])
        return (self[i] for i in range(self.shape[0]))

    def __contains__(self, item: Any) -> Any:
        self._concrete("membership", "use (x == item).any()")

    # -- items

    def __getitem__(self, key: Any) -> Any:
        from .indexing import getitem

        return getitem(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        from .indexing import setitem

        setitem(self, key, value)

    # -- views

    def view_through(self, op: str, strides: Strides, **attrs: Any) -> TracedArray:
        """This array through one more view step."""
        storage = self.storage if self.storage is not None else Storage(self.value)
        step = ViewStep(op, tuple(attrs.items()), strides)
        return TracedArray(self.trace, storage, (*self.steps, step))

    def write(self, value: Value) -> None:
        """Replace the contents; ``value`` has this shape and dtype."""
        storage = self.storage
        if storage is None:
            raise self.trace.error(TypeError("a scalar does not support item assignment"))
        if not storage.writeable or any(s.op == "BroadcastTo" for s in self.steps):
            raise self.trace.error(ValueError("assignment destination is read-only"), [self.value])
        if storage.is_constant:
            raise unsupported(
                "writing a traced value into an array made from plain numbers", loc=self.trace.loc,
                cure="create it with np.zeros, np.empty or np.full, or copy it: np.array(x) + 0",
            )
        self.trace.builder.loc = self.trace.loc
        storage.write(self.trace.builder, self.steps, value)

    # -- attributes of ndarray that are functions here

    @property
    def T(self) -> TracedArray:
        return self.transpose()

    @property
    def real(self) -> TracedArray:
        return self

    @property
    def flat(self) -> NoReturn:
        raise unsupported("ndarray.flat", ["ndarray.ravel"], loc=self.trace.loc)

    @property
    def flags(self) -> NoReturn:
        raise unsupported("ndarray.flags", loc=self.trace.loc,
                          cure="test the flags before the call")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        from .methods import METHODS

        method = METHODS.get(name)
        if method is not None and (self.is_array or hasattr(np.float64, name)):
            return method.__get__(self)
        if hasattr(np.ndarray, name):
            raise unsupported(f"ndarray.{name}", [f"ndarray.{m}" for m in METHODS],
                              loc=self.trace.loc)
        kind = "numpy.ndarray" if self.is_array else self.__class__.__name__
        raise AttributeError(f"'{kind}' object has no attribute {name!r}")


def from_value(trace: Trace, value: Value, strides: Strides | None = None) -> TracedArray:
    """A fresh result: an array with memory of its own, or a scalar."""
    if value.type.kind != "array":
        return TracedArray(trace, None, (), value)
    return TracedArray(trace, Storage(value, strides))


def fresh_strides(value: Value, order: list[int]) -> Strides:
    return contiguous(value.shape, value.dtype.itemsize, order)


def _binary(ufunc: np.ufunc, name: str) -> None:
    def forward(self: TracedArray, other: Any) -> Any:
        from .ufuncs import call_ufunc, is_operand

        if not is_operand(other):
            return NotImplemented
        return call_ufunc(self.trace, ufunc, "__call__", (self, other), {})

    def backward(self: TracedArray, other: Any) -> Any:
        from .ufuncs import call_ufunc, is_operand

        if not is_operand(other):
            return NotImplemented
        return call_ufunc(self.trace, ufunc, "__call__", (other, self), {})

    def in_place(self: TracedArray, other: Any) -> Any:
        from .ufuncs import call_ufunc

        out = {"out": (self,)} if self.is_array else {}
        return call_ufunc(self.trace, ufunc, "__call__", (self, other), out)

    for prefix, method in (("", forward), ("r", backward), ("i", in_place)):
        setattr(TracedArray, f"__{prefix}{name}__", method)


def _comparison(ufunc: np.ufunc, name: str) -> None:
    def compare(self: TracedArray, other: Any) -> Any:
        from .ufuncs import call_ufunc, is_operand

        if not is_operand(other):
            return NotImplemented
        return call_ufunc(self.trace, ufunc, "__call__", (self, other), {})

    setattr(TracedArray, f"__{name}__", compare)


def _unary(ufunc: np.ufunc, name: str) -> None:
    def apply(self: TracedArray) -> Any:
        return ufunc(self)

    setattr(TracedArray, f"__{name}__", apply)


_BINARY: dict[str, np.ufunc] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide,
    "floordiv": np.floor_divide, "mod": np.remainder, "pow": np.power, "matmul": np.matmul,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "lshift": np.left_shift, "rshift": np.right_shift,
}
_COMPARE: dict[str, np.ufunc] = {
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "eq": np.equal, "ne": np.not_equal,
}
_UNARY: dict[str, np.ufunc] = {
    "neg": np.negative, "pos": np.positive, "abs": np.absolute, "invert": np.invert,
}
for _name, _ufunc in _BINARY.items():
    _binary(_ufunc, _name)
for _name, _ufunc in _COMPARE.items():
    _comparison(_ufunc, _name)
for _name, _ufunc in _UNARY.items():
    _unary(_ufunc, _name)

