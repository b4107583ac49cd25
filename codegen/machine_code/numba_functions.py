"""Scalar Python functions as LLVM IR, by Numba: the only file that talks to Numba.

Imported when `fusec.vectorize` first compiles something.  Numba's module is cut down to the one
function under a name of our own that depends on the function's contents alone, so that equal
functions share machine code, also on disk.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import llvmlite.binding as llvm
import numba
import numpy as np
from numba.core import types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.errors import NumbaError
from numba.np.numpy_support import as_dtype, from_dtype

from fusec.errors import UnsupportedError, unsupported
from fusec.ir import Loc
from fusec.ops.calls.scalar_calls import ScalarFunction

from .llvm import target_machine
from .scalar_ir import defined

# What Numba shows of a file, up to the carets: lines before the one that is meant, too.
_EXCERPT = re.compile(r"^File \"[^\n]*\n(?!<source missing).*?^ *\^+ *$", re.DOTALL | re.MULTILINE)
_NOISE = re.compile(r"(?:Failed in|During:|File \"|This error|For more|<source|$)")


def compile_scalar(
    python: Callable[..., Any], name: str, arguments: Sequence[np.dtype], loc: Loc
) -> ScalarFunction:
    """The function for these argument dtypes; ``name`` is that of its contents.

    Raises `UnsupportedError` at the user's line with Numba's reason.
    """
    signature = tuple(from_dtype(d) for d in arguments)
    try:
        dispatcher = numba.njit(python)
        with _without_vectors():
            dispatcher.compile(signature)
    except NumbaError as error:
        raise _refused(python, error, loc) from None
    compiled: Any = dispatcher.overloads[signature]
    result = _result_dtype(python, compiled.signature.return_type, loc)
    symbol = ".".join([name, *(d.char for d in arguments)])
    symbol = symbol.replace("?", "b1")
    ir, raises = _cut(compiled.library.get_llvm_str(), compiled.fndesc.llvm_func_name, symbol)
    return ScalarFunction(symbol, python, tuple(arguments), result, raises, ir)


@contextlib.contextmanager
def _without_vectors() -> Iterator[None]:
    """Loops stay loops of numbers, which other back ends can read; the CPU's vectorises them
    itself, with the code around them."""
    settings: Any = numba.config
    with global_compiler_lock:
        before, settings.LOOP_VECTORIZE = settings.LOOP_VECTORIZE, False
        try:
            yield
        finally:
            settings.LOOP_VECTORIZE = before


def items_of(python: Callable[..., Any], count: int) -> list[Any]:
    """Functions that give the items of the tuple that one returns; of one alone it is itself."""
    return [python] if count == 1 else [_item_of(python, number) for number in range(count)]


def _item_of(python: Callable[..., Any], number: int) -> Any:
    """Numba takes functions of a fixed number of parameters alone, so it is written as text."""
    names = ", ".join(python.__code__.co_varnames[: python.__code__.co_argcount])
    scope = {"derivative": numba.njit(python)}
    exec(f"def item({names}):\n    return derivative({names})[{number}]", scope)
    item: Any = scope["item"]
    item.__name__ = python.__name__
    return item


def _result_dtype(python: Callable[..., Any], kind: Any, loc: Loc) -> np.dtype:
    if isinstance(kind, (types.Number, types.Boolean)) and not isinstance(kind, types.Complex):
        return np.dtype(as_dtype(getattr(kind, "literal_type", kind)))
    raise unsupported(f"fusec.vectorize of {python.__name__}, which returns {kind}", loc=loc,
                      cure="return one number on every path")


def _refused(python: Callable[..., Any], error: NumbaError, loc: Loc) -> UnsupportedError:
    at: Any = getattr(error, "loc", None)
    is_users = getattr(at, "filename", "") == python.__code__.co_filename
    place = Loc(loc.file, at.line if is_users else loc.line, -1, python.__name__)
    text = _EXCERPT.sub("", re.sub(r"\x1b\[\d*m", "", str(error)))
    reasons = [line.strip() for line in text.splitlines() if not _NOISE.match(line.strip())]
    return UnsupportedError(
        f"fusec.vectorize cannot compile {python.__name__}", loc=place, notes=reasons[:3],
        cure="use numbers, math functions, if and loops; helpers under numba.njit")


def _cut(text: str, main: str, symbol: str) -> tuple[str, bool]:
    """The IR of one function and its callees, and whether it may raise."""
    module = llvm.parse_assembly(text)
    for function in module.functions:
        if not function.is_declaration and function.name != main:
            function.linkage = "internal"
    entry = module.get_function(main)
    entry.name = symbol
    for variable in module.global_variables:
        if not variable.is_declaration:
            variable.linkage = "internal"
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    builder = llvm.create_pass_builder(target_machine(), llvm.create_pipeline_tuning_options())
    passes.run(module, builder)
    return defined(str(module)), _may_raise(module.get_function(symbol))


def _may_raise(function: Any) -> bool:
    """Whether the status that it returns is anything but the constant 0."""
    returns = [str(i).strip() for block in function.blocks for i in block.instructions
               if i.opcode == "ret"]
    return returns != ["ret i32 0"] * len(returns)
