"""Programs for aarch64 that are one call of an exported function: no C compiler, no libc.

The objects of a static library and a driver of our own are laid out as a shared object, whose
relocations are then made for one address, so that it is a program.  It reads the memory of the
call from its standard input, calls, and writes the memory to its standard output.
"""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fusec.codegen.exported.parts import ExportedFunction
from fusec.codegen.machine_code.llvm import object_code
from fusec.codegen.machine_code.targets import TARGETS, using
from fusec.codegen.objects import elf_object as elf
from fusec.codegen.objects.shared_object import PROGRAM, shared_object

QEMU = "qemu-aarch64"
BASE, RELATIVE = 0x400000, 1027
ALIGN = 64
_SYSTEM = "call i64 @system(i64 %number, i64 %a, i64 %b, i64 %c)"
# A call of the kernel; LLVM here cannot read aarch64's assembly, so the words stand in place of a
# function that it compiled: mov x8, x0; mov x0, x1; mov x1, x2; mov x2, x3; svc 0; ret.
_CODE = (0xAA0003E8, 0xAA0103E0, 0xAA0203E1, 0xAA0303E2, 0xD4000001, 0xD65F03C0)
_PLACE = "\n".join([
    "@word = hidden global i64 0", "define i64 @system(i64 %n, i64 %a, i64 %b, i64 %c) noinline {",
    *(f"  store volatile i64 %{name}, ptr @word" for name in "nabc" * 2),
    "  %r = load volatile i64, ptr @word", "  ret i64 %r", "}"])
_MOVED = """
define ptr @memcpy(ptr %to, ptr %from, i64 %n) nounwind {
  %r = call ptr @memmove(ptr %to, ptr %from, i64 %n)
  ret ptr %r
}
define ptr @memmove(ptr %to, ptr %from, i64 %n) nounwind {
entry:
  %up = icmp ult ptr %to, %from
  br label %test
test:
  %i = phi i64 [0, %entry], [%next, %body]
  %more = icmp ult i64 %i, %n
  br i1 %more, label %body, label %end
body:
  %next = add i64 %i, 1
  %back = sub i64 %n, %next
  %k = select i1 %up, i64 %i, i64 %back
  %p = getelementptr i8, ptr %from, i64 %k
  %q = getelementptr i8, ptr %to, i64 %k
  %byte = load volatile i8, ptr %p
  store volatile i8 %byte, ptr %q
  br label %test
end:
  ret ptr %to
}
define ptr @memset(ptr %to, i32 %value, i64 %n) nounwind {
entry:
  %byte = trunc i32 %value to i8
  br label %test
test:
  %i = phi i64 [0, %entry], [%next, %body]
  %more = icmp ult i64 %i, %n
  br i1 %more, label %body, label %end
body:
  %q = getelementptr i8, ptr %to, i64 %i
  store volatile i8 %byte, ptr %q
  %next = add i64 %i, 1
  br label %test
end:
  ret ptr %to
}
"""


def driver(call: str, declared: str, nbytes: int) -> str:
    """LLVM text of ``_start``: the call, on ``@memory``."""
    moved = [f"""
define void @{name}() nounwind {{
entry:
  br label %test
test:
  %done = phi i64 [0, %entry], [%sum, %step]
  %c = sub i64 {nbytes}, %done
  %none = icmp eq i64 %c, 0
  br i1 %none, label %end, label %step
step:
  %place = getelementptr i8, ptr @memory, i64 %done
  %b = ptrtoint ptr %place to i64
  %got = {_SYSTEM.replace("%number", number).replace("%a", stream)}
  %sum = add i64 %done, %got
  br label %test
end:
  ret void
}}""" for name, number, stream in (("take", "63", "0"), ("give", "64", "1"))]
    leave = (_SYSTEM.replace("%number", "93").replace("%a", "%wide")
             .replace("%b", "0").replace("%c", "0"))
    return "\n".join([
        f"@memory = hidden global [{max(nbytes, 1)} x i8] zeroinitializer, align {ALIGN}", declared,
        _PLACE, _MOVED, *moved, "define void @_start() nounwind {", "  call void @take()",
        f"  {call}", "  call void @give()", "  %small = and i32 %code, 255",
        "  %wide = zext i32 %small to i64",
        f"  %left = {leave}", "  ret void", "}"])


def run(
    library: Any, function: ExportedFunction, sizes: Sequence[int], leaves: Sequence[Any],
    results: Sequence[np.ndarray], workspace: int, folder: Path,
) -> int:
    """Call the function with arguments that are arrays or numbers; ``results`` are filled in, as
    are arguments that it writes.  The low byte of its code."""
    arrays = [np.asarray(x, p.dtype) for x, p in zip(leaves, function.arguments, strict=True)]
    blocks = [x for x, p in zip(arrays, function.arguments, strict=True) if p.is_array]
    blocks += [*results, np.zeros(workspace, np.uint8)]
    at, places = 0, list[int]()
    for block in blocks:
        places.append(at)
        at += -(-max(block.nbytes, 1) // ALIGN) * ALIGN
    image = bytearray(at)
    for place, block in zip(places, blocks, strict=True):
        image[place: place + block.nbytes] = block.tobytes()
    pointers = iter([f"ptr getelementptr (i8, ptr @memory, i64 {p})" for p in places])
    passed = [f"i64 {n}" for n in sizes]
    for x, p in zip(arrays, function.arguments, strict=True):
        passed.append(next(pointers) if p.is_array else _number(x))
    passed += [*pointers, f"i64 {workspace}"]
    types = ", ".join(p.split()[0] for p in passed)
    call = f"%code = call i32 @{function.name}({', '.join(passed)})"
    text = driver(call, f"declare i32 @{function.name}({types})", at)
    program = folder / "program"
    program.write_bytes(_program(library.static.read_bytes(), text))
    program.chmod(0o755)
    ran = subprocess.run([QEMU, program], input=bytes(image), capture_output=True, timeout=300)
    assert len(ran.stdout) == at, (ran.returncode, ran.stderr)
    for place, block in zip(places[:-1], blocks[:-1], strict=True):
        block[...] = np.frombuffer(ran.stdout, block.dtype, block.size, place).reshape(block.shape)
    return ran.returncode


def _number(value: np.ndarray) -> str:
    assert value.dtype == np.float64 or value.dtype.kind in "iu"
    if value.dtype.kind in "iu":
        return f"i{8 * value.itemsize} {value}"
    return f"double 0x{value.view(np.uint64):016X}"


def _program(archive: bytes, text: str) -> bytes:
    target = TARGETS["aarch64"]
    with using(target):
        made = object_code(text, target, 0, exported=frozenset({"_start", "system"}))
    names = ["_start", "system"]
    image = bytearray(shared_object([*_members(archive), made], "program", names, {}))
    header = elf.HEADER.unpack_from(image)
    sections = [elf.SECTION.unpack_from(image, header[6] + elf.SECTION.size * k)
                for k in range(header[12])]
    segments = [[*PROGRAM.unpack_from(image, header[5] + PROGRAM.size * k)]
                for k in range(header[10])]
    symbols = next(s for s in sections if s[1] == elf.SHT_DYNSYM)
    entry, system = (s for s in elf.SYMBOL.iter_unpack(
        image[symbols[4]: symbols[4] + symbols[5]]) if s[4])  # in the order of their names
    code = struct.pack(f"<{len(_CODE)}I", *_CODE)
    assert system[5] >= len(code)
    at = _offset(segments, system[4])
    image[at: at + len(code)] = code
    for section in (s for s in sections if s[1] == elf.SHT_RELA):
        for place, kind, addend in elf.RELA.iter_unpack(
                image[section[4]: section[4] + section[5]]):
            assert kind == RELATIVE, "another library is needed"
            struct.pack_into("<Q", image, _offset(segments, place), BASE + addend)
    for k, segment in enumerate(segments):
        segment[3] += BASE
        segment[4] += BASE
        PROGRAM.pack_into(image, header[5] + PROGRAM.size * k, *segment)
    elf.HEADER.pack_into(image, 0, header[0], 2, *header[2:4], BASE + entry[4], *header[5:])
    return bytes(image)


def _offset(segments: Sequence[Sequence[int]], address: int) -> int:
    """Where an address lies in the file."""
    return next(s[2] + address - s[3] for s in segments if s[0] == 1 and (
        s[3] <= address < s[3] + s[5]))


def _members(archive: bytes) -> list[bytes]:
    """The objects of a static library; the first member is the table of symbols."""
    at, found = 8, list[bytes]()
    while at < len(archive):
        size = int(archive[at + 48: at + 58])
        found.append(archive[at + 60: at + 60 + size])
        at += 60 + size + size % 2
    return found[1:]
