"""Relocations of the machines that shared objects are laid out for.

Names and formulas are those of the processor supplements of the System V ABI: x86-64 (table 4.9)
and "ELF for the Arm 64-bit Architecture" (section 5.7).  ``S`` is a symbol's address, ``A`` the
addend, ``P`` the place, ``G`` the address of the symbol's entry in the global offset table.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

from fusec.errors import InternalError

Write = Callable[[bytearray, int, int, int], None]  # data, offset in it, value, place


class RelocationRule(NamedTuple):
    """How a relocation is made: ``needs`` the symbol itself, its ``table`` entry, a ``call``
    through a stub if another library has it, or the ``address`` in 64 bits."""

    needs: str
    write: Write


def _plain(size: int, is_relative: bool) -> Write:
    limit = 1 << (8 * size - 1)

    def write(data: bytearray, at: int, value: int, place: int) -> None:
        value -= place if is_relative else 0
        if not -limit <= value < limit:
            raise InternalError(f"a relocation of {size} bytes does not reach its symbol")
        data[at: at + size] = value.to_bytes(size, "little", signed=True)

    return write


def _or(data: bytearray, at: int, bits: int) -> None:
    word = struct.unpack_from("<I", data, at)[0]
    struct.pack_into("<I", data, at, word | (bits & 0xFFFFFFFF))


def _page(data: bytearray, at: int, value: int, place: int) -> None:
    pages = (value >> 12) - (place >> 12)
    if not -(1 << 20) <= pages < 1 << 20:
        raise InternalError("a page is out of reach of its instruction")
    _or(data, at, (pages & 3) << 29 | ((pages >> 2) & 0x7FFFF) << 5)


def _low(scale: int) -> Write:
    return lambda data, at, value, place: _or(data, at, ((value & 0xFFF) >> scale) << 10)


def _branch(data: bytearray, at: int, value: int, place: int) -> None:
    words = (value - place) >> 2
    if not -(1 << 25) <= words < 1 << 25:
        raise InternalError("a function is out of reach of its call")
    _or(data, at, words & 0x3FFFFFF)


_X86_64 = {
    1: RelocationRule("address", _plain(8, False)),     # R_X86_64_64: S + A
    2: RelocationRule("symbol", _plain(4, True)),       # PC32: S + A - P
    4: RelocationRule("call", _plain(4, True)),         # PLT32: L + A - P
    9: RelocationRule("table", _plain(4, True)),        # GOTPCREL: G + A - P
    24: RelocationRule("symbol", _plain(8, True)),      # PC64
    41: RelocationRule("table", _plain(4, True)),       # GOTPCRELX
    42: RelocationRule("table", _plain(4, True)),       # REX_GOTPCRELX
}
_AARCH64 = {
    257: RelocationRule("address", _plain(8, False)),   # R_AARCH64_ABS64: S + A
    260: RelocationRule("symbol", _plain(8, True)),     # PREL64
    261: RelocationRule("symbol", _plain(4, True)),     # PREL32
    275: RelocationRule("symbol", _page),               # ADR_PREL_PG_HI21: Page(S + A) - Page(P)
    277: RelocationRule("symbol", _low(0)),             # ADD_ABS_LO12_NC
    278: RelocationRule("symbol", _low(0)),             # LDST8_ABS_LO12_NC
    282: RelocationRule("call", _branch),               # JUMP26
    283: RelocationRule("call", _branch),               # CALL26
    284: RelocationRule("symbol", _low(1)),             # LDST16_ABS_LO12_NC
    285: RelocationRule("symbol", _low(2)),             # LDST32_ABS_LO12_NC
    286: RelocationRule("symbol", _low(3)),             # LDST64_ABS_LO12_NC
    299: RelocationRule("symbol", _low(4)),             # LDST128_ABS_LO12_NC
    311: RelocationRule("table", _page),                # ADR_GOT_PAGE
    312: RelocationRule("table", _low(3)),              # LD64_GOT_LO12_NC
}


class ElfMachine(NamedTuple):
    """``relative`` and ``symbolic``: the kinds of relocations that the loader makes, of addresses
    in the object and in other libraries; ``stub``: code that jumps to an entry of the table."""

    rules: dict[int, RelocationRule]
    relative: int
    symbolic: int
    stub: Callable[[int, int], bytes]


def _x86_stub(place: int, entry: int) -> bytes:
    """``jmp *entry(%rip)``."""
    return b"\xff\x25" + (entry - place - 6).to_bytes(4, "little", signed=True) + b"\xcc\xcc"


def _arm_stub(place: int, entry: int) -> bytes:
    """``adrp x16, entry; ldr x16, [x16, :lo12:entry]; br x16; nop``."""
    code = bytearray(struct.pack("<4I", 0x90000010, 0xF9400210, 0xD61F0200, 0xD503201F))
    _page(code, 0, entry, place)
    _low(3)(code, 4, entry, place)
    return bytes(code)


MACHINES = {62: ElfMachine(_X86_64, 8, 6, _x86_stub),
            183: ElfMachine(_AARCH64, 1027, 1025, _arm_stub)}
STUB_BYTES = {62: 8, 183: 16}


def rule_of(machine: int, kind: int) -> RelocationRule:
    """The rule of a kind of relocation; one that nobody has written is an internal error."""
    rule = MACHINES[machine].rules.get(kind)
    if rule is None:
        raise InternalError(f"a relocation of kind {kind} has no rule for machine {machine}")
    return rule
