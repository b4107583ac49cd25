"""Lists of items of long loops: a part has a node where it is read, all of them are the array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec

RNG = np.random.default_rng(5)
ROWS = {0: RNG.normal(size=40), 1: RNG.normal(size=(40, 3)), 2: RNG.normal(size=(40, 2, 3))}
JOINING: list[tuple[Callable[..., Any], dict[str, Any]]] = [
    (np.stack, {}), (np.stack, {"axis": 1}), (np.stack, {"axis": -1}), (np.vstack, {}),
    (np.hstack, {}), (np.concatenate, {}), (np.concatenate, {"axis": 1}), (np.column_stack, {}),
    (np.dstack, {}), (np.array, {}),
]


def outcome(f: Callable[..., Any], *args: Any) -> Any:
    try:
        return f(*args)
    except (ValueError, IndexError) as error:
        return str(error).splitlines()[0]


@pytest.mark.parametrize(("join", "options"), JOINING)
def test_joined_rows_are_one_operation(join: Callable[..., Any], options: dict[str, Any]) -> None:
    for x in ROWS.values():
        compiled = fusec.jit(lambda x: join([r * 2 for r in x], **options))
        want = outcome(lambda x: join([r * 2 for r in x], **options), x)
        got = outcome(compiled, x)
        if isinstance(want, str):
            assert got == want
            continue
        np.testing.assert_array_equal(got, want)
        assert (got.dtype, got.strides) == (want.dtype, want.strides)
        assert len(compiled.traces[0].graph.nodes) < 10


@pytest.mark.parametrize("join", [np.stack, np.concatenate, np.column_stack, np.dstack])
def test_joined_with_another_part(join: Callable[..., Any]) -> None:
    for x in (ROWS[1], ROWS[2]):
        def program(x: np.ndarray) -> Any:
            return join([*[r * 2 for r in x], x[0]])

        np.testing.assert_array_equal(fusec.jit(program)(x), program(x))


def table(x):
    return np.array([[a * b + 1 for a in x] for b in x])


def table_in_rows(x):
    rows = []
    for b in x:
        rows.append([a - b for a in x])
    return np.array(rows), rows[3][4], len(rows[2])


def parts_of_parts(x):
    rows = [[a - b for a in x] for b in x]
    return np.array(rows[7]), rows[-1][-1], sum(rows[1])


@pytest.mark.parametrize("program", [table, table_in_rows, parts_of_parts])
def test_lists_of_lists(program: Callable[..., Any]) -> None:
    compiled = fusec.jit(program)
    got, want = compiled(ROWS[0]), program(ROWS[0])
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
        assert type(a) is type(b)
    assert len(compiled.traces[0].graph.nodes) < 40


def written(x):
    rows = [r + 1 for r in x]
    whole = np.array(rows)
    rows[3][0] = 100.0
    return whole, np.array(rows), rows[3]


def in_another_order(x):
    rows = [r + 1 for r in x]
    rows.reverse()
    few = [r + 1 for r in x][:-1]
    return np.array(rows), np.stack(few)


def views(x):
    rows = [r[::-1] for r in x]
    return np.array(rows)


@pytest.mark.parametrize("program", [written, in_another_order, views])
def test_parts_are_arrays_of_their_own(program: Callable[..., Any]) -> None:
    compiled = fusec.jit(program)
    for a, b in zip(compiled(ROWS[1]), program(ROWS[1]), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_node_for_a_part_that_is_read() -> None:
    for n in (20, 400):
        compiled = fusec.jit(lambda x: [v * 2 for v in x][3])
        assert compiled(np.arange(float(n))) == 6.0
        assert len(compiled.traces[0].graph.nodes) < 10
