"""Whether a compiled program agrees with the plain one: results, kinds, mutations, exceptions."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

# Rounding differences grow along an algorithm, so equality is relative to the largest element.
RTOL = {np.dtype(np.float32): 1e-5, np.dtype(np.complex64): 1e-5}
RTOL_DOUBLE = 1e-10
LEAVES = (str, bytes, bool, int, float, complex, type(None), np.generic)


def outcome(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, Any]:
    """The result, or the type of the exception, and the arguments as the call left them."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        return function(*args), args


def difference(got: Any, want: Any, where: str = "result") -> str:
    """The first difference in words, empty where there is none."""
    if type(got) is not type(want):
        return f"{where}: {type(got).__name__} for {type(want).__name__}"
    if isinstance(want, np.ndarray):
        return _array_difference(got, want, where)
    if isinstance(want, LEAVES):
        return _array_difference(np.asarray(got), np.asarray(want), where)
    return _container_difference(got, want, where)


def _container_difference(got: Any, want: Any, where: str) -> str:
    a, b = _parts(got), _parts(want)
    if list(a) != list(b):
        return f"{where}: {list(a)} for {list(b)}"
    found = (difference(a[k], b[k], f"{where}{k}") for k in b)
    return next((text for text in found if text), "")


def _parts(value: Any) -> dict[str, Any]:
    if isinstance(value, (list, tuple)):
        return {f"[{i}]": v for i, v in enumerate(value)}
    if isinstance(value, dict):
        return {f"[{k!r}]": v for k, v in value.items()}
    return {f".{k}": v for k, v in vars(value).items()}


def _array_difference(got: np.ndarray, want: np.ndarray, where: str) -> str:
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"{where}: {got.dtype}{list(got.shape)} for {want.dtype}{list(want.shape)}"
    if want.dtype.kind not in "fc":
        return "" if np.array_equal(got, want) else f"{where}: other values"
    finite = np.isfinite(want)
    scale = np.abs(want[finite]).max(initial=0)
    rtol = RTOL.get(want.dtype, RTOL_DOUBLE)
    same = np.allclose(got, want, rtol=0, atol=rtol * scale, equal_nan=True)
    return "" if same else f"{where}: other values"
