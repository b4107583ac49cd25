"""A shared object of relocatable ones, laid out without a linker.

Three segments: tables of the loader, constants and unwind tables, which are only read; code; data
that is written.  Symbols of other libraries are called through stubs and read through the global
offset table, which the loader fills when the library is loaded.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any

from fusec.errors import InternalError

from . import elf_object as elf
from .elf_object import ElfObject, InputSection, Symbol
from .relocations import MACHINES, STUB_BYTES, rule_of
from .section_table import with_sections
from .unwind_index import index_of, index_size

PAGE = 1 << 16  # the largest of the machines: aarch64's
PT_LOAD, PT_DYNAMIC, PT_GNU_EH_FRAME, PT_GNU_STACK = 1, 2, 0x6474E550, 0x6474E551
READ, WRITE, EXECUTE = 4, 2, 1
PROGRAM = struct.Struct("<IIQQQQQQ")
DT = {"NEEDED": 1, "HASH": 4, "STRTAB": 5, "SYMTAB": 6, "RELA": 7, "RELASZ": 8, "RELAENT": 9,
      "STRSZ": 10, "SYMENT": 11, "SONAME": 14, "FLAGS": 30, "FLAGS_1": 0x6FFFFFFB}
BIND_NOW, NOW_1, NODELETE_1 = 8, 1, 8
SEGMENTS = 6


def shared_object(
    objects: Sequence[bytes], soname: str, exported: Iterable[str], libraries: dict[str, str],
    unique: Iterable[str] = (),
) -> bytes:
    """The library of these objects; ``exported`` names are seen by who loads it.  Variables that
    are ``unique`` among them are the same one in all libraries of a process; a library with such
    ones is not unloaded.

    ``libraries`` says which library has a symbol that no object defines.
    """
    return _Layout([ElfObject(data) for data in objects], soname, [*exported], libraries,
                   frozenset(unique)).image()


class _Part:
    """A section of the library: input sections of one kind, or a table of the loader."""

    def __init__(self, name: str, kind: int, flags: int, align: int = 8) -> None:
        self.name, self.kind, self.flags, self.align = name, kind, flags, align
        self.inputs: list[InputSection] = []
        self.size, self.address, self.offset = 0, 0, 0
        self.data = b""
        self.link, self.info, self.entry = "", 0, 0

    def add(self, section: InputSection) -> None:
        self.align = max(self.align, section.align)
        section.address = _up(self.size, section.align)  # from the part's own begin
        self.size = section.address + section.size
        self.inputs.append(section)

    def place(self, address: int, offset: int) -> None:
        self.address, self.offset = address, offset
        for section in self.inputs:
            section.address += address


class _Layout:
    def __init__(
        self, objects: list[ElfObject], soname: str, exported: list[str],
        libraries: dict[str, str], unique: frozenset[str],
    ) -> None:
        self.objects, self.soname, self.exported = objects, soname, exported
        self.unique = unique
        self.machine = objects[0].machine
        self.defined = self._defined()
        self.foreign = sorted({s.name for o in objects for s in o.symbols
                               if s.name and s.section is None and s.is_global
                               and s.name not in self.defined})
        missing = [name for name in self.foreign if name not in libraries]
        if missing:
            raise InternalError(f"no library is known to have {', '.join(missing)}")
        self.needed = sorted({libraries[name] for name in self.foreign})
        self.table = self._table()  # the names in the global offset table
        self.parts = {part.name: part for part in self._parts()}
        self._fill_tables()
        self._place()
        self._relocate()

    # -- symbols

    def _defined(self) -> dict[str, Symbol]:
        found: dict[str, Symbol] = {}
        for symbol in (s for o in self.objects for s in o.symbols):
            if symbol.is_global and symbol.section is not None:
                if symbol.name in found and symbol.info >> 4 != elf.STB_WEAK:
                    raise InternalError(f"two objects define {symbol.name}")
                found.setdefault(symbol.name, symbol)
        return found

    def _uses(self) -> Iterable[tuple[ElfObject, InputSection, elf.Relocation, str]]:
        for obj in self.objects:
            for section in obj.sections:
                for relocation in section.relocations:
                    yield obj, section, relocation, rule_of(self.machine, relocation.kind).needs

    def _table(self) -> list[tuple[Any, Any]]:
        """Entries by symbol: its name if it is global, else the object that has it."""
        keys = dict.fromkeys(self._key(obj, relocation.symbol)
                             for obj, _, relocation, needs in self._uses() if needs == "table")
        return [*keys, *(("", name) for name in self.foreign if ("", name) not in keys)]

    def _key(self, obj: ElfObject, number: int) -> tuple[Any, Any]:
        symbol = obj.symbols[number]
        return ("", symbol.name) if symbol.is_global else (self.objects.index(obj), number)

    def _address(self, obj: ElfObject, number: int) -> int | None:
        """The address of a symbol; None where another library has it."""
        symbol = obj.symbols[number]
        if symbol.section is None and symbol.is_global:
            symbol = self.defined.get(symbol.name, symbol)
        return None if symbol.section is None else symbol.section.address + symbol.value

    # -- the sections of the library

    def _parts(self) -> list[_Part]:
        alloc, write, run = elf.SHF_ALLOC, elf.SHF_WRITE, elf.SHF_EXECINSTR
        parts = [
            _Part(".hash", elf.SHT_HASH, alloc), _Part(".dynsym", elf.SHT_DYNSYM, alloc),
            _Part(".dynstr", elf.SHT_STRTAB, alloc, 1), _Part(".rela.dyn", elf.SHT_RELA, alloc),
            _Part(".rodata", elf.SHT_PROGBITS, alloc), _Part(".eh_frame", elf.SHT_PROGBITS, alloc),
            _Part(".eh_frame_hdr", elf.SHT_PROGBITS, alloc, 4),
            _Part(".text", elf.SHT_PROGBITS, alloc | run, 16),
            _Part(".plt", elf.SHT_PROGBITS, alloc | run, 16),
            _Part(".data.rel.ro", elf.SHT_PROGBITS, alloc | write),
            _Part(".dynamic", elf.SHT_DYNAMIC, alloc | write),
            _Part(".got", elf.SHT_PROGBITS, alloc | write),
            _Part(".data", elf.SHT_PROGBITS, alloc | write),
            _Part(".bss", elf.SHT_NOBITS, alloc | write)]
        by_name = {part.name: part for part in parts}
        for section in (s for o in self.objects for s in o.sections):
            by_name[_home_of(section)].add(section)
        return parts

    def _fill_tables(self) -> None:
        """The sizes of all tables, and the contents of those that hold no addresses."""
        parts = self.parts
        self.dynamic_names = ["", *self.foreign, *self.exported]
        strings = _Strings([*self.needed, self.soname, *self.dynamic_names])
        self.strings = strings
        parts[".dynstr"].data = strings.data
        parts[".hash"].data = _hash_table(self.dynamic_names)
        sizes = {
            ".dynstr": len(strings.data), ".hash": len(parts[".hash"].data),
            ".dynsym": elf.SYMBOL.size * len(self.dynamic_names),
            ".rela.dyn": elf.RELA.size * self._loaded_relocations(),
            ".plt": STUB_BYTES[self.machine] * len(self.foreign), ".got": 8 * len(self.table),
            ".dynamic": 16 * (len(self.needed) + 12),  # the last one is DT_NULL
            ".eh_frame_hdr": index_size(parts[".eh_frame"].inputs)}
        for name, size in sizes.items():
            parts[name].size = size
        parts[".hash"].link = parts[".rela.dyn"].link = ".dynsym"
        parts[".dynsym"].link = parts[".dynamic"].link = ".dynstr"
        parts[".dynsym"].info = 1
        for name, entry in ((".dynsym", elf.SYMBOL.size), (".rela.dyn", elf.RELA.size),
                            (".dynamic", 16), (".hash", 4), (".got", 8)):
            parts[name].entry = entry

    def _loaded_relocations(self) -> int:
        return len(self.table) + sum(needs == "address" for *_, needs in self._uses())

    def _place(self) -> None:
        at = elf.HEADER.size + SEGMENTS * PROGRAM.size
        address, before = at, 0
        self.segments: list[tuple[int, list[_Part]]] = []
        for part in self.parts.values():
            flags = part.flags & (elf.SHF_WRITE | elf.SHF_EXECINSTR)
            if flags != before or not self.segments:
                address = at if not self.segments else _up(address, PAGE) + at % PAGE
                self.segments.append((READ | (WRITE if flags & elf.SHF_WRITE else 0) | (
                    EXECUTE if flags & elf.SHF_EXECINSTR else 0), []))
                before = flags
            gap = _up(address, part.align) - address
            address, at = address + gap, at + gap
            part.place(address, at)
            self.segments[-1][1].append(part)
            address += part.size
            at += 0 if part.kind == elf.SHT_NOBITS else part.size

    # -- contents

    def _relocate(self) -> None:
        self.loaded: list[tuple[int, int, int, int]] = []  # place, kind, dynamic symbol, addend
        self.images = {id(s): bytearray(s.data) for o in self.objects for s in o.sections}
        machine = MACHINES[self.machine]
        for obj, section, (offset, kind, number, addend), needs in self._uses():
            rule, place = rule_of(self.machine, kind), section.address + offset
            address, key = self._address(obj, number), self._key(obj, number)
            if needs == "table":
                address = self._entry(key)
            elif needs == "address":
                self.loaded.append((place, machine.relative, 0, address + addend) if (
                    address is not None) else (
                    place, machine.symbolic, self._dynamic(key), addend))
                continue
            elif address is None:
                if needs != "call":
                    raise InternalError(f"{obj.symbols[number].name} is read from afar")
                address = self._stub(str(key[1]))
            rule.write(self.images[id(section)], offset, address + addend, place)
        for position, key in enumerate(self.table):
            self._load_entry(8 * position, key)
        self._write_tables()

    def _load_entry(self, at: int, key: tuple) -> None:
        machine, place = MACHINES[self.machine], self.parts[".got"].address + at
        owner, name = key
        address = self._address(self.objects[owner], name) if owner != "" else (
            s.section.address + s.value if (s := self.defined.get(name)) and s.section and (
                name not in self.unique) else None)
        self.loaded.append((place, machine.symbolic, self._dynamic(key), 0) if address is None else
                           (place, machine.relative, 0, address))

    def _entry(self, key: tuple) -> int:
        return self.parts[".got"].address + 8 * self.table.index(key)

    def _stub(self, name: str) -> int:
        return self.parts[".plt"].address + STUB_BYTES[self.machine] * self.foreign.index(name)

    def _dynamic(self, key: tuple) -> int:
        return self.dynamic_names.index(key[1])

    def _write_tables(self) -> None:
        parts, stub = self.parts, MACHINES[self.machine].stub
        parts[".plt"].data = b"".join(
            stub(self._stub(name), self._entry(("", name))) for name in self.foreign)
        parts[".got"].data = bytes(parts[".got"].size)
        parts[".rela.dyn"].data = b"".join(
            elf.RELA.pack(place, symbol << 32 | kind, addend)
            for place, kind, symbol, addend in sorted(self.loaded))
        parts[".dynsym"].data = elf.SYMBOL.pack(0, 0, 0, 0, 0, 0) + b"".join(
            [elf.SYMBOL.pack(self.strings.at(n), elf.STB_GLOBAL << 4, 0, 0, 0, 0)
             for n in self.foreign] + [self._exported_symbol(n) for n in self.exported])
        parts[".dynamic"].data = self._dynamic_table()
        frames = parts[".eh_frame"]
        parts[".eh_frame_hdr"].data = index_of(
            self._image(frames), frames.address, parts[".eh_frame_hdr"].address)

    def _exported_symbol(self, name: str) -> bytes:
        s = self.defined[name]
        assert s.section is not None
        binding = elf.STB_GNU_UNIQUE if name in self.unique else elf.STB_GLOBAL
        return elf.SYMBOL.pack(self.strings.at(name), binding << 4 | s.kind, 0,
                               self._number_of(s.section), s.section.address + s.value, s.size)

    def _number_of(self, section: InputSection) -> int:
        """The number of the library's section that the input section is in."""
        return 1 + [*self.parts].index(_home_of(section))

    def _dynamic_table(self) -> bytes:
        parts = self.parts
        entries = [*((DT["NEEDED"], self.strings.at(name)) for name in self.needed),
                   (DT["SONAME"], self.strings.at(self.soname)),
                   (DT["HASH"], parts[".hash"].address), (DT["STRTAB"], parts[".dynstr"].address),
                   (DT["SYMTAB"], parts[".dynsym"].address), (DT["STRSZ"], parts[".dynstr"].size),
                   (DT["SYMENT"], elf.SYMBOL.size), (DT["RELA"], parts[".rela.dyn"].address),
                   (DT["RELASZ"], parts[".rela.dyn"].size), (DT["RELAENT"], elf.RELA.size),
                   (DT["FLAGS"], BIND_NOW),
                   (DT["FLAGS_1"], NOW_1 | (NODELETE_1 if self.unique else 0))]
        data = b"".join(struct.pack("<QQ", *entry) for entry in entries)
        return data.ljust(parts[".dynamic"].size, b"\0")

    def _image(self, part: _Part) -> bytes:
        """The bytes of a section."""
        if not part.inputs:
            return part.data
        image = bytearray(part.size)
        for section in part.inputs:
            if section.kind != elf.SHT_NOBITS:
                at = section.address - part.address
                image[at: at + len(section.data)] = self.images[id(section)]
        return bytes(image)

    # -- the file

    def image(self) -> bytes:
        out = bytearray(elf.HEADER.size + SEGMENTS * PROGRAM.size)
        for part in self.parts.values():
            if part.kind != elf.SHT_NOBITS:
                out += bytes(part.offset - len(out)) + self._image(part)
        out[elf.HEADER.size: elf.HEADER.size + SEGMENTS * PROGRAM.size] = self._program_headers()
        return with_sections(out, self.machine, [*self.parts.values()], self._named(), SEGMENTS)

    def _named(self) -> list[tuple[Symbol, int]]:
        """Functions and variables of the objects, for debuggers and profilers."""
        return [(s, self._number_of(s.section)) for o in self.objects for s in o.symbols
                if s.section is not None and s.name and s.kind in (elf.STT_FUNC, elf.STT_OBJECT)]

    def _program_headers(self) -> bytes:
        headers = []
        for number, (flags, parts) in enumerate(self.segments):
            first, last = parts[0], parts[-1]
            loaded = [p for p in parts if p.kind != elf.SHT_NOBITS][-1]
            offset, address = (0, 0) if number == 0 else (first.offset, first.address)
            headers.append(PROGRAM.pack(
                PT_LOAD, flags, offset, address, address, loaded.offset + loaded.size - offset,
                last.address + last.size - address, PAGE))
        for kind, flags, name in ((PT_DYNAMIC, READ | WRITE, ".dynamic"),
                                  (PT_GNU_EH_FRAME, READ, ".eh_frame_hdr")):
            p = self.parts[name]
            headers.append(PROGRAM.pack(
                kind, flags, p.offset, p.address, p.address, p.size, p.size, p.align))
        headers.append(PROGRAM.pack(PT_GNU_STACK, READ | WRITE, 0, 0, 0, 0, 0, 16))
        return b"".join(headers)


class _Strings:
    """A table of texts."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.data, self._at = b"\0", {"": 0}
        for text in texts:
            if text not in self._at:
                self._at[text] = len(self.data)
                self.data += text.encode() + b"\0"

    def at(self, text: str) -> int:
        return self._at[text]


def _home_of(section: InputSection) -> str:
    """The name of the library's section that an input section goes into."""
    if section.kind == elf.SHT_NOBITS:
        return ".bss"
    if section.name == ".eh_frame":
        return ".eh_frame"
    if section.flags & elf.SHF_EXECINSTR:
        return ".text"
    if section.flags & elf.SHF_WRITE:
        return ".data.rel.ro" if section.name.startswith(".data.rel.ro") else ".data"
    return ".rodata"


def _hash_table(names: Sequence[str]) -> bytes:
    """``DT_HASH``: buckets of chains of symbols (gabi, chapter 5)."""
    count = max(1, len(names) // 2)
    buckets, chains = [0] * count, [0] * len(names)
    for number, name in enumerate(names[1:], 1):
        bucket = _hash(name) % count
        chains[number], buckets[bucket] = buckets[bucket], number
    return struct.pack(f"<{2 + count + len(names)}I", count, len(names), *buckets, *chains)


def _hash(name: str) -> int:
    h = 0
    for byte in name.encode():
        h = (h << 4) + byte
        high = h & 0xF0000000
        h = (h ^ (high >> 24)) & ~high & 0xFFFFFFFF
    return h


def _up(number: int, align: int) -> int:
    return -(-number // align) * align
