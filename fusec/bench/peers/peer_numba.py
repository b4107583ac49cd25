"""The main programs as explicit parallel loops for Numba.

Scalar helpers are the programs' own, compiled as they are; the loops are written as Numba's guide
advises: one pass, no temporaries, ``prange`` outermost, no fast-math.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..programs.black_scholes import DENOMINATOR, NUMERATOR, ROOT_TWO_PI, SPLIT
from ..programs.black_scholes import black_scholes as price
from ..programs.eos import density
from ..programs.layernorm_gelu import ROOT
from ..programs.mandelbrot import ITERATIONS
from ..programs.nbody import SOFTENING
from .other_numpy import with_numpy


def scalar(f: Callable[..., Any], **replaced: Any) -> Any:
    """A program's elementwise function compiled for scalars."""
    import numba

    return with_numpy(f, np, wrap=numba.njit, **replaced)


def unrolled(coefficients: tuple[float, ...]) -> Any:
    """A polynomial as one expression: Numba does not unroll a loop over a tuple's slice."""
    import numba

    text = repr(coefficients[0])
    for c in coefficients[1:]:
        text = f"({text} * x + {c!r})"
    scope: dict[str, Any] = {}
    exec(f"def polynomial(x):\n    return {text}\n", scope)
    return numba.njit(scope["polynomial"])


def _normal_cdf() -> Any:
    """The program's normal distribution with unrolled polynomials and a branch for the far tail."""
    import math

    import numba

    above, below = unrolled(NUMERATOR), unrolled(DENOMINATOR)
    split, root = SPLIT, ROOT_TWO_PI

    @numba.njit
    def normal_cdf(x: Any) -> Any:
        z = abs(x)
        e = math.exp(-0.5 * z * z)
        if z < split:
            tail = e * above(z) / below(z)
        else:
            tail = e / (root * (z + 1.0 / (z + 2.0 / (z + 3.0 / (z + 4.0 / (z + 0.65))))))
        return 1.0 - tail if x > 0 else tail

    return normal_cdf


def eos() -> Callable[..., Any]:
    from numba import njit, prange

    rho = scalar(density)

    @njit(parallel=True)
    def run(S: Any, T: Any, p: Any) -> Any:
        out = np.empty_like(S)
        for i in prange(S.size):
            out[i] = rho(S[i], T[i], p[i])
        return out

    return run


def black_scholes() -> Callable[..., Any]:
    from numba import njit, prange

    one = scalar(price, normal_cdf=_normal_cdf())

    @njit(parallel=True)
    def run(S: Any, K: Any, T: Any, r: Any, sigma: Any) -> Any:
        a, b, c, d, e = (np.empty_like(S), np.empty_like(S), np.empty_like(S), np.empty_like(S),
                         np.empty_like(S))
        f, g, h, k, m = (np.empty_like(S), np.empty_like(S), np.empty_like(S), np.empty_like(S),
                         np.empty_like(S))
        for i in prange(S.size):
            (a[i], b[i], c[i], d[i], e[i], f[i], g[i], h[i], k[i], m[i]) = one(
                S[i], K[i], T[i], r[i], sigma[i])
        return a, b, c, d, e, f, g, h, k, m

    return run


def mandelbrot() -> Callable[..., Any]:
    from numba import njit, prange

    @njit(parallel=True)
    def run(cr: Any, ci: Any) -> Any:
        out = np.empty(cr.shape, np.int32)
        for j in prange(cr.shape[0]):
            for i in range(cr.shape[1]):
                x, y = cr[j, i], ci[j, i]
                a, b = x * 0, y * 0
                n = 0
                while n < ITERATIONS and a * a + b * b <= 4:
                    a, b = a * a - b * b + x, a * b + a * b + y
                    n += 1
                out[j, i] = n
        return out

    return run


def softmax() -> Callable[..., Any]:
    from numba import njit, prange

    @njit(parallel=True)
    def run(x: Any) -> Any:
        out = np.empty_like(x)
        for j in prange(x.shape[0]):
            top = x[j, 0]
            for i in range(x.shape[1]):
                top = max(top, x[j, i])
            total = top * 0
            for i in range(x.shape[1]):
                out[j, i] = np.exp(x[j, i] - top)
                total += out[j, i]
            for i in range(x.shape[1]):
                out[j, i] /= total
        return out

    return run


def layernorm_gelu() -> Callable[..., Any]:
    from numba import njit, prange

    @njit(parallel=True)
    def run(x: Any, gain: Any, bias: Any) -> Any:
        out = np.empty_like(x)
        n = x.shape[1]
        for j in prange(x.shape[0]):
            mean = 0.0
            for i in range(n):
                mean += x[j, i]
            mean /= n
            variance = 0.0
            for i in range(n):
                variance += (x[j, i] - mean) ** 2
            scale = 1.0 / np.sqrt(variance / n + 1e-5)
            for i in range(n):
                y = (x[j, i] - mean) * scale * gain[i] + bias[i]
                out[j, i] = 0.5 * y * (1.0 + np.tanh(ROOT * (y + 0.044715 * y * y * y)))
        return out

    return run


def nbody() -> Callable[..., Any]:
    from numba import njit, prange

    @njit(parallel=True)
    def run(x: Any, y: Any, z: Any, m: Any) -> Any:
        ax, ay, az = np.empty_like(x), np.empty_like(x), np.empty_like(x)
        soft = x.dtype.type(SOFTENING**2)
        for i in prange(x.size):
            sx = sy = sz = x[i] * 0
            for j in range(x.size):
                dx, dy, dz = x[j] - x[i], y[j] - y[i], z[j] - z[i]
                r2 = dx * dx + dy * dy + dz * dz + soft
                pull = m[j] / (r2 * np.sqrt(r2))
                sx += pull * dx
                sy += pull * dy
                sz += pull * dz
            ax[i], ay[i], az[i] = sx, sy, sz
        return ax, ay, az

    return run


def hdiff() -> Callable[..., Any]:
    from numba import njit, prange

    @njit
    def lap(f: Any, k: Any, j: Any, i: Any) -> Any:
        return f[k, j, i + 1] + f[k, j, i - 1] + f[k, j + 1, i] + f[k, j - 1, i] - 4 * f[k, j, i]

    @njit
    def flux(f: Any, k: Any, j: Any, i: Any, dj: Any, di: Any) -> Any:
        value = lap(f, k, j + dj, i + di) - lap(f, k, j, i)
        return value * 0 if value * (f[k, j + dj, i + di] - f[k, j, i]) > 0 else value

    @njit(parallel=True)
    def run(f: Any, c: Any) -> Any:
        out = f.copy()
        levels, rows, columns = f.shape
        for line in prange(levels * (rows - 4)):
            k, j = line // (rows - 4), 2 + line % (rows - 4)
            for i in range(2, columns - 2):
                out[k, j, i] = f[k, j, i] - c[k, j, i] * (
                    flux(f, k, j, i, 0, 1) - flux(f, k, j, i - 1, 0, 1)
                    + flux(f, k, j, i, 1, 0) - flux(f, k, j - 1, i, 1, 0))
        return out

    return run


FUNCTIONS: dict[str, Callable[[], Callable[..., Any]]] = {
    "eos": eos, "black_scholes": black_scholes, "mandelbrot": mandelbrot, "softmax": softmax,
    "layernorm_gelu": layernorm_gelu, "nbody": nbody, "hdiff": hdiff,
}
