"""Programs that are written for one lane, with what one lane's arguments are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

# Of an argument of one lane: its shape, or that with the kind of its elements.
Lane = tuple[int, ...] | tuple[str, tuple[int, ...]]
PROGRAMS: list[LaneProgram] = []


@dataclass(frozen=True)
class LaneProgram:
    """``f`` of one lane; ``lanes``: its arguments."""

    f: Callable[..., Any]
    lanes: tuple[Lane, ...]

    @property
    def name(self) -> str:
        return self.f.__name__

    def arguments(self, count: int, shared: frozenset[int] = frozenset()) -> list[np.ndarray]:
        """Arguments for so many lanes, those at positions ``shared`` without an axis for them."""
        rng = np.random.default_rng(11)
        return [_array(rng, lane, () if k in shared else (count,))
                for k, lane in enumerate(self.lanes)]


def _array(rng: np.random.Generator, lane: Lane, front: tuple[int, ...]) -> np.ndarray:
    kind, shape = lane if lane and isinstance(lane[0], str) else ("f", lane)
    shape = (*front, *shape)  # type: ignore[misc]
    if kind == "i":
        return rng.integers(0, 3, shape)
    if kind == "n":  # negative ones too
        return rng.integers(-3, 3, shape)
    if kind == "b":
        return rng.random(shape) < 0.5
    if kind == "c":
        return rng.normal(size=shape) + 1j * rng.normal(size=shape)
    if kind == "s":  # positive definite matrices
        a = rng.normal(size=shape)
        return a @ np.swapaxes(a, -1, -2) + 3 * np.eye(shape[-1])
    return rng.normal(size=shape)


def of(*lanes: Lane) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The function below is a program of arguments such as these."""
    def noted(f: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS.append(LaneProgram(f, lanes))
        return f

    return noted


def short(name: str, f: Callable[..., Any], *lanes: Lane) -> None:
    """A program of one expression."""
    f.__name__ = name
    PROGRAMS.append(LaneProgram(f, lanes))


V: Lane = (3,)
M: Lane = (3, 3)
S: Lane = ("s", (3, 3))
N: Lane = ()
I: Lane = ("n", ())  # noqa: E741

# ------------------------------------------------------------------ elementwise, views, reductions

short("polynomial", lambda x: 2 * x**3 - x / 3 + 1, V)
short("broadcast_ranks", lambda x, m: x + m * x[:, None], V, M)
short("number_and_vector", lambda a, x: a * x - np.exp(-a), N, V)
short("where", lambda x, y: np.where(x > y, x, -y), V, V)
short("cast", lambda x: x.astype(np.float32) * np.float32(2), V)
short("integers", lambda i, x: (i * 2) % 3 + x.astype(int), ("i", (3,)), V)
short("complex_parts", lambda z: (z * z.conj()).real + z.imag, ("c", (3,)))
short("clip_round", lambda x: np.clip(np.round(x, 1), -1, 1), V)
short("transposed", lambda m: m.T @ m, M)
short("reshaped", lambda m: m.reshape(-1)[::2], M)
short("reversed_rows", lambda m: m[::-1, 1:] * 2, M)
short("stacked", lambda x, y: np.stack([x, y, x + y], axis=1), V, V)
short("concatenated", lambda x, y: np.concatenate([x[1:], y]), V, V)
short("diagonal", lambda m: np.diagonal(m, 1) + np.trace(m), M)
short("squeezed", lambda x: np.squeeze(x[None, :, None]) + x, V)
short("sums", lambda m: (m.sum(), m.sum(0), m.sum(1, keepdims=True), m.mean()), M)
short("moments", lambda m: (m.var(axis=0), m.std(), np.median(m)), M)
short("extremes", lambda m: (m.max(0), m.min(), np.argmax(m), np.argmin(m, axis=1)), M)
short("any_all", lambda m: (np.any(m > 0, axis=0), np.all(m < 9)), M)
short("products_of_elements", lambda m: (m.prod(), np.cumprod(m, axis=1)), M)
short("scans", lambda m: (np.cumsum(m), np.cumsum(m, axis=0), np.maximum.accumulate(m)), M)
short("softmax", lambda x: np.exp(x - x.max()) / np.exp(x - x.max()).sum(), V)
short("norms", lambda x, m: (np.linalg.norm(x), np.linalg.norm(m, axis=0)), V, M)
short("constant_result", lambda x: (x, np.arange(4), 2.5), V)
short("powers", lambda x, y: np.abs(x) ** y + np.logaddexp(x, y), V, V)

# --------------------------------------------------------------------------------------- products

short("vectors", lambda x, y: x @ y, V, V)
short("matrix_vector", lambda m, x: m @ x, M, V)
short("vector_matrix", lambda x, m: x @ m, V, M)
short("matrices", lambda a, b: a @ b, M, M)
short("dots", lambda m, x: (np.dot(m, x), np.dot(x, x), np.dot(m, m)), M, V)
short("einsum", lambda m, x: np.einsum("ij,j->i", m, x), M, V)
short("einsum_implicit", lambda m, x: np.einsum("ij,i", m, x), M, V)
short("outer_inner", lambda x, y: np.outer(x, y) + np.inner(x, y), V, V)
short("stack_of_matrices", lambda t, m: t @ m, (2, 3, 3), M)
short("tensordot", lambda m, t: np.tensordot(m, t, axes=([1], [1])), M, (2, 3, 3))
short("kron", lambda x, y: np.kron(x, y), V, (2,))

# ---------------------------------------------------------------------------------------- indices

short("element", lambda x, i: x[i], V, I)
short("row", lambda m, i: m[i], M, I)
short("column_at", lambda m, i: m[:, i], M, I)
short("two_indices", lambda m, i, j: m[i, j], M, I, I)
short("take", lambda x, i: x[i], V, ("n", (4,)))
short("take_rows", lambda m, i: m[i], M, ("n", (2,)))
short("take_columns", lambda m, i: np.take(m, i, axis=1), M, ("n", (2,)))
short("take_pairs", lambda m, i, j: m[i, j], M, ("n", (4,)), ("n", (4,)))
short("middle", lambda t, i: t[:, i, :], (2, 3, 3), ("n", (2, 2)))
short("along_axis", lambda m, i: np.take_along_axis(m, i, axis=1), M, ("i", (3, 2)))
short("masked_sum", lambda x: x[x > 0].sum(), V)
short("table", lambda x, t: np.interp(x, np.array([-1.0, 0, 1]), t), V, V)
short("searched", lambda x: np.searchsorted(np.array([-1.0, 0, 1]), x), V)
short("searched_in_lane", lambda x, y: np.searchsorted(np.sort(x), y), V, V)
short("digitized", lambda x: np.digitize(x, np.array([-1.0, 0, 1])), V)


@of(V, I)
def element_written(x: Any, i: Any) -> Any:
    y = x.copy()
    y[i] = 7
    y[0] += 1
    return y


@of(M, ("n", (2,)), ())
def rows_written(m: Any, i: Any, a: Any) -> Any:
    y = m.copy()
    y[i] = a
    y[:, 1] *= 2
    return y


@of((5,), ("n", (4,)), (4,))
def added_at(x: Any, i: Any, v: Any) -> Any:
    y = x.copy()
    np.add.at(y, i, v)
    return y


@of(V)
def own_argument_written(x: Any) -> Any:
    x[1:] = x[:-1]
    return x.sum()


@of(M)
def through_views(m: Any) -> Any:
    y = m.copy()
    row = y[1]
    row[::2] = 0
    return y, row


@of(("n", (6,)))
def counts(i: Any) -> Any:
    table = np.zeros(6)
    for k in range(6):
        table[i[k] + 3] += 1
    return table


# ------------------------------------------------------------------------------ library functions

short("sorted", lambda m: (np.sort(m), np.argsort(m, axis=0), np.sort(m, axis=None)), M)
short("partitioned", lambda x: np.partition(x, 1)[1], V)
short("inverse", lambda s: np.linalg.inv(s), S)
short("determinants", lambda s: (np.linalg.det(s), np.linalg.slogdet(s)[1]), S)
short("solved", lambda s, x: np.linalg.solve(s, x), S, V)
short("solved_columns", lambda s, m: np.linalg.solve(s, m), S, M)
short("cholesky", lambda s: np.linalg.cholesky(s), S)
short("eigenvalues", lambda s: (np.linalg.eigvalsh(s), np.linalg.eigh(s)[0]), S)
short("singular_values", lambda m: np.linalg.svd(m, compute_uv=False), M)
short("pseudo_inverse", lambda m: np.linalg.pinv(m), (4, 2))
short("least_squares", lambda m, y: np.linalg.lstsq(m, y, rcond=None)[0], (4, 2), (4,))
short("rank_cond", lambda s: (np.linalg.matrix_rank(s), np.linalg.cond(s)), S)
short("fourier", lambda x: (np.fft.fft(x), np.fft.rfft(x, 4), np.fft.irfft(x)), (6,))
short("fourier_axis", lambda m: (np.fft.fft(m, axis=0), np.fft.fft2(m), np.fft.fftn(m)), M)
short("quantiles", lambda m: (np.percentile(m, 30), np.quantile(m, 0.2, axis=0)), M)
short("convolved", lambda x, y: np.convolve(x, y), (6,), V)
short("histogram", lambda x: np.histogram(x, bins=4, range=(-2, 2))[0], (6,))
short("polynomial_fit", lambda y: np.polyfit(np.arange(5.0), y, 1), (5,))
short("differences", lambda x: (np.diff(x), np.gradient(x), np.trapezoid(x)), (6,))
short("unique_count", lambda i: np.unique(i).size, ("n", (6,)))
short("positions_summed", lambda x: np.nonzero(x > 0)[0].sum(), (6,))

# ------------------------------------------------------------------------------- control flow


@of(V)
def branch(x: Any) -> Any:
    if x[0] > 0:
        return x * 2
    return -x


@of(N, N)
def three_ways(a: Any, b: Any) -> Any:
    if a > 0 and b > 0:
        r = a + b
    elif a > 0:
        r = a - b
    else:
        r = b * 2
    return r


@of(V)
def loop_over_elements(x: Any) -> Any:
    total = 0.0
    for v in x:
        if v < 0:
            continue
        total += np.sqrt(v)
    return total


@of(N)
def newton(m: Any) -> Any:
    e = m
    while abs(e - 0.3 * np.sin(e) - m) > 1e-10:
        e = e - (e - 0.3 * np.sin(e) - m) / (1 - 0.3 * np.cos(e))
    return e


@of(("i", ()))
def collatz(n: Any) -> Any:
    n, steps = n + 5, 0
    while n != 1:
        n = 3 * n + 1 if n % 2 else n // 2
        steps += 1
    return steps


@of((8,), N)
def found_with_break(x: Any, limit: Any) -> Any:
    place = -1
    for k in range(8):
        if x[k] > limit:
            place = k
            break
    return place


@of((6,))
def inserted(x: Any) -> Any:
    y = x.copy()
    for i in range(1, 6):
        v = y[i]
        j = i - 1
        while j >= 0 and y[j] > v:
            y[j + 1] = y[j]
            j -= 1
        y[j + 1] = v
    return y


@of(("i", (5,)), ("i", (4,)))
def edit_distance(a: Any, b: Any) -> Any:
    row = np.arange(5)
    for i in range(5):
        before, row[0] = row[0], i + 1
        for j in range(4):
            kept = row[j + 1]
            row[j + 1] = min(before + (a[i] != b[j]), row[j] + 1, kept + 1)
            before = kept
    return row[4]


@of(N)
def escape_time(c: Any) -> Any:
    z = 0.0
    for k in range(30):
        if z * z > 4:
            return k
        z = z * z + c
    return 30


@of(V, N)
def before_and_after(x: Any, a: Any) -> Any:
    y = np.sin(x) * 2
    total = y.sum()
    while total < a:
        total = total + 0.7
    return np.exp(-total) * y, total


@of(V, M)
def loop_then_product(x: Any, m: Any) -> Any:
    n = 0
    while x.sum() > 0.5 and n < 20:
        x = x * 0.5 - 0.1
        n += 1
    y = m @ x
    if y[0] > 0:
        y = y * 3
    return y, n


@of((4,), (3, 3))
def recurrence(x: Any, m: Any) -> Any:
    h = np.zeros(3)
    for t in range(4):
        h = np.tanh(m @ h + x[t])
    return h


@of(N)
def rational_steps(t: Any) -> Any:
    y, x, h = 1.0, 0.0, 0.1
    while x < 1.0 + t * t:
        k1 = -y * t
        k2 = -(y + h * k1) * t
        error = abs(h * (k2 - k1) / 2)
        if error < 1e-3:
            x, y = x + h, y + h * (k1 + k2) / 2
        # A step of at least 1e-3: with shorter ones some lanes' plain loop takes a minute.
        h = max(min(h * min(2.0, 0.9 * np.sqrt(1e-3 / (error + 1e-12))), 0.2), 1e-3)
        if h == 1e-3:
            x = x + h
    return y, x
