"""Runs a program with fusec's native code checked by ThreadSanitizer or AddressSanitizer.

Neither LLVM's C interface nor llvmlite offers the passes, so the text is instrumented here, with
the calls that the passes make: one before each load and store, and for each atomic instruction the
sanitizer's own.  GCC's runtime libraries are loaded before Python.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from fusec.codegen.machine_code import llvm

_ADDRESS = r"ptr (?P<at>[%@][\w.$-]+)"
_LOAD = re.compile(rf"^\s*%[\w.$-]+ = load (?:volatile )?(?P<type>[^,]+), {_ADDRESS}")
_STORE = re.compile(rf"^\s*store (?:volatile )?(?P<type><[^>]+>|\w+) [^,]+, {_ADDRESS}")
_ATOMIC_LOAD = re.compile(
    rf"^\s*(?P<to>%[\w.$-]+) = load atomic i(?P<bits>\d+), {_ADDRESS} (?P<order>\w+)")
_ATOMIC_STORE = re.compile(
    rf"^\s*store atomic i(?P<bits>\d+) (?P<value>[^,]+), {_ADDRESS} (?P<order>\w+)")
_EXCHANGE = re.compile(rf"^\s*(?P<to>%[\w.$-]+) = atomicrmw (?P<op>\w+) {_ADDRESS}, i(?P<bits>\d+) "
                       r"(?P<value>\S+) (?P<order>\w+)")
_COMPARE = re.compile(rf"^\s*(?P<to>%[\w.$-]+) = cmpxchg {_ADDRESS}, i(?P<bits>\d+) (?P<old>\S+), "
                      r"i\d+ (?P<new>\S+) (?P<order>\w+) (?P<failure>\w+)")
_ORDERS = {"monotonic": 0, "acquire": 2, "release": 3, "acq_rel": 4, "seq_cst": 5}
_RMW = {"add": "fetch_add", "sub": "fetch_sub", "and": "fetch_and", "or": "fetch_or",
        "xchg": "exchange"}


def _size(type_: str) -> int:
    """Bytes of a type as LLVM writes it."""
    vector = re.fullmatch(r"<(\d+) x (.+)>", type_.strip())
    if vector:
        return max(1, int(vector[1]) * _bits(vector[2]) // 8)
    return max(1, _bits(type_.strip()) // 8)


def _bits(type_: str) -> int:
    names = {"ptr": 64, "double": 64, "float": 32, "half": 16}
    return names[type_] if type_ in names else int(type_.removeprefix("i"))


def instrumented(text: str, kind: str) -> str:
    """The module with a sanitizer's calls; ``kind`` is ``thread`` or ``address``."""
    lines = [new for line in text.split("\n") for new in checked(line, kind)]
    return "\n".join([*lines, *_DECLARED[kind]])


def checked(line: str, kind: str) -> list[str]:
    """The lines that stand for one; itself alone where it is no access."""
    if kind == "thread":
        atomic = _atomic(line)
        if atomic:
            return atomic
    for pattern, verb in ((_LOAD, "load"), (_STORE, "store")):
        found = pattern.match(line)
        if found and "atomic" not in line:
            size = _size(found["type"])
            if kind == "thread":
                name = {"load": "read", "store": "write"}[verb]
                call = f"call void @__tsan_{name}_range(ptr {found['at']}, i64 {size})"
            else:
                call = f"call void @__asan_{verb}N(ptr {found['at']}, i64 {size})"
            return [f"  {call}", line]
    return [line]


def _atomic(line: str) -> list[str]:
    if found := _ATOMIC_LOAD.match(line):
        bits, order = found["bits"], _ORDERS[found["order"]]
        return [f"  {found['to']} = call i{bits} @__tsan_atomic{bits}_load(ptr {found['at']}, "
                f"i32 {order})"]
    if found := _ATOMIC_STORE.match(line):
        bits, order = found["bits"], _ORDERS[found["order"]]
        return [f"  call void @__tsan_atomic{bits}_store(ptr {found['at']}, i{bits} "
                f"{found['value']}, i32 {order})"]
    if found := _EXCHANGE.match(line):
        bits, order = found["bits"], _ORDERS[found["order"]]
        return [f"  {found['to']} = call i{bits} @__tsan_atomic{bits}_{_RMW[found['op']]}"
                f"(ptr {found['at']}, i{bits} {found['value']}, i32 {order})"]
    if found := _COMPARE.match(line):
        bits, to = found["bits"], found["to"]
        return [f"  {to}.was = call i{bits} @__tsan_atomic{bits}_compare_exchange_val("
                f"ptr {found['at']}, i{bits} {found['old']}, i{bits} {found['new']}, "
                f"i32 {_ORDERS[found['order']]}, i32 {_ORDERS[found['failure']]})",
                f"  {to}.same = icmp eq i{bits} {to}.was, {found['old']}",
                f"  {to}.half = insertvalue {{ i{bits}, i1 }} poison, i{bits} {to}.was, 0",
                f"  {to} = insertvalue {{ i{bits}, i1 }} {to}.half, i1 {to}.same, 1"]
    return []


_DECLARED = {
    "address": ["declare void @__asan_loadN(ptr, i64)", "declare void @__asan_storeN(ptr, i64)"],
    "thread": [
        "declare void @__tsan_read_range(ptr, i64)", "declare void @__tsan_write_range(ptr, i64)",
        *(line for n in (32, 64) for line in (
            f"declare i{n} @__tsan_atomic{n}_load(ptr, i32)",
            f"declare void @__tsan_atomic{n}_store(ptr, i{n}, i32)",
            f"declare i{n} @__tsan_atomic{n}_compare_exchange_val(ptr, i{n}, i{n}, i32, i32)",
            *(f"declare i{n} @__tsan_atomic{n}_{name}(ptr, i{n}, i32)" for name in _RMW.values()),
        ))],
}


def install(kind: str) -> None:
    """Compile everything instrumented from now on, in this process."""
    parse = llvm._parse

    def parse_checked(text: str, *links: object) -> object:
        return parse(instrumented(text, kind), *links)  # type: ignore[arg-type]

    llvm._parse = parse_checked


def library(kind: str) -> str | None:
    """The sanitizer's runtime of the C compiler at hand."""
    gcc = shutil.which("gcc")
    if gcc is None or sys.platform != "linux":
        return None
    asked = [gcc, f"-print-file-name=lib{kind[0]}san.so"]
    found = subprocess.run(asked, capture_output=True, text=True).stdout.strip()
    return os.path.realpath(found) if os.path.isabs(found) else None


def run(kind: str, program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """The program in a process of its own; it exits with 66 when the sanitizer found something."""
    file = folder / "program.py"
    file.write_text(f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
                    f"import sanitized; sanitized.install({kind!r})\n{program}")
    options = "exitcode=66:detect_leaks=0:report_signal_unsafe=0:halt_on_error=1"
    fixed = [setarch, "-R"] if (setarch := shutil.which("setarch")) else []
    return subprocess.run(
        [*fixed, sys.executable, str(file)], capture_output=True, text=True, timeout=500,
        env={**os.environ, "LD_PRELOAD": library(kind) or "", "FUSEC_CACHE_DIR": "off",
             "TSAN_OPTIONS": options, "ASAN_OPTIONS": options})
