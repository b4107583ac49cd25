"""`check_grads`: derivatives of a function against differences, and against each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fusec.errors import user_error
from fusec.trace.facts.trees import flattened

from .api import jvp, vjp
from .transformed_functions import check_callable, check_sequences

_STEPS = {2: 1e-1, 4: 1e-2, 8: 1e-4}  # by the bytes of a real number


def check_grads(
    f: Callable[..., Any], args: Sequence[Any], order: int = 1, atol: float | None = None,
    rtol: float | None = None,
) -> None:
    """Raise ``AssertionError`` unless the derivatives of ``f`` at ``args`` are right.

    In a random direction ``v`` the tangent is compared with differences of ``f`` (two central ones,
    extrapolated), and for a random cotangent ``u`` the gradient with the tangent: ``<u, J v>`` is
    ``<J^T u, v>``.  ``order=2`` does the same for the gradient, and so on.  All leaves of ``args``
    are floats.  ``atol`` and ``rtol`` bound the differences of both comparisons; by default they
    follow from the least precise dtype.
    """
    check_callable("check_grads", f)
    check_sequences("check_grads", args=args)
    args, rng = tuple(args), np.random.default_rng(0)
    for number, x in enumerate(flattened(args)[0]):
        if np.asarray(x).dtype.kind not in "fc":
            raise user_error(
                TypeError, "check_grads at arguments that are not all floats", None,
                "pass floats, and what is none inside of a function: lambda x: f(x, 3)",
                values=[(f"leaf {number}", repr(x))])
    bits = min(np.finfo(np.asarray(x).dtype).bits // 8 for x in flattened(args)[0])
    step = _STEPS[min(bits, 8)]
    limits = (atol or step ** 1.5, rtol or step ** 1.5)
    _check(f, args, rng, step, limits, 1)
    if order > 1:
        cotangent = _random(f(*_copies(args)), rng)

        def gradient(*args: Any) -> Any:
            return vjp(f, *args)[1](cotangent)

        check_grads(gradient, args, order - 1, atol, rtol)


def _check(f: Any, args: Any, rng: Any, step: float, limits: tuple[float, float], n: int) -> None:
    direction = _random(args, rng)
    result, tangent = jvp(f, _copies(args), direction)
    expected = _differences(f, args, direction, step)
    _compare("the tangent and differences", tangent, expected, limits)
    cotangent = _random(result, rng)
    gradients = vjp(f, *_copies(args))[1](cotangent)
    _compare("<J^T u, v> and <u, J v>", _inner(gradients, direction), _inner(cotangent, tangent),
             limits)


def _differences(f: Any, args: Any, direction: Any, step: float) -> list[np.ndarray]:
    def central(h: float) -> list[np.ndarray]:
        ends = [_leaves(f(*_moved(args, direction, sign * h))) for sign in (1, -1)]
        return [(a - b) / (2 * h) for a, b in zip(*ends, strict=True)]

    return [(4 * fine - coarse) / 3 for fine, coarse in zip(
        central(step / 2), central(step), strict=True)]


def _leaves(tree: Any) -> list[np.ndarray]:
    return [np.asarray(x) for x in flattened(tree)[0]]


def _copies(args: Any) -> Any:
    leaves, structure = flattened(args)
    return structure.unflatten([np.array(x)[()] if np.ndim(x) == 0 else np.array(x)
                                for x in leaves])


def _moved(args: Any, direction: Any, h: float) -> Any:
    leaves, structure = flattened(args)
    return structure.unflatten([
        (np.asarray(x) + np.asarray(h, np.asarray(x).real.dtype) * d)[()]
        for x, d in zip(leaves, flattened(direction)[0], strict=True)])


def _random(tree: Any, rng: Any) -> Any:
    """Random numbers of the tree's structure, shapes and dtypes."""
    leaves, structure = flattened(tree)
    return structure.unflatten([_like(np.asarray(x), rng)[()] for x in leaves])


def _like(x: np.ndarray, rng: Any) -> np.ndarray:
    numbers = np.asarray(rng.normal(size=x.shape))
    if x.dtype.kind == "c":
        numbers = numbers + 1j * rng.normal(size=x.shape)
    return np.asarray(numbers, x.dtype)


def _inner(a: Any, b: Any) -> list[np.ndarray]:
    pairs = zip(_leaves(a), _leaves(b), strict=True)
    return [np.asarray(sum(float(np.sum(x.conj() * y).real) for x, y in pairs))]


def _compare(what: str, got: Any, expected: Any, limits: tuple[float, float]) -> None:
    atol, rtol = limits
    for a, b in zip(_leaves(got), _leaves(expected), strict=True):
        if not np.allclose(a, b, rtol, atol * max(1.0, float(np.max(np.abs(b), initial=0)))):
            raise user_error(
                AssertionError, f"check_grads: {what} differ", None,
                "see whether the function is smooth there", values=[
                    ("largest difference", float(np.max(np.abs(a - b)))),
                    ("largest value", float(np.max(np.abs(b))))])
