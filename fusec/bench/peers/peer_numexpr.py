"""The elementwise programs as numexpr strings; several outputs take several passes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from ..programs.black_scholes import DENOMINATOR, NUMERATOR, ROOT_TWO_PI, SPLIT
from ..programs.tone_map import WHITE, hable

LITERAL = re.compile(r"(?<![\w.])\d+\.\d*(?:e[+-]?\d+)?")


def _evaluate(expression: str, scope: dict[str, Any]) -> Any:
    """Evaluate with the float literals in the dtype of the arrays.

    numexpr takes a literal for float64 and promotes a float32 expression with it; passing typed
    constants by name is its documentation's cure.
    """
    import numexpr

    dtype = next(v.dtype for v in scope.values())
    named: dict[str, Any] = {}
    if dtype == np.float32:
        expression = LITERAL.sub(lambda match: _name(match.group(), named, dtype), expression)
    return numexpr.evaluate(expression, local_dict=scope | named, global_dict={})


def _name(literal: str, named: dict[str, Any], dtype: Any) -> str:
    name = "c_" + re.sub(r"\W", "_", literal)
    named[name] = dtype.type(literal)
    return name


EOS = """
(999.842594 + T*(6.793952e-2 + T*(-9.095290e-3 + T*(1.001685e-4 + T*(-1.120083e-6
 + T*6.536332e-9)))) + (8.24493e-1 + T*(-4.0899e-3 + T*(7.6438e-5 + T*(-8.2467e-7
 + T*5.3875e-9))))*S + (-5.72466e-3 + T*(1.0227e-4 - T*1.6546e-6))*S*sqrt(S) + 4.8314e-4*S*S)
/ (1.0 - p/10.0 / (19652.21 + T*(148.4206 + T*(-2.327105 + T*(1.360477e-2 - T*5.155288e-5)))
 + S*(54.6746 + T*(-0.603459 + T*(1.09987e-2 - T*6.1670e-5))
 + (7.944e-2 + T*(1.6483e-2 - T*5.3009e-4))*sqrt(S))
 + p/10.0*(3.239908 + T*(1.43713e-3 + T*(1.16092e-4 - T*5.77905e-7))
 + S*(2.2838e-3 + T*(-1.0981e-5 - T*1.6078e-6) + 1.91075e-4*sqrt(S))
 + p/10.0*(8.50935e-5 + T*(-6.12293e-6 + T*5.2787e-8)
 + S*(-9.9348e-7 + T*(2.0816e-8 + T*9.1697e-10))))))
""".replace("\n", "")


def eos(S: Any, T: Any, p: Any) -> Any:
    return _evaluate(EOS, {"S": S, "T": T, "p": p})


LINEAR = "where(v <= 0.04045, v/12.92, ((v + 0.055)/1.055)**2.4) * 2.0"
CURVE = "((x*(0.15*x + 0.05) + 0.004) / (x*(0.15*x + 0.50) + 0.06) - 0.02/0.30)"
ENCODE = "where(u <= 0.0031308, 12.92*u, 1.055*u**(1.0/2.4) - 0.055)"


def tone_map(image: Any) -> Any:
    linear = _evaluate(LINEAR, {"v": image})
    mapped = _evaluate(f"{CURVE} / white", {"x": linear, "white": image.dtype.type(hable(WHITE))})
    clipped = _evaluate("where(u < 0, 0.0*u, where(u > 1, 0.0*u + 1.0, u))", {"u": mapped})
    return _evaluate(ENCODE, {"u": clipped})


def _horner(coefficients: tuple[float, ...], x: str) -> str:
    text = repr(coefficients[0])
    for c in coefficients[1:]:
        text = f"({text}*{x} + {c!r})"
    return text


def _normal_cdf(x: Any) -> Any:
    z = _evaluate("abs(x)", {"x": x})
    near = f"{_horner(NUMERATOR, 'z')} / {_horner(DENOMINATOR, 'z')}"
    far = f"1.0/({ROOT_TWO_PI}*(z + 1.0/(z + 2.0/(z + 3.0/(z + 4.0/(z + 0.65))))))"
    tail = _evaluate(f"exp(-0.5*z*z) * where(z < {SPLIT}, {near}, {far})", {"z": z})
    return _evaluate("where(x > 0, 1.0 - t, t)", {"x": x, "t": tail})


def black_scholes(S: Any, K: Any, T: Any, r: Any, sigma: Any) -> tuple[Any, ...]:
    v = {"S": S, "K": K, "T": T, "r": r, "g": sigma}
    v["root"] = _evaluate("g*sqrt(T)", v)
    v["d1"] = _evaluate("(log(S/K) + (r + 0.5*g*g)*T)/root", v)
    v["n1"] = _normal_cdf(v["d1"])
    v["n2"] = _normal_cdf(_evaluate("d1 - root", v))
    v["n"] = _evaluate("exp(-0.5*d1*d1)/2.5066282746310002", v)
    v["k"] = _evaluate("K*exp(-r*T)", v)
    v["decay"] = _evaluate("-0.5*S*n*g/sqrt(T)", v)
    price = [_evaluate(e, v) for e in ("S*n1 - k*n2", "k*(1.0 - n2) - S*(1.0 - n1)")]
    rest = [_evaluate(e, v) for e in (
        "n1 - 1.0", "n/(S*root)", "S*n*sqrt(T)", "decay - r*k*n2", "decay + r*k*(1.0 - n2)",
        "T*k*n2", "-T*k*(1.0 - n2)")]
    return (*price, v["n1"], *rest)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "eos": eos, "tone_map": tone_map, "black_scholes": black_scholes,
}
