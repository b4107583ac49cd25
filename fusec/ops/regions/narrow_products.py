"""Products with few columns, or with a vector, on a GPU: what they cost as sums of products in a
kernel, and by a library.

Figures are of an H200, in microseconds: of a launch in a CUDA graph and a small kernel,
of a product of 128 x 128 matrices by cuBLAS in one, of memory, of a multiprocessor's instructions.
They only have to tell a few microseconds from many.
"""

from __future__ import annotations

import math

import numpy as np

from fusec.core.records import dataclass
from fusec.ir import Node
from fusec.ir.device_names import emulates_cuda, runs_cuda
from fusec.ir.sizes.bindings import typical
from fusec.ir.sizes.dims import is_static

MAX_COLUMNS = 16  # totals that a thread keeps
MAX_SUMMED = 16  # products of an element that are written out
LAUNCH_US, LIBRARY_US = 1.0, 3.4
BYTES_PER_US, LIBRARY_BYTES_PER_US, FLOPS_PER_US = 4.1e6, 3.3e6, 33e6
# Cycles a microsecond of a multiprocessor, and how many of these there are.
RATE, MULTIPROCESSORS = 1980.0, 132
# Cycles of a warp: a column's product is a load, the same for all threads, a multiplication and an
# addition; an element of the matrix is a load, of a row for each thread (each of these in a sector
# of its own) or of neighbours.  A product that is written out reads both its factors.  A total is
# joined with those of the other groups of threads, or, of a vector, by the threads of a warp.
OF_PRODUCT, OF_ROW, OF_NEIGHBOURS, OF_BOTH, OF_TOTAL, OF_WARP = 1.0, 8.0, 1.0, 4.0, 2.0, 4.0
GROUPS, ROWS_OF_A_BLOCK, WARPS_OF_A_BLOCK, ROWS_OF_A_PART = 16, 32, 8, 512
ROUND_US = 0.35  # until what a group of threads asks for at once, of four rows, is there


@dataclass(frozen=True)
class ProductSizes:
    """A product of rows x summed and summed x columns; ``is_turned``: the left one is the
    transpose of a matrix in memory, so that rows of that are summed."""

    rows: int
    summed: int
    columns: int
    is_turned: bool
    dtype: np.dtype

    @property
    def nbytes(self) -> int:
        """Of the operands and the result."""
        pairs = ((self.rows, self.summed), (self.summed, self.columns), (self.rows, self.columns))
        return sum(a * b for a, b in pairs) * self.dtype.itemsize

    @property
    def library_us(self) -> float:
        """By cuBLAS, its launch included."""
        flops = 2 * self.rows * self.summed * self.columns * (4 if self.dtype.kind == "c" else 1)
        return LIBRARY_US + max(self.nbytes / LIBRARY_BYTES_PER_US, flops / FLOPS_PER_US)

    @property
    def kernel_us(self) -> float:
        """As sums in a kernel, beside its launch and its memory."""
        words = max(1, self.dtype.itemsize // 4)
        products = self.rows * self.summed / 32
        if self.columns > MAX_COLUMNS:
            cycles, blocks = products * self.columns * OF_BOTH * words, self.rows * (
                self.columns / 32 / WARPS_OF_A_BLOCK)
        elif self.columns == 1 and not self.is_turned:
            cycles = products * 2 * OF_NEIGHBOURS * words + self.rows * OF_WARP * words
            blocks = self.rows / WARPS_OF_A_BLOCK
        else:
            return self._columns_us(products, words)
        return cycles / _rate(blocks)

    def _columns_us(self, products: float, words: int) -> float:
        """As totals of columns side by side."""
        element = OF_NEIGHBOURS * words if self.is_turned else OF_ROW
        parts = max(1, self.summed // ROWS_OF_A_PART) if self.is_turned else 1
        blocks = math.ceil(self.rows / ROWS_OF_A_BLOCK) * parts
        joined = blocks * GROUPS * self.columns * OF_TOTAL * words
        cycles = products * (OF_PRODUCT * words * self.columns + element) + joined
        return max(cycles / _rate(blocks), self.summed / parts / (4 * GROUPS) * ROUND_US)

    @property
    def alone_us(self) -> float:
        """As a kernel of its own."""
        return LAUNCH_US + self.nbytes / BYTES_PER_US + self.beside_memory_us

    @property
    def beside_memory_us(self) -> float:
        """How much longer a kernel takes with its sums than its memory does."""
        return max(0.0, self.kernel_us - self.nbytes / BYTES_PER_US)


def _rate(blocks: float) -> float:
    return RATE * min(MULTIPROCESSORS, max(1.0, math.ceil(blocks)))


def sizes_of(node: Node) -> ProductSizes:
    """Of a product of vectors and matrices; sizes that only the run knows are typical ones."""
    a, b = (v.shape for v in node.inputs)
    rows, columns = a[0] if len(a) == 2 else 1, b[1] if len(b) == 2 else 1
    left, right = (v.node.op == "Transpose" for v in node.inputs)
    sizes = [int(typical(n)) for n in (rows, a[-1], columns)]
    dtype = node.types[0].dtype
    if len(a) == 1 or (sizes[0] == 1 and sizes[2] > MAX_COLUMNS):
        # A row by a matrix is that matrix, transposed, by a column.
        return ProductSizes(sizes[2], sizes[1], sizes[0], not right, dtype)
    return ProductSizes(sizes[0], sizes[1], sizes[2], left, dtype)


def is_narrow(node: Node) -> bool:
    """Whether sums of products could compute it on a GPU: a product of a vector, one of few
    columns, or one over a short axis, of numbers, and not of none."""
    if node.op != "MatMul" or not runs_cuda(node.device) or node.types[0].dtype.kind not in "iufc":
        return False
    a, b = (v.shape for v in node.inputs)
    if max(len(a), len(b)) > 2 or any(is_static((n,)) and n == 0 for n in (*a, *b)):
        return False
    if len(a) == 1 or len(b) == 1 or is_short(b[1]) or (is_static(a[:1]) and a[0] == 1):
        return True
    return is_short(a[1], MAX_SUMMED) and a[1] != 1


def is_short(size: int, limit: int = MAX_COLUMNS) -> bool:
    """Whether it is known to be at most that."""
    return is_static((size,)) and size <= limit


def may_pay(node: Node) -> bool:
    """Whether sums, which save a launch where they join a kernel, may be quicker than a library."""
    sizes = sizes_of(node)
    return sizes.alone_us <= sizes.library_us + LAUNCH_US


def has_library(node: Node) -> bool:
    """Whether the device has a library for the product: the emulated one has none, and a GPU's
    takes floats of 32 and 64 bits and complex numbers of known sizes."""
    types = (*(v.type for v in node.inputs), *node.types)
    return not emulates_cuda(node.device) and all(
        t.is_static and t.dtype.kind in "fc" and t.dtype.itemsize > 2 for t in types)
