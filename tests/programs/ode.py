"""Integrators of ordinary differential equations, and root finders."""

from __future__ import annotations

import numpy as np


def lorenz(state, sigma=10.0, rho=28.0, beta=8.0 / 3.0):
    x, y, z = state
    return np.array([sigma * (y - x), x * (rho - z) - y, x * y - beta * z])


def rk4_lorenz(state, dt, steps):
    """Classical Runge-Kutta on the Lorenz system, the whole path (E. N. Lorenz, 1963)."""
    path = np.empty((steps + 1, 3))
    path[0] = state
    for i in range(steps):
        k1 = lorenz(path[i])
        k2 = lorenz(path[i] + 0.5 * dt * k1)
        k3 = lorenz(path[i] + 0.5 * dt * k2)
        k4 = lorenz(path[i] + dt * k3)
        path[i + 1] = path[i] + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return path


def van_der_pol(t, y):
    return np.array([y[1], 2.0 * (1 - y[0] ** 2) * y[1] - y[0]])


def rkf45(y, t_end, tolerance):
    """Runge-Kutta-Fehlberg with step control on the Van der Pol oscillator.

    Source: E. Fehlberg, NASA TR R-315 (1969).
    """
    t = 0.0
    h = 0.01
    accepted = rejected = 0
    while t < t_end:
        h = min(h, t_end - t)
        k1 = h * van_der_pol(t, y)
        k2 = h * van_der_pol(t + h / 4, y + k1 / 4)
        k3 = h * van_der_pol(t + 3 * h / 8, y + 3 / 32 * k1 + 9 / 32 * k2)
        k4 = h * van_der_pol(
            t + 12 * h / 13, y + 1932 / 2197 * k1 - 7200 / 2197 * k2 + 7296 / 2197 * k3
        )
        k5 = h * van_der_pol(
            t + h, y + 439 / 216 * k1 - 8 * k2 + 3680 / 513 * k3 - 845 / 4104 * k4
        )
        k6 = h * van_der_pol(
            t + h / 2,
            y - 8 / 27 * k1 + 2 * k2 - 3544 / 2565 * k3 + 1859 / 4104 * k4 - 11 / 40 * k5,
        )
        error = np.max(np.abs(k1 / 360 - 128 / 4275 * k3 - 2197 / 75240 * k4 + k5 / 50
                              + 2 / 55 * k6))
        if error <= tolerance:
            y = y + 25 / 216 * k1 + 1408 / 2565 * k3 + 2197 / 4104 * k4 - k5 / 5
            t += h
            accepted += 1
        else:
            rejected += 1
        if error > 0:
            h *= min(4.0, max(0.1, 0.84 * (tolerance / error) ** 0.25))
        else:
            h *= 4.0
    return y, accepted, rejected


def robertson_backward_euler(y, times):
    """Backward Euler with Newton's method on Robertson's stiff kinetics.

    Source: H. H. Robertson, The solution of a set of reaction rate equations (1966).
    """
    y = y.astype(float).copy()
    out = np.zeros((len(times), 3))
    out[0] = y
    iterations = 0
    for n in range(1, len(times)):
        h = times[n] - times[n - 1]
        old = y.copy()
        for _ in range(20):
            f = np.array([
                -0.04 * y[0] + 1e4 * y[1] * y[2],
                0.04 * y[0] - 1e4 * y[1] * y[2] - 3e7 * y[1] ** 2,
                3e7 * y[1] ** 2,
            ])
            J = np.zeros((3, 3))
            J[0] = -0.04, 1e4 * y[2], 1e4 * y[1]
            J[1] = 0.04, -1e4 * y[2] - 6e7 * y[1], -1e4 * y[1]
            J[2, 1] = 6e7 * y[1]
            step = np.linalg.solve(np.eye(3) - h * J, old + h * f - y)
            y += step
            iterations += 1
            if np.abs(step).max() < 1e-10:
                break
        out[n] = y
    return out, iterations


def adams_bashforth_moulton(y, h, steps):
    """Fourth-order predictor and corrector on two competing species, started by RK4.

    Source: E. Hairer, S. P. Norsett, G. Wanner, Solving Ordinary Differential Equations I, III.1.
    """

    def f(y):
        prey, predator = y[0], y[1]
        return np.stack([prey * (1.1 - 0.4 * predator), predator * (0.1 * prey - 0.4)])

    ys = np.zeros((steps + 1, 2))
    fs = np.zeros((steps + 1, 2))
    ys[0] = y
    fs[0] = f(y)
    for i in range(steps):
        if i < 3:
            k1 = fs[i]
            k2 = f(ys[i] + h / 2 * k1)
            k3 = f(ys[i] + h / 2 * k2)
            k4 = f(ys[i] + h * k3)
            ys[i + 1] = ys[i] + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        else:
            p = ys[i] + h / 24 * (55 * fs[i] - 59 * fs[i - 1] + 37 * fs[i - 2] - 9 * fs[i - 3])
            fp = f(p)
            ys[i + 1] = ys[i] + h / 24 * (9 * fp + 19 * fs[i] - 5 * fs[i - 1] + fs[i - 2])
        fs[i + 1] = f(ys[i + 1])
    return ys


def double_pendulum(theta1, theta2, dt, steps):
    """Symplectic-like leapfrog of the double pendulum in scalars, with math by NumPy."""
    w1 = w2 = 0.0
    g = 9.81
    angles = []
    for _ in range(steps):
        delta = theta1 - theta2
        den = 3 - np.cos(2 * delta)
        a1 = (-3 * g * np.sin(theta1) - g * np.sin(theta1 - 2 * theta2)
              - 2 * np.sin(delta) * (w2**2 + w1**2 * np.cos(delta))) / den
        a2 = (2 * np.sin(delta) * (2 * w1**2 + 2 * g * np.cos(theta1)
                                   + w2**2 * np.cos(delta))) / den
        w1 += a1 * dt
        w2 += a2 * dt
        theta1 += w1 * dt
        theta2 += w2 * dt
        angles.append((theta1, theta2))
    return np.array(angles)


def brent(a, b, tolerance, shift):
    """Brent's root finder on x exp(x) - cos(3 x) - shift.

    Source: R. P. Brent, Algorithms for Minimization without Derivatives (1973), chapter 4.
    """

    def f(x):
        return x * np.exp(x) - np.cos(3 * x) - shift

    fa, fb = f(a), f(b)
    if fa * fb > 0:
        raise ValueError("the root is not bracketed")
    c, fc = a, fa
    d = e = b - a
    evaluations = 2
    while True:
        if abs(fc) < abs(fb):
            a, b, c = b, c, b
            fa, fb, fc = fb, fc, fb
        tol = 2e-16 * abs(b) + 0.5 * tolerance
        m = 0.5 * (c - b)
        if abs(m) <= tol or fb == 0:
            break
        if abs(e) < tol or abs(fa) <= abs(fb):
            d = e = m
        else:
            s = fb / fa
            if a == c:
                p, q = 2 * m * s, 1 - s
            else:
                q, r = fa / fc, fb / fc
                p = s * (2 * m * q * (q - r) - (b - a) * (r - 1))
                q = (q - 1) * (r - 1) * (s - 1)
            if p > 0:
                q = -q
            else:
                p = -p
            if 2 * p < min(3 * m * q - abs(tol * q), abs(e * q)):
                e, d = d, p / q
            else:
                d = e = m
        a, fa = b, fb
        if abs(d) > tol:
            b += d
        else:
            b += np.copysign(tol, m)
        fb = f(b)
        evaluations += 1
        if (fb > 0) == (fc > 0):
            c, fc = a, fa
            d = e = b - a
    return b, evaluations


class PID:
    """A proportional-integral-derivative controller with anti-windup."""

    def __init__(self, kp, ki, kd, limit):
        self.kp, self.ki, self.kd = kp, ki, kd
        self.limit = limit
        self.integral = 0.0
        self.previous = None

    def update(self, error, dt):
        derivative = 0.0 if self.previous is None else (error - self.previous) / dt
        self.previous = error
        candidate = self.integral + error * dt
        out = self.kp * error + self.ki * candidate + self.kd * derivative
        if -self.limit < out < self.limit:
            self.integral = candidate
        return np.clip(out, -self.limit, self.limit)


def controlled_tank(controller, target, dt):
    """Level of a tank under a `PID` controller that follows a target."""
    level = 0.0
    levels = np.zeros_like(target)
    for i in range(len(target)):
        inflow = controller.update(target[i] - level, dt)
        level += dt * (inflow - 0.3 * np.sqrt(max(level, 0.0)))
        levels[i] = level
    return levels


PROGRAMS = (
    (rk4_lorenz, lambda n: (np.array([1.0, 1.0, 1.05]), 0.01, n), 30, 5000, "chaotic"),
    (rkf45, lambda n: (np.array([2.0, 0.0]), n / 10, 1e-6), 20, 500, "published data-loop"),
    (robertson_backward_euler, lambda n: (np.array([1, 0, 0]), np.logspace(-6, 1, n)), 12, 400,
     "published data-loop"),
    (adams_bashforth_moulton, lambda n: (np.array([10.0, 5.0]), 0.05, n), 25, 5000, ""),
    (double_pendulum, lambda n: (1.2, -0.4, 0.005, n), 30, 3000, ""),
    (brent, lambda n: (0.0, 2.0, 10.0**-n, 0.7), 8, 14, "published data-loop"),
    (controlled_tank, lambda n: (PID(2.0, 0.5, 0.1, 3.0), 1.0 + (np.arange(n) > n / 2), 0.1),
     30, 10000, "state"),
)
