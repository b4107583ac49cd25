"""Functions of SciPy and scikit-learn that are written for the array API standard, compiled.

In a process of its own: SciPy reads SCIPY_ARRAY_API when it is imported.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("scipy")

_COMPARE = """
import numpy as np
import fusec
rng = np.random.default_rng(0)
x, y = rng.random((6, 50)) + 0.1, rng.random((6, 50)) + 0.1

def same(f, *args):
    with np.errstate(all="raise"):
        got, want = fusec.jit(f)(*args), f(*args)
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-13)
    print("compiled")
"""
_SCIPY = _COMPARE + """
from scipy import cluster, fft, integrate, signal, special, stats
same(lambda x: stats.zscore(x, axis=1), x)
same(lambda x: stats.gzscore(x, axis=1), x)
same(lambda x, y: stats.zmap(x, y, axis=1), x, y)
same(lambda x: special.logsumexp(x, axis=1), x)
same(lambda x: special.softmax(x, axis=1), x)
same(lambda x: special.log_softmax(x, axis=1), x)
same(lambda x: special.erf(x), x)
same(lambda x: special.expit(x), x)
same(lambda x, y: special.xlogy(x, y) + special.rel_entr(x, y), x, y)
same(lambda x: special.j0(x), x)
same(lambda x: integrate.trapezoid(x, axis=1), x)
same(lambda x: integrate.simpson(x, axis=1), x)
same(lambda x: signal.detrend(x), x)
same(lambda x: signal.hilbert(x), x)
same(lambda x: cluster.vq.whiten(x.T), x)
same(lambda x: fft.rfft(x), x)
"""
_STATISTICS = _COMPARE + """
from scipy import stats
x, y = x[0], y[0]
ones = np.ones(10)
for name in ("gmean hmean skew kurtosis moment sem tmean tvar tstd tsem tmin tmax variation iqr "
             "circmean circvar circstd entropy differential_entropy").split():
    same(lambda x, f=getattr(stats, name): f(x), x)
    same(lambda x, f=getattr(stats, name): f(x), np.where(x > 1.0, np.nan, x))
for name in "skewtest kurtosistest normaltest".split():
    same(lambda x, f=getattr(stats, name): tuple(f(x)), x)
for name in "pearsonr f_oneway bartlett levene".split():
    same(lambda x, y, f=getattr(stats, name): tuple(f(x, y)), x, y)
same(lambda x: tuple(stats.chisquare(x)), ones)
same(lambda x: tuple(stats.power_divergence(x)), ones)
"""
_ALONG_AXES = _COMPARE + """
from scipy import stats
missing = x.copy()
missing[2, 3] = np.nan
for name in ("skew", "sem", "gmean"):
    for axis in (0, 1):
        same(lambda x, f=getattr(stats, name): f(x, axis=axis), missing)
for name in ("f_oneway", "ttest_ind"):
    same(lambda x, y, f=getattr(stats, name): tuple(f(x, y, axis=0)), missing, y)
same(lambda x: tuple(stats.jarque_bera(x, axis=1)), x)
try:
    fusec.jit(lambda x: stats.ttest_1samp(x, 0.5))(x)
except TypeError as error:  # without NaN they are ints
    assert "df=an array of int64" in str(error), error
"""
_RESULTS = """
import numpy as np
import fusec
from scipy import stats
x = np.random.default_rng(0).random(50)
f = fusec.jit(lambda x: stats.ttest_1samp(x, 0.4))
got, want = f(x), stats.ttest_1samp(x, 0.4)
assert type(got) is type(want) and got._fields == want._fields
np.testing.assert_allclose([*got, got.df], [*want, want.df], rtol=1e-9)
np.testing.assert_allclose(got.confidence_interval(0.9), want.confidence_interval(0.9), rtol=1e-9)
x[3] = np.nan
assert np.isnan(f(x).pvalue) and len(f.traces) == 1
x[3] = 0.5

@fusec.jit
def inside(x):
    r = stats.ttest_1samp(x, 0.4)
    statistic, p = r
    return statistic * p + r.df + r[1]

want = stats.ttest_1samp(x, 0.4)
np.testing.assert_allclose(
    inside(x), want.statistic * want.pvalue + want.df + want[1], rtol=1e-9)
got, want = (g(x) for g in (fusec.jit(lambda x: stats.pearsonr(x, np.sin(x))),
                            lambda x: stats.pearsonr(x, np.sin(x))))
assert type(got) is type(want)
np.testing.assert_allclose([*got], [*want], rtol=1e-9)
print("compiled")
"""
_SKLEARN = _COMPARE + """
import sklearn
from sklearn import decomposition, linear_model, metrics, preprocessing
sklearn.set_config(array_api_dispatch=True)
same(lambda x, y: metrics.mean_squared_error(x, y), x, y)
same(lambda x, y: metrics.mean_absolute_error(x, y), x, y)
same(lambda x, y: metrics.r2_score(x, y), x, y)
t = x.sum(axis=1)
for model in linear_model.Ridge(), linear_model.LinearRegression():
    same(model.fit(x, t).predict, y)
for model in decomposition.PCA(2), preprocessing.StandardScaler():
    same(model.fit(x).transform, y)
same(lambda x: preprocessing.normalize(x), x)
y[0, 1] = np.nan
try:
    fusec.jit(decomposition.PCA(2).fit(x).transform)(y)
except ValueError as error:
    assert "Input X contains {NaN or infinity" in str(error), error
    print("compiled")
"""


def _run(program: str, standard: str = "1") -> int:
    """How many functions were compiled, and gave what SciPy gives."""
    ran = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, "SCIPY_ARRAY_API": standard},
        capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr[-3000:]
    return ran.stdout.count("compiled")


def test_functions_of_scipy() -> None:
    assert _run(_SCIPY) == 16


@pytest.mark.parametrize("standard", ["0", "1"])
def test_statistics_of_scipy(standard: str) -> None:
    assert _run(_STATISTICS, standard) == 47


def test_statistics_along_an_axis() -> None:
    assert _run(_ALONG_AXES) == 9


def test_results_that_have_methods() -> None:
    assert _run(_RESULTS) == 1


def test_functions_of_sklearn() -> None:
    pytest.importorskip("sklearn")
    assert _run(_SKLEARN) == 9
