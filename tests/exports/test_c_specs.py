"""What libraries for C are made of: functions and specs that are refused, examples, numbers."""

from __future__ import annotations

import ctypes
import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fusec

from .calling import number
from .test_c_library import V3, loaded, pytestmark, scale

__all__ = ["pytestmark"]
SPEC = fusec.TensorSpec
rng = np.random.default_rng(40)


def test_all_that_needs_python_is_refused_at_once(tmp_path: Path) -> None:
    def sorts(x: Any) -> Any:
        return np.sort(x) + np.unique(x).sum()

    def draws(x: Any) -> Any:
        return x + np.random.default_rng(3).normal()

    def counts(x: Any) -> Any:
        global total
        total = str(len(x))
        return x

    with pytest.raises(fusec.UnsupportedError) as caught:
        fusec.export_c({"sorts": (sorts, (SPEC((None,)),)), "draws": (draws, (SPEC((None,)),)),
                        "counts": (counts, (SPEC((3,)),))}, tmp_path / "none", V3)
    text = str(caught.value)
    for part in ("np.sort", "sorts", "draws", "counts", "test_c_specs.py"):
        assert part in text
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(("changed", "text"), [
    ({"levels": ("v9",)}, "v3"), ({"levels": ()}, "v3"),
    ({"levels": ("v3", "aarch64")}, "machines"),
    ({"threads": "many"}, "none"), ({"path": "1st"}, "letter"),
    ({"functions": {"a b": (scale, ())}}, "letter"), ({"functions": {}}, "function")])
def test_bad_input(tmp_path: Path, changed: dict[str, Any], text: str) -> None:
    given: dict[str, Any] = {"functions": {"scale": (scale, (SPEC((None,)), 2.0))},
                             "path": "lib", "levels": V3, "threads": "none"} | changed
    with pytest.raises(ValueError, match=text):
        fusec.export_c(given.pop("functions"), tmp_path / given.pop("path"), **given)


@pytest.mark.parametrize("name", [
    "write", "read", "exp", "log", "signal", "abort", "calloc", "malloc", "isfinite", "setjmp",
    "linux", "unix", "errno", "I", "stdin", "main"])
def test_names_of_the_c_library(tmp_path: Path, name: str) -> None:
    """A program that links the library would call `write` of it from its own `printf`."""
    with pytest.raises(ValueError, match=f"cannot define {name}, .*\\n.*name it lib_{name}"):
        fusec.export_c({name: (scale, (SPEC((None,)), 2.0))}, tmp_path / "lib", V3)


@pytest.mark.parametrize("name", ["c", "m", "pthread", "w"])
def test_names_of_the_systems_libraries(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match=f"{name}.*\\n.*my_{name}"):
        fusec.export_c({"scale": (scale, (SPEC((None,)), 2.0))}, tmp_path / name, V3)


def test_parameters_of_a_macros_name(tmp_path: Path) -> None:
    def f(linux: Any, errno: Any, read: Any) -> Any:
        return linux * errno + read

    made = fusec.export_c({"f": (f, (SPEC((3,)), 2.0, 3.0))}, tmp_path / "lib", V3)
    assert "int f(const double *linux_, double errno_, double read," in made.header.read_text()


def test_a_strided_example_stands_for_arrays_in_c_order(tmp_path: Path) -> None:
    def picked(x: Any, i: Any) -> Any:
        return x[i] + x[::-1][i]

    x, i = rng.random(40)[::2], np.arange(60)[::-3] % 20
    made = fusec.export_c({"picked": (picked, (x, i))}, tmp_path / "dense", V3)
    code, (out,), _ = loaded(made)["picked"]([x, i])
    assert code == 0
    assert np.array_equal(out, fusec.jit(picked)(x, i))


def test_numbers_are_passed_by_value(tmp_path: Path) -> None:
    def mixed(a: Any, b: Any, c: Any, d: Any, x: Any) -> Any:
        return x * a + b * c - d

    given = (np.float32(1.5), np.int16(-7), np.complex128(2 - 1j), np.bool_(True))
    made = fusec.export_c({"mixed": (mixed, (*given, SPEC((4,))))}, tmp_path / "mixed", V3)
    x = rng.random(4)
    code, (out,), _ = loaded(made)["mixed"]([*given, x])
    assert code == 0
    assert np.array_equal(out, fusec.jit(mixed)(*given, x))
    assert number(made.functions[0].arguments[0], np.float32(2.0))[0].value == 2.0


def test_a_library_of_open_sizes_is_shown(tmp_path: Path) -> None:
    def halves(x: Any) -> Any:
        return x[: len(x) // 2] * 2.0

    made = fusec.export_c({"halves": (halves, (SPEC((None,)),))}, tmp_path / "lib", V3)
    assert repr(made) == f"<fusec.export_c {tmp_path / 'lib'}: halves>"


def test_no_memory_is_needed_for_the_largest_sizes_that_are_tried(tmp_path: Path) -> None:
    """Three axes are tried with 4096 elements each, half a terabyte: its export ended with a
    MemoryError."""
    def f(x: Any) -> Any:
        return x.sum(axis=1) * 2.0

    function = loaded(fusec.export_c({"f": (f, (SPEC((None,) * 3),))}, tmp_path / "lib", V3))["f"]
    code, _, _ = function.nbytes([ctypes.c_int64(n) for n in (4096, 4096, 4096)])
    assert code == 0
    x = rng.random((3, 41, 4))
    code, (out,), _ = function([x])
    assert code == 0 and np.array_equal(out, fusec.jit(f)(x).ravel())


def test_sizes_that_no_process_can_address_are_not_tried(tmp_path: Path) -> None:
    """4096 elements of each of four axes; an mmap of them fails, which ended the export."""
    def f(x: Any) -> Any:
        return x.sum(axis=3) * (2.0 if min(x.shape) > 2000 else 1.0)

    made = fusec.export_c({"f": (f, (SPEC((None,) * 4),))}, tmp_path / "lib", V3)
    x = rng.random((20, 18, 70, 50))
    code, (out,), _ = loaded(made)["f"]([x])
    assert code == 0
    assert np.allclose(out, x.sum(axis=3).ravel(), rtol=1e-13)


def test_numbers_that_no_array_decides_are_results(tmp_path: Path) -> None:
    """Sizes and constants; texts, None and arguments themselves are none."""
    def f(x: Any) -> Any:
        few = 1.5 if len(x) < 10 else 2.5
        return len(x), few, None, x, math.sqrt(len(x)) + 1, True, np.float32(0.5), "text"

    made = fusec.export_c({"f": (f, (SPEC((None,)),))}, tmp_path / "lib", V3)
    assert "result 2 is always None; result 3 is the argument x; result 7 is always 'text'" in (
        made.header.read_text())
    for n in (0, 1, 2, 9, 10, 70, 5000):
        code, results, _ = loaded(made)["f"]([rng.random(n)])
        want = [np.asarray(f(np.zeros(n))[k]) for k in (0, 1, 4, 5, 6)]
        assert code == 0
        assert [(r.dtype, r.item()) for r in results] == [(w.dtype, w.item()) for w in want]


def even(x: Any) -> Any:
    assert len(x) % 2 == 0, "even only"
    return x * 2.0


@pytest.mark.parametrize(("f", "kind", "said"), [
    (even, AssertionError, "even only"),
    (lambda x: x * [1, 2, 3][-len(x)], IndexError, "list index out of range"),
    (lambda x: x.reshape(2, -1), ValueError, "cannot reshape array of size 37"),
    (lambda x: x.reshape(28, 28), ValueError, "cannot reshape array of size 37")])
def test_a_size_that_was_tried_is_named(tmp_path: Path, f: Any, kind: Any, said: str) -> None:
    """The user gave none of 37: the program's own error alone would be a riddle."""
    with pytest.raises(fusec.UnsupportedError, match="a size of 37 of x's axis 0, which") as caught:
        fusec.export_c({"f": (f, (SPEC((None,)),))}, tmp_path / "lib", V3)
    assert f"raised: {kind.__name__}: {said}" in str(caught.value)
    assert isinstance(caught.value.__cause__, kind)


def test_errors_that_sizes_do_not_decide_are_the_programs_own(tmp_path: Path) -> None:
    def always(x: Any) -> Any:
        raise KeyError("always")

    for specs in ((SPEC((None,)),), (SPEC((3,)),)):
        with pytest.raises(KeyError, match="always"):
            fusec.export_c({"f": (always, specs)}, tmp_path / "lib", V3)
    with pytest.raises(AssertionError, match="even only"):
        fusec.export_c({"f": (even, (SPEC((3,)),))}, tmp_path / "lib", V3)


# -- sizes

def scanned(x: Any) -> Any:
    y = np.zeros(len(x))
    y[0] = x[0]
    for k in range(1, len(x)):
        y[k] = y[k - 1] * 0.9 + x[k]
    return y


def folded(x: Any) -> Any:
    total = 0.0
    for value in x:
        total = total * 0.5 + value
    return total


def crossed(x: Any, y: Any) -> Any:
    return x[:, None] * y


def product(a: Any, b: Any) -> Any:
    return a @ b


SIZES = {  # of program and axes: those that have code
    scanned: ((1,), [(n,) for n in range(1, 150)]), folded: ((1,), [(n,) for n in range(150)]),
    crossed: ((1, 1), [*itertools.product([*range(18), 20, 40, 64, 1000], repeat=2)]),
    product: ((2, 2), [*itertools.product((1, 2, 3, 5, 10, 16, 17, 32, 64, 100), repeat=3)])}


@pytest.mark.parametrize("program", SIZES, ids=lambda f: f.__name__)
def test_sizes_have_no_holes(tmp_path: Path, program: Any) -> None:
    """Loops over 9 or 11 were none, nor products of two equal sizes and another, of 5 and 7."""
    ranks, served = SIZES[program]
    made = fusec.export_c({"f": (program, tuple(SPEC((None,) * r) for r in ranks))},
                          tmp_path / "lib", V3)
    function = loaded(made)["f"]
    assert [s for s in served if function.nbytes([*map(ctypes.c_int64, s)])[0]] == []
    for sizes in served[::7]:
        shapes = [sizes[:2], sizes[1:]] if ranks == (2, 2) else [(n,) for n in sizes]
        arrays = [rng.random(shape) for shape in shapes]
        code, (out,), _ = function(arrays)
        assert code == 0
        assert np.allclose(out, np.ravel(program(*arrays)), rtol=1e-13)
