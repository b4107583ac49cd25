"""Functions of ``scipy.special`` that kernels compute.

Formulas: Abramowitz and Stegun, *Handbook of Mathematical Functions*, 6.3 and 7.1.
"""

from __future__ import annotations

import math

from ..protocol import declare
from ..terms import exp, square
from .elementary_functions import LN10
from .ufuncs import psi

_OF_ERF = 2 / math.sqrt(math.pi)
_OF_NORMAL = 1 / math.sqrt(2 * math.pi)


declare("Erf", partials=(lambda x, y: _OF_ERF * exp(-square(x)),))
declare("Erfc", partials=(lambda x, y: -_OF_ERF * exp(-square(x)),))
declare("Gammaln", partials=(lambda x, y: psi(x),))
declare("Expit", partials=(lambda x, y: y * (1 - y),))
declare("Logit", partials=(lambda x, y: 1 / (x * (1 - x)),))
declare("Ndtr", partials=(lambda x, y: _OF_NORMAL * exp(-0.5 * square(x)),))
declare("LogNdtr", partials=(lambda x, y: _OF_NORMAL * exp(-0.5 * square(x) - y),))
declare("Exp10", partials=(lambda x, y: LN10 * y,))
