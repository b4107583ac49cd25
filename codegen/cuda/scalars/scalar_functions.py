"""The user's scalar functions (`fusec.vectorize`) as CUDA C++, from their LLVM IR.

``bool name(T &out, A x0, …)``: whether the function raised.  Callees are inlined, its memory
becomes registers; each block is a label, each edge sets the phis of the block at its end.  A
function in which something has no C++ is refused as a whole, with the reason.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

import numpy as np

from fusec.core.records import dataclass
from fusec.errors import unsupported
from fusec.ops.calls.scalar_calls import FUNCTIONS, ScalarFunction

from ...machine_code.llvm import inlined
from ...machine_code.scalar_ir import called_ops, llvm_type
from .emitter import BOOL, CudaEmitter, CudaValue, type_name
from .scalar_blocks import RESULT, Printer, blocks_of
from .scalar_instructions import NotPrintableError, constant, cpp_type

_ENTRY = "entry"
MANY_LINES = 60  # a longer function stands once in a kernel, which NVRTC compiles in half the time


@dataclass(frozen=True)
class ScalarText:
    """A function's definition, the math functions that it calls, or why it has none."""

    text: str
    math: tuple[tuple[str, np.dtype], ...] = ()
    refusal: str = ""


def refusal(symbol: str) -> str:
    """Why the function has no CUDA C++; "" where it has."""
    function = FUNCTIONS.get(symbol)
    return _printed(symbol, function.ir).refusal if function is not None else (
        f"{symbol} of fusec.vectorize, which is not at hand")


def definition(symbol: str) -> ScalarText:
    """The function's text; raises `UnsupportedError` where it has none."""
    printed = _printed(symbol, FUNCTIONS[symbol].ir)
    if printed.refusal:
        raise unsupported(printed.refusal, cure="leave it to the CPU: with fusec.device('CPU')")
    return printed


def call_scalar(em: CudaEmitter, symbol: str, args: Sequence[CudaValue]) -> tuple[CudaValue, str]:
    """The function of numbers: its result, and whether it raised."""
    em.functions[symbol] = None
    function = FUNCTIONS[symbol]
    out = em.fresh("out")
    em.line(f"{type_name(function.result)} {out};")
    passed = ", ".join([out, *map(str, args)])
    return CudaValue(out, function.result), em.named("bool", f"{cpp_name(symbol)}({passed})", "bad")


def cpp_name(symbol: str) -> str:
    return re.sub(r"\W", "_", symbol)


@functools.lru_cache(maxsize=512)
def _printed(symbol: str, ir: str) -> ScalarText:
    function, name = FUNCTIONS[symbol], cpp_name(symbol)
    try:
        text = inlined(_with_entry(function, ir), _ENTRY)
        body = text.partition(f"@{_ENTRY}(")[2].partition("{\n")[2].partition("\n}")[0]
        em, tables, blocks = CudaEmitter(), _tables(text, body, name), blocks_of(body)
        defined = frozenset(re.findall(r"^define .*?@([\w.$-]+)\(", text, re.MULTILINE))
        printer = Printer(blocks, em, {t.symbol: (t.kind, t.name) for t in tables}, defined)
        lines = printer.body([f"%x{n}" for n in range(len(function.arguments))])
    except NotPrintableError as error:
        what = f"{function.python.__name__} of fusec.vectorize has no CUDA C++"
        return ScalarText("", (), f"{what}: {error}")
    return ScalarText("\n".join([
        *(t.text for t in tables), _head(function, name, len(lines) > MANY_LINES),
        *(f"  {line}" for line in lines),
        "done:", "  return bad;", "}"]), tuple(em.math))


def _head(function: ScalarFunction, name: str, is_long: bool) -> str:
    params = "".join(f", {cpp_type(_kind(d))} x{n}" for n, d in enumerate(function.arguments))
    kind = "__device__ __noinline__" if is_long else "__device__"
    return (f"{kind} bool {name}({type_name(function.result)} &out{params}) {{\n"
            f"  bool bad = true;\n  out = {type_name(function.result)}();")


def _kind(dtype: np.dtype) -> str:
    return "i1" if dtype == BOOL else llvm_type(dtype)


def _with_entry(function: ScalarFunction, ir: str) -> str:
    """The IR, and a function that calls it, and `RESULT` with its result unless it raised."""
    result = "i8" if function.result == BOOL else llvm_type(function.result)
    lines = [f"  %out = alloca {result}", "  %exception = alloca ptr",
             f"  store {result} zeroinitializer, ptr %out", "  store ptr null, ptr %exception"]
    passed = ""
    for n, dtype in enumerate(function.arguments):
        if dtype == BOOL:
            lines.append(f"  %byte{n} = zext i1 %x{n} to i8")
        passed += f", i8 %byte{n}" if dtype == BOOL else f", {llvm_type(dtype)} %x{n}"
    lines += [f"  %status = call i32 @{function.symbol}(ptr %out, ptr %exception{passed})",
              "  %holds = icmp eq i32 %status, 0", "  br i1 %holds, label %done, label %raised",
              "raised:", "  ret void", "done:", f"  %value = load {result}, ptr %out"]
    if function.result == BOOL:
        lines.append("  %truth = icmp ne i8 %value, 0")
    value = "i1 %truth" if function.result == BOOL else f"{result} %value"
    params = ", ".join(f"{_kind(d)} %x{n}" for n, d in enumerate(function.arguments))
    return "\n".join([
        ir, *_declarations(ir), f"declare void @{RESULT}({value.partition(' ')[0]})",
        f"define void @{_ENTRY}({params}) {{", "begin:", *lines,
        f"  call void @{RESULT}({value})", "  ret void", "}", ""])


def _declarations(ir: str) -> list[str]:
    return [f"declare {llvm_type(c.result)} @{c.symbol}({', '.join(map(llvm_type, c.arguments))}) "
            "nounwind willreturn memory(none)" for c in called_ops(ir)]


# ------------------------------------------------------------------------------------------ tables


@dataclass(frozen=True)
class ConstantTable:
    """An array of constants that a function reads."""

    symbol: str
    kind: str
    name: str
    text: str


def _tables(text: str, body: str, name: str) -> list[ConstantTable]:
    """The arrays of a module of which elements are read in a body."""
    found = re.findall(r"^@([\w.$-]+) = .*?constant \[(\d+) x (\w+)\] (.*?)(?:, align \d+)?$", text,
                       re.MULTILINE)
    return [ConstantTable(symbol, kind, f"{name}_table{k}",
                          _array(f"{name}_table{k}", kind, values, size))
            for k, (symbol, size, kind, values) in enumerate(found)
            if re.search(rf"= getelementptr .*@{re.escape(symbol)},", body)]


def _array(name: str, kind: str, values: str, size: str) -> str:
    if values.startswith("c"):
        data = re.sub(rb"\\([0-9A-F]{2})", lambda m: bytes([int(m[1], 16)]), values[2:-1].encode())
        texts = [constant(kind, str(byte)) for byte in data]
    elif values == "zeroinitializer":
        texts = [constant(kind, values)] * int(size)
    else:
        texts = [constant(kind, v.split()[1]) for v in values.strip("[]").split(", ")]
    return f"__device__ const {cpp_type(kind)} {name}[] = {{{', '.join(texts)}}};"
