"""Programs that go in an order, translated for JAX statement by statement: loops are ``fori_loop``,
assignments ``.at[...].set``, and slices that grow are masked.

Such is a program that nobody has thought through again for JAX, as the `jax_twins` are.
Its gradient keeps the whole array of each step: sizes have to be small.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Twin = Callable[..., Any]


def seidel() -> Twin:
    from jax.lax import fori_loop

    def f(u: Any, sweeps: int) -> Any:
        n, m = u.shape

        def point(i: Any, j: Any, u: Any) -> Any:
            new = (u[i - 1, j - 1] + u[i - 1, j] + u[i - 1, j + 1]
                   + u[i, j - 1] + u[i, j] + u[i, j + 1]
                   + u[i + 1, j - 1] + u[i + 1, j] + u[i + 1, j + 1]) / 9.0
            return u.at[i, j].set(new)

        def row(i: Any, u: Any) -> Any:
            return fori_loop(1, m - 1, lambda j, u: point(i, j, u), u)

        u = fori_loop(0, sweeps, lambda _, u: fori_loop(1, n - 1, row, u), u)
        return (u * u).sum()

    return f


def cholesky() -> Twin:
    import jax.numpy as jnp
    from jax.lax import fori_loop

    def f(a: Any) -> Any:
        n = len(a)
        numbers = jnp.arange(n)

        def element(i: Any, j: Any, low: Any) -> Any:
            before = jnp.where(numbers < j, low[i], 0.0) @ low[j]
            # A loop in JAX has one length: what is right of the diagonal stays as it is.
            new = (a[i, j] - before) / jnp.where(j < i, low[j, j], 1.0)
            return low.at[i, j].set(jnp.where(j < i, new, low[i, j]))

        def row(i: Any, low: Any) -> Any:
            low = fori_loop(0, n, lambda j, low: element(i, j, low), low)
            own = jnp.where(numbers < i, low[i], 0.0)
            return low.at[i, i].set(jnp.sqrt(a[i, i] - own @ own))

        low = fori_loop(0, n, row, jnp.zeros((n, n)))
        return (1.0 / jnp.diagonal(low) ** 2).sum()

    return f


def soft_dtw() -> Twin:
    import jax.numpy as jnp
    from jax.lax import fori_loop

    def f(x: Any, y: Any) -> Any:
        n, m = len(x), len(y)

        def element(i: Any, j: Any, table: Any) -> Any:
            a, b, c = table[i - 1, j - 1], table[i - 1, j], table[i, j - 1]
            least = jnp.minimum(a, jnp.minimum(b, c))
            soft = least - jnp.log(jnp.exp(least - a) + jnp.exp(least - b) + jnp.exp(least - c))
            return table.at[i, j].set((x[i - 1] - y[j - 1]) ** 2 + soft)

        def row(i: Any, table: Any) -> Any:
            return fori_loop(1, m + 1, lambda j, table: element(i, j, table), table)

        table = jnp.full((n + 1, m + 1), 1e10).at[0, 0].set(0.0)
        return fori_loop(1, n + 1, row, table)[n, m]

    return f


LOOPS: dict[str, Callable[[], Twin]] = {f.__name__: f for f in (seidel, cholesky, soft_dtw)}
