"""Complex numbers in loops that are one kernel: carried, read, written, given to exits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import optree
import pytest
from fake_cupy import as_gpu

import fusec
from fusec.codegen.cuda.persistent import choice
from fusec.codegen.kernels import kernel_nodes

DEVICE = "/device:CUDAHOST:0"
RNG = np.random.default_rng(8)


@pytest.fixture(autouse=True)
def persistent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "forced", "persistent")
    monkeypatch.setattr(kernel_nodes, "LARGE", 0)
    monkeypatch.setattr(kernel_nodes, "ONE_KERNEL", 0)


def twiddles(x: Any, steps: Any) -> Any:
    """A factor that goes round, as in a transform by powers of two."""
    factor, total = 1 + 0j, x[0]
    for k in range(steps):
        x = x * factor + x[k]
        factor = factor * (0.6 + 0.8j)
        total = total + x[k] * np.conj(x[k])
    return x, factor, total


def written(x: Any, steps: Any) -> Any:
    z = x[1] * 2
    for k in range(steps):
        x[k] = z
        z = z * z / (1 + abs(z)) + x.sum()
        if z.real < 0:
            z = -z
    return x, z


def summed(x: Any, steps: Any) -> Any:
    n = 0
    total = x.sum()
    while abs(total) > 0.3 and n < steps:
        x = x * (0.5 - 0.25j)
        total, n = x.sum(), n + 1
    return total, n


def checked(x: Any, steps: Any) -> Any:
    z = 1 + 1j
    for _ in range(steps):
        z = z * (x + z).sum() * 0.1
        if abs(z) > 1e30:
            raise OverflowError("too large")
    return z


PROGRAMS = [twiddles, written, summed, checked]


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_complex_numbers_have_the_bits_of_the_cpu(f: Callable[..., Any], dtype: Any) -> None:
    x = (RNG.uniform(-1, 1, 6) + 1j * RNG.uniform(-1, 1, 6)).astype(dtype)
    here, there = fusec.jit(f), fusec.jit(f, device=DEVICE)
    for steps in (2, 5):
        pairs = zip(*(optree.tree_leaves(g(x.copy(), steps)) for g in (here, there)), strict=True)
        for got, want in pairs:
            np.testing.assert_allclose(got, want, rtol=8 * np.finfo(dtype).eps)
    assert "one kernel that does all of it" in str(fusec.explain(there, x, 5))


def gathered(x: Any, places: Any, steps: Any) -> Any:
    z = x[0]
    for k in range(steps):
        x = x[places - k] * z
        z = z * x[1]
    return x


def test_a_check_that_fails_beside_a_complex_number() -> None:
    """Its exit holds the operands of the kernel: the number has two words, the array behind it
    one."""
    x = RNG.uniform(-1, 1, 6) + 1j * RNG.uniform(-1, 1, 6)
    here, there = fusec.jit(gathered), fusec.jit(gathered, device=DEVICE)
    places = np.array([5, 3, 0, 2, 1, 4])
    steps = np.int64(4)
    np.testing.assert_allclose(there(x, places, steps), here(x, places, steps), rtol=1e-14)
    assert "one kernel that does all of it" in str(fusec.explain(there, x, places, steps))
    places[2] = -4
    with pytest.raises(IndexError, match="index -7 is out of bounds for axis 0 with size 6"):
        there(x, places, steps)


def test_complex_numbers_stay_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    x = RNG.uniform(-1, 1, 6) + 1j * RNG.uniform(-1, 1, 6)
    with as_gpu(monkeypatch) as cupy:
        for f in (twiddles, written, summed):
            want = optree.tree_leaves(fusec.jit(f)(x.copy(), 5))
            compiled = fusec.jit(f)
            for _ in range(3):
                got = optree.tree_leaves(compiled(cupy.asarray(x.copy()), 5))
                for one, other in zip(got, want, strict=True):
                    np.testing.assert_allclose(
                        one.get() if hasattr(one, "get") else one, other, rtol=1e-14)
