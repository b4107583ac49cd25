"""Influenza in a boarding school in 1978: an ordinary NumPy model, fitted by `scipy.optimize`.

    python examples/epidemic.py

``minimize(jac=True)`` takes a function that returns a value and its gradient, as
`fusec.value_and_grad` makes of the model; its `fusec.hessian` serves Newton's method, and says how
certain the result is.
Model: W. O. Kermack and A. G. McKendrick, Proc. R. Soc. A 115 (1927).  Data: Anonymous, Influenza
in a boarding school, British Medical Journal 1 (1978) 587.
"""

import numpy as np
from scipy.optimize import minimize

import fusec

BOYS = 763.0
IN_BED = np.array([3.0, 8, 26, 76, 225, 298, 258, 233, 189, 128, 68, 29, 14, 4])  # each day
STEPS = 12  # a day


def rates(state: np.ndarray, contact: float, recovery: float) -> np.ndarray:
    """By how many (susceptible, ill) change in a day, where there are so many."""
    infections = contact * state[0] * state[1] / BOYS
    return np.array([-infections, infections - recovery * state[1]])


def course(logs: np.ndarray, days: int) -> np.ndarray:
    """The number of ill boys (days,), by Runge and Kutta's method of fourth order.

    ``logs`` (3,): logarithms of contacts a day, recoveries a day, and boys ill on the first day.
    """
    contact, recovery, first = np.exp(logs)
    state, ill, h = np.array([BOYS - first, first]), np.zeros(days), 1.0 / STEPS
    for day in range(days):
        ill[day] = state[1]
        for _ in range(STEPS):
            k1 = rates(state, contact, recovery)
            k2 = rates(state + 0.5 * h * k1, contact, recovery)
            k3 = rates(state + 0.5 * h * k2, contact, recovery)
            k4 = rates(state + h * k3, contact, recovery)
            state += h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
    return ill


def surprise(logs: np.ndarray) -> np.floating:
    """Minus the logarithm of the data's probability, up to a constant: counts are Poisson's."""
    ill = course(logs, len(IN_BED))
    total: np.floating = (ill - IN_BED * np.log(ill)).sum()
    return total


def fitted() -> tuple[np.ndarray, np.ndarray]:
    """The most likely logarithms (3,), and their standard deviations (3,)."""
    hessian = fusec.hessian(surprise)
    best = minimize(fusec.value_and_grad(surprise), np.log([1.0, 0.5, 1.0]), jac=True,
                    hess=hessian, method="trust-exact")
    print(f"{best.nfev} steps of Newton's method")
    return best.x, np.sqrt(np.diag(np.linalg.inv(hessian(best.x))))


def main() -> np.ndarray:
    """Contacts a day, recoveries a day and boys ill on the first day."""
    logs, spread = fitted()
    values: np.ndarray = np.exp(logs)
    for name, value, error in zip(("contacts a day", "recoveries a day", "ill on the first day"),
                                  values, values * spread, strict=True):
        print(f"{name:21} {value:.3f} +- {error:.3f}")
    print(f"a boy infects {values[0] / values[1]:.2f} others")
    return values


if __name__ == "__main__":
    main()
