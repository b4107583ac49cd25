"""The meaning of a traced program is in one table: `hooks.policy`."""

from __future__ import annotations

import inspect
from collections import Counter

import pytest

from fusec.trace.convert.hooks import Hooks
from fusec.trace.hooks import policy
from fusec.trace.objects.tracing_hooks import UNHANDLED, Operands, Policy, TracingHooks, with_policy
from fusec.trace.python.numpy_source import LIBRARY

POLICIES = {"program": policy.PROGRAM, "library": LIBRARY}
# No events: `call` packs its arguments for `called`, and keys are looked at as they are wrapped.
OWN = {"call", "__init__", "wrap_key"}


@pytest.mark.parametrize("name", POLICIES)
def test_each_handler_stands_once_in_a_row_and_takes_its_operands(name: str) -> None:
    for event, row in POLICIES[name].rows.items():
        assert Counter(row) == dict.fromkeys(row, 1), event
        if len(row) > 1:
            counts = {len([p for p in inspect.signature(handler).parameters.values()
                           if p.default is p.empty]) for handler in row}
            assert len(counts) == 1, event


@pytest.mark.parametrize("name", POLICIES)
def test_rows_are_events(name: str) -> None:
    """Of Python's, or those that only hooks of a trace have."""
    known = {*vars(Hooks), *vars(TracingHooks), *TracingHooks.__annotations__}
    assert set(POLICIES[name].rows) <= known
    assert set(LIBRARY.rows) >= set(policy.PROGRAM.rows)


def test_no_class_stands_between_the_table_and_python() -> None:
    assert TracingHooks.__mro__ == (TracingHooks, Hooks, object)
    for rows in POLICIES.values():
        hooks = with_policy(rows)
        assert hooks.__bases__ == (TracingHooks,)
        assert {name for name in vars(hooks) if not name.startswith("__")} == set(rows.rows)
    overridden = {name for name, value in vars(TracingHooks).items()
                  if inspect.isfunction(value) and hasattr(Hooks, name)}
    assert overridden - OWN == set()


def test_handlers_are_asked_in_their_order() -> None:
    asked = []

    def changing(hooks, where, a, b):
        asked.append(("changing", a, b))
        return Operands((a + 1, b))

    def passing(hooks, where, a, b):
        asked.append(("passing", a, b))
        return UNHANDLED

    def answering(hooks, where, a, b):
        asked.append(("answering", a, b))
        return None if a == 2 else UNHANDLED

    def last(hooks, where, a, b):
        return a, b

    hooks = Hooks()
    method = Policy({"event": (passing, changing, answering, last)}).methods["event"]
    where = ("f.py", 1, 0, "f", 1)
    assert method(hooks, where, 1, "b") is None
    assert asked == [("passing", 1, "b"), ("changing", 1, "b"), ("answering", 2, "b")]
    assert hooks.where == where
    assert method(hooks, where, 2, "b") == (3, "b")
