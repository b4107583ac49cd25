"""The two IEEE 754 formats that the functions are written for."""

from __future__ import annotations

import struct

import numpy as np

from fusec.core.records import dataclass


@dataclass(frozen=True)
class Format:
    """An IEEE 754 binary format and the constants the algorithms need of it."""

    name: str  # "f64", "f32"
    llvm: str  # "double", "float"
    bits: int
    mantissa: int  # stored mantissa bits
    bias: int

    @property
    def integer(self) -> str:
        return f"i{self.bits}"

    @property
    def magic(self) -> float:
        """Added to |v| < 2**(mantissa - 1), it leaves round(v) in the low mantissa bits."""
        return 1.5 * 2.0**self.mantissa

    @property
    def tiny(self) -> float:
        """The smallest normal number."""
        return 2.0 ** (1 - self.bias)

    @property
    def sign_mask(self) -> int:
        return 1 << (self.bits - 1)

    @property
    def mantissa_mask(self) -> int:
        return (1 << self.mantissa) - 1

    def encode(self, value: float) -> int:
        """The bits of ``value`` rounded to this format."""
        if self.bits == 64:
            return struct.unpack("<Q", struct.pack("<d", value))[0]
        return int(np.float32(value).view(np.uint32))

    def literal(self, value: float) -> str:
        """LLVM writes float constants, too, as the bits of a double."""
        rounded = float(value) if self.bits == 64 else float(np.float32(value))
        return f"0x{F64.encode(rounded):016X}"


F64 = Format("f64", "double", 64, 52, 1023)
F32 = Format("f32", "float", 32, 23, 127)
FORMATS = {np.dtype(np.float64): F64, np.dtype(np.float32): F32}


def format_of(dtype: np.dtype) -> Format:
    """The format of a dtype; raises ``TypeError`` for anything but float64 and float32."""
    fmt = FORMATS.get(np.dtype(dtype))
    if fmt is None:
        raise TypeError(f"internal error: vecmath knows float64 and float32, not {dtype}")
    return fmt
