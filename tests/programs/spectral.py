"""Transforms and spectral analysis by hand."""

from __future__ import annotations

import numpy as np


def fft_radix2(x):
    """Iterative decimation in time with bit reversal.

    Source: J. W. Cooley, J. W. Tukey, Math. Comp. 19 (1965) 297; loops as in Cormen et al.,
    Introduction to Algorithms, section 30.3.
    """
    n = len(x)
    bits = n.bit_length() - 1
    if n != 1 << bits:
        raise ValueError("the length must be a power of two")
    X = np.zeros(n, dtype=complex)
    for i in range(n):
        reverse = 0
        k = i
        for _ in range(bits):
            reverse = (reverse << 1) | (k & 1)
            k >>= 1
        X[reverse] = x[i]
    size = 2
    while size <= n:
        half = size // 2
        twiddle = np.exp(-2j * np.pi * np.arange(half) / size)
        for start in range(0, n, size):
            even = X[start : start + half].copy()
            odd = twiddle * X[start + half : start + size]
            X[start : start + half] = even + odd
            X[start + half : start + size] = even - odd
        size *= 2
    return X


def fft_recursive(x):
    """The same transform, recursively, with a matrix at the bottom (J. VanderPlas, 2013)."""
    n = x.shape[0]
    if n <= 8:
        k = np.arange(n)
        return np.exp(-2j * np.pi * k * k[:, None] / n) @ x
    even, odd = fft_recursive(x[::2]), fft_recursive(x[1::2])
    factor = np.exp(-2j * np.pi * np.arange(n) / n)
    return np.concatenate([even + factor[: n // 2] * odd, even + factor[n // 2 :] * odd])


def welch(x, fs, segment):
    """Averaged modified periodograms with a Hann window and half overlap.

    Source: P. D. Welch, IEEE Trans. Audio Electroacoust. 15 (1967) 70.
    """
    step = segment // 2
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(segment) / segment)
    scale = 1.0 / (fs * (window**2).sum())
    count = 0
    total = np.zeros(segment // 2 + 1)
    start = 0
    while start + segment <= len(x):
        piece = x[start : start + segment]
        t = np.arange(segment)
        slope = np.sum((t - t.mean()) * (piece - piece.mean())) / np.sum((t - t.mean()) ** 2)
        detrended = piece - piece.mean() - slope * (t - t.mean())
        spectrum = np.abs(np.fft.rfft(window * detrended)) ** 2 * scale
        spectrum[1:] *= 2
        if segment % 2 == 0:
            spectrum[-1] /= 2
        total += spectrum
        count += 1
        start += step
    frequencies = np.fft.rfftfreq(segment, 1 / fs)
    power = total / count
    return frequencies, power, frequencies[np.argmax(power)]


def goertzel(x, bins):
    """Power of single DFT bins (G. Goertzel, Amer. Math. Monthly 65 (1958) 34)."""
    n = len(x)
    power = np.empty(len(bins))
    for i, k in enumerate(bins):
        coefficient = 2 * np.cos(2 * np.pi * k / n)
        s1 = s2 = 0.0
        for sample in x:
            s0 = sample + coefficient * s1 - s2
            s2 = s1
            s1 = s0
        power[i] = s1 * s1 + s2 * s2 - coefficient * s1 * s2
    return power


def lomb_scargle(t, y, omega):
    """Periodogram of unevenly sampled data with the most likely period.

    Source: N. R. Lomb, Astrophys. Space Sci. 39 (1976) 447; J. D. Scargle, ApJ 263 (1982) 835.
    """
    y = y - y.mean()
    variance = np.sum(y**2) / (len(y) - 1)
    power = np.zeros_like(omega)
    phases = np.zeros_like(omega)
    for i in range(len(omega)):
        w = omega[i]
        tau = np.arctan2(np.sum(np.sin(2 * w * t)), np.sum(np.cos(2 * w * t))) / (2 * w)
        c = np.cos(w * (t - tau))
        s = np.sin(w * (t - tau))
        power[i] = 0.5 / variance * (
            np.sum(y * c) ** 2 / np.sum(c**2) + np.sum(y * s) ** 2 / np.sum(s**2)
        )
        phases[i] = tau
    best = np.argmax(power)
    # parabolic refinement of the peak
    frequency = omega[best]
    if 0 < best < len(omega) - 1:
        left, middle, right = power[best - 1 : best + 2]
        shift = 0.5 * (left - right) / (left - 2 * middle + right)
        frequency += shift * (omega[1] - omega[0])
    return power, phases, 2 * np.pi / frequency


def haar(x):
    """Orthonormal Haar transform in place, all levels, and its inverse."""
    y = x.copy()
    n = len(y)
    while n > 1:
        half = n // 2
        mean = (y[0:n:2] + y[1:n:2]) / np.sqrt(2)
        detail = (y[0:n:2] - y[1:n:2]) / np.sqrt(2)
        y[:half] = mean
        y[half:n] = detail
        n = half
    z = y.copy()
    n = 1
    while n < len(z):
        mean, detail = z[:n].copy(), z[n : 2 * n].copy()
        z[0 : 2 * n : 2] = (mean + detail) / np.sqrt(2)
        z[1 : 2 * n : 2] = (mean - detail) / np.sqrt(2)
        n *= 2
    return y, z


def dct_denoise(image, keep):
    """Separable DCT-II by matrices, small coefficients cut, and back."""
    n = image.shape[0]
    k = np.arange(n)[:, None]
    C = np.cos(np.pi * (2 * np.arange(n) + 1) * k / (2 * n)) * np.sqrt(2.0 / n)
    C[0] /= np.sqrt(2)
    coefficients = C @ image @ C.T
    cut = np.sort(np.abs(coefficients).ravel())[-keep]
    coefficients[np.abs(coefficients) < cut] = 0
    return C.T @ coefficients @ C


def dpss_like_multitaper(x, tapers):
    """Sine multitaper spectrum with a jackknife error.

    Source: K. S. Riedel, A. Sidorenko, Minimum bias multiple taper spectral estimation,
    IEEE Trans. Signal Process. 43 (1995) 188.
    """
    n = x.size
    x = x - np.mean(x)
    spectra = []
    for k in range(1, tapers + 1):
        taper = np.sqrt(2.0 / (n + 1)) * np.sin(np.pi * k * np.arange(1, n + 1) / (n + 1))
        f = np.fft.fft(taper * x)
        spectra.append(np.abs(f[: n // 2]) ** 2)
    spectra = np.array(spectra)
    mean = spectra.mean(axis=0)
    logs = np.empty_like(spectra)
    for k in range(tapers):
        others = np.delete(spectra, k, axis=0)
        logs[k] = np.log(others.mean(axis=0))
    spread = np.sqrt((tapers - 1) * np.var(logs, axis=0))
    peak = 0
    for i in range(1, len(mean) - 1):
        if mean[i] > mean[i - 1] and mean[i] > mean[i + 1] and mean[i] > mean[peak]:
            peak = i
    return mean, spread, peak


def signal(n):
    t = np.arange(n)
    noise = np.random.default_rng(2).standard_normal(n)
    return np.sin(0.3 * t) + 0.5 * np.cos(1.1 * t) + 0.1 * noise


PROGRAMS = (
    (fft_radix2, lambda n: (signal(n),), 32, 8192, "published views data-loop"),
    (fft_recursive, lambda n: (signal(n),), 64, 8192, ""),
    (welch, lambda n: (signal(n), 100.0, n // 4), 128, 100000, "published"),
    (goertzel, lambda n: (signal(n), np.array([3, 5, 11])), 60, 30000, ""),
    (lomb_scargle, lambda n: (np.arange(n) + 0.3 * np.sin(np.arange(n)), signal(n),
                              np.linspace(0.1, 1.5, n)), 30, 500, "published"),
    (haar, lambda n: (signal(n),), 32, 65536, "views"),
    (dct_denoise, lambda n: (np.outer(signal(n), signal(n)), n), 12, 200, ""),
    (dpss_like_multitaper, lambda n: (signal(n), 4), 50, 20000, ""),
)
