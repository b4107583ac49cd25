"""Filmic tone mapping of a photograph, in linear light.

Sources: the curve is J. Hable's, *Uncharted 2: HDR lighting* (Game Developers Conference 2010);
the transfer functions are those of sRGB, IEC 61966-2-1:1999.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..measuring.data import photo_of
from ..measuring.program import Program

EXPOSURE = 2.0
WHITE = 11.2


def srgb_to_linear(v: np.ndarray) -> np.ndarray:
    return np.where(v <= 0.04045, v / 12.92, ((v + 0.055) / 1.055) ** 2.4)


def linear_to_srgb(v: np.ndarray) -> np.ndarray:
    return np.where(v <= 0.0031308, 12.92 * v, 1.055 * v ** (1.0 / 2.4) - 0.055)


def hable(x: Any) -> Any:
    """Hable's curve with shoulder 0.15, linear 0.50 and 0.10, toe 0.20, 0.02 and 0.30."""
    return (x * (0.15 * x + 0.05) + 0.004) / (x * (0.15 * x + 0.50) + 0.06) - 0.02 / 0.30


def tone_map(image: np.ndarray) -> np.ndarray:
    """An sRGB image ``(h, w, 3)`` in [0, 1], exposed by two stops' worth and compressed again."""
    linear = srgb_to_linear(image) * EXPOSURE
    mapped = hable(linear) / hable(WHITE)
    return linear_to_srgb(np.clip(mapped, 0.0, 1.0))


def make_args(size: int, dtype: Any, seed: int) -> tuple[np.ndarray, ...]:
    """The photograph at about ``size`` pixels with sensor noise drawn by ``seed``."""
    image = photo_of(size)
    noise = np.random.default_rng(seed).normal(0.0, 0.002, image.shape)
    return (np.clip(image + noise, 0.0, 1.0).astype(dtype),)


PROGRAM = Program(
    name="tone_map", function=tone_map, make_args=make_args,
    sizes=(100, 4_096, 65_536, 262_144, 4_194_304), quick_sizes=(4_096, 262_144),
    description="filmic tone mapping of a photograph", elementwise=True, size_unit="pixels",
    source="Hable, Game Developers Conference (2010); IEC 61966-2-1:1999",
)
