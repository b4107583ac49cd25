"""The header of a library."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from fusec.codegen.exported.parts import ERRORS, OF_PARAMETER, CField, CParameter, ExportedFunction

_TYPES = {"bool": "bool", "float16": "uint16_t", "float32": "float", "float64": "double",
          "complex64": "float", "complex128": "double"}


def header(
    name: str, functions: Sequence[ExportedFunction], fields: Sequence[CField], version: str,
    levels: Sequence[str], threads: str = "none",
) -> str:
    """The text of ``name.h``."""
    guard = f"{name.upper()}_H"
    lines = [
        f"/* {name}: {', '.join(f.name for f in functions)}.",
        f"   Made by fusec {version}; do not edit.",
        "",
        f"   Code for {' and '.join(levels)}, chosen at the first call."
        if len(levels) > 1 else f"   Code for {levels[0]}.",
        "   All functions may be called by several threads at once, each with a workspace of its",
        "   own.  Arrays lie in C order without gaps; those that a call writes overlap no other.",
        "   After an error what arrays hold that a call writes is not defined.",
        f"   There may be no code for some sizes: calls, and `f_sizes`, give {name.upper()}_SIZES.",
        "   Those that code was tried for are in fusec's docs/export-c.md. */",
        "", f"#ifndef {guard}", f"#define {guard}", "",
        "#include <stdbool.h>", "#include <stddef.h>", "#include <stdint.h>", "",
        "#ifdef __cplusplus", 'extern "C" {', "#endif", "",
        *_codes(name), *_failure(name), *_DLPACK, *(_state(name, fields) if fields else ()),
        *(_parallel(name) if threads == "callback" else ())]
    for function in functions:
        lines += ["", *_declared(function, name)]
    lines += ["", "#ifdef __cplusplus", "}", "#endif", "", f"#endif /* {guard} */", ""]
    return "\n".join(lines)


def reserved_names(name: str) -> set[str]:
    """What the header may declare beside the functions."""
    own = ("state", "new", "free", "reset", "failure", "body", "run", "set_parallel")
    return {*(f"{name}_{word}" for word in own), "DLTensor", "DLDevice", "DLDataType",
            *(f"{name.upper()}_{key}" for key in ("OK", "H", *ERRORS, *OF_PARAMETER))}


def _codes(name: str) -> Iterator[str]:
    yield "/* What functions return: 0, one of these, or a positive number for a check of the"
    yield "   function's own that failed.  From NULL on the parameter's number is subtracted, which"
    yield "   counts arguments, then results, from 0. */"
    yield "enum {"
    yield f"    {name.upper()}_OK = 0,"
    for key, (code, text) in ERRORS.items():
        yield f"    {name.upper()}_{key} = {code}, /* {text} */"
    for key, (code, text) in OF_PARAMETER.items():
        yield f"    {name.upper()}_{key} = {code}, /* a parameter {text} */"
    yield "};"


def _failure(name: str) -> list[str]:
    return ["", "/* What a code says: the line of the Python program that fails, and for an index "
            "out of", "   range the index and the size (else -1). */",
            "typedef struct {", "    const char *text;",
            "    const char *file; /* NULL: of no line */", "    int32_t line;",
            "    int64_t index, size;", f"}} {name}_failure;"]


_DLPACK = [
    "", "#ifndef DLPACK_DLPACK_H_ /* the struct of dlpack.h */", "#define DLPACK_DLPACK_H_",
    "typedef struct { int32_t device_type, device_id; } DLDevice;",
    "typedef struct { uint8_t code, bits; uint16_t lanes; } DLDataType;",
    "typedef struct {", "    void *data;", "    DLDevice device;", "    int32_t ndim;",
    "    DLDataType dtype;", "    int64_t *shape;", "    int64_t *strides;",
    "    uint64_t byte_offset;", "} DLTensor;", "#endif"]


def _parallel(name: str) -> Iterator[str]:
    yield from (
        "", "/* Threads: calls give `run` their tasks, who calls `body(argument, begin, end)` for",
        "   ranges that cover 0 to `tasks` once, in any threads, and returns when all are done.",
        "   NULL, as at first: calls run in their thread.  Set it while no call runs. */",
        f"typedef void {name}_body(void *argument, int64_t begin, int64_t end);",
        f"typedef void {name}_run(void *context, {name}_body *body, void *argument, "
        "int64_t tasks);",
        f"void {name}_set_parallel({name}_run *run, void *context);")


def _state(name: str, fields: Sequence[CField]) -> Iterator[str]:
    yield from ("", "/* State that calls keep: Variables, attributes and arrays of objects.  One",
                "   call at a time; a copy of the struct is a copy of the state. */",
                "typedef struct {")
    for f in fields:
        size = "".join(f"[{n}]" for n in f.value.shape) + ("[2]" if f.dtype.kind == "c" else "")
        yield f"    {_type(f.dtype)} {f.name}{size};"
    yield from (f"}} {name}_state;", "/* A state with the values of the Python program when it was "
                "exported; NULL: no memory. */", f"{name}_state *{name}_new(void);",
                f"void {name}_free({name}_state *state);", "/* The same values anew. */",
                f"void {name}_reset({name}_state *state);")


def _declared(function: ExportedFunction, name: str) -> Iterator[str]:
    yield f"/* {about(function)} */"
    sizes = [f"int64_t {n}" for n in function.sizes]
    passed = [*sizes, *map(parameter_text, function.parameters)]
    state = [f"{name}_state *state"] if function.state_bytes else []
    memory = [*state, "void *workspace", "size_t workspace_bytes"]
    yield from _wrapped(f"int {function.name}(", [*passed, *memory])
    yield ""
    told = ["size_t *out_bytes"] if function.results else []
    many = f"of its {len(function.results)} results" if len(
        function.results) > 1 else "of the result"
    yield (f"/* The bytes {many}, and of the workspace; either pointer may be NULL. */" if told else
           "/* The bytes of the workspace. */")
    yield from _wrapped(f"int {function.name}_sizes(", [
        *sizes, *told, "size_t *workspace_bytes"])
    yield ""
    if function.has_shapes:
        yield "/* The sizes of the results' axes, of one after the other. */"
        yield from _wrapped(f"int {function.name}_shapes(", [*sizes, "int64_t *shapes"])
        yield ""
    yield "/* The same call for tensors, whose types, sizes and layouts are checked. */"
    tensors = [f"const DLTensor *{p.name}" if p.is_array else parameter_text(p)
               for p in function.parameters]
    yield from _wrapped(f"int {function.name}_dlpack(", [*tensors, *memory])
    yield ""
    yield ("/* What a code of this function says; `workspace` is that of the call (NULL: an index "
           "is not told).\n   0, or -1 for a code that it does not have. */")
    yield from _wrapped(f"int {function.name}_error(", [
        "int code", "const void *workspace", f"{name}_failure *failure"])


def about(function: ExportedFunction) -> str:
    """The text of a comment about it."""
    text = "\n   ".join(_about(function))  # which may have texts of the program's
    return text.replace("*/", "* /").replace("/*", "/ *")


def _about(function: ExportedFunction) -> list[str]:
    head = function.name
    if function.loc is not None:
        file = function.loc.file.rpartition("/")[2]
        head += f" ({file}:{function.loc.line})"
    lines = [f"{head}: {function.text}." if function.text else f"{head}."]
    for parameter in function.parameters:
        shape = "".join(f"[{size}]" for size in parameter.shape)
        kind = f"{parameter.dtype}{shape}" if parameter.is_array else f"{parameter.dtype}, a number"
        lines.append(f"{parameter.name}: {kind}{_role(function, parameter)}")
    for size in function.sizes:
        lines.append(f"{size}: a size, from 0 on")
    return lines


def _role(function: ExportedFunction, parameter: CParameter) -> str:
    if parameter.counted is not None:
        of, axis = parameter.counted
        return f", written: how many there are of {function.results[of].name} along axis {axis}"
    if parameter in function.results:
        parts = [f"; the first {function.results[n].name} of axis {axis}"
                 for axis, n in parameter.counts]
        return "".join([", written", *parts])
    return ", read and written" if parameter.is_written else ""


def parameter_text(parameter: CParameter) -> str:
    """Its declaration; of a complex number that C passes by value two."""
    kind = _type(parameter.dtype)
    if parameter.is_array:
        return f"{'' if parameter.is_written else 'const '}{kind} *{parameter.name}"
    if parameter.dtype.kind == "c":
        return f"{kind} {parameter.name}_re, {kind} {parameter.name}_im"
    return f"{kind} {parameter.name}"


def _type(dtype: np.dtype) -> str:
    return _TYPES.get(dtype.name, f"{dtype.name}_t")


def _wrapped(head: str, parameters: Sequence[str]) -> Iterator[str]:
    """A declaration, in lines of at most 96 characters."""
    line, indent = head, "    "
    for k, parameter in enumerate(parameters):
        part = parameter + (");" if k == len(parameters) - 1 else ",")
        if len(line) + 1 + len(part) > 96:
            yield line
            line = indent + part
        else:
            line += part if line.endswith("(") else f" {part}"
    yield line
