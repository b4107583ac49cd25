"""Sizes of 0 in exported functions: there is code for them beside any other size."""

from __future__ import annotations

import ctypes
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fusec

from .calling import CFunction
from .test_c_library import SPEC, V3, pytestmark

assert pytestmark
SIZES = (0, 1, 2, 5, 17, 40)


def product(a: Any, b: Any) -> Any:
    return a @ b


def covariance(x: Any) -> Any:
    return x.T @ x


def outer(x: Any, y: Any, z: Any) -> Any:
    return x[:, None, None] * y[None, :, None] + z


def sums(x: Any, y: Any) -> Any:
    return x.sum(axis=0) + 1.0, (x * y).sum()


CASES = [
    (product, "mk kn"), (product, "mk k"), (product, "k k"), (covariance, "mk"),
    (outer, "m k n"), (sums, "mk k"),
]


@pytest.mark.parametrize(("f", "axes"), CASES, ids=[f"{f.__name__} {a}" for f, a in CASES])
def test_every_size_beside_none(f: Any, axes: str, tmp_path: Path) -> None:
    """A product of matrices had code for two thirds of them: arrays without elements had no
    symbols, and loops without iterations were made for the lengths of the others."""
    shapes, names = axes.split(), sorted({*axes} - {" "})
    specs = tuple(SPEC((None,) * len(shape)) for shape in shapes)
    made = fusec.export_c({"fn": (f, specs)}, tmp_path / f"empty_{axes.replace(' ', '_')}", V3)
    call = CFunction(ctypes.CDLL(str(made.shared)), made.functions[0])
    for sizes in itertools.product(SIZES, repeat=len(names)):
        of = dict(zip(names, sizes, strict=True))
        given = [np.linspace(-1.0, 2.0, int(np.prod([of[c] for c in shape]))).reshape(
            [of[c] for c in shape]) for shape in shapes]
        code, found, _ = call(given)
        wanted = f(*given)
        assert not code, sizes
        for a, b in zip(found, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
            np.testing.assert_allclose(a.reshape(np.shape(b)), b, rtol=1e-12, atol=1e-12)
