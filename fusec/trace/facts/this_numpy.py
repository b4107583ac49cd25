"""Where the supported versions of NumPy differ: the behaviour of the installed one.

Each name is the outcome of one experiment; no code of ours reads NumPy's version.
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
    """Whether NumPy accepts these arguments; a deprecation warning is no refusal."""
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

# An array of one element converts to a number, and can be stored as one, whatever its rank.
TAKES_VECTORS = _takes(float, np.zeros(1))
# The error for an array that does not convert to a number.
NO_NUMBER = _refusal(float, np.zeros(2))
# A NumPy boolean scalar is an index, as Python's bool is.
BOOLS_ARE_INDICES = _takes(operator.index, np.True_)
# ``np.count_nonzero`` of all of an array is a Python int.
COUNTS_ARE_INTS = type(np.count_nonzero(_INTS)) is int
# Integers rounded to no fewer digits are the array itself, not a copy.
ROUNDS_INTS_TO_THEMSELVES = np.round(_INTS) is _INTS
# What `np.from_dlpack` gives is read-only.
DLPACK_IS_READ_ONLY = not np.from_dlpack(_ZEROS).flags.writeable
# ``np.where`` wraps Python ints that are out of the dtype's range.
WHERE_WRAPS = _takes(np.where, [True], np.int8(0), 300)
# The loops of `np.power` compute ``sqrt`` where every exponent is the same 0.5 (stride 0).
POWER_TAKES_ROOTS = _is_root(np.power(_ZEROS, 0.5))
# ``x ** y`` has shortcuts for exponents that are NumPy scalars or of rank 0, not Python's alone.
OPERATOR_KNOWS_SCALARS = _is_root(_ZEROS.astype("f2") ** np.float16(0.5))


@functools.cache
def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """A function's signature; where a builtin has none, the one in its docstring.

    Raises ``ValueError`` where there is neither.
    """
    try:
        return inspect.signature(function)
    except ValueError:
        line = (function.__doc__ or "").strip().partition("\n\n")[0]
        return _documented_signature(line, function.__name__)


def _documented_signature(line: str, name: str) -> inspect.Signature:
    """The signature of a docstring's line: ``a.sort(axis=-1, kind=None)``."""
    _, paren, rest = line.replace("\n", " ").partition(f"{name}(")
    try:
        definition = ast.parse(f"def f({rest}: pass").body[0] if paren else None
    except SyntaxError:
        definition = None
    if not isinstance(definition, ast.FunctionDef):
        raise ValueError(f"the parameters of {name} are not known")
    return inspect.Signature([*_receiver(line, name), *_parameters(definition.args)])


def _receiver(line: str, name: str) -> list[inspect.Parameter]:
    """``self`` where the line shows a method: an array and a dot before the name."""
    is_method = line.partition(f"{name}(")[0].endswith(".")
    return [inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)] if is_method else []


def _parameters(args: ast.arguments) -> Iterator[inspect.Parameter]:
    """The parameters; None stands for every default."""
    kinds = inspect.Parameter
    plain: list[tuple[ast.arg, Any]] = [(a, kinds.POSITIONAL_ONLY) for a in args.posonlyargs]
    plain += [(a, kinds.POSITIONAL_OR_KEYWORD) for a in args.args]
    needed = len(plain) - len(args.defaults)
    for i, (a, kind) in enumerate(plain):
        yield kinds(a.arg, kind, default=kinds.empty if i < needed else None)
    if args.vararg:
        yield kinds(args.vararg.arg, kinds.VAR_POSITIONAL)
    for a in args.kwonlyargs:
        yield kinds(a.arg, kinds.KEYWORD_ONLY, default=None)
    if args.kwarg:
        yield kinds(args.kwarg.arg, kinds.VAR_KEYWORD)
