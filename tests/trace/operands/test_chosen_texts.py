"""A text that data chooses: in exceptions it stands for all that it may be, elsewhere it is
refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.errors import FusecError

X = np.arange(3.0)
NUMBERS = {"big": 1, "small": 2}


def size(x: Any) -> str:
    if x[0] > 1:
        text = "big"
    elif x[0] > 0:
        text = "fair"
    else:
        text = "small"
    return text


def test_it_is_in_the_text_of_an_exception() -> None:
    @fusec.jit
    def f(x: Any) -> Any:
        if x[1] > 5:
            raise ValueError(f"too {size(x)}")
        return x * 2

    np.testing.assert_array_equal(f(X), X * 2)
    for scale in (10.0, 20.0):
        with pytest.raises(ValueError, match=r"too \{big or fair or small\}"):
            f(X * scale)


USES: list[Callable[[str], Any]] = [
    lambda t: t == "big", lambda t: t, len, lambda t: NUMBERS[t], lambda t: t[0],
    lambda t: t in ("big", "x"), lambda t: "b" in t, lambda t: t + "x",
    lambda t: t.startswith("b"), lambda t: np.sum(np.ones(2), dtype=t), hash,
    lambda t: sorted([t, "c"]), lambda t: t < "c", lambda t: getattr(np, t), lambda t: [*t],
    lambda t: max(t, "a"), float, lambda t: np.array([t]), lambda t: {t}, lambda t: {t: 1},
    lambda t: (t,) == ("big",), lambda t: ["big", "small"].index(t), lambda t: [{"k": {t: 2}}],
]


@pytest.mark.parametrize("use", USES, ids=range(len(USES)))
def test_other_uses_are_refused(use: Callable[[str], Any]) -> None:
    def f(x: Any) -> Any:
        return use(size(x))

    with pytest.raises(FusecError, match="only known when the compiled code runs"):
        fusec.jit(f)(X)


def test_one_that_may_be_empty_is_refused() -> None:
    @fusec.jit
    def f(x: Any) -> Any:
        text = ""
        if x[0] > 1:
            text = "big"
        return x if text else -x

    with pytest.raises(TypeError, match=r"(?s)different things in 'text'.*'big'.*''"):
        f(X)


def test_a_key_with_a_value_of_the_run_is_no_result() -> None:
    @fusec.jit
    def f(x: Any) -> Any:
        text = f"{x[0]}" if x[0] > 1 else f"{x[1]}"
        return {text: 1}

    with pytest.raises(FusecError, match="only known when the compiled code runs"):
        f(X)
