"""Every function of the array API standard, of a traced array's own namespace, against NumPy's.

Calls have the signatures of the standard: keywords where it has keywords, positions elsewhere.
Source: Consortium for Python Data API Standards, *Python array API standard* 2024.12.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.errors import FusecError
from fusec.inspect.array_api import ARRAY_API

RNG = np.random.default_rng(3)
X = RNG.random((3, 4)) * 0.8 + 0.1
S = X[:, :3] @ X[:, :3].T + np.eye(3)
I = RNG.integers(1, 7, (3, 4))  # noqa: E741
Z = X + 1j * X[::-1]

_X = ["acos", "asin", "atan", "atanh", "asinh", "ceil", "cos", "cosh", "exp", "expm1", "floor",
      "log", "log1p", "log2", "log10", "reciprocal", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
      "abs", "negative", "positive", "round", "sign", "signbit", "square", "isfinite", "isinf",
      "isnan", "all", "any", "max", "min", "mean", "prod", "sum", "std", "var", "argmax", "argmin",
      "count_nonzero", "sort", "argsort", "flip", "matrix_transpose", "tril", "triu", "zeros_like",
      "ones_like", "unique_values"]
_XX = ["add", "atan2", "copysign", "divide", "equal", "floor_divide", "greater", "greater_equal",
       "hypot", "less", "less_equal", "logaddexp", "maximum", "minimum", "multiply", "nextafter",
       "not_equal", "pow", "remainder", "subtract", "vecdot"]
_II = ["bitwise_and", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor"]
_S = ["cholesky", "det", "diagonal", "eigvalsh", "inv", "matrix_norm", "matrix_rank",
      "matrix_transpose", "pinv", "slogdet", "svdvals", "trace", "vector_norm", "qr"]
_FFT = ["fft", "ifft", "fftn", "ifftn", "rfft", "irfft", "rfftn", "irfftn", "hfft", "ihfft",
        "fftshift", "ifftshift"]

Call = Callable[[Any, Any, Any, Any, Any], Any]  # of the namespace, X, I, Z and S

# Of the older NumPys the namespace says that it is the standard's of a year before.
STANDARD = "2024.12" if np.lib.NumpyVersion(np.__version__) >= "2.3.0" else "2023.12"


def _of(path: str, *names: str) -> Callable[..., Any]:
    """Calls the function of that path with the named ones of the arguments."""
    def call(xp: Any, x: Any, i: Any, z: Any, s: Any) -> Any:
        f = xp
        for part in path.split("."):
            f = getattr(f, part)
        given = {"x": x, "i": i, "z": z, "s": s, "r": x[::-1], "b": x > 0.5, "c": x < 0.6}
        return f(*(given[name] for name in names))

    return call


CALLS: dict[str, Call] = {
    **{name: _of(name, "x") for name in _X}, **{name: _of(name, "x", "r") for name in _XX},
    **{name: _of(name, "i", "i") for name in _II},
    **{f"linalg.{name}": _of(f"linalg.{name}", "s") for name in _S},
    **{f"fft.{name}": _of(f"fft.{name}", "x") for name in _FFT},
    **{name: _of(name, "b", "c") for name in ("logical_and", "logical_or", "logical_xor")},
    **{name: _of(name, "z") for name in ("conj", "imag", "real")},
    "logical_not": _of("logical_not", "b"), "bitwise_invert": _of("bitwise_invert", "i"),
    "acosh": lambda xp, x, i, z, s: xp.acosh(1 + x),
    "clip": lambda xp, x, i, z, s: xp.clip(x, min=0.2, max=0.7),
    "arange": lambda xp, x, i, z, s: xp.arange(0, 5, step=2, dtype=x.dtype) + x[0, 0],
    "asarray": lambda xp, x, i, z, s: xp.asarray(x, dtype=xp.float32, copy=True),
    "empty": lambda xp, x, i, z, s: xp.empty(x.shape, dtype=xp.int8).shape,
    "empty_like": lambda xp, x, i, z, s: xp.empty_like(x, dtype=xp.int8).dtype,
    "eye": lambda xp, x, i, z, s: xp.eye(3, 4, k=1, dtype=x.dtype) + x,
    "from_dlpack": lambda xp, x, i, z, s: xp.from_dlpack(x) + 1,
    "full": lambda xp, x, i, z, s: xp.full((2, 3), 1.5, dtype=x.dtype) * x[0, 0],
    "full_like": lambda xp, x, i, z, s: xp.full_like(x, 2, dtype=xp.int64),
    "linspace": lambda xp, x, i, z, s: xp.linspace(x[0, 0], 3.0, 7, endpoint=False),
    "meshgrid": lambda xp, x, i, z, s: xp.meshgrid(x[0], x[:, 0], indexing="ij"),
    "ones": lambda xp, x, i, z, s: xp.ones(3, dtype=x.dtype) * x[:, 0],
    "zeros": lambda xp, x, i, z, s: xp.zeros((3, 1), dtype=x.dtype) + x,
    "astype": lambda xp, x, i, z, s: xp.astype(x, xp.float32, copy=False),
    "can_cast": lambda xp, x, i, z, s: xp.can_cast(x.dtype, xp.float32),
    "finfo": lambda xp, x, i, z, s: xp.finfo(x.dtype).eps * x,
    "iinfo": lambda xp, x, i, z, s: xp.iinfo(i.dtype).max - i,
    "isdtype": lambda xp, x, i, z, s: xp.isdtype(x.dtype, ("real floating", xp.int8)),
    "result_type": lambda xp, x, i, z, s: xp.result_type(x, xp.complex64),
    "take": lambda xp, x, i, z, s: xp.take(x, i[0] % 3, axis=0),
    "take_along_axis": lambda xp, x, i, z, s: xp.take_along_axis(x, i % 3, axis=1),
    "__array_namespace_info__": lambda xp, x, i, z, s: (
        xp.__array_namespace_info__().default_device(), x + 1),
    "matmul": lambda xp, x, i, z, s: xp.matmul(s, x),
    "tensordot": lambda xp, x, i, z, s: xp.tensordot(s, x, axes=1),
    "linalg.matmul": lambda xp, x, i, z, s: xp.linalg.matmul(s, x),
    "linalg.tensordot": lambda xp, x, i, z, s: xp.linalg.tensordot(s, x, axes=((1,), (0,))),
    "linalg.vecdot": lambda xp, x, i, z, s: xp.linalg.vecdot(x, x, axis=-1),
    "linalg.cross": lambda xp, x, i, z, s: xp.linalg.cross(s, s[::-1], axis=-1),
    "linalg.eigh": lambda xp, x, i, z, s: xp.linalg.eigh(s).eigenvalues,
    "linalg.matrix_power": lambda xp, x, i, z, s: xp.linalg.matrix_power(s, 3),
    "linalg.outer": lambda xp, x, i, z, s: xp.linalg.outer(x[0], x[1]),
    "linalg.solve": lambda xp, x, i, z, s: xp.linalg.solve(s, x),
    "linalg.svd": lambda xp, x, i, z, s: xp.linalg.svd(s, full_matrices=False).S,
    "broadcast_arrays": lambda xp, x, i, z, s: tuple(xp.broadcast_arrays(x, x[:, :1])),
    "broadcast_to": lambda xp, x, i, z, s: xp.broadcast_to(x, (2, 3, 4)),
    "concat": lambda xp, x, i, z, s: xp.concat((x, i), axis=None),
    "expand_dims": lambda xp, x, i, z, s: xp.expand_dims(x, axis=1),
    "moveaxis": lambda xp, x, i, z, s: xp.moveaxis(x, 0, -1),
    "permute_dims": lambda xp, x, i, z, s: xp.permute_dims(x, (1, 0)),
    "repeat": lambda xp, x, i, z, s: xp.repeat(x, 2, axis=1),
    "reshape": lambda xp, x, i, z, s: xp.reshape(x, (2, 6), copy=True),
    "roll": lambda xp, x, i, z, s: xp.roll(x, (1, 2), axis=(0, 1)),
    "squeeze": lambda xp, x, i, z, s: xp.squeeze(x[None], axis=0),
    "stack": lambda xp, x, i, z, s: xp.stack((x, x), axis=-1),
    "tile": lambda xp, x, i, z, s: xp.tile(x, (2, 1)),
    "unstack": lambda xp, x, i, z, s: xp.unstack(x, axis=1),
    "nonzero": lambda xp, x, i, z, s: xp.nonzero(x > 0.5),
    "searchsorted": lambda xp, x, i, z, s: xp.searchsorted(xp.sort(x[0]), x[1], side="right"),
    "where": lambda xp, x, i, z, s: xp.where(x > 0.5, x, 0.0),
    "unique_all": lambda xp, x, i, z, s: xp.unique_all(i).counts,
    "unique_counts": lambda xp, x, i, z, s: xp.unique_counts(i).values,
    "unique_inverse": lambda xp, x, i, z, s: xp.unique_inverse(i).inverse_indices,
    "cumulative_prod": lambda xp, x, i, z, s: xp.cumulative_prod(x, axis=1, include_initial=True),
    "cumulative_sum": lambda xp, x, i, z, s: xp.cumulative_sum(x, axis=0, include_initial=True),
    "diff": lambda xp, x, i, z, s: xp.diff(x, axis=1, n=2, prepend=x[:, :1]),
    "fft.fftfreq": lambda xp, x, i, z, s: xp.fft.fftfreq(8, d=0.5) * x[0, 0],
    "fft.rfftfreq": lambda xp, x, i, z, s: xp.fft.rfftfreq(8, d=0.5) * x[0, 0],
}
NAMES = [name for section in ARRAY_API.values() for name in section]
# Refused with their line: what a function of the standard has no other name for.
REFUSED: set[str] = set()


def program(name: str) -> Callable[..., Any]:
    call = CALLS[name]
    return lambda x, i, z, s: call(x.__array_namespace__(api_version=STANDARD), x, i, z, s)


def assert_same(got: Any, want: Any) -> None:
    if isinstance(want, (tuple, list)):
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            assert_same(a, b)
    elif isinstance(want, (np.ndarray, np.generic)):
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-13)
    else:
        assert got == want


@pytest.mark.parametrize("name", NAMES)
def test_the_functions_of_the_standard(name: str) -> None:
    f = program(name)
    if name in REFUSED:
        with pytest.raises(FusecError):
            fusec.jit(f)(X, I, Z, S)
        return
    assert_same(fusec.jit(f)(X, I, Z, S), f(X, I, Z, S))


def test_the_table_is_whole() -> None:
    assert set(CALLS) == set(NAMES)
