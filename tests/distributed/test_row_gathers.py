"""Gathers and scatters whose index counts the rows of the axis in blocks; calls of ufuncs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusec

da = pytest.importorskip("dask.array")
import dask  # noqa: E402

from tests.distributed.chunked import compared  # noqa: E402

RNG = np.random.default_rng(0)
SCORES, LABELS = RNG.standard_normal((60, 10)), RNG.integers(0, 10, 60)


def one_hot(scores: Any, labels: Any) -> Any:
    y = np.zeros(scores.shape)
    y[np.arange(len(scores)), labels] = 1.0
    return y


def put(scores: Any, labels: Any) -> Any:
    y = scores.copy()
    np.put_along_axis(y, labels[:, None], 7.0, axis=1)
    return y


def counted(scores: Any, labels: Any) -> Any:
    y = np.zeros(scores.shape)
    np.add.at(y, (np.arange(len(scores))[:, None], labels[:, None] % np.array([3, 5])), 1.0)
    return y


def slopes(scores: Any, labels: Any) -> Any:
    def loss(scores: Any) -> Any:
        return (scores ** 2)[np.arange(len(scores)), labels].sum()

    return fusec.grad(loss)(scores)


ROWS = {
    "chosen": lambda s, n: s[np.arange(len(s)), n],
    "from the end": lambda s, n: s[np.arange(60), n - 10],
    "along": lambda s, n: np.take_along_axis(s, n[:, None], axis=1),
    "sorted": lambda s, n: np.take_along_axis(s, np.argsort(s, axis=1), axis=1),
    "several": lambda s, n: s[np.arange(len(s))[:, None], np.stack([n, 9 - n, n // 2], axis=1)],
    "columns": lambda s, n: s.T[n, np.arange(len(s))],
    "in a stack": lambda s, n: s.reshape(60, 5, 2)[np.arange(60), :, n % 2],
    "part": lambda s, n: s[np.arange(len(s)), n][7:33],
    "one hot": one_hot, "put": put, "counted": counted, "slopes": slopes,
    "reduced": lambda s, n: np.logaddexp.reduce(s, axis=1),
    "accumulated": lambda s, n: np.hypot.accumulate(s, axis=1)[:, 2:5],
    "called": lambda s, n: np.logaddexp(s, n[:, None]),
    "with a column": lambda s, n: np.nextafter(s, n[:, None].astype(float)),
}


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("rows", [17, (1, 40, 19)])
def test_row_by_row(name: str, rows: Any) -> None:
    compared(ROWS[name], SCORES, LABELS, chunks=((rows, (10,)), (rows,)))


@pytest.mark.parametrize("name", ["chosen", "several", "one hot", "columns"])
def test_one_of_the_arrays_is_whole(name: str) -> None:
    compared(ROWS[name], SCORES, LABELS, chunks=(None, 17))
    compared(ROWS[name], SCORES, LABELS, chunks=((17, 10), None))


@pytest.mark.parametrize("columns", [2, 6, 7, 8, 20])
def test_short_sums_of_transposed_arrays_have_the_bits_of_any_number_of_rows(columns: int) -> None:
    x = RNG.standard_normal((40, columns))
    for rows in (3, 9, (1, 20, 19)):
        compared(lambda x: np.exp(x).T.sum(axis=0), x, chunks=((rows, (columns,)),))


REFUSED = {
    "other rows": lambda s, n: s[np.arange(len(s))[::-1], n],
    "some rows": lambda s, n: s[np.arange(30), n[:30]],
    "columns in blocks": lambda s, n: s[np.arange(len(s)), n],
    "reduced": lambda s, n: np.logaddexp.reduce(s, axis=0),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_indices_are_refused(name: str) -> None:
    columns = 5 if name == "columns in blocks" else 10
    with pytest.raises(fusec.errors.UnsupportedError, match=r"in . blocks"):
        fusec.jit(REFUSED[name])(da.from_array(SCORES, chunks=(17, columns)),
                                 da.from_array(LABELS, chunks=17))


def test_an_array_from_outside_counts_only_while_it_does() -> None:
    index = np.arange(60)
    f = fusec.jit(lambda s, n: s[index, n])
    with pytest.raises(fusec.errors.UnsupportedError, match=r"np\.take along axis 0"):
        f(da.from_array(SCORES, chunks=(17, 10)), LABELS)
    with dask.config.set(scheduler="sync"):
        np.testing.assert_array_equal(f(SCORES, da.from_array(LABELS, chunks=60)).compute(),
                                      SCORES[index, LABELS])
