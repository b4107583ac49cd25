"""The only file that talks to LLVM: compiles LLVM IR text to machine code in this process, for the
CPU back end and for the native parts of the runtime.

Object code is kept on disk (`disk_cache`): known text is loaded without LLVM's parser, optimiser or
code generator.  Uses ``llvmlite.binding``, Numba's own binding of LLVM, directly: importing it
costs 30 ms where Numba and a first compile cost over a second (docs/design-notes/codegen.md).
"""

from __future__ import annotations

import contextlib
import functools
import mmap
import platform
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from fusec.core import locks, timeline

from . import disk_cache, targets, unpredictable
from .refused_code import InternalCompilerError, explained

# LLVM's pass manager and code generator are not safe for concurrent use through llvmlite.  Nobody
# may be inside of LLVM at a fork: Numba, say, or a module that is freed, under llvmlite's own lock.
_lock = locks.Lock(quiet=True)
locks.hold_over_forks(llvm.ffi.lib._lock)


class CompileTimes(dict):
    """Milliseconds spent per stage of a compile: ``parse``, ``optimise``, ``emit``, ``load``.

    ``cached``: the object code came from disk; then there is ``load`` alone.
    """

    cached = False


class NativeCode:
    """Machine code of one module.  Symbols are addresses valid while this object lives.

    ``key`` is that of the object code on disk.  Safe to use from several threads.
    """

    def __init__(
        self, source: str, engine: Any, obj: bytes, times: CompileTimes, speed: int = 2,
        links: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.source, self.key = source, ""
        self._links = links
        self.times = times
        self.object_code = obj
        self._engine = engine
        self._speed = speed

    @property
    def is_plain(self) -> bool:
        """Whether `code_on_disk` gives the same: nests as usual, without functions linked in."""
        return self._speed == 2 and not self._links

    def _optimised(self) -> Any:
        """LLVM's module, made once more when someone looks: it takes ten times the code's memory.
        """
        return _optimised(_parse(self.source, self._links), self.source, self._speed)

    def address(self, symbol: str) -> int:
        """The address of a function; raises ``KeyError`` when the module does not define it."""
        with _lock:
            address = self._engine.get_function_address(symbol)
        if address == 0:
            raise KeyError(f"internal error: module defines no symbol {symbol!r}")
        return address

    @property
    def llvm_ir(self) -> str:
        """The IR after LLVM's optimiser."""
        with _lock:
            return str(self._optimised())

    @property
    def assembly(self) -> str:
        """The machine code as text, in the target's assembly language."""
        with _lock, _as_emitted():
            return target_machine().emit_assembly(self._optimised())

    def listings(self, source: str) -> tuple[str, str]:
        """The optimised IR and the assembly of a text, with this code's settings: of its own text
        with places added, say."""
        with _lock, _as_emitted():
            module = _optimised(_parse(source, self._links), source, self._speed)
            return str(module), target_machine().emit_assembly(module)


@functools.cache
def _target() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple()


@functools.cache
def host_features() -> str:
    """The host's CPU features in LLVM's notation."""
    return llvm.get_host_cpu_features().flatten()


def has_feature(name: str) -> bool:
    """Whether the CPU that code is made for has the feature, by LLVM's name."""
    target = targets.current()
    return f"+{name}" in _host_feature_set() if target is None else name in target.features


@functools.cache
def _host_feature_set() -> frozenset[str]:
    return frozenset(host_features().split(","))


def _make_target_machine() -> Any:
    """Of the large code model: LLVM asks the system for the code of a module and for its constants
    apart, and ends the process where a small model's are more than 2 GiB from each other, as beside
    large arrays they may be."""
    return _target().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=host_features(), opt=2, reloc="static",
        codemodel="large",
    )


@functools.cache
def target_machine() -> Any:
    """LLVM's description of this machine, made once per process."""
    return _make_target_machine()


@functools.cache
def _machine_of(target: targets.CpuTarget) -> Any:
    """LLVM's description of a CPU that is named; of code that may be loaded anywhere."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    if target.machine == "x86_64" and platform.machine() in ("x86_64", "AMD64"):
        llvm.initialize_native_asmparser()  # of the instruction that asks for features
    return llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, opt=2, reloc="pic", codemodel="small")


@functools.cache
def triple() -> str:
    return llvm.get_default_triple()


def _parse(
    text: str, links: Mapping[str, str] = MappingProxyType({}),
    target: targets.CpuTarget | None = None,
) -> Any:
    """The verified module of a text, others linked in; raises ``InternalCompilerError``."""
    name = triple() if target is None else target.triple
    machine = target_machine() if target is None else _machine_of(target)
    try:
        module = llvm.parse_assembly(f'target triple = "{name}"\n' + text)
        module.data_layout = str(machine.target_data)
        for symbol, other in links.items():
            module.link_in(llvm.parse_assembly(other))
            function = module.get_function(symbol)
            function.linkage = "internal"
            function.add_function_attribute("alwaysinline")
        module.verify()
    except RuntimeError as error:
        raise InternalCompilerError(explained(text, error)) from None
    return module


# Nests arrive vectorised, hoisted and free of repeated work.  On seven kinds of nest these passes
# took 0.5 to 3 ms where LLVM's standard pipeline took 7 to 32, and no code ran over 11 % slower.
NEST_PASSES = ("always_inliner", "sroa", "instruction_combine", "simplify_cfg")


def _optimised(module: Any, text: str, speed: int, machine: Any = None) -> Any:
    """The module of this text, optimised."""
    _optimise(module, speed, machine)
    return llvm.parse_assembly(unpredictable.marked(str(module))) if (
        unpredictable.MARK in text) else module


def _optimise(module: Any, speed: int, machine: Any = None) -> None:
    """Inline and simplify; other speeds than 2 take LLVM's own pipeline, 3 its vectoriser too."""
    machine = machine or target_machine()
    tuning = llvm.create_pipeline_tuning_options(speed_level=min(speed, 2))
    tuning.loop_vectorization = False
    tuning.slp_vectorization = False
    tuning.loop_unrolling = False
    builder = llvm.create_pass_builder(machine, tuning)
    if speed > 2:
        tuning.loop_vectorization = True
        tuning.loop_unrolling = True
        builder = llvm.create_pass_builder(machine, tuning)
    if speed != 2:
        builder.getModulePassManager().run(module, builder)
        return
    passes = llvm.create_new_module_pass_manager()
    for name in NEST_PASSES:
        getattr(passes, f"add_{name}_pass")()
    passes.run(module, builder)


def _without_limits(line: re.Match[str]) -> str:
    return re.sub(r"\b(?:noinline|optnone)\b", "nounwind", line[0])


# Each exception on a way of its own, before conditions are simplified.
INLINING_PASSES = ("always_inliner", "sroa", "jump_threading", "simplify_cfg",
                   "instruction_combine", "simplify_cfg", "aggressive_dce",
                   "global_dead_code_eliminate")


# LLVM ends the process at an option that it does not know; this one is as old as LLVM 3.
HAS_LSR_SWITCH = llvm.llvm_version_info[0] <= 22


def inlined(text: str, entry: str) -> str:
    """The IR of one function of a module, with its callees inlined and its memory in
    registers, where that can be."""
    with _lock:
        module = _parse(re.sub(r"(?m)^(?:attributes|define) .*", _without_limits, text))
        for function in module.functions:
            if not function.is_declaration and function.name != entry:
                function.linkage = "internal"
                function.add_function_attribute("alwaysinline")
        passes = llvm.create_new_module_pass_manager()
        for name in INLINING_PASSES:
            getattr(passes, f"add_{name}_pass")()
        tuning = llvm.create_pipeline_tuning_options()
        passes.run(module, llvm.create_pass_builder(target_machine(), tuning))
        return str(module)


@contextlib.contextmanager
def _as_emitted() -> Iterator[None]:
    """Code generation without loop strength reduction, which takes half of its time.

    Our loops step their addresses themselves; on 268 ops and 107 programs the code was as fast or
    faster without it.  The switch is the process's, so it is put back for Numba's code.
    """
    if not HAS_LSR_SWITCH:
        yield
        return
    llvm.set_option("fusec", "-disable-lsr=true")
    try:
        yield
    finally:
        llvm.set_option("fusec", "-disable-lsr=false")


@functools.cache
def settings() -> tuple[str, ...]:
    """Everything besides the text and the speed that decides the object code."""
    version = ".".join(map(str, llvm.llvm_version_info))
    return (triple(), llvm.get_host_cpu_name(), host_features(), llvmlite.__version__, version,
            "opt=2 reloc=static codemodel=large no-vectorize no-slp no-unroll", *NEST_PASSES,
            _own_source())


def _own_source() -> str:
    """A hash of these files, so that an edited option or pass makes new entries; "" without."""
    files = [Path(__file__), Path(unpredictable.__file__)]
    return disk_cache.key_of([file.read_text(encoding="utf-8") for file in files]) if all(
        file.is_file() for file in files) else ""


def _load(obj: bytes) -> Any:
    backing = llvm.parse_assembly(f'target triple = "{triple()}"\n')
    engine = llvm.create_mcjit_compiler(backing, _make_target_machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(obj))
    engine.finalize_object()
    return engine


def add_symbols(symbols: Mapping[str, int]) -> None:
    """Make addresses visible to later modules under these names (``declare`` them there)."""
    with _lock:
        _target()
        for name, address in symbols.items():
            llvm.add_symbol(name, address)


FREE_BYTES, BYTES_PER_CHARACTER = 32 << 20, 100  # measured: 33 MB at first, then 4 and 40


def _check_memory(text: str) -> None:
    """Raise ``MemoryError`` where LLVM, which ends the process, would run out of memory.

    That is seen from the address space left, which limits of processes are about; pages are not
    touched.
    """
    size = FREE_BYTES + BYTES_PER_CHARACTER * len(text)
    try:
        mmap.mmap(-1, size).close()
    except OSError:
        raise MemoryError(f"compiling needs up to {size >> 20} MB of memory, which this process "
                          f"cannot get any more") from None


def compile_ir(
    text: str, speed: int = 2, links: Mapping[str, str] = MappingProxyType({})
) -> NativeCode:
    """Compile LLVM IR text (opaque pointers, no target triple needed) to machine code.

    ``speed`` 2 is for nests, which arrive vectorised; 1 compiles quicker, for code that is no hot
    loop; 3 optimises scalar loops.  ``links`` are modules of functions that it calls, by symbol.
    Raises ``InternalCompilerError`` with the numbered text when LLVM refuses it: generated code
    that does not verify is a defect of ours, never the user's.  Raises ``MemoryError`` when there
    may be too little memory for LLVM.
    """
    with _lock:
        _check_memory(text)
        _target()
        key = disk_cache.key_of((text, *links.values(), str(speed), *settings()))
        start = time.perf_counter()
        obj = disk_cache.load(key)
        code = _from_disk(text, obj, speed, links) if obj is not None else (
            _compile(text, speed, links))
        code.key = key
        if timeline.on:
            timeline.since("compile", "LLVM" if obj is None else "load", start,
                           characters=len(text), **{f"{k} ms": v for k, v in code.times.items()})
        if obj is None:
            disk_cache.store(key, code.object_code)
        return code


def code_on_disk(key: str) -> NativeCode | None:
    """Object code that is kept under that key, without its text; None where it is gone."""
    with _lock:
        _target()
        obj = disk_cache.load(key)
        code = None if obj is None else _from_disk("", obj, 2, {})
    if code is not None:
        code.key = key
    return code


def object_code(
    text: str, target: targets.CpuTarget, speed: int = 2,
    links: Mapping[str, str] = MappingProxyType({}), exported: frozenset[str] = frozenset(),
) -> bytes:
    """The relocatable object of a text for a target, kept on disk as other code is; arguments and
    errors are those of `compile_ir`.  Names that are not ``exported`` are hidden: other objects of
    the same library alone may use them."""
    with _lock:
        _check_memory(text)
        _target()
        key = disk_cache.key_of((text, *links.values(), str(speed), repr(target), *settings(),
                                 *sorted(exported)))
        obj = disk_cache.load(key)
        if obj is None:
            machine = _machine_of(target)
            module = _parse(text, links, target)
            for thing in (*module.functions, *module.global_variables):
                if str(thing.linkage) == "Linkage.external" and thing.name not in exported and not (
                        thing.name.startswith("llvm.") or thing.is_declaration):
                    thing.visibility = "hidden"
            module = _optimised(module, text, speed, machine)
            with _as_emitted():
                obj = machine.emit_object(module)
            disk_cache.store(key, obj)
        return obj


def _from_disk(text: str, obj: bytes, speed: int, links: Mapping[str, str]) -> NativeCode:
    start = time.perf_counter()
    engine = _load(obj)
    times = CompileTimes(load=1e3 * (time.perf_counter() - start))
    times.cached = True
    return NativeCode(text, engine, obj, times, speed, links)


def _compile(text: str, speed: int, links: Mapping[str, str]) -> NativeCode:
    start = time.perf_counter()
    module = _parse(text, links)
    parsed = time.perf_counter()
    module = _optimised(module, text, speed)
    optimised = time.perf_counter()
    with _as_emitted():
        obj = target_machine().emit_object(module)
    emitted = time.perf_counter()
    engine = _load(obj)
    loaded = time.perf_counter()
    times = CompileTimes(
        parse=1e3 * (parsed - start), optimise=1e3 * (optimised - parsed),
        emit=1e3 * (emitted - optimised), load=1e3 * (loaded - emitted),
    )
    return NativeCode(text, engine, obj, times, speed, links)
