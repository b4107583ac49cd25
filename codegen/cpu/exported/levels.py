"""Which level of x86-64 a CPU has, asked of the CPU itself at the first call of a library."""

from __future__ import annotations

from collections.abc import Sequence

from ...machine_code.targets import CpuTarget
from ..emitter import LlvmEmitter

_CPUID = ('{{i32, i32, i32, i32}} asm sideeffect "cpuid", '
          '"={{ax}},={{bx}},={{cx}},={{dx}},0,2,~{{dirflag}},~{{fpsr}},~{{flags}}"')
_XGETBV = ('{i32, i32} asm sideeffect "xgetbv", '
           '"={ax},={dx},{cx},~{dirflag},~{fpsr},~{flags}"(i32 0)')
# Bits of XCR0: which registers the system saves.  Intel's manual, volume 1, section 13.3.
_SAVED = {"v2": 0, "v3": 0b110, "v4": 0b11100110}
OSXSAVE = (1, 2, 1 << 27)
UNKNOWN = -2


def level_text(prefix: str, targets: Sequence[CpuTarget]) -> tuple[LlvmEmitter, str]:
    """``i32 prefix.level()``: the number of the highest level of these, the lowest first, that the
    CPU has; -1: none.  It is asked once: several threads may ask at once, with one answer."""
    em = LlvmEmitter()
    found = f"@{prefix}.found"
    known = em.value(f"load atomic i32, ptr {found} monotonic, align 4")
    with em.branch(em.value(f"icmp ne i32 {known}, {UNKNOWN}")):
        em.line(f"ret i32 {known}")
        em.label(em.fresh("never"))
    best = "-1"
    leaves = _leaves(em, targets)
    for number, target in enumerate(targets):
        has = _has(em, target, leaves)
        best = em.value(f"select i1 {has}, i32 {number}, i32 {best}")
    em.line(f"store atomic i32 {best}, ptr {found} monotonic, align 4")
    em.line(f"ret i32 {best}")
    text = "\n".join([f"{found} = hidden global i32 {UNKNOWN}", "",
                      f"define hidden i32 @{prefix}.level() nounwind {{", "entry:",
                      *em.allocas, *em.lines, "}"])
    return em, text


def _leaves(em: LlvmEmitter, targets: Sequence[CpuTarget]) -> dict[int, list[str]]:
    """The four registers of each leaf, 0 where the CPU does not have the leaf; those of
    ``XGETBV`` are number -1."""
    wanted = sorted({leaf for t in targets for leaf, *_ in t.leaves})
    slots = {leaf: [em.alloca("i32", "leaf", 4) for _ in range(4)] for leaf in (*wanted, -1)}
    for registers in slots.values():
        for slot in registers:
            em.line(f"store i32 0, ptr {slot}")
    for leaf in wanted:
        most = em.value(f"extractvalue {{i32, i32, i32, i32}} {_asked(em, leaf & 0x80000000)}, 0")
        with em.branch(em.value(f"icmp uge i32 {most}, {leaf}")):
            answer = _asked(em, leaf)
            for k, slot in enumerate(slots[leaf]):
                value = em.value(f"extractvalue {{i32, i32, i32, i32}} {answer}, {k}")
                em.line(f"store i32 {value}, ptr {slot}")
    leaf, register, mask = OSXSAVE
    if leaf in slots:
        word = em.value(f"load i32, ptr {slots[leaf][register]}")
        with em.branch(em.value(f"icmp ne i32 {em.value(f'and i32 {word}, {mask}')}, 0")):
            saved = em.value(f"call {_XGETBV}")
            low = em.value(f"extractvalue {{i32, i32}} {saved}, 0")
            em.line(f"store i32 {low}, ptr {slots[-1][0]}")
    return slots


def _asked(em: LlvmEmitter, leaf: int) -> str:
    return em.value(f"call {_CPUID.format()}(i32 {leaf}, i32 0)")


def _has(em: LlvmEmitter, target: CpuTarget, leaves: dict[int, list[str]]) -> str:
    needs = [*target.leaves, (-1, 0, _SAVED[target.name])]
    has = "true"
    for leaf, register, mask in needs:
        word = em.value(f"and i32 {em.value(f'load i32, ptr {leaves[leaf][register]}')}, {mask}")
        has = em.value(f"and i1 {has}, {em.value(f'icmp eq i32 {word}, {mask}')}")
    return has
