"""Price a book of options and find its risk, one fused kernel for ten results.

    python examples/black_scholes.py [OPTIONS]

The formulas are those of the benchmark program `black_scholes` (prices and greeks, see its source
for the papers); this program runs them as a user would and looks at the kernels.
"""

from __future__ import annotations

import sys

import numpy as np

import fusec
from fusec.bench.programs.black_scholes import black_scholes, make_args

NAMES = ("call", "put", "call delta", "put delta", "gamma", "vega", "call theta", "put theta",
         "call rho", "put rho")


def book_risk(
    position: np.ndarray, spot: np.ndarray, strike: np.ndarray, years: np.ndarray,
    rate: np.ndarray, volatility: np.ndarray,
) -> tuple[np.ndarray, ...]:
    """Per option call value and delta, and the book's value, delta, gamma and vega in total."""
    call, _, delta, _, gamma, vega, *_ = black_scholes(spot, strike, years, rate, volatility)
    return (
        call, delta, (position * call).sum(), (position * delta).sum(), (position * gamma).sum(),
        (position * vega).sum(),
    )


def show_price() -> None:
    """The textbook option: at the money, one year, 5 % interest, 20 % volatility."""
    price = fusec.jit(black_scholes)
    greeks = price(*(np.array([v]) for v in (100.0, 100.0, 1.0, 0.05, 0.2)))
    for name, value in zip(NAMES, greeks, strict=True):
        print(f"  {name:10} {value[0]:10.4f}")


def main(options: int = 300_000) -> list[np.ndarray]:
    """Price ``options`` random options; returns the book's totals."""
    show_price()
    args = make_args(options, np.float64, seed=7)
    position = np.random.default_rng(8).normal(0.0, 10.0, options)
    compiled = fusec.jit(book_risk)
    _, _, *totals = compiled(position, *args)
    for name, value in zip(("value", "delta", "gamma", "vega"), totals, strict=True):
        print(f"  book {name:6} {value:16,.3f}")
    for kernel in compiled.traces[0].kernels:
        loaded, stored = (sum(b.values()) for b in (kernel.bytes_loaded, kernel.bytes_stored))
        print(f"{kernel.name}: {kernel.ops} operations, {loaded:,} bytes in, {stored:,} bytes out")
    print(fusec.benchmark(compiled, position, *args, time_budget_s=0.5))
    return totals


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
