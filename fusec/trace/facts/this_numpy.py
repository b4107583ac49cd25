"""What the supported NumPys differ in, asked of the one that is installed.

Each name is the answer to one question; nothing here, and nothing elsewhere, reads NumPy's version.
"""

from __future__ import annotations

import ast
import functools
import inspect
import operator
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np


def _takes(call: Callable[..., Any], *args: Any) -> bool:
    """Whether NumPy takes these arguments, be it with a warning that it will not for long."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            call(*args)
        except (TypeError, ValueError, OverflowError):
            return False
    return True


def _refusal(call: Callable[..., Any], *args: Any) -> str:
    """The text of the exception; empty if there is none."""
    try:
        call(*args)
    except (TypeError, ValueError) as error:
        return str(error)
    return ""


def _is_root(result: Any) -> bool:
    """Whether a power of -0.0 is -0.0, as ``sqrt`` has it, or 0.0, as ``pow`` of C does."""
    return bool(np.signbit(result).all())


_ZEROS = np.full(2, -0.0)
_INTS = np.zeros(2, int)

# An array of one element is a number, and can be an element, whatever its rank.
TAKES_VECTORS = _takes(float, np.zeros(1))
# What is said of arrays that are no number.
NO_NUMBER = _refusal(float, np.zeros(2))
# A boolean scalar of NumPy's is an index, as Python's is.
BOOLS_ARE_INDICES = _takes(operator.index, np.True_)
# ``np.count_nonzero`` of all of an array is a Python int.
COUNTS_ARE_INTS = type(np.count_nonzero(_INTS)) is int
# Integers rounded to no fewer digits are the array itself, not a copy.
ROUNDS_INTS_TO_THEMSELVES = np.round(_INTS) is _INTS
# What `np.from_dlpack` gives is read-only.
DLPACK_IS_READ_ONLY = not np.from_dlpack(_ZEROS).flags.writeable
# ``np.where`` wraps Python ints that are out of the dtype's range.
WHERE_WRAPS = _takes(np.where, [True], np.int8(0), 300)
# The loops of `np.power` take the root where the exponent is 0.5 again and again.
POWER_TAKES_ROOTS = _is_root(np.power(_ZEROS, 0.5))
# ``x ** y`` looks for shortcuts in NumPy's scalars and arrays of rank 0, not in Python's alone.
OPERATOR_KNOWS_SCALARS = _is_root(_ZEROS.astype("f2") ** np.float16(0.5))


@functools.cache
def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """Its signature, of a builtin without one as its documentation writes it.

    Raises ``ValueError`` where neither says.
    """
    try:
        return inspect.signature(function)
    except ValueError:
        line = (function.__doc__ or "").strip().partition("\n\n")[0]
        return _written(line, function.__name__)


def _written(line: str, name: str) -> inspect.Signature:
    """The signature as in ``a.sort(axis=-1, kind=None)`` or ``copyto(dst, src, where=True)``."""
    _, found, rest = line.replace("\n", " ").partition(f"{name}(")
    try:
        written = ast.parse(f"def f({rest}: pass").body[0] if found else None
    except SyntaxError:
        written = None
    if not isinstance(written, ast.FunctionDef):
        raise ValueError(f"the parameters of {name} are not known")
    return inspect.Signature([*_receiver(line, name), *_parameters(written.args)])


def _receiver(line: str, name: str) -> list[inspect.Parameter]:
    """A method's own array, which its documentation writes before the dot."""
    is_method = line.partition(f"{name}(")[0].endswith(".")
    return [inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)] if is_method else []


def _parameters(written: ast.arguments) -> Iterator[inspect.Parameter]:
    """The parameters; every default is shown as None."""
    kinds = inspect.Parameter
    plain: list[tuple[ast.arg, Any]] = [(a, kinds.POSITIONAL_ONLY) for a in written.posonlyargs]
    plain += [(a, kinds.POSITIONAL_OR_KEYWORD) for a in written.args]
    needed = len(plain) - len(written.defaults)
    for i, (a, kind) in enumerate(plain):
        yield kinds(a.arg, kind, default=kinds.empty if i < needed else None)
    if written.vararg:
        yield kinds(written.vararg.arg, kinds.VAR_POSITIONAL)
    for a in written.kwonlyargs:
        yield kinds(a.arg, kinds.KEYWORD_ONLY, default=None)
    if written.kwarg:
        yield kinds(written.kwarg.arg, kinds.VAR_KEYWORD)
