"""Section headers and the symbol table of a shared object, which loaders do not read and people's
tools do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import elf_object as elf
from .elf_object import Symbol


def with_sections(
    image: bytearray, machine: int, parts: Sequence[Any], named: Sequence[tuple[Symbol, int]],
    segments: int,
) -> bytes:
    """The file: the image of its segments, the tables behind it, and the header before it."""
    symbols, strings = _symbol_table(named)
    names, name_at = _names([*(part.name for part in parts), ".symtab", ".strtab", ".shstrtab"])
    headers = [bytes(elf.SECTION.size)]
    numbers = {part.name: number for number, part in enumerate(parts, 1)}
    for part in parts:
        headers.append(elf.SECTION.pack(
            name_at[part.name], part.kind, part.flags, part.address, part.offset, part.size,
            numbers.get(part.link, 0), part.info, part.align, part.entry))
    for name, data, kind, entry in ((".symtab", symbols, elf.SHT_SYMTAB, elf.SYMBOL.size),
                                    (".strtab", strings, elf.SHT_STRTAB, 0),
                                    (".shstrtab", names, elf.SHT_STRTAB, 0)):
        image += bytes(-len(image) % 8)
        is_table = kind == elf.SHT_SYMTAB
        headers.append(elf.SECTION.pack(
            name_at[name], kind, 0, 0, len(image), len(data), len(parts) + 2 if is_table else 0,
            len(symbols) // elf.SYMBOL.size if is_table else 0, 8 if is_table else 1, entry))
        image += data
    image += bytes(-len(image) % 8)
    at = len(image)
    image += b"".join(headers)
    image[: elf.HEADER.size] = elf.HEADER.pack(
        elf.IDENT, elf.ET_DYN, machine, 1, 0, elf.HEADER.size, at, 0, elf.HEADER.size, 56,
        segments, elf.SECTION.size, len(headers), len(headers) - 1)
    return bytes(image)


def _symbol_table(named: Sequence[tuple[Symbol, int]]) -> tuple[bytes, bytes]:
    """Symbols, all local here: loaders have a table of their own."""
    table, strings = bytearray(elf.SYMBOL.size), bytearray(b"\0")
    for symbol, number in named:
        assert symbol.section is not None
        table += elf.SYMBOL.pack(
            len(strings), symbol.kind, 0, number, symbol.section.address + symbol.value,
            symbol.size)
        strings += symbol.name.encode() + b"\0"
    return bytes(table), bytes(strings)


def _names(texts: Sequence[str]) -> tuple[bytes, dict[str, int]]:
    data, at = b"\0", dict[str, int]()
    for text in texts:
        at[text] = len(data)
        data += text.encode() + b"\0"
    return data, at
