"""`vectorize`: a Python function of numbers as an elementwise function inside kernels."""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from fusec.dispatch.jit import jit
from fusec.errors import unsupported, user_error, users_own
from fusec.ir import Loc
from fusec.ir.lazy_values import lazy
from fusec.ops.calls.scalar_calls import FunctionName, ScalarFunction
from fusec.trace.operands.operands import as_traced
from fusec.trace.source.source import HOOKS_NAME
from fusec.trace.values.array import from_value
from fusec.trace.values.differentiation import Differentiated
from fusec.trace.values.trace import current

if TYPE_CHECKING:
    from fusec.dispatch.function import Function
    from fusec.trace.values.trace import Trace

_NUMBERS = (bool, int, float, complex, str, bytes, type(None), np.generic)
_compiled: dict[tuple[Any, ...], ScalarFunction] = {}


@overload
def vectorize(
    f: Callable[..., Any], *, derivative: Callable[..., Any] | None = None
) -> Vectorized: ...


@overload
def vectorize(
    f: None = None, *, derivative: Callable[..., Any] | None = None
) -> Callable[[Callable[..., Any]], Vectorized]: ...


def vectorize(
    f: Callable[..., Any] | None = None, *, derivative: Callable[..., Any] | None = None
) -> Any:
    """A function of numbers, with ``if`` and loops, as one of arrays: like ``np.vectorize``.

    Numba compiles ``f`` for the dtypes of its arguments, which broadcast; the result's dtype is
    the one that Numba infers.  In a compiled function the call is part of the kernel around it.
    Exceptions that ``f`` raises (division by zero too) reach the caller; ``math`` functions are
    those of kernels and give NaN out of their domain, and integers wrap at 64 bits.  Constants
    that ``f`` reads from globals and closures are compiled in; it is compiled anew when they
    change.  Arrays must be arguments.

    ``derivative(*arguments)``, a function of numbers like ``f``, gives `fusec.grad` and its like
    the tuple of derivatives by each argument; of one argument a number.

    Raises ``UnsupportedError`` at the first call, with Numba's reason, where it cannot be compiled;
    ``TypeError`` where ``f`` is no Python function.
    """
    if f is None:
        return functools.partial(vectorize, derivative=derivative)
    return Vectorized(f, derivative)


class Vectorized:
    """The result of `vectorize`; ``python`` is the function itself."""

    def __init__(
        self, f: Callable[..., Any], derivative: Callable[..., Any] | None = None
    ) -> None:
        if not isinstance(f, FunctionType):
            raise users_own(TypeError(f"fusec.vectorize needs a Python function, got a "
                                      f"{type(f).__name__}"))
        if not isinstance(derivative, FunctionType | None):
            raise users_own(TypeError(f"derivative is a {type(derivative).__name__}, not a Python "
                                      "function of numbers"))
        functools.update_wrapper(self, f)
        self.python = self.shown = f
        self.derivative = derivative
        self.signature = inspect.signature(f)
        if any(p.kind is not p.POSITIONAL_OR_KEYWORD for p in self.signature.parameters.values()):
            raise users_own(TypeError(f"{f.__name__}: fusec.vectorize takes plain parameters only, "
                                      f"not {self.signature}"))

    def __repr__(self) -> str:
        return f"<fusec.vectorize of {self.python.__qualname__}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function of every element of the broadcast arguments."""
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        trace = current()
        if trace is not None:
            return self._traced(trace, bound.args)
        result = self._function(*map(np.asarray, bound.args))
        return result[()]

    @lazy
    def _function(self) -> Function:
        """The compiled function of arrays, for calls from outside."""

        def elementwise(*arrays: Any) -> Any:
            return self(*arrays)

        elementwise.__name__ = self.python.__name__
        function: Function = jit(elementwise)
        return function

    def _traced(self, trace: Trace, args: tuple[Any, ...]) -> Any:

        if trace.hooks is not None:  # its globals and closure are watched
            getattr(trace.hooks, "functions", {})[self.shown] = None
        level = trace.part(Differentiated)
        if self.derivative is None or not level.times or level.with_partials is None:
            return self._called(trace, *args)
        return level.with_partials(
            trace, repr(self), [as_traced(trace, a) for a in args],
            *(functools.partial(f._called, trace) for f in (self, *self._partials())))

    def _called(self, trace: Trace, *args: Any) -> Any:
        """A node that calls it."""
        values = [as_traced(trace, a).value for a in args]
        function = self.compiled(tuple(v.dtype for v in values), trace.loc)
        return from_value(trace, trace.emit(
            "ScalarCall", *values, function=FunctionName.of(function), dtype=function.result,
            raises=function.raises))

    def _partials(self) -> list[Vectorized]:
        """The derivatives by each argument; made anew for each trace, as they read constants."""
        assert isinstance(self.derivative, FunctionType)
        count = len(self.signature.parameters)
        items = _numba().items_of(self.derivative, count)
        return [_Partial(item, self.derivative) for item in items]

    def compiled(self, dtypes: tuple[np.dtype, ...], loc: Loc | None = None) -> ScalarFunction:
        """The machine code's source for arguments of these dtypes."""
        python, code = self.python, self.shown.__code__
        own = Loc(code.co_filename, code.co_firstlineno, -1, python.__name__)
        _check(self, own)
        for dtype in dtypes:
            if dtype.kind not in "biuf" or dtype == np.float16:
                raise user_error(TypeError, f"{python.__name__} gets an argument of dtype {dtype}",
                                 loc, "convert it: x.astype(np.float32)")
        name = _name_of(python)
        key = (name, *(d.char for d in dtypes))
        if key not in _compiled:
            _compiled[key] = _numba().compile_scalar(python, name, dtypes, own)
        return _compiled[key]


class _Partial(Vectorized):
    """One item of the tuple that the derivative of a function returns."""

    def __init__(self, item: FunctionType, derivative: FunctionType) -> None:
        self.python, self.shown, self.derivative = item, derivative, None


def _numba() -> Any:
    """The compiler of functions of numbers; imported when one is first compiled."""
    from fusec.codegen.machine_code import numba_functions

    return numba_functions


# ---------------------------------------------------------------------------- what a function is


def _read(python: FunctionType) -> Iterator[tuple[str, Any]]:
    """The globals and closure variables that a function reads, with their values."""
    for name in _names(python.__code__):
        if name in python.__globals__:
            yield name, python.__globals__[name]
    for name, cell in zip(python.__code__.co_freevars, python.__closure__ or (), strict=True):
        yield name, cell.cell_contents


def _names(code: CodeType) -> tuple[str, ...]:
    inner = (_names(c) for c in code.co_consts if isinstance(c, CodeType))
    return tuple(dict.fromkeys((*code.co_names, *(n for names in inner for n in names))))


def _check(function: Vectorized, loc: Loc) -> None:
    """Refuse functions defined inside, random draws, arrays from outside and ``print``."""
    if HOOKS_NAME in function.python.__code__.co_freevars:
        raise unsupported(
            f"defining {function.python.__name__} for fusec.vectorize", loc=loc,
            cure="define it outside of the compiled function; what it reads there, pass to it")
    names = _names(function.python.__code__)
    read = dict(_read(function.python))
    what = f"{function.python.__name__} of fusec.vectorize"
    for name, value in read.items():
        module = getattr(value, "__name__", "") if isinstance(value, ModuleType) else (
            getattr(value, "__module__", None) or "")
        if module in ("random", "numpy.random") or (module == "numpy" and "random" in names):
            raise unsupported(f"drawing random numbers in {what}", loc=loc,
                              cure="draw them outside and pass them as an argument")
        if isinstance(value, np.ndarray):
            raise unsupported(f"reading the array {name} in {what}", loc=loc,
                              cure=f"pass it: f(x, {name}), or its elements {name}[i]",
                              notes=("its contents would be compiled in",))
    if "print" in names and "print" not in read:
        raise unsupported(f"print in {what}", loc=loc, cure="fusec.print the arrays outside")


def _name_of(python: FunctionType) -> str:
    """A name for machine code: the function's own, and a hash of all that it computes with."""
    digest = hashlib.sha256(repr(_contents(python, set())).encode()).hexdigest()[:20]
    plain = "".join(c if c.isascii() and c.isalnum() else "_" for c in python.__name__)
    return f"user.{plain}.{digest}"


def _contents(value: Any, visited: set[int]) -> Any:
    """Plain data, equal only for values that compute the same."""
    value = getattr(value, "py_func", value)  # what Numba has wrapped
    if isinstance(value, CodeType):
        consts = tuple(_contents(c, visited) for c in value.co_consts)
        return value.co_code.hex(), consts, value.co_names, value.co_varnames, value.co_freevars
    if isinstance(value, FunctionType):
        if id(value) in visited:
            return value.__name__
        visited.add(id(value))
        return (_contents(value.__code__, visited), _contents(value.__defaults__, visited),
                [(name, _contents(x, visited)) for name, x in _read(value)])
    if isinstance(value, _NUMBERS):
        return type(value).__name__, repr(value)
    if isinstance(value, (tuple, list)):
        return type(value).__name__, [_contents(x, visited) for x in value]
    if isinstance(value, ModuleType):
        return value.__name__
    return type(value).__name__, getattr(value, "__qualname__", ""), id(value)
