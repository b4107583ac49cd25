"""Sparse arrays of SciPy's as arguments, against SciPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import fusec
from fusec.errors import UnsupportedError

FORMATS = ("csr", "csc", "coo")
DENSE = np.array([[1.5, 0, 2, 0], [0, 0, 0, 0], [0, -3, 0.25, 4]])
X, Y = np.array([1.0, -2, 0.5, 3]), np.array([2.0, 1, -1])
WHOLE = np.arange(12.0).reshape(3, 4)

WITHOUT_STRUCTURE: dict[str, Callable[[Any], Any]] = {
    "A @ x": lambda a: a @ X, "x @ A": lambda a: Y @ a, "A @ X": lambda a: a @ WHOLE.T,
    "X @ A": lambda a: WHOLE.T @ a, "A.T @ (A @ x)": lambda a: a.T @ (a @ X),
    "A.T.T @ x": lambda a: a.T.T @ X, "dot": lambda a: a.dot(X),
    "sums": lambda a: (a.sum(), a.sum(axis=0), a.sum(axis=1), a.sum(-1), np.sum(a)),
    "means": lambda a: (a.mean(axis=0), a.mean(axis=1)),
    "diagonals": lambda a: (a.diagonal(), a.diagonal(1), a.diagonal(-2), a.trace()),
    "toarray": lambda a: (a.toarray(), a.todense()),
    "beside arrays": lambda a: (a + WHOLE, WHOLE + a, a - WHOLE, WHOLE - a),
    "data": lambda a: a.data * 2, "facts": lambda a: (a.shape, a.nnz, a.ndim, np.zeros(2, a.dtype)),
    "kinds": lambda a: (sparse.issparse(a), isinstance(a, sparse.csr_array), hasattr(a, "blocks")),
}
WITH_STRUCTURE: dict[str, Callable[[Any], Any]] = {
    "itself": lambda a: a, "T": lambda a: a.T, "times": lambda a: 3 * (a * 2),
    "over": lambda a: a / 4, "multiply": lambda a: a.multiply(2.5), "negative": lambda a: -a,
    "astype": lambda a: a.astype("f4"), "tocoo": lambda a: a.tocoo(), "conj": lambda a: a.conj(),
    "copy": lambda a: a.copy(),
    "times a NumPy number": lambda a: a * np.float32(2),
}
BY_ARRAYS: dict[str, Callable[[Any], Any]] = {
    "by columns": lambda a: a.multiply(X), "by rows": lambda a: a.multiply(Y[:, None]),
    "by elements": lambda a: a * (WHOLE + 1), "over columns": lambda a: a / X,
}


def made(format: str, dense: Any, kind: str = "array") -> Any:
    return getattr(sparse, f"{format}_{kind}")(dense)


def check(got: Any, want: Any) -> None:
    if isinstance(want, tuple):
        for part, other in zip(got, want, strict=True):
            check(part, other)
        return
    assert type(got) is type(want)
    if sparse.issparse(want):
        assert (got.shape, got.dtype, got.nnz) == (want.shape, want.dtype, want.nnz)
        got, want = got.toarray(), want.toarray()
    np.testing.assert_array_equal(got, want, strict=isinstance(want, np.ndarray))


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", WITHOUT_STRUCTURE)
def test_results_are_scipys(format: str, name: str) -> None:
    f, a = WITHOUT_STRUCTURE[name], made(format, DENSE)
    check(fusec.jit(f)(a), f(a))


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("mine", ["?", "u1", "i1", "i8", "f4"])
@pytest.mark.parametrize("other", ["?", "u1", "i8", "f8"])
def test_differences_are_of_the_type_of_both(format: str, mine: str, other: str) -> None:
    values = np.array([[0, -128 if mine == "i1" else 2], [3, 0]]).astype(mine)
    a, y = made(format, values), np.array([[1, 0], [2, 5]]).astype(other)

    def f(a: Any, y: Any) -> Any:
        return y - a, a - y, y + a

    if mine == other == "?":
        with pytest.raises(TypeError, match="boolean subtract"):
            fusec.jit(f)(a, y)
        return
    check(fusec.jit(f)(a, y), f(a, y))


def test_differences_add_up_duplicates_in_the_type_of_the_array() -> None:
    a = sparse.csr_array((np.array([200, 100], np.uint8), [0, 0], [0, 2, 2]), shape=(2, 2))

    def f(a: Any) -> Any:
        return np.full((2, 2), 0.5) - a, a - np.full(2, 0.5)

    check(fusec.jit(f)(a), f(a))


def test_the_difference_of_two_is_refused() -> None:
    a, b = made("csr", DENSE != 0), made("csr", DENSE)
    for f in (lambda a, b: a - b, lambda a, b: b - a):
        with pytest.raises(UnsupportedError, match="a sum of a sparse array"):
            fusec.jit(f)(a, b)


def test_a_sum_counts_each_stored_element() -> None:
    """Another sum than SciPy's, which adds up duplicates in their type first, as documented."""
    def twice(values: list[Any], dtype: str) -> Any:
        return sparse.csr_array((np.array(values, dtype), [0, 0], [0, 2, 2]), shape=(2, 2))

    total = fusec.jit(lambda a: a.sum())
    for values, dtype, all_stored, scipys in (
            ([200, 100], "u1", 300, 44), ([True, True], "?", 2, 1), ([200, 100], "i8", 300, 300)):
        assert total(twice(values, dtype)) == all_stored
        merged = twice(values, dtype)
        merged.sum_duplicates()
        assert total(merged) == merged.sum() == scipys


def test_the_mean_is_a_sum_in_parts() -> None:
    assert fusec.jit(lambda a: a.mean())(made("csr", DENSE)) == pytest.approx(DENSE.mean(), 1e-15)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("kind", ["array", "matrix"])
@pytest.mark.parametrize("name", WITH_STRUCTURE)
def test_what_has_the_same_structure_comes_back_as_scipys(
    format: str, kind: str, name: str
) -> None:
    f, a = WITH_STRUCTURE[name], made(format, DENSE, kind)
    check(fusec.jit(f)(a), f(a))


@pytest.mark.parametrize("format", ["csr", "csc"])
@pytest.mark.parametrize("name", BY_ARRAYS)
def test_scaling_by_arrays(format: str, name: str) -> None:
    f, a = BY_ARRAYS[name], made(format, DENSE)
    check(fusec.jit(f)(a), f(a))


def test_sizes_need_no_further_trace() -> None:
    product = fusec.jit(lambda a, x: a @ x)
    rng = np.random.default_rng(0)
    for rows, columns in ((5, 7), (6, 9), (11, 8), (40, 50), (41, 60)):
        a = made("csr", rng.integers(-3, 3, (rows, columns)) * rng.normal(size=(rows, columns)))
        x = rng.normal(size=columns)
        np.testing.assert_array_equal(product(a, x), a @ x)
        before = repr(product)
    assert "1 traces" in before


def drawn(seed: int) -> tuple[Any, Any, Any]:
    """A sparse array with empty rows, elements that stand twice, and rows that are in no order."""
    rng = np.random.default_rng(seed)
    kinds = ("f8", "f4", "i4", "i1", "u2", "c16", "c8", "?")
    dtype, other = (np.dtype(kinds[k]) for k in rng.integers(len(kinds), size=2))
    rows, columns = (int(n) for n in rng.integers(0, 9, 2))
    count = int(rng.integers(0, 25)) if rows * columns else 0
    row, column = rng.integers(0, max(rows, 1), count), rng.integers(0, max(columns, 1), count)
    data = (rng.integers(0, 9, count) / (4 if dtype.kind in "fc" else 1)).astype(dtype)
    index = np.dtype(("i4", "i8")[seed % 2])
    format = FORMATS[seed % 3]
    if format == "coo":
        a = sparse.coo_array((data, (row.astype(index), column.astype(index))),
                             shape=(rows, columns))
    else:
        lines, across = (row, column) if format == "csr" else (column, row)
        order = np.argsort(lines, kind="stable")
        size = rows if format == "csr" else columns
        starts = np.concatenate([[0], np.cumsum(np.bincount(lines, minlength=size))])
        a = getattr(sparse, f"{format}_array")(
            (data[order], across[order].astype(index), starts.astype(index)),
            shape=(rows, columns))
    x, y = (rng.integers(0, 5, n).astype(other) for n in (columns, rows))
    return a, x, y


def products(a: Any, x: Any, y: Any) -> Any:
    return a @ x, y @ a, a.toarray(), a.T.diagonal(), a * 3


@pytest.mark.parametrize("seed", [*range(12), *(
    pytest.param(seed, marks=pytest.mark.repeats) for seed in range(12, 60))])
def test_drawn_arrays(seed: int) -> None:
    args = drawn(seed)
    check(fusec.jit(products)(*args), products(*args))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_bits_of_products_are_scipys(dtype: Any) -> None:
    rng = np.random.default_rng(1)
    a = sparse.csr_array((rng.random((300, 200)) < 0.1) * rng.normal(size=(300, 200))).astype(dtype)
    x = rng.normal(size=200).astype(dtype)
    product = fusec.jit(lambda a, x: a @ x)
    for other in (a, a.tocsc(), a.tocoo()):
        np.testing.assert_array_equal(product(other, x), other @ x, strict=True)


@pytest.mark.parametrize("format", FORMATS)
def test_gradients(format: str) -> None:
    def loss(a: Any, x: Any) -> Any:
        return ((a @ x) ** 2).sum()

    a = made(format, DENSE)
    by_product = 2 * DENSE @ X
    np.testing.assert_allclose(fusec.grad(loss, argnums=1)(a, X), DENSE.T @ by_product)
    want = made(format, np.where(DENSE != 0, np.outer(by_product, X) + 1e-300, 0)).data
    np.testing.assert_allclose(fusec.grad(loss, wrt="a.data")(a, X), want)
    lanes = fusec.vmap(lambda a, x: a @ x, in_axes=(None, 0))(a, WHOLE)
    np.testing.assert_allclose(lanes, WHOLE @ DENSE.T)


@pytest.mark.parametrize("index", [-1, 4, 2**31 - 1])
@pytest.mark.parametrize("format", FORMATS)
def test_indices_out_of_range_raise(format: str, index: int) -> None:
    a, product = made(format, DENSE), fusec.jit(lambda a, x: a @ x)
    (a.coords[1] if format == "coo" else a.indices)[1] = index
    with pytest.raises(ValueError, match="an index that is out of range of its shape"):
        product(a, X)


@pytest.mark.parametrize("starts", [[0, -1, 2, 5], [0, 4, 2, 5], [1, 2, 2, 5]])
def test_rows_out_of_range_raise(starts: list[int]) -> None:
    a = made("csr", DENSE)
    a.indptr[:] = starts
    with pytest.raises(ValueError, match="does not begin with 0, decreases, or counts more"):
        fusec.jit(lambda a, x: a @ x)(a, X)


def test_arrays_that_disagree_in_length_are_refused() -> None:
    a = made("csr", DENSE)
    a.indptr[-1] = 6
    with pytest.raises(ValueError, match="argument a is a malformed sparse array"):
        fusec.jit(lambda a, x: a @ x)(a, X)
    a = made("coo", DENSE)
    a.data = a.data[:2]
    with pytest.raises(ValueError, match="argument a is a malformed sparse array"):
        fusec.jit(lambda a, x: a @ x)(a, X)


def test_room_behind_the_elements_is_not_read() -> None:
    a = sparse.csr_array((np.array([1.0, 2, np.nan]), np.array([0, 1, 99]), np.array([0, 1, 2])),
                         shape=(2, 2))
    np.testing.assert_array_equal(fusec.jit(lambda a, x: a @ x)(a, X[:2]), a @ X[:2])


def test_shapes_that_do_not_fit_raise() -> None:
    with pytest.raises(ValueError, match="dimension mismatch") as caught:
        fusec.jit(lambda a, x: a @ x)(made("csr", DENSE), Y)
    assert "test_sparse_arguments.py" in str(caught.value)


@pytest.mark.parametrize(("f", "message"), [
    (lambda a: a @ a.T, "a product of two sparse arrays"), (lambda a: a[0], "an item or a part"),
    (lambda a: a.multiply(a), "two sparse arrays element by element"),
    (lambda a: a.sqrt(), ".sqrt of a sparse array"), (lambda a: a + a, "what is no array"),
    (lambda a: a.tocoo() * X, "a COO array times an array"),
    (lambda a: a.sum(axis=0, out=np.zeros(4)), "out= of a sparse array's sum"),
])
def test_what_data_would_give_a_structure_is_refused(f: Any, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message) as caught:
        fusec.jit(f)(made("csr", DENSE))
    assert "test_sparse_arguments.py" in str(caught.value)


@pytest.mark.parametrize(("f", "message"), [
    (lambda a: a * X, "a product of matrices"), (lambda a: a.sum(axis=0), "an np.matrix"),
    (lambda a: a + WHOLE, "an np.matrix"), (lambda a: a.todense(), "an np.matrix"),
])
def test_what_gives_an_np_matrix_is_refused(f: Any, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        fusec.jit(f)(made("csr", DENSE, "matrix"))


def test_other_formats_are_refused() -> None:
    for a in (sparse.lil_array(DENSE), sparse.coo_array(X)):
        with pytest.raises(TypeError, match="those of format csr, csc and coo and rank 2"):
            fusec.jit(lambda a: a.sum())(a)


def test_sparse_arrays_from_outside_are_refused() -> None:
    a = made("csr", DENSE)
    with pytest.raises(TypeError, match=r"pass it as an argument(.|\n)* at .*test_sparse_arg"):
        fusec.vmap(lambda x: a @ x)(X)


def _scaled(a: Any) -> Any:
    a.data *= 2
    b = a
    a *= 3
    a /= 4
    return b @ X


@pytest.mark.parametrize("format", FORMATS)
def test_changes_in_place_are_the_callers(format: str) -> None:
    a, other = made(format, DENSE), made(format, DENSE)
    np.testing.assert_array_equal(fusec.jit(_scaled)(a), _scaled(other))
    np.testing.assert_array_equal(a.toarray(), other.toarray())


def test_changes_in_place_in_branches_and_loops() -> None:
    def program(a: Any, x: Any) -> Any:
        b = a * 2
        if x[0] > 0:
            b *= 2
        for _ in range(int(x[3])):
            b.data *= 0.5
        return b @ x, a @ x

    a = made("csr", DENSE)
    check(fusec.jit(program)(a, X), program(a, X))


@pytest.mark.parametrize("f", [
    lambda a: a == 0, lambda a: a != 0, lambda a: a < 1, lambda a: X[0] == a, abs, lambda a: a ** 2,
    lambda a: 1 if a else 2, lambda a: not a, round,
])
def test_operators_of_object_are_not_taken_for_scipys(f: Any) -> None:
    with pytest.raises(UnsupportedError, match="of a sparse array") as caught:
        fusec.jit(lambda a: f(a))(made("csr", DENSE))
    assert "test_sparse_arguments.py" in str(caught.value)


def test_other_data_are_refused() -> None:
    def program(a: Any) -> Any:
        a.data = a.data * 2
        return a @ X

    with pytest.raises(UnsupportedError, match=r"assigning to \.data of"):
        fusec.jit(program)(made("csr", DENSE))


@pytest.mark.parametrize("axis", [2, -3, (0, 1), 0.5])
def test_an_axis_that_is_none(axis: Any) -> None:
    for f in (lambda a: a.sum(axis=axis), lambda a: a.mean(axis=axis)):
        with pytest.raises(ValueError, match="none of -2, -1, 0 and 1"):
            fusec.jit(f)(made("csr", DENSE))


@pytest.mark.parametrize("k", [4, 7, -3, -9])
def test_diagonals_beyond_the_shape_are_empty(k: int) -> None:
    a = made("csr", DENSE)
    check(fusec.jit(lambda a: a.diagonal(k))(a), a.diagonal(k))


@pytest.mark.parametrize("format", FORMATS)
def test_truths_of_elements_that_are_stored_twice(format: str) -> None:
    truths = fusec.jit(lambda a: a.astype(bool) @ X[:2])
    twice = {"coo": ([1.0, 1.0], ([0, 0], [1, 1]))}.get(format, ([1.0, 1.0], [0, 0], [0, 0, 2]))
    a = getattr(sparse, f"{format}_array")(twice, shape=(2, 2))
    with pytest.raises(ValueError, match="an element is stored twice"):
        truths(a)
    a.sum_duplicates()
    check(truths(a), a.astype(bool) @ X[:2])


class Derived(sparse.csr_array):
    pass


def test_derived_classes_are_refused() -> None:
    a = Derived(DENSE)
    with pytest.raises(TypeError, match="whose class is derived from one of SciPy's"):
        fusec.jit(lambda a, x: a @ x)(a, X)
    with pytest.raises(TypeError, match=r"pass it as an argument(.|\n)* at .*test_sparse_arg"):
        fusec.vmap(lambda x: a @ x)(X)


def test_lanes_of_sparse_arrays_are_refused() -> None:
    a = made("coo", np.diag(X))  # all of its arrays have four elements
    with pytest.raises(ValueError, match=r"lanes of a sparse array(.|\n)*\['a'\]: csr, \("):
        fusec.vmap(lambda b, c: b["a"].data * 2)({"a": made("csr", DENSE)}, a)
    with pytest.raises(ValueError, match="lanes of a sparse array"):
        fusec.vmap(lambda a, x: a * x[0], in_axes=(None, 0))(a, WHOLE)


def test_attributes_of_the_programs_own_are_refused() -> None:
    def f(A: Any, x: Any) -> Any:
        A.label = 3
        return A @ x

    def g(A: Any, x: Any) -> Any:
        A.format = "csc"
        return A @ x

    for function in (f, g):
        with pytest.raises(UnsupportedError, match="of a sparse array is not supported"):
            fusec.jit(function)(sparse.csr_array(np.eye(3)), np.ones(3))


@pytest.mark.parametrize("options", [{}, {"wrt": "A"}])
def test_gradients_by_the_whole_array_name_its_elements(options: dict[str, str]) -> None:
    def loss(A: Any) -> Any:
        return (A.data ** 2).sum()

    with pytest.raises(TypeError, match=r'wrt="A\.data"'):
        fusec.grad(loss, **options)(sparse.csr_array(np.eye(3)))


def test_an_array_given_twice_is_changed_for_both() -> None:
    def f(A: Any, B: Any) -> Any:
        A.data[:] = 2 * A.data
        return B @ np.ones(3)

    given, plain = sparse.csr_array(np.eye(3)), sparse.csr_array(np.eye(3))
    compiled = fusec.jit(f)
    for _ in range(3):
        np.testing.assert_array_equal(compiled(given, given), f(plain, plain))
