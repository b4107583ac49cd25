"""``f_dlpack``: the same call for DLPack's tensors, whose types and layouts it checks.

The struct is that of DLPack 1.0 (``dlpack.h``): data, device type and number, rank, dtype (code,
bits, lanes), shape, strides (NULL: C order), offset in bytes.
"""

from __future__ import annotations

import numpy as np

from ...exported.parts import ERRORS, CParameter, Variant
from ..emitter import UNLIKELY, LlvmEmitter
from ..size_text import SizeText
from .call_text import parameters
from .entry_text import NOTHING, NOTHING_NAME, CEntry, EntryText, of_parameter

_DATA, _DEVICE, _RANK, _DTYPE, _SHAPE, _STRIDES, _OFFSET = 0, 8, 16, 20, 24, 32, 40
_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}  # kDLInt, kDLUInt, kDLFloat, kDLComplex, kDLBool
_OF_HOST = (1, 3)  # kDLCPU, kDLCUDAHost


def dlpack_text(entry: CEntry) -> tuple[LlvmEmitter, str]:
    """The function; numbers, sizes aside, are passed as in the other one."""
    return _DlpackText(entry).text()


class _DlpackText:
    def __init__(self, entry: CEntry) -> None:
        self.entry, self.function, self.em = entry, entry.function, LlvmEmitter()
        self.shapes: dict[int, list[str]] = {}

    def text(self) -> tuple[LlvmEmitter, str]:
        em, function = self.em, self.function
        for number, parameter in enumerate(function.parameters):
            if parameter.is_array:
                self._check_tensor(number, parameter)
        for k, (number, axis) in enumerate(function.axes):
            em.line(f"%n{k} = add i64 {self.shapes[number][axis]}, 0")
        for number, parameter in enumerate(function.parameters):
            if parameter.is_array:
                data = self._load("ptr", self._tensor(number), _DATA)
                self._refuse(self._lacks_data(number, data), "NULL", number)
                offset = self._load("i64", self._tensor(number), _OFFSET)
                there = em.value(f"getelementptr i8, ptr {data}, i64 {offset}")
                null = em.value(f"icmp eq ptr {data}, null")
                em.declare(NOTHING)
                em.line(f"{self._address(number)} = select i1 {null}, ptr @{NOTHING_NAME}, "
                        f"ptr {there}")
        chooser = EntryText(self.entry, "")
        for variant in function.variants:
            with chooser.where_served(em, variant) as sizes:
                self._check_shapes(variant, sizes)
                passed = parameters(function)
                status = em.value(f"call i32 @{function.name}({passed}, i64 %bytes)")
                em.line(f"ret i32 {status}")
        em.line(f"ret i32 {ERRORS['SIZES'][0]}")
        taken = [p for p in parameters(function).split(", ") if not p.startswith("i64 %n")]
        renamed = [p.replace("ptr %a", "ptr %ta").replace("ptr %r", "ptr %tr") for p in taken]
        return em, "\n".join([
            f"define i32 @{function.name}_dlpack({', '.join(renamed)}, i64 %bytes) nounwind {{",
            "entry:", *em.allocas, *em.lines, "}"])

    def _lacks_data(self, number: int, data: str) -> str:
        """No data, and elements: DLPack gives those without elements the address NULL."""
        has = self.em.value(f"icmp eq ptr {data}, null")
        for size in self.shapes[number]:
            some = self.em.value(f"icmp ne i64 {size}, 0")
            has = self.em.value(f"and i1 {has}, {some}")
        return has

    def _address(self, number: int) -> str:
        count = len(self.function.arguments)
        return f"%a{number}" if number < count else f"%r{number - count}"

    def _tensor(self, number: int) -> str:
        return self._address(number).replace("%", "%t")

    def _load(self, type_: str, tensor: str, at: int) -> str:
        place = self.em.offset(tensor, str(at)) if at else tensor
        return self.em.value(f"load {type_}, ptr {place}")

    def _refuse(self, condition: str, kind: str, number: int) -> None:
        with self.em.branch(condition, UNLIKELY):
            self.em.line(f"ret i32 {of_parameter(kind, number)}")
            self.em.label(self.em.fresh("never"))

    def _check_tensor(self, number: int, parameter: CParameter) -> None:
        em, tensor, rank = self.em, self._tensor(number), len(parameter.shape)
        self._refuse(em.value(f"icmp eq ptr {tensor}, null"), "NULL", number)
        device = self._load("i32", tensor, _DEVICE)
        elsewhere = [em.value(f"icmp ne i32 {device}, {kind}") for kind in _OF_HOST]
        self._refuse(em.value(f"and i1 {elsewhere[0]}, {elsewhere[1]}"), "DEVICE", number)
        dtype = self._load("i32", tensor, _DTYPE)
        self._refuse(em.value(f"icmp ne i32 {dtype}, {_dtype_word(parameter.dtype)}"), "DTYPE",
                     number)
        has = self._load("i32", tensor, _RANK)
        self._refuse(em.value(f"icmp ne i32 {has}, {rank}"), "RANK", number)
        if not rank:
            self.shapes[number] = []
            return
        shape = self._load("ptr", tensor, _SHAPE)
        self._refuse(em.value(f"icmp eq ptr {shape}, null"), "NULL", number)
        self.shapes[number] = [self._load("i64", shape, 8 * axis) for axis in range(rank)]
        self._check_strides(number, rank)

    def _check_strides(self, number: int, rank: int) -> None:
        em = self.em
        strides = self._load("ptr", self._tensor(number), _STRIDES)
        with em.branch(em.value(f"icmp ne ptr {strides}, null")):
            step = "1"
            for axis in reversed(range(rank)):
                size = self.shapes[number][axis]
                stride = self._load("i64", strides, 8 * axis)
                other = em.value(f"icmp ne i64 {stride}, {step}")
                many = em.value(f"icmp sgt i64 {size}, 1")
                self._refuse(em.value(f"and i1 {other}, {many}"), "STRIDES", number)
                step = em.mul(size, step)

    def _check_shapes(self, variant: Variant, sizes: SizeText) -> None:
        em = self.em
        for number, shape in self.shapes.items():
            for axis, size in enumerate(variant.types[number].shape):
                wanted = sizes.number(size)
                self._refuse(em.value(f"icmp ne i64 {shape[axis]}, {wanted}"), "SHAPE", number)


def _dtype_word(dtype: np.dtype) -> int:
    """Code, bits and lanes as one word, the lowest byte first."""
    return _CODES[dtype.kind] | (8 * dtype.itemsize) << 8 | 1 << 16

