"""``input_signature``: the specs of a function's arguments, and Python values made to fit.

Rules: "Functions, not Sessions", section "Input Signatures".  An array must have the dtype and the
shape that its spec says; a Python number, or a list of them, is converted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fusec.core.display.amounts import count_text
from fusec.errors import user_error
from fusec.ir import Loc, is_supported_dtype
from fusec.trace.call.flat_call import describe_part
from fusec.trace.call.signature import Signature
from fusec.trace.values.array import TracedArray
from fusec.trace.values.trace import Trace

from .specs import PYTHON_VALUE, TensorSpec, any_length, items

_NUMBERS = (bool, int, float, complex)


class InputSignature:
    """The specs of one function's arguments, in the order of its parameters."""

    def __init__(self, specs: Sequence[Any], signature: Signature, name: str) -> None:
        self.specs, self._signature, self._name = tuple(specs), signature, name

    def applied(self, args: tuple[Any, ...], trace: Trace | None = None) -> tuple[Any, ...]:
        """Bound positional arguments, Python's numbers converted to their spec; in a trace, those
        of a call in the traced program.  Parameters with defaults may lack a spec.

        Raises ``TypeError`` where an argument does not fit.
        """
        fit = _Fit() if trace is None else _FitInTrace(trace)
        count, others = len(self.specs), self._signature.names[len(self.specs):len(args)]
        if count + len(others) != len(args) or not all(
                name in self._signature.defaults for name in others):
            raise fit.error(
                f"the input_signature of {self._name} has "
                f"{count_text(count, 'entry', 'entries')}, the call has "
                f"{count_text(len(args), 'argument')}",
                "give one TensorSpec for each positional argument")
        return (*(fit.fitted(spec, arg, self._signature.path_of(position))
                  for position, (spec, arg) in enumerate(zip(self.specs, args, strict=False))),
                *args[count:])


class _Fit:
    """Makes arguments fit specs."""

    loc: Loc | None = None

    def array(self, x: Any, dtype: np.dtype | None = None) -> Any:
        """Numbers as an array; finite ones that the dtype cannot hold raise."""
        if dtype is None:
            return np.asarray(x)
        with np.errstate(over="raise"):
            return np.asarray(x, dtype)

    def is_array(self, x: Any) -> bool:
        return isinstance(x, np.ndarray)

    def is_number(self, x: Any) -> bool:
        return isinstance(x, (*_NUMBERS, np.generic))

    def fitted(self, spec: Any, arg: Any, path: str) -> Any:
        """The argument as its spec has it."""
        if spec is PYTHON_VALUE:
            if self.is_array(arg):
                raise self._misfit(path, spec, arg, "give a Python value, or change the signature")
            return arg
        if isinstance(spec, TensorSpec):
            return self._fitted_array(spec, arg, path)
        if any_length(spec):
            spec = spec[:1] * (len(arg) if type(arg) is list else 1)
        if type(arg) is not type(spec) or len(arg) != len(spec) or (
                isinstance(spec, dict) and arg.keys() != spec.keys()):
            raise self._misfit(path, spec, arg, "give what the signature says, or change it")
        parts = [(key, self.fitted(part, arg[key], f"{path}[{key!r}]"))
                 for key, part in items(spec)]
        if isinstance(spec, dict):
            by_key = dict(parts)
            return type(arg)((key, by_key[key]) for key in arg)  # in the argument's own order
        values = [value for _, value in parts]
        return type(arg)(*values) if hasattr(arg, "_fields") else type(arg)(values)

    def _fitted_array(self, spec: TensorSpec, arg: Any, path: str) -> Any:
        if self.is_array(arg):
            array = arg
        else:
            array = self.array(arg) if isinstance(arg, np.generic) else self._converted(
                spec, arg, path)
        if array.dtype != spec.dtype or not spec.admits_shape(array.shape):
            raise self._misfit(path, spec, arg, "convert it, or drop input_signature")
        return array

    def _converted(self, spec: TensorSpec, arg: Any, path: str) -> Any:
        """A Python number, or lists of them, as an array of the spec's dtype, if no kind is lost:
        a fraction is no integer, a complex number no float."""
        if not self._is_numbers(arg):
            raise self._misfit(path, spec, arg, "give an array")
        try:
            natural = self.array(arg)
            if natural.dtype == spec.dtype:
                return natural
            if 0 in natural.shape or _keeps_kind(natural.dtype, spec.dtype):
                return self.array(arg, spec.dtype)
        except (ValueError, ArithmeticError) as error:  # rows of several lengths, numbers too large
            raise self._misfit(
                path, spec, arg, "give a value that the spec holds", str(error)) from None
        raise self._misfit(
            path, spec, arg, "give a value that the dtype holds, or change the signature")

    def _is_numbers(self, arg: Any) -> bool:
        if isinstance(arg, (list, tuple)):
            return all(map(self._is_numbers, arg))
        return self.is_number(arg)

    def _misfit(self, path: str, spec: Any, arg: Any, cure: str, *notes: str) -> Exception:
        return self.error(f"argument {path} does not fit the input_signature", cure,
                          values=[("expected", spec), ("given", _description(arg))], notes=notes)

    def error(self, title: str, cure: str, **parts: Any) -> Exception:
        return user_error(TypeError, title, self.loc, cure, **parts)


class _FitInTrace(_Fit):
    """The same for the arguments of a call that is traced with the function around it."""

    def __init__(self, trace: Trace) -> None:
        self._trace, self.loc = trace, trace.loc

    def array(self, x: Any, dtype: np.dtype | None = None) -> Any:
        hooks = self._trace.hooks
        assert hooks is not None  # else nothing is fitted
        return hooks.call(hooks.where, np.asarray, x, dtype)

    def is_array(self, x: Any) -> bool:
        return super().is_array(x) or (isinstance(x, TracedArray) and not x.type.is_weak)

    def is_number(self, x: Any) -> bool:
        return super().is_number(x) or (isinstance(x, TracedArray) and not x.shape)


def _keeps_kind(natural: np.dtype, wanted: np.dtype) -> bool:
    return np.can_cast(natural, wanted, "same_kind") or (natural.kind, wanted.kind) == ("i", "u")


def _description(arg: Any) -> str:
    """An argument in the words of a spec: dtype and shape; or its type, and value if short."""
    if isinstance(arg, TracedArray):
        return str(arg.type)
    if isinstance(arg, np.ndarray):
        is_supported = is_supported_dtype(arg.dtype)
        return describe_part((arg.dtype, arg.shape, arg.strides, True)) if is_supported else (
            f"{type(arg).__name__} of {arg.dtype.str}")
    text = repr(arg) if isinstance(arg, (*_NUMBERS, list, tuple, dict, str, type(None))) else ""
    return f"{type(arg).__name__} {text}".rstrip() if len(text) <= 60 else type(arg).__name__
