"""What converted code calls while it is traced: NumPy, Python and ``math`` on traced values."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np

from fusec.errors import FusecError, UnsupportedError, unsupported
from fusec.ir.graph import new_id

from . import scipy_functions, sizes
from .array import TracedArray, from_value
from .attributes import Attributes
from .complex_numbers import python_complex
from .context import Trace
from .control import ControlHooks, Joined, TracedRange
from .control.effects import Effects
from .convert import CALLS, CallTable
from .convert.hooks import Where
from .creation import _holds_traced, astype
from .failures import guarded, on_known
from .functions import CREATION, FUNCTIONS, call_function
from .guards import attribute_guard, is_data, is_guarded
from .handlers import any_traced, when_traced
from .known import known
from .own_arrays import WRITERS, WRITING_METHODS
from .python_errors import check_integer, check_math, check_math_power
from .randomness import drawn, generators_of, is_random, random_state
from .refusals import is_compiled
from .shaping import spread_scalar
from .side_effects import warn_of_effect
from .ufuncs import as_traced, call_ufunc, cast

F64, I64 = np.dtype(np.float64), np.dtype(np.int64)
TABLE = CallTable(CALLS)
_POLYNOMIAL: Any = np.polynomial.Polynomial.__base__  # of all kinds of polynomials
_JOINERS = (type(np.r_), type(np.c_))
_DISPATCHED = (FunctionType, type(np.argmax), type(np.concatenate))
ALWAYS_TRACED = (np.zeros, np.ones, np.empty, np.full, np.empty_like)


class GraphHooks(ControlHooks):
    """Hooks of one trace."""

    table = TABLE

    def __init__(self, trace: Trace) -> None:
        super().__init__()
        self.trace = trace
        self.functions: dict[FunctionType, None] = {}
        self.effects = Effects(trace)
        self.attributes = Attributes(trace)
        trace.hooks = self

    def call(self, where: Where, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        """As Python's, and remembers arrays and objects that the trace itself made."""
        self.where = where
        if self.trace.active and is_random(fn):
            fn = drawn(self.trace, fn)
        elif self.trace.active:
            warn_of_effect(self.trace, fn, args)
        if not kwargs and self.effects.takes(fn, args):
            return None
        self.effects.check_call(fn, self.loc)
        if self.table.find(fn) is None and home_of(fn) == "scipy":
            scipy_functions.register_imported(self.table)
        fn, args, kwargs = self._with_written_traced(fn, args, kwargs)
        if self.trace.active and (is_numpys(fn) or self.table.find(fn) is not None):
            args = tuple(map(self.lifted, args))
            kwargs = {name: self.lifted(value) for name, value in kwargs.items()}
        if isinstance(fn, _POLYNOMIAL) and any_traced(args, kwargs):
            from .numpy_source import run_source

            return run_source(self.trace, type(fn).__call__, None, (fn, *args), kwargs)
        if self._is_unseen_by_numpy(fn, args, kwargs):
            result = call_function(self.trace, fn, args, kwargs)
        else:
            result = super().call(where, fn, *args, **kwargs)
        if kwargs.get("out") is Ellipsis:  # which ``__array_ufunc__`` is not told
            result = _as_arrays(result)
        if is_numpys(fn):
            self._local(result)
        elif isinstance(fn, type):
            self.trace.local_objects[id(result)] = result
            self.trace.local_births[id(result)] = new_id()
        return result

    def _is_unseen_by_numpy(
        self, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> bool:
        """Whether NumPy's own dispatch would miss the traced values: in lists, or as arguments
        such as the counts of ``np.repeat``."""
        if not self.trace.active or not isinstance(fn, _DISPATCHED) or fn not in FUNCTIONS or (
                self.table.find(fn) is not None):
            return False
        first = next(iter(args), None)
        return type(first) is not TracedArray and any_traced(args, kwargs)

    def _with_written_traced(
        self, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
        """The call with an array made in the trace as a traced one where it is written.

        So is one whose method takes traced arguments, which NumPy's methods do not know.
        """
        own, owner = self.trace.own, getattr(fn, "__self__", None)
        if type(owner) is np.ndarray and (any_traced(args, kwargs) or (
                fn.__name__ in WRITING_METHODS and own.must_trace(owner))):
            fn = getattr(as_traced(self.trace, owner), fn.__name__)
        is_writer = args and (is_numpys(fn) or isinstance(owner, np.ufunc)) and (
            getattr(fn, "__name__", "") in WRITERS)
        if is_writer and type(args[0]) is np.ndarray and (
                own.must_trace(args[0]) or any_traced(args, kwargs)):
            args = (as_traced(self.trace, args[0]), *args[1:])
        if own.must_trace(kwargs.get("out")):
            kwargs = {**kwargs, "out": as_traced(self.trace, kwargs["out"])}
        return fn, args, kwargs

    def lifted(self, x: Any) -> Any:
        """An array from outside as a traced value, so that every call reads it anew."""
        if type(x) in (list, tuple):
            return type(x)(map(self.lifted, x))
        return as_traced(self.trace, x) if self._is_outside(x) else x

    def _is_outside(self, x: Any) -> bool:
        return type(x) is np.ndarray and self.trace.active and is_compiled(x.dtype) and (
            id(x) not in self.trace.local_arrays or self.trace.own.is_traced(x))

    def _local(self, result: Any) -> Any:
        """Remembers an array that plain NumPy made of arrays of the trace: a constant."""
        if issubclass(type(result), np.ndarray):
            self.trace.own.note(result)
            self.trace.local_arrays[id(result)] = result
        elif isinstance(result, (tuple, list)) and type(result) is not TracedArray:
            for item in result:
                self._local(item)
        return result

    def unop(self, where: Where, op: str, a: Any) -> Any:
        return self._local(super().unop(where, op, self.lifted(a)))

    def binop(self, where: Where, op: str, a: Any, b: Any) -> Any:
        if self._is_outside(a) or self._is_outside(b):
            self.where = where
            a, b = self.lifted(a), self.lifted(b)
        return self._local(super().binop(where, op, a, b))

    def iop(self, where: Where, op: str, a: Any, b: Any) -> Any:
        self.where = where
        if self._is_outside(a) or (type(a) is np.ndarray and (
                _holds_traced(b) or self.trace.own.must_trace(a))):
            a = as_traced(self.trace, a)
        return super().iop(where, op, a, self.lifted(b) if self._is_outside(b) else b)

    def compare(self, where: Where, op: str, a: Any, b: Any) -> Any:
        if op not in ("is", "is not") and (self._is_outside(a) or self._is_outside(b)):
            self.where = where
            a, b = self.lifted(a), self.lifted(b)
        return self._local(super().compare(where, op, a, b))

    def iterate(self, where: Where, value: Any) -> Any:
        return super().iterate(where, self._elements(where, value))

    def unpack(self, where: Where, value: Any) -> Any:
        return super().unpack(where, self._elements(where, value))

    def _elements(self, where: Where, value: Any) -> Any:
        self.where = where
        return as_traced(self.trace, value) if self._is_outside(value) else value

    def converted(self, fn: FunctionType) -> Callable[..., Any]:
        self.functions[fn] = None
        result = super().converted(fn)
        if fn.__code__ in self.unconverted:
            self.trace.watched += [(g, random_state([g])) for g in generators_of(fn)]
        return result

    def getattr(self, where: Where, obj: Any, name: str) -> Any:
        if self._is_outside(obj):
            self.where = where
            obj = as_traced(self.trace, obj)
        if name == "trace" and type(obj) is TracedArray:
            if obj.type.is_weak:
                raise self.trace.error(AttributeError(
                    f"'{obj.kind_name}' object has no attribute 'trace'"))
            return obj.diagonal_sum  # the attribute itself is the trace in progress
        if (id(obj), name) in self.attributes.names:
            self.where = where
            return self.attributes.assigned(obj, name)
        result = super().getattr(where, obj, name)
        self.effects.note_read(result)
        if name in _SIZES and type(obj) is TracedArray:
            self.where = where
            return sizes.numbers(self.trace, result)
        if type(obj) is np.ndarray:
            return self._local(result)
        if self.trace.active and type(obj) is not TracedArray and is_guarded(obj) and (
                id(obj) not in self.trace.local_objects):
            result = self.attributes.value(obj, name, result, (*self.functions, *self.trace.entry))
        if self.trace.active and is_data(result) and type(result) is not TracedArray:
            known = (id(obj), name)
            if known not in self.trace.guards and is_guarded(obj):
                self.trace.guards[known] = attribute_guard(obj, name)
        return result

    def setattr(self, where: Where, value: Any, obj: Any, name: str) -> None:
        self.where = where
        if type(obj) is TracedArray and self.trace.active:
            if name not in ("real", "imag") or not obj.is_array:
                raise _attribute_error(self.trace, obj, name)
            setattr(obj, name, value)
            return
        is_local = id(obj) in self.trace.local_objects
        if self.trace.active and (not is_local or self._is_older(obj, name)):
            self.attributes.write(obj, name, value)
            return
        super().setattr(where, value, obj, name)

    def _is_older(self, obj: Any, name: str) -> bool:
        """Whether an object made in the trace outlives the branch or loop that assigns to it."""
        born = self.trace.local_births[id(obj)]
        return (id(obj), name) in self.attributes.names or (
            hasattr(obj, "__dict__") and self.trace.is_older_than_region(born))

    def setitem(self, where: Where, value: Any, obj: Any, key: Any) -> None:
        self.where = where
        if self._is_outside(obj) or (type(obj) is np.ndarray and (
                _holds_traced(value) or _holds_traced(key) or self.trace.own.must_trace(obj))):
            as_traced(self.trace, obj)[key] = value
            return
        self.effects.check_change(obj, "assigning to an item of a container", self.loc)
        super().setitem(where, value, obj, key)

    def getitem(self, where: Where, obj: Any, key: Any) -> Any:
        self.where = where
        if self._is_outside(obj) or (type(obj) is np.ndarray and _holds_traced(key)):
            return as_traced(self.trace, obj)[key]
        if isinstance(obj, _JOINERS) and _holds_traced(key):
            from .numpy_source import concatenated_by_key

            return concatenated_by_key(self.trace, obj, key)
        result = super().getitem(where, obj, key)
        self.effects.note_read(result)
        return self._local(result) if type(obj) is np.ndarray or isinstance(
            obj, np.generic) else result

    def format_value(self, where: Where, value: Any, conversion: int, spec: str) -> str:
        self.where = where
        if conversion >= 0 and type(value) is TracedArray:
            return format(value, spec)  # raises: repr() is for debuggers
        return super().format_value(where, value, conversion, spec)


def _as_arrays(result: Any) -> Any:
    """With ``out=...`` a ufunc gives arrays of rank 0, not scalars."""
    if type(result) is tuple:
        return tuple(map(_as_arrays, result))
    return spread_scalar(result) if type(result) is TracedArray else result


_SIZES = frozenset({"shape", "size", "nbytes"})


def is_numpys(fn: Any) -> bool:
    """Whether it is a function of NumPy or SciPy, or a method of an array."""
    owner = getattr(fn, "__self__", None)
    if isinstance(fn, np.ufunc) or type(owner) is np.ndarray or isinstance(
            owner, (np.generic, np.ufunc)):
        return True
    return home_of(fn) in ("numpy", "scipy")


def home_of(fn: Any) -> str:
    """The package that a function is from; SciPy's wrappers of LAPACK and BLAS name none."""
    home = getattr(fn, "__module__", None)
    if isinstance(home, str):
        return home.partition(".")[0]
    return "scipy" if type(fn).__name__ == "fortran" else ""


def _attribute_error(trace: Trace, x: TracedArray, name: str) -> FusecError:
    """What ``x.name = value`` raises for a traced array."""
    if hasattr(np.ndarray, name):
        cure = {"shape": "x = x.reshape(...)", "dtype": "x = x.astype(...)",
                "flat": "x[...] = value", "T": "x[...] = value.T"}
        return unsupported(f"assignment to ndarray.{name}", loc=trace.loc,
                           cure=f"write {cure[name]}" if name in cure else "")
    return trace.error(AttributeError(
        f"'numpy.ndarray' object has no attribute {name!r}"), [x.value])


# ---------------------------------------------------------------------------------- handlers


def _creation(function: Callable[..., Any], handler: Callable[..., Any]) -> None:
    always = function in ALWAYS_TRACED

    def call(hooks: GraphHooks, *args: Any, **kwargs: Any) -> Any:
        if hooks.trace.active and (always or any_traced(args, kwargs)):
            return guarded(hooks.trace, f"np.{function.__name__}", handler, function, args, kwargs,
                           (hooks.trace,))
        return function(*args, **kwargs)

    TABLE.register(function, call)


_when_traced = partial(when_traced, TABLE)


def _constructor(kind: type) -> None:
    """``np.float32(x)`` and its like."""
    @_when_traced(kind)
    def convert(hooks: GraphHooks, value: Any) -> Any:
        x = as_traced(hooks.trace, value)
        if x.ndim:  # as np.asarray: no copy where none is needed
            same = x.dtype == np.dtype(kind)
            return TracedArray(x.trace, x.storage, x.steps) if same else astype(
                hooks.trace, x, kind)
        result = cast(hooks.trace, _scalar(hooks.trace, x), np.dtype(kind))
        return from_value(hooks.trace, result)


def _number(kind: type, dtype: np.dtype) -> None:
    """``float(x)`` and ``int(x)`` of a traced scalar stay in the graph as Python numbers."""
    @_when_traced(kind)
    def convert(hooks: GraphHooks, value: Any) -> Any:
        x = as_traced(hooks.trace, value)
        if x.size != 1:
            raise hooks.trace.error(TypeError(
                "only 0-dimensional arrays can be converted to Python scalars"), [x.value])
        if x.type.is_weak and x.dtype.kind == "c":
            raise hooks.trace.error(TypeError(
                f"{kind.__name__}() argument must be a string or a real number, not 'complex'"))
        value = x.value
        if x.ndim:
            value = hooks.trace.emit("Squeeze", value, axes=tuple(range(x.ndim)))
        if dtype == I64 and value.dtype.kind == "f":
            check_integer(hooks.trace, value)
        return TracedArray(hooks.trace, None, (), weak(hooks.trace, value, dtype))


@_when_traced(bool)
def _truth(hooks: GraphHooks, value: Any) -> Any:
    """``bool(x)`` of a traced scalar stays in the graph as a Python bool."""
    found = hooks.decide(value)
    if found is not None:
        return found
    return TracedArray(hooks.trace, None, (), weak(
        hooks.trace, hooks.truth(value), np.dtype(np.bool_)))


def weak(trace: Trace, value: Any, dtype: np.dtype) -> Any:
    """The value as a Python number of this dtype."""
    if value.dtype == dtype and value.type.is_weak:
        return value
    return trace.emit("Cast", value, dtype=dtype, kind="weak")


def _math(function: Callable[..., Any], ufunc: np.ufunc) -> None:
    """``math.sqrt(x)``: the ufunc on Python floats, giving a Python float."""
    @_when_traced(function)
    def call(hooks: GraphHooks, *args: Any) -> Any:
        trace = hooks.trace
        if len(args) != ufunc.nin:  # math.log(x, base), math.hypot(x, y, z)
            return on_known(trace, f"math.{function.__name__} of {len(args)} numbers", function,
                            args, {}, [f"math.{function.__name__} of {ufunc.nin}"])
        operands = [as_traced(trace, a) for a in args]
        for x in operands:
            if x.size != 1:
                raise trace.error(TypeError(
                    "only 0-dimensional arrays can be converted to Python scalars"), [x.value])
        numbers = [weak(trace, _scalar(trace, x), F64) for x in operands]
        if function is math.pow:  # np.power takes roots for powers of a half
            check_math_power(trace, numbers)
            result = trace.emit("Pow", *numbers)
        else:
            strong = [from_value(trace, cast(trace, x, F64)) for x in numbers]
            result = call_ufunc(trace, ufunc, "__call__", strong, {}).value
        check_math(trace, function, numbers, result)
        return TracedArray(trace, None, (), weak(trace, result, result.dtype))


def _math_row(function: Callable[..., Any], op: str) -> None:
    """``math.erf(x)`` and its like, which NumPy lacks: the row on a Python float."""
    @_when_traced(function)
    def call(hooks: GraphHooks, x: Any) -> TracedArray:
        trace, number = hooks.trace, as_traced(hooks.trace, x)
        if number.size != 1:
            raise trace.error(TypeError(
                "only 0-dimensional arrays can be converted to Python scalars"), [number.value])
        value = weak(trace, _scalar(trace, number), F64)
        result = trace.emit(op, value)
        check_math(trace, function, [value], result)
        return TracedArray(trace, None, (), result)


def _scalar(trace: Trace, x: TracedArray) -> Any:
    if not x.is_array:
        return x.value
    return trace.emit("Squeeze", x.value, axes=tuple(range(x.ndim)), kind="scalar")


def _extremum(function: Callable[..., Any], better: np.ufunc) -> None:
    @_when_traced(function)
    def call(hooks: GraphHooks, *args: Any, key: Any = None, **kwargs: Any) -> Any:
        items = list(args[0]) if len(args) == 1 else list(args)
        if key is not None or kwargs or not items:
            raise unsupported(f"{function.__name__} with these arguments on traced values",
                              loc=hooks.loc, cure="use np.minimum or np.maximum")
        best = items[0]
        for item in items[1:]:
            x, y = as_traced(hooks.trace, best), as_traced(hooks.trace, item)
            if x.ndim or y.ndim:
                raise hooks.trace.error(ValueError(
                    "The truth value of an array with more than one element is ambiguous. "
                    "Use np.minimum or np.maximum"), [x.value, y.value])
            taken = call_ufunc(hooks.trace, better, "__call__", (y, x), {}, True)
            best = _choose(hooks.trace, taken, y, x)
        return best


def _choose(trace: Trace, condition: Any, a: TracedArray, b: TracedArray) -> Any:
    """``a if condition else b`` for scalars, in the dtype NumPy promotes them to."""
    is_weak = a.type.is_weak and b.type.is_weak
    dtype = np.result_type(*[
        v.dtype.type(0).item() if v.type.is_weak else v.dtype for v in (a, b)])
    kind = "weak" if is_weak else None
    values = [cast(trace, v.value, dtype, kind) for v in (a, b)]
    result = trace.emit("Where", condition.value, *values, kind="weak" if is_weak else "scalar")
    return from_value(trace, result)


@_when_traced(range)
def _range(hooks: GraphHooks, *args: Any) -> Any:
    """``range`` with ends that only the run knows: a loop over it is one of the graph."""
    ends = [known(as_traced(hooks.trace, a).value) for a in args]
    if None not in ends:
        return range(*ends)
    start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
    return TracedRange(hooks.trace, start, stop, step)


@_when_traced(enumerate)
def _enumerate(hooks: GraphHooks, iterable: Any, start: int = 0) -> Any:
    if type(iterable) is TracedArray and iterable.ndim and type(start) is int:
        return Joined((range(start, start + len(iterable)), iterable))
    return enumerate(iterable, start)


@_when_traced(zip)
def _zip(hooks: GraphHooks, *parts: Any, strict: bool = False) -> Any:
    lengths = {len(p) for p in parts if hasattr(p, "__len__")}
    if not strict or len(lengths) > 1 or not all(hasattr(p, "__len__") for p in parts):
        return Joined(parts) if not strict else zip(*parts, strict=strict)
    return Joined(parts)


def _iterated(function: Callable[..., Any]) -> None:
    """NumPy's dispatcher goes through the elements of the argument."""
    @_when_traced(function)
    def call(hooks: GraphHooks, *args: Any, **kwargs: Any) -> Any:
        return call_function(hooks.trace, function, args, kwargs)


_iterated(np.poly)
_iterated(np.roots)


def _seen_through_dlpack(hooks: GraphHooks, x: Any, /, **options: Any) -> Any:
    """A view whose base says what memory it shows, as that of a capsule does not."""
    if type(x) is TracedArray:
        return call_function(hooks.trace, np.from_dlpack, (x,), options)
    found = np.from_dlpack(x, **options)
    return x[...] if type(x) is np.ndarray and np.may_share_memory(x, found) else found


for _function, _handler in CREATION.items():
    _creation(_function, _handler)
TABLE.register(np.from_dlpack, _seen_through_dlpack)
for _kind in (np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32,
              np.uint64, np.float16, np.float32, np.float64, np.complex64, np.complex128):
    _constructor(_kind)
_number(float, F64)
_number(int, I64)


@_when_traced(complex)
def _complex(hooks: GraphHooks, *parts: Any, **named: Any) -> Any:
    return python_complex(hooks.trace, *parts, **named)


for _name, _ufunc in {
    "sqrt": np.sqrt, "exp": np.exp, "expm1": np.expm1, "log": np.log, "log2": np.log2,
    "log10": np.log10, "log1p": np.log1p, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "hypot": np.hypot, "pow": np.power, "fabs": np.fabs, "fmod": np.fmod,
    "copysign": np.copysign, "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite,
    "degrees": np.rad2deg, "radians": np.deg2rad, "cbrt": np.cbrt, "exp2": np.exp2,
}.items():
    _math(getattr(math, _name), _ufunc)
for _name, _op in {"erf": "Erf", "erfc": "Erfc", "lgamma": "Gammaln"}.items():
    _math_row(getattr(math, _name), _op)
_extremum(builtins.min, np.less)
_extremum(builtins.max, np.greater)


def _math_refused(function: Callable[..., Any], known: list[str]) -> None:
    @_when_traced(function)
    def call(hooks: GraphHooks, *args: Any, **kwargs: Any) -> Any:
        return on_known(hooks.trace, f"math.{function.__name__}", function, args, kwargs, known)


def _rounded(function: Callable[..., Any], ufunc: np.ufunc) -> None:
    """``math.floor`` and its like: a Python int."""
    @_when_traced(function)
    def call(hooks: GraphHooks, x: Any) -> Any:
        trace = hooks.trace
        number = as_traced(trace, x)
        if number.size != 1:
            raise trace.error(TypeError(
                "only 0-dimensional arrays can be converted to Python scalars"), [number.value])
        return _rounded_number(trace, weak(trace, _scalar(trace, number), F64), ufunc)


def _rounded_number(trace: Trace, value: Any, ufunc: np.ufunc) -> TracedArray:
    number = TracedArray(trace, None, (), value)
    rounded = call_ufunc(trace, ufunc, "__call__", (number,), {}, True)
    return TracedArray(trace, None, (), weak(trace, rounded.value, I64))


for _function, _ufunc in ((math.floor, np.floor), (math.ceil, np.ceil), (math.trunc, np.trunc)):
    _rounded(_function, _ufunc)
_MATH = [f"math.{n}" for n in vars(math) if getattr(math, n) in TABLE]
for _function in vars(math).values():
    if callable(_function) and _function not in TABLE:
        _math_refused(_function, _MATH)


@_when_traced(builtins.len)
def _len(hooks: GraphHooks, x: Any) -> Any:
    if type(x) is TracedArray and x.ndim:
        return sizes.number(hooks.trace, x.shape[0])
    return len(x)


def _text(function: Callable[..., Any]) -> None:
    """``repr(x)`` and ``ascii(x)`` need the value (``str`` and ``format`` ask it themselves)."""
    @_when_traced(function)
    def call(hooks: GraphHooks, x: Any) -> str:
        return function(x) if type(x) is not TracedArray else str(x)


for _function in (builtins.repr, builtins.ascii):
    _text(_function)


@_when_traced(builtins.round)
def _round(hooks: GraphHooks, number: Any, ndigits: Any = None) -> Any:
    if as_traced(hooks.trace, number).is_array:
        raise hooks.trace.error(TypeError("type numpy.ndarray doesn't define __round__ method"),
                                [as_traced(hooks.trace, number).value])
    value = as_traced(hooks.trace, number).value
    if value.type.is_weak:
        return _round_python(hooks.trace, value, ndigits)
    result = as_traced(hooks.trace, number).round(ndigits or 0)
    if ndigits is None and not result.is_array:
        return TracedArray(hooks.trace, None, (), weak(hooks.trace, result.value, I64))
    return result


def _round_python(trace: Trace, value: Any, ndigits: Any) -> TracedArray:
    if ndigits is not None:
        raise unsupported("round of a Python number to digits", ["np.round"], loc=trace.loc,
                          notes=("Python rounds the decimal representation, NumPy the binary one",))
    if value.dtype.kind == "f":
        return _rounded_number(trace, value, np.rint)
    return TracedArray(trace, None, (), weak(trace, value, I64))


@_when_traced(builtins.sum)
def _sum(hooks: GraphHooks, iterable: Any, /, start: Any = 0) -> Any:
    total = start
    for item in iterable:
        total = total + item
    return total


@_when_traced(builtins.divmod)
def _divmod(hooks: GraphHooks, a: Any, b: Any) -> Any:
    return a // b, a % b


@_when_traced(builtins.print)
def _print(hooks: GraphHooks, *args: Any, **kwargs: Any) -> None:
    """The trace's own names: a warning has said that this is not printed at each call."""
    print(*map(repr_of, args), **kwargs)


def repr_of(x: Any) -> Any:
    """What stands for a traced value, in lists and tuples too, in text written while tracing."""
    if type(x) in (list, tuple):
        return type(x)(map(repr_of, x))
    return repr(x) if type(x) is TracedArray else x


__all__ = ["GraphHooks", "UnsupportedError"]
