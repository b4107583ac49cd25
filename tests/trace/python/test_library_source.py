"""SciPy's functions that are written in Python: traced as the program's own are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import integrate, linalg, ndimage, optimize, signal, spatial, special, stats

import fusec
from fusec.errors import UnsupportedError

X = np.linspace(0.1, 2.0, 50)
Y = np.sin(5 * X) + 0.1 * X


@pytest.mark.parametrize(("f", "args"), [
    (lambda x: stats.zscore(x), (X,)), (lambda x, y: stats.zmap(x, y), (X, Y)),
    (lambda x: stats.gmean(x), (X,)), (lambda x: stats.skew(x), (X,)),
    (lambda x: stats.kurtosis(x), (X,)), (lambda x: stats.sem(x), (X,)),
    (lambda x: stats.moment(x, 2), (X,)),
    (lambda x: stats.entropy(x), (X,)), (lambda x: signal.sawtooth(x), (X,)),
    (lambda x: signal.chirp(x, 1, 1, 2), (X,)), (lambda y, x: integrate.trapezoid(y, x), (Y, X)),
    (lambda x: optimize.rosen(x), (X,)), (lambda x, y: spatial.distance.euclidean(x, y), (X, Y)),
    (lambda x, y: spatial.distance.cosine(x, y), (X, Y)), (lambda x: special.diric(x, 3), (X,)),
    (lambda x: linalg.null_space(x.reshape(5, 10)).shape, (X,)), (lambda x: ndimage.mean(x), (X,)),
    (lambda x: x * signal.windows.hann(50), (X,)),
])
def test_as_scipy(f: Callable[..., Any], args: Any) -> None:
    compiled = fusec.jit(f)
    for _ in range(2):
        np.testing.assert_allclose(compiled(*args), f(*args), rtol=1e-11, atol=1e-13)


def test_checks_of_data_are_the_runs() -> None:
    f = fusec.jit(lambda x, y: spatial.distance.euclidean(x, y))
    f(X, Y)
    with pytest.raises(ValueError, match="infs or NaNs"):
        fusec.jit(lambda x: linalg.null_space(x.reshape(5, 10)))(X * np.nan)


def test_refusals_are_shown_where_the_program_calls() -> None:
    with pytest.raises(UnsupportedError) as caught:
        fusec.jit(lambda x: signal.find_peaks(x)[0])(Y)
    loc = caught.value.loc
    assert loc is not None and loc.file == __file__ and "find_peaks" in str(caught.value)


def test_np_broadcast() -> None:
    def f(x: Any, y: Any) -> Any:
        b = np.broadcast(x, y[:, None])
        return b.shape, b.ndim, b.size, b.numiter, np.zeros(b.shape) + x

    got, want = fusec.jit(f)(X, Y), f(X, Y)
    assert got[:4] == want[:4]
    np.testing.assert_array_equal(got[4], want[4])
    with pytest.raises(UnsupportedError, match=r"going through np\.broadcast"):
        fusec.jit(lambda x: [a for (a,) in np.broadcast(x)])(X)
    with pytest.raises(ValueError, match="mismatch"):
        fusec.jit(lambda x, y: x * np.broadcast(x, y[1:]).ndim)(X, Y)
