"""Orders, counts and selections on a GPU are CuPy's, also where they decide a size; what CuPy
refuses NumPy judges."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import optree
import pytest
from fake_arrays import FakeArray
from fake_cupy import FakeCupy, as_gpu

import fusec

RNG = np.random.default_rng(0)
X, V, W = RNG.normal(size=(40, 30)), RNG.normal(size=600), RNG.normal(size=200)
I = RNG.integers(0, 50, 600)  # noqa: E741


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCupy]:
    with as_gpu(monkeypatch) as fake:
        fake.pool.keeps = True
        yield fake


def same(got: Any, want: Any) -> None:
    for one, other in zip(*map(optree.tree_leaves, (got, want)), strict=True):
        one = one.get() if isinstance(one, FakeArray) else one
        np.testing.assert_allclose(one, other)
        assert one.dtype == other.dtype


def on_gpu(cupy: FakeCupy, f: Callable[..., Any], *args: np.ndarray) -> list[str]:
    """The requests of the last call; nothing but notes of checks is copied to the host."""
    jitted = fusec.jit(f)
    for number in range(4):
        there = [cupy.asarray(x) for x in args]
        cupy.calls.clear()
        cupy.sent.clear()
        got = jitted(*there)
        assert number == 0 or sum(cupy.sent) <= 8, cupy.calls
        same(got, f(*args))
    return [*cupy.calls]


ORDERS = {
    "argsort": (lambda x: np.argsort(x, axis=1), X),
    "argsort of integers": (lambda i: np.argsort(i, kind="stable") * 2, I),
    "sort of integers": (lambda i: np.sort(i), I),
    "searchsorted": (lambda v, w: np.searchsorted(np.sort(v), w, side="right"), V, W),
    "interp": (lambda v, w: np.interp(w, np.sort(v), v) + 1, V, W),
    "take_along_axis": (lambda x: np.take_along_axis(x, np.argsort(x, 1), 1), X),
}
SIZES = {
    "bincount": (lambda i: np.bincount(i, minlength=70), I),
    "bincount, then a kernel": (lambda i: np.bincount(i) * 0.5, I),
    "unique": (lambda i: np.unique(i), I),
    "unique with counts": (lambda i: np.unique(i, return_counts=True, return_inverse=True), I),
    "flatnonzero": (lambda v: np.flatnonzero(v > 1), V),
    "nonzero of two axes": (lambda x: np.nonzero(x > 1), X),
    "where of one argument": (lambda v: np.where(v > 0)[0] * 2, V),
    "argwhere": (lambda x: np.argwhere(x > 1), X),
    "mask": (lambda v: v[v > 0.5], V),
    "mask, then kernels": (lambda v: np.sqrt(v[v > 0.5]).sum() + v, V),
    "mask of rows": (lambda x: x[x[:, 0] > 0] * 2, X),
    "nothing selected": (lambda v: (v[v > 99] * 2, np.flatnonzero(v > 99)), V),
}


@pytest.mark.parametrize("case", ORDERS)
def test_orders_are_part_of_prepared_calls(cupy: FakeCupy, case: str) -> None:
    f, *args = ORDERS[case]
    assert any(call.startswith("numpy.") for call in on_gpu(cupy, f, *args))


@pytest.mark.parametrize("case", SIZES)
def test_sizes_that_data_decide(cupy: FakeCupy, case: str) -> None:
    f, *args = SIZES[case]
    on_gpu(cupy, f, *args)


def test_a_call_that_decides_a_size_alone_is_prepared(cupy: FakeCupy) -> None:
    assert on_gpu(cupy, lambda i: np.bincount(i), I) == ["numpy.bincount",
                                                        "numpy.ascontiguousarray"]


REFUSED = {
    "negative": (lambda i: np.bincount(i), I - 7),
    "mask of another shape": (lambda v, i: v[(i > 3)[:-1]], V, I),
}


@pytest.mark.parametrize("case", REFUSED)
def test_numpy_judges_what_cupy_refuses(cupy: FakeCupy, case: str) -> None:
    f, *args = REFUSED[case]
    jitted = fusec.jit(f)
    with pytest.raises(Exception) as wanted:  # whichever NumPy raises
        f(*args)
    for _ in range(3):
        with pytest.raises(wanted.type) as found:
            jitted(*[cupy.asarray(x) for x in args])
        assert str(found.value).splitlines()[0].startswith(str(wanted.value).splitlines()[0][:20])


def test_numpy_does_what_cupy_does_otherwise(cupy: FakeCupy) -> None:
    """Weighted counts add in no order there; indices out of range wrap around."""
    for f, *args in ((lambda i, w: np.bincount(i[:200], w), I, W), (lambda v, i: v[i - 60], V, I)):
        there = [cupy.asarray(x) for x in args]
        cupy.calls.clear()
        same(fusec.jit(f)(*there), f(*args))
        assert not any(call.startswith(("numpy.bincount", "masked")) for call in cupy.calls)


def test_a_kernel_that_checks_in_a_fresh_process_finds_builtins() -> None:
    """NumPy's C code imports its methods on behalf of the text that calls them."""
    from fusec.codegen.structured.text_writer import TextWriter

    text = TextWriter({})
    text.line("return 1")
    assert "__builtins__" in text.compiled("def f():", "<text>").__globals__
