"""Real data that ships inside installed packages; nothing here touches the network."""

from __future__ import annotations

import functools
import math

import numpy as np


@functools.cache
def photo() -> np.ndarray:
    """scikit-image's ``astronaut``: ``(512, 512, 3)`` float64 in [0, 1] (NASA, public domain)."""
    from skimage import data

    image = data.astronaut().astype(np.float64) / 255.0
    image.flags.writeable = False
    return image


def photo_of(pixels: int) -> np.ndarray:
    """The photograph cropped or mirrored-and-tiled to about ``pixels`` pixels, square."""
    side = max(8, math.isqrt(pixels))
    image = photo()
    while image.shape[0] < side:
        image = np.concatenate([image, image[::-1]], axis=0)
        image = np.concatenate([image, image[:, ::-1]], axis=1)
    return image[:side, :side]


@functools.cache
def digits() -> tuple[np.ndarray, np.ndarray]:
    """scikit-learn's ``digits``: images ``(1797, 64)`` of 0…16 and their labels ``(1797,)``."""
    from sklearn.datasets import load_digits

    return load_digits(return_X_y=True)


def digits_of(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """``rows`` digits drawn by ``seed``; with repetition when there are more rows than digits."""
    images, labels = digits()
    rng = np.random.default_rng(seed)
    chosen = rng.choice(len(images), rows, replace=rows > len(images))
    return images[chosen], labels[chosen]
