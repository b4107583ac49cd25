"""Cellular automata and lattice models."""

from __future__ import annotations

import numpy as np


def life(board, generations):
    """Conway's Game of Life on a torus, eight rolled copies (M. Gardner, Sci. Am. 223 (1970))."""
    for _ in range(generations):
        neighbours = sum(
            np.roll(np.roll(board, i, 0), j, 1)
            for i in (-1, 0, 1) for j in (-1, 0, 1) if (i != 0 or j != 0)
        )
        board = (neighbours == 3) | (board & (neighbours == 2))
    return board


def elementary(rule, cells, generations):
    """Wolfram's elementary automaton, the whole history."""
    table = np.array([(rule >> k) & 1 for k in range(8)], dtype=np.uint8)
    history = np.zeros((generations, cells), dtype=np.uint8)
    history[0, cells // 2] = 1
    for t in range(1, generations):
        row = history[t - 1]
        left, right = np.roll(row, 1), np.roll(row, -1)
        history[t] = table[4 * left + 2 * row + right]
    return history


def sandpile(grid):
    """Topples the Abelian sandpile until it is stable; writes grid and returns the topplings.

    Source: P. Bak, C. Tang, K. Wiesenfeld, Phys. Rev. Lett. 59 (1987) 381.
    """
    topplings = 0
    while True:
        unstable = grid >= 4
        if not unstable.any():
            break
        topplings += unstable.sum()
        grid[unstable] -= 4
        grid[1:] += unstable[:-1]
        grid[:-1] += unstable[1:]
        grid[:, 1:] += unstable[:, :-1]
        grid[:, :-1] += unstable[:, 1:]
    return topplings


def langtons_ant(size, steps):
    """Langton's ant on a torus (C. G. Langton, Physica D 22 (1986) 120)."""
    grid = np.zeros((size, size), dtype=bool)
    x = y = size // 2
    dx, dy = 0, -1
    for _ in range(steps):
        if grid[y, x]:
            dx, dy = dy, -dx
        else:
            dx, dy = -dy, dx
        grid[y, x] = not grid[y, x]
        x = (x + dx) % size
        y = (y + dy) % size
    return grid, x, y


def lattice_boltzmann(f, obstacle, tau, steps):
    """D2Q9 lattice Boltzmann flow past an obstacle with bounce-back.

    Source: Y. H. Qian, D. d'Humieres, P. Lallemand, Europhys. Lett. 17 (1992) 479.
    """
    cx = np.array([0, 1, 0, -1, 0, 1, -1, -1, 1])
    cy = np.array([0, 0, 1, 0, -1, 1, 1, -1, -1])
    weight = np.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4)
    opposite = [0, 3, 4, 1, 2, 7, 8, 5, 6]
    for _ in range(steps):
        for i in range(9):
            f[i] = np.roll(np.roll(f[i], cx[i], axis=1), cy[i], axis=0)
        bounced = f[:, obstacle][opposite]
        rho = f.sum(axis=0)
        ux = np.tensordot(cx, f, axes=1) / rho
        uy = np.tensordot(cy, f, axes=1) / rho
        square = 1.5 * (ux**2 + uy**2)
        for i in range(9):
            cu = 3 * (cx[i] * ux + cy[i] * uy)
            equilibrium = rho * weight[i] * (1 + cu + 0.5 * cu**2 - square)
            f[i] += -(f[i] - equilibrium) / tau
        f[:, obstacle] = bounced
        ux[obstacle] = 0
        uy[obstacle] = 0
    return rho, ux, uy


def ising_checkerboard(spins, beta, uniforms):
    """Metropolis sweeps of the Ising model, the two colours in turn; writes spins.

    Source: N. Metropolis et al., J. Chem. Phys. 21 (1953) 1087; checkerboard order as in
    T. Preis et al., J. Comput. Phys. 228 (2009) 4468.
    """
    n, m = spins.shape
    colour = np.add.outer(np.arange(n), np.arange(m)) % 2
    sweeps = len(uniforms)
    energy = np.zeros(sweeps)
    magnetisation = np.zeros(sweeps)
    for t in range(sweeps):
        for parity in (0, 1):
            neighbours = (
                np.roll(spins, 1, axis=0)
                + np.roll(spins, -1, axis=0)
                + np.roll(spins, 1, axis=1)
                + np.roll(spins, -1, axis=1)
            )
            cost = 2 * spins * neighbours
            flip = (uniforms[t] < np.exp(-beta * cost)) & (colour == parity)
            spins[flip] *= -1
        bonds = spins * (np.roll(spins, 1, axis=0) + np.roll(spins, 1, axis=1))
        energy[t] = -bonds.sum() / spins.size
        magnetisation[t] = abs(spins.mean())
    return energy, magnetisation


def ising_single(spins, beta, sites, uniforms):
    """Metropolis, one site after another, with a table of acceptance; writes spins."""
    n = spins.shape[0]
    accept = np.exp(-beta * 2 * np.arange(-4, 5))
    accepted = 0
    for k in range(len(uniforms)):
        i, j = sites[k]
        s = spins[i, j]
        around = (
            spins[(i + 1) % n, j] + spins[i - 1, j] + spins[i, (j + 1) % n] + spins[i, j - 1]
        )
        if uniforms[k] < accept[s * around + 4]:
            spins[i, j] = -s
            accepted += 1
    return accepted


def percolation(open_sites):
    """Does fluid from the top row reach the bottom; the wet sites, row scans until no change."""
    wet = np.zeros_like(open_sites)
    wet[0] = open_sites[0]
    changed = True
    rounds = 0
    while changed:
        before = wet.sum()
        wet[1:] |= wet[:-1] & open_sites[1:]
        wet[:-1] |= wet[1:] & open_sites[:-1]
        wet[:, 1:] |= wet[:, :-1] & open_sites[:, 1:]
        wet[:, :-1] |= wet[:, 1:] & open_sites[:, :-1]
        rounds += 1
        changed = wet.sum() > before
    return wet, bool(wet[-1].any()), rounds


def spins(n):
    return np.random.default_rng(4).choice([-1, 1], (n, n))


def uniforms(*shape):
    return np.random.default_rng(8).random(shape)


def fluid(n):
    return 1 + 0.1 * uniforms(9, n, 2 * n)


PROGRAMS = (
    (life, lambda n: (uniforms(n, n) > 0.6, 8), 12, 400, ""),
    (elementary, lambda n: (30, n, n // 2), 31, 1500, ""),
    (sandpile, lambda n: (spins(n) * 2 + 4,), 10, 150, "views data-loop"),
    (langtons_ant, lambda n: (n, 5 * n), 11, 3000, ""),
    (lattice_boltzmann, lambda n: (fluid(n), uniforms(n, 2 * n) > 0.9, 0.8, 3), 8, 150,
     "views"),
    (ising_checkerboard, lambda n: (spins(n), 0.44, uniforms(4, n, n)), 10, 300, "published"),
    (ising_single, lambda n: (spins(n), 0.44, np.random.default_rng(9).integers(0, n, (n * n, 2)),
                              uniforms(n * n)), 8, 200, ""),
    (percolation, lambda n: (uniforms(n, n) > 0.38,), 14, 300, "views data-loop"),
)
