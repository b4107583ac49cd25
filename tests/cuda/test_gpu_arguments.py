"""Programs that are called with arrays of a GPU, on the emulated device in CuPy's place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import optree
import pytest
from fake_arrays import FakeArray
from fake_cupy import FakeCupy, as_gpu
from fake_streams import CUDARuntimeError, OutOfMemoryError

import fusec

X = np.random.default_rng(0).normal(size=(20, 30))


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCupy]:
    with as_gpu(monkeypatch) as fake:
        yield fake


def copied(fake: FakeCupy) -> list[str]:
    """Which copies there were between the host and the GPU, since it was asked last."""
    calls, fake.calls[:] = fake.calls[:], []
    return [c for c in calls if c in ("to device", "to host", "asarray")]


def compiled(f: Any, *args: Any) -> Any:
    """The results of the CPU's kernels."""
    return fusec.jit(f)(*args)


def test_arrays_come_out_as_they_came_in(cupy: FakeCupy) -> None:
    """Kernels alone: no array is copied, on a first call and on those that follow."""
    def f(x: np.ndarray) -> Any:
        return {"y": np.sin(x), "same": x, "part": x[2:], "rows": (x + 1).sum(axis=1)}

    g = fusec.jit(f)
    for number in range(2):
        x = cupy.asarray(X + number)
        copied(cupy)
        got = g(x)
        assert copied(cupy) == []
        assert got["same"] is x and got["part"].data.ptr == x.data.ptr + 2 * 30 * 8
        assert all(isinstance(each, FakeArray) for each in got.values())
        np.testing.assert_array_equal(got["y"].get(), compiled(f, X + number)["y"])
        np.testing.assert_allclose(got["rows"].get(), (X + number + 1).sum(axis=1), rtol=1e-13)
    assert g.trace_count == 1
    assert isinstance(g(X)["y"], np.ndarray) and isinstance(g(x)["y"], FakeArray)
    assert [t.reason for t in g.traces][1].startswith("device scope: /job")


def test_numbers_beside_arrays(cupy: FakeCupy) -> None:
    f = fusec.jit(lambda x, a: (x * a, (x * a).max(), np.ones(3), np.zeros((0, 4)), a))
    for a in (2.0, 3.5):
        y, top, ones, none, b = f(cupy.asarray(X), a)
        np.testing.assert_array_equal(y.get(), X * a)
        assert top == (X * a).max() and isinstance(top, np.float64) and b == a
        np.testing.assert_array_equal(ones.get(), np.ones(3))
        assert none.shape == (0, 4) and isinstance(none, FakeArray)


def strided(fake: FakeCupy, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    """A view of the first numbers of ``X``."""
    whole = fake.asarray(X)
    return type(whole)(shape, X.dtype, whole.data, strides)


def test_layouts_and_kinds(cupy: FakeCupy) -> None:
    """Results that no kernel computes, arrays of Fortran's order and with repeated elements."""
    for f, x, want in (
        (lambda x: (np.arange(5) * 2.0, None, 3), cupy.asarray(X), (np.arange(5) * 2.0, None, 3)),
        (lambda x: (x + 1, x.T[1:]), strided(cupy, (3, 4), (8, 24)), None),
        (lambda x: x * 2 + 1, strided(cupy, (3, 4), (0, 8)), None),
        (lambda z: (np.exp(z) * z.conj(), z.real), cupy.asarray(X + 1j * X), None),
        (lambda x: (x * 2, x.sum(axis=0), x[:, 0]), cupy.asarray(np.zeros((0, 4))), None),
        (lambda x: ~(x > 1), cupy.asarray(np.array(3.0, np.float16)), None),
    ):
        host = x.get()
        wanted = compiled(f, host) if want is None else want
        got = fusec.jit(f)(x)
        for one, other in zip(*map(optree.tree_leaves, (got, wanted)), strict=True):
            np.testing.assert_array_equal(one.get() if isinstance(one, FakeArray) else one, other)
            assert not isinstance(one, np.ndarray)


def test_arguments_are_written_where_they_are(cupy: FakeCupy) -> None:
    def f(x: np.ndarray, y: np.ndarray) -> None:
        x[1:, ::2] *= 2
        y[...], x[0] = x[::-1], y[-1]

    x, y = cupy.asarray(np.zeros((20, 60))), cupy.asarray(X)
    half = x.part(slice(None), slice(None, None, 2))  # every other column
    half[...] = y
    want_x, want_y = X.copy(), X.copy()
    f(want_x, want_y)
    g = fusec.jit(f)
    copied(cupy)
    g(half, y)
    assert copied(cupy) == []
    np.testing.assert_array_equal(y.get(), want_y)
    np.testing.assert_array_equal(x.get()[:, ::2], want_x)
    np.testing.assert_array_equal(x.get()[:, 1::2], 0)


def swapped(x: np.ndarray, y: np.ndarray) -> None:
    kept = x.copy()
    x[...] = y
    y[...] = kept


def test_arguments_change_places(cupy: FakeCupy) -> None:
    x, y = cupy.asarray(X), cupy.asarray(X + 1)
    fusec.jit(swapped)(x, y)
    np.testing.assert_array_equal(x.get(), X + 1)
    np.testing.assert_array_equal(y.get(), X)


def test_a_copy_of_an_argument_stays_on_the_gpu(cupy: FakeCupy) -> None:
    """No line of the program places it, so it was the CPU's."""
    def f(x: np.ndarray, y: np.ndarray) -> Any:
        z = y - 1
        z[...] = y
        x[...] = y
        return x.copy(), z, y.sum()

    g, y = fusec.jit(f), X + 1
    for _ in range(3):
        x = cupy.asarray(X)
        args = x, cupy.asarray(y)
        copied(cupy)
        got = g(*args)
        assert copied(cupy).count("to host") == 1  # of the number
        for one in (got[0], got[1], x):
            np.testing.assert_array_equal(one.get(), y)


def test_what_runs_on_the_cpu_is_copied_there_and_back(cupy: FakeCupy) -> None:
    f = fusec.jit(lambda x: np.nanquantile(x * 2, 0.5, axis=0) + 1)
    x = cupy.asarray(X)
    copied(cupy)
    np.testing.assert_array_equal(f(x).get(), np.nanquantile(X * 2, 0.5, axis=0) + 1)
    assert copied(cupy) == ["to host", "to device"]
    assert "GPU:0 -> CPU:0" in str(fusec.explain(f, x))


def of_libraries(x: np.ndarray) -> Any:
    a = x.T @ x + np.eye(30)
    y = np.linalg.solve(a, x[0] + 1) * 2
    u, s, _ = np.linalg.svd(x, full_matrices=False)
    z = np.fft.rfft(np.sort(x, axis=1) - 1)
    return y, (u * s).sum(axis=0), z * 2, np.linalg.det(a), np.einsum("ij,ik->jk", x, x)


def test_libraries_of_the_gpu(cupy: FakeCupy) -> None:
    f, x = fusec.jit(of_libraries), cupy.asarray(X)
    f(x)
    cupy.calls.clear()
    got = f(x)
    called = {c for c in cupy.calls if "." in c or "cu" in c}
    assert called == {"cublasDgemm", "cusolver Dgetrf", "cusolver Dgetrs", "numpy.linalg.svd",
                      "numpy.sort", "cufftD2Z", "numpy.linalg.det"}
    assert "raise" in cupy.calls and "GPU:0 -> CPU:0" not in str(fusec.explain(f, x))
    for one, other in zip(got, of_libraries(X), strict=True):
        one = one.get() if isinstance(one, FakeArray) else one
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_what_numpy_refuses_is_refused(cupy: FakeCupy) -> None:
    f = fusec.jit(lambda a: np.linalg.inv(a * 1.0) + 1)
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        f(cupy.asarray(np.zeros((3, 3))))
    np.testing.assert_allclose(f(cupy.asarray(np.eye(3))).get(), np.eye(3) + 1)


def test_what_is_read_from_outside(cupy: FakeCupy) -> None:
    """Arrays of NumPy are brought; writes go to them."""
    weights, seen = np.arange(30.0), np.zeros(30)
    with fusec.device("GPU:0"):
        total = fusec.Variable(np.zeros(30))

    @fusec.jit
    def f(x: np.ndarray) -> Any:
        seen[...] = x.sum(axis=0)
        total.assign_add(x[0])
        return x * weights

    for number in (1, 2):
        np.testing.assert_array_equal(f(cupy.asarray(X)).get(), X * weights)
        np.testing.assert_allclose(seen, X.sum(axis=0), rtol=1e-13)
        np.testing.assert_array_equal(total.numpy(), number * X[0])


def test_objects_keep_arrays_of_the_gpu(cupy: FakeCupy) -> None:
    class Model:
        def step(self, x: np.ndarray) -> None:
            self.last = x * 2

    model, log = Model(), []

    @fusec.jit
    def f(x: np.ndarray) -> None:
        model.step(x)
        log.append(x + 1)

    f(cupy.asarray(X))
    np.testing.assert_array_equal(model.last.get(), X * 2)
    np.testing.assert_array_equal(log[0].get(), X + 1)


def test_arrays_of_others(cupy: FakeCupy) -> None:
    """Whoever says where they lie, and DLPack."""
    x = cupy.asarray(X)

    class Tensor:
        __cuda_array_interface__ = x.__cuda_array_interface__

    class Packed:
        def __dlpack_device__(self) -> tuple[int, int]:
            return (2, 0)

        def __dlpack__(self) -> Any:
            return x

    copied(cupy)
    for other in (Tensor(), Packed()):
        y = fusec.jit(lambda x: x + 1)(other)
        assert isinstance(y, FakeArray) and copied(cupy) == []
        np.testing.assert_array_equal(y.get(), X + 1)


def test_arrays_of_numpy_beside_them_are_refused(cupy: FakeCupy) -> None:
    x = cupy.asarray(X)
    with pytest.raises(TypeError, match="array of NumPy, and another is on a GPU") as error:
        fusec.jit(lambda x, y: x + y)(x, np.ones(30))
    assert "float64[30]" in str(error.value) and "cupy.asarray(x)" in str(error.value)
    x.device.id = 1
    with pytest.raises(ValueError, match="an argument is on GPU 1"):
        fusec.jit(lambda x: x + 1)(x)


def test_static_arguments_are_refused(cupy: FakeCupy) -> None:
    with pytest.raises(TypeError, match="argument x is static and lies on a GPU"):
        fusec.jit(lambda x: x + 1, static="x")(cupy.asarray(X))


def test_a_check_that_fails_names_the_line_and_leaves_the_rest(cupy: FakeCupy) -> None:
    @fusec.jit
    def f(x: np.ndarray, i: np.ndarray) -> Any:
        x[0] = 7
        return x[i]

    x, i = cupy.asarray(X), cupy.asarray(np.array([3, 50]))
    with pytest.raises(IndexError, match="index 50 is out of bounds for axis 0 with size 20"):
        f(x, i)
    want = X.copy()
    want[0] = 7
    np.testing.assert_array_equal(x.get(), want)  # what was assigned before stays
    np.testing.assert_array_equal(f(x, cupy.asarray(np.array([0, 3]))).get(), want[[0, 3]])


def doubled(x: np.ndarray, most: Any) -> Any:
    while x.sum() < most:
        x = x * 2 + 1
    return x * 2


def running(x: np.ndarray, most: Any) -> Any:
    for i in range(1, x.shape[0]):
        x[i] += x[i - 1] * most
    return x + 1


def test_loops(cupy: FakeCupy) -> None:
    """On the GPU, where it has kernels for all that is inside: nothing but a number a test is
    copied.  Else on the CPU as a whole, with a copy each way."""
    many = np.abs(np.random.default_rng(1).normal(size=(200, 3)))
    for f, copies in ((doubled, 0), (running, 1)):
        g, x, want = fusec.jit(f), cupy.asarray(many), many.copy()
        wanted = compiled(f, want, 1000.0)
        g(cupy.asarray(many), 1000.0)
        cupy.sent.clear(), cupy.calls.clear()
        got = g(x, 1000.0)
        ways = [c for c in cupy.calls if c.startswith(("to ", "copy"))]  # the latter on the GPU
        assert sum(n >= many.nbytes and way != "copy" for n, way in zip(
            cupy.sent, ways, strict=True)) == 2 * copies, cupy.sent
        np.testing.assert_allclose(got.get(), wanted, rtol=1e-12)
        np.testing.assert_allclose(x.get(), want, rtol=1e-12)


def test_arguments_that_overlap(cupy: FakeCupy) -> None:
    def f(x: np.ndarray, y: np.ndarray) -> None:
        x += y

    x = cupy.asarray(X)
    fusec.jit(f)(x.part(slice(1, None)), x.part(slice(None, -1)))
    want = X.copy()
    fusec.jit(f)(want[1:], want[:-1])
    np.testing.assert_array_equal(x.get(), want)


def test_stages_take_them(cupy: FakeCupy) -> None:
    f, x = fusec.jit(lambda x: np.exp(x) + x), cupy.asarray(X)
    copied(cupy)
    assert "Exp" in str(f.trace(x).graph) and f.lower(x).kernels
    concrete = f.concrete(x)
    result, _ = concrete.run(x, options=fusec.RunOptions(trace=True))
    assert isinstance(result, FakeArray) and copied(cupy) == []
    assert list(concrete.partitions) == ["/job:localhost/task:0/device:GPU:0"]
    assert "__global__" in concrete.kernels[0].asm["cu"]


def test_memory_is_let_go(cupy: FakeCupy) -> None:
    """A result keeps its memory, and no call keeps an argument."""
    f = fusec.jit(lambda x: np.sin(x) + 1)
    x = cupy.asarray(X)
    y = f(x)
    cupy.driver.synchronize()
    before = cupy.driver.arena.used
    for _ in range(3):
        f(x)
    cupy.driver.synchronize()
    assert cupy.driver.arena.used == before
    del x, y
    cupy.driver.synchronize()
    assert cupy.driver.arena.used == 0


def test_recent_plans_are_of_arrays_on_the_gpu_in_their_scope(cupy: FakeCupy) -> None:
    """NumPy's arrays of the same shape do not take them, nor do calls in another scope."""
    f = fusec.jit(lambda x, y: np.sin(x) + y)
    x = cupy.asarray(X)
    want = compiled(lambda x: np.sin(x) + x, X)
    for _ in range(3):
        np.testing.assert_array_equal(f(x, x).get(), want)
        np.testing.assert_array_equal(f(X, X), want)
        with pytest.raises(TypeError, match="array of NumPy"):
            f(x, X)
        with fusec.device("CPU:0"):
            copied(cupy)
            np.testing.assert_array_equal(f(x, x).get(), want)
            assert "to host" in copied(cupy)
    assert f.trace_count == 3
    f.clear()
    np.testing.assert_array_equal(f(x, x).get(), want)


def test_calls_are_recorded_as_others(cupy: FakeCupy, tmp_path: Any) -> None:
    f, x = fusec.jit(lambda x: np.sin(x) + 1), cupy.asarray(X)
    with fusec.config.override(history=True):
        f(x), f(x)
    rows = list(fusec.history())[-2:]
    assert ["GPU:0" in str(row.device) for row in rows] == [True, True]
    with fusec.profile(str(tmp_path / "trace.json")):
        f(x)
    text = (tmp_path / "trace.json").read_text()
    assert f.concrete(x).kernels[0].name in text and "GPU:0" in text


def test_a_fault_names_the_kernel_and_the_line(
    cupy: FakeCupy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is known when somebody waits; a launch that is refused, at once."""
    f = fusec.jit(lambda x: (np.sin(x) + 1).max())
    x = cupy.asarray(X)
    f(x)

    def fails(*args: Any) -> None:
        raise CUDARuntimeError("cudaErrorIllegalAddress: an illegal memory access")

    monkeypatch.setattr(cupy.streams.current, "synchronize", fails)
    with pytest.raises(RuntimeError, match="work on GPU 0 has failed: cudaErrorIll") as error:
        f(x)
    text = str(error.value)
    assert f"kernel: {f.concrete(x).kernels[0].name}, line " in text and "(np.sin(x) + 1)" in text
    monkeypatch.setattr(cupy.driver, "launch", fails)
    with pytest.raises(RuntimeError, match="work on GPU 0 has failed"):
        fusec.jit(lambda x: np.cos(x) * 3)(x)


def test_a_library_without_room(cupy: FakeCupy, monkeypatch: pytest.MonkeyPatch) -> None:
    f, x = fusec.jit(lambda x: np.sort(x)), cupy.asarray(X)
    monkeypatch.setattr(cupy, "sort", lambda *a: (_ for _ in ()).throw(OutOfMemoryError()))
    with pytest.raises(MemoryError, match="GPU 0 has no room for 4800 bytes"):
        f(x)
    assert "free_all_blocks" in cupy.calls
