"""Contractions as products of matrices and as sums of products, against NumPy's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import fusec
from fusec import TensorSpec

RNG = np.random.default_rng(0)
SIZES = dict(zip("abcdefgh", (4, 3, 5, 2, 6, 1, 7, 3), strict=True))
TOLERANCE = {"f": 1e-5, "d": 1e-12, "F": 1e-5, "D": 1e-12}


def operands(form: str, dtype: Any = np.float64) -> list[np.ndarray]:
    shapes = [[SIZES[x] for x in labels] for labels in form.partition("->")[0].split(",")]
    made = [RNG.normal(size=shape) + 1j * RNG.normal(size=shape) for shape in shapes]
    is_complex = np.dtype(dtype).kind == "c"
    return [np.asarray(x if is_complex else 10 * x.real).astype(dtype) for x in made]


def agree(form: str, arrays: list[np.ndarray], got: Any, **options: Any) -> None:
    want = np.asarray(np.einsum(form, *arrays, **options))
    assert np.shape(got) == want.shape and np.asarray(got).dtype == want.dtype, form
    near = TOLERANCE[want.dtype.char] * max(1.0, float(np.abs(want).max(initial=0)))
    np.testing.assert_allclose(got, want, rtol=near, atol=near, err_msg=form)


def ops_of(function: Any) -> set[str]:
    return {n.op for trace in function.traces for n in trace.optimized_graph.nodes}


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize(("form", "is_product"), [
    ("ab,bc->ac", True), ("ab,bc->ca", True), ("ba,cb", True), ("ab,b->a", True), ("a,a->", True),
    ("dab,dbc->dac", True), ("adb,cdb->dca", True), ("abc,bcd->ad", True), ("abc,dcb->da", True),
    ("abcd,ade,ef->abcf", False),  # of three NumPy's call
    ("dab,db->ad", False), ("ab,ab->a", False), ("ab,ab->b", False), ("a,b->ba", False),
    ("ab,cd->dabc", False), ("ab->b", False), ("abc->ca", False), ("ab,ab->ab", False)])
def test_forms(form: str, is_product: bool, dtype: str) -> None:
    arrays = operands(form, dtype)
    function = fusec.jit(lambda *x: np.einsum(form, *x))
    agree(form, arrays, function(*arrays))
    assert ("MatMul" in ops_of(function)) == is_product
    assert ("Einsum" in ops_of(function)) == (form.count(",") > 1)
    for order in (lambda x: np.asarray(x.T.copy().T), lambda x: x[::-1].copy()[::-1]):
        laid = [order(x) if x.ndim else x for x in arrays]
        agree(form, laid, function(*laid))


@pytest.mark.parametrize("form", [
    "aba,b->b", "aa", "ab,bc->c", "ab,c->", "abd,bcd->acd"])
def test_what_is_left_to_numpy(form: str) -> None:
    """Diagonals, labels that are summed in one operand alone, stacks along the last axis."""
    arrays = operands(form)
    function = fusec.jit(lambda *x: np.einsum(form, *x))
    agree(form, arrays, function(*arrays))
    assert "Einsum" in ops_of(function)


def test_an_axis_of_one_that_is_spread_is_left_to_numpy() -> None:
    function = fusec.jit(lambda x, y: np.einsum("ij,jk->ik", x, y))
    x, y = RNG.normal(size=(3, 1)), RNG.normal(size=(4, 5))
    np.testing.assert_allclose(function(x, y), np.einsum("ij,jk->ik", x, y))


@pytest.mark.parametrize("dtype", ["e", "i", "?"])
def test_dtypes_with_sums_of_their_own_are_left_to_numpy(dtype: str) -> None:
    arrays = [(10 * x).astype(dtype) for x in operands("ab,bc->ac")]
    function = fusec.jit(lambda x, y: np.einsum("ij,jk->ik", x, y))
    np.testing.assert_array_equal(
        function(*arrays), np.einsum("ij,jk->ik", *arrays), strict=True)
    assert "Einsum" in ops_of(function)


def test_strict_keeps_numpys_bits() -> None:
    arrays = operands("ab,bc->ac")
    function = fusec.jit(lambda x, y: np.einsum("ij,jk->ik", x, y), fp="strict")
    np.testing.assert_array_equal(function(*arrays), np.einsum("ij,jk->ik", *arrays))


def test_optimize_joins_two_at_a_time() -> None:
    """In the order of `np.einsum_path`, also one that is given."""
    form = "ab,bc,cd,de->ae"
    arrays = operands(form)
    for optimize in (True, "optimal", ["einsum_path", (2, 3), (1, 2), (0, 1)]):
        function = fusec.jit(lambda *x, way=optimize: np.einsum(form, *x, optimize=way))
        agree(form, arrays, function(*arrays), optimize=optimize)
        assert "Einsum" not in ops_of(function)


def test_operands_of_two_dtypes_and_one_that_is_both() -> None:
    x = RNG.normal(size=(4, 4)).astype(np.float32)
    n = np.arange(16).reshape(4, 4)
    function = fusec.jit(lambda x, n: (np.einsum("ij,jk->ik", x, n), np.einsum("ij,kj->ik", x, x)))
    for got, want in zip(function(x, n), (x @ n, x @ x.T), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5)
        assert got.dtype == want.dtype


def test_ways_to_write_it() -> None:
    """Axes as lists, an ellipsis, spaces; numbers and lists of the program's text are NumPy's."""
    x, y = RNG.normal(size=(2, 3, 4)), RNG.normal(size=(4, 5))

    def program(x: Any, y: Any) -> Any:
        return (np.einsum(x, [0, 1, 2], y, [2, 3], [3, 0, 1]), np.einsum(x, [0, 1, 2], y, [2, 3]),
                np.einsum(x, [..., 2], y, [2, 3], [..., 3]), np.einsum(" ...j, jk -> ...k", x, y))

    def by_numpy(x: Any, y: Any) -> Any:
        return (np.einsum("ij,->ij", y, 2.0), np.einsum("ij,j->i", y, [1, 2, 3, 4, 5.0]),
                np.dot(x, [1, 2, 3, 4.0]), np.einsum([[1.0, 2]], [0, 1], x[0, :2], [1, 2]))

    for function in (program, by_numpy):
        compiled = fusec.jit(function)
        for got, want in zip(compiled(x, y), function(x, y), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-12)
        assert ("Einsum" in ops_of(compiled)) == (function is by_numpy)


def test_windows_are_not_written_out() -> None:
    """By a kernel of few weights, which reads them where they overlap."""
    x, k = RNG.normal(size=(20, 30)), RNG.normal(size=(3, 5))

    def filtered(x: Any, k: Any) -> Any:
        return np.einsum("hwij,ij->hw", sliding_window_view(x, k.shape), k)

    function = fusec.jit(filtered)
    np.testing.assert_allclose(function(x, k), filtered(x, k), rtol=1e-12, atol=1e-12)
    assert ops_of(function) == {"Input", "Fused"}


@pytest.mark.parametrize(("form", "shape"), [
    ("hwij,ijc->hwc", (3, 5, 2)), ("hwij,jic->chw", (5, 3, 4)), ("hwji,cji->hwc", (4, 3, 5))])
def test_windows_times_few_columns_are_not_written_out(form: str, shape: tuple[int, ...]) -> None:
    x, k = RNG.normal(size=(20, 30)), RNG.normal(size=shape)

    def filtered(x: Any, k: Any) -> Any:
        return np.einsum(form, sliding_window_view(x, (3, 5)), k)

    function = fusec.jit(filtered)
    np.testing.assert_allclose(function(x, k), filtered(x, k), rtol=1e-12, atol=1e-12)
    assert {"MatMul", "Einsum"}.isdisjoint(ops_of(function))


def test_much_memory_for_windows() -> None:
    """Sums read them where they lie if they are many times what the product reads and writes."""
    function = fusec.jit(
        lambda x, k: np.einsum("hwij,ijc->hwc", sliding_window_view(x, (31, 31)), k))
    for side, is_product in ((60, True), (170, False)):
        specs = (TensorSpec((side, side), np.float64), TensorSpec((31, 31, 6), np.float64))
        graph = function.concrete(*specs).optimized_graph
        assert any(node.op == "MatMul" for node in graph.nodes) == is_product


@pytest.mark.parametrize("form", ["ij,j->i", "ij,jk->ik", "ji,kj->ki"])
def test_spread_axes_are_not_written_out(form: str) -> None:
    x, y = RNG.normal(size=7), RNG.normal(size=(7, 7))[:, :3]
    y = y.T if form.startswith("ji") else y if "k" in form else y[:, 0]

    def program(x: Any, y: Any) -> Any:
        return np.einsum(form, np.broadcast_to(x, (7, 7)), y)

    function = fusec.jit(program)
    np.testing.assert_allclose(function(x, y), program(x, y), rtol=1e-12, atol=1e-12)
    assert "MatMul" not in ops_of(function)


def test_each_two_have_a_dtype_of_their_own() -> None:
    """With `optimize`: uint8 wraps in the first product, as in NumPy."""
    n, x = np.full((3, 4), 200, np.uint8), RNG.normal(size=4)
    path = ["einsum_path", (0, 1), (0, 1)]
    function = fusec.jit(lambda *x: np.einsum("ij,ij,j->i", *x, optimize=path))
    want = np.einsum("ij,ij,j->i", n, n, x, optimize=path)
    np.testing.assert_allclose(function(n, n, x), want, rtol=1e-12)


def test_words_of_numpys_own_class() -> None:
    x = RNG.normal(size=(3, 4))
    function = fusec.jit(lambda x: np.einsum(np.str_("ij->j"), x, order=np.str_("C")))
    np.testing.assert_allclose(function(x), x.sum(axis=0), rtol=1e-12)


def test_results_own_their_memory() -> None:
    """Also where the product is seen transposed, or is summed of nothing."""
    x = RNG.normal(size=(2, 3, 4))
    function = fusec.jit(lambda x: (np.einsum("abc,dbc->bad", x, x), np.einsum("abc->c", x[:0])))
    for got, want in zip(function(x), (np.einsum("abc,dbc->bad", x, x), np.zeros(4)), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)
        assert got.flags.owndata


def test_sizes_of_the_run() -> None:
    """What may be of one axis of length 1 is left to NumPy."""
    function = fusec.jit(lambda x, y: (
        np.einsum("bij,bjk->bik", x[x[:, 0, 0] > 0], y[x[:, 0, 0] > 0]),
        np.einsum("bij,bij->b", x[x[:, 0, 0] > 0], x[x[:, 0, 0] > 0]),
        np.einsum("bij,bjk->bik", x[x[:, 0, 0] > 0], y)))
    for rows, inner in ((3, 4), (5, 2), (8, 8), (9, 3), (1, 7)):
        x, y = abs(RNG.normal(size=(rows, 2, inner))), RNG.normal(size=(rows, inner, 3))
        got, sums, by_numpy = function(x, y)
        np.testing.assert_allclose(got, x @ y, rtol=1e-12)
        np.testing.assert_allclose(by_numpy, x @ y, rtol=1e-12)
        np.testing.assert_allclose(sums, (x * x).sum(axis=(1, 2)), rtol=1e-12)
    assert [n.op for n in function.traces[-1].optimized_graph.nodes].count("Einsum") == 1


@pytest.mark.parametrize("ranks", [(1, 1), (2, 1), (3, 1), (3, 2), (1, 3), (2, 3), (3, 3), (2, 4)])
def test_dot(ranks: tuple[int, int]) -> None:
    left = RNG.normal(size=(2, 4, 3)[3 - ranks[0]:])
    shape = (5, 2, 3, 6)[4 - ranks[1]:] if ranks[1] > 1 else (3,)
    right = RNG.normal(size=shape)
    function = fusec.jit(lambda x, y: np.dot(x, y))
    np.testing.assert_allclose(function(left, right), np.dot(left, right), rtol=1e-12)
    assert "Dot" not in ops_of(function)


def test_random_forms() -> None:
    """One operand or two, labels and the result's order at random."""
    for _ in range(40):
        words = ["".join(RNG.permutation(list("abcdef"))[:RNG.integers(0, 5)])
                 for _ in range(RNG.integers(1, 3))]
        every = sorted(set("".join(words)))
        result = "".join(RNG.permutation(every)[:RNG.integers(0, len(every) + 1)]) if every else ""
        form = f"{','.join(words)}->{result}"
        arrays = operands(form, "fdD"[RNG.integers(3)])
        agree(form, arrays, fusec.jit(lambda *x, form=form: np.einsum(form, *x) * 1)(*arrays))
