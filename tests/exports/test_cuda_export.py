"""Libraries for CUDA: what the header launches, on the emulated device; errors; the files."""

from __future__ import annotations

import ctypes
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.codegen.cuda.driver import nvrtc
from fusec.codegen.cuda.exported.host_numbers import (
    Branch,
    HostExpr,
    explored,
    extremum,
    plain,
    text_number,
)
from fusec.codegen.cuda.kernels.launch_plan import blocks_for

from .cuda_calling import CudaProgram
from .cuda_corpus import DEVICE

SPEC = fusec.TensorSpec
rng = np.random.default_rng(40)
needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
TABLE = rng.random((4, 3))


def axpy(a: Any, x: Any, y: Any) -> Any:
    return a * x + np.sqrt(y)


def rows(x: Any) -> Any:
    e = np.sqrt(x.max(axis=1, keepdims=True) - x)
    return e / e.sum(axis=1, keepdims=True)


def moments(x: Any) -> Any:
    return x.mean(), x - x.mean(), x * (len(x) / 3.0)


def columns(x: Any) -> Any:
    return x.sum(axis=0), x.T + 1.0


def turned(z: Any, x: Any, flag: Any) -> Any:
    return z * x, np.where(flag, x, -x) @ TABLE


def scale(x: Any, s: Any) -> None:
    x *= s


def diffused(u: Any) -> Any:
    for _ in range(30):
        u = u + 0.1 * (np.roll(u, 1) - 2 * u + np.roll(u, -1))
    return u


def collatz(n: Any) -> Any:
    count = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        count += 1
    return count


def taken(x: Any, i: Any) -> Any:
    return x[i] * 2


def followed(x: Any, i: Any) -> Any:
    k = x[i].sum()
    while k > 0:  # of an index that is wrong nobody knows how long
        k -= x[0]
    return k


def sized(x: Any) -> Any:
    return len(x), x * 2, 2.5 if len(x) < 10 else 3.5, math.sqrt(len(x)) / 3, True


FUNCTIONS: dict[str, Any] = {
    "axpy": (axpy, (2.5, SPEC((None,)), SPEC((None,)))),
    "rows": (rows, (SPEC((None, None)),)),
    "moments": (moments, (SPEC((None,)),)),
    "columns": (columns, (SPEC((None, 6)),)),
    "turned": (turned, (np.complex128(1j), SPEC((4,)), np.bool_(True))),
    "scale": (scale, (SPEC((None,), np.float32), np.float32(3))),
    "diffused": (diffused, (SPEC((700,)),)),
    "collatz": (collatz, (np.int64(27),)),
    "taken": (taken, (SPEC((None,)), SPEC((None,), np.int64))),
    "followed": (followed, (SPEC((5,)), SPEC((3,), np.int64))),
    "sized": (sized, (SPEC((None,)),)),
}


@pytest.fixture(scope="module")
def program(tmp_path_factory: Any) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nvrtc, "is_available", lambda: False)  # which has a test of its own
        made = fusec.export_cuda(FUNCTIONS, tmp_path_factory.mktemp("cuda") / "kernels")
    return CudaProgram(made)


def called(program: Any, name: str, *leaves: Any) -> tuple[int, list[Any], dict[int, Any]]:
    functions = {f.name: f for f in program.made.functions}
    code, results, written = program.call(functions[name], leaves)
    assert program.error is None
    return code, results, written


@needs_compiler
@pytest.mark.parametrize("n", [0, 1, 2, 7, 1000, 4100])
def test_elementwise_at_any_size(program: Any, n: int) -> None:
    x, y = rng.random((2, n))
    code, (result,), _ = called(program, "axpy", np.float64(1.5), x, y)
    assert code == 0 and np.array_equal(result, fusec.jit(axpy)(1.5, x, y))
    changed = x.astype(np.float32)
    code, _, written = called(program, "scale", changed, np.float32(1.25))
    assert code == 0 and np.array_equal(written[0], changed * np.float32(1.25))


@needs_compiler
@pytest.mark.parametrize("n", [0, 1, 9, 41])
def test_numbers_that_no_array_decides_are_results(program: Any, n: int) -> None:
    code, results, _ = called(program, "sized", np.ones(n))
    want = [np.asarray(x) for x in sized(np.ones(n))]
    assert code == 0
    assert all(a.dtype == b.dtype and np.array_equal(a, b)
               for a, b in zip(results, want, strict=True))


@needs_compiler
@pytest.mark.parametrize("shape", [(30, 41), (1, 1), (40, 600), (1, 5000), (3000, 43)])
def test_rows_and_columns(program: Any, shape: tuple[int, int]) -> None:
    x = rng.random(shape)
    code, (result,), _ = called(program, "rows", x)
    assert code == 0 and np.allclose(result, rows(x), rtol=1e-13, atol=0, equal_nan=True)
    y = rng.random((shape[0], 6))
    code, (sums, turned_), _ = called(program, "columns", y)
    assert code == 0 and np.allclose(sums, y.sum(axis=0), rtol=1e-13, atol=0)
    assert np.array_equal(turned_, y.T + 1.0)


@needs_compiler
@pytest.mark.parametrize("n", [2, 9, 30_000])
def test_numbers_that_follow_from_sizes(program: Any, n: int) -> None:
    x = rng.random(n)
    code, (mean, rest, third), _ = called(program, "moments", x)
    assert code == 0 and np.isclose(mean, x.mean(), rtol=1e-14, atol=0)
    assert np.allclose(rest, x - mean, rtol=0, atol=1e-15) and np.array_equal(third, x * (n / 3.0))


@needs_compiler
@pytest.mark.parametrize("flag", [True, False])
def test_numbers_by_value_and_constants(program: Any, flag: bool) -> None:
    x = rng.random(4)
    code, (product, chosen), _ = called(program, "turned", np.complex128(2 - 3j), x, np.bool_(flag))
    assert code == 0 and np.array_equal(product, (2 - 3j) * x)
    assert np.allclose(chosen, (x if flag else -x) @ TABLE, rtol=1e-14, atol=0)


@needs_compiler
def test_loops_have_the_devices_bits(program: Any) -> None:
    u = rng.random(700)
    code, (result,), _ = called(program, "diffused", u)
    assert code == 0 and np.array_equal(result, fusec.jit(diffused, device=DEVICE)(u))
    for n in (1, 27, 97):
        assert called(program, "collatz", np.int64(n))[1] == [collatz(n)]


def described(program: Any, name: str, code: int) -> tuple[str, int]:
    tell, line = program.program[f"t_{name}_error"], ctypes.c_int(-1)
    tell.restype = ctypes.c_char_p
    text = tell(code, ctypes.byref(line))
    return "" if text is None else text.decode(), line.value


@needs_compiler
def test_failed_checks_are_told_with_the_line(program: Any) -> None:
    x = rng.random(5)
    code, (result,), _ = called(program, "taken", x, np.array([1, 4, -1]))
    assert code == 0 and np.array_equal(result, x[[1, 4, -1]] * 2)
    code, _, _ = called(program, "taken", x, np.array([1, 5, -1]))
    text, line = described(program, "taken", code)
    assert code > 0 and text.startswith("IndexError: an index is out of bounds for axis 0")
    assert line == taken.__code__.co_firstlineno + 1
    program.launched.clear()
    code, _, _ = called(program, "followed", np.zeros(5), np.array([1, 5, -1]))
    assert code > 0 and any("loop" in name for name in program.launched)  # which skips itself


def _raw(
    program: Any, x: int, y: int, out: int, n: int = 8, workspace: int = 1 << 20
) -> int:
    pointers = map(ctypes.c_void_p, (x, y, out, workspace))
    code: int = program.program.t_axpy(ctypes.c_int64(n), ctypes.c_double(1), *pointers,
                                       ctypes.c_size_t(1 << 20), None)
    return code


@needs_compiler
def test_bad_calls_have_codes(program: Any) -> None:
    assert _raw(program, 0, 1 << 12, 1 << 13) == -1001
    assert _raw(program, 1 << 14, (1 << 12) + 4, 1 << 13) == -2002
    assert _raw(program, 1 << 12, 1 << 13, (1 << 12) + 8) == -3001
    assert _raw(program, 1 << 12, 1 << 13, 1 << 14, workspace=0) == -3
    assert _raw(program, 1 << 12, 1 << 13, 1 << 14, workspace=1 << 12 | 64) == -3
    assert _raw(program, 1 << 12, 1 << 13, 1 << 14, -1) == -2
    assert _raw(program, 1 << 12, 1 << 13, 1 << 14, 1 << 60) == -2
    assert described(program, "axpy", -3001)[0] == "x overlaps an array that the call writes"
    assert described(program, "axpy", -100_700)[0].startswith("a call of the CUDA driver failed")
    assert described(program, "axpy", 99)[0] == ""


@pytest.mark.skipif(not nvrtc.is_available(), reason="NVRTC: of the extra cuda")
def test_nvrtc_takes_the_source(tmp_path: Path) -> None:
    functions = {name: FUNCTIONS[name] for name in ("axpy", "diffused", "taken")}
    made = fusec.export_cuda(functions, tmp_path / "rows", arch="sm_80")
    assert made.ptx is not None and ".target sm_80" in made.ptx.read_text()
    assert made.source.read_text() == made.module.source
    assert nvrtc.compile(made.module, "sm_90").usage.keys() == {
        kernel.name for kernel in made.module.kernels}


def test_without_nvrtc_there_are_sources(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(nvrtc, "is_available", lambda: False)
    made = fusec.export_cuda({"axpy": FUNCTIONS["axpy"]}, tmp_path / "lib")
    assert made.ptx is None
    assert sorted(p.name for p in made.folder.iterdir()) == ["lib.cu", "lib.hpp"]


class Counter:
    def __init__(self) -> None:
        self.calls = 0


COUNTER = Counter()


def counting(x: Any) -> Any:
    COUNTER.calls += 1
    return x + COUNTER.calls


def sorted_and_shifted(x: Any) -> Any:
    return np.sort(x), np.fft.fft(x)


def test_all_refusals_are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(fusec.UnsupportedError) as raised:
        fusec.export_cuda({
            "a": (sorted_and_shifted, (SPEC((40,)),)), "b": (counting, (SPEC((40,)),)),
            "c": (diffused, (SPEC((None,)),))}, tmp_path / "lib")
    text = str(raised.value)
    for part in ("np.sort", "np.fft.fft", "Counter.calls", "where specs leave sizes open"):
        assert part in text
    assert not (tmp_path / "lib").exists()


@pytest.mark.parametrize(("name", "arch", "text"), [
    ("load", "sm_90", "cannot define load"), ("f", "hopper", "is no architecture")])
def test_names_that_there_are_not(tmp_path: Path, name: str, arch: str, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        fusec.export_cuda({name: FUNCTIONS["axpy"]}, tmp_path / "lib", arch)


# -- numbers of the host's


def evaluated(x: Any, n: int, m: int) -> Any:
    """A tree's result for these values of "n" and "m"."""
    while isinstance(x, Branch):
        a, b = (evaluated(side, n, m) for side in x.condition)
        x = x.yes if (a < b if x.op == "<" else a == b) else x.no
    if not isinstance(x, HostExpr):
        return x
    if x.op == "text":
        return {"n": n, "m": m}[x.args[0]]
    a, *rest = (evaluated(arg, n, m) for arg in x.args)
    return {"+": lambda: a + rest[0], "-": lambda: a - rest[0], "*": lambda: a * rest[0],
            "//": lambda: a // rest[0], "%": lambda: a % rest[0], "<<": lambda: a << rest[0],
            "min": lambda: min(a, *rest), "max": lambda: max(a, *rest),
            "bit_length": lambda: a.bit_length()}[x.op]()


def _layouts(n: Any, m: Any) -> Any:
    """As geometries compute: quotients rounded up, bounds, choices."""
    yield blocks_for(n * m, 256, 1 << 14)
    yield -(-n // 8) * -(-m // 3) - 1
    yield extremum("max", n - m, 0)
    yield max(1, min(n, 7)) if m > 9 else -n
    yield (n - 1).bit_length() if n == m else n % 5
    yield 3 * (m - n) + (n << 2) + max(n - 9, m - 9, 0)
    yield 0 if n - m else 1 << ((n * 0) + 3)


@pytest.mark.parametrize("which", range(7))
def test_host_numbers_are_pythons(which: int) -> None:
    n, m = text_number("n", 0), text_number("m", 1)
    tree = explored(lambda: plain([*_layouts(n, m)][which]))
    for a, b in [(0, 1), (1, 1), (7, 9), (9, 7), (10, 10), (1000, 3), (3, 5000), (1 << 30, 4096)]:
        assert evaluated(tree, a, b) == [*_layouts(a, b)][which], (a, b)


def test_a_library_has_a_text(tmp_path: Path) -> None:
    """That of its fields would be one of sizes whose trace is over."""
    spec = SPEC((None,))
    made = fusec.export_cuda({"dot": (lambda x, y: x @ y, (spec, spec))}, tmp_path / "lib")
    assert repr(made) == f"<fusec.export_cuda {tmp_path / 'lib'}: dot>"


def test_ptx_of_other_sources_goes(tmp_path: Path) -> None:
    """The new header would launch its kernels, which may have the same names."""
    specs = (2.0, SPEC((None,)), SPEC((None,)))
    library = fusec.export_cuda({"axpy": (axpy, specs)}, tmp_path / "lib")
    other = library.folder / "lib.sm_75.ptx"
    other.write_text("of the same sources")
    fusec.export_cuda({"axpy": (axpy, specs)}, library.folder)
    assert other.exists()
    fusec.export_cuda({"axpy": (axpy, specs), "scale": (scale, (SPEC((None,)), 2.0))},
                      library.folder)
    assert not other.exists()
