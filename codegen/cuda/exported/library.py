"""The sources of a library for CUDA: kernels as CUDA C++, and a header that launches them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources

from fusec.core.records import dataclass

from ...exported.parts import ERRORS, OF_PARAMETER, ExportedFunction
from ..module import CudaModule
from .entry_text import DRIVER, USED_ERRORS, USED_OF_PARAMETERS, CudaEntryText, planned_entry
from .kernels import ExportedKernels
from .launch_text import ConstantBlock


@dataclass(frozen=True)
class CudaSources:
    """``module``: the kernels; ``header``: the text of the C++ header."""

    module: CudaModule
    header: str


def library_sources(
    name: str, functions: Sequence[ExportedFunction], declared: Mapping[str, Sequence[str]],
    about: Mapping[str, str], version: str,
) -> CudaSources:
    """``declared``: by function the C++ of its parameters, behind the sizes; ``about``: comments.

    Raises `NoTextError` for numbers that do not follow from sizes in C++."""
    kernels, constants = ExportedKernels(name), ConstantBlock()
    entries = [planned_entry(f, declared[f.name], kernels, constants) for f in functions]
    bodies = [f"/* {about[entry.function.name]} */\n" + "\n".join(CudaEntryText(entry).texts())
              for entry in entries]
    module = kernels.module()
    guard = f"{name.upper()}_HPP"
    parts = [
        f"/* {name}: {', '.join(f.name for f in functions)}.  Made by fusec {version}; do not edit."
        f"\n   It launches the kernels of {name}.cu, which the caller has compiled and loaded.  Of "
        "CUDA it\n   needs the driver alone.  Pointers are the device's. */",
        f"#ifndef {guard}\n#define {guard}\n",
        "#include <cmath>\n#include <cstddef>\n#include <cstdint>\n#include <cstring>\n\n"
        "#include <cuda.h>\n",
        f"namespace {name} {{\n", _codes(), _library(module, constants),
        resources.files(__package__).joinpath("detail.hpp").read_text(encoding="utf-8"),
        _loading(module, constants), *bodies,
        f"#undef FUSEC_TRY\n\n}}  // namespace {name}\n\n#endif  // {guard}\n"]
    return CudaSources(module, "\n".join(parts))


def _codes() -> str:
    lines = ["/* What functions return: 0, one of these, or a positive number for a check of the",
             "   function's own that failed.  From NULL_POINTER on the parameter's number is "
             "subtracted, which", "   counts arguments, then results, from 0; from DRIVER the "
             "driver's CUresult. */", "enum {", "  OK = 0,"]
    for key in USED_ERRORS:
        code, text = ERRORS[key]
        lines.append(f"  {key} = {code},  /* {text} */")
    for key in USED_OF_PARAMETERS:
        code, text = OF_PARAMETER[key]
        lines.append(f"  {'NULL_POINTER' if key == 'NULL' else key} = {code},  "
                     f"/* a parameter {text} */")
    lines += [f"  DRIVER = {DRIVER}  /* a call of the CUDA driver failed */", "};\n",
              "/* What a code says, and the line of the Python program that fails. */",
              "struct failure {", "  const char *text;", "  const char *file;  /* or null */",
              "  int line;", "};\n"]
    return "\n".join(lines)


def _library(module: CudaModule, constants: ConstantBlock) -> str:
    return "\n".join([
        "/* The kernels in a context of the driver. */", "struct Library {", "  CUmodule module;",
        f"  CUfunction kernels[{len(module.kernels)}];",
        f"  char *constants;  /* {len(constants.data)} bytes of the device's memory */",
        "  int multiprocessors;", "};\n"])


def _loading(module: CudaModule, constants: ConstantBlock) -> str:
    names = ",\n".join(f'    "{kernel.name}"' for kernel in module.kernels)
    words = bytes(constants.data) + b"\0" * (-len(constants.data) % 8)
    listed = ", ".join(f"0x{int.from_bytes(words[k:k + 8], 'little'):x}ull"
                       for k in range(0, len(words), 8))
    fill = ["  static const uint64_t words[] = {", f"    {listed}", "  };",
            "  CUdeviceptr memory = 0;",
            "  if (!code) code = detail::driver(cuMemAlloc(&memory, sizeof words));",
            "  if (!code) library->constants = reinterpret_cast<char *>(memory);",
            "  if (!code) code = detail::driver(cuMemcpyHtoD(memory, words, sizeof words));",
            ] if words else []
    return "\n".join([
        "/* Give the kernels, and the memory of constants, back. */",
        "static inline int unload(Library *library) {",
        "  int code = 0;",
        "  if (library->constants) code = detail::driver(cuMemFree(CUdeviceptr("
        "library->constants)));",
        "  const int other = library->module ? detail::driver(cuModuleUnload(library->module)) : 0;"
        , "  *library = Library();", "  return code ? code : other;", "}\n",
        "/* Load the kernels into the current context: `image` is PTX (with a zero at its end), a "
        "cubin or a", "   fatbin of the .cu file.  A function may be called by several threads at "
        "once. */",
        "static inline int load(Library *library, const void *image) {",
        "  static const char *const names[] = {", names, "  };",
        "  *library = Library();",
        "  int code = detail::driver(cuModuleLoadData(&library->module, image));",
        "  CUdevice device = 0;",
        "  if (!code) code = detail::driver(cuCtxGetDevice(&device));",
        "  if (!code) code = detail::driver(cuDeviceGetAttribute(&library->multiprocessors,",
        "      CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));",
        f"  for (int k = 0; !code && k < {len(module.kernels)}; ++k)",
        "    code = detail::driver(cuModuleGetFunction(&library->kernels[k], library->module, "
        "names[k]));", *fill, "  if (code) unload(library);", "  return code;", "}\n"])


__all__ = ["CudaSources", "library_sources"]
