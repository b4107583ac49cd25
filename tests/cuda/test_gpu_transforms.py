"""Fourier transforms on a GPU: cuFFT, called directly, in CUDA graphs with kernels around them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from fake_cufft import NOT_SUPPORTED
from fake_cupy import FakeCupy, as_gpu

import fusec
from fusec.codegen.cuda.products import cufft as library

RNG = np.random.default_rng(0)
Z = RNG.normal(size=(6, 16)) + 1j * RNG.normal(size=(6, 16))
X = RNG.normal(size=(6, 15))


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCupy]:
    with as_gpu(monkeypatch, 3) as fake:
        fake.pool.keeps = True
        yield fake


def check(cupy: FakeCupy, f: Callable[..., Any], x: np.ndarray, calls: int = 5) -> list[str]:
    """The same numbers in each call; the last one's requests to CuPy."""
    g, there, want = fusec.jit(f), cupy.asarray(x), f(x)
    near = 1e-5 if x.dtype.str[1:] in ("c8", "f4") else 1e-12
    found = []
    for _ in range(calls):
        cupy.calls.clear()
        found.append(g(there).get())  # whose memory the next call gets
    for got in found:
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=near, atol=near)
        np.testing.assert_array_equal(got, found[0])
    assert g.traces[0].gpu_call.function is not None, g.traces[0].gpu_call
    return [*cupy.calls]


def filtered(z: Any) -> Any:
    return np.fft.ifft(np.fft.fft(z * 2) * 0.5) + 1


@pytest.mark.parametrize("dtype", ["c8", "c16"])
def test_a_filter_is_one_graph(cupy: FakeCupy, dtype: str) -> None:
    asked = check(cupy, filtered, Z.astype(dtype))
    assert asked == ["graph"], asked


@pytest.mark.parametrize("x", [X, X.astype("f4"), X[0].copy(), X[:1]],
                         ids=["f8", "f4", "vector", "row"])
def test_of_real_numbers(cupy: FakeCupy, x: np.ndarray) -> None:
    asked = check(cupy, lambda x: np.fft.rfft(x + 1) * 2, x)
    assert asked == ["graph"], asked


PLAIN = [lambda z: np.fft.fft(z), lambda z: np.fft.fft(z, 16, -1) + 1,
         lambda z: np.fft.ifft(z, axis=1), lambda z: np.fft.fft(z, norm="backward"),
         lambda z: np.fft.fft(z.reshape(2, 3, 16)),
         lambda z: np.fft.fft(z[1:])]
OTHERS = [lambda z: np.fft.fft(z, axis=0), lambda z: np.fft.fft(z, 8),
          lambda z: np.fft.fft(z, norm="ortho"),
          lambda z: np.fft.fft(z.T), lambda z: np.fft.fft(z[:, ::2]), lambda z: np.fft.fft2(z),
          lambda z: np.fft.irfft(z)]


@pytest.mark.parametrize("f", PLAIN)
def test_along_the_last_axis(cupy: FakeCupy, f: Callable[..., Any]) -> None:
    asked = check(cupy, f, Z)
    assert any(a.startswith("cufft") or a == "graph" for a in asked), asked
    assert not any(a.startswith("numpy.fft") for a in asked)


@pytest.mark.parametrize("f", OTHERS)
def test_others_are_cupys(cupy: FakeCupy, f: Callable[..., Any]) -> None:
    assert any(a.startswith("numpy.fft") for a in check(cupy, f, Z))


def test_a_plan_for_each_size(cupy: FakeCupy) -> None:
    """Which calls share."""
    f = fusec.jit(filtered)
    for _ in range(4):
        for n in (4, 6):
            got = f(cupy.asarray(Z[:, :n].copy()))
            np.testing.assert_allclose(got.get(), filtered(Z[:, :n]), rtol=1e-12)
    assert cupy.calls.count("cufft plan") <= 3  # with that of the first comparison


def test_explain_says_by_what(cupy: FakeCupy) -> None:
    f, z = fusec.jit(filtered), cupy.asarray(Z)
    for _ in range(3):
        f(z)
    assert "2 of them by cuFFT" in str(fusec.explain(f, z))


@pytest.mark.parametrize("what", ["no library", "status", "wrong numbers"])
def test_without_cufft_cupy_does_it(
    cupy: FakeCupy, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if what == "no library":
        def load() -> Any:
            raise OSError("CuPy has loaded no libcufft.so")
        monkeypatch.setattr(library, "loaded_library", load)
        reason = "CuPy has loaded no libcufft.so"
    elif what == "status":
        cupy.cufft.status, reason = NOT_SUPPORTED, "cufftExecZ2Z: not supported (16)"
    else:
        cupy.cufft.wrong, reason = True, "cuFFT gives another transform than NumPy"
    f, z = fusec.jit(filtered), cupy.asarray(Z)
    for _ in range(4):
        np.testing.assert_allclose(f(z).get(), filtered(Z), rtol=1e-12)
    assert "numpy.fft.fft" in cupy.calls
    assert reason in str(f.traces[0].gpu_call)


@pytest.mark.parametrize("calls", range(3))
def test_a_transform_that_is_refused_later(cupy: FakeCupy, calls: int) -> None:
    """In a launch or while a graph is captured: CuPy does it from then on.  A graph that was made
    before goes on."""
    f, z = fusec.jit(filtered), cupy.asarray(Z)
    for number in range(7):
        if number == calls:
            cupy.cufft.status = NOT_SUPPORTED
        if number == 6:
            cupy.calls.clear()
        np.testing.assert_allclose(f(z).get(), filtered(Z), rtol=1e-12)
    assert "numpy.fft.fft" in cupy.calls and "cufftZ2Z" not in cupy.calls


def test_a_transform_that_is_refused_in_graphs(cupy: FakeCupy) -> None:
    f, z = fusec.jit(filtered), cupy.asarray(Z)
    cupy.cufft.spoils = True
    for _ in range(6):
        cupy.calls.clear()
        np.testing.assert_allclose(f(z).get(), filtered(Z), rtol=1e-12)
    assert cupy.calls.count("cufftZ2Z") == 2 and "numpy.fft.fft" not in cupy.calls
    assert "no CUDA graph: cuFFT refuses to be in one: cufftExecZ2Z" in str(fusec.explain(f, z))


def test_numpys_arrays_get_the_same(cupy: FakeCupy) -> None:
    there, here = fusec.jit(filtered), fusec.jit(filtered, device="GPU:0")
    got = there(cupy.asarray(Z)).get()
    cupy.calls.clear()
    np.testing.assert_array_equal(here(Z), got)
    assert "cufftZ2Z" in cupy.calls
