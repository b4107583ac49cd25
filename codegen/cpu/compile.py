"""Machine code for loop forms: forms of equal structure share it, new ones make one module."""

from __future__ import annotations

import time
from collections.abc import Sequence

from fusec.core import locks
from fusec.core.display import progress

from ..kernels.specialise import LoopForm, structure_key
from ..machine_code.code_cache import CodeCache
from ..machine_code.llvm import NativeCode, code_on_disk, compile_ir
from ..machine_code.native_nest import CompileStats, NativeNest
from .emitter import LlvmEmitter, with_weights
from .nests.modes import emit_nest

LONG_TEXT = 200_000  # characters; LLVM may take more than a second
LINKED_SPEED = 3  # with LLVM's vectoriser, for the lane loops that call the user's functions

_nests: CodeCache[tuple, NativeNest] = CodeCache()
_modules: CodeCache[str, NativeCode] = CodeCache()  # of nests whose forms nobody has made
_lock = locks.Lock()
_nest_count = 0


def nests_made() -> int:
    """The number of nests that this process has compiled, or loaded from disk."""
    return _nest_count


def clear_cache() -> None:
    """Forget compiled nests; plans keep those that they use."""
    with _lock:
        _nests.clear()
        _modules.clear()


def compile_forms(forms: Sequence[LoopForm], stats: CompileStats) -> list[NativeNest]:
    """The machine code of each form; those not in the cache are compiled as one module."""
    global _nest_count
    key_of = {id(f): structure_key(f) for f in {id(f): f for f in forms}.values()}
    keys = [key_of[id(f)] for f in forms]
    with _lock:
        nests = {k: nest for k in keys if (nest := _nests.get(k)) is not None}
        missing = {k: f for k, f in zip(keys, forms, strict=True) if k not in nests}
        stats.compiled += len(missing)
        stats.reused += len(forms) - len(missing)
        _nest_count += len(missing)
        if missing:
            nests |= {k: _nests.add(k, nest) for k, nest in _compile(missing, stats).items()}
        return [nests[k] for k in keys]


def nest_on_disk(key: str, symbol: str, has_finish: bool) -> NativeNest | None:
    """A nest of the module whose object code is kept under that key; None where it is gone."""
    global _nest_count
    with _lock:
        code = _modules.get(key)
        if code is None:
            code = code_on_disk(key)
            if code is None:
                return None
            _modules.add(key, code)
        _nest_count += 1
        return _nest_of(code, symbol, has_finish)


def _compile(forms: dict[tuple, LoopForm], stats: CompileStats) -> dict[tuple, NativeNest]:
    start = time.perf_counter()
    emitters, names = [], {}
    for number, (key, form) in enumerate(forms.items()):
        progress.stage("code of loops", number, len(forms))
        names[key] = f"nest_{number}"
        emitters.append(emit_nest(form, names[key]))
    text = module_text(emitters)
    emitted = time.perf_counter()
    progress.stage(f"LLVM on {len(forms):,} loop{'s' * (len(forms) > 1)}",
                   is_long=len(text) > LONG_TEXT)
    links = {symbol: ir for em in emitters for symbol, ir in em.links.items()}
    code = compile_ir(text, LINKED_SPEED if links else 2, links)
    stats.codegen_ms += 1e3 * (emitted - start)
    stats.llvm_ms += 1e3 * (time.perf_counter() - emitted)
    return {key: _nest(code, names[key], form) for key, form in forms.items()}


def module_text(emitters: Sequence[LlvmEmitter]) -> str:
    """One module of the functions and declarations of several emitters."""
    functions: dict[str, str] = {}
    declarations: set[str] = set()
    for em in emitters:
        functions.update(em.functions)
        declarations |= em.declarations
    return with_weights("\n\n".join([*sorted(declarations), *functions.values()]))


def _nest(code: NativeCode, name: str, form: LoopForm) -> NativeNest:
    return _nest_of(code, name, form.mode == "flat")


def _nest_of(code: NativeCode, name: str, has_finish: bool) -> NativeNest:
    finish = code.address(f"{name}.finish") if has_finish else 0
    return NativeNest(name, code.address(name), finish, code)
