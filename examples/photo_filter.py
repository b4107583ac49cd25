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
from fusec.bench.measuring.data import photo_of


def blurred(image: np.ndarray) -> np.ndarray:
    """The binomial taps 1 2 1 (/4) along both axes of ``(h, w, 3)``; the border stays as it is."""
    out = image.copy()
    out[1:-1] = 0.5 * image[1:-1] + 0.25 * (image[:-2] + image[2:])
    across = out.copy()
    across[:, 1:-1] = 0.5 * out[:, 1:-1] + 0.25 * (out[:, :-2] + out[:, 2:])
    return across


def compressed(v: np.ndarray, white: float) -> np.ndarray:
    """The tone curve of E. Reinhard et al., SIGGRAPH 2002, equation 4: ``white`` maps to 1."""
    return v * (1.0 + v / white**2) / (1.0 + v)


def enhance(image: np.ndarray, amount: float, exposure: float) -> np.ndarray:
    """An image ``(h, w, 3)`` in [0, 1], sharpened by ``amount``, then tone-mapped."""
    sharp = np.clip(image + amount * (image - blurred(image)), 0.0, 1.0)
    mapped = compressed(exposure * sharp**2.2, exposure)
    shown: np.ndarray = np.clip(mapped, 0.0, 1.0) ** (1.0 / 2.2)
    return shown


def save(folder: Path, name: str, image: np.ndarray) -> None:
    """Write ``(h, w, 3)`` in [0, 1] as an 8-bit PNG."""
    from skimage.io import imsave

    imsave(folder / name, np.round(255.0 * image).astype(np.uint8), check_contrast=False)


def main(pixels: int = 1_000_000) -> Path:
    """Enhance about ``pixels`` pixels; returns the folder with the two pictures."""
    noise = np.random.default_rng(1).normal(0.0, 0.002, photo_of(pixels).shape)
    image = np.clip(photo_of(pixels) + noise, 0.0, 1.0)  # more than 256 different values
    compiled = fusec.jit(enhance)
    result = compiled(image, 1.5, 4.0)
    print(f"{image.shape[0]} x {image.shape[1]} pixels; largest difference from NumPy "
          f"{np.abs(result - enhance(image, 1.5, 4.0)).max():.1e}")
    print(fusec.benchmark(compiled, image, 1.5, 4.0, time_budget_s=0.5))
    folder = Path(tempfile.mkdtemp(prefix="fusec-photo-"))
    save(folder, "before.png", image)
    save(folder, "after.png", result)
    print(f"wrote {folder / 'before.png'} and {folder / 'after.png'}")
    return folder


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
