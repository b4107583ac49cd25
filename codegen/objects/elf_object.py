"""Relocatable objects as LLVM emits them: the sections, symbols and relocations of ELF64.

Field names and constants are those of the System V ABI (gabi), chapters 4 and 5.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from fusec.core.records import dataclass, field
from fusec.errors import InternalError

HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
SECTION = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")
RELA = struct.Struct("<QQq")
IDENT = b"\x7fELF\x02\x01\x01" + bytes(9)  # 64 bits, little endian, version 1
ET_REL, ET_DYN = 1, 3
MACHINES = {"x86_64": 62, "aarch64": 183}

SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_RELA = 1, 2, 3, 4
SHT_HASH, SHT_DYNAMIC, SHT_NOBITS, SHT_DYNSYM = 5, 6, 8, 11
SHF_WRITE, SHF_ALLOC, SHF_EXECINSTR, SHF_TLS = 1, 2, 4, 1 << 10
SHN_UNDEF, SHN_ABS, SHN_COMMON = 0, 0xFFF1, 0xFFF2
STB_LOCAL, STB_GLOBAL, STB_WEAK, STB_GNU_UNIQUE = 0, 1, 2, 10
STT_NOTYPE, STT_OBJECT, STT_FUNC, STT_SECTION = 0, 1, 2, 3
STV_DEFAULT, STV_HIDDEN = 0, 2


class Relocation(NamedTuple):
    """``symbol``: its number in the object's symbol table."""

    offset: int
    kind: int
    symbol: int
    addend: int


@dataclass(eq=False)
class InputSection:
    """A section that is loaded; ``address`` is where it lies in the shared object."""

    name: str
    kind: int
    flags: int
    data: bytes
    size: int
    align: int
    relocations: list[Relocation] = field(default_factory=list)
    address: int = 0


class Symbol(NamedTuple):
    """``section`` is None for one that another object defines."""

    name: str
    section: InputSection | None
    value: int
    size: int
    info: int
    visibility: int

    @property
    def is_global(self) -> bool:
        return self.info >> 4 != STB_LOCAL

    @property
    def kind(self) -> int:
        return self.info & 15


class ElfObject:
    """One relocatable object: its loaded ``sections`` and all of its ``symbols``."""

    def __init__(self, data: bytes) -> None:
        header = HEADER.unpack_from(data)
        if header[0][:7] != IDENT[:7] or header[1] != ET_REL:
            raise InternalError("an object of another kind than ELF64 was emitted")
        self.machine, at, count = header[2], header[6], header[12]
        self._data = data
        self._headers = [SECTION.unpack_from(data, at + SECTION.size * k) for k in range(count)]
        names = self._contents(header[13])
        self._sections = {number: InputSection(
            _text(names, h[0]), h[1], h[2], self._contents(number), h[5], max(h[8], 1))
            for number, h in enumerate(self._headers) if h[2] & SHF_ALLOC}
        if any(section.flags & SHF_TLS for section in self._sections.values()):
            raise InternalError("an object has memory of threads, which nothing lays out")
        self.symbols = [*self._read_symbols()]
        self._read_relocations()

    @property
    def sections(self) -> list[InputSection]:
        return [*self._sections.values()]

    def _contents(self, number: int) -> bytes:
        kind, offset, size = (self._headers[number][k] for k in (1, 4, 5))
        return b"" if kind == SHT_NOBITS else self._data[offset: offset + size]

    def _read_symbols(self) -> Iterator[Symbol]:
        number = next(k for k, h in enumerate(self._headers) if h[1] == SHT_SYMTAB)
        table, names = self._contents(number), self._contents(self._headers[number][6])
        for name, info, other, section, value, size in SYMBOL.iter_unpack(table):
            if section == SHN_COMMON:
                raise InternalError("an object has common symbols")
            yield Symbol(_text(names, name), self._sections.get(section), value, size, info,
                         other & 3)

    def _read_relocations(self) -> None:
        for number, h in enumerate(self._headers):
            section = self._sections.get(h[7]) if h[1] == SHT_RELA else None
            if section is not None:
                section.relocations = [
                    Relocation(offset, info & 0xFFFFFFFF, info >> 32, addend)
                    for offset, info, addend in RELA.iter_unpack(self._contents(number))]


def _text(names: bytes, at: int) -> str:
    return names[at: names.index(b"\0", at)].decode()
