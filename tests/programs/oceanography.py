"""Oceanographic and atmospheric formulas."""

from __future__ import annotations

import numpy as np


def density_eos80(s, t, p):
    """Density of sea water, kg/m3, from salinity, temperature (IPTS-68) and pressure (dbar).

    Source: UNESCO Technical Papers in Marine Science 44 (1983), N. P. Fofonoff, R. C. Millard.
    """
    p = p / 10
    t68 = t * 1.00024
    a = (999.842594, 6.793952e-2, -9.095290e-3, 1.001685e-4, -1.120083e-6, 6.536332e-9)
    pure = a[0] + (a[1] + (a[2] + (a[3] + (a[4] + a[5] * t68) * t68) * t68) * t68) * t68
    b = (8.24493e-1, -4.0899e-3, 7.6438e-5, -8.2467e-7, 5.3875e-9)
    c = (-5.72466e-3, 1.0227e-4, -1.6546e-6)
    d = 4.8314e-4
    surface = (
        pure
        + (b[0] + (b[1] + (b[2] + (b[3] + b[4] * t68) * t68) * t68) * t68) * s
        + (c[0] + (c[1] + c[2] * t68) * t68) * s * np.sqrt(s)
        + d * s**2
    )
    h = [3.239908, 1.43713e-3, 1.16092e-4, -5.77905e-7]
    aw = h[0] + (h[1] + (h[2] + h[3] * t68) * t68) * t68
    k = [8.50935e-5, -6.12293e-6, 5.2787e-8]
    bw = k[0] + (k[1] + k[2] * t68) * t68
    e = [19652.21, 148.4206, -2.327105, 1.360477e-2, -5.155288e-5]
    kw = e[0] + (e[1] + (e[2] + (e[3] + e[4] * t68) * t68) * t68) * t68
    root = np.sqrt(s)
    f = [54.6746, -0.603459, 1.09987e-2, -6.1670e-5]
    g = [7.944e-2, 1.6483e-2, -5.3009e-4]
    kst0 = kw + (
        f[0] + (f[1] + (f[2] + f[3] * t68) * t68) * t68
        + (g[0] + (g[1] + g[2] * t68) * t68) * root
    ) * s
    am = aw + (2.2838e-3 + (-1.0981e-5 - 1.6078e-6 * t68) * t68 + 1.91075e-4 * root) * s
    bm = bw + (-9.9348e-7 + (2.0816e-8 + 9.1697e-10 * t68) * t68) * s
    bulk = kst0 + (am + bm * p) * p
    return surface / (1 - p / bulk)


def sound_speed(s, t, p):
    """Sound speed in sea water (C. Chen, F. J. Millero, JASA 62 (1977) 1129), m/s."""
    p = p / 10.0
    c0 = np.array([1402.388, 5.03711, -5.80852e-2, 3.3420e-4, -1.47800e-6, 3.1464e-9])
    c1 = np.array([0.153563, 6.8982e-4, -8.1788e-6, 1.3621e-7, -6.1185e-10])
    c2 = np.array([3.1260e-5, -1.7107e-6, 2.5974e-8, -2.5335e-10, 1.0405e-12])
    c3 = np.array([-9.7729e-9, 3.8504e-10, -2.3643e-12])
    cw = np.polyval(c3[::-1], t)
    for c in (c2, c1, c0):
        cw = cw * p + np.polyval(c[::-1], t)
    a0 = np.polyval([-3.21e-8, 2.006e-6, 7.164e-5, -1.262e-2, 1.389], t)
    a1 = np.polyval([-2.0122e-10, 1.0507e-8, -6.4885e-8, -1.2580e-5, 9.4742e-5], t)
    a2 = np.polyval([7.988e-12, -1.6002e-10, 9.1041e-9, -3.9064e-7], t)
    a3 = np.polyval([-3.389e-13, 6.649e-12, 1.100e-10], t)
    a = ((a3 * p + a2) * p + a1) * p + a0
    b = -1.922e-2 - 4.42e-5 * t + (7.3637e-5 + 1.7950e-7 * t) * p
    return cw + a * s + b * s * np.sqrt(s) + (1.727e-3 - 7.9836e-6 * p) * s**2


def mixed_layer_depth(depth, density, threshold):
    """Depth where density first exceeds its 10 m value, by profile, interpolated.

    Source: C. de Boyer Montegut et al., J. Geophys. Res. 109 (2004) C12003.
    """
    levels, profiles = density.shape
    result = np.full(profiles, np.nan)
    reference = 0
    while depth[reference] < 10.0:
        reference += 1
    for j in range(profiles):
        column = density[:, j]
        limit = column[reference] + threshold
        k = reference
        while k < levels and column[k] < limit:
            k += 1
        if k < levels:
            above, below = column[k - 1], column[k]
            w = (limit - above) / (below - above)
            result[j] = depth[k - 1] + w * (depth[k] - depth[k - 1])
    shallow = result < 30
    mean = np.nanmean(result)
    counts = np.array([np.count_nonzero(shallow), np.isnan(result).sum()])
    anomalies = result - mean
    anomalies[np.isnan(anomalies)] = 0.0
    return result, mean, counts, anomalies


def ekman_spiral(z, wind, latitude, viscosity):
    """Ekman's drift current and its transport (V. W. Ekman, Ark. Mat. Astr. Fys. 2 (1905))."""
    f = 2 * 7.2921e-5 * np.sin(np.deg2rad(latitude))
    depth = np.sqrt(2 * viscosity / abs(f))
    stress = 1.25 * 1.3e-3 * np.abs(wind) * wind
    w = stress / 1025 / np.sqrt(viscosity * abs(f)) * np.exp(z / depth)
    current = w * np.exp(1j * (z / depth - np.pi / 4))
    transport = np.trapezoid(current, z)
    return current.real, current.imag, transport


def convective_adjustment(t, dz, n_max):
    """Mixes unstable neighbours until the columns are stable; writes t; rounds needed."""
    rounds = 0
    for _ in range(n_max):
        unstable = t[1:] > t[:-1] + 1e-9
        if not np.any(unstable):
            break
        for k in range(len(t) - 1):
            pair = t[k : k + 2]
            mean = (pair[0] * dz[k] + pair[1] * dz[k + 1]) / (dz[k] + dz[k + 1])
            mix = pair[1] > pair[0]
            pair[:, mix] = mean[mix]
        rounds += 1
    return rounds


def bulk_fluxes(wind, t_sea, t_air, humidity):
    """Turbulent fluxes with the stability iteration.

    Source: W. G. Large, S. Pond, J. Phys. Oceanogr. 11 (1981) 324 and 12 (1982) 464; stability
    functions as in W. Large, S. Yeager, NCAR TN-460 (2004).
    """
    g, karman, z = 9.81, 0.4, 10.0
    rho, cp, lv = 1.22, 1000.5, 2.5e6
    wind = np.maximum(wind, 0.5)
    q_sea = 0.98 * 640380.0 * np.exp(-5107.4 / (t_sea + 273.15)) / rho
    tv = (t_air + 273.15) * (1 + 0.608 * humidity)
    u10 = wind.copy()
    stable = t_air > t_sea
    cd = 1e-3 * (2.7 / u10 + 0.142 + 0.0764 * u10)
    ce = 1e-3 * 34.6 * np.sqrt(cd)
    ch = 1e-3 * np.where(stable, 18.0, 32.7) * np.sqrt(cd)
    for _ in range(5):
        root = np.sqrt(cd)
        ustar = root * wind
        tstar = ch / root * (t_air - t_sea)
        qstar = ce / root * (humidity - q_sea)
        zeta = karman * g * z / ustar**2 * (tstar / tv + qstar / (humidity + 1 / 0.608))
        zeta = np.sign(zeta) * np.minimum(np.abs(zeta), 10.0)
        x2 = np.maximum(np.sqrt(np.abs(1 - 16 * zeta)), 1.0)
        x = np.sqrt(x2)
        psi_m = np.log((1 + 2 * x + x2) * (1 + x2) / 8) - 2 * np.arctan(x) + np.pi / 2
        psi_h = 2 * np.log((1 + x2) / 2)
        psi_m = np.where(zeta > 0, -5 * zeta, psi_m)
        psi_h = np.where(zeta > 0, -5 * zeta, psi_h)
        u10 = np.maximum(wind / (1 + root / karman * (np.log(z / 10.0) - psi_m)), 0.5)
        neutral = 1e-3 * (2.7 / u10 + 0.142 + 0.0764 * u10)
        n_root = np.sqrt(neutral)
        ce = 1e-3 * 34.6 * n_root / (1 - 34.6e-3 * psi_h / karman)
        ch = 1e-3 * np.where(zeta > 0, 18.0, 32.7) * n_root / (1 - 18e-3 * psi_h / karman)
        cd = neutral / (1 - n_root / karman * psi_m) ** 2
    stress = rho * cd * wind**2
    sensible = rho * cp * ch * wind * (t_air - t_sea)
    latent = rho * lv * ce * wind * (humidity - q_sea)
    return stress, sensible, latent


def between(low, high, *shape, seed=0):
    return low + (high - low) * np.random.default_rng(seed).random(shape)


def profiles(n):
    return np.sort(between(1022, 1027, 30, n), axis=0)


PROGRAMS = (
    (density_eos80, lambda n: (between(30, 37, n), between(0, 28, n, seed=1),
                               between(0, 5000, n, seed=2)), 40, 300000, "published"),
    (sound_speed, lambda n: (between(30, 37, n), between(0, 28, n, seed=1),
                             between(0, 5000, n, seed=2)), 40, 300000, ""),
    (mixed_layer_depth, lambda n: (np.linspace(0, 300, 30), profiles(n), 0.6), 12, 2000,
     "published data-loop"),
    (ekman_spiral, lambda n: (-np.linspace(0, 200, n), 10.0, 45.0, 0.05), 40, 200000, ""),
    (convective_adjustment, lambda n: (between(5, 15, 8, n), np.linspace(5, 20, 8), 12), 6, 5000,
     "views data-loop"),
    (bulk_fluxes, lambda n: (between(0, 20, n), between(0, 28, n, seed=1),
                             between(-2, 30, n, seed=2), between(0.002, 0.02, n, seed=3)),
     30, 100000, "published"),
)
