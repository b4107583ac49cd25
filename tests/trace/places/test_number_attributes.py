"""Python numbers have the attributes of Python's numbers, not those of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusec

NUMBERS = (True, 3, 1.5, 1 + 2j)
NAMES = ("dtype", "shape", "ndim", "size", "T", "astype", "sum", "item", "flat", "trace", "strides")


def rank(x: Any) -> int:
    return getattr(x, "ndim", 7)


def is_array(x: Any) -> bool:
    return hasattr(x, "shape") and hasattr(x, "__len__")


def described(x: Any) -> Any:
    try:
        return x.shape
    except AttributeError:
        return ()


def of_each(x: Any) -> Any:
    return [rank(v) for v in (x, x + 1, np.asarray(x))]


@pytest.mark.parametrize("f", [rank, is_array, described, of_each])
@pytest.mark.parametrize("x", [*NUMBERS, np.float64(1), np.ones(3)], ids=str)
def test_what_programs_ask_of_numbers(f: Any, x: Any) -> None:
    assert fusec.jit(f)(x) == f(x)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("x", NUMBERS, ids=str)
def test_missing_attributes(name: str, x: Any) -> None:
    with pytest.raises(AttributeError, match=f"'{type(x).__name__}' object has no attribute"):
        fusec.jit(lambda x: getattr(x, name))(x)


def test_parts_of_numbers() -> None:
    def f(x: Any) -> Any:
        same = np.allclose(x, x)
        return (same.real, same.imag, same.conjugate(), np.imag(same), x.real, x.imag,
                x.conjugate(), np.imag(x))

    for x in NUMBERS:
        want, got = f(x), fusec.jit(f)(x)
        assert got == want
        assert list(map(type, got)) == list(map(type, want))


def test_comparisons_of_numpys_own_code() -> None:
    """Seed 131038255: ``np.isclose`` asks whether an operand has a dtype."""
    x, y = np.float32(-np.inf), complex(1.0, 1.7976931348623157e308)
    with np.errstate(all="ignore"):
        assert fusec.jit(lambda x, y: np.isclose(x, y))(x, y)
