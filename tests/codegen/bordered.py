"""Programs that set borders and insides of arrays in turn, as stencils do."""

from __future__ import annotations

from typing import Any

import numpy as np


def staggered(h: Any, u: Any, dx: Any, steps: Any) -> Any:
    """The inside, then both borders; slices that end where a border was set."""
    for _ in range(steps):
        u[1:-1] -= 0.1 / dx * (h[1:] - h[:-1])
        u[0] = u[-1] = 0
        h -= 0.2 / dx * (u[1:] - u[:-1])
    return (h * h).sum(), u


def overwritten(h: Any, u: Any, dx: Any, steps: Any) -> Any:
    """A value of the whole is overwritten in three parts."""
    for _ in range(steps):
        u = u * dx + 1
        u[1:-1] = h[1:] - h[:-1]
        u[0] = h[0]
        u[-1] = -h[-1]
        h = h + 0.1 * u[1:]
    return h, u


def framed(h: Any, u: Any, dx: Any, steps: Any) -> Any:
    """A part between zeros, the sum of its squares, and differences of it."""
    total = 0.0
    for _ in range(steps):
        inside = np.sqrt(np.abs(h[1:] * 0.3 - h[:-1] * dx)) + h[1:] * u[1:-1]
        u = np.zeros_like(u)
        u[1:-1] = inside
        total += (inside ** 2).sum()
        h[1:] = 0.5 * inside + 0.1 * u[:-2]
        h[0] = inside[0] - inside[-1]
    return total, h, u


def read_before(h: Any, u: Any, dx: Any, steps: Any) -> Any:
    """A border is read before it is set, the inside afterwards."""
    for _ in range(steps):
        u[1:-1] *= dx
        first = u[:1] * 2
        u[0] = 0
        h[1:] = u[1:-1] + 0.5 * h[:-1]
        h[:1] += first
    return h, u


def plate(h: Any, u: Any, dx: Any, steps: Any) -> Any:
    """Two dimensions, each border from inside."""
    t = h[:, None] * u[None, :] * dx
    for _ in range(steps):
        t[1:-1, 1:-1] += 0.1 / dx * (
            t[2:, 1:-1] + t[:-2, 1:-1] + t[1:-1, 2:] + t[1:-1, :-2] - 4 * t[1:-1, 1:-1])
        t[0] = 1.0
        t[-1] = t[-2]
        t[:, 0] = t[:, 1]
        t[:, -1] = 0.0
    return t, (t[1:] - t[:-1]).sum()


def put_back(h: Any, u: Any, dx: Any, steps: Any) -> Any:
    """A part that is put back where it was, changed and not changed."""
    for _ in range(steps):
        first, last = u[:2].copy(), u[-2:].copy()
        u[1:-1] = h[1:] * dx
        u[:2] = first
        h[:2] = 0.3 * u[1:3]
        u[-2:] = last
    return h, u


def kept_additions(h: Any, u: Any, dx: Any, steps: Any) -> Any:
    """The addend of the inside is kept."""
    t = h[:, None] * u[None, :] * dx
    kept = np.zeros((40, h.size - 2, u.size - 2))
    for k in range(steps):
        added = t[2:, 1:-1] - 2 * t[1:-1, 1:-1] + t[:-2, 1:-1]
        kept[k] = added
        t[1:-1, 1:-1] += 0.1 * added
        t[:, 0] = t[:, -2]
    return t, kept


def reaction(h: Any, u: Any, dx: Any, steps: Any) -> Any:
    """Two fields with numbers that both depend on: their derivatives are sums over the inside."""
    a = h[:, None] * u[None, :] * dx
    b = h[:, None] + 0.3 * u[None, :]
    x, y = a[1:-1, 1:-1], b[1:-1, 1:-1]
    for _ in range(steps):
        around = a[:-2, 1:-1] + a[1:-1, :-2] - 4 * a[1:-1, 1:-1] + a[1:-1, 2:] + a[2:, 1:-1]
        both = x * y * y
        x += 0.1 * dx * around - 0.01 * both + dx * (1 - x)
        y += 0.01 * both * dx - 0.05 * y
        for z in (a, b):
            z[0, :] = z[-2, :]
            z[:, -1] = z[:, 1]
    return a, b


def weighted(h: Any, u: Any, dx: Any, steps: Any) -> Any:
    """Differences along three axes, of two widths."""
    t = h[:, None, None] * u[None, :, None] * np.sin(np.arange(12.0))
    for _ in range(steps):
        t[1:-1, 2:-2, 1:-1] += 0.05 * dx * (
            t[1:-1, 4:, 1:-1] + t[1:-1, :-4, 1:-1] - t[2:, 2:-2, 1:-1] - t[1:-1, 2:-2, :-2])
    return t


def in_turn(h: Any, u: Any, dx: Any, steps: Any) -> Any:
    """Kernels over the same points, some of which need results of others."""
    a, b = h[:, None] * u[None, :], h[:, None] + 0.1 * u[None, :]
    v, total = a[1:, :-3], 0.0
    for _ in range(steps):
        total = total + 0.1 * (a[:, 1:-1] * a[:, 1:-1]).sum()
        b[:-1, :-1] += 0.2 * (a[1:, :-1] * b[:-1, :-1])
        b[:, -1] = b[:, -2]
        b[1:-1, 1:-2] -= 0.2 * b[2:, 2:-1] * dx
        t = 0.3 * a[:-1, 1:-3] * b[1:, :-4] * dx
        v *= 0.9
        a = a * 0.5
        a[1:, 2:-2] = t * dx
        total = total + t.sum() * dx
    return total, a, b


PROGRAMS = (in_turn, staggered, overwritten, framed, read_before, plate, put_back, kept_additions,
            reaction, weighted)


def arguments(size: int = 14) -> tuple[Any, Any]:
    rng = np.random.default_rng(size)
    return 0.5 + rng.random(size), 0.5 + rng.random(size + 1)
