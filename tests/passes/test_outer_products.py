"""Products of a column and a row are elementwise, with the library's bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusec


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.uint8, np.bool_, complex])
def test_bits_and_zeros(dtype: Any) -> None:
    column = (np.arange(5) - 2).astype(dtype).reshape(5, 1)
    row = (np.arange(4) - 1).astype(dtype).reshape(1, 4)
    compiled = fusec.jit(lambda a, b: a @ b, fp="strict")
    got, want = compiled(column, row), column @ row
    np.testing.assert_array_equal(got, want, strict=True)
    if np.dtype(dtype).kind == "f":
        np.testing.assert_array_equal(np.signbit(got), np.signbit(want))
        special = np.array([[np.inf], [np.nan], [-0.0], [1e-310], [3.0]], dtype)
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(compiled(special, row), special @ row)
    (trace,) = compiled.traces
    assert len(trace.externs) == (0 if np.dtype(dtype).kind in "iuf" else 1)


def test_sums_of_them_are_one_kernel() -> None:
    def program(total: Any, a: Any, b: Any) -> Any:
        for k in range(4):
            total = total + a[:, k:k + 1] @ b[k:k + 1]
        return np.clip(total, -5, 5)

    rng = np.random.default_rng(0)
    total, a, b = rng.normal(size=(6, 7)), rng.normal(size=(6, 4)), rng.normal(size=(4, 7))
    compiled = fusec.jit(program)
    for n in (6, 9, 1):  # of other sizes, too
        a, total = rng.normal(size=(n, 4)), rng.normal(size=(n, 7))
        np.testing.assert_allclose(compiled(total, a, b), program(total, a, b), rtol=1e-13)
    assert all(not t.externs for t in compiled.traces)
