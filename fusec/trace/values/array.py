"""`TracedArray`: the stand-in for an ndarray or a number in a traced function."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn
from weakref import ref

import numpy as np

from fusec.errors import ConcreteValueError, TraceError, nearest, unsupported, user_error
from fusec.ir import TensorType, Value
from fusec.ops.complex_parts import PARTS, component

from ..facts.constant_values import constant_value
from ..facts.layout import Strides, contiguous, order_like
from ..facts.origins import AS_STATIC, describe, way_out
from ..facts.refusals import is_index, not_an_index
from .operations import OPERATIONS
from .storage import Storage, ViewStep, with_step
from .trace import Trace

# What the constant that a traced array stands for cannot answer: writing, and sharing its memory.
_WRITING = ("sort", "partition", "put", "resize", "itemset", "setfield", "byteswap", "setflags")
_SHARING = ("base", "ctypes", "data", "getfield")
_PYTHON = {"b": bool, "i": int, "u": int, "f": float, "c": complex}


class Markers(set[str]):
    """Of a trace: texts that stand for values which only the run knows."""


class TracedArray:
    """An array (a storage seen through view steps) or a scalar (a value alone) in a trace.

    It answers NumPy's protocols, operators and ndarray's methods; whatever needs its elements while
    Python runs raises `ConcreteValueError`.
    """

    __slots__ = ("__weakref__", "_scalar", "steps", "storage", "trace")
    __array_priority__ = 1000.0

    def __init__(
        self, trace: Trace, storage: Storage | None, steps: tuple[ViewStep, ...] = (),
        scalar: Any = None,
    ) -> None:
        self.trace = trace
        self.storage = storage
        self.steps = steps
        self._scalar: Any = scalar
        if storage is not None:
            storage.shown_by.append(ref(self))

    @property
    def value(self) -> Value:
        """The graph value it holds now."""
        if not self.trace.active:
            self.check_alive()
        if self.storage is None:
            return self._number
        self.trace.builder.loc = self.trace.loc
        return self.storage.read(self.trace.builder, self.steps)

    def check_alive(self) -> None:
        """Raise `TraceError`, with the place where the value was made, when its trace has ended."""
        if not self.trace.active:
            raise TraceError(
                f"a traced value is used after its trace ended; it was made in "
                f"{self.trace.name}()", loc=self.origin.node.loc,
                values=[("value", describe(self.origin, None, self.trace.feeds.outside))],
                cure="return it from the function; do not keep it in a global, a list or an "
                     "attribute",
            )

    @property
    def origin(self) -> Value:
        """The value of the whole storage, for messages; valid after the trace too."""
        return self._number if self.storage is None else self.storage.value

    @property
    def _number(self) -> Value:
        """The value of a scalar; one of many (`rows`) may have no node yet."""
        if type(self._scalar) is not Value:
            self._scalar = self._scalar[0].value_of(self._scalar[1])
        return self._scalar

    @property
    def type(self) -> TensorType:
        return self.value.type if self.steps or not self.trace.active else self._whole_type

    @property
    def _whole_type(self) -> TensorType:
        """That of the whole storage, or of the scalar."""
        scalar: Any = self._scalar
        if self.storage is not None:
            return self.storage.type
        return scalar.type if type(scalar) is Value else scalar[0].type

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
    def __class__(self) -> Any:
        """So that ``isinstance(x, np.ndarray)`` holds as it does for the real argument."""
        if self.storage is not None:
            return np.ndarray
        type_ = self._whole_type
        return _PYTHON[type_.dtype.kind] if type_.is_weak else type_.dtype.type

    @property
    def dtype(self) -> np.dtype:
        dtypes = [dict(s.attrs)["dtype"] for s in self.steps if s.op == "Reinterpret"]
        if dtypes:
            return np.dtype(dtypes[-1])
        whole = self._whole_type.dtype
        is_part = whole.kind == "c" and any(s.op in PARTS for s in self.steps)
        return component(whole) if is_part else whole

    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.shape

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
        text = f"<traced {self.origin.type}{state} {self.origin.name}>"
        self.trace.part(Markers).add(text)  # it may become a part of a list's
        return text

    # -- protocols

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        self.check_alive()
        return OPERATIONS.call_ufunc(self.trace, ufunc, method, inputs, kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        self.check_alive()
        return OPERATIONS.call_function(self.trace, func, args, kwargs)

    def concrete(self, needed: str, otherwise: str) -> Any:
        """The value itself where no argument decides it; else raises `ConcreteValueError`."""
        constant = OPERATIONS.value_of(self.trace, self.value)
        if constant is not None:
            return constant
        self.trace.record.asked = error = ConcreteValueError(
            f"{needed} is needed while {self.trace.name} is traced, but this value is only known "
            f"when the compiled code runs", loc=self.trace.loc,
            values=[("value", describe(self.value, None, self.trace.feeds.outside))],
            cure=way_out(self.value, otherwise, self.trace.feeds.outside))
        raise error

    def __bool__(self) -> bool:
        if self.is_array and self.size > 1:
            error = ValueError("The truth value of an array with more than one element is "
                               "ambiguous. Use a.any() or a.all()")
            raise self.trace.error(error, [self.value])
        return bool(self.concrete(
            "a truth value", "select with np.where(condition, a, b), or for fewer elements "
            "x[condition], or decide before the call"))

    def __int__(self) -> int:
        return int(self.concrete("an int", "stay in the graph with .astype(int)" + AS_STATIC))

    def __float__(self) -> float:
        return float(self.concrete("a float", "stay in the graph with float(x) or .astype(float) "
                                   "in the function itself"))

    def __complex__(self) -> complex:
        return complex(self.concrete("a complex number", "keep real and imaginary parts apart"))

    def __index__(self) -> int:
        if not is_index(self):
            raise not_an_index(self)
        return int(self.concrete("an index or a length", "keep the items in a NumPy array, whose "
                                 "indices the run may decide" + AS_STATIC))

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        array = self.concrete(
            "an ndarray", "call the library before or after the compiled function, and pass its "
            "result as an argument")
        return np.array(array, dtype)

    def __hash__(self) -> int:
        if self.is_array:
            raise self.trace.error(TypeError("unhashable type: 'numpy.ndarray'"), [self.value])
        return hash(self.concrete("a hash (a dict key or a set member)",
                                  "look it up before the call; np.unique finds and counts values"))

    def __format__(self, spec: str) -> str:
        return format(self.concrete("text", "format the result after the call"), spec)

    def __str__(self) -> str:
        if not self.trace.active:
            return repr(self)
        return str(self.concrete("text", "format the result after the call"))

    def __len__(self) -> int:
        if self.ndim == 0:
            text = "len() of unsized object" if self.is_array else (
                f"object of type '{self.kind_name}' has no len()")
            raise self.trace.error(TypeError(text), [self.value])
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        if self.ndim == 0:
            text = "iteration over a 0-d array" if self.is_array else (
                f"'{self.kind_name}' object is not iterable")
            raise self.trace.error(TypeError(text), [self.value])
        return (self[i] for i in range(self.shape[0]))

    @property
    def kind_name(self) -> str:
        """Its type's name as Python's messages say it."""
        kind: Any = self.__class__
        return kind.__name__ if kind.__module__ == "builtins" else f"numpy.{kind.__name__}"

    def __contains__(self, item: Any) -> bool:
        return bool((self == item).any().concrete(
            "a truth value", "stay in the graph with (x == item).any()"))

    def __getitem__(self, key: Any) -> Any:
        return OPERATIONS.getitem(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        OPERATIONS.setitem(self, key, value)

    def __delitem__(self, key: Any) -> NoReturn:
        raise self.trace.error(ValueError("cannot delete array elements"), [self.value])

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise unsupported("pickling a traced value", loc=self.trace.loc,
                          cure="return it, and pickle it after the call")

    def __copy__(self) -> Any:
        return self.copy("K") if self.is_array else self

    def __deepcopy__(self, memo: Any) -> Any:
        return self.__copy__()

    # -- views

    def view_through(
        self, op: str, strides: Strides, *operands: Value, **attrs: Any
    ) -> TracedArray:
        """This array through one more view step."""
        storage = self.storage
        if storage is None:  # a scalar: NumPy makes a new array of rank 0
            storage = Storage(self.trace.emit("BroadcastTo", self.value, shape=()))
        step = ViewStep(op, tuple(attrs.items()), strides, operands)
        steps = with_step(self.steps, step, storage.value.shape, storage.strides)
        return TracedArray(self.trace, storage, steps)

    @property
    def is_writeable(self) -> bool:
        """NumPy's flag; a scalar is not."""
        return self.storage is not None and self.storage.tell_writeable() and not any(
            s.op in ("BroadcastTo", "Diagonal", "Fill", "ReadOnly", "Windows") for s in self.steps)

    def check_writeable(self) -> None:
        """Raise NumPy's error for writing to a scalar or into read-only memory."""
        if self.storage is None:
            raise self.trace.error(TypeError("a scalar does not support item assignment"))
        if not self.is_writeable:
            raise self.trace.error(ValueError("assignment destination is read-only"), [self.value])

    def write(self, value: Value) -> None:
        """Replace the contents; ``value`` has this shape and dtype."""
        self.check_writeable()
        storage = self.storage
        assert storage is not None
        storage.check_apart()
        if storage.is_constant:
            self.trace.local.memory.write_to(storage)
        self.trace.builder.loc = self.trace.loc
        if not storage.writes_elsewhere:
            self.trace.record.journal.append(
                (storage, storage.value, storage.version, self.trace.loc))
        storage.write(self.trace.builder, self.steps, value)

    # -- attributes of ndarray that are functions here

    @property
    def T(self) -> TracedArray:
        return self.transpose()

    @property
    def mT(self) -> TracedArray:
        if self.ndim < 2:
            raise self.trace.error(
                ValueError("matrix transpose with ndim < 2 is undefined"), [self.value])
        return self.swapaxes(-1, -2)

    @property
    def real(self) -> TracedArray:
        if self.type.is_weak and self.dtype.kind == "b":  # an int, of Python's booleans
            number: Any = self
            return +number
        return self._part("Real") if self.dtype.kind == "c" else self

    @real.setter
    def real(self, value: Any) -> None:
        self.real[...] = value

    @property
    def imag(self) -> TracedArray:
        return self._part("Imag") if self.dtype.kind == "c" else OPERATIONS.zero_imag(self)

    @imag.setter
    def imag(self, value: Any) -> None:
        if self.dtype.kind != "c":
            raise self.trace.error(TypeError("array does not have imaginary part to set"))
        self.imag[...] = value

    def _part(self, op: str) -> TracedArray:
        if self.is_array:
            return self.view_through(op, self.strides)
        return from_value(self.trace, self.trace.emit(op, self.value))

    def diagonal_sum(self, *args: Any, **kwargs: Any) -> Any:
        """``ndarray.trace`` (converted code is led here: ``self.trace`` is the trace)."""
        return OPERATIONS.methods["trace"](self, *args, **kwargs)

    @property
    def flat(self) -> TracedArray:
        """The elements in C order: a view, or a copy that cannot be written to."""
        elements = OPERATIONS.ravel(self.trace, self)
        if elements.storage is self.storage:
            elements = TracedArray(self.trace, elements.storage, elements.steps)
        else:
            elements = elements.view_through("ReadOnly", elements.strides)
        self.trace.local.flats[id(elements)] = elements, self
        return elements

    @property
    def flags(self) -> Any:
        return OPERATIONS.flags(self)

    def __getattr__(self, name: str) -> Any:
        method = OPERATIONS.methods.get(name)
        if name.startswith("__") and method is None:
            raise AttributeError(name)
        if method is not None and hasattr(self.__class__, name):
            return method.__get__(self)
        if name == "device" and hasattr(self.__class__, name):
            return "cpu"
        if hasattr(self.__class__, name):
            constant = constant_value(self.value)
            if constant is not None and name not in (*_WRITING, *_SHARING):
                return getattr(constant, name)
            owner = "ndarray" if self.is_array else self.kind_name.replace("numpy.", "np.")
            raise unsupported(f"{owner}.{name}", loc=self.trace.loc,
                              cure=OPERATIONS.cure_for_use(name).replace("call it", "use it"))
        raise user_error(AttributeError, f"'{self.kind_name}' object has no attribute {name!r}",
                         self.trace.loc, candidates=nearest(name, dir(np.ndarray)))


def number(trace: Trace, value: Value) -> TracedArray:
    """A traced scalar."""
    return TracedArray(trace, None, (), value)


def from_value(trace: Trace, value: Value, strides: Strides | None = None) -> TracedArray:
    """A fresh result: an array with memory of its own, or a scalar."""
    if value.type.kind != "array":
        return TracedArray(trace, None, (), value)
    return TracedArray(trace, Storage(value, strides))


def copy_of(x: TracedArray, order: str = "K") -> TracedArray:
    """A fresh array with the same contents."""
    shape, itemsize = x.shape, x.itemsize
    axes = order_like(shape, x.strides, itemsize, order)
    return TracedArray(x.trace, Storage(x.value, contiguous(shape, itemsize, axes)))


