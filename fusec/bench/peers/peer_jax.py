"""The programs whose slice assignments JAX wants written as ``x.at[...].set(...)``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..programs import hdiff as program
from ..programs.unsharp import AMOUNT
from .other_numpy import with_numpy


def hdiff() -> Callable[..., Any]:
    import jax.numpy as jnp

    laplacian = with_numpy(program.laplacian, jnp)
    limited = with_numpy(program.limited, jnp)

    def horizontal_diffusion(field: Any, coefficient: Any) -> Any:
        lap = laplacian(field)
        inner = field[:, 2:-2, 1:-1]
        flux_i = limited(lap[:, 1:-1, 1:] - lap[:, 1:-1, :-1], inner[:, :, 1:] - inner[:, :, :-1])
        inner = field[:, 1:-1, 2:-2]
        flux_j = limited(lap[:, 1:, 1:-1] - lap[:, :-1, 1:-1], inner[:, 1:] - inner[:, :-1])
        return field.at[:, 2:-2, 2:-2].add(-coefficient[:, 2:-2, 2:-2] * (
            flux_i[:, :, 1:] - flux_i[:, :, :-1] + flux_j[:, 1:] - flux_j[:, :-1]))

    return horizontal_diffusion


def unsharp() -> Callable[..., Any]:
    import jax.numpy as jnp

    def taps(x: Any) -> Any:
        return 0.375 * x[2:-2] + 0.25 * (x[1:-3] + x[3:-1]) + 0.0625 * (x[:-4] + x[4:])

    def sharpen(image: Any) -> Any:
        rows = image.at[2:-2].set(taps(image))
        blurred = rows.at[:, 2:-2].set(taps(rows.T).T)
        return jnp.clip(image + AMOUNT * (image - blurred), 0.0, 1.0)

    return sharpen


FUNCTIONS: dict[str, Callable[[], Callable[..., Any]]] = {"hdiff": hdiff, "unsharp": unsharp}
