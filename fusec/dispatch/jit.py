"""`jit`: functions that are traced once per signature and run compiled."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Sequence
from types import FunctionType, MethodType
from typing import Any, Literal, ParamSpec, TypeVar, overload

from fusec.errors import short_errors, users_own

from .function import Function
from .function_like import FunctionLike

P = ParamSpec("P")
R = TypeVar("R")
_FP = ("contract", "strict", "fast")
_FALLBACKS = ("error", "eager")
_ONLY = {"autograph": True, "compile": "now"}


def _misuse(message: str) -> Exception:
    return users_own(TypeError(message))


def _spelt(fn: Any) -> str:
    """``np.sort``: a function without Python code as programs write it; ``f`` if it has no name."""
    module = getattr(fn, "__module__", None) or type(fn).__module__
    prefix = "" if module == "builtins" else re.sub("^numpy", "np", module) + "."
    return prefix + fn.__name__ if hasattr(fn, "__name__") else "f"


def _check_compilable(fn: Any) -> None:
    """Raise ``TypeError`` for anything but a Python function or method."""
    while isinstance(fn, functools.partial):
        fn = fn.func
    kind = type(fn).__name__
    if isinstance(fn, (staticmethod, classmethod, property)):
        raise _misuse(f"fusec.jit got a {kind}: put @{kind} above @fusec.jit, not below")
    if isinstance(fn, type):
        raise _misuse(f"fusec.jit got the class {fn.__name__}: decorate its methods instead")
    if not callable(fn):
        raise _misuse(f"fusec.jit needs a function, got {kind}")
    if not isinstance(fn, (FunctionType, MethodType)) and not isinstance(
            inspect.getattr_static(type(fn), "__call__"), (FunctionType, Function)):
        name = getattr(fn, "__name__", fn)
        behind = getattr(fn, "__wrapped__", None)  # of functools.cache
        cure = f"it is no Python code; wrap it in a function, lambda x: {_spelt(fn)}(x)" if (
            behind is None or type(fn).__module__.startswith("numpy")) else (
            f"jit the function that it calls, {name}.__wrapped__, or put @fusec.jit alone above "
            f"the function: what was compiled for arguments is kept")
        raise _misuse(f"fusec.jit needs a Python function, got the {kind} {name!r}: {cure}")


def _check_options(fp: str, fallback: str, check_indices: Any, **planned: Any) -> None:
    """Raise for values that are none of an option's; ``planned`` options have one value today."""
    if fp not in _FP:
        raise ValueError(f"fp={fp!r}: expected one of {', '.join(map(repr, _FP))}")
    for option, value in planned.items():
        if value != _ONLY[option]:
            raise NotImplementedError(
                f"fusec.jit({option}={value!r}) is not available in this release, only "
                f"{option}={_ONLY[option]!r}: leave it out")
    if fallback not in _FALLBACKS:
        raise ValueError(f"fallback={fallback!r}: expected {' or '.join(map(repr, _FALLBACKS))}")
    if type(check_indices) is not bool:
        raise TypeError(f"check_indices={check_indices!r}: expected True or False")


def _as_function(fn: Any) -> Callable[..., Any]:
    """An object with ``__call__`` as that method, whose instance's attributes are watched."""
    if isinstance(fn, (FunctionType, MethodType, functools.partial)):
        return fn
    call = inspect.getattr_static(type(fn), "__call__")
    return (call.python_function if isinstance(call, Function) else call).__get__(fn)


def _jitted(options: dict[str, Any], fn: Callable[..., Any]) -> Function:
    """The result of `jit` for these options."""
    if isinstance(fn, Function):
        if options == _DEFAULTS:
            return fn
        if hasattr(fn._fn, "__fusec_made_by__") and "like" not in options:
            with short_errors:
                return type(fn)(fn.python_function, **options)
        fn = fn.python_function
    with short_errors:
        _check_compilable(fn)
        jitted = (FunctionLike if "like" in options else Function)(_as_function(fn), **options)
    if not isinstance(fn, (FunctionType, MethodType, functools.partial)):
        jitted.__name__ = jitted.__qualname__ = type(fn).__name__
    return jitted


_DEFAULTS = {"static": (), "fp": "contract", "check_indices": True, "device": None,
             "reduce_retracing": True, "input_signature": None, "fallback": "error"}


@overload
def jit(
    f: Callable[P, R], *, input_signature: Sequence[Any] | None = None,
    static: Sequence[str | int] | str | int = (), autograph: Literal[True] = True,
    fp: Literal["contract", "strict", "fast"] = "contract", check_indices: bool = True,
    device: str | None = None, reduce_retracing: bool = True,
    fallback: Literal["error", "eager"] = "error", compile: Literal["now"] = "now",
    like: str | None = None,
) -> Function[P, R]: ...


@overload
def jit(
    f: None = None, *, input_signature: Sequence[Any] | None = None,
    static: Sequence[str | int] | str | int = (), autograph: Literal[True] = True,
    fp: Literal["contract", "strict", "fast"] = "contract", check_indices: bool = True,
    device: str | None = None, reduce_retracing: bool = True,
    fallback: Literal["error", "eager"] = "error", compile: Literal["now"] = "now",
    like: str | None = None,
) -> Callable[[Callable[P, R]], Function[P, R]]: ...


def jit(
    f: Callable[..., Any] | None = None, *, input_signature: Sequence[Any] | None = None,
    static: Sequence[str | int] | str | int = (), autograph: bool = True, fp: str = "contract",
    check_indices: bool = True, device: str | None = None, reduce_retracing: bool = True,
    fallback: str = "error", compile: str = "now", like: str | None = None,
) -> Any:
    """Compile a function that computes with NumPy; a decorator, or a call on a function.

    Each new signature (dtypes, ranks, orders of strides, Python values) is traced once and
    compiled, and again, for all sizes, when a second shape comes; later calls run machine code.
    Results are NumPy's: same dtypes, kinds, strides and mutations, floats within the
    accuracy stated in docs/accuracy.md.

    ``static``: names (or positions) of arguments that are Python values while tracing; each value
    has its own trace.  ``fp``: ``"contract"`` may round ``a*b + c`` once, ``"strict"``
    rounds like NumPy, ``"fast"`` may round ``a*b + c*d`` once less, too, and lets GPUs estimate
    functions of float32.  ``reduce_retracing``: Python ints
    and sizes of arrays become run-time values at their second value, unless Python needs them.
    ``input_signature``: a `TensorSpec` for each argument by position (or `PYTHON_VALUE`; lists,
    tuples and dicts of both; ``[spec, ...]`` for lists of any length).  Calls must fit it; Python's
    numbers, and lists of them, become arrays of the dtype that it says.  ``check_indices=False``
    leaves out the checks of indices that only the run knows: negative ones still count from the
    end, but one out of range reads or writes whatever lies there, or ends the process.  ``device``:
    the name of a device, as ``with fusec.device(...):`` around all that the function does.
    ``fallback="eager"``: calls that fusec refuses to compile run as Python runs them, with one
    `FallbackWarning`; ``F.eager_calls`` counts them.
    ``like``: the name of a parameter; results are then arrays of the library that its argument is
    of (torch, JAX), made by DLPack without a copy, NumPy's where that is.
    ``autograph=True`` (branches and loops may depend on data) and ``compile="now"`` are the only
    choices.
    Functions called from this one, jitted or not, follow its options.  A jitted ``f`` is given
    back, or with options other than these defaults compiled anew.

    Raises ``ValueError`` for unknown options (for devices at the first call), ``TypeError`` for
    malformed signatures, ``UnsupportedError`` for generators and coroutines without a fallback.
    """
    _check_options(fp, fallback, check_indices, autograph=autograph, compile=compile)
    statics = (static,) if isinstance(static, (str, int)) else tuple(static)
    options = {"static": statics, "fp": fp, "check_indices": check_indices, "device": device,
               "reduce_retracing": reduce_retracing, "input_signature": input_signature,
               "fallback": fallback}
    if like is not None:
        options["like"] = like
    wrap = functools.partial(_jitted, options)
    if f is None:
        return wrap
    with short_errors:
        return wrap(f)
