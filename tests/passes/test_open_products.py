"""Small products inside loops are sums of products, and round as NumPy's do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusec

SHAPES = (((2, 3000), (3000, 2)), ((2, 3000), (3000,)), ((3000,), (3000, 2)), ((3000,), (3000,)),
          ((1, 3000), (3000, 2)), ((2, 3000), (3000, 1)))


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_halves_are_added_up_in_singles(shapes: tuple[tuple[int, ...], ...]) -> None:
    """In float16 3,000 ones are 2,048."""
    def f(x: Any, w: Any, count: Any) -> Any:
        product = x @ w
        for _ in range(count):
            product = x @ w
        return product

    x, w = (np.ones(shape, np.float16) for shape in shapes)
    for device in ("/device:CPU:0", "/device:CUDAHOST:0"):
        got = fusec.jit(f, device=device)(x, w, np.int64(2))
        assert got.dtype == np.float16
        np.testing.assert_array_equal(got, np.full_like(x @ w, 3000))
