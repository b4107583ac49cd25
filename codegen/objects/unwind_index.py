"""The index of unwind tables that debuggers and profilers look functions up in: ``.eh_frame_hdr``.

The format is that of the Linux Standard Base, chapter 10.6: a table of functions, sorted, with
offsets from the index itself.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from .elf_object import InputSection

_RELATIVE_4, _COUNT_4, _FROM_INDEX_4 = 0x1B, 0x03, 0x3B  # encodings of numbers
_HEAD = struct.Struct("<BBBBiI")


def index_size(frames: Sequence[InputSection]) -> int:
    """The bytes of the index of these sections."""
    return _HEAD.size + 8 * sum(1 for section in frames for _ in _functions(section.data))


def index_of(frames: bytes, frames_at: int, index_at: int) -> bytes:
    """The index at its address, of unwind tables at theirs, whose relocations are made."""
    entries = sorted(
        (frames_at + at + 8 + struct.unpack_from("<i", frames, at + 8)[0], frames_at + at)
        for at in _functions(frames))
    head = _HEAD.pack(1, _RELATIVE_4, _COUNT_4, _FROM_INDEX_4, frames_at - index_at - 4,
                      len(entries))
    return head + b"".join(
        struct.pack("<ii", begin - index_at, at - index_at) for begin, at in entries)


def _functions(frames: bytes) -> Iterator[int]:
    """Where the records of functions begin; the others (their second word is 0) are shared."""
    at = 0
    while at + 8 <= len(frames):
        length, of = struct.unpack_from("<II", frames, at)
        if length and of:
            yield at
        at += 4 + length
