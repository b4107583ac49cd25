"""The same functions as one writes them for JAX: scans in the place of loops, whole arrays and
masks in the place of slices whose length changes, ``.at[...].set`` in the place of assignments.

Those that are not here are the NumPy functions themselves, with ``jax.numpy`` in NumPy's place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..peers.other_numpy import with_numpy
from . import adbench

Twin = Callable[..., Any]


def seidel() -> Twin:
    """Rows are scanned, with the row before; within one its elements, with the one before."""
    import jax
    import jax.numpy as jnp

    def row(before: Any, rows: Any) -> Any:
        own, after = rows
        rest = (before[:-2] + before[1:-1] + before[2:] + own[1:-1] + own[2:]
                + after[:-2] + after[1:-1] + after[2:])

        def point(left: Any, others: Any) -> Any:
            new = (left + others) / 9.0
            return new, new

        _, inner = jax.lax.scan(point, own[0], rest)
        new = jnp.concatenate([own[:1], inner, own[-1:]])
        return new, new

    def f(u: Any, sweeps: int) -> Any:
        def sweep(u: Any, _: Any) -> Any:
            _, inner = jax.lax.scan(row, u[0], (u[1:-1], u[2:]))
            return jnp.concatenate([u[:1], inner, u[-1:]]), None

        u, _ = jax.lax.scan(sweep, u, None, length=sweeps)
        return (u * u).sum()

    return f


def adi() -> Twin:
    import jax
    import jax.numpy as jnp

    def half_step(u: Any, a: Any) -> Any:
        def down(carry: Any, rows: Any) -> Any:
            p, q = carry
            right = a * rows[0] + (1.0 - 2.0 * a) * rows[1] + a * rows[2]
            below = 1.0 + 2.0 * a - a * p
            new = a / below, (right + a * q) / below
            return new, new

        def up(after: Any, pq: Any) -> Any:
            new = pq[0] * after + pq[1]
            return new, new

        zero = jnp.zeros(u.shape[1] - 2)
        inner = u[:, 1:-1]
        _, pq = jax.lax.scan(down, (zero, zero), (inner[:-2], inner[1:-1], inner[2:]))
        _, new = jax.lax.scan(up, zero, pq, reverse=True)
        return jnp.pad(new, 1).T

    def f(u: Any, a: Any, steps: int) -> Any:
        u, _ = jax.lax.scan(lambda u, _: (half_step(u, a), None), u, None, length=2 * steps)
        return (u * u).sum()

    return f


def lu() -> Twin:
    import jax
    import jax.numpy as jnp

    def f(a: Any) -> Any:
        n = len(a)
        numbers = jnp.arange(n)

        def step(k: Any, a: Any) -> Any:
            column = jnp.where(numbers > k, a[:, k] / a[k, k], 0.0)
            row = jnp.where(numbers > k, a[k], 0.0)
            a = a.at[:, k].set(jnp.where(numbers > k, column, a[:, k]))
            return a - column[:, None] * row

        return jnp.log(jnp.diagonal(jax.lax.fori_loop(0, n - 1, step, a))).sum()

    return f


def cholesky() -> Twin:
    """By columns, for then a step is one product of a matrix and a vector."""
    import jax
    import jax.numpy as jnp

    def f(a: Any) -> Any:
        n = len(a)
        numbers = jnp.arange(n)

        def step(j: Any, low: Any) -> Any:
            column = a[:, j] - low @ low[j]
            column = jnp.where(numbers >= j, column / jnp.sqrt(column[j]), 0.0)
            return low.at[:, j].set(column)

        low = jax.lax.fori_loop(0, n, step, jnp.zeros((n, n)))
        return (1.0 / jnp.diagonal(low) ** 2).sum()

    return f


def durbin() -> Twin:
    import jax
    import jax.numpy as jnp

    def f(r: Any) -> Any:
        n = len(r)
        numbers = jnp.arange(n)

        def step(carry: Any, k: Any) -> Any:
            y, alpha, beta = carry
            beta = beta * (1.0 - alpha * alpha)
            turned = jnp.where(numbers < k, y[(k - 1 - numbers) % n], 0.0)
            alpha = -(r[k] + r @ turned) / beta
            return ((y + alpha * turned).at[k].set(alpha), alpha, beta), None

        start = jnp.zeros(n).at[0].set(-r[0]), -r[0], 1.0
        (y, _, _), _ = jax.lax.scan(step, start, jnp.arange(1, n))
        return (y * y).sum()

    return f


def soft_dtw() -> Twin:
    """By antidiagonals, whose elements do not depend on each other."""
    import jax
    import jax.numpy as jnp

    def f(x: Any, y: Any) -> Any:
        n, m = len(x), len(y)
        i = jnp.arange(n + 1)

        def step(carry: Any, d: Any) -> Any:
            two, one = carry  # the antidiagonals d - 2 and d - 1, by rows
            j = d - i
            a = jnp.concatenate([jnp.full(1, 1e10), two[:-1]])
            b = jnp.concatenate([jnp.full(1, 1e10), one[:-1]])
            least = jnp.minimum(a, jnp.minimum(b, one))
            soft = least - jnp.log(
                jnp.exp(least - a) + jnp.exp(least - b) + jnp.exp(least - one))
            new = (x[jnp.clip(i - 1, 0)] - y[jnp.clip(j - 1, 0, m - 1)]) ** 2 + soft
            new = jnp.where((i > 0) & (j > 0) & (j <= m), new, 1e10)
            return (one, new), None

        start = jnp.full(n + 1, 1e10).at[0].set(0.0), jnp.full(n + 1, 1e10)
        (_, last), _ = jax.lax.scan(step, start, jnp.arange(2, n + m + 1))
        return last[n]

    return f


def mixture() -> Twin:
    import jax.numpy as jnp

    def precision_roots(q: Any, low: Any) -> Any:
        k, d = q.shape
        columns, rows = np.triu_indices(d, 1)
        diagonal = np.arange(d)
        roots = jnp.zeros((k, d, d)).at[:, diagonal, diagonal].set(jnp.exp(q))
        return roots.at[:, rows, columns].set(low)

    return with_numpy(adbench.mixture, jnp, precision_roots=precision_roots)


def reprojection_blocks() -> Twin:
    """The Jacobian of one observation, for all."""
    import jax
    import jax.numpy as jnp

    all_of_them = with_numpy(adbench.reprojection, jnp)

    def one(*args: Any) -> Any:
        return all_of_them(*(x[None] for x in args))[0]

    return jax.vmap(jax.jacrev(one, (0, 1, 2)))


def memory() -> Twin:
    import jax
    import jax.numpy as jnp

    memory_step = with_numpy(adbench.memory_step, jnp)

    def f(weights: Any, biases: Any, ends: Any, state: Any, sequence: Any) -> Any:
        def character(state: Any, pair: Any) -> Any:
            x, new = pair[0] * ends[0], []
            for layer in range(len(weights)):
                new.append(jnp.stack(memory_step(
                    weights[layer], biases[layer], *state[layer], x)))
                x = new[-1][0]
            guess = x * ends[1] + ends[2]
            likelihood = (pair[1] * (guess - jnp.log(jnp.exp(guess).sum() + 2.0))).sum()
            return jnp.stack(new), likelihood

        _, likelihoods = jax.lax.scan(character, state, (sequence[:-1], sequence[1:]))
        return -likelihoods.sum() / ((len(sequence) - 1) * sequence.shape[1])

    return f


def skin() -> Twin:
    import jax.numpy as jnp

    def turn(angle: Any, axis: int) -> Any:
        a, b = (axis + 1) % 3, (axis + 2) % 3
        c, s = jnp.cos(angle), jnp.sin(angle)
        return jnp.eye(3).at[a, a].set(c).at[b, b].set(c).at[a, b].set(-s).at[b, a].set(s)

    def bones(angles: Any, lengths: Any) -> Any:
        turns, places = [], []
        for f in range(adbench.FINGERS):
            turns.append(turn(angles[f, 0], 2) @ turn(angles[f, 1], 0))
            places.append(lengths[f, 0])
            for j in range(1, adbench.JOINTS):
                places.append(places[-1] + turns[-1] @ lengths[f, j])
                turns.append(turns[-1] if j == adbench.JOINTS - 1
                             else turns[-1] @ turn(angles[f, j + 1], 0))
        return jnp.stack(turns), jnp.stack(places)

    return with_numpy(adbench.skin, jnp, bones=bones)


TWINS: dict[str, Callable[[], Twin]] = {f.__name__: f for f in (
    seidel, adi, lu, cholesky, durbin, soft_dtw, mixture, reprojection_blocks, memory, skin)}
