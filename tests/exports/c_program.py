"""Exported functions called by a C program, which the header and the static library are given to.

The program reads sizes and arguments from its standard input, calls, and writes the code, the
arguments that may be written, the results and their shapes to its standard output.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fusec.codegen.exported.parts import ExportedFunction

from .calling import cut

_C = {"bool": "bool", "float16": "uint16_t", "float32": "float", "float64": "double",
      "complex64": "float", "complex128": "double"}
# The library needs no compiler, these tests do; machines without one skip them by this reason.
needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
Called = Callable[[ExportedFunction, Sequence[str]], Iterator[str]]
_HEAD = """
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "{library}.h"
static inline void take(void *to, size_t n) {{
    if (n && fread(to, 1, n, stdin) != n) exit(100);
}}
static inline void give(const void *from, size_t n) {{
    if (n && fwrite(from, 1, n, stdout) != n) exit(101);
}}
static inline void *memory(size_t n) {{
    void *made = malloc(n ? n : 1);
    if (!made) exit(102);
    return made;
}}
int main(void) {{
    size_t workspace_bytes = 0;
    int32_t code;
"""


def source(library: str, function: ExportedFunction, called: Called | None = None) -> str:
    """The program's text; ``called`` gives the lines of the call, of its arguments."""
    lines = _body(library, function, called or _called)
    return "\n".join([_HEAD.format(library=library), *lines, "    return 0;", "}", ""])


def _called(function: ExportedFunction, passed: Sequence[str]) -> Iterator[str]:
    yield f"    code = {function.name}({', '.join(passed)});\n    give(&code, 4);"


def _body(library: str, function: ExportedFunction, called: Called) -> Iterator[str]:
    sizes = [f"n{k}" for k in range(len(function.sizes))]
    results = [f"r{k}" for k in range(len(function.results))]
    passed = [*sizes]
    for name in sizes:
        yield f"    int64_t {name};\n    take(&{name}, 8);"
    for k, p in enumerate(function.arguments):
        kind = _C.get(p.dtype.name, f"{p.dtype.name}_t")
        if p.is_array:
            yield f"    int64_t b{k};\n    take(&b{k}, 8);"
            yield f"    {kind} *a{k} = memory((size_t)b{k});\n    take(a{k}, (size_t)b{k});"
            passed.append(f"a{k}")
        else:
            parts = [f"a{k}", f"i{k}"] if p.dtype.kind == "c" else [f"a{k}"]
            yield from (f"    {kind} {part};\n    take(&{part}, sizeof {part});" for part in parts)
            passed += parts
    told = ["bytes"] if results else []
    yield f"    size_t bytes[{len(results)}];" if told else ""
    yield (f"    code = {function.name}_sizes("
           f"{', '.join([*sizes, *told, '&workspace_bytes'])});")
    yield "    if (code) { give(&code, 4); return 0; }"
    for k, (name, p) in enumerate(zip(results, function.results, strict=True)):
        yield f"    {_C.get(p.dtype.name, f'{p.dtype.name}_t')} *{name} = memory(bytes[{k}]);"
    state = ["state"] if function.state_bytes else []
    if state:
        yield f"    {library}_state *state = {library}_new();"
    yield "    void *workspace = memory(workspace_bytes);"
    yield from called(function, [*passed, *results, *state, "workspace", "workspace_bytes"])
    yield "    if (code) return 0;"
    ranks = sum(len(p.shape) for p in function.results)
    if ranks:
        yield f"    int64_t shapes[{ranks}];"
        yield f"    if ({function.name}_shapes({', '.join([*sizes, 'shapes'])})) return 103;"
        yield "    give(shapes, sizeof shapes);"
    yield from (f"    give(a{k}, (size_t)b{k});" for k, p in enumerate(function.arguments)
                if p.is_array and p.is_written)
    yield from (f"    give({name}, bytes[{k}]);" for k, name in enumerate(results))
    if state:
        yield f"    {library}_free(state);"


class CProgram:
    """A program that calls one function of a library, built by ``cc``."""

    def __init__(
        self, library: Any, function: ExportedFunction, called: Called | None = None
    ) -> None:
        self.function = function
        text = library.folder / f"call_{function.name}.c"
        text.write_text(source(library.name, function, called))
        self.path: Path = text.with_suffix("")
        subprocess.run(["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{library.folder}",
                        text, library.static, "-lm", "-o", self.path], check=True)

    def __call__(self, leaves: Sequence[Any]) -> tuple[int, list[np.ndarray], dict[int, Any]]:
        """The code, the results, and arguments that it writes, by leaf."""
        f = self.function
        arguments, reader = self.answer(leaves)
        code = int(reader.array(np.dtype(np.int32), ())[()])
        if code:
            return code, [], {}
        shapes = [reader.array(np.dtype(np.int64), (len(p.shape),)) if p.shape else ()
                  for p in f.results]
        written = {leaf: reader.array(p.dtype, x.shape) for leaf, p, x in zip(
            f.leaves, f.arguments, arguments, strict=True) if p.is_array and p.is_written}
        results = [reader.array(p.dtype, tuple(s)) for p, s in zip(f.results, shapes, strict=True)]
        assert reader.at == len(reader.data)
        return code, cut(f, results, shapes), written

    def answer(self, leaves: Sequence[Any]) -> tuple[list[np.ndarray], _Reader]:
        """The arguments as they were given, and what the program wrote."""
        f = self.function
        arguments = [np.array(leaves[k], p.dtype) for k, p in zip(
            f.leaves, f.arguments, strict=True)]
        given = b"".join(np.int64(arguments[k].shape[axis]).tobytes() for k, axis in f.axes)
        for x, p in zip(arguments, f.arguments, strict=True):
            given += (np.int64(x.nbytes).tobytes() if p.is_array else b"") + x.tobytes()
        out = subprocess.run([self.path], input=given, stdout=subprocess.PIPE, check=True).stdout
        return arguments, _Reader(out)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def array(self, dtype: np.dtype, shape: Sequence[Any]) -> np.ndarray:
        count = int(np.prod(shape, dtype=np.int64))
        made = np.frombuffer(self.data, dtype, count, self.at).reshape(shape)
        self.at += made.nbytes
        return made
