"""Functions of ``scipy.special`` that kernels compute.

Formulas: Abramowitz and Stegun, *Handbook of Mathematical Functions*, 6.3 and 7.1.
"""

from __future__ import annotations

import math

from fusec.ir import TensorType

from .elementary import LN10
from .protocol import declare
from .terms import Term, exp, square

_OF_ERF = 2 / math.sqrt(math.pi)
_OF_NORMAL = 1 / math.sqrt(2 * math.pi)


def _digamma(x: Term) -> Term:
    """SciPy's, a library call: no kernel computes it."""
    kind = x.value.type.kind if x.rank == 0 else "array"
    result = TensorType(x.dtype, x.shape, "scalar" if kind == "weak" else kind)
    return x.emit("Ufunc", form=("tuple", "special.psi", "__call__", ("operand", 0)),
                  named=("tuple",), results=(result,))


declare("Erf", partials=(lambda x, y: _OF_ERF * exp(-square(x)),))
declare("Erfc", partials=(lambda x, y: -_OF_ERF * exp(-square(x)),))
declare("Gammaln", partials=(lambda x, y: _digamma(x),))
declare("Expit", partials=(lambda x, y: y * (1 - y),))
declare("Logit", partials=(lambda x, y: 1 / (x * (1 - x)),))
declare("Ndtr", partials=(lambda x, y: _OF_NORMAL * exp(-0.5 * square(x)),))
declare("LogNdtr", partials=(lambda x, y: _OF_NORMAL * exp(-0.5 * square(x) - y),))
declare("Exp10", partials=(lambda x, y: LN10 * y,))
