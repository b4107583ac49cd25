"""Partial differential equations on grids, boundary rows and all."""

from __future__ import annotations

import numpy as np


def heat_plate(u, kappa, dx, dt, steps):
    """FTCS for the heat equation on a plate, one insulated edge, one periodic pair.

    Source: Press et al., Numerical Recipes, 3rd ed., section 20.2 (forward time centred space).
    """
    r = kappa * dt / dx**2
    for _ in range(steps):
        new = u.copy()
        new[1:-1, 1:-1] += r * (
            u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4.0 * u[1:-1, 1:-1]
        )
        # fixed temperature on the top row, insulated bottom row
        new[0, :] = u[0, :]
        new[-1, :] = new[-2, :]
        # periodic left and right
        new[:, 0] = new[:, -2]
        new[:, -1] = new[:, 1]
        u = new
    return u


def burgers_maccormack(u, dx, cfl, t_end):
    """MacCormack's predictor and corrector for the inviscid Burgers equation.

    Source: R. W. MacCormack, The effect of viscosity in hypervelocity impact cratering,
    AIAA paper 69-354 (1969); time step from the CFL condition.
    """
    u = u.copy()
    t = 0.0
    steps = 0
    while t < t_end:
        speed = np.max(np.abs(u))
        dt = cfl * dx / max(speed, 1e-12)
        if t + dt > t_end:
            dt = t_end - t
        flux = 0.5 * u * u
        predicted = u.copy()
        predicted[:-1] = u[:-1] - dt / dx * (flux[1:] - flux[:-1])
        flux_p = 0.5 * predicted * predicted
        corrected = u.copy()
        corrected[1:-1] = 0.5 * (
            u[1:-1] + predicted[1:-1] - dt / dx * (flux_p[1:-1] - flux_p[:-2])
        )
        corrected[0] = u[0]
        corrected[-1] = corrected[-2]
        u = corrected
        t += dt
        steps += 1
        if steps >= 1000:
            break
    return u, t, steps


def thomas(a, b, c, d):
    """Tridiagonal solve, a below, b on and c above the diagonal (L. H. Thomas, 1949)."""
    n = len(d)
    cp = np.zeros(n)
    dp = np.zeros(n)
    cp[0] = c[0] / b[0]
    dp[0] = d[0] / b[0]
    for i in range(1, n):
        m = b[i] - a[i] * cp[i - 1]
        cp[i] = c[i] / m
        dp[i] = (d[i] - a[i] * dp[i - 1]) / m
    x = np.zeros(n)
    x[-1] = dp[-1]
    for i in range(n - 2, -1, -1):
        x[i] = dp[i] - cp[i] * x[i + 1]
    return x


def crank_nicolson(u, r, steps):
    """Crank and Nicolson's implicit heat equation on a rod, fixed ends, by Thomas sweeps.

    Source: J. Crank, P. Nicolson, Proc. Camb. Phil. Soc. 43 (1947) 50.
    """
    n = u.size
    lower = np.full(n, -r / 2)
    upper = np.full(n, -r / 2)
    main = np.full(n, 1 + r)
    main[0] = main[-1] = 1.0
    upper[0] = 0.0
    lower[-1] = 0.0
    for _ in range(steps):
        rhs = u.copy()
        rhs[1:-1] = r / 2 * (u[:-2] + u[2:]) + (1 - r) * u[1:-1]
        u = thomas(lower, main, upper, rhs)
    return u


def adi_step(u, r):
    """One Peaceman-Rachford alternating-direction step of the heat equation.

    Source: D. W. Peaceman, H. H. Rachford, J. SIAM 3 (1955) 28.
    """
    rows, columns = u.shape
    half = u.copy()
    a = np.full(columns, -r / 2)
    b = np.full(columns, 1 + r)
    c = np.full(columns, -r / 2)
    b[0] = b[-1] = 1.0
    c[0] = a[-1] = 0.0
    for i in range(1, rows - 1):
        d = u[i] + r / 2 * (u[i - 1] - 2 * u[i] + u[i + 1])
        d[0] = u[i, 0]
        d[-1] = u[i, -1]
        half[i] = thomas(a, b, c, d)
    new = half.copy()
    a = np.full(rows, -r / 2)
    b = np.full(rows, 1 + r)
    c = np.full(rows, -r / 2)
    b[0] = b[-1] = 1.0
    c[0] = a[-1] = 0.0
    for j in range(1, columns - 1):
        d = half[:, j] + r / 2 * (half[:, j - 1] - 2 * half[:, j] + half[:, j + 1])
        d[0] = half[0, j]
        d[-1] = half[-1, j]
        new[:, j] = thomas(a, b, c, d)
    return new


def poisson_sor(u, f, h, tolerance):
    """Gauss-Seidel sweeps with over-relaxation until the update is small; writes u.

    Source: D. M. Young, Iterative methods for solving partial difference equations of
    elliptic type, Trans. AMS 76 (1954) 92.
    """
    n, m = u.shape
    radius = 0.5 * (np.cos(np.pi / n) + np.cos(np.pi / m))
    omega = 2.0 / (1.0 + np.sqrt(1.0 - radius**2))
    u[0, :] = 0.0
    u[-1, :] = 0.0
    sweeps = 0
    change = tolerance + 1.0
    while change > tolerance and sweeps < 500:
        change = 0.0
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                residual = (
                    u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j]
                    - h * h * f[i, j]
                )
                step = omega * residual / 4.0
                u[i, j] += step
                if abs(step) > change:
                    change = abs(step)
        sweeps += 1
    return sweeps, change


def smooth(u, f, h, sweeps):
    """Red-black Gauss-Seidel on a line; writes u."""
    for _ in range(sweeps):
        u[1:-1:2] = 0.5 * (u[0:-2:2] + u[2::2] - h * h * f[1:-1:2])
        u[2:-2:2] = 0.5 * (u[1:-3:2] + u[3:-1:2] - h * h * f[2:-2:2])


def v_cycle(u, f, h):
    """One multigrid V-cycle for u'' = f, full weighting and linear interpolation.

    Source: W. L. Briggs, V. E. Henson, S. F. McCormick, A Multigrid Tutorial, 2nd ed., ch. 3.
    """
    smooth(u, f, h, 3)
    if u.size <= 5:
        smooth(u, f, h, 20)
        return u
    residual = np.zeros_like(u)
    residual[1:-1] = f[1:-1] - (u[:-2] - 2 * u[1:-1] + u[2:]) / (h * h)
    coarse = residual[::2].copy()
    coarse[1:-1] = 0.25 * (residual[1:-2:2] + 2 * residual[2:-1:2] + residual[3::2])
    correction = v_cycle(np.zeros_like(coarse), coarse, 2 * h)
    u[::2] += correction
    u[1::2] += 0.5 * (correction[:-1] + correction[1:])
    smooth(u, f, h, 3)
    return u


def multigrid_poisson(f, tolerance):
    """V-cycles for u'' = f with zero ends until the residual is small.

    Source: Briggs, Henson and McCormick, as in `v_cycle`.
    """
    h = 1.0 / (f.size - 1)
    u = np.zeros_like(f)
    cycles = 0
    norm = tolerance + 1.0
    while norm > tolerance:
        v_cycle(u, f, h)
        cycles += 1
        norm = np.abs(f[1:-1] - (u[:-2] - 2 * u[1:-1] + u[2:]) / (h * h)).max()
        if cycles == 40:
            break
    return u, cycles, norm


def gray_scott(U, V, Du, Dv, F, k, steps):
    """Reaction and diffusion of two species on a torus, updated in place.

    Source: J. E. Pearson, Complex patterns in a simple system, Science 261 (1993) 189.
    """
    u, v = U[1:-1, 1:-1], V[1:-1, 1:-1]
    for _ in range(steps):
        lu = U[:-2, 1:-1] + U[1:-1, :-2] - 4 * U[1:-1, 1:-1] + U[1:-1, 2:] + U[2:, 1:-1]
        lv = V[:-2, 1:-1] + V[1:-1, :-2] - 4 * V[1:-1, 1:-1] + V[1:-1, 2:] + V[2:, 1:-1]
        uvv = u * v * v
        u += Du * lu - uvv + F * (1 - u)
        v += Dv * lv + uvv - (F + k) * v
        for Z in (U, V):
            Z[0, :] = Z[-2, :]
            Z[-1, :] = Z[1, :]
            Z[:, 0] = Z[:, -2]
            Z[:, -1] = Z[:, 1]


def cavity_flow(u, v, p, dx, dy, dt, rho, nu, steps):
    """Lid-driven cavity with a pressure Poisson equation; writes u, v and p.

    Source: L. A. Barba, G. F. Forsyth, CFD Python: the 12 steps to Navier-Stokes equations,
    J. Open Source Education 2 (2018) 21, step 11.
    """
    for _ in range(steps):
        un, vn = u.copy(), v.copy()
        b = np.zeros_like(p)
        ux = (u[1:-1, 2:] - u[1:-1, :-2]) / (2 * dx)
        vy = (v[2:, 1:-1] - v[:-2, 1:-1]) / (2 * dy)
        uy = (u[2:, 1:-1] - u[:-2, 1:-1]) / (2 * dy)
        vx = (v[1:-1, 2:] - v[1:-1, :-2]) / (2 * dx)
        b[1:-1, 1:-1] = rho * ((ux + vy) / dt - ux**2 - 2 * uy * vx - vy**2)
        for _ in range(10):
            pn = p.copy()
            p[1:-1, 1:-1] = (
                (pn[1:-1, 2:] + pn[1:-1, :-2]) * dy**2
                + (pn[2:, 1:-1] + pn[:-2, 1:-1]) * dx**2
                - b[1:-1, 1:-1] * dx**2 * dy**2
            ) / (2 * (dx**2 + dy**2))
            p[:, -1] = p[:, -2]
            p[0, :] = p[1, :]
            p[:, 0] = p[:, 1]
            p[-1, :] = 0
        for w, wn, px in (
            (u, un, (p[1:-1, 2:] - p[1:-1, :-2]) / dx),
            (v, vn, (p[2:, 1:-1] - p[:-2, 1:-1]) / dy),
        ):
            w[1:-1, 1:-1] = (
                wn[1:-1, 1:-1]
                - un[1:-1, 1:-1] * dt / dx * (wn[1:-1, 1:-1] - wn[1:-1, :-2])
                - vn[1:-1, 1:-1] * dt / dy * (wn[1:-1, 1:-1] - wn[:-2, 1:-1])
                - dt / (2 * rho) * px
                + nu * dt / dx**2 * (wn[1:-1, 2:] - 2 * wn[1:-1, 1:-1] + wn[1:-1, :-2])
                + nu * dt / dy**2 * (wn[2:, 1:-1] - 2 * wn[1:-1, 1:-1] + wn[:-2, 1:-1])
            )
        u[0, :] = u[:, 0] = u[:, -1] = v[0, :] = v[-1, :] = v[:, 0] = v[:, -1] = 0
        u[-1, :] = 1


def shallow_water(h, u, v, g, dx, dt, steps):
    """Linear shallow water on a staggered C grid, closed walls.

    Source: A. Arakawa, V. R. Lamb, Methods in Computational Physics 17 (1977) 173.
    """
    depth = 10.0
    for _ in range(steps):
        u[1:-1, :] -= g * dt / dx * (h[1:, :] - h[:-1, :])
        v[:, 1:-1] -= g * dt / dx * (h[:, 1:] - h[:, :-1])
        u[0] = u[-1] = 0
        v[:, 0] = v[:, -1] = 0
        h -= depth * dt / dx * (u[1:] - u[:-1] + v[:, 1:] - v[:, :-1])
    return 0.5 * (g * np.sum(h**2) + depth * (np.sum(u**2) + np.sum(v**2))) * dx * dx


def field(*shape):
    return np.random.default_rng(sum(shape)).random(shape)


PROGRAMS = (
    (heat_plate, lambda n: (field(n, n + 3), 1.0, 0.1, 0.002, 20), 12, 300, ""),
    (burgers_maccormack, lambda n: (1 + field(n), 2.0 / n, 0.5, 0.3), 41, 2000,
     "published data-loop"),
    (crank_nicolson, lambda n: (field(n), 0.4, 5), 20, 5000, "published"),
    (adi_step, lambda n: (field(n, n + 2), 0.3), 10, 200, "published"),
    (poisson_sor, lambda n: (field(n, n + 1), field(n + 1, n + 1)[1:], 1.0 / n, 1e-3),
     8, 60, "published data-loop"),
    (multigrid_poisson, lambda n: (field(n), 1e-6), 33, 4097, "published views data-loop"),
    (gray_scott, lambda n: (field(n, n), field(n, n).T.copy(), 0.16, 0.08, 0.035, 0.065, 10),
     16, 400, "views"),
    (cavity_flow, lambda n: (field(n, n), np.zeros((n, n)), np.zeros((n, n)), 2 / (n - 1),
                             2 / (n - 1), 0.001, 1.0, 0.1, 3), 11, 200, "published views"),
    (shallow_water, lambda n: (field(n, n), np.zeros((n + 1, n)), np.zeros((n, n + 1)), 9.81,
                               100.0, 0.5, 10), 12, 300, ""),
)
