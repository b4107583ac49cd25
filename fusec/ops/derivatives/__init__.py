"""Rules of derivatives: the columns of the registry that `fusec.passes.gradient` reads.

They fill the columns ``partials``, ``vjp`` and ``jvp`` when this package is imported, which only
programs with gradients do.  A rule has one of these forms:

*partials*, of elementwise rows: a tuple with an entry for each operand, a function of the operands
and the result (`Term` s), ``partial(*operands, result)``, that gives the derivative of an element
of the result by the same element of that operand::

    declare("Mul", partials=(lambda a, b, y: b, lambda a, b, y: a))
    declare("Tanh", partials=(lambda x, y: 1 - square(y),))

It serves both directions: a tangent is multiplied by it, a cotangent too, and summed over the axes
that broadcasting made.  A Python number (1, -1, 0) says that the derivative is that everywhere.
Where operands are complex it is the complex derivative of a holomorphic function, and the engine
conjugates it for cotangents; a row of complex operands that is none has ``vjp`` and ``jvp``.

*vjp* and *jvp*, of all other rows: ``vjp(site, cotangents)`` gives the operands' cotangents from
those of the results, ``jvp(site, tangents)`` the results' tangents from those of the operands.
``None`` is zero, among arguments and among results; each term has the shape and dtype
of the value whose derivative it is; a ``vjp`` may also give an `Addend`.  ``site.operands`` and
``site.results`` are the node's values; `linear` and `multilinear` are the ``jvp`` of rows that are.

*ZERO*, in any of these places: zero by nature.  *Refused(reason)*: there is none; a program that
needs it is refused with the user's line.  ``None`` in a column says that nobody has written the
rule, and refuses too.  Operands that are integers or booleans have no cotangent, whatever a rule
gives for them; rows whose results are such need ``ZERO``.

**Branches that were not taken.**  ``np.where(x > 0, np.log(x), 0)`` has the cotangent 0 for the
logarithm where x is 0, and the logarithm the derivative infinity.  `Where` says of a cotangent
where it counts (`Site.masked`); elementwise rows carry the mask to their operands, and whatever a
partial is elsewhere does not matter.  Other rows are given zeros there, and need not know of it.

**Complex numbers.**  A cotangent is the gradient for the inner product ``Re(sum(conj(u) * v))`` of
pairs of reals: of a real function it is ``df/dx + i df/dy``, the direction of steepest ascent.

The rules of a subject stand in a file of its own here.
"""

from . import subjects
from .protocol import (
    DIFFERENTIABLE,
    MASKED,
    ZERO,
    Addend,
    Cotangents,
    Partial,
    Partials,
    Refused,
    Rule,
    Site,
    Tangents,
    Zero,
    broadcast_to,
    declare,
    linear,
    multilinear,
    refusal,
    refused,
    sum_to,
    zero_by_nature,
)
from .terms import Number, Term, full, where

__all__ = [
    "DIFFERENTIABLE",
    "MASKED",
    "ZERO",
    "Addend",
    "Cotangents",
    "Number",
    "Partial",
    "Partials",
    "Refused",
    "Rule",
    "Site",
    "Tangents",
    "Term",
    "Zero",
    "broadcast_to",
    "declare",
    "full",
    "linear",
    "multilinear",
    "refusal",
    "refused",
    "subjects",
    "sum_to",
    "where",
    "zero_by_nature",
]
