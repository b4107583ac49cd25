"""Short loops that are refused written out, one iteration after the other, are tried as loops of
the graph: the trace begins anew with that known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from fusec.core.records import dataclass, field
from fusec.errors import ConcreteValueError, UnsupportedError

from ..rewrite.transformer import Where

Result = TypeVar("Result")
MOST_ATTEMPTS = 8  # each is a trace


@dataclass
class LoopForms:
    """Of the attempts at a trace: loops that are to be in the graph, and that were written out."""

    in_graph: frozenset[Where] = frozenset()
    written_out: dict[Where, None] = field(default_factory=dict)
    around: list[Where] = field(default_factory=list)  # those around what was refused, from inside

    @contextmanager
    def writing_out(self, where: Where) -> Iterator[None]:
        """The loop's iterations are traced one after the other."""
        self.written_out[where] = None
        try:
            yield
        except (ConcreteValueError, UnsupportedError):
            self.around.append(where)
            raise

    def others(self) -> list[frozenset[Where]]:
        """The loops for the next attempts' graphs: the innermost one around the refusal, all around
        it, every loop; each beside those that are in the graph already."""
        around = dict.fromkeys(self.around)
        return list(dict.fromkeys(
            self.in_graph.union(where) for where in ([*around][:1], around, self.written_out)
            if not self.in_graph.issuperset(where)))


_forms: ContextVar[LoopForms | None] = ContextVar("loop_forms", default=None)


def forms_now() -> LoopForms:
    """Those of the trace that is being made."""
    return _forms.get() or LoopForms()


def in_other_forms(run: Callable[[], Result]) -> Result:
    """The trace, loops written out where that is better, else in the graph; where neither can be,
    the first one's refusal is the answer."""
    refusal: ConcreteValueError | UnsupportedError | None = None
    waiting, tried = [frozenset[Where]()], set[frozenset[Where]]()
    while waiting and len(tried) < MOST_ATTEMPTS:
        forms = LoopForms(waiting.pop(0))
        tried.add(forms.in_graph)
        try:
            return _with(forms, run)
        except (ConcreteValueError, UnsupportedError) as error:
            refusal = refusal or error
        others = [form for form in forms.others() if form not in tried and form not in waiting]
        waiting = others + waiting
    assert refusal is not None
    raise refusal


def _with(forms: LoopForms, run: Callable[[], Result]) -> Result:
    token = _forms.set(forms)
    try:
        return run()
    finally:
        _forms.reset(token)
