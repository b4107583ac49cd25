"""Astronomical formulas: time, orbits, positions."""

from __future__ import annotations

import numpy as np


def julian_day(year, month, day):
    """Julian day of Gregorian or Julian calendar dates (Meeus, Astronomical Algorithms, ch. 7)."""
    y = np.where(month <= 2, year - 1, year)
    m = np.where(month <= 2, month + 12, month)
    gregorian = (year * 10000 + month * 100 + day) >= 15821015
    a = np.floor(y / 100)
    b = np.where(gregorian, 2 - a + np.floor(a / 4), 0)
    return np.floor(365.25 * (y + 4716)) + np.floor(30.6001 * (m + 1)) + day + b - 1524.5


def kepler(mean_anomaly, eccentricity):
    """Kepler's equation by Newton's method until every element converged, then true anomaly.

    Source: Meeus, Astronomical Algorithms, chapter 30.
    """
    M = np.mod(mean_anomaly + np.pi, 2 * np.pi) - np.pi
    E = np.where(M < 0, M - eccentricity, M + eccentricity)
    for iteration in range(50):
        change = (E - eccentricity * np.sin(E) - M) / (1 - eccentricity * np.cos(E))
        E = E - change
        if np.all(np.abs(change) < 1e-13):
            break
    nu = 2 * np.arctan2(
        np.sqrt(1 + eccentricity) * np.sin(E / 2), np.sqrt(1 - eccentricity) * np.cos(E / 2)
    )
    return E, nu


def solar_position(jd, latitude, longitude):
    """Altitude and azimuth of the sun to 0.01 degrees, refraction included.

    Source: Meeus, Astronomical Algorithms, chapters 13, 16 and 25 (low accuracy), as in the NOAA
    solar calculator.
    """
    t = (jd - 2451545.0) / 36525.0
    mean_longitude = (280.46646 + t * (36000.76983 + t * 0.0003032)) % 360
    anomaly = np.radians(357.52911 + t * (35999.05029 - 0.0001537 * t))
    centre = (
        np.sin(anomaly) * (1.914602 - t * (0.004817 + 0.000014 * t))
        + np.sin(2 * anomaly) * (0.019993 - 0.000101 * t)
        + np.sin(3 * anomaly) * 0.000289
    )
    node = np.radians(125.04 - 1934.136 * t)
    apparent = np.radians(mean_longitude + centre - 0.00569 - 0.00478 * np.sin(node))
    obliquity = np.radians(
        23 + (26 + (21.448 - t * (46.815 + t * (0.00059 - t * 0.001813))) / 60) / 60
        + 0.00256 * np.cos(node)
    )
    declination = np.arcsin(np.sin(obliquity) * np.sin(apparent))
    ascension = np.arctan2(np.cos(obliquity) * np.sin(apparent), np.cos(apparent))
    sidereal = (280.46061837 + 360.98564736629 * (jd - 2451545.0) + 0.000387933 * t**2) % 360
    hour = np.radians(sidereal + longitude) - ascension
    phi = np.radians(latitude)
    altitude = np.degrees(np.arcsin(
        np.sin(phi) * np.sin(declination) + np.cos(phi) * np.cos(declination) * np.cos(hour)
    ))
    azimuth = np.degrees(np.arctan2(
        np.sin(hour), np.cos(hour) * np.sin(phi) - np.tan(declination) * np.cos(phi)
    )) + 180
    refraction = np.zeros_like(altitude)
    low = (altitude > -0.575) & (altitude <= 85)
    h = altitude[low]
    refraction[low] = 1.02 / np.tan(np.radians(h + 10.3 / (h + 5.11))) / 60
    return altitude + refraction, azimuth % 360


def precess(ra, dec, jd):
    """Rigorous precession from J2000 to a date (Meeus, chapter 21; Lieske et al. 1977)."""
    t = (jd - 2451545.0) / 36525.0
    zeta = np.deg2rad((2306.2181 * t + 0.30188 * t**2 + 0.017998 * t**3) / 3600)
    z = np.deg2rad((2306.2181 * t + 1.09468 * t**2 + 0.018203 * t**3) / 3600)
    theta = np.deg2rad((2004.3109 * t - 0.42665 * t**2 - 0.041833 * t**3) / 3600)
    a, d = np.deg2rad(ra), np.deg2rad(dec)
    A = np.cos(d) * np.sin(a + zeta)
    B = np.cos(theta) * np.cos(d) * np.cos(a + zeta) - np.sin(theta) * np.sin(d)
    C = np.sin(theta) * np.cos(d) * np.cos(a + zeta) + np.cos(theta) * np.sin(d)
    return np.rad2deg(np.arctan2(A, B) + z) % 360, np.rad2deg(np.arcsin(C))


def orbital_elements(r, v, mu):
    """Classical elements from state vectors, a row per body.

    Source: D. A. Vallado, Fundamentals of Astrodynamics and Applications, algorithm RV2COE.
    """
    h = np.cross(r, v)
    n = np.zeros_like(h)
    n[:, 0] = -h[:, 1]
    n[:, 1] = h[:, 0]
    radius = np.linalg.norm(r, axis=1)
    speed2 = np.sum(v * v, axis=1)
    rv = np.einsum("ij,ij->i", r, v)
    e_vector = ((speed2 - mu / radius)[:, None] * r - rv[:, None] * v) / mu
    e = np.linalg.norm(e_vector, axis=1)
    energy = speed2 / 2 - mu / radius
    a = -mu / (2 * energy)
    inclination = np.arccos(h[:, 2] / np.linalg.norm(h, axis=1))
    length_n = np.sqrt((n**2).sum(1))
    node = np.arccos(np.clip(n[:, 0] / length_n, -1, 1))
    node[n[:, 1] < 0] = 2 * np.pi - node[n[:, 1] < 0]
    argument = np.arccos(np.clip(np.sum(n * e_vector, 1) / (length_n * e), -1, 1))
    below = e_vector[:, 2] < 0
    argument[below] = 2 * np.pi - argument[below]
    anomaly = np.arccos(np.clip(np.sum(e_vector * r, 1) / (e * radius), -1, 1))
    inbound = rv < 0
    anomaly[inbound] = 2 * np.pi - anomaly[inbound]
    return np.column_stack((a, e, inclination, node, argument, anomaly))


def leapfrog_planets(x, v, masses, dt, steps):
    """Kick, drift, kick of gravitating bodies, every pair by hand; writes x and v.

    Source: L. Verlet, Phys. Rev. 159 (1967) 98; energies as in the Computer Language Benchmarks
    Game's n-body.
    """
    n = len(masses)
    energies = np.zeros(steps)

    def accelerate(half):
        for i in range(n):
            for j in range(i + 1, n):
                d = x[j] - x[i]
                r2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2]
                inverse = 1.0 / (r2 * np.sqrt(r2))
                v[i] += half * masses[j] * inverse * d
                v[j] -= half * masses[i] * inverse * d

    for t in range(steps):
        accelerate(dt / 2)
        x += dt * v
        accelerate(dt / 2)
        energy = 0.5 * np.sum(masses * np.sum(v**2, axis=1))
        for i in range(n):
            for j in range(i):
                energy -= masses[i] * masses[j] / np.linalg.norm(x[i] - x[j])
        energies[t] = energy
    return energies


def light_curve(time, period, depth, duration, noise):
    """A folded transit search over trial periods by box least squares.

    Source: G. Kovacs, S. Zucker, T. Mazeh, A&A 391 (2002) 369.
    """
    flux = 1.0 + noise
    in_transit = (time % period) < duration
    flux[in_transit] -= depth
    trials = np.linspace(0.6 * period, 1.5 * period, 30)
    bins = 20
    power = np.zeros(len(trials))
    for k, trial in enumerate(trials):
        phase = (time % trial) / trial
        which = (phase * bins).astype(int)
        counts = np.bincount(which, minlength=bins)
        sums = np.bincount(which, weights=flux - flux.mean(), minlength=bins)
        best = 0.0
        for start in range(bins):
            s = 0.0
            r = 0
            for width in range(3):
                b = (start + width) % bins
                s += sums[b]
                r += counts[b]
                if r > 0 and r < len(time):
                    q = s * s / (r * (1 - r / len(time)))
                    if q > best:
                        best = q
        power[k] = best
    return trials[np.argmax(power)], power


def between(low, high, n, seed=0):
    return low + (high - low) * np.random.default_rng(seed).random(n)


def states(n):
    rng = np.random.default_rng(6)
    return 1 + 0.3 * rng.standard_normal((n, 3)), 0.5 * rng.standard_normal((n, 3))


PROGRAMS = (
    (julian_day, lambda n: (between(1500, 2100, n).astype(int), between(1, 13, n, 1).astype(int),
                            between(1, 29, n, 2)), 30, 300000, ""),
    (kepler, lambda n: (between(-7, 7, n), between(0, 0.95, n, 1)), 30, 100000, ""),
    (solar_position, lambda n: (between(2451545, 2461545, n), 48.1, 11.6), 30, 200000,
     "published"),
    (precess, lambda n: (between(0, 360, n), between(-80, 80, n, 1), 2462088.69), 30, 200000, ""),
    (orbital_elements, lambda n: (*states(n), 1.0), 12, 100000, "published views"),
    (leapfrog_planets, lambda n: (*(3 * a for a in states(5)), between(0.1, 1, 5), 0.001, n), 10,
     500, "published views"),
    (light_curve, lambda n: (np.sort(between(0, 90, n)), 7.3, 0.02, 0.4,
                             1e-3 * between(-1, 1, n, 4)), 200, 20000, "published views"),
)
