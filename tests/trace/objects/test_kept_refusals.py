"""Refusals that code catches which is not converted: an attribute's, a key's, a ``finally`` that is
left.  They were lost, and the result was that of the handler."""

from __future__ import annotations

import contextlib
import functools
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.errors import ConcreteValueError, UnsupportedError

PRICES = {1: 2.0, 2: 3.0}


def price(x: Any) -> Any:
    try:
        return PRICES[int(x)]
    except Exception:
        return -1.0


class Item:
    def __init__(self, x: Any) -> None:
        self.x = x

    def __getattr__(self, name: str) -> Any:
        if name == "late":
            return price(self.x)
        raise AttributeError(name)

    def __format__(self, spec: str) -> str:
        return str(price(self.x))

    def __eq__(self, other: object) -> bool:
        return bool(price(self.x) == other)

    __hash__ = None  # type: ignore[assignment]

    @property
    def price(self) -> Any:
        return price(self.x)


class Priced(type):
    def __call__(cls, x: Any) -> Any:
        return price(x)


class Good(metaclass=Priced):
    pass


class Missing(dict):
    x: Any = None

    def __missing__(self, key: str) -> Any:
        return price(self.x)


def of_a_missing_key(x: Any) -> Any:
    items = Missing()
    items.x = x
    return items["a"]


def in_a_text(x: Any) -> Any:
    return eval("price(x)", {"price": price, "x": x})


def broken_off(x: Any) -> Any:
    found = 0.0
    for _ in range(1):
        try:
            found = PRICES[int(x)]
        finally:
            break  # noqa: B012
    return found


def returned(x: Any) -> Any:
    found = 0.0
    try:
        found = PRICES[int(x)]
    finally:
        return found  # noqa: B012


@contextlib.contextmanager
def left() -> Iterator[None]:
    try:
        yield
    finally:
        return  # noqa: B012


def in_a_manager(x: Any) -> Any:
    found = 0.0
    with left():
        found = PRICES[int(x)]
    return found + 1.0


def in_a_stack(x: Any) -> Any:
    found = 0.0
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.suppress(Exception))
        found = PRICES[int(x)]
    return found + 1.0


def in_a_group(x: Any) -> Any:
    try:
        return PRICES[int(x)]
    except* TypeError:
        found = -2.0
    return found


def in_a_generator(x: Any) -> Any:
    def items() -> Iterator[Any]:
        try:
            yield PRICES[int(x)]
        finally:
            return  # noqa: B012

    return sum(items(), 0.0)


CATCHING: dict[str, Callable[[Any], Any]] = {
    "__getattr__": lambda x: Item(x).late,
    "getattr": lambda x: getattr(Item(x), "late", 5.0),
    "property": lambda x: Item(x).price,
    "format": lambda x: float(f"{Item(x)}"),
    "in": lambda x: 1.0 * (Item(x) in [2.0]),
    "metaclass": lambda x: Good(x),  # type: ignore[call-arg]
    "attrgetter": lambda x: operator.attrgetter("late")(Item(x)),
    "partial": lambda x: functools.partial(operator.attrgetter("late"), Item(x))(),
    "eval": in_a_text, "__missing__": of_a_missing_key, "break": broken_off, "return": returned,
    "manager": in_a_manager, "ExitStack": in_a_stack, "except*": in_a_group,
    "generator": in_a_generator,
}


@pytest.mark.parametrize("name", CATCHING)
def test_a_refusal_is_raised_or_the_result_is_pythons(name: str) -> None:
    f = CATCHING[name]
    for x in (1.0, 2.0):
        for g, given in (fusec.jit(f), np.float64(x)), (fusec.vmap(f), np.array([x])):
            try:
                got = g(given)
            except (ConcreteValueError, UnsupportedError):
                continue
            np.testing.assert_array_equal(got, np.full(np.shape(given), f(x)))


def test_the_refusal_is_that_of_the_line() -> None:
    with pytest.raises(ConcreteValueError, match="an int is needed") as caught:
        fusec.jit(lambda x: Item(x).late)(np.float64(1.0))
    assert "Item(x).late" in str(caught.value)
    with pytest.raises(ConcreteValueError, match=r"hash .* is needed") as caught:
        fusec.jit(broken_off)(np.float64(1.0))
    assert "found = PRICES[int(x)]" in str(caught.value)


def test_where_the_program_then_raises_its_own() -> None:
    class Other:
        x: Any = None

        def __getattr__(self, name: str) -> Any:
            try:
                return PRICES[int(self.x)]
            except TypeError as error:
                raise ValueError("no price") from error

    def f(x: Any) -> Any:
        other = Other()
        other.x = x
        return other.late

    with pytest.raises(ConcreteValueError):
        fusec.jit(f)(np.float64(1.0))


def test_other_exceptions_may_be_caught_there() -> None:
    class Table:
        def __getattr__(self, name: str) -> Any:
            try:
                return np.arange(3)[5]
            except IndexError:
                return 4.0

    table = Table()
    assert fusec.jit(lambda x: x * table.last)(np.float64(2.0)) == 8.0


LEFT = """
def f(x):
    y = x
    for _ in range(2):
        try:
            if x > 8:
                raise ValueError("too large")
            y = y + 1
        finally:
            {}
    return y
"""


@pytest.mark.parametrize("way_out", ["return y * 3", "break", "continue"])
def test_a_finally_that_is_left_ends_exceptions_of_the_run(
    way_out: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were raised, though Python raises nothing there."""
    name = f"left_by_{way_out[:3]}"
    (tmp_path / f"{name}.py").write_text(LEFT.format(way_out))
    monkeypatch.syspath_prepend(tmp_path)
    f = __import__(name).f
    g = fusec.jit(f)
    assert g(np.float64(1.0)) == f(1.0)
    with pytest.raises(UnsupportedError, match="catching ValueError"):
        g(np.float64(9.0))
