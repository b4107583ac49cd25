"""Machine instructions of CUDA kernels, from NVIDIA's disassembler: no GPU is needed.

The count is of the way that most threads take for one pack of elements: once through each innermost
loop with the widest accesses to global memory, and those apart from it that use shared memory;
through the kernel where more of the widest accesses are in no loop.  Of several ways it is the
shortest with the widest accesses: ends of rows and addresses that are not aligned take others.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from fusec.core.records import dataclass, field

CLASSES = ("memory", "integer", "float", "double", "branch", "other")
_LINE = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?P<text>.*?)\s*;")
_LABEL = re.compile(r"^(?P<label>\.L_[\w.]+):")
_TARGET = re.compile(r"`\((?P<label>\.L_[\w.]+)\)")
_CONDITION = re.compile(r"\bU?P\d")  # of a branch that may go on
_WIDE = 8  # bytes of an access of several elements
_ENDS = ("BRA", "EXIT", "RET", "BRX", "JMP")
_WIDTH = re.compile(r"^(?:LDG|STG|LD|ST)\.E(?:\.[A-Z]+)*?(?:\.(?P<bits>64|128))?(?:\.|$)")
_OF_CLASS = {  # by the first letters of an opcode
    "memory": ("LD", "ST", "ATOM", "RED", "CCTL", "MEMBAR", "ULD", "ERRBAR"),
    "double": ("DADD", "DFMA", "DMUL", "DSET", "DMNMX"),
    "float": ("F", "MUFU", "HADD", "HMUL", "HFMA", "HSET", "HMNMX", "I2F", "RRO", "FRND"),
    "branch": ("BRA", "BRX", "BSSY", "BSYNC", "BREAK", "EXIT", "CALL", "RET", "BAR", "WARPSYNC",
               "YIELD", "BMOV", "JMP", "NANOSLEEP"),
    "integer": ("I", "UI", "LOP", "ULOP", "SHF", "USHF", "LEA", "ULEA", "SEL", "USEL", "VI", "VABS",
                "PRMT", "UPRMT", "POPC", "FLO", "BREV", "SGXT", "PLOP", "UPLOP", "R2UR", "P2R",
                "R2P", "BMSK", "XMAD"),
}


@dataclass
class _Block:
    """Instructions without a branch between them; ``after`` are the blocks that may follow."""

    opcodes: list[str] = field(default_factory=list)
    after: list[int] = field(default_factory=list)

    @property
    def width(self) -> int:
        """Bytes of its widest access to global memory."""
        return max(map(_access_bytes, self.opcodes), default=0)

    @property
    def is_shared(self) -> bool:
        """Whether it reads or writes shared memory."""
        return any(opcode.startswith(("LDS", "STS")) for opcode in self.opcodes)


def of_kernel(text: str, name: str) -> str:
    """The part of a module's machine code that is one kernel."""
    _, found, rest = text.partition(f"\t.section\t.text.{name},")
    assert found, name
    return rest.partition("\t.section\t")[0]


def instructions(text: str) -> dict[str, int]:
    """How many instructions of each class a pack takes in the kernel with this machine code."""
    blocks = _blocks(text)
    counts = Counter(class_of(opcode) for number in _usual_way(blocks)
                     for opcode in blocks[number].opcodes)
    return {name: counts[name] for name in CLASSES}


def iteration(text: str) -> dict[str, int]:
    """How many instructions of each class one turn of each inmost loop takes, the shortest way:
    of a disassembled kernel whose loops a lane's data end."""
    blocks = _blocks(text)
    counts = Counter(class_of(opcode) for first, last in _inmost(_loops(blocks))
                     for number in _way(blocks, first, [last], (first, last))
                     for opcode in blocks[number].opcodes)
    return {name: counts[name] for name in CLASSES}


def class_of(opcode: str) -> str:
    """One of `CLASSES`."""
    name = opcode.partition(".")[0]
    if name in ("LDC", "ULDC"):  # of an argument
        return "other"
    for kind, heads in _OF_CLASS.items():
        if name.startswith(heads):
            return kind
    return "other"


def _access_bytes(opcode: str) -> int:
    found = _WIDTH.match(opcode)
    return 0 if found is None else int(found["bits"] or 32) // 8


# --------------------------------------------------------------------------------- control flow


def _blocks(text: str) -> list[_Block]:
    """The blocks of the text's kernel, in order."""
    blocks, labels = [_Block()], dict[str, int]()
    leaves: dict[int, tuple[list[str], bool]] = {}  # targets, and whether the next block may follow
    for line in text.splitlines():
        label, found = _LABEL.match(line), _LINE.match(line)
        if label is not None:
            if blocks[-1].opcodes:
                leaves[len(blocks) - 1] = [], True
                blocks.append(_Block())
            labels[label["label"]] = len(blocks) - 1
        elif found is not None and not found["text"].startswith("NOP"):
            is_predicated, opcode = _parted(found["text"])
            blocks[-1].opcodes.append(opcode)
            if opcode.partition(".")[0] in _ENDS:
                leaves[len(blocks) - 1] = _TARGET.findall(found["text"]), (
                    is_predicated or _CONDITION.search(found["text"]) is not None)
                blocks.append(_Block())
    for number, block in enumerate(blocks[:-1]):
        targets, goes_on = leaves.get(number, ([], False))
        block.after = [labels[t] for t in targets if t in labels] + [number + 1] * goes_on
    return blocks


def _parted(text: str) -> tuple[bool, str]:
    """Whether an instruction has a predicate, and its opcode."""
    words = text.split()
    return (True, words[1]) if words[0].startswith("@") else (False, words[0])


def _loops(blocks: Sequence[_Block]) -> list[tuple[int, int]]:
    """The first and last blocks of loops; a lone jump stands after a kernel's end."""
    return [(first, last) for last, block in enumerate(blocks) for first in block.after
            if first <= last and block.opcodes != ["BRA"]]


def _usual_way(blocks: Sequence[_Block]) -> list[int]:
    """The numbers of the blocks that a pack goes through."""
    loops = _loops(blocks)
    widest = max((b.width for b in blocks), default=0)
    reading = _inmost([loop for loop in loops if any(
        b.width == widest for b in _within(blocks, loop))])
    through = _way(blocks, 0, [n for n, b in enumerate(blocks) if "EXIT" in b.opcodes[-1:]])
    if not _has_more_inside(blocks, reading, through, widest):
        return through
    shared = _inmost([loop for loop in loops if any(b.is_shared for b in _within(blocks, loop))])
    apart = [loop for loop in shared if not any(
        loop[0] <= last and first <= loop[1] for first, last in reading)]
    return [number for loop in [*reading, *apart] for number in _way(
        blocks, loop[0], [loop[1]], loop)]


def _has_more_inside(
    blocks: Sequence[_Block], loops: Sequence[tuple[int, int]], through: Sequence[int], widest: int
) -> bool:
    """Whether a loop has at least as many of the widest accesses as the rest of the kernel."""
    def count(numbers: Iterable[int]) -> int:
        return sum(_access_bytes(opcode) == widest for n in numbers for opcode in blocks[n].opcodes)

    apart = [n for n in through if not any(first <= n <= last for first, last in loops)]
    return any(count(range(first, last + 1)) >= count(apart) for first, last in loops)


def _within(blocks: Sequence[_Block], loop: tuple[int, int]) -> Sequence[_Block]:
    return blocks[loop[0]:loop[1] + 1]


def _inmost(loops: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Those that contain none of the others."""
    return [loop for loop in loops if not any(
        other != loop and loop[0] <= other[0] and other[1] <= loop[1] for other in loops)]


def _way(
    blocks: Sequence[_Block], start: int, ends: Sequence[int],
    within: tuple[int, int] | None = None,
) -> list[int]:
    """The shortest way forward from one block to one of others, through the widest accesses."""
    low, high = within or (0, len(blocks) - 1)
    least = min(_WIDE, max((b.width for b in blocks), default=0))
    best: dict[int, tuple[tuple[int, int], list[int]]] = {}
    for number in range(start, high + 1):
        before = [best[p] for p in range(low, number) if p in best and number in blocks[p].after]
        if number != start and not before:
            continue
        (narrow, length), way = min(before, default=((0, 0), []), key=lambda known: known[0])
        block = blocks[number]
        wide = sum(n for n in map(_access_bytes, block.opcodes) if n >= max(least, 1))
        best[number] = (narrow - wide, length + len(block.opcodes)), [*way, number]
    reached = [best[end] for end in ends if end in best]
    return min(reached, default=((0, 0), [start]), key=lambda known: known[0])[1]
