"""Static libraries: objects in the format of ``ar``, with the table of symbols that linkers read.

The format is that of System V and GNU: members behind headers of text, the first one named ``/``
with the offsets of members by symbol, big endian.
"""

from __future__ import annotations

from collections.abc import Mapping

from .elf_object import ElfObject

_MAGIC = b"!<arch>\n"
_MOST_NAME = 15  # characters of a member's name


def archive(members: Mapping[str, bytes]) -> bytes:
    """The archive of these objects, by name; names have at most 15 characters."""
    symbols = {name: _defined(data) for name, data in members.items()}
    names = [symbol for found in symbols.values() for symbol in found]
    table = 4 + 4 * len(names) + sum(len(name) + 1 for name in names)
    at, offsets = len(_MAGIC) + 60 + table + table % 2, dict[str, int]()
    for name, data in members.items():
        offsets[name] = at
        at += 60 + len(data) + len(data) % 2
    places = [offsets[name] for name, found in symbols.items() for _ in found]
    index = b"".join(n.to_bytes(4, "big") for n in (len(names), *places)) + b"".join(
        name.encode() + b"\0" for name in names)
    return _MAGIC + _member("/", index) + b"".join(
        _member(f"{name}/", data) for name, data in members.items())


def _defined(data: bytes) -> list[str]:
    return [s.name for s in ElfObject(data).symbols if s.is_global and s.section is not None]


def _member(name: str, data: bytes) -> bytes:
    assert len(name) <= _MOST_NAME + 1, name
    head = f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(data):<10}`\n".encode()
    return head + data + b"\n" * (len(data) % 2)


