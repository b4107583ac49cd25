"""Functions of exactly ten operations on two arrays, for timing cold compiles."""

from __future__ import annotations

from typing import Any

import numpy as np


def warm_up(a: Any, b: Any) -> Any:
    return np.exp(-a) * (a + b) / np.sqrt(1.0 + b * b) - np.abs(a)


def damped_wave(a: Any, b: Any) -> Any:
    return np.exp(-a) * np.cos(b) + np.sqrt(a * a + b) - 2.0 * a


def logistic_ridge(a: Any, b: Any) -> Any:
    return 1.0 / (1.0 + np.exp(a * b - 0.25)) + 0.125 * (a * a + b * b)


def soft_contact(a: Any, b: Any) -> Any:
    gap = a - b
    return np.maximum(gap, 0.0) * np.tanh(gap * 3.0) + np.log(b) * np.abs(a - 1.5)


def lens(a: Any, b: Any) -> Any:
    r = np.sqrt(a * a + b * b)
    return a / r - np.sin(r) * np.exp(-r)


def plasma(a: Any, b: Any) -> Any:
    return np.sin(a + b) * np.cos(a - b) + np.tanh(a * b) / (0.5 + a)


FUNCTIONS = (warm_up, damped_wave, logistic_ridge, soft_contact, lens, plasma)
