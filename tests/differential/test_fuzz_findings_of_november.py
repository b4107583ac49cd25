"""Programs that campaigns of late November found to go wrong, in their shortest form."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from harness import check
from tolerance import Ulp

import fusec
from fusec.codegen.python.python_source import kernel_source
from fusec.errors import UnsupportedError
from fusec.ops.graphs.evaluate import evaluate

pytestmark = pytest.mark.every_case
SETS = (np.setxor1d, np.union1d, np.intersect1d, np.setdiff1d)


@pytest.mark.parametrize("function", SETS)
@pytest.mark.parametrize("other", [2, [2, 7], 2.0])
@pytest.mark.parametrize("x", [[2], [1, 2, 1], [7, 5]])
def test_sets_whose_size_a_number_of_the_program_decides(
    function: Any, other: Any, x: list[int]
) -> None:
    """Seed 127000357: no stand-in held the number 2."""
    array = np.array(x, "u2")
    check(lambda x: function(x, other), array)
    check(lambda x: function(other, x), array)
    check(lambda x: np.exp2(function(x, other), out=np.zeros(3)), array)


def test_automatic_bins() -> None:
    check(lambda x: np.histogram_bin_edges(x, "auto"), np.array([7, 20]))


SCALARS = {
    "cumsum": lambda x: x.cumsum(out=np.zeros(1)),
    "sum": lambda x: (x.sum(out=np.zeros(())), np.sum(x, out=np.zeros(()))),
    "max": lambda x: (x.max(out=np.zeros(())), np.amax(x, out=np.zeros(()))),
    "round": lambda x: (x.round(out=np.zeros(())), np.round(x, out=np.zeros(()))),
    "mean": lambda x: (x.mean(out=np.zeros(())), np.mean(x, out=np.zeros(()))),
    "argmin": lambda x: (x.argmin(out=np.zeros((), int)), np.argmin(x, out=np.zeros((), int))),
    "nanmax": lambda x: np.nanmax(x, out=np.zeros(())),
    "filled": lambda x: _filled(x, np.zeros(())),
}


def _filled(x: Any, out: np.ndarray) -> Any:
    return x.sum(out=out) + 1, out


@pytest.mark.parametrize("name", SCALARS)
@pytest.mark.parametrize("x", [np.float64(2.5), np.int64(3)])
def test_scalars_reduced_into_arrays(name: str, x: Any) -> None:
    """Seed 128012103; a method of a scalar gives a scalar, not the array it wrote to."""
    check(SCALARS[name], x)
    check(lambda x: SCALARS[name](x * 0 + np.float64(2.0)), x)


def test_a_method_of_a_known_scalar_into_a_traced_array() -> None:
    check(lambda x: np.divmod(x, x)[0].cumsum(out=np.zeros((1,))), 63)
    check(lambda x: np.float64(2.0).cumsum(out=np.zeros(1)) + x, np.ones(1))


@pytest.mark.parametrize("value", [
    np.array([1j, 1]), 1.0, 300, np.zeros(2), np.zeros((3, 3), int), np.zeros((3, 3)),
])
@pytest.mark.parametrize("casting", ["same_kind", "safe", "unsafe"])
def test_copyto_looks_at_types_before_shapes(value: Any, casting: str) -> None:
    """Seed 128023411."""
    for target in (np.array(1), np.zeros(2, "u1"), np.zeros((3, 2), int)):
        check(lambda x, v: np.copyto(x, v, casting=casting), target, value)


@pytest.mark.parametrize("ddof", [0, 1, 2, 3])
@pytest.mark.parametrize("x", [np.array(1 + 0j, "c8"), np.array([1 + 2j, 3], "c8")])
def test_complex_variances_over_too_few(x: np.ndarray, ddof: int) -> None:
    """Seed 128028076: both parts of 0 / 0 are NaN."""
    check(lambda x: (np.var(x, ddof=ddof, dtype="c16"), x.std(ddof=ddof, dtype="c8")), x)
    check(lambda x: (np.var(x, ddof=ddof), x.std(ddof=ddof, keepdims=True)), x)


@pytest.mark.parametrize("shape", [(0, 1), (3, 1)])
def test_values_are_looked_at_before_indices(shape: tuple[int, ...]) -> None:
    """Seed 128037069."""
    def program(x: np.ndarray) -> None:
        x[np.array([0]),] = np.nan

    check(program, np.zeros(shape, "u2"))
    check(program, np.zeros(shape))


@pytest.mark.parametrize("program", [
    lambda x: np.var(x), lambda x: x.std(), lambda x: np.mean(x), lambda x: np.prod(x * 1j),
])
def test_the_evaluator_adds_in_one_order(program: Any) -> None:
    """Seeds 128037562 and 128051578: the layout of memory is no part of a graph's values."""
    x = (np.arange(34.0) ** 0.5).reshape(17, 2)
    graph = fusec.jit(program).concrete(x.T).graph
    assert evaluate(graph, [x.T]) == evaluate(graph, [np.ascontiguousarray(x.T)])


@pytest.mark.parametrize("initial", [np.int8(3), 0, 2.5])
@pytest.mark.parametrize("x", [np.array([1, 2], "u4"), np.array([[1.0, 20.0], [3.0, 4.0]])])
def test_the_greatest_of_nothing_and_a_first_value(initial: Any, x: np.ndarray) -> None:
    """Seed 129018382: the run finds no element."""
    check(lambda x: np.max(x[x > 9], initial=initial), x)
    check(lambda x: np.minimum.reduce(np.setxor1d(x, x), initial=initial), x)
    check(lambda x: np.max(x[:, np.ravel(x)[:2] > 9] if x.ndim > 1 else x, -1, initial=initial), x)


@pytest.mark.parametrize("decimals", [-1, 1])
def test_the_layout_of_rounded_integers(decimals: int) -> None:
    """Seed 129021600."""
    row, column = np.array([[1, 20, 17]], "u1"), np.array([[1], [20]])
    for x in (np.broadcast_to(row, (2, 3)), np.broadcast_to(column, (2, 3)), column @ row,
              (column @ row).T, (column @ row)[::-1]):
        check(lambda x: np.round(x, decimals), x)


def diagonal_then_written(x: Any) -> Any:
    table = np.identity(3)
    seen, above = table.diagonal(), table.diagonal(1)
    table %= np.minimum(table, x)
    table[0] += x
    return seen, above, table


def spread_then_written(x: Any) -> Any:
    table = np.identity(3)
    rows = np.broadcast_to(table[0], (2, 3))
    product = rows * x
    table[0] = 5
    return product, table


@pytest.mark.parametrize("program", [diagonal_then_written, spread_then_written])
def test_views_of_constants_that_are_written_later(program: Any) -> None:
    """Seed 129026199: the ``diagonal`` of a constant kept the first content."""
    check(program, np.int8(31))


def test_a_view_that_cannot_be_followed_is_refused_once_it_is_written() -> None:
    def program(x: Any) -> Any:
        table = np.identity(3)
        rows = np.broadcast_to(table[0], (2, 3))
        table[0] = x
        return rows + 1

    with pytest.raises(UnsupportedError, match="reading a view of an array made in the function"):
        fusec.jit(program)(np.float32(31))


@pytest.mark.parametrize("shape", [(0, 1), (0, 2, 3), (2, 0, 3), (1, 0)])
def test_indices_into_rows_that_are_none(shape: tuple[int, ...]) -> None:
    """Seed 131005142: where there is no row, NumPy looks at no index."""
    for axis in range(len(shape)):
        for indices in ([0], [1], []):
            check(lambda x, i, axis=axis: x.take(i, axis=axis), np.zeros(shape),
                  np.array(indices, "i1"))


@pytest.mark.parametrize("x", [-np.inf, np.inf, 1.0, 2.0, np.nan])
def test_the_gamma_function_of_python_is_infinite_at_both_ends(x: float) -> None:
    """Seed 131044837."""
    check(lambda x: math.lgamma(x), x)
    check(lambda x: math.lgamma(x), np.array(x))


def row_of_a_constant(x: Any) -> Any:
    table = np.eye(4, 1)
    product = table * x
    row = table[1]
    row[0] = 3
    return product, table


def rows_of_a_constant(x: Any) -> Any:
    table = np.eye(4, 1)
    product = table * x
    rows = table[1:2]
    rows += 3
    rows.put(np.array([0]), np.int8(7))
    return product, table, rows


@pytest.mark.parametrize("program", [row_of_a_constant, rows_of_a_constant])
def test_a_part_of_one_element_of_a_constant_is_a_view(program: Any) -> None:
    """Seed 132182511: writes through it were lost."""
    check(program, np.int64(-1))


@pytest.mark.parametrize("name", ["mean", "var", "std", "sum"])
@pytest.mark.parametrize("limit", [1.0, 2.0])
def test_masks_that_are_numbers_of_python(name: str, limit: float) -> None:
    """Seed 132055165: NumPy's own code asks whether ``where`` is True."""
    def program(x: Any, limit: Any) -> Any:
        kept = math.atan2(x[0], 0.0) <= limit
        return getattr(np, name)(x, where=kept), getattr(x, name)(where=kept, axis=0)

    check(program, np.array([1.0, 3.0]), limit, tolerance=Ulp(2))


@pytest.mark.parametrize("axis", [True, False, np.True_, (True,)], ids=str)
def test_booleans_are_no_axes(axis: Any) -> None:
    """Seed 132046968."""
    for name in ("sum", "max", "mean", "std", "all", "argmax", "cumsum", "median", "sort"):
        check(lambda x, name=name: getattr(np, name)(x, axis=axis), np.ones((2, 3)))


def test_arrays_of_one_element_are_no_numbers() -> None:
    """From NumPy 2.4 on."""
    for function in (math.sqrt, float, int, complex, lambda x: math.atan2(x, 1.0)):
        check(lambda x, function=function: function(x), np.array([4.0]))
        check(lambda x, function=function: function(x), np.array(4.0))


def test_numbers_that_fit_no_operand_come_first() -> None:
    """Seed 132129588: before ranks that do not fit."""
    for function in (np.matvec, np.vecmat, np.vecdot, np.matmul):
        check(lambda x, function=function: function(x, -1), np.array([1], "u4"))
        check(lambda x, function=function: function(x, 1), np.array([1], "u4"))


def test_nothing_is_written_where_there_is_nothing() -> None:
    """Seed 132099302: then a value of any rank fits."""
    def program(x: Any) -> None:
        x[::-1][-2, x] = x[::-1, x]

    check(program, np.zeros((2, 0), "u4"))


def test_products_of_arrays_of_unknown_size() -> None:
    """Seed 131039172."""
    x = np.array([[1.0, 0.0], [2.0, 3.0]])
    for program in (lambda x: np.kron(np.argwhere(x), np.argwhere(x)), lambda x: np.kron(x, x),
                    lambda x: np.kron(x.T, x[0]), lambda x: np.kron(x[x > 0], x),
                    lambda x: np.kron(x, 2), lambda x: np.kron(x[1, 1], x[None])):
        check(program, x)


def test_the_layout_of_what_fits_one_size_only() -> None:
    """Seed 131001594: columns that ``unique`` leaves, beside a vector."""
    x = np.array([[3.0, 1, 2], [1, 1, 2], [1, 0, 1]])
    check(lambda x, y: y >= np.unique(x, axis=1), x, np.ones(3))
    check(lambda x, y: y >= np.unique(x, axis=1), x[:2], np.ones(3))


def test_the_source_of_an_extremum_with_a_number() -> None:
    """Seed 133118179: a number of Python's came out, and raised when it was divided by zero."""
    def program(x: Any) -> Any:
        return np.fmin(x, 0.0) / 0.0, np.maximum(x, 0.0) / 0.0, np.minimum(2.0, x) / 0.0

    check(program, np.array([1.0, -1.0]), source=True)


def test_the_layout_of_a_constant_that_python_multiplies() -> None:
    """Seed 133137541."""
    check(lambda x: math.prod(np.isreal(x)), np.ones((2, 3, 4), "f4").T)


@pytest.mark.parametrize("kind", [np.complex64, np.complex128])
@pytest.mark.parametrize("other", [complex, float, np.complex64, np.complex128])
def test_the_order_of_complex_scalars(kind: Any, other: Any) -> None:
    """Seed 133058621: operators on scalars find one beside NaN, NumPy's loops do not."""
    numbers = [math.nan, 1.0, 2.0]
    jitted = fusec.jit(lambda a, b: (a < b, a <= b, a > b, a >= b, np.less(a, b)))
    for a, b in itertools.product(itertools.product(numbers, repeat=2), repeat=2):
        x, y = kind(complex(*a)), other(complex(*b)) if other is not float else b[0]
        assert jitted(x, y) == (x < y, x <= y, x > y, x >= y, np.less(x, y)), (x, y)
    one = np.array([kind(complex(1, math.nan))])
    check(lambda x: (x < 2, x[0] < 2, x[0] < x[0]), one)


@pytest.mark.parametrize("x", [10.0, True, np.float64(2.5), np.bool_(True)], ids=repr)
def test_rounding_of_booleans(x: Any) -> None:
    """Seed 134043761: NumPy has no loop for them but that of float16."""
    check(lambda x: np.around(x < x), x)
    check(lambda x: np.round(np.isfinite(x)), x)
    check(lambda x: np.around(x == x, 1), x)
    check(lambda x: np.around(x == x, -1), x)
    check(lambda x: round(x < x), x)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["f8", "i8"])
def test_dot_into_an_array(dtype: str, order: Any) -> None:
    """Seed 134140933: the check of ``out`` comes before that of the cast to it (136045091: not for
    products of integers with a number)."""
    for number in (0, 0.5, np.int64(3)):
        for kind in ("i4", "f4", "f2"):
            check(lambda x, out, n=number: np.dot(x, n, out=out), np.ones(2, kind),
                  np.zeros(2, dtype, order=order))
    shapes: list[tuple[int, ...]] = [(), (2,), (3,), (2, 3), (3, 2)]
    for a, b, c in itertools.product(shapes, shapes, [(), (2,), (2, 2), (2, 3)]):
        check(lambda x, y, out: np.dot(x, y, out=out), np.ones(a), np.ones(b),
              np.zeros(c, dtype, order=order))


@pytest.mark.parametrize("x", [1j, 1.5, 2, True, 300], ids=repr)
@pytest.mark.parametrize("dtype", ["i1", "f4", "c8", "?"])
def test_numbers_of_python_that_are_joined(x: Any, dtype: str) -> None:
    """Seed 134125784: they take the dtype of the others."""
    check(lambda x, y: np.concatenate([x, y], axis=None), x, np.array([1], dtype))
    check(lambda x, y: np.concatenate([y, x, 2], axis=None), x, np.array(1, dtype))


@pytest.mark.parametrize("dtype", ["?", "i1", "i8", "f4", "c8"])
def test_extrema_without_nan_into_an_array(dtype: str) -> None:
    """Seed 134134647: cast without a check, as by other reductions."""
    for f in (np.nanmax, np.nanmin, np.max, np.sum, np.fmax.reduce):
        check(lambda x, out, f=f: f(x, out=out), np.array([1.5, 0.0, 2.5]), np.zeros((), dtype))


def test_what_is_inserted_into_a_broadcast_array() -> None:
    """Seed 134155186: in C order."""
    for i in (np.array([1], "i2"), np.array([1, 3])):
        for x in (np.broadcast_to(np.arange(5.0), (2, 5)), np.ones((5, 2)).T):
            check(lambda i, x: np.insert(x, i, 0, axis=-1), i, x)


@pytest.mark.parametrize("dtype", ["f8", "f4", "c8", "i4", "?"])
def test_none_as_a_value(dtype: str) -> None:
    """NumPy makes NaN of it, or says that it is no number."""
    def at(x: Any, k: Any) -> None:
        x[k] = None

    def whole(x: Any, k: Any) -> None:
        x.fill(None)

    def masked(x: Any, k: Any) -> None:
        x[x == x[k]] = None

    for f in (at, whole, masked):
        check(f, np.ones(3, dtype), np.int64(1))


def test_complex_numbers_of_python_have_no_order() -> None:
    """Seed 135030443."""
    for f in (lambda x, y: x < y, lambda x, y: x <= y, lambda x, y: y > x, lambda x, y: y >= x,
              lambda x, y: x == y):
        for y in (2, 2.0, True, 2j, np.float64(2), np.int8(2), np.complex64(2)):
            check(f, 1j, y)


def test_numbers_of_python_that_are_cast_unsafely() -> None:
    """Seed 136019015: floats wrap, ints must fit."""
    x = np.array([1.0, 3.0])
    for number, dtype in ((-2.5, "u4"), (300.7, "i1"), (-2, "u4"), (300, "i1"), (7, "i1")):
        check(lambda x, n=number, d=dtype: np.add(x, n, dtype=d, casting="unsafe"), x)


@pytest.mark.one_device  # some are of rank 1, of which each library completes Q in its own way
@pytest.mark.parametrize("shape", [(1, 3, 1), (3, 2), (4, 1, 2)])
def test_factors_of_matrices_that_repeat(shape: tuple[int, ...]) -> None:
    """Seed 137037586: the results lie as a copy of the broadcast matrices does."""
    x = np.broadcast_to(np.arange(1.0, 1 + math.prod(shape)).reshape(shape), (4, 3, 2))
    for mode in ("reduced", "complete"):
        check(lambda x, m=mode: np.linalg.qr(x, mode=m), x)


@pytest.mark.parametrize("product", [
    np.dot, np.inner, np.vdot, np.matmul, lambda x, y: np.tensordot(x, y, 1)])
def test_products_of_one_element_keep_the_sign_of_zero(product: Any) -> None:
    """Seed 137068748: NumPy multiplies; BLAS would add the product to a zero."""
    for shape, other in itertools.product([(1,), (1, 1)], repeat=2):
        x, y = np.full(shape, -0.3, "f4"), np.zeros(other, "f4")
        want, got = product(x, y), fusec.jit(lambda x, y: product(x, y))(x, y)
        assert np.array_equal(np.signbit(got), np.signbit(want)) and type(got) is type(want)
    x = np.array([[-0.3]])
    check(lambda x: x.dot(x == 0, out=x), x)


def test_the_readable_source_divides_halves_in_single_precision() -> None:
    """Seed 141014701."""
    x, y = np.array([1.0, 88.875], "f2"), np.array([0.0999755859375], "f2")
    concrete = fusec.jit(lambda x, y: x // y, fp="strict").concrete(x, y)
    scope: dict[str, Any] = {}
    exec(kernel_source(concrete.kernels[0].kernel), scope)
    out = np.zeros(2, "f2")
    scope[concrete.kernels[0].kernel.name](x, y, out)
    assert out.tolist() == [10.0, 888.0]


def test_filled_arrays_take_what_a_cast_gives() -> None:
    """Seed 143018838."""
    for fill in (np.uint8(200), np.float64(-7.5), np.int64(3)):
        check(lambda x, fill: (np.full_like(x, fill), np.full(2, fill, np.int8)),
              np.zeros(2, np.int8), fill)
    check(lambda x: np.full_like(x, 300), np.zeros(2, np.int8))


@pytest.mark.parametrize("x", [np.array([1.0]), np.array([0.0])])
def test_sizes_as_indices(x: np.ndarray) -> None:
    """Seed 144083784: a size is no index that stands for any."""
    check(lambda x, y: y[np.size(np.where(x > 0.5))], x, np.ones(2))
    check(lambda x, y: (y[0, np.size(np.where(x > 0.5)), [0, 1]]), x, np.ones((1, 3, 2)))


@pytest.mark.parametrize("shape", [(1, 0), (0, 2), (2, 0)])
def test_inner_products_of_no_elements(shape: tuple[int, ...]) -> None:
    """Seed 144106363."""
    check(lambda x: np.inner(x, np.copysign.outer(x, x)), np.ones(shape))


def test_arguments_updated_by_a_kernel_that_reduces_them() -> None:
    """Seed 143015870: reductions of everything compute single results after their loops."""
    def program(x: Any, y: Any) -> Any:
        whole = x.prod()
        product = np.tensordot(y, x)
        np.greater.at(x, np.array([0]), np.int8())
        return product, whole, np.logaddexp(product, product)

    check(program, np.array([[2.0]], "f4"), np.array([[1.0]], "f4"), tolerance=Ulp(1))


@pytest.mark.parametrize("write", [
    lambda t, k: np.add.at(t, k, 100), lambda t, k: t.__setitem__(k, 1),
    lambda t, k: np.not_equal.at(t, np.array([0]), 100)])
@pytest.mark.parametrize("index", [0, 2, 7])
def test_indices_of_writes_that_nobody_reads(write: Any, index: int) -> None:
    """Seed 146000712: into arrays whose size only the run knows."""
    def program(x: Any, k: Any) -> Any:
        t = x[x > 0]
        write(t, k)
        return x

    for x in (np.array([1.0, -2, 3]), -np.ones(3)):
        check(program, x, np.array([index]))


def test_a_count_of_one_element_that_is_known() -> None:
    def program(x: Any) -> Any:
        counts = np.zeros(1, np.intp)
        counts[0] = 2
        return np.repeat(x, counts)

    check(program, np.array([5, 7], "u1"))


@pytest.mark.parametrize("x", [np.int32(6), np.int64(0), np.array(3.5)], ids=repr)
def test_rounding_of_python_integers(x: Any) -> None:
    """Seed 150021925: NumPy's scalars, not Python's numbers."""
    check(lambda x: (np.around(int(x)), np.round(int(x), 1), np.round(int(x), -1)), x)


@pytest.mark.parametrize("x", [np.uint8(200), np.int64(-200), np.array(200), np.array([300])])
def test_numbers_inserted_into_small_integers(x: Any) -> None:
    """Seed 153033354: they are cast as arrays are."""
    check(lambda x: (np.insert(np.zeros(2, "i1"), [0], x), np.insert(np.zeros(2, "i1"), 0, x)), x)


@pytest.mark.parametrize("x", [-1.0, 2, np.float32(3)])
def test_averages_of_numbers(x: Any) -> None:
    """Seed 153018426."""
    check(lambda x: np.average(x, weights=x), x)


@pytest.mark.parametrize("view", [
    lambda x: x, lambda x: x.T, lambda x: x[::-1], lambda x: x[:, ::2], lambda x: x[..., ::-2]])
def test_layouts_of_calls_on_arrays_with_gaps(view: Any) -> None:
    """Seed 148017450: NumPy copies some of them first, and its results lie otherwise."""
    x = view(np.arange(24, dtype="u1").reshape(2, 3, 4))
    check(lambda x: (np.unpackbits(x.diagonal(), 0), np.unpackbits(x[0], 1)), x)
