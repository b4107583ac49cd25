"""Rules in float32 and complex64: derivatives keep the dtypes of their operands, and are those
of double precision but for rounding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import test_array_rules
import test_linear_algebra_rules
import test_order_rules
import test_product_rules
import test_scipy_rules
from rule_harness import Derivatives, random_like

NARROW = {"f8": "f4", "c16": "c8"}
MODULES = (test_array_rules, test_linear_algebra_rules, test_order_rules, test_product_rules,
           test_scipy_rules)
CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    f"{module.__name__.removeprefix('test_')}: {name}": case
    for module in MODULES for name, case in module.PROGRAMS.items()}


def narrowed(a: Any) -> Any:
    return a.astype(NARROW.get(a.dtype.str[1:], a.dtype)) if isinstance(a, np.ndarray) else a


@pytest.mark.parametrize("name", CASES)
def test_derivatives_in_single_precision(name: str) -> None:
    program, arguments = CASES[name]
    wide = Derivatives(program, arguments)
    narrow = Derivatives(program, [narrowed(a) for a in arguments])
    rng = np.random.default_rng(0)
    v = random_like(rng, [wide.arguments[k] for k in wide.variables])
    u = random_like(rng, wide.values(wide.arguments))
    like = narrow.values(narrow.arguments)
    pairs = [
        *zip(narrow.pushed([narrowed(t) for t in v]), wide.pushed(v), strict=True),
        *zip(narrow.pulled([t.astype(y.dtype) for t, y in zip(u, like, strict=True)]),
             wide.pulled(u), strict=True)]
    for found, right in pairs:
        size = 1 + np.max(np.abs(right), initial=0)
        np.testing.assert_allclose(found, right, rtol=2e-2, atol=2e-3 * size)
