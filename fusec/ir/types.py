"""Types of graph values: a NumPy dtype, a shape and a kind.

The *kind* says how NumPy would hand the value back: an ``array`` is an ndarray, a ``scalar`` a
NumPy scalar such as ``np.float64``, a ``weak`` value a Python number (NEP 50: it adapts to the
dtype it meets).  Printed ``f64[3,4]``, ``f64`` and ``f64~``.
"""

from __future__ import annotations

import math
import re
from typing import Any, Literal

import numpy as np

from fusec.core.records import dataclass

from .sizes.dims import Size, is_static
from .sizes.symbolic_numbers import text_of_number
from .text.parse_dims import parse_shape

Kind = Literal["array", "scalar", "weak"]

DTYPE_NAMES: dict[str, np.dtype] = {
    "bool": np.dtype(np.bool_),
    **{f"{c}{8 * w}": np.dtype(f"{c}{w}") for c in "iu" for w in (1, 2, 4, 8)},
    **{f"f{8 * w}": np.dtype(f"f{w}") for w in (2, 4, 8)},
    **{f"c{8 * w}": np.dtype(f"c{w}") for w in (8, 16)},
}
# Python ints that are passed at run time; larger ones are static, so that sums and products of a
# few still fit into int64.
RUN_TIME_INT = (-(1 << 31), (1 << 31) - 1)
BEYOND_64_BITS = ("does not fit into 64 bits: compute in floats, or in NumPy's integers, which "
                  "wrap: np.int64(n)")
_SHORT = {dtype: name for name, dtype in DTYPE_NAMES.items()}


def dtype_name(dtype: np.dtype) -> str:
    """The short name of a dtype: ``f64``, ``i32``, ``bool``."""
    return _SHORT[dtype]


def dtype_from_name(name: str) -> np.dtype:
    """The inverse of `dtype_name`; raises ``KeyError`` for an unknown name."""
    return DTYPE_NAMES[name]


def is_supported_dtype(dtype: np.dtype) -> bool:
    """Whether values of this dtype can appear in a graph (native byte order, numeric or bool)."""
    return dtype in _SHORT


@dataclass(frozen=True, slots=True)
class TensorType:
    """dtype, shape and kind of a value.  ``scalar`` and ``weak`` values have shape ``()``.

    A size is an int or, where only the run knows it, a `fusec.ir.sizes.dims.Dim`.
    """

    dtype: np.dtype
    shape: tuple[Size, ...] = ()
    kind: Kind = "array"

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> Size:
        return math.prod(self.shape)  # of Dims: a Dim

    @property
    def nbytes(self) -> Size:
        return self.size * self.dtype.itemsize

    @property
    def is_static(self) -> bool:
        """Whether all sizes are plain ints."""
        return is_static(self.shape)

    @property
    def is_weak(self) -> bool:
        return self.kind == "weak"

    @property
    def zero(self) -> Any:
        """The number 0 of this dtype: Python's for a weak type, else NumPy's."""
        zero = self.dtype.type(0)
        return zero.item() if self.is_weak else zero

    def __str__(self) -> str:
        name = dtype_name(self.dtype)
        if self.kind == "weak":
            return f"{name}~"
        if self.kind == "scalar":
            return name
        return f"{name}[{','.join(map(text_of_number, self.shape))}]"


_TYPE = re.compile(r"(?P<dtype>[a-z]+\d*)(?P<tail>~|\[(?P<dims>[^\]]*)\])?$")


def parse_type(text: str) -> TensorType:
    """Parse the printed form of a type; raises ``ValueError`` when it is not one."""
    match = _TYPE.match(text)
    if match is None or match["dtype"] not in DTYPE_NAMES:
        raise ValueError(f"not a tensor type: {text!r}")
    dtype = DTYPE_NAMES[match["dtype"]]
    if match["tail"] is None:
        return TensorType(dtype, (), "scalar")
    if match["tail"] == "~":
        return TensorType(dtype, (), "weak")
    return TensorType(dtype, parse_shape(match["dims"]), "array")
