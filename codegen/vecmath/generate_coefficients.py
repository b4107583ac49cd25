"""Generates ``coefficients.py``: minimax polynomials and split constants, for both formats.

``python -m fusec.codegen.vecmath.generate_coefficients > codegen/vecmath/coefficients.py``

Polynomials minimise the largest weighted error by Remez' second exchange algorithm (Remez 1934;
Muller, "Elementary Functions", 3rd ed., chapter 3), worked in 60 digits on a grid.  The degree is
the least that reaches the target; ``weight`` turns the error into one relative to the result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import mpmath
import numpy as np
from mpmath import mpf

GRID = 400
Real = Callable[[mpf], mpf]


@dataclass(frozen=True)
class Fit:
    """``target(z)`` on [low, high]; ``weight(z)*error`` must stay under ``2**-bits``."""

    name: str
    target: Real
    weight: Real
    low: mpf
    high: mpf
    bits64: int
    bits32: int  # 0: float32 has no use for it


def chebyshev_grid(low: mpf, high: mpf, count: int) -> list[mpf]:
    """Ascending points, denser at the ends; the ends themselves are left out."""
    middle, half = (low + high) / 2, (high - low) / 2
    return [
        middle - half * mpmath.cos(mpmath.pi * (i + mpf(1) / 2) / count) for i in range(count)
    ]


def solve(points: list[int], grid: list[mpf], f: list[mpf], w: list[mpf]) -> list[mpf]:
    """Coefficients whose weighted error alternates, with one size, over the given points."""
    n = len(points) - 1
    rows = [
        [grid[p] ** j for j in range(n)] + [(-1) ** i / w[p]] for i, p in enumerate(points)
    ]
    return list(mpmath.lu_solve(mpmath.matrix(rows), mpmath.matrix([f[p] for p in points])))[:n]


def horner(c: list[mpf], x: mpf) -> mpf:
    total = mpf(0)
    for coefficient in reversed(c):
        total = total * x + coefficient
    return total


def errors(c: list[mpf], grid: list[mpf], f: list[mpf], w: list[mpf]) -> list[mpf]:
    return [
        wi * (horner(c, x) - fi) for x, fi, wi in zip(grid, f, w, strict=True)
    ]


def alternation(error: list[mpf], count: int) -> list[int]:
    """Indices of ``count`` extrema of alternating sign, the weakest ends dropped."""
    peaks: list[int] = []
    for i, e in enumerate(error):
        if peaks and (error[peaks[-1]] > 0) == (e > 0):
            if abs(e) > abs(error[peaks[-1]]):
                peaks[-1] = i
        else:
            peaks.append(i)
    while len(peaks) > count:
        del peaks[0 if abs(error[peaks[0]]) < abs(error[peaks[-1]]) else -1]
    return peaks


def remez(fit: Fit, count: int) -> tuple[list[mpf], mpf]:
    """The ``count`` coefficients of the minimax polynomial and its weighted error."""
    grid = chebyshev_grid(fit.low, fit.high, GRID)
    f, w = [fit.target(x) for x in grid], [fit.weight(x) for x in grid]
    points = [min(GRID - 1, (2 * i + 1) * GRID // (2 * (count + 1))) for i in range(count + 1)]
    for _ in range(12):
        c = solve(points, grid, f, w)
        error = errors(c, grid, f, w)
        extrema = alternation(error, count + 1)
        if len(extrema) <= count or extrema == points:
            break
        points = extrema
    return c, max(abs(e) for e in error)


def least(fit: Fit, bits: int) -> list[mpf]:
    """The shortest polynomial that reaches the target; raises when 30 terms do not."""
    for count in range(2, 31):
        c, error = remez(fit, count)
        if error < mpf(2) ** -bits:
            return c
    raise ArithmeticError(f"{fit.name}: 30 coefficients do not reach 2**-{bits}")


def odd_part(f: Real, *first: mpf) -> Real:
    """``z -> (f(s) - first[0]*s - first[1]*s**3 ...)/s**(2*len(first)+1)`` with ``s*s == z``."""
    def rest(z: mpf) -> mpf:
        s = mpmath.sqrt(z)
        lead = sum(c * s ** (2 * i + 1) for i, c in enumerate(first))
        return (f(s) - lead) / s ** (2 * len(first) + 1)
    return rest


def relative_odd(f: Real, power: int) -> Real:
    """The weight that makes the error of ``odd_part`` relative to ``f``."""
    return lambda z: mpmath.sqrt(z) ** power / abs(f(mpmath.sqrt(z)))


def twice_atanh(s: mpf) -> mpf:
    return 2 * mpmath.atanh(s)


def scaled_erfcx(t: mpf) -> mpf:
    """``(1 + 2*x)*exp(x*x)*erfc(x)`` with ``t = (x - 4)/(x + 4)``: smooth for all ``x >= 0``."""
    x = 4 * (1 + t) / (1 - t)
    return (1 + 2 * x) * mpmath.exp(x * x) * mpmath.erfc(x)


def log_gamma_at_two(d: mpf) -> mpf:
    """``(lgamma(2 + d)/d - (1 - euler))/d``."""
    return (mpmath.loggamma(2 + d) / d - (1 - mpmath.euler)) / d


def stirling(z: mpf) -> mpf:
    """``x`` times the rest of Stirling's formula for log gamma at ``x``, with ``z = 1/(x*x)``."""
    x = 1 / mpmath.sqrt(z)
    lead = (x - mpf(1) / 2) * mpmath.log(x) - x + mpmath.log(2 * mpmath.pi) / 2
    return (mpmath.loggamma(x) - lead) * x


def sine_of_pi(z: mpf) -> mpf:
    """``sin(pi*f)/(pi*f)`` with ``z = f*f``."""
    return mpmath.sinc(mpmath.pi * mpmath.sqrt(z))


def log_gamma_fits() -> list[Fit]:
    """log gamma in float64, and to fewer digits for float32, which works in float64."""
    half, large = mpf("0.501"), 1 / mpf("8.4") ** 2
    parts = (
        ("log_gamma", log_gamma_at_two, lambda d: d**2 / mpmath.loggamma(2 + d),
         -half, half, 57, 34),
        ("stirling", stirling, lambda z: mpmath.sqrt(z) / 8, mpf(0), large, 60, 34),
        ("sine_of_pi", sine_of_pi, lambda z: mpf(1), mpf(0), half**2, 58, 34),
    )
    return [Fit(name + suffix, target, weight, low, high, (bits, mid)[suffix == "_mid"], 0)
            for name, target, weight, low, high, bits, mid in parts for suffix in ("", "_mid")]


def fits() -> list[Fit]:
    ln2, pi, two = mpmath.ln(2), mpmath.pi, mpf(2)
    root = mpmath.sqrt(two)
    s_max, f_max = (root - 1) / (root + 1) * mpf("1.001"), (root - 1) * mpf("1.001")
    r = ln2 / 2 * mpf("1.002")
    trig = (pi / 4 * mpf("1.01")) ** 2
    return [
        # exp(r) = 1 + r + r*r*(1/2 + r*q(r)); the weight makes it fit for expm1 too
        Fit("exp", lambda x: (mpmath.expm1(x) - x - x**2 / 2) / x**3,
            lambda x: abs(x**3 / mpmath.expm1(x)), -r, r, 58, 29),
        # the same for exp alone, to fewer digits where it is nearly 1
        Fit("exp_short", lambda x: (mpmath.expm1(x) - x - x**2 / 2) / x**3, lambda x: abs(x**3),
            -r, r, 0, 28),
        # log((1+s)/(1-s)) = 2*s + s*z*q(z), z = s*s
        Fit("log", odd_part(twice_atanh, two), relative_odd(twice_atanh, 3),
            mpf(0), s_max**2, 60, 30),
        # the same with the s**3 term split off as well, for twice the precision
        Fit("log_pair", odd_part(twice_atanh, two, two / 3), relative_odd(twice_atanh, 5),
            mpf(0), s_max**2, 68, 36),
        # log(1 + f) = f - f*f/2 + f**3*q(f)
        Fit("log_short", lambda f: (mpmath.log1p(f) - f + f**2 / 2) / f**3,
            lambda f: abs(f**3 / mpmath.log1p(f)), -f_max / root, f_max, 0, 29),
        # float32's log gamma works in float64, to fewer digits
        Fit("log_mid", odd_part(twice_atanh, two), relative_odd(twice_atanh, 3),
            mpf(0), s_max**2, 40, 0),
        Fit("exp2", lambda x: (two**x - 1 - x * ln2) / x**2, lambda x: x**2,
            mpf("-0.501"), mpf("0.501"), 57, 28),
        Fit("sinh", odd_part(mpmath.sinh, mpf(1)), relative_odd(mpmath.sinh, 3),
            mpf(0), mpf("1.001"), 58, 29),
        Fit("tanh", odd_part(mpmath.tanh, mpf(1)), relative_odd(mpmath.tanh, 3),
            mpf(0), mpf("0.3907"), 0, 27),
        Fit("inverse_cbrt", lambda f: (1 + f) ** (-mpf(1) / 3), lambda f: mpf(1),
            1 / mpmath.sqrt(two) - 1, mpmath.sqrt(two) - 1, 14, 8),
        Fit("arctan", odd_part(mpmath.atan, mpf(1)), relative_odd(mpmath.atan, 3),
            mpf(0), mpf("0.415") ** 2, 58, 29),
        Fit("arcsin", odd_part(mpmath.asin, mpf(1)), relative_odd(mpmath.asin, 3),
            mpf(0), mpf("0.2501"), 58, 29),
        # erf(x) = x + x*q(x*x) below 1, 1 - erfc(1)*exp(-t*p(t)), t = x - 1, above
        Fit("erf", lambda z: mpmath.erf(mpmath.sqrt(z)) / mpmath.sqrt(z) - 1,
            lambda z: mpmath.sqrt(z) / mpmath.erf(mpmath.sqrt(z)), mpf(0), mpf("1.001"), 58, 29),
        Fit("erfc", lambda t: mpmath.log(mpmath.erfc(1) / mpmath.erfc(t + 1)) / t,
            lambda t: t * mpmath.erfc(t + 1), mpf(0), mpf(5), 57, 28),
        # (1 + 2*x)*exp(x*x)*erfc(x) = c + t*q(t), t = (x - 4)/(x + 4)
        Fit("erfcx", lambda t: (scaled_erfcx(t) - scaled_erfcx(mpf(0))) / t,
            lambda t: abs(t) / scaled_erfcx(t), mpf(-1), mpf(1), 57, 28),
        *log_gamma_fits(),
        Fit("sin", odd_part(mpmath.sin, mpf(1)), relative_odd(mpmath.sin, 3), mpf(0), trig, 58, 29),
        Fit("cos", lambda z: (mpmath.cos(mpmath.sqrt(z)) - 1 + z / 2) / z**2,
            lambda z: z**2, mpf(0), trig, 58, 29),
    ]


def rounded(value: mpf, bits: int) -> float:
    """``value`` to the nearest number of ``bits`` mantissa bits."""
    with mpmath.workprec(bits):
        return float(+value)


def parts(value: mpf, *bits: int) -> tuple[float, ...]:
    """A sum of floats equal to ``value`` to ever more digits, each of the given length."""
    out = []
    for count in bits:
        out.append(rounded(value, count))
        value = value - mpf(out[-1])
    return tuple(out)


def constants() -> dict[str, tuple[mpf, tuple[int, ...], tuple[int, ...]]]:
    """name: (value, lengths of the parts in float64, in float32)."""
    ln2 = mpmath.ln(2)
    return {
        # the first part times any exponent is exact
        "ln2": (ln2, (42, 53), (15, 24)),
        "log2e": (1 / ln2, (53, 53), (24, 24)),
        "ln2_pair": (ln2, (53, 53), (24, 24)),
        "log10_2": (mpmath.log10(2), (42, 53), (15, 24)),
        "log10e": (1 / mpmath.ln(10), (53, 53), (24, 24)),
        "erfc_one": (mpmath.erfc(1), (53,), (24,)),
        "erfcx_four": (scaled_erfcx(mpf(0)), (53, 53), (24, 24)),
        "log_gamma_slope": (1 - mpmath.euler, (53, 53), (24, 24)),
        "root_half": (mpmath.sqrt(mpf(1) / 2), (53, 53), (24, 24)),
        "half_log_two_pi": (mpmath.log(2 * mpmath.pi) / 2, (53,), (24,)),
        "log2_10": (mpmath.log(10, 2), (53,), (24,)),
        "ln10": (mpmath.ln(10), (53, 53), (24, 24)),
        "pio4": (mpmath.pi / 4, (53, 53), (24, 24)),
        "pio2": (mpmath.pi / 2, (53, 53, 53), (24, 24, 24)),
        "two_thirds": (mpf(2) / 3, (53, 53), (24, 24)),
    }


def two_over_pi(words: int) -> list[int]:
    """64 zero bits, then the bits of 2/pi, in 64-bit words, the highest first."""
    with mpmath.workprec(64 * words + 200):
        whole = int(mpmath.floor(2 / mpmath.pi * mpf(2) ** (64 * (words - 1))))
    mask = (1 << 64) - 1
    return [(whole >> (64 * (words - 1 - i))) & mask for i in range(words)]


def show(name: str, values: tuple[float, ...] | list[float]) -> str:
    body = "".join(f"        {v.hex()!r},\n" for v in values)
    return f'    "{name}": _floats(\n{body}    ),\n'


def table(single: bool) -> str:
    text = "".join(
        show(name, parts(value, *(short if single else long)))
        for name, (value, long, short) in constants().items()
    )
    for fit in fits():
        bits = fit.bits32 if single else fit.bits64
        if not bits:
            continue
        coefficients = least(fit, bits)
        text += show(fit.name, [float(np.float32(float(c))) if single else float(c)
                                for c in coefficients])
    return text


HEADER = '''"""Generated by ``generate_coefficients.py``; do not edit.

Minimax polynomials (constant term first) and constants split into parts, per float format.
"""

from __future__ import annotations


def _floats(*texts: str) -> tuple[float, ...]:
    return tuple(float.fromhex(t) for t in texts)


'''


def main() -> None:
    mpmath.mp.dps = 60
    words = "".join(f"    0x{w:016X},\n" for w in two_over_pi(22))
    print(HEADER, end="")
    print("TABLES: dict[str, dict[str, tuple[float, ...]]] = {}")
    for name, single in (("f64", False), ("f32", True)):
        print(f'TABLES["{name}"] = {{\n{table(single)}}}')
    print(f"\n# 64 zero bits, then the bits of 2/pi, highest word first\nTWO_OVER_PI = (\n{words})")


if __name__ == "__main__":
    main()
