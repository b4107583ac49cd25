"""Ensembles of loops against JAX and Numba, in one run: ``python tests/batching/peers.py``.

JAX (``jit(vmap(f))``, x64) and Numba (``prange`` over the same scalar function) are asked in turn
with fusec, five times each and after a pause in which the other's threads come to rest, on the
same number of threads; the figures of each are the least of its calls, of the clock and of CPU time
of all threads.  On a machine that does other work at the same time the second one counts: XLA's and
OpenMP's threads that wait are in it, too.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable
from typing import Any

THREADS = 2
os.environ["JAX_ENABLE_X64"] = "1"
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=true")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numba  # noqa: E402
import numpy as np  # noqa: E402

import fusec  # noqa: E402

Program = tuple[str, Callable[..., Any], Callable[..., Any] | None, Callable[..., Any],
                tuple[np.ndarray, ...]]


def kepler(m: Any) -> Any:
    e = m
    while abs(e - 0.3 * np.sin(e) - m) > 1e-10:
        e = e - (e - 0.3 * np.sin(e) - m) / (1 - 0.3 * np.cos(e))
    return e


def kepler_jax(m: Any) -> Any:
    return jax.lax.while_loop(
        lambda e: jnp.abs(e - 0.3 * jnp.sin(e) - m) > 1e-10,
        lambda e: e - (e - 0.3 * jnp.sin(e) - m) / (1 - 0.3 * jnp.cos(e)), m)


def steps(n: Any) -> Any:
    x, k = 0.5, 0
    while k < n:
        x = np.sin(x) + 0.1
        k += 1
    return x


def steps_jax(n: Any) -> Any:
    return jax.lax.while_loop(lambda s: s[1] < n, lambda s: (jnp.sin(s[0]) + 0.1, s[1] + 1),
                              (0.5, 0))[0]


def mandelbrot(a: Any, b: Any) -> Any:
    x, y, k = 0.0, 0.0, 0
    while x * x + y * y < 4.0 and k < 200:
        x, y, k = x * x - y * y + a, 2 * x * y + b, k + 1
    return k


def mandelbrot_jax(a: Any, b: Any) -> Any:
    def body(s: Any) -> Any:
        x, y, k = s
        return x * x - y * y + a, 2 * x * y + b, k + 1

    return jax.lax.while_loop(lambda s: (s[0] ** 2 + s[1] ** 2 < 4.0) & (s[2] < 200), body,
                              (0.0, 0.0, 0))[2]


def adaptive(w: Any) -> Any:
    """Heun's method with a step of its own size (Hairer, Norsett, Wanner, II.4) on y' = -w y."""
    t, y, h = 0.0, 1.0, 0.1
    while t < 3.0:
        h = min(h, 3.0 - t)
        a = -w * y
        b = -w * (y + h * a)
        error = abs(h * (b - a)) * 0.5
        if error < 1e-5:
            t, y = t + h, y + 0.5 * h * (a + b)
        h = h * min(2.0, 0.9 * np.sqrt(1e-5 / (error + 1e-15)))
        if h < 1e-9:
            break
    return y


def adaptive_jax(w: Any) -> Any:
    def body(s: Any) -> Any:
        t, y, h, _ = s
        h = jnp.minimum(h, 3.0 - t)
        a = -w * y
        b = -w * (y + h * a)
        error = jnp.abs(h * (b - a)) * 0.5
        good = error < 1e-5
        t, y = jnp.where(good, t + h, t), jnp.where(good, y + 0.5 * h * (a + b), y)
        h = h * jnp.minimum(2.0, 0.9 * jnp.sqrt(1e-5 / (error + 1e-15)))
        return t, y, h, h >= 1e-9

    return jax.lax.while_loop(lambda s: (s[0] < 3.0) & s[3], body, (0.0, 1.0, 0.1, True))[1]


def volatility(price: Any) -> Any:
    """Of an option at that price, by Newton's method on Black and Scholes' formula."""
    v, k = 0.3, 0
    while k < 50:
        d = (math.log(100 / 105) + 0.02 + 0.5 * v * v) / v
        value = 50 * (1 + math.erf(d / math.sqrt(2.0))) - 52.5 * math.exp(-0.02) * (
            1 + math.erf((d - v) / math.sqrt(2.0)))
        step = (value - price) / (100 / math.sqrt(2 * math.pi) * math.exp(-0.5 * d * d))
        v, k = v - step, k + 1
        if abs(step) < 1e-10:
            break
    return v


def volatility_jax(price: Any) -> Any:
    def body(s: Any) -> Any:
        v, k, _ = s
        d = (math.log(100 / 105) + 0.02 + 0.5 * v * v) / v
        value = 50 * (1 + jax.lax.erf(d / math.sqrt(2.0))) - 52.5 * math.exp(-0.02) * (
            1 + jax.lax.erf((d - v) / math.sqrt(2.0)))
        step = (value - price) / (100 / math.sqrt(2 * math.pi) * jnp.exp(-0.5 * d * d))
        return v - step, k + 1, step

    return jax.lax.while_loop(lambda s: (s[1] < 50) & ~(jnp.abs(s[2]) < 1e-10), body,
                              (0.3, 0, 1.0))[0]


def walk(seed: Any) -> Any:
    """Steps until a walk by a linear congruential generator is 20 away from its start."""
    state, x, k = seed, 0, 0
    while abs(x) < 20 and k < 100_000:
        state = (state * 1103515245 + 12345) & 0x7FFFFFFF
        x = x + (1 if (state >> 16) & 1 else -1)
        k += 1
    return k


def walk_jax(seed: Any) -> Any:
    def body(s: Any) -> Any:
        state, x, k = s
        state = (state * 1103515245 + 12345) & 0x7FFFFFFF
        return state, x + jnp.where((state >> 16) & 1, 1, -1), k + 1

    return jax.lax.while_loop(lambda s: (jnp.abs(s[1]) < 20) & (s[2] < 100_000), body,
                              (seed, 0, 0))[2]


def levenshtein(a: Any, b: Any) -> Any:
    row = np.arange(len(b) + 1)
    for i in range(len(a)):
        before = row[0]
        row[0] = i + 1
        for j in range(len(b)):
            best = min(row[j + 1] + 1, row[j] + 1, before + (a[i] != b[j]))
            before = row[j + 1]
            row[j + 1] = best
    return row[len(b)]


def levenshtein_jax(a: Any, b: Any) -> Any:
    def line(i: Any, row: Any) -> Any:
        def place(j: Any, s: Any) -> Any:
            row, before = s
            best = jnp.minimum(jnp.minimum(row[j + 1], row[j]) + 1, before + (a[i] != b[j]))
            return row.at[j + 1].set(best), row[j + 1]

        return jax.lax.fori_loop(0, len(b), place, (row.at[0].set(i + 1), row[0]))[0]

    return jax.lax.fori_loop(0, len(a), line, jnp.arange(len(b) + 1))[len(b)]


def straight(x: Any, y: Any) -> Any:
    d = np.sqrt(x * x + y * y + 0.1)
    return np.exp(-d) * np.sin(3 * x) + np.log1p(d) * np.cos(y) / (1 + d)


def straight_jax(x: Any, y: Any) -> Any:
    d = jnp.sqrt(x * x + y * y + 0.1)
    return jnp.exp(-d) * jnp.sin(3 * x) + jnp.log1p(d) * jnp.cos(y) / (1 + d)


def in_prange(f: Callable[..., Any], count: int) -> Callable[..., Any]:
    """The function over all lanes by Numba."""
    one = numba.njit(f)
    names = ", ".join(f"x{k}" for k in range(count))
    lanes = ", ".join(f"x{k}[i]" for k in range(count))
    scope: dict[str, Any] = {"one": one, "np": np, "prange": numba.prange}
    exec(f"def run({names}):\n    y = np.empty(len(x0), type_of)\n"
         f"    for i in prange(len(x0)):\n        y[i] = one({lanes})\n    return y",
         scope | {"type_of": np.float64}, scope)
    scope["run"].__globals__.update(one=one, type_of=np.float64, prange=numba.prange)
    return numba.njit(parallel=True)(scope["run"])


def programs() -> list[Program]:
    rng = np.random.default_rng(0)
    few = np.full(20_000, 10)
    few[777] = 200_000
    a, b = (z.ravel() for z in np.meshgrid(np.linspace(-2, 0.5, 400), np.linspace(-1, 1, 400)))
    xs = tuple(rng.normal(size=(2, 1_000_000)))
    return [
        ("straight line, 10^6 lanes", straight, straight_jax, straight, xs),
        ("Kepler's equation, 2*10^5", kepler, kepler_jax, kepler, (np.linspace(0, 6, 200_000),)),
        ("one lane of 2*10^5 steps in 20,000 of ten", steps, steps_jax, steps, (few,)),
        ("Mandelbrot, 400 by 400", mandelbrot, mandelbrot_jax, mandelbrot, (a, b)),
        ("adaptive Heun, 10^5", adaptive, adaptive_jax, adaptive,
         (rng.uniform(0.1, 20, 100_000),)),
        ("implied volatility, 10^5", volatility, volatility_jax, volatility,
         (rng.uniform(5, 20, 100_000),)),
        ("random walk, 10^4", walk, walk_jax, walk, (rng.integers(1, 1 << 30, 10_000),)),
        ("Levenshtein distance, 10^4 pairs of 32", levenshtein, levenshtein_jax, levenshtein,
         tuple(rng.integers(0, 4, (2, 10_000, 32)))),
    ]


SETTLED = 0.02  # s: OpenMP's threads look out for more work so long after Numba's, on all cores
LONG = 1e3  # ms of a call that is not repeated at once
Times = tuple[float, float]  # ms of the clock and of all threads' CPU time


def least(calls: dict[str, Callable[[], Any]], seconds: float = 6.0) -> dict[str, Times]:
    """The least of each, called in turn."""
    found: dict[str, Times] = dict.fromkeys(calls, (math.inf, math.inf))
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for name, call in calls.items():
            for _ in range(5):
                time.sleep(SETTLED)
                start, spent = time.perf_counter(), time.process_time()
                call()
                clock, cpu = time.perf_counter() - start, time.process_time() - spent
                found[name] = min(found[name][0], 1e3 * clock), min(found[name][1], 1e3 * cpu)
                if 1e3 * clock > LONG:
                    break
    return found


def compared(program: Program) -> str:
    """A row of the table."""
    title, f, of_jax, scalar, args = program
    ours, numbas, peer = fusec.vmap(f), in_prange(scalar, len(args)), jax.jit(jax.vmap(of_jax))
    want = np.asarray(numbas(*args))
    np.testing.assert_allclose(ours(*args), want, rtol=1e-8)
    on_device = [jnp.asarray(x) for x in args]
    calls = {"fusec": lambda: ours(*args), "numba": lambda: numbas(*args)}
    if "--all" in sys.argv or f is not steps:  # JAX takes half a minute for that one
        np.testing.assert_allclose(peer(*on_device), want, rtol=1e-8)
        calls["jax"] = lambda: peer(*on_device).block_until_ready()
    ms = least(calls)
    return f"| {title} | {_row(ms, 0)} | {_row(ms, 1)} |"


def _row(ms: dict[str, Times], number: int) -> str:
    """Of one of the two clocks: fusec's, JAX's and Numba's ms, and what the others are to fusec's.
    """
    ours, jaxs, numbas = (ms.get(name, (math.nan,) * 2)[number]
                          for name in ("fusec", "jax", "numba"))
    return (f"{ours:.3g} | {jaxs:.3g} | {numbas:.3g} | {jaxs / ours:.1f} | {numbas / ours:.1f}")


def main() -> None:
    fusec.config.num_threads = THREADS
    numba.set_num_threads(min(THREADS, numba.config.NUMBA_NUM_THREADS))
    columns = "fusec | JAX | Numba | against JAX | against Numba |"
    print(f"| program | clock, ms: {columns} CPU, ms: {columns}")
    print("|---" * 11 + "|")
    for program in programs():
        print(compared(program), flush=True)


if __name__ == "__main__":
    main()
