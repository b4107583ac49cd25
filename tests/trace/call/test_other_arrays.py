"""Arguments that are no plain arrays: files mapped to memory, slices, other libraries' arrays."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fusec

X = np.linspace(0.1, 2.0, 12)
LIBRARY = '''
import numpy as np

class Table:
    """As data frames are: it has no hash, and NumPy makes an array of it."""
    __hash__ = None
    def __init__(self, values): self.values = values
    def __eq__(self, other): return Table(self.values == other)
    shape = property(lambda self: self.values.shape)
    dtype = property(lambda self: self.values.dtype)
    def __array__(self, dtype=None, copy=None): return np.array(self.values, dtype)
    def __radd__(self, other): return Table(other + self.values)

def total(x):
    return np.asarray(x).sum()

class Sized:
    def __init__(self, x): self.size = float(np.asarray(x).sum())
'''


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Any]:
    home = tmp_path / "site-packages"
    (home / "tablelib" / "_core").mkdir(parents=True)
    (home / "tablelib" / "_core" / "__init__.py").write_text(LIBRARY)
    (home / "tablelib" / "__init__.py").write_text("from ._core import Sized, Table, total\n")
    sys.path.insert(0, str(home))
    yield importlib.import_module("tablelib")
    sys.path.remove(str(home))
    for name in [n for n in sys.modules if n.startswith("tablelib")]:
        del sys.modules[name]


def refused(f: Callable[..., Any], *args: Any) -> str:
    with pytest.raises(TypeError) as caught:
        fusec.jit(f)(*args)
    return str(caught.value)


def test_arrays_of_other_libraries_are_refused_by_name(library: Any) -> None:
    table = library.Table(X)
    assert "argument t is a tablelib.Table" in refused(lambda t: np.sin(t), table)
    assert "argument t[0]['k'] is a tablelib.Table" in refused(
        lambda t: np.sin(t[0]["k"]), [{"k": table}])
    assert "closure variable table is a tablelib.Table" in refused(lambda x: x + table, X)
    holder, held = SimpleNamespace(table=table), {"t": table}
    for text in (refused(lambda x: x + holder.table, X), refused(lambda x: x + held["t"], X)):
        assert "is a tablelib.Table" in text and "np.asarray(x)" in text and "^^^" in text


def test_making_one_of_traced_values(library: Any) -> None:
    with pytest.raises(NotImplementedError, match=r"tablelib\.Table of traced values"):
        fusec.jit(lambda x: library.Table(x))(X)


def test_known_libraries_have_their_own_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = type("DataFrame", (), {"__module__": "pandas.core.frame", "__array__": lambda s: X})
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=frame))
    text = refused(lambda d: np.sin(d), frame())
    assert "argument d is a pandas.DataFrame" in text and "x.to_numpy()" in text


def test_a_class_of_ones_own_with_an_array_is_no_library() -> None:
    class Own:
        def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
            return X * 2

    own = Own()
    np.testing.assert_array_equal(fusec.jit(lambda x: x + np.asarray(own))(X), X + X * 2)


@pytest.mark.parametrize("mode", ["r", "c", "r+"])
def test_mapped_files_are_arrays(tmp_path: Path, mode: Any) -> None:
    X.tofile(tmp_path / "x")
    mapped = np.memmap(tmp_path / "x", dtype="f8", mode=mode)
    f = fusec.jit(lambda x: x * 2 + x[::-1])
    for _ in range(2):
        np.testing.assert_array_equal(f(mapped), X * 2 + X[::-1])
    assert type(f(mapped)) is np.ndarray
    outside = fusec.jit(lambda x: x + mapped)
    for _ in range(2):
        np.testing.assert_array_equal(outside(X), X + X)
    assert outside.trace_count == 1


def test_what_is_written_into_a_mapped_file(tmp_path: Path) -> None:
    X.tofile(tmp_path / "x")

    @fusec.jit
    def double(x: Any) -> None:
        x *= 2

    double(np.memmap(tmp_path / "x", dtype="f8", mode="r+"))
    np.testing.assert_array_equal(np.fromfile(tmp_path / "x"), X * 2)
    with pytest.raises(ValueError, match="read-only"):
        double(np.memmap(tmp_path / "x", dtype="f8", mode="r"))


def test_slices_as_arguments() -> None:
    f = fusec.jit(lambda x, s: x[s] * 2)
    for s in (slice(1, 5), slice(None), slice(-3, None), slice(None, None, -2), slice(1, 5),
              slice(np.int64(2), 4)):
        np.testing.assert_array_equal(f(X, s), X[s] * 2)
    assert f.trace_count == 5
    g = fusec.jit(lambda x, where: x[where])
    for where in ((slice(1, 3), 0), (0, slice(None, 2)), (slice(0, 2), slice(0, 2))):
        np.testing.assert_array_equal(g(X.reshape(3, 4), where), X.reshape(3, 4)[where])
    with pytest.raises(TypeError, match="a slice whose bounds"):
        f(X, slice(1.5, 2))


def test_slices_are_told_apart_in_the_reason_of_a_retrace() -> None:
    f = fusec.jit(lambda x, s: x[s])
    f(X, slice(1, 3))
    f(X, slice(1, 4))
    assert "s: slice(1, 3, None) before, slice(1, 4, None) now" in f.traces[-1].reason


def test_the_callee_is_named(library: Any) -> None:
    from scipy import stats

    text = refused(lambda x: stats.gaussian_kde(x)(x), X)
    assert "scipy.stats." in text.splitlines()[0] and "gaussian_kde" in text
    assert "called:" in text and "^^^" in text
