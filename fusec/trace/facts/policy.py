"""Which Python functions are converted: the user's and those of most libraries.

Those of the numeric stack, the standard library and fusec itself stay as they are."""

from __future__ import annotations

import os
import sysconfig
from types import CodeType, FunctionType
from typing import Any

from fusec.core.code_roles import is_written_as_users

# NumPy's own functions reach traced arrays through its protocols; the others are compilers,
# libraries with their own arrays, and fusec.
PLAIN_PACKAGES = frozenset({
    "numpy", "scipy", "numba", "llvmlite", "cupy", "fusec", "pandas", "xarray", "dask", "polars",
    "torch", "jax", "tensorflow"})

_STDLIB = tuple(
    os.path.join(sysconfig.get_path(name), "") for name in ("stdlib", "platstdlib")
)
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


def stays_plain(fn: FunctionType) -> bool:
    """Whether ``fn`` is called as it is: the numeric stack, the standard library, fusec itself.

    The module is the one the code was written in (``functools.wraps`` changes ``__module__``).
    """
    return is_plain_code(fn.__code__, fn.__globals__) and not _wraps_user_function(fn)


def is_plain_code(code: CodeType, module_globals: dict[str, Any]) -> bool:
    """`stays_plain` for code of a module with these globals."""
    module = str(module_globals.get("__name__") or "")
    if is_written_as_users(module_globals):
        return False
    return (module.partition(".")[0] in PLAIN_PACKAGES or _is_stdlib(code.co_filename)
            or _is_named_tuples(code, module))


def _is_named_tuples(code: CodeType, module: str) -> bool:
    """Whether `collections.namedtuple` wrote it, or SciPy's like, whose tuples have attributes."""
    return module.startswith("namedtuple_") and code.co_filename.startswith("<")


def _wraps_user_function(fn: FunctionType) -> bool:
    """Whether ``fn`` is the standard library's wrapper of a user's function, such as that of
    `contextlib.contextmanager` or `functools.singledispatch`: then it is converted."""
    wrapped = getattr(fn, "__wrapped__", None)
    is_plain = wrapped is None or (type(wrapped) is FunctionType and stays_plain(wrapped))
    return not is_plain and _is_stdlib(fn.__code__.co_filename)


def is_numeric_stack(module_globals: dict[str, Any] | None) -> bool:
    """Whether a module with these globals belongs to NumPy or a compiler, whose control flow
    depends on shapes and dtypes only.  SciPy's depends on data."""
    scope = module_globals or {}
    root = str(scope.get("__name__") or "").partition(".")[0]
    return root in PLAIN_PACKAGES - {"scipy"} and not is_written_as_users(scope)


def is_of_stdlib(fn: Any) -> bool:
    """Whether it is a Python function of the standard library."""
    return type(fn) is FunctionType and _is_stdlib(fn.__code__.co_filename)


def _is_stdlib(file: str) -> bool:
    """By file, not by name: a user's ``queue.py`` or ``statistics.py`` is the user's."""
    if file.startswith("<frozen "):
        return True
    return file.startswith(_STDLIB) and not any(part in file for part in _INSTALLED)
