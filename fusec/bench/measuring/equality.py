"""The equality by which a compiled function is compared with eager NumPy.

Integers, booleans, and the pattern of NaN and infinities must be exact.  Finite floats are held to
``error <= 4 * (NumPy's own error) + 4 ulp``, both errors taken against the same program run in
extended precision (``np.longdouble``).

*NumPy's own error* is not taken element by element: where a sum happened to round to the exact
value, NumPy's error there is zero by luck.  Nor is it one figure for the whole array: an output
that passes through zero has elements with an absolute error as large as its neighbours' and a
value near nothing, so one relative figure would let every other element off.  Elements are sorted
by the magnitude of the reference and cut into classes of at least ``CLASS`` neighbours (a smaller
array is one class).  Within a class the values are of like size, NumPy's error is the largest
absolute one seen, and each element must satisfy

    |compiled - reference| <= 4 * max_class |eager - reference| + 4 ulp(reference)

``ulp(v)`` is the spacing of the output's dtype at ``v``.  The element nearest to its bound is
reported: the error there as a share of the bound, and its class's errors in ulp.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import optree

from .inputs import mapped

CLASS = 256
FACTOR = 4.0
SLACK_ULP = 4.0
# Without extended precision NumPy's own error cannot be seen; this many ulp stand in for it.
UNSEEN_ULP = 8.0


@dataclass(frozen=True)
class Equality:
    """The verdict, told by the element nearest to (or furthest beyond) its bound.

    ``margin`` is its error as a share of that bound (1 is the limit); ``error_ulp`` and
    ``numpy_ulp`` are the largest compiled and eager errors of its class, in ulp of the class's
    largest value.  ``reference`` names the run that errors were measured against; ``reason`` says
    why not equal.
    """

    equal: bool
    error_ulp: float
    numpy_ulp: float
    margin: float
    reference: str
    reason: str = ""

    def __str__(self) -> str:
        if not self.equal:
            return f"NOT EQUAL: {self.reason}"
        if self.reference == "exact":
            return "equal (exact)"
        return (f"equal (nearest to the bound: error {self.error_ulp:.2g} ulp, NumPy's own "
                f"{self.numpy_ulp:.2g} ulp, {100 * self.margin:.0f} % of what is allowed, against "
                f"{self.reference})")


EXACT = Equality(True, 0.0, 0.0, 0.0, "exact")


def has_extended_precision() -> bool:
    """Whether ``np.longdouble`` is more precise than float64 here (not on Windows or Apple arm)."""
    return bool(np.finfo(np.longdouble).eps < np.finfo(np.float64).eps)


def widen(args: Sequence[Any], dtype: Any) -> tuple[Any, ...]:
    """The arguments with every float array or NumPy float in ``dtype``; copies, so never shared."""
    def widened(leaf: Any) -> Any:
        if isinstance(leaf, np.ndarray):
            return leaf.astype(dtype) if leaf.dtype.kind == "f" else leaf.copy()
        return np.dtype(dtype).type(leaf) if isinstance(leaf, np.floating) else leaf
    return mapped(widened, args)


def reference_run(
    function: Callable[..., Any], args: Sequence[Any], eager: Sequence[Any], limit: int
) -> tuple[list[Any] | None, str]:
    """The program's leaves in more precision, and its name (or why there is none).

    Extended precision is 10 to 50 times slower than float64, so inputs of more than ``limit``
    elements use float64 when every result is float32 or narrower.
    """
    size = sum(leaf.size for leaf in leaves(args) if isinstance(leaf, np.ndarray))
    narrow = all(np.asarray(v).dtype.itemsize < 8 or np.asarray(v).dtype.kind != "f" for v in eager)
    if has_extended_precision() and not (narrow and size > limit):
        wide: Any = np.longdouble
    elif narrow:
        wide = np.float64
    else:
        return None, "no extended precision on this machine"
    if not any(np.asarray(leaf).dtype.kind == "f" and isinstance(leaf, np.generic | np.ndarray)
               for leaf in leaves(args)):
        return None, "NumPy alone: no argument has a precision to extend"
    widened = widen(args, wide)
    with np.errstate(all="ignore"):
        try:
            result = leaves((function(*widened), mutable(widened)))
        except (TypeError, ValueError) as error:
            first_line, *_ = str(error).splitlines() or [""]
            return None, f"NumPy alone: the program cannot run in {wide.__name__} ({first_line})"
    return result, wide.__name__


def leaves(tree: Any) -> list[Any]:
    return optree.tree_leaves(tree)


def mutable(args: Sequence[Any]) -> list[np.ndarray]:
    """The arrays among the arguments, which a function may have written to."""
    return [leaf for leaf in leaves(tuple(args)) if isinstance(leaf, np.ndarray)]


def compare(
    compiled: Sequence[Any], eager: Sequence[Any], reference: Sequence[Any] | None, name: str
) -> Equality:
    """The verdict over all leaves; the worst of them is reported."""
    if len(compiled) != len(eager):
        return failure(f"{len(compiled)} results where NumPy gives {len(eager)}", name)
    worst = EXACT
    for i, (ours, numpys) in enumerate(zip(compiled, eager, strict=True)):
        verdict = compare_leaf(ours, numpys, None if reference is None else reference[i], name)
        if not verdict.equal:
            return failure(f"result {i}: {verdict.reason}", name, verdict)
        if worst is EXACT or verdict.margin > worst.margin:
            worst = verdict if verdict.reference != "exact" else worst
    return worst


def failure(reason: str, name: str, base: Equality = EXACT) -> Equality:
    return Equality(False, base.error_ulp, base.numpy_ulp, base.margin, name, reason)


def compare_leaf(got: Any, want: Any, wide: Any, name: str) -> Equality:
    """One result: kind, shape, dtype, then values."""
    if type(got) is not type(want):
        return failure(f"a {type(got).__name__} where NumPy gives a {type(want).__name__}", name)
    a, b = np.asarray(got), np.asarray(want)
    if a.shape != b.shape or a.dtype != b.dtype:
        return failure(f"{a.dtype}{list(a.shape)} where NumPy gives {b.dtype}{list(b.shape)}", name)
    if b.dtype.kind != "f":
        return compare_exact(a, b, name)
    pattern = same_pattern(a, b, name)
    if pattern is not EXACT:
        return pattern
    return compare_floats(a.ravel(), b.ravel(), None if wide is None else np.ravel(wide), name)


def compare_exact(a: np.ndarray, b: np.ndarray, name: str) -> Equality:
    wrong = np.flatnonzero((a != b).ravel())
    if not wrong.size:
        return EXACT
    first = wrong[0]
    return failure(f"{wrong.size} of {a.size} {b.dtype} values differ, the first at flat index "
                   f"{first}: {a.ravel()[first]} for {b.ravel()[first]}", name)


def same_pattern(a: np.ndarray, b: np.ndarray, name: str) -> Equality:
    """NaN where NumPy has NaN, and the same infinities."""
    for what, x, y in (("NaN", np.isnan(a), np.isnan(b)),
                       ("+inf", np.isposinf(a), np.isposinf(b)),
                       ("-inf", np.isneginf(a), np.isneginf(b))):
        wrong = np.flatnonzero((x != y).ravel())
        if wrong.size:
            first = wrong[0]
            return failure(f"{what} differs at {wrong.size} places, the first at flat index {first}"
                           f": {a.ravel()[first]} for {b.ravel()[first]}", name)
    return EXACT


def compare_floats(a: np.ndarray, b: np.ndarray, wide: Any, name: str) -> Equality:
    """The class rule of the module's docstring on flat arrays of equal pattern."""
    reference = b.astype(np.longdouble) if wide is None else wide.astype(np.longdouble)
    finite = np.flatnonzero(np.isfinite(b) & np.isfinite(reference))
    if not finite.size:
        return EXACT
    order = finite[np.argsort(np.abs(reference[finite]), kind="stable")]
    ref = reference[order]
    ulp = np.abs(np.spacing(np.abs(ref).astype(b.dtype))).astype(np.longdouble)
    error = np.abs(a[order].astype(np.longdouble) - ref)
    own = np.abs(b[order].astype(np.longdouble) - ref) if wide is not None else UNSEEN_ULP * ulp
    starts = np.arange(0, max(1, order.size - CLASS + 1), CLASS)
    sizes = np.diff(np.append(starts, order.size))
    own_class = np.maximum.reduceat(own, starts)
    return verdict(a, b, order, error, ulp, own_class, starts, sizes, name)


def verdict(
    a: np.ndarray, b: np.ndarray, order: np.ndarray, error: np.ndarray, ulp: np.ndarray,
    own_class: np.ndarray, starts: np.ndarray, sizes: np.ndarray, name: str,
) -> Equality:
    """Errors against their bounds; the figures are of the class with the largest share."""
    allowed = FACTOR * np.repeat(own_class, sizes) + SLACK_ULP * ulp
    share = error / allowed
    worst = int(np.argmax(share))
    margin = float(share[worst])
    c = int(np.searchsorted(starts, worst, side="right")) - 1
    members = slice(int(starts[c]), int(starts[c] + sizes[c]))
    scale = ulp[members.stop - 1]
    error_ulp, numpy_ulp = float(error[members].max() / scale), float(own_class[c] / scale)
    if margin <= 1.0:
        return Equality(True, error_ulp, numpy_ulp, margin, name)
    at = order[worst]
    return Equality(
        False, error_ulp, numpy_ulp, margin, name,
        f"{int((share > 1.0).sum())} of {order.size} {b.dtype} values are too far off, the worst at"
        f" flat index {at}: {a[at]!r} for {b[at]!r}, {float(error[worst] / ulp[worst]):.3g} ulp "
        f"from {name} where {float(allowed[worst] / ulp[worst]):.3g} are allowed")
