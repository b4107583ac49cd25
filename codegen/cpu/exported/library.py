"""The objects of a library: one of its entries, and those of each level of the CPU."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack

from fusec.core.records import dataclass

from ...exported.parts import CField, ExportedFunction
from ...machine_code.llvm import object_code
from ...machine_code.targets import BASELINES, CpuTarget, using
from ..compile import LINKED_SPEED, module_text
from ..emitter import LlvmEmitter, with_weights
from ..loops.program import BRANCH_SPEED, LONG_SPEED, LONG_TEXT, LOOP_SPEED
from ..size_text import NoTextError
from .call_printer import print_call
from .call_text import CallText, LevelTexts
from .dlpack_text import dlpack_text
from .entry_text import CEntry, EntryText
from .error_text import error_text, quoted
from .globals_text import parallel_name, parallel_text, state_names, state_text
from .levels import level_text
from .pool_text import POOL, pool_text


@dataclass
class LibraryObjects:
    """Relocatable objects by name, and the names that who links or loads them may use."""

    objects: Mapping[str, bytes]
    exported: Sequence[str]
    unique: Sequence[str]  # of these, what all libraries of a process have in common


def library_objects(
    name: str, functions: Sequence[ExportedFunction], fields: Sequence[CField],
    targets: Sequence[CpuTarget], threads: str,
) -> LibraryObjects:
    """The objects of a library of these functions; ``targets`` are of one machine, the lowest
    first."""
    constants: dict[str, bytes] = {}
    entries = [CEntry(f) for f in functions]
    objects: dict[str, bytes] = {}
    for target in targets:
        with using(target):
            level = LevelTexts(f"{name}.{target.name}", constants)
            for number, entry in enumerate(entries):
                _print_calls(entry, number, level, target, threads)
            objects |= _objects_of(level, target)
    baseline = BASELINES[targets[0].machine]
    exported = frozenset([*(n for f in functions for n in f.symbols),
                          *(state_names(name) if fields else ()),
                          *([parallel_name(name)] if threads == "callback" else []),
                          *([POOL] if threads == "pool" else [])])
    with using(baseline):
        text = _entry_module(name, entries, fields, targets, constants, threads)
        objects = {"entry.o": object_code(text, baseline, 1, exported=exported),
                   **objects}
    return LibraryObjects(objects, sorted(exported), [POOL] if threads == "pool" else [])


def _print_calls(
    entry: CEntry, number: int, level: LevelTexts, target: CpuTarget, threads: str
) -> None:
    is_first, function = not entry.workspaces, entry.function
    for k, variant in enumerate([*function.variants]):
        name = f"{level.prefix}.call{number}_{k}"
        call = CallText(function, variant, name, level, threads)
        try:
            with ExitStack() as stack:
                if variant.reopened is not None:
                    stack.enter_context(variant.reopened())
                text = print_call(call)
        except NoTextError:
            if not k or not is_first:
                raise
            function.variants.remove(variant)  # a call of such sizes is an error
            continue
        if is_first:
            entry.workspaces.append(call.workspace)
            entry.codes.append([])
        entry.codes[function.variants.index(variant)].append(name)
        level.calls.append((call.em, _with_externals(call, text)))


def _with_externals(call: CallText, text: str) -> str:
    """The function, with declarations of what other objects of the library define."""
    lines = []
    for name in sorted(call.externals):
        if name in call.level.constants:
            size = len(call.level.constants[name])
            lines.append(f"@{name} = external hidden constant [{size} x i8], align 64")
        elif name.endswith(".parallel"):
            lines.append(f"declare hidden void @{name}(ptr, ptr, i64, i64)")
        elif ".nest" in name:
            lines.append(f"declare hidden void @{name}(ptr, i64, i64)")
        else:
            lines.append(f"declare hidden i64 @{name}(ptr)")
    return "\n".join([*lines, "", text])


def _objects_of(level: LevelTexts, target: CpuTarget) -> dict[str, bytes]:
    """The objects of a level; nests, loops and calls are optimised as those of this process."""
    made: dict[str, bytes] = {}

    def add(kind: str, text: str, speed: int, links: Mapping[str, str] = {}) -> None:
        made[f"{target.name}_{kind}{len(made)}.o"] = object_code(
            text, target, speed, links)

    if level.emitters:
        links = {s: ir for em in level.emitters for s, ir in em.links.items()}
        add("n", module_text(level.emitters), LINKED_SPEED if links else 2, links)
    for em, text, has_loops in level.programs.values():
        whole = _module([(em, text)])
        speed = LOOP_SPEED if has_loops else BRANCH_SPEED
        speed = LONG_SPEED if len(whole) > LONG_TEXT else LOOP_SPEED if em.links else speed
        add("l", whole, speed, em.links)
    nothing = f"define i64 @{level.prefix}.nothing(ptr %state) nounwind {{\n  ret i64 0\n}}"
    add("c", _module([*level.calls, (LlvmEmitter(), nothing)]), 2)
    return made


def _module(parts: Iterable[tuple[LlvmEmitter, str]]) -> str:
    """One module of functions; a declaration that several need, or of one that is there, once."""
    parts = [*parts]
    functions: dict[str, None] = {}
    for em, _ in parts:
        functions |= dict.fromkeys(em.functions.values())
    lines: dict[str, None] = {}
    bodies = []
    for em, text in parts:
        head, _, body = text.partition("\n\n") if text.startswith(("@", "declare")) else (
            "", "", text)
        lines |= dict.fromkeys([*sorted(em.declarations), *filter(None, head.split("\n"))])
        bodies.append(body)
    defined = {line.partition("@")[2].partition("(")[0] for body in bodies
               for line in body.split("\n") if line.startswith("define")}
    kept = [line for line in lines if not (
        line.startswith("declare") and line.partition("@")[2].partition("(")[0] in defined)]
    return with_weights("\n\n".join(["\n".join(kept), *functions, *bodies]))


def _entry_module(
    name: str, entries: Sequence[CEntry], fields: Sequence[CField],
    targets: Sequence[CpuTarget], constants: Mapping[str, bytes], threads: str,
) -> str:
    has_levels = bool(targets[0].leaves)
    parts = [level_text(name, targets)] if has_levels else []
    parts += [state_text(name, fields)] if fields else []
    parts += [parallel_text(name)] if threads == "callback" else []
    parts += [pool_text(name, targets[0])] if threads == "pool" else []
    for entry in entries:
        parts += [*EntryText(entry, f"{name}.level" if has_levels else "").texts(),
                  dlpack_text(entry), error_text(entry.function)]
    data = [f'@{key} = hidden constant [{len(value)} x i8] c"{quoted(value)}", align 64'
            for key, value in constants.items()]
    return _module([*parts, (LlvmEmitter(), "\n".join(data))] if data else parts)
