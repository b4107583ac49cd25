"""Packages over libraries for C: what a process without fusec gets."""

from __future__ import annotations

import copy
import hashlib
import importlib
import os
import pickle
import resource
import signal
import subprocess
import threading
import venv
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import optree
import pytest

import fusec

from .test_c_library import SPEC, V3, refuses, running
from .test_c_library import pytestmark as needs_v3
from .test_state import Filter, until

pytestmark = needs_v3

PROGRAM = """
import importlib.util, sys
import numpy as np
import shapes
assert not any(importlib.util.find_spec(n) for n in ("fusec", "llvmlite", "numba", "optree"))
x, results = np.load(sys.argv[1]), []
results += [*shapes.until(x, 3.0)]
y = x.copy()
results += [*shapes.running(y, 2.0), y]
for _ in range(2):
    results.append(shapes.filtered(x))
other = shapes.State()
other.Filter_memory[:] = 1
results.append(shapes.filtered(x, state=other))
assert shapes.STATE.Filter_calls[()] == 2
for call, kind, text in (
        (lambda: shapes.refuses(x + 100), ValueError, "too large at"),
        (lambda: shapes.refuses(np.array([1.0, -1.0])), ArithmeticError, "negative at"),
        (lambda: shapes.taken(x, np.array([1, 40])), IndexError, "(index 40, size 30)"),
        (lambda: shapes.until(x.astype("f4"), 1.0), TypeError, "x must have the dtype float64"),
        (lambda: shapes.until(x[None], 1.0), ValueError, "x must have 1 axes"),
        (lambda: shapes.until(x), TypeError, "missing 1 required"),
        (lambda: shapes.added(x, x[1:]), ValueError, "y has another size"),
        (lambda: shapes.running(x[::2], 1.0), ValueError, "x is written")):
    try:
        call()
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError(text)
np.savez(sys.argv[2], *results)
"""


def added(x: Any, y: Any) -> Any:
    return x + y


def taken(x: Any, i: Any) -> Any:
    return x[i] * 2


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: Any) -> Path:
    vector = SPEC((None,))
    made = fusec.export_c({
        "until": (until, (vector, 1.0)), "running": (running, (vector, 1.0)),
        "filtered": (Filter().step, (vector,)), "refuses": (refuses, (vector,)),
        "taken": (taken, (vector, SPEC((None,), np.int64))), "added": (added, (vector, vector))},
        tmp_path_factory.mktemp("wheel") / "shapes", V3)
    return fusec.wheel_stub(made.folder, "1.2")


def test_a_process_with_numpy_alone(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "env", with_pip=False)
    site = next((tmp_path / "env/lib").glob("python*/site-packages"))
    zipfile.ZipFile(wheel).extractall(site)
    home = Path(np.__file__).parent.parent
    for part in home.glob("numpy*"):
        os.symlink(part, site / part.name)
    x = np.random.default_rng(3).random(30)
    np.save(tmp_path / "x.npy", x)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    subprocess.run([tmp_path / "env/bin/python", "-c", PROGRAM, tmp_path / "x.npy",
                    tmp_path / "out.npz"], check=True, cwd=tmp_path, env=environment)
    y, step, other = x.copy(), fusec.jit(Filter().step), Filter()
    want = [*fusec.jit(until)(x, 3.0), *fusec.jit(running)(y, 2.0), y, step(x), step(x)]
    other.memory[:] = 1
    want.append(fusec.jit(other.step)(x))
    with np.load(tmp_path / "out.npz") as given:
        assert len(given) == len(want)
        for k, array in enumerate(want):
            assert np.array_equal(given[f"arr_{k}"], array)


def test_the_wheel_is_whole(wheel: Path) -> None:
    assert wheel.name == "shapes-1.2-py3-none-manylinux_2_17_x86_64.whl"
    with zipfile.ZipFile(wheel) as archive:
        record = archive.read("shapes-1.2.dist-info/RECORD").decode().split()
        assert {line.split(",")[0] for line in record} == set(archive.namelist())
        assert len(record) == len(archive.namelist())
        for line in record[:-1]:
            assert int(line.split(",")[2]) == len(archive.read(line.split(",")[0]))
    before = hashlib.sha256(wheel.read_bytes()).digest()
    assert hashlib.sha256(fusec.wheel_stub(wheel.parent, "1.2").read_bytes()).digest() == before


def test_a_pipe_in_a_files_place_is_written_to_and_stays(tmp_path: Path) -> None:
    """A root's export over a device's node would take that node away."""
    made = fusec.export_c({"taken": (taken, (SPEC((None,)), SPEC((None,), np.int64)))},
                          tmp_path / "piped", V3)
    header = made.folder / "piped.h"
    want = {header: header.read_bytes()}
    wheel = fusec.wheel_stub(made.folder, "1.0")
    want[wheel] = wheel.read_bytes()
    for path, data in want.items():
        path.unlink()
        os.mkfifo(path)
        read: list[bytes] = []
        reader = threading.Thread(
            target=lambda at=path, found=read: found.append(at.read_bytes()), daemon=True)
        reader.start()
        if path == wheel:
            fusec.wheel_stub(made.folder, "1.0")
        else:
            fusec.export_c({"taken": (taken, (SPEC((None,)), SPEC((None,), np.int64)))},
                           made.folder, V3)
        reader.join(10)
        assert read == [data]
        assert path.is_fifo()


def test_bad_input(wheel: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no library"):
        fusec.wheel_stub(tmp_path)
    for version in ("one", None, 1.0):
        with pytest.raises(ValueError, match="no version"):
            fusec.wheel_stub(wheel.parent, version)  # type: ignore[arg-type]


def sized(x: Any) -> Any:
    return len(x), {"few": 1 if len(x) < 10 else 2, "thirds": len(x) / 3}, x.sum()


def constants(x: Any) -> Any:
    return 3, 2.5, None, 'a "b" \\', x * 2, np.float32(1.5), 1 + 2j, 10 ** 30, True


def itself(x: Any, a: Any) -> Any:
    x += 1.0
    return x, x[1:], a, x * a


GIVEN = {"sized": (sized, 1), "constants": (constants, 1), "itself": (itself, 2)}


@pytest.fixture(scope="module")
def package(tmp_path_factory: Any) -> Any:
    folder = tmp_path_factory.mktemp("given") / "given_results"
    made = fusec.export_c({name: (f, (SPEC((None,)), 2.5)[:count])
                           for name, (f, count) in GIVEN.items()}, folder, V3)
    fusec.wheel_stub(made.folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(made.folder / "python")
        yield importlib.import_module("given_results")


@pytest.mark.parametrize("name", [*GIVEN])
@pytest.mark.parametrize("n", [0, 1, 2, 5, 70])
def test_all_results_of_the_python_function(package: Any, name: str, n: int) -> None:
    """Arguments, constants and numbers of the sizes among them."""
    f, count = GIVEN[name]
    x, y = np.arange(float(n)), np.arange(float(n))
    shown, want = getattr(package, name)(*(x, 2.5)[:count]), f(*(y, 2.5)[:count])
    leaves = optree.tree_leaves(want, none_is_leaf=True)
    assert len(shown) == len(leaves)
    for a, b in zip(shown, leaves, strict=True):
        if isinstance(b, (np.ndarray, np.generic, float, complex)):
            assert np.asarray(a).dtype == np.asarray(b).dtype and np.array_equal(a, b)
            assert a is not x
        else:
            assert a == b
    assert np.array_equal(x, y)


def test_the_docstring_tells_all_results(package: Any) -> None:
    shown = package.itself.__doc__
    assert "Gives a copy of x: float64[x_0]; out0: float64[x_0-1]; out1: float64; out2:" in shown
    assert repr('a "b" \\') in package.constants.__doc__


def test_a_result_that_no_package_can_give(tmp_path: Path) -> None:
    def f(x: Any) -> Any:
        return x.dtype, x + 1.0

    made = fusec.export_c({"f": (f, (SPEC((3,)),))}, tmp_path / "lib", V3)
    with pytest.raises(ValueError, match=r"result 0 of f is always dtype\('float64'\)"):
        fusec.wheel_stub(made.folder)


class Amplifier:
    def __init__(self) -> None:
        self.gain, self.weights, self.calls = np.float64(2), np.zeros(3), 0

    def apply(self, x: Any) -> Any:
        self.gain += 1
        self.weights += 1
        self.calls += 1
        return x * self.gain + self.weights

    def scaled(self, x: Any, a: Any) -> Any:
        x *= a
        return x.sum()


@pytest.fixture(scope="module")
def amplifier(tmp_path_factory: Any) -> Any:
    made = fusec.export_c(
        {"apply": (Amplifier().apply, (SPEC((3,)),)),
         "scaled": (Amplifier().scaled, (SPEC((3,), np.float32), np.float32(1))),
         "multiplied": (lambda x, a: x * a, (SPEC((3,)), 1.0))},
        tmp_path_factory.mktemp("state") / "amplifier", V3)
    fusec.wheel_stub(made.folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(made.folder / "python")
        yield importlib.import_module("amplifier")


def test_setting_a_field_of_the_state(amplifier: Any) -> None:
    state = amplifier.State()
    state.Amplifier_gain, state.Amplifier_weights = 100, np.arange(3.0)
    state.Amplifier_weights += 5.0
    state.Amplifier_calls = 8
    assert np.array_equal(amplifier.apply(np.ones(3), state=state), 101.0 + np.arange(6.0, 9.0))
    assert state.Amplifier_calls == 9
    assert np.array_equal(amplifier.apply(np.ones(3), state=amplifier.State()), np.full(3, 4.0))


@pytest.mark.parametrize(("name", "value", "kind"), [
    ("Amplifier_weights", np.zeros(4), ValueError), ("Amplifier_weights", 1.0, ValueError),
    ("Amplifier_weights", ["a", "b", "c"], TypeError), ("Amplifier_calls", 1.5, TypeError),
    ("Amplifier_weights", np.zeros(3, np.float32), TypeError), ("Amplifier_calls", "x", TypeError),
    ("Amplifier_calls", 2 ** 70, OverflowError), ("Amplifier_gain", np.zeros(1), ValueError),
    ("gain", 1.0, AttributeError), ("address", 1, AttributeError)])
def test_fields_are_checked(amplifier: Any, name: str, value: Any, kind: Any) -> None:
    state = amplifier.State()
    with pytest.raises(kind, match=name):
        setattr(state, name, value)
    assert state.Amplifier_gain == 2.0 and not state.Amplifier_weights.any()


def copied_by_pickle(state: Any) -> Any:
    return pickle.loads(pickle.dumps(state))


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, copied_by_pickle])
def test_a_copy_of_the_state(amplifier: Any, copied: Any) -> None:
    state = amplifier.State()
    state.Amplifier_gain = 10.0
    other = copied(state)
    assert np.array_equal(amplifier.apply(np.ones(3), state=other), np.full(3, 12.0))
    assert (state.Amplifier_gain, other.Amplifier_gain, other.Amplifier_calls) == (10.0, 11.0, 1)


def test_bad_arguments_of_a_package(amplifier: Any) -> None:
    x = np.ones(3)
    for state in (5, 0, amplifier.State):
        with pytest.raises(TypeError, match=r"state must be a State\(\) of this package"):
            amplifier.apply(x, state=state)
    fixed = np.ones(3, np.float32)
    fixed.flags.writeable = False
    with pytest.raises(ValueError, match="must not be read-only"):
        amplifier.scaled(fixed, 1.0)
    for call in (lambda: amplifier.multiplied(x, 10 ** 400),
                 lambda: amplifier.scaled(np.ones(3, np.float32), 1e300)):
        with pytest.raises(OverflowError, match="can hold"):
            call()
    assert np.array_equal(amplifier.multiplied(x, 2 ** 70), x * 2.0 ** 70)
    assert np.isinf(amplifier.scaled(np.ones(3, np.float32), np.inf))


@pytest.mark.parametrize("name", ["numpy", "json"])
def test_a_package_of_another_ones_name(tmp_path: Path, name: str) -> None:
    made = fusec.export_c({"taken": (taken, (SPEC((3,)), SPEC((3,), np.int64)))},
                          tmp_path / name, V3)
    with pytest.raises(ValueError, match=f"{name} is another package"):
        fusec.wheel_stub(made.folder)


def test_a_package_that_is_in_use_is_not_written_into(tmp_path: Path) -> None:
    """The machine code of a process that has it loaded went away under its feet."""
    library = fusec.export_c({"running": (running, (SPEC((None,)), 2.0))}, tmp_path / "used", V3)
    fusec.wheel_stub(library.folder)
    package = library.folder / "python" / "used"
    with open(package / "libused.so", "rb") as mapped:
        fusec.wheel_stub(library.folder)
        assert os.fstat(mapped.fileno()).st_nlink == 0
    assert not [*package.glob(".*.part")]


def test_a_disk_that_is_full_keeps_the_older_library(tmp_path: Path) -> None:
    """A new library beside an older description would be called with other arguments."""
    folder = tmp_path / "full"
    fusec.export_c({"running": (running, (SPEC((None,)), 2.0))}, folder, V3)
    before = {file: file.read_bytes() for file in folder.iterdir()}
    largest = max(map(len, before.values()))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, limits[1]))
        with pytest.raises(OSError, match="File too large") as caught:
            fusec.export_c({"until": (until, (SPEC((None,)), 2.0)),
                            "running": (running, (SPEC((None,)), 2.0))}, folder, V3)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert str(folder) in str(caught.value)
    assert before == {file: file.read_bytes() for file in folder.iterdir()}


@pytest.mark.parametrize("text", ["", "[1]", "{}", "{"])
def test_a_description_that_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "description.json").write_text(text)
    with pytest.raises(ValueError, match=r"has no library of fusec\.export_c|has the format None"):
        fusec.wheel_stub(tmp_path)
