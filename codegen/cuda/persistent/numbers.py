"""Numbers that every thread of a persistent kernel has: their types, literals, and memory.

A complex number is a pair of floats; operations on it are those of its parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from fusec.codegen.structured.memory import Operand, View
from fusec.ir.sizes.dims import Dim, Size
from fusec.ops.complex_parts import component

from ..kernels.nest_kernel import in_memory
from ..programs.program_text import is_still
from ..scalars.emitter import BOOL, CudaValue, literal, memory_type, type_name

WORD = 8


def number_type(dtype: np.dtype) -> str:
    """The type of a variable."""
    return f"Complex<{type_name(component(dtype))}>" if dtype.kind == "c" else type_name(dtype)


def number_literal(dtype: np.dtype, value: Any) -> str:
    if dtype.kind != "c":
        return literal(dtype, value)
    part = component(dtype)
    real, imag = (literal(part, x) for x in (value.real, value.imag))
    return f"{number_type(dtype)}{{{real}, {imag}}}"


def type_in_memory(dtype: np.dtype) -> str:
    return number_type(dtype) if dtype.kind == "c" else memory_type(dtype)


def loaded(dtype: np.dtype, at: str) -> str:
    """The number at an address."""
    if dtype.kind == "c":
        return f"load_complex<{type_name(component(dtype))}>({at})"
    text = f"load<{memory_type(dtype)}>({at})"
    return f"{text} != 0" if dtype == BOOL else text


def stored(value: CudaValue) -> str:
    """The store of a number, at an address: of ``{}``."""
    if value.dtype.kind == "c":
        return f"store_complex({{}}, {value})"
    return f"store<{memory_type(value.dtype)}>({{}}, {in_memory(value)})"


def size_text(size: Size, symbol: Callable[[str], str]) -> str:
    """A size as an expression of int64, by those of its symbols."""
    if not isinstance(size, Dim):
        return f"i64({size})"
    terms = ("*".join([f"i64({factor})"] * (factor != 1 or not monomial) + [
        _atom_text(atom, symbol) for atom in monomial]) for monomial, factor in size.terms)
    return f"({' + '.join(terms)})"


_OF_SIZES = {"//": "quotient_of", "%": "rest_of", "min": "smaller_of", "max": "larger_of"}


def _atom_text(atom: Any, symbol: Callable[[str], str]) -> str:
    if isinstance(atom, str):
        return symbol(atom)
    left, right = (size_text(part, symbol) for part in (atom.left, atom.right))
    return f"{_OF_SIZES[atom.function]}({left}, {right})"


def words_of(dtype: np.dtype) -> int:
    """The words of 8 bytes that a number takes."""
    return -(-dtype.itemsize // WORD)


def placed(operands: Sequence[Operand | View], first: int) -> Iterator[tuple[int, Operand | View]]:
    """Operands of an exit with the words that they lie in, from ``first`` on; of an array it is an
    address, and, where the run decides them, its shape and strides."""
    for operand in operands:
        yield first, operand
        first += words_shown(operand)


def words_shown(operand: Operand | View) -> int:
    """How many words that takes."""
    if not isinstance(operand, View):
        return words_of(operand.dtype)
    return 1 if is_still(operand) else 1 + 2 * len(operand.shape)
