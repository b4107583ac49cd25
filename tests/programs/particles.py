"""Particle methods and things that keep their state in objects."""

from __future__ import annotations

import numpy as np


def lennard_jones(x, v, box, cutoff, dt, steps):
    """Molecular dynamics by velocity Verlet, minimum image, every pair; writes x and v.

    Source: L. Verlet, Phys. Rev. 159 (1967) 98; D. Frenkel, B. Smit, Understanding Molecular
    Simulation, 2nd ed., algorithms 4 to 6.
    """
    n = x.shape[0]
    shift = 4 * (cutoff**-12 - cutoff**-6)

    def forces(x):
        f = np.zeros_like(x)
        potential = 0.0
        for i in range(n - 1):
            d = x[i] - x[i + 1 :]
            d -= box * np.round(d / box)
            r2 = np.sum(d * d, axis=1)
            near = r2 < cutoff**2
            r2 = np.where(near, r2, 1.0)
            r6 = 1 / r2**3
            strength = np.where(near, 48 * r6 * (r6 - 0.5) / r2, 0.0)
            pair = strength[:, None] * d
            f[i] += pair.sum(axis=0)
            f[i + 1 :] -= pair
            potential += np.sum(np.where(near, 4 * r6 * (r6 - 1) - shift, 0.0))
        return f, potential

    f, potential = forces(x)
    history = []
    for _ in range(steps):
        v += 0.5 * dt * f
        x += dt * v
        x %= box
        f, potential = forces(x)
        v += 0.5 * dt * f
        history.append(potential + 0.5 * np.sum(v * v))
    return np.array(history)


def particle_in_cell(x, v, cells, length, dt, steps):
    """One-dimensional electrostatic plasma, cloud in cell, Poisson by FFT; writes x and v.

    Source: C. K. Birdsall, A. B. Langdon, Plasma Physics via Computer Simulation (1985), part 1.
    """
    n = len(x)
    dx = length / cells
    k = 2 * np.pi * np.fft.rfftfreq(cells, dx)
    energy = np.zeros(steps)
    for t in range(steps):
        place = x / dx
        left = np.floor(place).astype(np.int64)
        weight = place - left
        left %= cells
        right = (left + 1) % cells
        rho = np.zeros(cells)
        np.add.at(rho, left, 1 - weight)
        np.add.at(rho, right, weight)
        rho = 1 - rho * cells / n
        spectrum = np.fft.rfft(rho)
        field = np.zeros_like(spectrum)
        field[1:] = -1j * spectrum[1:] / k[1:]
        E = np.fft.irfft(field, cells)
        v -= dt * (E[left] * (1 - weight) + E[right] * weight)
        x += dt * v
        x %= length
        energy[t] = 0.5 * np.sum(E**2) * dx
    return energy


def sph_density(x, mass, h, alpha):
    """Density and acceleration of smoothed particles with the cubic spline kernel.

    Source: J. J. Monaghan, Annu. Rev. Astron. Astrophys. 30 (1992) 543.
    """
    n, dimensions = x.shape
    sigma = 10 / (7 * np.pi * h**2)
    d = x[:, None, :] - x[None, :, :]
    r = np.sqrt(np.sum(d**2, axis=-1))
    q = r / h
    w = np.zeros_like(q)
    inner = q <= 1
    outer = (q > 1) & (q <= 2)
    w[inner] = 1 - 1.5 * q[inner] ** 2 + 0.75 * q[inner] ** 3
    w[outer] = 0.25 * (2 - q[outer]) ** 3
    w *= sigma
    rho = mass * w.sum(axis=1)
    slope = np.zeros_like(q)
    slope[inner] = -3 * q[inner] + 2.25 * q[inner] ** 2
    slope[outer] = -0.75 * (2 - q[outer]) ** 2
    slope *= sigma / h
    np.fill_diagonal(r, 1.0)
    gradient = (slope / r)[..., None] * d
    pressure = rho**1.4
    term = pressure / rho**2
    acceleration = -mass * np.sum((term[:, None] + term[None, :])[..., None] * gradient, axis=1)
    acceleration -= alpha * x
    return rho, acceleration


def boids(position, velocity, radius, steps):
    """Flocking: cohesion, alignment, separation; writes both (C. W. Reynolds, SIGGRAPH 1987)."""
    n = len(position)
    for _ in range(steps):
        force = np.zeros_like(position)
        for i in range(n):
            offset = position - position[i]
            distance = np.sqrt((offset**2).sum(axis=1))
            near = (distance < radius) & (distance > 0)
            if near.any():
                force[i] += 0.05 * offset[near].mean(axis=0)
                force[i] += 0.1 * (velocity[near].mean(axis=0) - velocity[i])
            close = near & (distance < radius / 3)
            force[i] -= 0.2 * offset[close].sum(axis=0)
        velocity += force
        speed = np.hypot(velocity[:, 0], velocity[:, 1])
        fast = speed > 1.0
        velocity[fast] /= speed[fast][:, np.newaxis]
        position += velocity


class Kalman:
    """A linear filter with its state (R. E. Kalman, J. Basic Eng. 82 (1960) 35)."""

    def __init__(self, F, H, Q, R):
        self.F, self.H, self.Q, self.R = F, H, Q, R
        self.x = np.zeros(F.shape[0])
        self.P = np.eye(F.shape[0])
        self.log_likelihood = 0.0

    def predict(self):
        self.x = self.F @ self.x
        self.P = self.F @ self.P @ self.F.T + self.Q

    def update(self, z):
        innovation = z - self.H @ self.x
        S = self.H @ self.P @ self.H.T + self.R
        K = np.linalg.solve(S, self.H @ self.P).T
        self.x = self.x + K @ innovation
        self.P = (np.eye(len(self.x)) - K @ self.H) @ self.P
        self.log_likelihood -= 0.5 * (
            innovation @ np.linalg.solve(S, innovation) + np.log(np.linalg.det(2 * np.pi * S))
        )


def track(kalman, measurements):
    """Filters a track of measurements, missing ones (NaN) skipped."""
    states = np.zeros((len(measurements), len(kalman.x)))
    for i, z in enumerate(measurements):
        kalman.predict()
        if not np.isnan(z).any():
            kalman.update(z)
        states[i] = kalman.x
    return states


class Welford:
    """Running mean, variance, extremes (B. P. Welford, Technometrics 4 (1962) 419)."""

    def __init__(self):
        self.n = 0
        self.mean = 0.0
        self.m2 = 0.0
        self.low, self.high = np.inf, -np.inf

    def add(self, value):
        self.n += 1
        delta = value - self.mean
        self.mean += delta / self.n
        self.m2 += delta * (value - self.mean)
        self.low = min(self.low, value)
        self.high = max(self.high, value)

    @property
    def variance(self):
        return self.m2 / (self.n - 1) if self.n > 1 else 0.0


def running_statistics(statistics, stream):
    """Feeds a stream into an accumulator and keeps the running variance."""
    out = np.empty(len(stream))
    for i in range(len(stream)):
        statistics.add(stream[i])
        out[i] = statistics.variance
    return out


class Biquad:
    """A second-order filter, direct form II transposed, with its two memories."""

    def __init__(self, b, a):
        self.b, self.a = b, a
        self.z = np.zeros(2)

    def process(self, block):
        out = np.empty_like(block)
        b, a, z = self.b, self.a, self.z
        for n, x in enumerate(block):
            y = b[0] * x + z[0]
            z[0] = b[1] * x - a[1] * y + z[1]
            z[1] = b[2] * x - a[2] * y
            out[n] = y
        return out


def filter_chain(sections, signal):
    """A cascade of second-order sections over a signal, the sections' memories kept."""
    for section in sections:
        signal = section.process(signal)
    return signal


class Grid:
    """A periodic advection problem that owns its arrays (van Leer's limiter, 1974)."""

    def __init__(self, n, speed):
        self.q = np.zeros(n + 4)
        self.q[2 : 2 + n // 4] = 1.0
        self.dx = 1.0 / n
        self.speed = speed
        self.time = 0.0
        self.steps = 0

    @property
    def interior(self):
        return self.q[2:-2]

    def fill_ghosts(self):
        self.q[:2] = self.q[-4:-2]
        self.q[-2:] = self.q[2:4]

    def step(self, cfl):
        dt = cfl * self.dx / self.speed
        self.fill_ghosts()
        q = self.q
        left, right = q[1:-1] - q[:-2], q[2:] - q[1:-1]
        product = left * right
        slope = np.where(product > 0, 2 * product / np.where(product > 0, left + right, 1), 0)
        flux = self.speed * (q[1:-2] + 0.5 * (1 - cfl) * slope[:-1])
        self.interior[:] -= dt / self.dx * (flux[1:] - flux[:-1])
        self.time += dt
        self.steps += 1


def advect(grid, until, cfl):
    """Steps a `Grid` until a time and returns its mass."""
    while grid.time < until:
        grid.step(cfl)
    return grid.interior.sum() * grid.dx


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def lattice(n):
    side = np.arange(n) * 1.2
    return np.stack(np.meshgrid(side, side, side), axis=-1).reshape(-1, 3)


def tracker(n):
    F = np.array([[1.0, 0.1], [0.0, 1.0]])
    z = np.arange(n)[:, None] * 0.05 + 0.1 * normal(n, 1)
    z[3::7] = np.nan
    return Kalman(F, np.array([[1.0, 0.0]]), 0.01 * np.eye(2), np.array([[0.2]])), z


def sections():
    a = np.array([1.0, -1.6, 0.8])
    return [Biquad(np.array([0.1, 0.2, 0.1]), a), Biquad(np.array([1.0, -1.0, 0.0]), a * 0.9)]


PROGRAMS = (
    (lennard_jones, lambda n: (lattice(n), 0.3 * normal(n**3, 3), 1.2 * n, 2.5, 0.002, 3), 3, 8,
     "published views"),
    (particle_in_cell, lambda n: (10 * np.random.default_rng(1).random(n), 0.1 * normal(n), 16,
                                  10.0, 0.1, 5), 50, 50000, "published"),
    (sph_density, lambda n: (0.3 * normal(n, 2), 2.0 / n, 0.2, 1.0), 15, 400, "published"),
    (boids, lambda n: (3 * normal(n, 2), normal(n, 2, seed=1), 2.0, 3), 10, 300, "views"),
    (track, tracker, 15, 1000, "state"),
    (running_statistics, lambda n: (Welford(), normal(n)), 25, 10000, "state"),
    (filter_chain, lambda n: (sections(), normal(n)), 30, 10000, "state"),
    (advect, lambda n: (Grid(n, 1.5), 0.05, 0.8), 20, 2000, "state views data-loop"),
)
