"""Monte Carlo, with the random numbers passed in, and option trees."""

from __future__ import annotations

import numpy as np


def crr_american_put(spot, strike, rate, sigma, maturity, steps):
    """Binomial tree of an American put with its early-exercise boundary.

    Source: J. C. Cox, S. A. Ross, M. Rubinstein, J. Financial Economics 7 (1979) 229.
    """
    dt = maturity / steps
    up = np.exp(sigma * np.sqrt(dt))
    down = 1 / up
    p = (np.exp(rate * dt) - down) / (up - down)
    discount = np.exp(-rate * dt)
    prices = spot * up ** np.arange(steps, -steps - 1, -2.0)
    values = np.maximum(strike - prices, 0)
    boundary = np.zeros(steps)
    for i in range(steps - 1, -1, -1):
        values = discount * (p * values[:-1] + (1 - p) * values[1:])
        prices = prices[:-1] * down
        exercise = strike - prices
        early = exercise > values
        values = np.where(early, exercise, values)
        if early.any():
            boundary[i] = prices[early].max()
    return values[0], boundary


def binomial_loops(spot, strike, rate, sigma, maturity, steps):
    """The European call on the same tree, every node by hand."""
    dt = maturity / steps
    u = np.exp(sigma * dt**0.5)
    q = (np.exp(rate * dt) - 1 / u) / (u - 1 / u)
    v = np.zeros(steps + 1)
    for j in range(steps + 1):
        v[j] = max(spot * u ** (2 * j - steps) - strike, 0.0)
    for i in range(steps, 0, -1):
        for j in range(i):
            v[j] = np.exp(-rate * dt) * (q * v[j + 1] + (1 - q) * v[j])
    return v[0]


def longstaff_schwartz(normals, spot, strike, rate, sigma, maturity):
    """American put by regression on the paths in the money.

    Source: F. A. Longstaff, E. S. Schwartz, Rev. Financial Studies 14 (2001) 113.
    """
    steps, paths = normals.shape
    dt = maturity / steps
    drift = (rate - 0.5 * sigma**2) * dt
    S = np.empty((steps + 1, paths))
    S[0] = spot
    for t in range(steps):
        S[t + 1] = S[t] * np.exp(drift + sigma * np.sqrt(dt) * normals[t])
    cash = np.maximum(strike - S[-1], 0.0)
    when = np.full(paths, steps)
    for t in range(steps - 1, 0, -1):
        money = S[t] < strike
        if money.sum() < 4:
            continue
        x = S[t, money] / strike
        y = cash[money] * np.exp(-rate * dt * (when[money] - t))
        basis = np.column_stack([np.ones_like(x), x, x**2])
        beta, *_ = np.linalg.lstsq(basis, y, rcond=None)
        continuation = basis @ beta
        exercise = strike - S[t, money]
        stop = exercise > continuation
        where = np.flatnonzero(money)[stop]
        cash[where] = exercise[stop]
        when[where] = t
    values = cash * np.exp(-rate * dt * when)
    return values.mean(), values.std() / np.sqrt(paths)


def heston_paths(z1, z2, s0, v0, kappa, theta, xi, rho, rate, maturity):
    """Full-truncation Euler scheme of stochastic volatility, an Asian call.

    Source: S. L. Heston, Rev. Financial Studies 6 (1993) 327; R. Lord et al., Quant. Finance 10
    (2010) 177.
    """
    steps, paths = z1.shape
    dt = maturity / steps
    log_s = np.full(paths, np.log(s0))
    v = np.full(paths, v0)
    running = np.zeros(paths)
    for t in range(steps):
        positive = np.maximum(v, 0)
        root = np.sqrt(positive * dt)
        dw = rho * z1[t] + np.sqrt(1 - rho**2) * z2[t]
        log_s += (rate - 0.5 * positive) * dt + root * z1[t]
        v += kappa * (theta - positive) * dt + xi * root * dw
        running += np.exp(log_s)
    average = running / steps
    payoff = np.exp(-rate * maturity) * np.maximum(average - s0, 0)
    # antithetic control: the terminal price has a known mean
    control = np.exp(log_s)
    beta = np.cov(payoff, control)[0, 1] / control.var(ddof=1)
    adjusted = payoff - beta * (control - s0 * np.exp(rate * maturity))
    return adjusted.mean(), adjusted.std(ddof=1) / paths**0.5, beta


def metropolis_sampler(data, start, steps, uniforms, scale):
    """Posterior of a mean and a log deviation by random-walk Metropolis.

    Source: W. K. Hastings, Biometrika 57 (1970) 97.
    """
    n = len(steps)
    chain = np.zeros((n, 2))
    current = np.array(start)
    r = (data - current[0]) / np.exp(current[1])
    log_p = -0.5 * np.sum(r**2) - len(data) * current[1]
    accepted = 0
    for i in range(n):
        proposal = current + scale * steps[i]
        r = (data - proposal[0]) / np.exp(proposal[1])
        new = -0.5 * np.sum(r**2) - len(data) * proposal[1]
        if new > log_p or uniforms[i] < np.exp(new - log_p):
            current = proposal
            log_p = new
            accepted += 1
        chain[i] = current
    burned = chain[n // 4 :]
    centred = burned - burned.mean(axis=0)
    lag1 = (centred[1:] * centred[:-1]).sum(axis=0) / (centred**2).sum(axis=0)
    return chain, accepted / n, burned.mean(axis=0), lag1


def bootstrap_interval(x, indices):
    """Percentile interval of the median over given resamples (B. Efron, Ann. Stat. 7 (1979))."""
    medians = []
    for rows in indices:
        medians.append(np.median(x[rows]))
    return np.percentile(np.array(medians), [2.5, 97.5])


def gillespie(uniforms, x, birth, death, t_end):
    """Exact stochastic simulation of birth and death, event by event.

    Source: D. T. Gillespie, J. Phys. Chem. 81 (1977) 2340.
    """
    t = 0.0
    k = 0
    n = len(uniforms)
    times = np.zeros(n)
    counts = np.zeros(n, dtype=np.int64)
    area = 0.0
    while k < n:
        rate_up = birth
        rate_down = death * x
        total = rate_up + rate_down
        wait = -np.log(uniforms[k, 0]) / total
        if t + wait > t_end:
            area += x * (t_end - t)
            break
        t += wait
        area += x * wait
        if uniforms[k, 1] * total < rate_up:
            x += 1
        else:
            x -= 1
        times[k] = t
        counts[k] = x
        k += 1
    mean = area / t_end
    return times[:k], counts[:k], mean


def implied_volatility(price, spot, strike, rate, maturity):
    """Newton's method on Black and Scholes with a bisection safeguard, strike by strike.

    Source: F. Black, M. Scholes, J. Political Economy 81 (1973) 637; normal distribution by
    Abramowitz and Stegun 26.2.17.
    """

    def cdf(x):
        k = 1.0 / (1.0 + 0.2316419 * abs(x))
        poly = k * (0.319381530 + k * (-0.356563782 + k * (
            1.781477937 + k * (-1.821255978 + k * 1.330274429))))
        tail = np.exp(-x * x / 2) / np.sqrt(2 * np.pi) * poly
        return 1 - tail if x >= 0 else tail

    result = np.full(len(strike), np.nan)
    for i in range(len(strike)):
        low, high = 1e-4, 5.0
        sigma = 0.3
        for _ in range(60):
            root = sigma * np.sqrt(maturity)
            d1 = (np.log(spot / strike[i]) + (rate + 0.5 * sigma**2) * maturity) / root
            value = spot * cdf(d1) - strike[i] * np.exp(-rate * maturity) * cdf(d1 - root)
            difference = value - price[i]
            if abs(difference) < 1e-10:
                break
            if difference > 0:
                high = sigma
            else:
                low = sigma
            vega = spot * np.sqrt(maturity) * np.exp(-0.5 * d1**2) / np.sqrt(2 * np.pi)
            sigma = sigma - difference / max(vega, 1e-12)
            if not low < sigma < high:
                sigma = 0.5 * (low + high)
        result[i] = sigma
    return result


def buffon_pi(x, theta):
    """Buffon's needle with running estimates (G.-L. Leclerc de Buffon, 1777)."""
    crossings = np.cumsum(x <= 0.5 * np.sin(theta))
    with np.errstate(divide="ignore"):
        return 2 * np.arange(1, x.size + 1) / crossings * 0.5


def normals(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def uniform(*shape, seed=1):
    return 1 - np.random.default_rng(seed).random(shape)


PROGRAMS = (
    (crr_american_put, lambda n: (100.0, 105.0, 0.04, 0.25, 1.0, n), 20, 1000, ""),
    (binomial_loops, lambda n: (100.0, 95.0, 0.03, 0.2, 0.5, n), 15, 300, ""),
    (longstaff_schwartz, lambda n: (normals(6, n), 36.0, 40.0, 0.06, 0.2, 1.0), 60, 50000,
     "published views"),
    (heston_paths, lambda n: (normals(8, n), normals(8, n, seed=2), 100.0, 0.04, 1.5, 0.04, 0.3,
                              -0.6, 0.02, 1.0), 50, 100000, ""),
    (metropolis_sampler, lambda n: (normals(30), [0.1, 0.0], normals(n, 2, seed=3), uniform(n),
                                    0.2), 40, 5000, ""),
    (bootstrap_interval, lambda n: (normals(n), np.random.default_rng(7).integers(0, n, (20, n))),
     15, 3000, ""),
    (gillespie, lambda n: (uniform(n, 2), 5, 8.0, 1.0, n / 30), 40, 30000,
     "published data-loop"),
    (implied_volatility, lambda n: (np.linspace(30.0, 3.0, n), 100.0, np.linspace(75, 120, n),
                                    0.02, 0.75), 6, 200, "published data-loop"),
    (buffon_pi, lambda n: (uniform(n) / 2, uniform(n, seed=2) * np.pi / 2), 100, 500000, ""),
)
