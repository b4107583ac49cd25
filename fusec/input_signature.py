"""``input_signature``: what a function's arguments must be, and Python values made so.

Rules: "Functions, not Sessions", section "Input Signatures".  An array must have the dtype and the
shape that its spec says; a Python number, or a list of them, is converted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fusec.trace.call.flat_call import describe_part
from fusec.trace.call.signature import Signature

from .errors import user_error
from .specs import PYTHON_VALUE, TensorSpec, any_length, items

_NUMBERS = (bool, int, float, complex)


class InputSignature:
    """The specs of one function's arguments, in the order of its parameters."""

    def __init__(self, specs: Sequence[Any], signature: Signature, name: str) -> None:
        self.specs, self._signature, self._name = tuple(specs), signature, name

    def applied(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Bound positional arguments, Python's numbers converted to their spec.

        Raises ``TypeError`` where an argument does not fit.
        """
        if len(args) != len(self.specs):
            raise user_error(
                TypeError, f"the input_signature of {self._name} has {len(self.specs)} entries, "
                f"the call has {len(args)} arguments", None,
                "give one TensorSpec for each positional argument")
        return tuple(_fitted(spec, arg, self._signature.path_of(position))
                     for position, (spec, arg) in enumerate(zip(self.specs, args, strict=True)))


def _fitted(spec: Any, arg: Any, path: str) -> Any:
    """The argument as its spec has it."""
    if spec is PYTHON_VALUE:
        if isinstance(arg, np.ndarray):
            raise _misfit(path, spec, arg, "give a Python value, or change the signature")
        return arg
    if isinstance(spec, TensorSpec):
        return _fitted_array(spec, arg, path)
    if any_length(spec):
        spec = spec[:1] * (len(arg) if type(arg) is list else 1)
    if type(arg) is not type(spec) or len(arg) != len(spec) or (
            isinstance(spec, dict) and arg.keys() != spec.keys()):
        raise _misfit(path, spec, arg, "give what the signature says, or change it")
    parts = [(key, _fitted(part, arg[key], f"{path}[{key!r}]")) for key, part in items(spec)]
    if isinstance(spec, dict):
        by_key = dict(parts)
        return type(arg)((key, by_key[key]) for key in arg)  # in the argument's own order
    values = [value for _, value in parts]
    return type(arg)(*values) if hasattr(arg, "_fields") else type(arg)(values)


def _fitted_array(spec: TensorSpec, arg: Any, path: str) -> Any:
    if isinstance(arg, np.ndarray):
        array = arg
    else:
        array = np.asarray(arg) if isinstance(arg, np.generic) else _converted(spec, arg, path)
    if array.dtype != spec.dtype or not spec.admits_shape(array.shape):
        raise _misfit(path, spec, arg, "convert it, or drop input_signature")
    return array


def _converted(spec: TensorSpec, arg: Any, path: str) -> np.ndarray:
    """A Python number, or lists of them, as an array of the spec's dtype, if no kind is lost:
    a fraction is no integer, a complex number no float."""
    if not _is_numbers(arg):
        raise _misfit(path, spec, arg, "give an array")
    try:
        natural = np.asarray(arg)
        if not natural.size or _keeps_kind(natural.dtype, spec.dtype):
            return np.asarray(arg, spec.dtype)
    except (ValueError, OverflowError) as error:  # rows of several lengths, numbers out of range
        raise _misfit(path, spec, arg, "give a value that the spec holds", str(error)) from None
    raise _misfit(path, spec, arg, "give a value that the dtype holds, or change the signature")


def _keeps_kind(natural: np.dtype, wanted: np.dtype) -> bool:
    return np.can_cast(natural, wanted, "same_kind") or (natural.kind, wanted.kind) == ("i", "u")


def _is_numbers(arg: Any) -> bool:
    if isinstance(arg, (list, tuple)):
        return all(map(_is_numbers, arg))
    return isinstance(arg, (*_NUMBERS, np.generic))


def _misfit(path: str, spec: Any, arg: Any, cure: str, *notes: str) -> Exception:
    return user_error(
        TypeError, f"argument {path} does not fit the input_signature", None, cure,
        values=[("expected", spec), ("given", _description(arg))], notes=notes)


def _description(arg: Any) -> str:
    """An argument in the words of a spec: dtype and shape; or its type, and value if short."""
    if isinstance(arg, np.ndarray):
        return describe_part((arg.dtype, arg.shape, arg.strides, True))
    text = repr(arg) if isinstance(arg, (*_NUMBERS, list, tuple, dict, str, type(None))) else ""
    return f"{type(arg).__name__} {text}".rstrip() if len(text) <= 60 else type(arg).__name__
