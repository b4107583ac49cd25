"""Branches and loops on devices with arrays of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import optree
import pytest
from fake_cupy import as_gpu

import fusec
from fusec.codegen.cuda.emulated_backend import DRIVER
from fusec.codegen.cuda.persistent import choice
from fusec.codegen.kernels import kernel_nodes

DEVICE = "/device:CUDAHOST:0"
X = np.random.default_rng(4).uniform(0, 1, (12, 10))


def relaxed(x: Any, steps: Any) -> Any:
    for k in range(steps):
        y = x.copy()
        y[1:-1] = (x[:-2] + x[1:-1] + x[2:]) * 0.3
        if y.max() < 0.9:
            y[0] = y[0] + k
        x = y
    return x * 2


def until(x: Any, limit: Any) -> Any:
    n = 0
    while (x < limit).all():
        x, n = x * 1.5 + 0.01, n + 1
    return x, n


def exchanged(x: Any, steps: Any) -> Any:
    a, b = x.T.copy(), np.zeros(x.shape[::-1])
    for _ in range(steps):
        a, b = b + 1, a[::-1]
    return a, b


def in_place(x: Any, steps: Any) -> Any:
    for k in range(steps):
        x[k % 3] += x[-1]
        x[:, 0] = k
    return x


def chosen(x: Any, flag: Any) -> Any:
    if flag > 1:
        x[0] = 5
        y = np.sin(x)
    else:
        y = x[::-1] * 2
    return y + 1, x


def nested(x: Any, steps: Any) -> Any:
    for k in range(steps):
        for j in range(k):
            x = x + j if x.max() < 3 else x - j * 2
    return x


def elements(x: Any, steps: Any) -> Any:
    """Numbers that are elements of arrays go into loops and branches."""
    first = x[0, 0]
    y = x + 1
    for _ in range(steps):
        first = first + y[-1, 2]
        y = y * first if first < 3 else y + x[1, 1]
    return y, first


def turned(x: Any, steps: Any) -> Any:
    """Views from the end on, and with gaps, that only loops read."""
    y, z = x[::-1], x.T[::2, ::-1]
    for _ in range(steps):
        x = x + y
    while z.sum() < 20:
        z = z + 1
    return x, z


PROGRAMS: list[tuple[Callable[..., Any], Any]] = [
    (relaxed, 4), (until, 7.5), (exchanged, 3), (in_place, 5), (chosen, 2), (chosen, 0),
    (nested, 4), (elements, 3), (turned, 2)]
DIVIDED = (in_place,)  # elements at an index of the run are the CPU's where arrays are small


def is_program(control: Any) -> bool:
    """Whether it runs on the device as a whole."""
    return control.reason.startswith(("one kernel", "text that launches"))


@pytest.fixture(params=["persistent", "launched"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """One kernel that does all iterations, and launches."""
    monkeypatch.setattr(choice, "forced", request.param)
    return str(request.param)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(("f", "number"), PROGRAMS, ids=lambda x: getattr(x, "__name__", ""))
def test_results_are_those_of_the_cpu(f: Callable[..., Any], number: Any) -> None:
    here, there = fusec.jit(f), fusec.jit(f, device=DEVICE)
    scalar = np.float64(number) if isinstance(number, float) else np.int64(number)
    for seed in (0, 3):
        with fusec.config.override(cuda_host_seed=seed):
            a, b = X.copy(), X.copy()
            want, launched = here(a, scalar), DRIVER.launched
            got = there(b, scalar)
            assert DRIVER.launched > launched
            for one, other in zip(*((r if isinstance(r, tuple) else (r,)) for r in (got, want)),
                                  strict=True):
                np.testing.assert_array_equal(one, other)
            np.testing.assert_array_equal(a, b)
    if f not in DIVIDED:
        (control, *_) = there.concrete(X, scalar).control
        assert is_program(control)
        (part,) = [g for name, g in there.concrete(X, scalar).partitions.items() if "HOST" in name]
        assert {"Loop", "Cond"} & {n.op for n in part.nodes}


@pytest.mark.usefixtures("way")
def test_a_check_inside_is_the_programs_error() -> None:
    def f(x: Any, i: Any, steps: Any) -> Any:
        for k in range(steps):
            x = x[i + k] * 2
        return x

    g = fusec.jit(f, device=DEVICE)
    i = np.arange(12)[::-1].copy()
    np.testing.assert_array_equal(g(X, i - 3, np.int64(3)), fusec.jit(f)(X, i - 3, np.int64(3)))
    with pytest.raises(IndexError, match="index 12 is out of bounds for axis 0 with size 12"):
        g(X, i, np.int64(3))
    np.testing.assert_array_equal(g(X, i, np.int64(1)), X[i] * 2)


def test_a_check_inside_names_its_line() -> None:
    def f(x: Any, i: Any, steps: Any) -> Any:
        for k in range(steps):
            if x.max() > 0.0:
                x = x[i + k] * 2
        return x

    with pytest.raises(IndexError) as raised:
        fusec.jit(f, device=DEVICE)(X, np.arange(12), np.int64(3))
    (note,) = raised.value.__notes__
    assert "x = x[i + k] * 2" in note and "for k in" not in note


def test_counters_are_made_where_they_are_read() -> None:
    def f(x: Any) -> Any:
        return np.take_along_axis(x, np.arange(10)[::-1] * (x > 9), 1)

    concrete = fusec.jit(f, device=DEVICE).concrete(X)
    assert all("CUDAHOST" in n.device for n in concrete.optimized_graph.nodes if n.op != "Input")
    np.testing.assert_array_equal(fusec.jit(f, device=DEVICE)(X), f(X))


@pytest.mark.usefixtures("way")
def test_an_index_where_no_element_is_left() -> None:
    """A wrong index becomes 0, and there is no element 0: the kernel must read something else."""
    def f(x: Any, least: Any) -> Any:
        for _ in range(3):
            x = x[x > least]
            x[::2] = least
        return x[len(x) // 2]

    g = fusec.jit(f, device=DEVICE)
    assert g(np.arange(10.0), 3.0) == 3.0
    with pytest.raises(IndexError, match="index 0 is out of bounds for axis 0 with size 0"):
        g(np.arange(10.0), 20.0)


def test_an_element_spread_over_an_array_is_read_by_the_device() -> None:
    """Views of an element that only a branch reads, which the host must not read itself: it has no
    such memory, and the emulated device has not written it yet."""
    def f(y: Any, a: Any) -> None:
        q = a[1]
        y.fill(a[0])
        if q < q:
            return
        y[1] = 2.0

    def g(y: Any, a: Any) -> Any:
        w = np.concatenate([a, y])[:1]
        w[:] = y[2]
        return w.sum() * 2 if a[1] > 0 else a[3]

    for h in f, g:
        y, want, a = np.arange(4.0), np.arange(4.0), np.arange(5.0, 9.0)
        before = DRIVER.launched
        assert fusec.jit(h, device=DEVICE)(y, a) == h(want, a)
        assert DRIVER.launched > before
        np.testing.assert_array_equal(y, want)


def test_what_no_kernel_computes_stays_on_the_cpu() -> None:
    def f(x: Any, steps: Any) -> Any:
        for _ in range(steps):
            x = np.sort(x, axis=0) * 2
        return x

    g = fusec.jit(f, device=DEVICE)
    np.testing.assert_array_equal(g(X, np.int64(2)), np.sort(X, axis=0) * 4)
    assert not is_program(g.concrete(X, np.int64(2)).control[0])


# --- elements at indices of the run, beside large arrays -----------------------------------------


def rows_and_elements(x: Any, steps: Any) -> Any:
    t = 0.0
    for k in range(steps):
        x = np.sin(x) + x[(7 * k) % 12 - 12]
        t = t + x[k % 3, -k - 1]
    return x, t


def written(x: Any, steps: Any) -> Any:
    for k in range(steps):
        x = x + 1
        if x[k, k] > 2:
            x[2 - k, 0] = x[0, 2 - k] * 0.5
        for j in range(k):
            x[:, j] = k
            x[j, k - j] += j
    return x


def of_integers(x: Any, steps: Any) -> Any:
    counts, flags = np.zeros(12, np.int32), np.zeros((3, 10), bool)
    for k in range(steps):
        counts[k * k % 12] += (x > 0.1 * k).sum()
        flags[k % 3, k] = counts[k] > 9
        x = x * 0.9
    return counts, flags, x


def parts(x: Any, steps: Any) -> Any:
    """Windows of known sizes, at places of the run: read, written, and both in one."""
    for _ in range(5):
        for k in range(8):
            y = x[k:k + 3] * 0.5 + steps
            x[k + 1:k + 4] = y - x[k + 2:k + 5] * 0.5
            x[:, k:k + 2] = x[:, k:k + 2] + k
    return x[1:] * 2


LARGE_PROGRAMS: list[tuple[Callable[..., Any], int]] = [
    (in_place, 5), (rows_and_elements, 9), (written, 3), (of_integers, 8), (parts, 2)]


@pytest.fixture
def all_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_nodes, "LARGE", 0)
    monkeypatch.setattr(kernel_nodes, "ONE_KERNEL", 0)


@pytest.mark.usefixtures("all_large", "way")
@pytest.mark.parametrize(("f", "number"), LARGE_PROGRAMS, ids=lambda x: getattr(x, "__name__", ""))
def test_elements_are_kernels_beside_large_arrays(f: Callable[..., Any], number: int) -> None:
    here, there, steps = fusec.jit(f), fusec.jit(f, device=DEVICE), np.int64(number)
    for seed in (0, 3):
        with fusec.config.override(cuda_host_seed=seed):
            a, b = X.copy(), X.copy()
            for one, other in zip(*(optree.tree_leaves(g(x, steps)) for g, x in (
                    (here, a), (there, b))), strict=True):
                np.testing.assert_array_equal(one, other)
            np.testing.assert_array_equal(a, b)
    assert is_program(there.concrete(X, steps).control[0])


@pytest.mark.usefixtures("all_large", "way")
@pytest.mark.parametrize(("f", "number"), LARGE_PROGRAMS, ids=lambda x: getattr(x, "__name__", ""))
def test_no_array_of_a_gpu_leaves_it(
    f: Callable[..., Any], number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with as_gpu(monkeypatch) as cupy:
        x, a, steps = cupy.asarray(X.copy()), X.copy(), np.int64(number)
        cupy.sent.clear()
        found = fusec.jit(f)(x, steps)
        # Zeros that it begins with, numbers of the loop, what it leaves: no array, nor a row of it.
        assert sum(cupy.sent) < X.nbytes + 64 and max(cupy.sent) < X.shape[1] * X.itemsize * number
        for one, other in zip(*map(optree.tree_leaves, (found, fusec.jit(f)(a, steps))),
                              strict=True):
            np.testing.assert_array_equal(one.get() if hasattr(one, "get") else one, other)
        np.testing.assert_array_equal(x.get(), a)


@pytest.mark.usefixtures("all_large", "way")
@pytest.mark.parametrize("check", [True, False])
def test_wrong_indices_are_the_programs_errors(check: bool) -> None:
    def f(x: Any, k: Any) -> Any:
        for j in range(40):
            x = x * 0.5 + x[(k - j) % 3] if j < 30 else x
            x[k + j % 9, 0] = 7.0
        return x

    g = fusec.jit(f, device=DEVICE, check_indices=check)
    for k in (2, -12):
        np.testing.assert_array_equal(g(X.copy(), np.int64(k)), fusec.jit(f)(X.copy(), np.int64(k)))
    if check:
        for k, words in ((9, "index 12 is"), (-14, "index -14 is")):
            with pytest.raises(IndexError, match=f"{words} out of bounds for axis 0 with size 12"):
                g(X.copy(), np.int64(k))


def test_small_loops_leave_elements_to_the_cpu() -> None:
    """A launch, and waiting for its number, costs more than the CPU needs for all of it."""
    control, *_ = fusec.jit(written, device=DEVICE).concrete(X, np.int64(3)).control
    assert not is_program(control)
    wide = np.zeros((700, 700))
    control, *_ = fusec.jit(written, device=DEVICE).concrete(wide, np.int64(3)).control
    assert is_program(control)


def sums_of_nothing(x: Any) -> Any:
    total, q = np.zeros(3), 1.0
    for _ in range(30):
        q = q * 0.5 + x[12:].sum()
        total = total * 0.5 + x.reshape(3, 4)[:, 4:].sum(1) + x.reshape(4, 3)[4:].prod(0)
    return q, total


@pytest.mark.usefixtures("way")
def test_a_reduction_of_no_elements_stores_its_start() -> None:
    """The fuzzer's w9367: no kernel was launched, and the word was what memory held."""
    x = np.arange(12.0)
    q, total = fusec.jit(sums_of_nothing, device="/device:CUDAHOST:0")(x)
    assert q == sums_of_nothing(x)[0]
    np.testing.assert_array_equal(total, sums_of_nothing(x)[1])
