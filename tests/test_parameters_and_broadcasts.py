"""The report of Variables and of broadcasts that make larger arrays, in `explain` and as data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusec


def broadcasts_of(function: Any, *args: Any) -> list[Any]:
    return fusec.jit(function).concrete(*args).broadcasts


ROW, COLUMN, TABLE = np.ones(5), np.ones((4, 1)), np.ones((4, 5))


def test_a_column_minus_a_row() -> None:
    def loss(prediction: np.ndarray, label: np.ndarray) -> Any:
        return np.mean((prediction * 2 - label) ** 2)

    found = broadcasts_of(loss, ROW, COLUMN)
    assert [(b.operation, b.node, b.result, b.nbytes) for b in found] == [
        ("np.subtract", "Sub", "f64[4,5]", 160)]
    assert found[0].operands == (("prediction * 2 (Mul)", "f64[5]"), ("label", "f64[4,1]"))
    assert found[0].loc.line == loss.__code__.co_firstlineno + 1
    text = str(fusec.explain(loss, ROW, COLUMN))
    assert "\nbroadcasts that make larger arrays\n  np.subtract of prediction * 2 (Mul): f64[5]" \
           ", label: f64[4,1] gives f64[4,5], 160 B at " in text
    assert "broadcasts that make" in fusec.explain(loss, ROW, COLUMN).html()


@pytest.mark.parametrize("program", [
    lambda row, column: row[None, :] + (column[:, 0] * 2)[:, None],
    lambda row, column: np.ones((4, 5)) * row - column,
    lambda row, column: row * 2 + column[0, 0],
    lambda row, column: np.broadcast_to(row, (4, 5)) * column,
    lambda row, column: row - row.mean(keepdims=True),
    lambda row, column: np.outer(row, column),
    lambda row, column: fusec.grad(lambda r: np.sum(r * r))(row),
])
def test_what_is_none(program: Any) -> None:
    assert broadcasts_of(program, ROW, COLUMN) == []
    assert "broadcasts that make" not in str(fusec.explain(program, ROW, COLUMN))


def test_half_of_it_by_oneself_is_one() -> None:
    assert len(broadcasts_of(lambda row, column: row[:, None] - row, ROW, COLUMN)) == 1


def test_in_loops_branches_and_gradients() -> None:
    def program(row: np.ndarray, column: np.ndarray, n: int) -> Any:
        total = 0.0
        for i in range(n):
            if row[0] > i:
                total += np.sum(np.where(row > column, row, column))
        return total

    found = broadcasts_of(fusec.grad(program), ROW, COLUMN, 40)
    assert {b.operation for b in found} == {"np.greater"}
    assert {b.loc.line for b in found} == {program.__code__.co_firstlineno + 4}


def test_sizes_that_only_the_run_knows() -> None:
    found = broadcasts_of(lambda row, column: np.sum(row[row > 0] * column), ROW, COLUMN)
    assert len(found) == 1 and found[0].nbytes is None and "4" in found[0].result


class Model:
    def __init__(self) -> None:
        self.w = fusec.Variable(np.arange(3.0), name="w")
        self.count = fusec.Variable(np.int64(0), name="count", trainable=False)

    @fusec.jit
    def step(self, x: np.ndarray) -> Any:
        self.count.assign_add(1)
        return x @ self.w


def test_variables() -> None:
    model = Model()
    model.step(np.ones((4, 3)))
    records = {r.title: r for r in model.step.traces[0].variable_records()}
    w, count = records["Variable w"], records["Variable count"]
    assert (w.type, w.nbytes, w.trainable, w.is_assigned) == ("f64[3]", 24, True, False)
    assert w.norm == pytest.approx(5 ** 0.5) and w.device.endswith("CPU:0")
    assert (count.type, count.norm, count.trainable, count.is_assigned) == ("i64[]", 1, False, True)
    model.w.assign([1.0, np.nan, 0.0])
    text = str(fusec.explain(model.step, np.ones((4, 3))))
    assert "\nVariables\n" in text and "norm nan  CPU:0  read\n" in text
    assert "assigned, not trainable\n" in text and "\n  2 Variables, 32 B\n" in text
