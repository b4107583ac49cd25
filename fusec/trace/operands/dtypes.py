"""The dtypes that a ufunc computes in, as NumPy itself resolves them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fusec.ir import Value

from ..values.trace import Trace
from .comparisons import COMPARISONS
from .operands import BOOL, PYTHON_KIND


def resolve(
    trace: Trace, ufunc: np.ufunc, values: Sequence[Value], result: np.dtype | None = None,
    casting: Any = "same_kind",
) -> tuple[np.dtype, ...]:
    """The dtypes NumPy computes in, inputs then outputs (NEP 50 weak promotion included).

    ``result``: the dtype of the result, where the caller asks for one.
    """
    options: dict[str, Any] = {}
    if result is not None:
        options = {"signature": (*[None] * ufunc.nin, *[result] * ufunc.nout), "casting": casting}
    if all(v.type.is_weak for v in values):
        signature = tuple(v.dtype for v in values)
    else:
        signature = tuple(
            PYTHON_KIND[v.dtype.kind] if v.type.is_weak and v.dtype != BOOL else v.dtype
            for v in values
        )
    try:
        dtypes = ufunc.resolve_dtypes((*signature, *[None] * ufunc.nout), **options)
        if result is None and casting not in ("same_kind", "unsafe"):
            _check_casting(ufunc, values, dtypes, casting)
        return dtypes
    except TypeError as error:
        has_loop = result is not None and any(
            loop.endswith(f">{result.char}") for loop in ufunc.types)
        misfit = _misfit(values, result) if has_loop and ufunc not in COMPARISONS else None
        raise trace.error(misfit or error, values) from None


def _check_casting(
    ufunc: np.ufunc, values: Sequence[Value], dtypes: Sequence[np.dtype], casting: Any
) -> None:
    """NumPy's own check crashes where it refuses a Python number (NumPy 2.4)."""
    for k, (value, dtype) in enumerate(zip(values, dtypes, strict=False)):
        if value.type.is_weak and value.dtype != BOOL:
            if casting == "equiv" and value.dtype != dtype:
                raise TypeError(f"cannot cast Python {PYTHON_KIND[value.dtype.kind].__name__} to "
                                f"{dtype} under the casting rule 'equiv'")
        elif not np.can_cast(value.dtype, dtype, casting):
            raise TypeError(
                f"Cannot cast ufunc '{ufunc.__name__}' input {k if ufunc.nin > 1 else ''} from "
                f"{value.dtype!r} to {dtype!r} with casting rule {casting!r}".replace("  ", " "))


def _misfit(values: Sequence[Value], result: np.dtype | None) -> OverflowError | None:
    """The error for a Python int out of the result's range, which NumPy raises before others."""
    for value in values:
        number = value.node.attrs.get("value") if value.type.is_weak else None
        if result is None or result.kind not in "iu" or type(number) is not int:
            continue
        try:
            result.type(number)
        except OverflowError as error:
            return error
    return None
