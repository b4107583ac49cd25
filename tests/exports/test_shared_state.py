"""Memory and values that functions of one library share: a struct has them as Python has them, or
the library is refused."""

from __future__ import annotations

import ctypes
import importlib
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.compiled.exports import traces

from .calling import CFunction
from .test_c_library import SPEC, V3
from .test_c_library import pytestmark as needs_v3

pytestmark = needs_v3
VECTOR = SPEC((3,))
X = np.array([1.0, 2.0, 4.0])


class Counted:
    def __init__(self) -> None:
        self.calls = 0

    def up(self, x: Any) -> Any:
        self.calls += 1
        return x * 1

    def looped(self, x: Any) -> Any:
        for _ in range(self.calls):
            x = x * 2
        return x + 0

    def branched(self, x: Any) -> Any:
        return x * 10 if self.calls > 1 else x * 1


class Two:
    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b

    def replaced(self, x: Any) -> Any:
        self.a = self.a + x
        return self.a * 1

    def reads(self, x: Any) -> Any:
        return self.b + x

    def both(self, x: Any) -> Any:
        self.a = self.a + x
        return self.b + x

    def joined(self, x: Any) -> Any:
        self.a = self.b = self.a + self.b + x
        return x * 1

    def changed(self, x: Any) -> Any:
        self.a[...] += x
        return self.b * 1

    def changed_and_replaced(self, x: Any) -> Any:
        self.a[...] += x
        self.a = self.a * 2
        return self.b * 1


def one() -> Two:
    array = np.zeros(3)
    return Two(array, array)


def apart() -> Two:
    return Two(np.zeros(3), np.ones(3))


def parts() -> Two:
    memory = np.arange(6.0)
    return Two(memory[:3], memory[1:4])


def export(folder: Path, owner: Any, names: tuple[str, ...]) -> Any:
    return fusec.export_c({n: (getattr(owner, n), (VECTOR,)) for n in names}, folder / "lib", V3)


@pytest.mark.parametrize(("owner", "names", "text"), [
    (Counted(), ("up", "looped"), "Counted.calls, which one function assigns"),
    (Counted(), ("branched", "up"), "Counted.calls, which one function assigns"),
    (one(), ("both",), "another name of its array"),
    (one(), ("changed_and_replaced", "reads"), "another name of its array"),
    (one(), ("replaced", "reads", "changed"), "another name of its array"),
    (apart(), ("joined", "changed"), "one array to Two.a and Two.b"),
    (parts(), ("changed", "reads"), "in whose memory Two.b lies"),
], ids=["loop", "branch", "read", "changed", "several", "joined", "parts"])
def test_what_a_struct_would_keep_apart_is_refused(
    tmp_path: Path, owner: Any, names: tuple[str, ...], text: str
) -> None:
    with pytest.raises(fusec.UnsupportedError) as caught:
        export(tmp_path, owner, names)
    assert text in str(caught.value)
    assert not (tmp_path / "lib").exists()


@pytest.mark.parametrize(("make", "names"), [
    (one, ("replaced", "reads")), (one, ("changed", "reads")), (apart, ("joined", "reads")),
    (apart, ("both", "changed"))])
def test_what_a_struct_can_hold_is_as_in_python(
    tmp_path: Path, make: Any, names: tuple[str, ...]
) -> None:
    owner = make()
    made = export(tmp_path, owner, names)
    handle = ctypes.CDLL(str(made.shared))
    first = CFunction(handle, made.functions[0])
    called = {f.name: CFunction(handle, f, first.state) for f in made.functions}
    first.reset("lib")
    for name in names * 3:
        assert np.array_equal(called[name]([X])[1][0], fusec.jit(getattr(owner, name))(X))


def test_arrays_outside_may_lie_otherwise(tmp_path: Path) -> None:
    table = np.arange(20.0).reshape(4, 5)
    columns, turned, back = table[:, ::2], np.arange(6.0).reshape(2, 3).T, np.arange(4.0)[::-1]
    kept = np.asfortranarray(np.arange(6.0).reshape(2, 3))

    def read(x: Any) -> Any:
        return columns.sum(axis=1) + back * x, turned.T + x[0]

    def write(x: Any) -> Any:
        kept[...] = kept * 2 + x[0]
        return kept * 1, kept[1] + x[:3]

    made = fusec.export_c({"reads": (read, (SPEC((4,)),)), "writes": (write, (SPEC((4,)),))},
                          tmp_path / "lib", V3)
    handle, x = ctypes.CDLL(str(made.shared)), np.array([3.0, 1.0, 4.0, 1.0])
    for f, function in zip(made.functions, (read, write), strict=True):
        called = CFunction(handle, f)
        called.reset("lib")
        for result, want in zip(called([x])[1], fusec.jit(function)(x), strict=True):
            assert np.array_equal(result, want.ravel())


# -- names, and what texts of the program do to the header

def named(state: Any, mode: str) -> Any:
    WEIGHT.assign_add(state)
    RESET.assign_add(state)
    return WEIGHT * 2 if mode else WEIGHT * 1


WEIGHT, RESET = (fusec.Variable(np.zeros(3), name=n) for n in ("address", "reset"))


def test_names_are_no_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = fusec.export_c({"State": (named, (VECTOR, "*/ int odd; /*"))}, tmp_path / "odd", V3)
    compiler = shutil.which("cc")
    if compiler is not None:
        (tmp_path / "odd.c").write_text('#include "odd/odd.h"\nint odd;\n')
        subprocess.run([compiler, "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
                        tmp_path / "odd.c"], check=True)
    fusec.wheel_stub(made.folder)
    monkeypatch.syspath_prepend(str(made.folder / "python"))
    module: Any = importlib.import_module("odd")
    state = module.State()
    assert np.array_equal(module.State_(X, state=state), 2 * X)
    assert np.array_equal(state.address2, X) and np.array_equal(module.STATE.reset2, np.zeros(3))
    state.reset()
    assert not state.address2.any()


@pytest.mark.parametrize("name", ["lib_new", "lib_reset", "lib_state", "lib_failure", "LIB_OK",
                                  "DLTensor"])
def test_names_of_the_librarys_own_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match=f"cannot define {name}"):
        fusec.export_c({name: (named, (VECTOR, ""))}, tmp_path / "lib", V3)


def test_a_word_of_python_is_no_package(tmp_path: Path) -> None:
    made = fusec.export_c({"f": (lambda x: x * 2, (VECTOR,))}, tmp_path / "lambda", V3)
    with pytest.raises(ValueError, match="lambda is a word of Python"):
        fusec.wheel_stub(made.folder)


def test_numbers_that_a_type_cannot_hold_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = fusec.export_c({
        "small": (lambda x, k: x * k, (VECTOR, np.uint8(3))),
        "wide": (lambda x, k: x * k, (VECTOR, np.int32(3)))}, tmp_path / "small_numbers", V3)
    fusec.wheel_stub(made.folder)
    monkeypatch.syspath_prepend(str(made.folder / "python"))
    module: Any = importlib.import_module("small_numbers")
    assert np.array_equal(module.small(X, 255), 255 * X)
    assert np.array_equal(module.wide(X, -(1 << 31)), -(2.0 ** 31) * X)
    for call in (lambda: module.small(X, 256), lambda: module.small(X, -1),
                 lambda: module.wide(X, 1 << 31), lambda: module.wide(X, np.int64(1 << 31))):
        with pytest.raises(OverflowError, match="can hold"):
            call()
    with pytest.raises(TypeError, match="must be a number"):
        module.small(X, 1.5)


def test_a_defect_is_no_size_that_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An exception of fusec's own code ends the export; it is not taken for the program's."""
    calls: dict[str, Any] = {"__name__": traces.__name__, "plan": traces._plan, "left": 1}
    exec("def broken(*args):\n    global left\n    left -= 1\n    if left < 0:\n"
         "        raise KeyError('a defect')\n    return plan(*args)", calls)
    monkeypatch.setattr(traces, "_plan", calls["broken"])
    with pytest.raises(KeyError, match="a defect"):
        fusec.export_c({"f": (lambda x: x[::-1].cumsum(), (SPEC((None,)),))}, tmp_path / "lib", V3)
