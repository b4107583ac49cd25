"""Differences of the supported NumPys: compiled code does as the installed one, whichever it is."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.trace.facts.this_numpy import signature_of

X = np.array([-0.0, -np.inf, 4.0])
I = np.arange(6)  # noqa: E741


def _set(x: Any, key: Any, value: Any) -> Any:
    x[key] = value
    return x


def _fill(x: Any, value: Any) -> Any:
    x.fill(value)
    return x


PROGRAMS: dict[str, Callable[..., Any]] = {
    "a vector as a number": lambda x, i: float(x[2:]),
    "a vector as an element": lambda x, i: _set(x, 0, x[2:]),
    "a vector to fill with": lambda x, i: _fill(x, x[2:]),
    "a first value": lambda x, i: np.sum(x[2:], initial=x[2:]),
    "a truth value as an index": lambda x, i: [1.0, 2.0][x[2] > 0],
    "a count": lambda x, i: np.count_nonzero(x),
    "a count of rows": lambda x, i: np.count_nonzero(i.reshape(2, 3), axis=1),
    "a count and a small array": lambda x, i: np.count_nonzero(x) + i.astype("i1"),
    "rounded integers": lambda x, i: np.round(i),
    "rounded tens": lambda x, i: (i.round(-1), np.round(i, 2)),
    "written after rounding": lambda x, i: _set(np.round(i), 0, 9) + i,
    "a capsule's view": lambda x, i: np.from_dlpack(x),
    "Python ints out of range": lambda x, i: np.where(i > 2, i.astype("u1"), 300),
    "the operator's roots": lambda x, i: (x ** 0.5, x ** np.float64(0.5), x ** np.array(0.5)),
    "the function's roots": lambda x, i: (np.power(x, 0.5), np.power(x, np.full(3, 0.5))),
    "a wide exponent": lambda x, i: (x.astype("f4") ** np.float64(2), x.astype("f4") ** np.int64(3),
                                     i.astype("i1") ** np.int64(2), i ** np.float64(2)),
    "powers in place": lambda x, i: (x.__ipow__(2), x.__ipow__(np.float64(0.5))),
    "squares of truth values": lambda x, i: ((x > 0) ** 2, (x > 0) ** np.int64(2)),
    "no power": lambda x, i: (x.astype("f4") ** np.float64(0), x ** np.float64(1)),
}


def outcome(f: Callable[..., Any]) -> Any:
    x, i = X.copy(), I.copy()
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            found = f(x, i)
    except Exception as error:
        return [k for k in (TypeError, ValueError, OverflowError) if isinstance(error, k)]
    results = found if isinstance(found, tuple) else (found,)
    return [(type(r), repr(r), getattr(r, "dtype", None), isinstance(r, np.ndarray) and (
        r.flags.writeable, np.shares_memory(r, x), np.shares_memory(r, i))) for r in results]


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_in_this_numpy(name: str) -> None:
    want = outcome(PROGRAMS[name])
    function = fusec.jit(PROGRAMS[name])
    for _ in range(2):
        assert outcome(function) == want


def test_parameters_are_known_whether_or_not_numpy_has_signatures() -> None:
    names = {np.copyto: "dst src casting where", np.dot: "a b out",
             np.ndarray.sort: "self axis kind order", np.ndarray.round: "self decimals out"}
    for function, expected in names.items():
        found = signature_of(function).parameters
        assert list(found)[:len(expected.split())] == expected.split()
    assert signature_of(np.copyto).parameters["dst"].default is inspect.Parameter.empty


def test_nothing_reads_numpys_version_to_decide() -> None:
    """Messages may show it."""
    root = Path(__file__).parents[3]
    for folder in ("fusec", "passes", "codegen", "runtime"):
        for path in (root / folder).rglob("*.py"):
            assert not re.search(r"NumpyVersion|np\.__version__ *[<>=!]|parse\(np\.__version__",
                                 path.read_text()), path
