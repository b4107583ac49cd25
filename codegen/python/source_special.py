"""Python text of the special functions: for reading and as an oracle, worked in float64."""

from __future__ import annotations

HELPERS = {
    "gammaln": '''
def gammaln(a):
    """log |gamma|; infinite at the poles and past the range of float64."""
    x = float(a)
    if x != x or x == -np.inf:
        return x
    if x > 2.5563e305 or (x <= 0 and x == np.floor(x)):
        return np.inf
    return math.lgamma(x)
''',
    "expit": '''
def expit(a):
    """1/(1 + exp(-a)) without overflow."""
    e = np.exp(-abs(float(a)))
    return e / (1.0 + e) if a < 0 else 1.0 / (1.0 + e)
''',
    "logit": '''
def logit(a):
    """log(a/(1 - a))."""
    x = float(a)
    return np.log(x) - np.log1p(-x)
''',
    "ndtr": '''
def ndtr(a):
    """The normal distribution."""
    return 0.5 * math.erfc(-0.7071067811865476 * float(a))
''',
    "log_ndtr": '''
def log_ndtr(a):
    """The logarithm of the normal distribution; an asymptotic series far below."""
    x = float(a)
    if x > -35.0:
        tail = 0.5 * math.erfc(abs(x) * 0.7071067811865476)
        return np.log1p(-tail) if x > 0 else np.log(tail)
    s = 1.0 / (x * x)
    series = -s * (1.0 - s * (3.0 - s * (15.0 - s * (105.0 - s * (945.0 - s * 10395.0)))))
    return np.log1p(series) - 0.5 * x * x - np.log(-2.5066282746310002 * x)
''',
    "exp10": '''
def exp10(a):
    """10**a."""
    return np.power(10.0, float(a))
''',
}
MATH = frozenset({"erf", "erfc"})  # Python's own

__all__ = ["HELPERS", "MATH"]
