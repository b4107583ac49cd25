"""``help()`` of public functions explains each parameter."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

import fusec

# Made by fusec alone, and read by users; ``help`` of `jit` explains what they are made with.
MADE_BY_FUSEC = {"ConcreteFunction", "Function"}
# Of Variables and scopes, for traces only.
TAKEN_BY_TRACES = {"answers", "in_place", "take", "check_shape", "check_dtype", "value"}
GENERATORS = [getattr(fusec.random, name) for name in (
    "bernoulli", "bits", "choice", "exponential", "fold_in", "integers", "key", "normal",
    "permutation", "split", "uniform")]


def documented() -> Iterator[tuple[str, Any]]:
    for name in fusec.__all__:
        value = getattr(fusec, name)
        if inspect.isclass(value) and not issubclass(value, BaseException):
            if name not in MADE_BY_FUSEC:
                yield name, value
                yield from ((f"{name}.{key}", method) for key, method in vars(value).items()
                            if inspect.isfunction(method) and key[0] != "_"
                            and key not in TAKEN_BY_TRACES)
        elif inspect.isfunction(value):
            yield name, value
    yield from ((f"random.{function.__name__}", function) for function in GENERATORS)


PUBLIC = dict(documented())


@pytest.mark.parametrize("name", PUBLIC)
def test_each_parameter_is_explained(name: str) -> None:
    function = PUBLIC[name]
    text = inspect.getdoc(function) or ""
    asked = [key for key, parameter in inspect.signature(function).parameters.items()
             if key not in ("self", "args", "kwargs")
             and parameter.kind is not parameter.VAR_POSITIONAL]
    assert text and not [key for key in asked if not re.search(rf"\b{key}\b", text)]
