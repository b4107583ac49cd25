"""Libraries for C: bits, memory, errors, layout of the files."""

from __future__ import annotations

import ctypes
import re
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.codegen.objects import elf_object as elf
from fusec.codegen.objects.elf_object import ElfObject

from .c_program import needs_compiler
from .calling import CFunction

SPEC = fusec.TensorSpec
V3 = ("v3",)
rng = np.random.default_rng(40)


def has_level(level: str) -> bool:
    flags = Path("/proc/cpuinfo").read_text().split()
    return {"v3": {"avx2", "fma", "f16c"}, "v4": {"avx512f", "avx512vl"}}[level] <= set(flags)


pytestmark = pytest.mark.skipif(
    not Path("/proc/cpuinfo").is_file() or not has_level("v3"), reason="needs x86-64-v3")


def axpy(a: Any, x: Any, y: Any) -> Any:
    return a * x + np.sin(y)


def centred(x: Any) -> Any:
    z = x - x.mean(axis=0)
    return z / np.sqrt((z * z).sum()), z.max()


def outer(x: Any, y: Any) -> Any:
    return np.maximum(x, y[:, None]), x.T


def scale(x: Any, s: Any) -> None:
    x *= s


def taken(x: Any, i: Any) -> Any:
    return x[i] * 2


def refuses(x: Any) -> Any:
    if x[0] > 10.0:
        raise ValueError("too large")
    if x[1] < 0.0:
        raise ArithmeticError("negative")
    return np.exp(x)


def running(x: Any, limit: Any) -> Any:
    total, i = 0.0, 0
    while total < limit and i < len(x):
        total += x[i]
        x[i] = total
        i += 1
    return total, i


def loaded(library: Any) -> dict[str, CFunction]:
    handle = ctypes.CDLL(str(library.shared))
    return {f.name: CFunction(handle, f) for f in library.functions}


@pytest.fixture(scope="module")
def library(tmp_path_factory: Any) -> Any:
    vector, matrix = SPEC((None,)), SPEC((None, None))
    return fusec.export_c({
        "axpy": (axpy, (2.5, vector, vector)), "centred": (centred, (SPEC((None, 70)),)),
        "points": (centred, (SPEC((None, 2)),)),
        "scale": (scale, (vector, 2.0)),
        "taken": (taken, (vector, SPEC((None,), np.int64))),
        "refuses": (refuses, (vector,)), "outer": (outer, (matrix, vector)),
        "running": (running, (vector, 3.0)),
    }, tmp_path_factory.mktemp("c") / "shapes", ("v3", "v4"))


@pytest.fixture(scope="module")
def functions(library: Any) -> dict[str, CFunction]:
    return loaded(library)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 8, 40, 1000, 40_000])
def test_elementwise_has_fusecs_bits(functions: dict[str, CFunction], n: int) -> None:
    x, y = rng.random(n), rng.random(n)
    code, (out,), _ = functions["axpy"]([1.5, x, y])
    assert code == 0
    assert np.array_equal(out, fusec.jit(axpy)(1.5, x, y))


@pytest.mark.parametrize("shape", [(1, 1), (1, 40), (40, 1), (40, 40), (70, 300), (300, 70)])
def test_several_sizes_and_views_as_results(
    functions: dict[str, CFunction], shape: tuple[int, int]
) -> None:
    x, y = rng.random(shape), rng.random(shape[0])
    code, (out, turned), _ = functions["outer"]([x, y])
    want = fusec.jit(outer)(x, y)
    assert code == 0
    assert np.array_equal(out.reshape(shape), want[0])
    assert np.array_equal(turned.reshape(shape[::-1]), want[1])


@pytest.mark.parametrize("n", [2, 5, 40, 300, 20_000])
def test_reductions_and_temporaries_have_fusecs_bits(
    functions: dict[str, CFunction], n: int
) -> None:
    x = rng.random((n, 70))
    code, (out, largest), _ = functions["centred"]([x])
    want = fusec.jit(centred)(x)
    assert code == 0
    assert np.array_equal(out.reshape(n, 70), want[0])
    assert largest[0] == want[1]


def test_an_argument_is_changed(functions: dict[str, CFunction]) -> None:
    x = rng.random(100)
    code, results, written = functions["scale"]([x, 3.0])
    assert (code, results) == (0, [])
    assert np.array_equal(written[0], x * 3.0)


@pytest.mark.parametrize("n", [2, 5, 60])
def test_a_loop_with_a_changed_argument(functions: dict[str, CFunction], n: int) -> None:
    x = rng.random(n)
    mine = x.copy()
    total, i = fusec.jit(running)(mine, 3.0)
    code, results, written = functions["running"]([x, 3.0])
    assert (code, results[0][0], results[1][0]) == (0, total, i)
    assert np.array_equal(written[0], mine)


class FailureRecord(ctypes.Structure):
    _fields_ = (("text", ctypes.c_char_p), ("file", ctypes.c_char_p), ("line", ctypes.c_int32),
                ("index", ctypes.c_int64), ("size", ctypes.c_int64))


def told(function: CFunction, code: int, workspace: int | None = None) -> FailureRecord:
    record = FailureRecord()
    answer = function.library[f"{function.function.name}_error"](
        code, ctypes.c_void_p(workspace), ctypes.byref(record))
    assert answer == 0
    return record


def test_an_index_out_of_range_is_told_with_its_line(functions: dict[str, CFunction]) -> None:
    function = functions["taken"]
    x, i = rng.random(30), np.array([3, -30, 7, 31, -44])
    code, _, _ = function([x, i])
    record = told(function, code, function.workspace.address)
    assert code > 0
    assert record.text == b"IndexError: an index is out of bounds for axis 0"
    assert record.file.endswith(b"test_c_library.py")
    assert record.line == taken.__code__.co_firstlineno + 1
    assert (record.index, record.size) == (31, 30)
    code, (out,), _ = function([x, i[:3]])
    assert code == 0 and np.array_equal(out, x[i[:3]] * 2)


@pytest.mark.parametrize(("values", "text", "line"), [
    ((11.0, 1.0), b"ValueError: too large", 1), ((1.0, -1.0), b"ArithmeticError: negative", 3),
    ((11.0, -1.0), b"ValueError: too large", 1)])
def test_which_check_failed(
    functions: dict[str, CFunction], values: tuple[float, float], text: bytes, line: int
) -> None:
    function = functions["refuses"]
    code, _, _ = function([np.array([*values, 0.5])])
    record = told(function, code, function.workspace.address)
    assert (record.text, record.line) == (text, refuses.__code__.co_firstlineno + line)
    assert (record.index, record.size) == (-1, -1)


# -- bad calls

def call(function: CFunction, sizes: list[int], pointers: list[Any], nbytes: int) -> int:
    passed = [ctypes.c_int64(n) for n in sizes]
    passed += [p if isinstance(p, ctypes._SimpleCData) else ctypes.c_void_p(p) for p in pointers]
    return function.library[function.function.name](*passed, ctypes.c_size_t(nbytes))


def test_bad_pointers_are_named(functions: dict[str, CFunction]) -> None:
    function, n = functions["axpy"], 64
    memory = np.zeros(4 * n + 8)
    x, y, out = (memory.ctypes.data + 8 * n * k for k in range(3))
    a = ctypes.c_double(1.0)
    for pointers, name, what in (
            ([None, y, out], "x", "is NULL"), ([x, y, None], "out", "is NULL"),
            ([x, y + 4, out], "y", "is not aligned"), ([x, y, y + 8], "y", "overlaps"),
            ([x, y, x], "x", "overlaps")):
        code = call(function, [n], [a, *pointers, None], 0)
        assert code < 0
        text = told(function, code).text.decode()
        assert text.startswith(f"{name} {what}"), text
    assert call(function, [n], [a, x, y, out, None], 0) == 0


def test_a_small_workspace_and_odd_sizes_are_errors(functions: dict[str, CFunction]) -> None:
    function, x = functions["centred"], rng.random((30, 70))
    out, largest = np.empty_like(x), np.empty(1)
    _, _, needed = function.nbytes([ctypes.c_int64(30)])
    assert needed > 0
    memory = np.empty(needed + 64, np.uint8)
    pointers = [a.ctypes.data for a in (x, out, largest, memory)]
    assert call(function, [30], pointers, needed - 1) == -3
    assert call(function, [30], [*pointers[:3], None], needed) == -3
    assert call(function, [-1], pointers, needed) == -2
    assert call(function, [30], pointers, needed) == 0
    overlapping = [*pointers[:3], out.ctypes.data]
    assert call(function, [30], overlapping, needed) < -1000
    assert b"workspace" in told(function, -3).text


def summed(x: Any, s: Any) -> Any:
    x *= s
    return x + 1.0, x.sum()


def element(x: Any, i: Any) -> Any:
    return x[i]


def test_an_array_without_elements_is_not_read(tmp_path: Path) -> None:
    """Code loads before it checks an index, and blocks of a sum: address 4096 has no memory."""
    vector = SPEC((None,))
    made = loaded(fusec.export_c({
        "taken": (taken, (vector, SPEC((None,), np.int64))), "summed": (summed, (vector, 2.0)),
        "element": (element, (vector, np.int64(0)))}, tmp_path / "none", V3))
    memory, nowhere = np.zeros((4, 64), np.int64), 4096
    out, total, workspace, i = (row.ctypes.data for row in memory)
    assert call(made["summed"], [0], [nowhere, ctypes.c_double(2), out, total, workspace], 512) == 0
    for function, sizes, index in ((made["taken"], [0, 64], i),
                                   (made["element"], [0], ctypes.c_int64(1 << 40))):
        code = call(function, sizes, [nowhere, index, out, workspace], 512)
        assert told(function, code, workspace).text.startswith(b"IndexError")
        assert told(function, code, workspace).size == 0


# -- DLPack

class Tensor(ctypes.Structure):
    _fields_ = (("data", ctypes.c_void_p), ("device", ctypes.c_int32), ("number", ctypes.c_int32),
                ("rank", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p),
                ("strides", ctypes.c_void_p), ("offset", ctypes.c_uint64))

    @classmethod
    def of(cls, array: np.ndarray) -> Tensor:
        shape = np.array(array.shape, np.int64)
        strides = np.array(array.strides, np.int64) // array.itemsize
        made = cls(array.ctypes.data, 1, 0, array.ndim, {"f": 2, "i": 0}[array.dtype.kind],
                   8 * array.itemsize, 1, shape.ctypes.data, strides.ctypes.data, 0)
        made.kept = array, shape, strides
        return made


def test_dlpack_tensors_are_checked(functions: dict[str, CFunction]) -> None:
    function, x, y = functions["axpy"], rng.random(50), rng.random(50)
    run = function.library.axpy_dlpack

    def called(x: Any, y: Any, out: Any) -> int:
        tensors = [Tensor.of(a) if isinstance(a, np.ndarray) else a for a in (x, y, out)]
        return run(ctypes.c_double(2.0), *(ctypes.byref(t) for t in tensors), None,
                   ctypes.c_size_t(0))

    out = np.empty(50)
    assert called(x, y, out) == 0
    assert np.array_equal(out, fusec.jit(axpy)(2.0, x, y))
    shifted = Tensor.of(rng.random(60))
    shifted.offset, shifted.kept[1][0] = 80, 50
    assert called(shifted, y, out) == 0
    assert np.array_equal(out, fusec.jit(axpy)(2.0, shifted.kept[0][10:], y))
    elsewhere = Tensor.of(x)
    elsewhere.device = 2
    for arguments, text in (
            ((x.astype(np.float32), y, out), "x has another dtype"),
            ((x, y[:, None], out), "y has another number of axes"),
            ((x, rng.random(100)[::2], out), "y does not lie in C order"),
            ((x, y[:40], out), "y has another size"),
            ((x, y, np.empty(49)), "out has another size"),
            ((elsewhere, y, out), "x is not in the memory of the CPU")):
        code = called(*arguments)
        assert told(function, code).text.decode().startswith(text), (code, text)


def test_dlpack_tensors_without_data_and_shape(functions: dict[str, CFunction]) -> None:
    """DLPack gives arrays without elements the address NULL."""
    function = functions["axpy"]

    def called(x: Tensor, n: int) -> int:
        y, out = (Tensor.of(np.empty(n)) for _ in range(2))
        return function.library.axpy_dlpack(
            ctypes.c_double(2.0), *map(ctypes.byref, (x, y, out)), None, ctypes.c_size_t(0))

    x, empty, shapeless = (Tensor.of(np.zeros(n)) for n in (50, 0, 50))
    x.data, x.offset, empty.data, empty.offset, shapeless.shape = None, 8, None, 8, None
    assert [called(x, 50), called(shapeless, 50), called(empty, 0)] == [-1001, -1001, 0]


def test_told_without_memory_to_tell_it(functions: dict[str, CFunction]) -> None:
    library = functions["axpy"].library
    assert library.axpy_error(-2, None, None) == -1
    assert library.axpy_shapes(ctypes.c_int64(9), None) == 0


# -- files

def test_a_cpu_that_lacks_instructions_gets_an_error(
    library: Any, functions: dict[str, CFunction]
) -> None:
    """The CPU's level is remembered in a word of the library, which a test may set."""
    handle = functions["axpy"].library
    place = symbol_of(library.shared.read_bytes(), "shapes.found") - symbol_of(
        library.shared.read_bytes(), "axpy")
    word = ctypes.c_int32.from_address(ctypes.cast(handle.axpy, ctypes.c_void_p).value + place)
    x = rng.random(9)
    before = word.value
    assert before in (-2, 0, 1)
    try:
        word.value = -1
        code, _, _ = functions["axpy"]([1.5, x, x])
        assert code == -1
        results = []
        for level in (0, 1) if has_level("v4") else (0,):
            word.value = level
            results.append(functions["axpy"]([1.5, x, x])[1][0])
        assert all(np.array_equal(r, results[0]) for r in results)
    finally:
        word.value = before


def symbol_of(image: bytes, name: str) -> int:
    at, count = struct.unpack_from("<Q", image, 40)[0], struct.unpack_from("<H", image, 60)[0]
    headers = [elf.SECTION.unpack_from(image, at + elf.SECTION.size * k) for k in range(count)]
    table = next(h for h in headers if h[1] == elf.SHT_SYMTAB)
    names = headers[table[6]]
    for k in range(table[5] // elf.SYMBOL.size):
        entry = elf.SYMBOL.unpack_from(image, table[4] + elf.SYMBOL.size * k)
        start = names[4] + entry[0]
        if image[start: image.index(b"\0", start)].decode() == name:
            return entry[4]
    raise KeyError(name)


C_PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include "shapes.h"
int main(void) {
    double x[6] = {1, 2, 3, 4, 5, 7}, out[6], largest;
    size_t bytes[2], workspace;
    if (points_sizes(3, bytes, &workspace) || bytes[0] != sizeof out) return 1;
    void *memory = malloc(workspace);
    int code = points(3, x, out, &largest, memory, workspace);
    for (int i = 0; i < 6; i++) printf("%a ", out[i]);
    printf("%a %d ", largest, code);
    shapes_failure failure;
    int64_t i[2] = {0, 9};
    taken_sizes(6, 2, bytes, &workspace);
    memory = realloc(memory, workspace);
    code = taken(6, 2, x, i, out, memory, workspace);
    if (taken_error(code, memory, &failure)) return 2;
    printf("%s %d %d", failure.text, (int)failure.index, (int)failure.size);
    free(memory);
    return 0;
}
"""


@needs_compiler
@pytest.mark.parametrize("how", ["shared", "static", "c++"])
def test_a_c_program(library: Any, tmp_path: Path, how: str) -> None:
    if how == "c++" and shutil.which("c++") is None:
        pytest.skip("needs a C++ compiler")
    source = tmp_path / ("main.cpp" if how == "c++" else "main.c")
    source.write_text(C_PROGRAM)
    linked = [str(library.static), "-lm"] if how == "static" else [
        f"-L{library.folder}", "-lshapes", f"-Wl,-rpath,{library.folder}"]
    options = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
    options += [] if how == "c++" else ["-std=c11"]
    subprocess.run([how if how == "c++" else "cc", *options, f"-I{library.folder}", str(source),
                    "-o", str(tmp_path / "main"), *linked], check=True)
    answer = subprocess.run([tmp_path / "main"], check=True, capture_output=True, text=True).stdout
    x = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]])
    out, largest = fusec.jit(centred)(x)
    *numbers, code, rest = answer.split(" ", 8)
    assert [float.fromhex(n) for n in numbers] == [*out.flat, largest]
    assert (code, rest) == ("0", "IndexError: an index is out of bounds for axis 0 9 6")


@pytest.mark.skipif(shutil.which("ldd") is None, reason="needs ldd")
def test_it_needs_libc_and_libm_alone(library: Any) -> None:
    shown = subprocess.run(["ldd", library.shared], check=True, capture_output=True, text=True)
    names = {Path(line.split()[0]).name.partition(".")[0] for line in shown.stdout.splitlines()
             if line.strip() != "statically linked"}
    assert names <= {"linux-vdso", "libc", "libm", "ld-linux-x86-64"}


@pytest.mark.skipif(shutil.which("readelf") is None, reason="needs readelf")
def test_binutils_find_nothing_odd(library: Any) -> None:
    shown = subprocess.run(["readelf", "-aW", "--debug-dump=frames", library.shared], check=True,
                           capture_output=True, text=True)
    assert not re.findall(r"(?i)warning|error|corrupt", shown.stderr)
    visible = re.findall(r"GLOBAL DEFAULT +\d+ (\w+)", shown.stdout)
    assert {name for f in library.functions for name in (
        f.name, f"{f.name}_sizes", f"{f.name}_dlpack", f"{f.name}_error")} <= set(visible)


def test_the_same_function_gives_the_same_files(tmp_path: Path) -> None:
    made = [fusec.export_c({"axpy": (axpy, (2.5, SPEC((None,)), SPEC((None,))))},
                           tmp_path / name / "lib", V3) for name in "ab"]
    for file in ("shared", "static", "header"):
        assert getattr(made[0], file).read_bytes() == getattr(made[1], file).read_bytes()
    with pytest.raises(fusec.errors.InternalError):
        ElfObject(made[0].shared.read_bytes())  # no relocatable object
