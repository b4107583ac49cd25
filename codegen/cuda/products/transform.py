"""Fourier transforms as cuFFT takes them: along the last axis of arrays without gaps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from fusec.ir import Node

from .matrix_product import Laid

_MOST = (1 << 31) - 1  # elements, which are scaled by an int32 of them
_KINDS: Mapping[tuple[str, str], str] = {
    ("FftFft", "c8"): "C2C", ("FftFft", "c16"): "Z2Z", ("FftIfft", "c8"): "C2C",
    ("FftIfft", "c16"): "Z2Z", ("FftRfft", "f4"): "R2C", ("FftRfft", "f8"): "D2Z"}


class Transform(NamedTuple):
    """``batch`` transforms of ``length`` numbers; ``kind`` is cuFFT's name for the dtypes."""

    kind: str
    length: int
    batch: int
    is_inverse: bool

    @property
    def letter(self) -> str:
        """Of BLAS, for the results."""
        return "C" if self.kind in ("C2C", "R2C") else "Z"

    @property
    def is_real(self) -> bool:
        return self.kind in ("R2C", "D2Z")

    @property
    def results(self) -> int:
        """Of one transform."""
        return self.length // 2 + 1 if self.is_real else self.length


def may_be_transform(node: Node) -> bool:
    """Whether its op is one of these."""
    return any(op == node.op for op, _ in _KINDS)


def transform_of(node: Node, laid: Laid, dtype: np.dtype) -> Transform | None:
    """What a node computes of an array that lies so; None where cuFFT is not called for it."""
    kind = _KINDS.get((node.op, dtype.str[1:]))
    shape = laid.shape
    if kind is None or not shape or not _is_plain(node, len(shape), shape[-1]):
        return None
    count = math.prod(shape)
    if tuple(laid.strides) != _dense(shape, dtype.itemsize) or not 0 < count <= _MOST:
        return None
    return Transform(kind, shape[-1], count // shape[-1], node.op == "FftIfft")


def _dense(shape: Any, itemsize: int) -> tuple[int, ...]:
    return tuple(itemsize * math.prod(shape[axis + 1:]) for axis in range(len(shape)))


def _is_plain(node: Node, rank: int, length: int) -> bool:
    """Whether it is along the last axis, as a whole, and scaled as usual."""
    given = dict(zip(("a", "n", "axis", "norm"), node.attrs["form"][1:], strict=False))
    given |= {pair[1]: pair[2] for pair in node.attrs["named"][1:]}
    return given.pop("a", None) == ("operand", 0) and given.keys() <= {"n", "axis", "norm"} and (
        given.get("n") in (None, length) and given.get("axis", -1) in (-1, rank - 1)
        and given.get("norm") in (None, "backward"))
