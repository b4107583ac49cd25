"""Sharpen and tone-map a real photograph, compiled against plain NumPy.

    python examples/photo_filter.py [PIXELS]

Needs the `bench` extra (the photograph ships in scikit-image).  Writes before.png and after.png to
a fresh temporary folder and prints where.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

import fusec
from fusec.bench.data import photo_of


def blurred(image: np.ndarray) -> np.ndarray:
    """The binomial taps 1 2 1 (/4) along both axes of ``(h, w, 3)``; the border stays as it is."""
    out = image.copy()
    out[1:-1] = 0.5 * image[1:-1] + 0.25 * (image[:-2] + image[2:])
    across = out.copy()
    across[:, 1:-1] = 0.5 * out[:, 1:-1] + 0.25 * (out[:, :-2] + out[:, 2:])
    return across


def filmic(v: np.ndarray) -> np.ndarray:
    """J. Hable's tone curve (Game Developers Conference 2010), without its constant factor."""
    return (v * (0.15 * v + 0.05) + 0.004) / (v * (0.15 * v + 0.50) + 0.06) - 0.02 / 0.30


def enhance(image: np.ndarray, amount: float, exposure: float) -> np.ndarray:
    """An image ``(h, w, 3)`` in [0, 1], sharpened by ``amount``, then tone-mapped."""
    sharp = np.clip(image + amount * (image - blurred(image)), 0.0, 1.0)
    mapped = filmic(exposure * sharp**2.2) / filmic(11.2)
    return np.clip(mapped, 0.0, 1.0) ** (1.0 / 2.2)


def save(folder: Path, name: str, image: np.ndarray) -> None:
    """Write ``(h, w, 3)`` in [0, 1] as an 8-bit PNG."""
    from skimage.io import imsave

    imsave(folder / name, np.round(255.0 * image).astype(np.uint8), check_contrast=False)


def main(pixels: int = 1_000_000) -> Path:
    """Enhance about ``pixels`` pixels; returns the folder with the two pictures."""
    image = photo_of(pixels)
    compiled = fusec.jit(enhance)
    result = compiled(image, 1.5, 2.0)
    print(f"{image.shape[0]} x {image.shape[1]} pixels; largest difference from NumPy "
          f"{np.abs(result - enhance(image, 1.5, 2.0)).max():.1e}")
    print(fusec.benchmark(compiled, image, 1.5, 2.0, time_budget_s=0.5))
    folder = Path(tempfile.mkdtemp(prefix="fusec-photo-"))
    save(folder, "before.png", image)
    save(folder, "after.png", result)
    print(f"wrote {folder / 'before.png'} and {folder / 'after.png'}")
    return folder


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
