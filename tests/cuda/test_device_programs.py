"""Loops of devices as text that launches kernels: where numbers are, when the host waits, the calls
of the driver, the state after an error."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import optree
import pytest
from fake_cupy import as_gpu
from fake_streams import Graph

import fusec
from fusec.codegen import backends
from fusec.codegen.cuda.emulated_backend import DRIVER
from fusec.codegen.cuda.persistent import choice
from fusec.codegen.kernels import kernel_nodes

DEVICE = "/device:CUDAHOST:0"
RNG = np.random.default_rng(11)
X = RNG.uniform(0, 1, (12, 10))


@pytest.fixture(autouse=True)
def launched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Elements are beside large arrays; loops are not one kernel."""
    monkeypatch.setattr(kernel_nodes, "LARGE", 0)
    monkeypatch.setattr(kernel_nodes, "ONE_KERNEL", 0)
    monkeypatch.setattr(choice, "forced", "launched")


def copied(args: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(a.copy() if isinstance(a, np.ndarray) else a for a in args)


def program_text(f: Callable[..., Any], *args: Any) -> str:
    (control, *_) = fusec.jit(f, device=DEVICE).concrete(*copied(args)).control
    assert "text that launches" in control.reason
    return str(control.asm["py"])


def conjugate_gradients(a: Any, b: Any, n: Any) -> Any:
    x, r = np.zeros(len(b)), b - (a * 0.0).sum(1)
    p, rr = r.copy(), (r * r).sum()
    for _ in range(n):
        q = (a * p).sum(1)
        alpha = rr / (p * q).sum()
        x = x + alpha * p
        r = r - alpha * q
        new = (r * r).sum()
        p = r + (new / rr) * p
        rr = new
    return x


def heat(u: Any, n: Any) -> Any:
    for _ in range(n):
        u[1:-1] = u[1:-1] + 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
    return u


def adam(x: Any, n: Any) -> Any:
    """Numbers that follow from the counter: in kernels, and in conditions (of a division by 0)."""
    m, v, t = np.zeros(len(x)), np.zeros(len(x)), 0.0
    for k in range(n):
        g = 2 * x + np.sin(x + k)
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g * g
        t += 0.1
        x = x - t * m / (1 - 0.9 ** (k + 1)) / (np.sqrt(v / (1 - 0.999 ** (k + 1))) + 1e-8)
    return x, t


SYSTEM = (RNG.uniform(0, 1, (30, 30)) + 30 * np.eye(30), RNG.uniform(0, 1, 30))

# -------------------------------------------------------------------------- numbers on the device


def damped(x: Any, n: Any) -> Any:
    """Functions of numbers that only kernels have, conditions on what kernels compute."""
    t, step = 0.0, 0.25
    for k in range(n):
        scale = np.exp(-t) * np.sin(x.mean() + k)
        x = x * scale if scale > 0.1 else x + scale
        t = t + step / (1 + np.abs(x).max())
        step = min(step, t + 0.1)
    return x, t, step


def small_numbers(x: Any, n: Any) -> Any:
    """Numbers of every width, in variables and elements."""
    byte, half, word = np.int8(100), np.float16(0.3), np.uint32(7)
    single, flag, big = np.float32(1.1), False, np.int64(1 << 62)
    for k in range(n):
        byte = np.int8(byte + np.int8(k % 5 * 7))
        half = np.float16(half * np.float16(1.7))
        word = np.uint32(word * np.uint32(2654435761)) >> np.uint32(3)
        single = np.float32(single / np.float32(3)) + np.float32(x[k % 12, 1])
        flag = (flag ^ (x[k % 12, 2] > 0.5)) | (k == 3)
        big = big * np.int64(3) - k
        x[k % 12, 0] = single + half
        x = x * 1.5
    return x, byte, half, word, single, flag, big


def turning(z: Any, n: Any) -> Any:
    """Complex numbers."""
    w = 1.0 + 0.5j
    for _ in range(n):
        w = w * (0.3 + 0.1j) + z.sum()
        z = z * w
    return z, w


def halved(x: Any, limit: Any) -> Any:
    """As long as a number that a kernel computes says so; from inside, too."""
    count = 0
    while x.sum() > limit:
        x = x * 0.7
        count += 1
        if x[0, 0] < 1e-3:
            break
    return x, count


def nested(x: Any, n: Any) -> Any:
    total = 0.0
    for k in range(n):
        best = x.max()
        for j in range(k):
            x = x - best * 0.1 if best > 0.5 else x + j
            best = best * 0.9
        total = total + best
    return x, total


PROGRAMS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (damped, (X, np.int64(7))), (small_numbers, (X, np.int64(20))),
    (turning, (RNG.normal(size=(4, 3)) + 1j * RNG.normal(size=(4, 3)), np.int64(5))),
    (halved, (X, 3.0)), (halved, (X, 0.0)), (nested, (X, np.int64(4))),
    (adam, (RNG.uniform(0, 1, 90), np.int64(9))),
    (conjugate_gradients, (*SYSTEM, np.int64(6))), (heat, (RNG.uniform(0, 1, 300), np.int64(9)))]


@pytest.mark.parametrize("way", ["persistent", "launched"])
@pytest.mark.parametrize("seed", [0, 5])
@pytest.mark.parametrize(("f", "args"), PROGRAMS, ids=lambda x: getattr(x, "__name__", ""))
def test_results_are_those_of_the_cpu(
    f: Callable[..., Any], args: tuple[Any, ...], seed: int, way: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(choice, "forced", way)
    there, here = fusec.jit(f, device=DEVICE), fusec.jit(f)
    kind = "one kernel" if way == "persistent" else "text that launches"
    assert any(kind in c.reason for c in there.concrete(*copied(args)).control)
    with fusec.config.override(cuda_host_seed=seed, verify=True):
        got, want = there(*copied(args)), here(*copied(args))
    for one, other in zip(*map(optree.tree_leaves, (got, want)), strict=True):
        assert type(one) is type(other)
        np.testing.assert_allclose(one, other, rtol=1e-13)  # sums have an order of their own


@pytest.mark.parametrize(("f", "args"), [(conjugate_gradients, SYSTEM), (adam, (np.ones(9),))])
def test_iterations_wait_for_nothing(f: Callable[..., Any], args: tuple[Any, ...]) -> None:
    text = program_text(f, *args, np.int64(6))
    loop = text[text.index("while True"):text.index("queue.turn")]
    assert "launch" in loop and "on_host" not in loop


def test_a_counter_is_sent_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with as_gpu(monkeypatch) as cupy:
        fusec.jit(adam)(cupy.asarray(np.ones(9)), np.int64(200))
        calls = Counter(cupy.calls)
    assert calls["graph"] >= 6 and calls["to device"] < 10 and calls["to host"] < 4


@pytest.mark.parametrize("way", ["persistent", "launched"])
def test_every_word_and_array_is_given_back(way: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "forced", way)
    g, x = fusec.jit(damped, device=DEVICE), X.copy()
    g(x, np.int64(3))
    before = DRIVER.arena.used
    for _ in range(3):
        g(x, np.int64(40))
    DRIVER.synchronize()
    assert DRIVER.arena.used <= before


# ------------------------------------------------------------------------ what the driver is asked


def test_iterations_are_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    u = RNG.uniform(0, 1, 300)
    with as_gpu(monkeypatch) as cupy:
        g = fusec.jit(heat)
        g(cupy.asarray(u), np.int64(5))
        cupy.calls.clear()
        got = g(cupy.asarray(u), np.int64(1000)).get()
        calls = Counter(cupy.calls)
    assert calls["graph"] * 48 > 850  # of 1,000 launches
    assert calls["captured"] <= 2 and not calls["to device"] and not calls["to host"]
    np.testing.assert_array_equal(got, fusec.jit(heat)(u.copy(), np.int64(1000)))


def test_two_graphs_are_under_way_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that who interrupts does not wait for all that was asked for."""
    ends: list[Any] = []
    most = 0

    def launch(self: Graph, stream: Any = None) -> None:
        nonlocal most
        ask(self, stream)
        ends.append(self.streams.driver.streams.record(stream.ptr))
        most = max(most, sum(not end.is_done for end in ends))

    ask = Graph.launch
    monkeypatch.setattr(Graph, "launch", launch)
    u = RNG.uniform(0, 1, 300)
    with as_gpu(monkeypatch) as cupy:
        fusec.jit(heat)(cupy.asarray(u), np.int64(2000))
    assert len(ends) > 10 and most == 2


def test_iterations_without_waits_are_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    with as_gpu(monkeypatch) as cupy:
        g = fusec.jit(conjugate_gradients)
        got = g(*map(cupy.asarray, SYSTEM), np.int64(300)).get()
        calls = Counter(cupy.calls)
    assert calls["graph"] > 20 and calls["to host"] < 6
    np.testing.assert_allclose(got, np.linalg.solve(*SYSTEM), rtol=1e-10)


# ------------------------------------------------------------------------------- what errors leave


def refined(a: Any, x: Any, n: Any) -> Any:
    """A library call that refuses its matrix after some iterations."""
    for k in range(n):
        a = a * (k != 2)
        x = x + np.linalg.solve(a, x + 1)
    return x


def test_a_matrix_that_is_refused_names_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with as_gpu(monkeypatch) as cupy:
        a, x = cupy.asarray(SYSTEM[0]), cupy.asarray(SYSTEM[1])
        g = fusec.jit(refined)
        np.testing.assert_allclose(g(a, x, np.int64(2)).get(), refined(*SYSTEM, 2))
        (control, *_) = g.concrete(a, x, np.int64(2)).control
        assert "text that launches" in control.reason and "library" in control.asm["py"]
        with pytest.raises(np.linalg.LinAlgError, match=r"[Ss]ingular") as raised:
            g(a, x, np.int64(4))
        assert any("np.linalg.solve(a, x + 1)" in note for note in raised.value.__notes__)


def taken(x: Any, i: Any, n: Any) -> Any:
    for k in range(n):
        x = x[i + k] * 2
    return x


def test_a_wrong_index_in_a_kernel_is_numpys_error() -> None:
    i = np.arange(12)[::-1].copy()
    assert "has_failed" in program_text(taken, X, i - 3, np.int64(3))
    g = fusec.jit(taken, device=DEVICE)
    np.testing.assert_array_equal(g(X, i - 3, np.int64(3)), taken(X, i - 3, 3))
    with pytest.raises(IndexError, match="index 12 is out of bounds for axis 0 with size 12") as e:
        g(X, i, np.int64(3))
    assert "x = x[i + k] * 2" in e.value.__notes__[0]


def test_an_exit_leaves_what_was_computed() -> None:
    """Where the arrays lie that iterations have exchanged."""
    def advanced(x: Any, y: Any, n: Any) -> None:
        for k in range(n):
            x[1:-1] = x[1:-1] + 0.1 * (x[2:] - x[:-2])
            x[0] = y[k]

    def left(using: str) -> np.ndarray:
        x, y = np.arange(5.0), np.arange(5.0)
        with backends.using(using), pytest.raises(IndexError, match="index 5 is out of bounds"):
            fusec.jit(advanced)(x, y, np.int64(9))
        return x

    got = left("cudahost")
    np.testing.assert_array_equal(got, left("cpu"))
    assert got[0] == 4


# ------------------------------------------------------------------------ nests of one launch


def framed(u: Any, n: Any) -> Any:
    """Parts of both axes, a step of two, several results."""
    v = np.zeros_like(u)
    for k in range(n):
        u[1:-1, 2:] = u[1:-1, 2:] * 0.5 + u[:-2, :-2] + k
        v = np.concatenate([u[:1] + 1, v[1:-1] + u[2:], u[-1:] * 2])
        u[:, ::2] = v[:, ::2]
    return u, v


def turned_in_place(u: Any, n: Any) -> Any:
    """Nests that read the places that others write."""
    for _ in range(n):
        u[:3] = u[3:6] + u[:3]
        u[3:6] = u[:3] * 0.5
    return u


@pytest.mark.parametrize("seed", [0, 3, 8])
@pytest.mark.parametrize("f", [framed, turned_in_place])
def test_joined_nests_have_the_bits_of_the_cpu(f: Callable[..., Any], seed: int) -> None:
    there, here = fusec.jit(f, device=DEVICE), fusec.jit(f)
    with fusec.config.override(cuda_host_seed=seed):
        got, want = there(X.copy(), np.int64(6)), here(X.copy(), np.int64(6))
    for one, other in zip(*map(optree.tree_leaves, (got, want)), strict=True):
        np.testing.assert_array_equal(one, other)


def test_an_iteration_of_a_stencil_is_one_launch() -> None:
    g, u = fusec.jit(heat, device=DEVICE), RNG.uniform(0, 1, 300)
    assert "joined(const i32 blocks_0" in g.concrete(u, np.int64(3)).control[0].asm["cu"]
    g(u, np.int64(3))
    before = DRIVER.launched
    g(u, np.int64(100))
    assert DRIVER.launched - before <= 102
