"""Arrays of other libraries as arguments: views of their memory, and refusals with the cure."""

from __future__ import annotations

import array
import ctypes
import importlib
import mmap
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fusec

LIBRARY = '''
class Tensor:
    """An array that shows its memory by DLPack alone."""
    def __init__(self, values, device=1, error=None):
        self.values, self.device, self.error = values, device, error
    dtype = property(lambda self: self.values.dtype)
    def __dlpack_device__(self): return self.device, 0
    def __dlpack__(self, **asked):
        if self.error: raise BufferError(self.error)
        return self.values.__dlpack__(**asked)
def from_dlpack(x):
    import numpy as np
    return Tensor(np.from_dlpack(x))
'''


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Any]:
    home = tmp_path / "site-packages"
    home.mkdir()
    (home / "tensorlib.py").write_text(LIBRARY)
    sys.path.insert(0, str(home))
    yield importlib.import_module("tensorlib")
    sys.path.remove(str(home))
    del sys.modules["tensorlib"]


def refused(f: Callable[..., Any], *args: Any) -> str:
    with pytest.raises(TypeError) as caught:
        fusec.jit(f)(*args)
    assert isinstance(caught.value, fusec.errors.FusecError)
    return str(caught.value)


def affine(x: Any, y: Any) -> Any:
    return x * 2 + y


def double(x: Any) -> None:
    x *= 2


BUFFERS: dict[str, Callable[[], Any]] = {
    "array": lambda: array.array("d", [1.0, 2.0, 3.0]),
    "bytearray": lambda: bytearray(b"abc"),
    "memoryview": lambda: memoryview(np.arange(6.0).reshape(2, 3)),
    "mmap": lambda: mmap.mmap(-1, 8),
    "ctypes": lambda: (ctypes.c_int * 3)(1, 2, 3),
}


@pytest.mark.parametrize("make", BUFFERS.values(), ids=BUFFERS)
def test_buffers_are_arrays_over_their_memory(make: Callable[[], Any]) -> None:
    f, g, given = fusec.jit(affine), fusec.jit(double), make()
    before = np.array(np.asarray(memoryview(given)))
    for y in (1, 1, 2, 2):
        found = f(given, y)
        assert type(found) is np.ndarray and found.dtype == affine(before, y).dtype
        np.testing.assert_array_equal(found, affine(before, y))
    for count in (1, 2, 3):
        assert g(given) is None
        np.testing.assert_array_equal(np.asarray(memoryview(given)), before * 2**count)
    assert g.trace_count == 1


def test_buffers_that_nobody_may_write() -> None:
    text = memoryview(b"abc")
    np.testing.assert_array_equal(fusec.jit(lambda x: x + 1)(text), [98, 99, 100])
    with pytest.raises(ValueError, match="read-only") as caught:
        fusec.jit(double)(text)
    assert "argument x" in str(caught.value)
    assert "argument x has dtype <U1" in refused(double, array.array("u", "ab"))


def test_dlpack(library: Any) -> None:
    x = np.arange(6.0).reshape(2, 3)
    f, plain = fusec.jit(affine), np.arange(3.0)
    for given in (library.Tensor(x), library.Tensor(x.T.copy().T), library.Tensor(x[:, ::2])):
        y = plain[:given.values.shape[1]]
        for _ in range(3):
            np.testing.assert_array_equal(f(given, y), affine(given.values, y))
        np.testing.assert_array_equal(f(y=y, x=given), affine(given.values, y))
        np.testing.assert_array_equal(f(given, given), affine(given.values, given.values))
    fusec.jit(double)(library.Tensor(x))
    np.testing.assert_array_equal(x, np.arange(6.0).reshape(2, 3) * 2)


def test_trees_specs_and_derivatives(library: Any) -> None:
    given = library.Tensor(np.arange(3.0))
    f = fusec.jit(lambda p: p["w"] * p["b"][0])
    for _ in range(3):
        np.testing.assert_array_equal(f({"w": given, "b": [np.full(3, 2.0)]}), [0, 2, 4])
    assert f.trace_count == 1
    g = fusec.jit(lambda x: x + 1, input_signature=[fusec.TensorSpec([None])])
    for _ in range(2):
        np.testing.assert_array_equal(g(given), [1, 2, 3])
    np.testing.assert_array_equal(fusec.grad(lambda x: (x * x).sum())(given), [0, 2, 4])
    np.testing.assert_array_equal(fusec.vmap(lambda x: x + 1)(given), [1, 2, 3])


def test_one_memory_given_twice(library: Any) -> None:
    def shifted(x: Any, y: Any) -> Any:
        x[1:] += y[:-1]
        return x.sum()

    x, y = np.arange(5.0), np.arange(5.0)
    assert fusec.jit(shifted)(library.Tensor(x), library.Tensor(x)) == shifted(y, y)
    np.testing.assert_array_equal(x, y)


def test_an_error_says_what_the_function_sees() -> None:
    """A method of the other library is none of the array's, which it did not say."""
    given = {"x": array.array("d", [1.0])}
    for lanes in (fusec.jit, fusec.vmap):
        with pytest.raises(AttributeError, match=r"'tolist2'(.|\n)*a value of class array.array"):
            lanes(lambda d: d["x"].tolist2())(given)
    with pytest.raises(AttributeError, match="'tolist2'") as caught:
        fusec.jit(lambda x: x.tolist2())(np.ones(2))
    assert "note" not in str(caught.value)


def test_what_has_no_view_is_refused_by_path(library: Any) -> None:
    x = np.arange(3.0)
    text = refused(lambda p: p["w"] + 1, {"w": library.Tensor(x, device=8)})
    assert "argument p['w'] is a tensorlib.Tensor" in text and "device: Metal" in text
    text = refused(lambda x: x + 1, library.Tensor(x, error="there are gaps"))
    assert "reason: there are gaps" in text and "np.array(x)" in text


def test_a_class_of_ones_own_stays_an_object() -> None:
    class Own:
        scale = 3.0

        def __dlpack__(self, **asked: Any) -> Any:
            raise AssertionError("nobody asked for memory")

        def __dlpack_device__(self) -> tuple[int, int]:
            return 1, 0

    np.testing.assert_array_equal(fusec.jit(lambda o, x: o.scale * x)(Own(), np.ones(2)), [3, 3])


def test_like_gives_the_kind_of_an_argument_back(library: Any) -> None:
    @fusec.jit(like="x")
    def f(x: Any, y: Any) -> Any:
        return {"product": x * y, "others": (x.sum(), 3, None)}

    given = library.Tensor(np.arange(3.0))
    for _ in range(3):
        found = f(given, np.full(3, 2.0))
        assert type(found["product"]) is library.Tensor
        np.testing.assert_array_equal(found["product"].values, [0, 2, 4])
        total, *rest = found["others"]
        assert type(total) is library.Tensor and total.values.shape == () and rest == [3, None]
    assert type(f(np.ones(3), given)["product"]) is np.ndarray
    same = fusec.jit(lambda x: x, like="x")(given)
    same.values[0] = 7.0
    assert given.values[0] == 7.0  # one memory, as where Python returns the argument


def test_like_copies_what_others_cannot_show(library: Any) -> None:
    fields = np.zeros(3, [("byte", "i1"), ("number", "f8")])
    given = library.Tensor(np.arange(3.0))
    for view in (given.values[::-1], np.broadcast_to(given.values, (2, 3)), fields["number"]):
        found = fusec.jit(lambda x, y: y, like="x")(given, view)
        np.testing.assert_array_equal(found.values, view)
        assert found.values.flags.c_contiguous and found.values.flags.writeable


def test_like_that_cannot_be(library: Any) -> None:
    with pytest.raises(ValueError, match=r"like='z'.*no such parameter"):
        fusec.jit(affine, like="z")
    with pytest.raises(TypeError, match=r"argument x is a array.array, which no result"):
        fusec.jit(affine, like="x")(array.array("d", [1.0]), 1)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'y'"):
        fusec.jit(affine, like="x")(library.Tensor(np.ones(1)))


def test_variables_show_a_copy() -> None:
    v = fusec.Variable([1.0, 2.0])
    shown = np.from_dlpack(v)
    v.assign([3.0, 4.0])
    np.testing.assert_array_equal(shown, [1, 2])
    np.testing.assert_array_equal(np.from_dlpack(v), [3, 4])
    assert v.__dlpack_device__() == (1, 0)
    with pytest.raises(ValueError, match="never shown without a copy"):
        v.__dlpack__(copy=False)


# ------------------------------------------------------------------------ the libraries themselves


def test_torch() -> None:
    torch = pytest.importorskip("torch")
    x = torch.arange(4.0)
    f = fusec.jit(lambda x: np.sin(x) + 1)
    for _ in range(2):
        np.testing.assert_allclose(f(x), np.sin(x.numpy()) + 1, rtol=1e-6)
    fusec.jit(double)(x)
    assert x.tolist() == [0, 2, 4, 6]
    assert type(fusec.jit(lambda x: x.sum(), like="x")(x)) is torch.Tensor
    assert fusec.jit(lambda x: x[::-1], like="x")(x).tolist() == [6, 4, 2, 0]
    for given, why, cure in (
            (x.bfloat16(), "torch.bfloat16", "x.float()"),
            (torch.nn.Parameter(x), "requires a gradient", "x.detach()"),
            (x.to(torch.complex64).conj(), "conjugate bit", "resolve_conj()"),
            (x.to(torch.complex64).conj().imag, "negative bit", "resolve_neg()"),
            (torch.eye(2).to_sparse(), "Sparse", "x.to_dense()"),
            (torch.ones(2, device="meta"), "device: meta", "x.cpu()")):
        text = refused(lambda x: x + 1, given)
        assert text.startswith("argument x is a torch.") and why in text and cure in text


def test_jax() -> None:
    jnp = pytest.importorskip("jax.numpy")
    x = jnp.arange(4.0)
    np.testing.assert_array_equal(fusec.jit(lambda x: x * 2)(x), [0, 2, 4, 6])
    with pytest.raises(ValueError, match="read-only"):
        fusec.jit(double)(x)
    assert "x.astype(np.float32)" in refused(lambda x: x + 1, x.astype(jnp.bfloat16))
    with pytest.raises(TypeError, match=r"cure: call jax\.numpy\.sin before or after the compiled"):
        fusec.jit(lambda x: jnp.sin(x))(x)
    given = np.ones(64, np.float32)  # which JAX would share
    found = fusec.jit(lambda x, y: y, like="x")(x, given)
    given[0] = 7.0
    assert type(found) is type(x) and found[0] == 1.0


def test_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, 2.0], "b": [3, 4]})
    f = fusec.jit(lambda d: d["a"] * d["b"])
    for _ in range(2):
        np.testing.assert_array_equal(f(dict(frame)), [3, 8])
    assert "dict(x)" in refused(lambda d: d["a"], frame)
    for given, cure in (
            (pandas.Series([1, None], dtype="Int64"), "na_value=np.nan"),
            (pandas.Series(["a", "b"]).astype("category"), "x.cat.codes"),
            (pandas.Series(["a", "b"], dtype="string"), "astype('category')"),
            (pandas.Series(pandas.to_datetime(["2020-01-01"])), "x.astype('i8')")):
        text = refused(lambda x: x + 1, given)
        assert "argument x" in text and cure in text
    instant = pandas.Timestamp("2020-01-01")
    found = fusec.jit(lambda x, t: x + t.year, static="t")(np.ones(2), instant)
    np.testing.assert_array_equal(found, [2021, 2021])


def test_short_floats_name_the_cure() -> None:
    short = pytest.importorskip("ml_dtypes").bfloat16
    with pytest.raises(TypeError, match=r"use x\.astype\(np\.float32\)"):
        fusec.jit(lambda x: x * 2)(np.ones(3).astype(short))


def doubled_if_large(v: Any) -> Any:
    return v * 2 if v > 1.0 else 0


def quotient(a: Any, b: Any) -> Any:
    return a + b if a < b else a // 2


DOUBLED, QUOTIENT = np.frompyfunc(doubled_if_large, 1, 1), np.frompyfunc(quotient, 2, 1)


def written_after(x: Any) -> Any:
    y = DOUBLED(x).astype("f4")
    x[:] = 0.0
    return y, x


@pytest.mark.parametrize("program", [
    lambda x: DOUBLED(x).astype(float),
    lambda x: np.frompyfunc(doubled_if_large, 1, 1)(x).astype(np.int32) + 1,
    lambda x: QUOTIENT(x, x[::-1]).astype(float).sum(),
    lambda x: QUOTIENT(x[:, None], 1.5).astype(float),
    lambda x: DOUBLED(x[:0]).astype(float),
    written_after,
])
def test_objects_of_frompyfunc_that_are_converted(program: Any) -> None:
    x = np.array([0.5, 1.5, -2.0, 7.25])
    for found, wanted in zip(
            np.atleast_1d(fusec.jit(program)(x.copy())), np.atleast_1d(program(x.copy())),
            strict=True):
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)


def converted_later(x: Any) -> Any:
    result = DOUBLED(x)
    x[:] = 0.0
    return result.astype(float)


def dropped(x: Any) -> Any:
    np.frompyfunc(lambda v: 1 // int(v), 1, 1)(x)
    return x


@pytest.mark.parametrize(("program", "cure"), [
    (DOUBLED, r"np\.vectorize\(f\)\(x\)"),
    (lambda x: {"of": DOUBLED(x)}, "astype"),
    (lambda x: DOUBLED(x) + 1, "astype"),
    (lambda x: np.sum(DOUBLED(x)), "astype"),
    (lambda x: DOUBLED(x)[0], "astype"),
    (lambda x: DOUBLED(x).sum(), "astype"),
    (lambda x: list(DOUBLED(x)), "astype"),
    (lambda x: np.frompyfunc(lambda v: (v, v), 1, 2)(x)[0].astype(float), "vectorize"),
    (converted_later, "on the same line"),
    (dropped, "astype"),
])
def test_objects_of_frompyfunc_are_refused(program: Any, cure: str) -> None:
    with pytest.raises(fusec.UnsupportedError, match=cure):
        fusec.jit(lambda x: program(x))(np.ones(3))


def test_a_sparse_array_is_not_static() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    f = fusec.jit(lambda A, x: A @ x, static="A")
    for _ in range(2):
        with pytest.raises(TypeError, match=r"csr_array and static(.|\n)*leave it out of static="):
            f(sparse.csr_array(np.eye(3)), np.ones(3))
