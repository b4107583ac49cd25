"""How well does each spot of a plate conduct?  The map of diffusivities, from three photographs of
its temperature:  python examples/diffusivity.py [CELLS [STEPS]]

The heat equation is stepped in place, as one writes it in NumPy; `fusec.value_and_grad` goes back
through all steps, for SciPy's L-BFGS.
"""

import sys

import numpy as np
from scipy.optimize import minimize

import fusec

PHOTOGRAPHS, NOISE = 3, 0.002
RATIO = 0.2  # of a time step over the square of a cell: stable up to a diffusivity of 1.25


def heat(u: np.ndarray, k: np.ndarray, steps: int) -> None:
    """Steps of the heat equation ``du/dt = div(k grad u)`` on ``u`` (n, n), whose rim is insulated.

    ``k`` (n, n): the diffusivity of each cell; between two cells it is their mean.
    """
    down, right = 0.5 * (k[1:] + k[:-1]), 0.5 * (k[:, 1:] + k[:, :-1])
    for _ in range(steps):
        flux, across = down * (u[1:] - u[:-1]), right * (u[:, 1:] - u[:, :-1])
        u[:-1] += RATIO * flux
        u[1:] -= RATIO * flux
        u[:, :-1] += RATIO * across
        u[:, 1:] -= RATIO * across


def photographs(k: np.ndarray, start: np.ndarray, steps: int) -> np.ndarray:
    """Temperatures (photographs, n, n) at equal intervals of ``steps`` steps."""
    u, seen = start.copy(), np.zeros((PHOTOGRAPHS, *start.shape))
    for number in range(PHOTOGRAPHS):
        heat(u, k, steps)
        seen[number] = u
    return seen


def misfit(log_k: np.ndarray, start: np.ndarray, seen: np.ndarray, steps: int) -> np.floating:
    """Minus the logarithm of a probability: of the observations, and of maps with so many edges."""
    k = log_k.reshape(start.shape)
    below, beside = k[1:, :-1] - k[:-1, :-1], k[:-1, 1:] - k[:-1, :-1]
    edges = np.sqrt(below ** 2 + beside ** 2 + 1e-4).sum()  # total variation, without its corner
    difference = photographs(np.exp(k), start, steps) - seen
    total: np.floating = 0.5 * (difference ** 2).sum() / NOISE ** 2 + 10.0 * edges
    return total


def plate(cells: int) -> tuple[np.ndarray, np.ndarray]:
    """The diffusivities of a plate with a bar and a disc, and temperatures with hot spots."""
    y, x = (np.mgrid[:cells, :cells] + 0.5) / cells
    k = np.where((np.abs(x - 0.3) < 0.08) & (np.abs(y - 0.5) < 0.35), 1.0, 0.4)
    k = np.where((x - 0.7) ** 2 + (y - 0.45) ** 2 < 0.03, 0.1, k)
    return k, np.cos(4 * np.pi * x) * np.cos(4 * np.pi * y) + np.cos(np.pi * x) + y


def found(k: np.ndarray, start: np.ndarray, steps: int) -> np.ndarray:
    """The diffusivities by photographs of this plate, each with noise."""
    seen = photographs(k, start, steps)
    seen += np.random.default_rng(0).normal(0, NOISE, seen.shape)
    best = minimize(fusec.value_and_grad(misfit), np.full(k.size, np.log(0.4)), jac=True,
                    args=(start, seen, steps), method="L-BFGS-B", options={"maxiter": 300})
    print(f"{k.size} diffusivities after {best.nfev} gradients through {PHOTOGRAPHS * steps} steps")
    return np.asarray(np.exp(best.x).reshape(k.shape))


def main(cells: int = 48, steps: int = 60) -> float:
    """The median relative error of the diffusivities that are found."""
    k, start = plate(cells)
    error = float(np.median(np.abs(found(k, start, steps) / k - 1)))
    print(f"median error {error:.1%}")
    return error


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
