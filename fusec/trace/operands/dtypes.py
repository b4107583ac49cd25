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
    trace: Trace, ufunc: np.ufunc, values: Sequence[Value], asked: np.dtype | None = None,
    casting: Any = "same_kind",
) -> tuple[np.dtype, ...]:
    """The dtypes NumPy computes in, inputs then outputs (NEP 50 weak promotion included).

    ``asked``: the dtype of the result, given by the caller.
    """
    options: dict[str, Any] = {}
    if asked is not None:
        options = {"signature": (*[None] * ufunc.nin, *[asked] * ufunc.nout), "casting": casting}
    if all(v.type.is_weak for v in values):
        signature = tuple(v.dtype for v in values)
    else:
        signature = tuple(
            PYTHON_KIND[v.dtype.kind] if v.type.is_weak and v.dtype != BOOL else v.dtype
            for v in values
        )
    try:
        found = ufunc.resolve_dtypes((*signature, *[None] * ufunc.nout), **options)
        if asked is None and casting not in ("same_kind", "unsafe"):
            _check_casting(ufunc, values, found, casting)
        return found
    except TypeError as error:
        has_loop = asked is not None and any(
            loop.endswith(f">{asked.char}") for loop in ufunc.types)
        misfit = _misfit(values, asked) if has_loop and ufunc not in COMPARISONS else None
        raise trace.error(misfit or error, values) from None


def _check_casting(
    ufunc: np.ufunc, values: Sequence[Value], dtypes: Sequence[np.dtype], casting: Any
) -> None:
    """NumPy's own check takes no Python numbers: it crashes where it refuses one (NumPy 2.4)."""
    for k, (value, dtype) in enumerate(zip(values, dtypes, strict=False)):
        if value.type.is_weak and value.dtype != BOOL:
            if casting == "equiv" and value.dtype != dtype:
                raise TypeError(f"cannot cast Python {PYTHON_KIND[value.dtype.kind].__name__} to "
                                f"{dtype} under the casting rule 'equiv'")
        elif not np.can_cast(value.dtype, dtype, casting):
            raise TypeError(
                f"Cannot cast ufunc '{ufunc.__name__}' input {k if ufunc.nin > 1 else ''} from "
                f"{value.dtype!r} to {dtype!r} with casting rule {casting!r}".replace("  ", " "))


def _misfit(values: Sequence[Value], asked: np.dtype | None) -> OverflowError | None:
    """A Python int that does not fit the integers asked for: of wrong types NumPy says that first.
    """
    for value in values:
        number = value.node.attrs.get("value") if value.type.is_weak else None
        if asked is None or asked.kind not in "iu" or type(number) is not int:
            continue
        try:
            asked.type(number)
        except OverflowError as error:
            return error
    return None
