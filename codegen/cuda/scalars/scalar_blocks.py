"""The blocks of one LLVM function as C++: labels and jumps, and copies for phis.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from fusec.core.records import dataclass, field

from .emitter import CudaEmitter
from .scalar_instructions import (
    BINARY,
    CASTS,
    MEMORY,
    NotPrintableError,
    Value,
    binary,
    call,
    cast,
    compare,
    constant,
    cpp_type,
    overflows,
)

_NAME = r"%[\w.$-]+"
_SETTING = re.compile(rf"({_NAME}) = (.*)")
_FLAGS = re.compile(r"(?<=[a-z]) (?:nuw|nsw|nusw|exact|disjoint|nneg|samesign|inbounds)(?= )")
_AFTER = re.compile(r"(?:, align \d+|, ![\w.]+ ![\w.]+|(?<=\)) #\d+)+$")
_ATTRIBUTES = re.compile(
    r"\b(?:noundef|nonnull|signext|zeroext|inreg|range\([^)]*\)|captures\([^)]*\)) ")
RESULT = "fusec.result"  # what an IR calls with the function's result, unless it raised
MOST_POLLS = 1 << 12  # jumps back between looks at memory: see `Printer._poll`


@dataclass
class Phi:
    """The value at a block's entry, by the block before."""

    name: str
    kind: str
    sources: dict[str, str]


@dataclass
class Block:
    label: str
    phis: list[Phi] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


def blocks_of(text: str) -> list[Block]:
    """The blocks of a function's body, the first of which has no label before it, or has."""
    blocks = [Block("")]
    for line in _whole_lines(text):
        label = re.match(r"([\w.$-]+):", line)
        if label is not None:
            blocks.append(Block(label[1]))
            continue
        phi = re.match(rf"({_NAME}) = phi (.+?) (\[.*)", line)
        if phi is None:
            blocks[-1].lines.append(line)
        else:
            pairs = re.findall(r"\[ (\S+), %(\S+) \]", phi[3])
            blocks[-1].phis.append(Phi(phi[1], phi[2], {b: v for v, b in pairs}))
    return [b for b in blocks if b.lines]


def doomed(blocks: Sequence[Block]) -> set[str]:
    """Labels from which no way leads to a result: there Numba builds an exception."""
    after = {b.label: re.findall(r"label %([\w.$-]+)", b.lines[-1]) for b in blocks}
    found = {b.label for b in blocks if not any(f"@{RESULT}(" in line for line in b.lines)}
    while kept := {b for b in found if any(to not in found for to in after[b])}:
        found -= kept
    return found


def _whole_lines(text: str) -> Iterator[str]:
    """Instructions, a switch's in one line, without comments and intrinsics for optimisers."""
    names: dict[str, str] = {}
    text = re.sub(r'"([^"]*)"', lambda m: names.setdefault(m[1], f"quoted.{len(names)}"), text)
    text = re.sub(r"\[\n(.*?)\n *\]", lambda m: "[" + m[1].replace("\n", "") + " ]", text,
                  flags=re.DOTALL)
    for line in text.splitlines():
        line = _AFTER.sub("", line.partition(" ;")[0].strip())
        if line and not line.startswith(";"):
            yield _ATTRIBUTES.sub("", _FLAGS.sub("", line))


class Printer:
    """One function's text."""

    def __init__(
        self, blocks: Sequence[Block], em: CudaEmitter, tables: Mapping[str, tuple[str, str]],
        defined: frozenset[str],
    ) -> None:
        self.blocks, self.em, self.tables, self.defined = blocks, em, tables, defined
        self.order = {block.label: number for number, block in enumerate(blocks)}
        self.doomed = doomed(blocks)
        self.phis = {b.label: b.phis if b.label not in self.doomed else [] for b in blocks}
        self.names: dict[str, str] = {}
        self.elements: dict[str, tuple[str, str]] = {}  # by a pointer's name: a table's type, text
        self.declared: list[str] = []
        self.lines: list[str] = []
        self.polls = False

    def body(self, parameters: Sequence[str]) -> list[str]:
        """The statements; ``parameters`` are LLVM's names of ``x0``, ``x1``, …"""
        self.names.update((name, f"x{n}") for n, name in enumerate(parameters))
        for phis in self.phis.values():
            for phi in phis:
                self._declare(phi.name, phi.kind)
        for block in self.blocks:
            self._block(block)
        if self.polls:
            self.declared.append("u32 polls = 0; volatile u32 looked_at = 0;")
        return [*self.declared, *self.lines]

    # -- values

    def value(self, kind: str, text: str) -> str:
        """An operand."""
        if not text.startswith("%"):
            return constant(kind, text)
        if text not in self.names:
            self._declare(text, kind)
        return self.names[text]

    def _declare(self, name: str, kind: str) -> None:
        if name not in self.names:
            self.names[name] = f"v{len(self.names)}"
            self.declared.append(f"{cpp_type(kind)} {self.names[name]};")

    def set(self, name: str, kind: str, text: str) -> None:
        self._declare(name, kind)
        self.lines.append(f"{self.names[name]} = {text};")

    # -- blocks

    def _block(self, block: Block) -> None:
        if self.order[block.label]:
            self.lines.append(f"b{self.order[block.label]}:")
        if block.label in self.doomed:
            self.lines.append("goto done;")
            return
        for line in block.lines:
            setting = _SETTING.match(line)
            if setting is not None:
                self._instruction(setting[1], setting[2])
            else:
                self._without_value(block.label, line)

    def _instruction(self, name: str, text: str) -> None:
        op = text.partition(" ")[0]
        op = "call" if op in ("tail", "musttail", "notail") else op
        rule = _RULES.get(op) or (_binary if op in BINARY else _cast if op in CASTS else None)
        if rule is None:
            raise NotPrintableError(_unknown(text))
        rule(self, name, text)

    def _without_value(self, label: str, line: str) -> None:
        for pattern, rule in _STATEMENTS:
            found = pattern.fullmatch(line)
            if found is not None:
                rule(self, label, found)
                return
        called = re.search(r"call .*@([\w.$-]+)\(", line)
        raise NotPrintableError(f"a call of {called[1]}" if called else _unknown(line))

    # -- edges

    def jump(self, source: str, target: str) -> str:
        """The copies of an edge: all values that its end begins with are set at once."""
        values = [(self.names[phi.name], cpp_type(phi.kind),
                   self.value(phi.kind, phi.sources[source])) for phi in self.phis[target]]
        moved = [(name, kind, text) for name, kind, text in values if name != text]
        if len(moved) == 1:
            texts = [f"{moved[0][0]} = {moved[0][2]};"]
        else:
            texts = [f"const {kind} n{k} = {text};" for k, (_, kind, text) in enumerate(moved)]
            texts += [f"{name} = n{k};" for k, (name, _, _) in enumerate(moved)]
        if self.order[target] <= self.order[source]:
            texts.append(self._poll())
        texts.append(f"goto b{self.order[target]};")
        return texts[0] if len(texts) == 1 else f"{{ {' '.join(texts)} }}"

    def _poll(self) -> str:
        """C++ may take a loop without effects for one that ends; reading volatile memory is one."""
        self.polls = True
        return f"if (++polls % {MOST_POLLS} == 0) static_cast<void>(looked_at);"


# ------------------------------------------------------------------------------------ instructions


def _unknown(text: str) -> str:
    op = text.partition(" ")[0]
    return MEMORY if op in ("getelementptr", "load", "store") else f"LLVM's instruction {op}"


def _matched(pattern: str, text: str) -> tuple[str, ...]:
    found = re.fullmatch(pattern, text)
    if found is None:
        raise NotPrintableError("vectors" if re.search(r"<\d+ x", text) else _unknown(text))
    return found.groups()


def _binary(printer: Printer, name: str, text: str) -> None:
    op, kind, a, b = _matched(r"(\w+) (\S+) (\S+), (\S+)", text)
    printer.set(name, kind, binary(op, kind, printer.value(kind, a), printer.value(kind, b)))


def _cast(printer: Printer, name: str, text: str) -> None:
    op, source, value, target = _matched(r"(\w+) (\S+) (\S+) to (\S+)", text)
    printer.set(name, target, cast(op, source, printer.value(source, value), target))


def _compare(printer: Printer, name: str, text: str) -> None:
    predicate, kind, a, b = _matched(r"[if]cmp (\w+) (\S+) (\S+), (\S+)", text)
    printer.set(name, "i1", compare(predicate, kind, printer.value(kind, a),
                                     printer.value(kind, b)))


def _select(printer: Printer, name: str, text: str) -> None:
    test, kind, yes, _, no = _matched(r"select i1 (\S+), (\S+) (\S+), (\S+) (\S+)", text)
    one, other = printer.value(kind, yes), printer.value(kind, no)
    printer.set(name, kind, f"{printer.value('i1', test)} ? {one} : {other}")


def _negative(printer: Printer, name: str, text: str) -> None:
    kind, value = _matched(r"fneg (\S+) (\S+)", text)
    printer.set(name, kind, f"-{printer.value(kind, value)}")


def _frozen(printer: Printer, name: str, text: str) -> None:
    kind, value = _matched(r"freeze (\S+) (\S+)", text)
    printer.set(name, kind, printer.value(kind, value))


def _call(printer: Printer, name: str, text: str) -> None:
    if "with.overflow" in text:
        _with_overflow(printer, name, text)
        return
    kind, callee, operands = _matched(r"(?:\w+ )?call (?:fastcc )?(\S+) @([\w.$-]+)\((.*)\)", text)
    if callee in printer.defined:  # all others stand where they were called
        raise NotPrintableError("it calls itself")
    printer.set(name, kind, call(callee, kind, _arguments(printer, operands), printer.em))


def _with_overflow(printer: Printer, name: str, text: str) -> None:
    """Two values: the result, and whether it is another than that of all integers."""
    kind, sign, op, operands = _matched(
        r"(?:\w+ )?call { (\w+), i1 } @llvm\.([su])(\w+)\.with\.overflow\.\w+\((.*)\)", text)
    (_, a), (_, b) = _arguments(printer, operands)
    printer.set(f"{name}#0", kind, binary(op, kind, a, b))
    printer.set(f"{name}#1", "i1", overflows(op, sign == "s", kind, a, b))


def _part(printer: Printer, name: str, text: str) -> None:
    kind, pair, number = _matched(r"extractvalue { (\w+), i1 } (\S+), (\d)", text)
    kind = "i1" if number == "1" else kind
    printer.set(name, kind, printer.value(kind, f"{pair}#{number}"))


def _arguments(printer: Printer, operands: str) -> list[Value]:
    pairs = [_matched(r"(\S+) (\S+)", text) for text in operands.split(", ")] if operands else []
    return [(kind, printer.value(kind, value)) for kind, value in pairs]


def _element_of_table(printer: Printer, name: str, text: str) -> None:
    """The address of an element: nothing is set, a load names it."""
    kind, table, index_kind, index = _matched(
        r"getelementptr (?:\[\d+ x )?(\w+)\]?, ptr @([\w.$-]+)(?:, i\d+ 0)?, (i\d+) (\S+)", text)
    stored, array = printer.tables.get(table, ("", ""))
    if stored != kind:
        raise NotPrintableError(f"bytes of {table}")
    printer.elements[name] = kind, f"{array}[{printer.value(index_kind, index)}]"


def _reserved(printer: Printer, name: str, text: str) -> None:
    """Memory: nothing is set, and uses of it are refused."""


def _load(printer: Printer, name: str, text: str) -> None:
    kind, pointer = _matched(r"load (\S+), ptr (\S+)", text)
    stored, element = printer.elements.get(pointer, ("", ""))
    if stored != kind:
        raise NotPrintableError(MEMORY)
    printer.set(name, kind, element)


_RULES: dict[str, Callable[[Printer, str, str], None]] = {
    "icmp": _compare, "fcmp": _compare, "select": _select, "fneg": _negative, "freeze": _frozen,
    "call": _call, "extractvalue": _part, "alloca": _reserved,
    "getelementptr": _element_of_table, "load": _load,
}


# -------------------------------------------------------------------------------------- statements


def _branch(printer: Printer, label: str, found: re.Match[str]) -> None:
    printer.lines.append(printer.jump(label, found[1]))


def _two_ways(printer: Printer, label: str, found: re.Match[str]) -> None:
    test = printer.value("i1", found[1])
    printer.lines.append(f"if ({test}) {printer.jump(label, found[2])}")
    printer.lines.append(printer.jump(label, found[3]))


def _switch(printer: Printer, label: str, found: re.Match[str]) -> None:
    kind, value = found[1], printer.value(found[1], found[2])
    for case, target in re.findall(r"i\d+ (-?\w+), label %(\S+)", found[4]):
        jump = printer.jump(label, target)
        printer.lines.append(f"if ({value} == {constant(kind, case)}) {jump}")
    printer.lines.append(printer.jump(label, found[3]))


def _result(printer: Printer, label: str, found: re.Match[str]) -> None:
    ((_, value),) = _arguments(printer, found[1])
    printer.lines += [f"out = {value};", "bad = false;"]


def _end(printer: Printer, label: str, found: re.Match[str]) -> None:
    printer.lines.append("goto done;")


def _nothing(printer: Printer, label: str, found: re.Match[str]) -> None:
    """An intrinsic that only optimisers read."""


_STATEMENTS: list[tuple[re.Pattern[str], Callable[[Printer, str, re.Match[str]], None]]] = [
    (re.compile(r"br label %(\S+)"), _branch),
    (re.compile(r"br i1 (\S+), label %(\S+), label %(\S+)"), _two_ways),
    (re.compile(r"switch (\S+) (\S+), label %(\S+) \[(.*)\]"), _switch),
    (re.compile(rf"(?:tail )?call void @{re.escape(RESULT)}\((.*)\)"), _result),
    (re.compile(r"ret void|unreachable"), _end),
    (re.compile(r"(?:tail )?call void @llvm\.(?:experimental|lifetime|assume)\.?.*"), _nothing),
]
