"""Functions of SciPy, by name: the table of their rules, and the readers of calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...calls.library import called_name
from ..calls import arguments, array, call
from ..elements.widening_calls import widely
from ..matrices.matrices import column
from ..protocol import Cotangents, Rule, Site, Tangents, declare
from ..terms import Term

Rules = tuple[Rule, Rule]
RULES: dict[str, Rules] = {}  # SciPy's name → `vjp`, `jvp`


def arguments_by_name(site: Site, names: str) -> dict[str, Any]:
    """The arguments of a function of SciPy's; those that change no value are left out."""
    given = arguments(site, names, 1)
    for name in ("overwrite_a", "overwrite_b", "check_finite", "overwrite_ab"):
        given.pop(name, None)
    return given


def only(site: Site, given: dict[str, Any], **allowed: Any) -> None:
    """Refuse arguments that the rule does not know, other than these with these values."""
    for name, value in given.items():
        if isinstance(value, Term) or name in ("a", "b", "c", "q") or value is None:
            continue
        if isinstance(value, tuple) and any(isinstance(x, Term) for x in value):
            continue
        if name not in allowed or (allowed[name] is not ... and value not in allowed[name]):
            site.refuse(f"with {name}={value!r} fusec has no rule for it")


def call_scipy(name: str, like: Term, *args: Any, shape: Sequence[Any], **named: Any) -> Term:
    """The first result of a function of SciPy's."""
    return call(like, "Scipy", name, *args, results=[array(like.dtype, shape)], **named)[0]


def columns(x: Term) -> Term:
    """A vector as a matrix of one column."""
    return column(x) if x.rank == 1 else x


def _rule(site: Site, direction: int) -> Any:
    name = site.attrs["form"][1]
    if name not in RULES:
        site.refuse(f"fusec has no rule for {called_name('Scipy', site.attrs['form'])}")
    return widely(*RULES[name])[direction]


def _vjp(site: Site, cotangents: Tangents) -> Cotangents:
    found: Cotangents = _rule(site, 0)(site, cotangents)
    return found


def _jvp(site: Site, tangents: Tangents) -> Tangents:
    found: Tangents = _rule(site, 1)(site, tangents)
    return found


declare("Scipy", vjp=_vjp, jvp=_jvp)
