"""Bytecode in one form for all Python versions, for the decompiler."""

from __future__ import annotations

import dis
import itertools
import sys
from bisect import bisect_left
from collections.abc import Iterator
from types import CodeType
from typing import Any

from fusec.core.records import dataclass

Position = tuple[int | None, int | None, int | None, int | None]

_DROPPED = frozenset({
    "CACHE", "PUSH_NULL", "PRECALL", "NOP", "EXTENDED_ARG", "RESUME", "COPY_FREE_VARS", "MAKE_CELL",
    "TO_BOOL", "RETURN_GENERATOR", "END_FOR"})
_SCOPES = ("_FAST", "_DEREF", "_GLOBAL", "_NAME")
_RENAMED = {"LOAD_METHOD": "LOAD_ATTR", "LOAD_FAST_CHECK": "LOAD", "LOAD_CLASSDEREF": "LOAD",
            "LOAD_CLOSURE": "LOAD", "JUMP": "JUMP_FORWARD",
            "JUMP_BACKWARD_NO_INTERRUPT": "JUMP_BACKWARD",
            **{f"{verb}{scope}": verb for verb in ("LOAD", "STORE", "DELETE") for scope in _SCOPES}}
_JUMPS = frozenset((*dis.hasjrel, *dis.hasjabs))
_RESOLVED = frozenset((*dis.hasname, *dis.haslocal, *dis.hasfree, *dis.hascompare))
_CONSTANT = frozenset(dis.hasconst)


@dataclass(frozen=True, slots=True)
class CodeStep:
    """An instruction: ``arg`` is resolved (a name, a constant), ``to`` is the number of the step
    that a jump leads to, else -1."""

    op: str
    arg: Any
    to: int
    place: Position


def steps_of(code: CodeType) -> tuple[list[CodeStep], list[int]]:
    """The instructions that matter, and where each begins in the code."""
    instructions = list(dis.get_instructions(code))
    if sys.version_info >= (3, 13):  # the end of a loop takes two instructions
        instructions = [i for before, i in itertools.pairwise([instructions[0], *instructions])
                 if (before.opname, i.opname) != ("END_FOR", "POP_TOP")]
    rows = [(i.offset, *row) for i in instructions for row in _normalised(i, code)]
    offsets = [offset for offset, *_ in rows]
    steps = [CodeStep(op, arg, bisect_left(offsets, arg) if is_jump else -1, place)
             for _, op, arg, is_jump, place in rows]
    return steps, offsets


def _normalised(i: dis.Instruction, code: CodeType) -> Iterator[tuple[str, Any, bool, Position]]:
    place: Position = tuple(i.positions or (None,) * 4)  # type: ignore[assignment]
    op = i.opname.replace("_FORWARD_IF", "_IF").replace("_BACKWARD_IF", "_IF")
    arg: Any = i.argval if i.opcode in _RESOLVED else i.arg
    if i.opcode in _CONSTANT and i.arg is not None:
        arg = code.co_consts[i.arg]
    if op in _DROPPED:
        return
    if op.endswith(("IF_NONE", "IF_NOT_NONE")):
        yield "IS_NONE", None, False, place
        yield "POP_JUMP_IF_" + ("FALSE" if "NOT" in op else "TRUE"), i.argval, True, place
    elif i.opcode in _JUMPS:
        yield _RENAMED.get(op, op), i.argval, True, place
    elif op == "RETURN_CONST":
        yield "LOAD_CONST", arg, False, place
        yield "RETURN_VALUE", None, False, place
    elif op.count("_FAST") == 2:  # two instructions in one
        verbs = [word for word in op.split("_") if word != "FAST"]
        for verb, name in zip(verbs, arg, strict=True):
            yield verb, name, False, place
    else:
        yield _RENAMED.get(op, op), arg, False, place
