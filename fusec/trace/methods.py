"""Methods of ndarray (and of NumPy scalars) on traced values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import creation, shaping
from .array import TracedArray
from .functions import clip, dot, round_
from .reductions import REDUCTIONS


def _method(handler: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: TracedArray, *args: Any, **kwargs: Any) -> Any:
        return handler(self.trace, self, *args, **kwargs)

    return method


def _reshape(self: TracedArray, *shape: Any, order: str = "C", copy: Any = None) -> Any:
    sizes = shape[0] if len(shape) == 1 else shape
    return shaping.reshape(self.trace, self, sizes, order, copy=copy)


def _transpose(self: TracedArray, *axes: Any) -> Any:
    if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list))):
        axes = axes[0]
    return shaping.transpose(self.trace, self, axes or None)


def _copy(self: TracedArray, order: str = "C") -> TracedArray:
    return shaping.copy_of(self, order)


def _astype(
    self: TracedArray, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True,
    copy: bool = True,
) -> TracedArray:
    return creation.astype(self.trace, self, dtype, order, casting, subok, copy)


def _fill(self: TracedArray, value: Any) -> None:
    self[...] = value


def _flatten(self: TracedArray, order: str = "C") -> TracedArray:
    return shaping.copy_of(shaping.ravel(self.trace, self, order))


def _item(self: TracedArray, *args: Any) -> Any:
    return self.trace and float(self)  # raises ConcreteValueError with the user's line


def _tolist(self: TracedArray) -> Any:
    return np.asarray(self)  # likewise


def _conjugate(self: TracedArray) -> TracedArray:
    return self


METHODS: dict[str, Callable[..., Any]] = {
    **{name: _method(handler) for name, handler in REDUCTIONS.items() if name != "ptp"},
    "reshape": _reshape, "transpose": _transpose, "copy": _copy, "astype": _astype,
    "fill": _fill, "flatten": _flatten, "ravel": _method(shaping.ravel),
    "squeeze": _method(shaping.squeeze), "swapaxes": _method(shaping.swapaxes),
    "clip": _method(clip), "dot": _method(dot), "round": _method(round_), "item": _item,
    "tolist": _tolist, "conj": _conjugate, "conjugate": _conjugate,
}
