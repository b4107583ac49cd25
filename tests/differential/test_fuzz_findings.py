"""Programs that the fuzzer found to go wrong, in their shortest form, with their seeds."""

from __future__ import annotations

import copy
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from harness import check, run_with

import fusec
from fusec.codegen.kernels.reference import run_kernel
from fusec.errors import UnsupportedError
from fusec.ops.graphs.verify import verify
from fusec.passes.options import PassOptions
from fusec.passes.pipeline import Repeat, pipeline

BYTES = np.broadcast_to(np.array([[1, 2]], "u1"), (9, 2))
pytestmark = pytest.mark.every_case
PAIR = np.array([[2, 7], [0, 5]], "i2")
COMPLEX = np.array([2 + 1j, 3, 2 - 4j], "c8")

CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "20027518 and 20052559: K order of repeated axes": (
        lambda x: (x.flatten("K"), np.ravel(x, "K")), (BYTES,)),
    "20018360: a copy in A order of a size from data": (
        lambda x: np.full_like(np.argwhere(x), 1, "f8", "A"), (np.ones((1, 2)),)),
    "20047513: a product with a number casts first": (lambda x: x.dot(-129), (BYTES,)),
    "20065737: counts of repeated axes": (
        lambda x: np.count_nonzero(x, axis=0),
        (np.broadcast_to(np.ones((4, 1, 2), "u2"), (4, 3, 2)),)),
    "20047879: an array of rank 0 as index copies": (
        lambda x, i: (x[i], x[i,], x[0, i]), (np.ones((2, 1, 1)), np.array(1, "u2"))),
    "20046122: nan_to_num of rank 0 in place": (
        lambda x: np.nan_to_num(x, copy=False), (np.array(True),)),
    "20028300: a method of a constant writes to a traced array": (
        lambda x: (np.arange(3).round(out=x), np.arange(3).choose([x, x, x], out=x)),
        (np.zeros(3),)),
    "20034825: types are looked at before indices": (
        lambda x: np.bitwise_or.at(x, [], True), (np.array(1.0),)),
    "20007908: types are looked at before shapes": (
        lambda x, y: x.__imatmul__(y), (np.array([1], "u1"), np.array([1.0], "f4"))),
    "20015086: numbers are looked at before types": (
        lambda x: np.fmax(-129, x, dtype="u2"), (np.array([1], "i4"),)),
    "20093340: an axis that is none": (
        lambda x: np.linalg.vecdot(x, x, axis=()), (np.ones(2),)),
    "20035061: the least of nothing, of a scalar": (
        lambda x: np.nanmin(x, initial=x, where=x < 1), (np.float64(7),)),
    "20042578: the variance overflows before its root is taken": (
        lambda x: x.std(), (np.array([65504.0, 1.0], "f2"),)),
    "20057378: the variance in the complex dtype asked for": (
        lambda x: (x.var(dtype="c16"), np.std(x, dtype="c8"), x.var(0, dtype="c8")), (COMPLEX,)),
    "20076502: complex64 is divided by a count in complex128": (
        lambda x: (x.mean(), x.var()), (COMPLEX,)),
    "20052439: a period of data": (
        lambda x: np.interp(x, x, x, period=x), (np.array([1], "u1"),)),
    "20071337: roots of a size from data": (lambda x: np.poly(x[:2]), (np.ones(3),)),
    "20084420: the trace of a scalar": (lambda x: x.trace(), (np.float32(2),)),
    "20035394: elements that equal no element": (
        lambda x: np.setxor1d(x, x, assume_unique=True), (np.array([2, np.nan]),)),
    "20050642: the same memory through DLPack": (
        lambda x: (t := np.geomspace(1, 5.5), np.from_dlpack(t), x), (1.0,)),
    "20107302: parts written where a number is repeated": (
        lambda z: _with_other_real_part(np.atleast_1d(z)), (3 + 7j,)),
    "20023938: what is cut from constants that cannot be written": (
        lambda x: np.trim_zeros(x.imag), (np.array([1.0]),)),
    "20088000: an empty gather": (
        lambda x: x.take(x, mode="wrap"), (np.zeros((0, 1), "i8"),)),
    "20110556: an array for an element": (lambda x: _put(x, (0, -1), x), (np.ones((1, 2), "c8"),)),
    "20110556: an array for an element of floats": (
        lambda x: _put(x, (0, 1), x[0, :1]), (np.ones((1, 2)),)),
    "20113361: both bounds decide the dtype": (
        lambda x: (x > 0).clip(100, max=(x > 0).astype("i4")), (np.ones(1),)),
    "20118945: the real part of a truth value": (
        lambda x: np.array_equiv(x, x).real, (np.uint64(3),)),
    "20119509: a product with zero by BLAS": (
        lambda x: x.dot(-0.0, out=np.zeros((3, 1))), (np.array([[1], [1], [np.inf]], "f4"),)),
    "20124778: indices at which nothing is read": (
        lambda i: np.take_along_axis(np.zeros((0, 3)), i), (np.array([[3]], "i2"),)),
    "20128158: what no stand-in holds": (
        lambda x: _put(t := np.intersect1d(x, 2**31, return_indices=True)[2].T,
                       np.array([-1]), t), (np.array([1.0, 2.0**31]),)),
    "20128806: indices of which only none fits": (
        lambda x, y: x[np.setxor1d(y, y), 2], (np.zeros((0, 3), "i2"), np.array([1], "i2"))),
    "20129294: a cast into the result that was asked for": (
        lambda x: np.lcm(x, x, dtype="u8", casting="unsafe", out=x), (np.array([True]),)),
    "20134837: the mean of one complex number": (
        lambda x: np.average(x), (np.complex64(complex(-1.0, -0.0)),)),
    "20140257: a copy of a constant of rank 0": (
        lambda x: np.reshape(np.zeros(()), (-1,), copy=True), (1.0,)),
    "20144292: A order for another shape": (
        lambda x: np.ones_like(x, order="A", shape=(2, 1, 2)), (np.ones((3, 2)).T,)),
    "20054506: a power as Python computes it": (lambda z: z ** z, (1.25 + 0.5j,)),
    "20045709: a scalar as an array of one": (
        lambda x: np.float32(np.min(x).reshape((-1,), copy=True)), (np.array([1.0]),)),
}


def _put(x: Any, key: Any, value: Any) -> Any:
    x[key] = value
    return x


def _with_other_real_part(z: Any) -> Any:
    np.putmask(z.real, z != 1, 5.0)
    return z


@pytest.mark.parametrize("name", CASES)
def test_finding(name: str) -> None:
    program, arguments = CASES[name]
    check(program, *arguments, engines=False)


def test_arguments_that_overlap_and_are_cleared() -> None:
    """Seed 20063254: a reshape of a repeated constant was nowhere in memory."""
    def program(x: Any, y: Any) -> Any:
        y ^= y
        return x

    memory = PAIR.reshape(2, 1, 2)
    check(program, memory, memory.T)


def test_squeeze_of_a_size_from_data_is_refused() -> None:
    """Seed 20040869: whether an axis goes was decided without the data."""
    f = fusec.jit(lambda x: np.squeeze(np.flatnonzero(x)))
    with pytest.raises(UnsupportedError, match=r"squeeze of a length that only the run knows"):
        f(np.ones(1))


@pytest.mark.one_device  # the interpreter runs no other plans
@pytest.mark.parametrize("name", [
    "20088000: an empty gather", "20045709: a scalar as an array of one"])
def test_kernels_by_the_reference_interpreter(name: str) -> None:
    program, arguments = CASES[name]
    concrete = fusec.jit(program).concrete(*arguments)
    np.testing.assert_array_equal(run_with(concrete, run_kernel, arguments), program(*arguments))


@pytest.mark.parametrize("iterations", [1000, 1001])
def test_exchanged_arrays_are_both_results(iterations: int) -> None:
    """Seed c400457: one was copied home over the other."""
    def exchanged(x: Any, y: Any, u: Any) -> Any:
        for _i in range(iterations):
            u[1] += 1
            x, y = y, x
        return x, y

    for size in (3, 4):  # one that may change places with the others, and one that may not
        found = fusec.jit(exchanged)(np.zeros(3), np.ones(3), np.zeros(size))
        wanted = exchanged(np.zeros(3), np.ones(3), np.zeros(size))
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("second", [1.0, 0.0, 9.0])
def test_values_of_nested_and_and_or(second: float) -> None:
    """The inner one was taken for its truth alone."""
    x = np.array([0.0, second, 2.0, 3.0])
    check(lambda x: (x[1] and x[2]) or x[3], x, engines=False)
    check(lambda x: (0 < x[1] < 5 and x[2]) or x[3], x, engines=False)
    check(lambda x: (x[0] or x[1]) and x[2], x, engines=False)
    check(lambda x: 7.0 if (x[1] and x[2]) or x[3] > 9 else 8.0, x, engines=False)


def test_memory_given_up_by_exchanged_arrays_goes_to_arrays_of_its_size() -> None:
    """Seed c504007: three arrays of two sizes change places, and one was written past its end."""
    from fusec.codegen.structured.memory import Memory
    from fusec.codegen.structured.steps.steps import exchange

    f64 = np.dtype("f8")
    large, small, other, fresh, copied = every = [
        Memory(number, nbytes, f64, "temp") for number, nbytes in enumerate((96, 64, 96, 96, 64))]
    pairs = exchange([(large, fresh), (small, copied), (other, large)])
    assert len(pairs) == 5 and all(first.nbytes == second.nbytes for first, second in pairs)
    assert {first for first, _ in pairs} == {second for _, second in pairs} == set(every)
    assert pairs[:3] == ((large, fresh), (small, copied), (other, large))


def test_spreads_of_halves_overflow_where_numpys_do() -> None:
    """Seed 30044065: sums and squares are rounded to halves, not the result alone."""
    x = np.array([65504, 1, 2, 3, 65504, 5, 6, 7], "f2").reshape(2, 4)
    check(lambda x: (x.var(0), x.std(), np.var(x, 1, ddof=1), x.std(0, dtype="f2")), x)


def test_products_of_infinite_complex_numbers_where_chosen() -> None:
    """Seed 30054212: a product with the one for elements not chosen makes NaN of infinity."""
    x = np.array([complex(np.inf, 1e-40), 1], "c8").reshape(2, 1)
    check(lambda x: np.prod(x, where=x.real > 1), x)
    check(lambda x: np.prod(x, 0, where=x.real > 1, keepdims=True, initial=2), x)
    check(lambda x: (np.prod(x, initial=1), np.nanprod(x, 0, initial=True)), x[::-1])  # 91003994


@pytest.mark.parametrize("like", [
    np.ones((1, 3)).T, np.ones((4, 1, 5)).transpose(2, 0, 1), np.ones((1, 5, 1)),
    np.ones((2, 3, 4)).swapaxes(0, 1), np.ones((2, 3))[:, ::2],
])
def test_arrays_like_others_of_another_shape(like: np.ndarray) -> None:
    """Seed 30079750: axes of length 1 say nothing of the order in memory."""
    for shape in ((2, 3), (2, 3, 4), (5,)):
        check(lambda x, s=shape: (np.ones_like(x, shape=s), np.full_like(x, 2, shape=s)), like)


def test_nonzero_gives_columns() -> None:
    """Seed 60006164: to ravel one is to copy it; to reshape it is to view it."""

    def written(x: np.ndarray) -> tuple[np.ndarray, ...]:
        rows, _columns = x.nonzero()
        flat, column = rows.ravel(), rows.reshape(-1, 1)
        rows[0] = 7
        return rows, flat, column

    check(written, np.array([[True, True], [False, True]]))


def test_a_slice_of_run_time_size_in_nested_loops() -> None:
    """Seed c715177: the size is the outermost loop's, and a middle loop asks for it."""

    def program(y: np.ndarray, t: float, s: float) -> np.ndarray:
        for i in range(10):
            for _j in range(1, 11):
                for _k in range(10, 1, -3):
                    y[i:] += 0.5
                    if t > s:
                        break
        return y

    for t in (0.0, 2.0):
        found, wanted = np.zeros(12), np.zeros(12)
        fusec.jit(program)(found, t, 1.0)
        program(wanted, t, 1.0)
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("keepdims", [False, True])
def test_the_mask_of_a_reduction_lies_in_memory_too(keepdims: bool) -> None:
    """Seed 70028044: where the operand and its mask lie in two orders the result is in C order."""
    x = np.arange(18.0).reshape(2, 3, 3)

    def program(x: np.ndarray) -> tuple[np.ndarray, ...]:
        y, mask = x.swapaxes(2, 1), x > 0.5
        options = {"axis": 0, "keepdims": keepdims}
        return (y.var(where=mask, **options), y.sum(where=mask, **options),
                y.max(where=mask.swapaxes(2, 1), initial=0, **options),
                y.any(where=mask, **options), y.sum(where=mask[0, 0], **options))

    check(program, x)


def test_python_numbers_in_numpys_own_python() -> None:
    """Seeds 70036879 and 70040942: ``np.select`` asks for their type, ``np.i0`` for an array."""
    x = np.array([1, 0], "u4")
    check(lambda a, x: np.select([x > 0], [np.float32(3)], a), 2147483648.0, x)
    check(lambda a, x: np.select([x > 0], [x], a), 7, x)
    check(lambda a, x: (np.i0(int(a)), np.i0(a), np.i0(round(x[0])), np.i0(x[0])), 2.5, x)


def test_an_element_is_written_after_all_were_filled_with_one_number() -> None:
    """Seed c734047: the number was seen as an array, and all of that was written."""

    def program(x: np.ndarray, y: np.ndarray, u: np.ndarray, n: int) -> tuple[Any, ...]:
        q = x[0]
        v = y[8:0:-1]
        if u[1] < 1.0:
            return q, y, x
        for _i in range(2):
            v.fill(x[2])
        v[n % 8] *= q
        return q, x, y

    def arguments(level: int, n: int) -> list[Any]:
        x = np.arange(2.0, 26.0)[::2]
        return [x, x[::-1], np.full(8, level), n]

    compiled = fusec.jit(program)
    for level, n in ((0, 3), (1, 20), (1, 17)):  # the second int makes it one of the run
        found, wanted = arguments(level, n), arguments(level, n)
        compiled(*found)
        program(*wanted)
        np.testing.assert_array_equal(found[0], wanted[0])


def test_a_result_of_run_time_size_that_a_kernel_reads_reshaped() -> None:
    """Seed 70081763: it was made in the shape that the reader saw."""

    def table(x: np.ndarray) -> np.ndarray:
        places = x.nonzero()[0]
        return np.add.outer(places, places)

    x = np.array([1, 1, 0, 1])
    check(lambda x: (t := table(x), t.ravel() + 1), x)
    check(lambda x: (t := table(x), np.repeat(t, 2), t.T.ravel() * 2), x)


@pytest.mark.parametrize("extremum", [np.nanmin, np.nanmax])
def test_the_nan_of_a_complex_number_that_is_no_array(extremum: Any) -> None:
    """Seed 120024793: NumPy puts NaN there by hand, so its other part is 0."""
    number = complex(1, np.nan)
    for x in (number, np.complex64(number), np.array(number), 1 + 2j):
        check(lambda x: (extremum(x), extremum(x, initial=3j)), x)


def test_loops_in_a_row_that_may_bind_a_variable_to_a_view_of_it() -> None:
    """Seed c1412823: each named the arrays it may be twice as often as the one before, for ever."""

    def turned(x: np.ndarray, u: np.ndarray) -> np.ndarray:
        turns = 6
        while turns > 0:
            turns -= 1
            for i in range(int(u[0]) % 9):
                if x.sum() <= -2.0:
                    continue
                if u[i % 8] < x[i]:
                    break
                x = x[::-1]
        return x * 1

    for start in (3, 5, 9):
        check(turned, np.linspace(-1, 2, 12), np.arange(start, start + 8))


def test_products_under_a_mask_of_complex_numbers_into_an_array() -> None:
    """Seed 120085336: the result was the array as it was before."""

    def product(x: np.ndarray) -> np.ndarray:
        out = np.multiply.reduce(x)
        return np.multiply.reduce(x, out=out, where=x > 0.5)

    check(product, np.array([[1, -9 - 2.5j], [2, 3]]))


@pytest.mark.parametrize("exponent", [-1, 2, -2.0, 3.0])
def test_a_python_number_to_a_known_power(exponent: float) -> None:
    """Seed 120081266: the check compared an int with a float."""
    check(lambda x: x ** exponent, -2.5)
    graph = fusec.jit(lambda x: x ** exponent).concrete(-2.5).graph
    for step in pipeline(PassOptions("strict")):
        for item in step.passes if isinstance(step, Repeat) else (step,):
            verify(item.run(graph))


@pytest.mark.parametrize("x", [np.array(2 + 3j), np.array(2.5), np.array(3)])
def test_a_library_call_that_changes_an_array_of_rank_0(x: np.ndarray) -> None:
    """Seed 121005594: its result is an array, no scalar, and was not put where it belongs."""

    def put(x: np.ndarray) -> np.ndarray:
        x.put([], x)
        return x * 1

    check(put, x)


HALVES = [lambda t: [t.reshape(2, -1)], lambda t: np.split(t, 2), lambda t: np.hsplit(t, 2)]


@pytest.mark.parametrize("halves", HALVES)
def test_views_of_run_time_shape_are_read_and_not_written(halves: Any) -> None:
    """Seed 121007075: they are copies, which must not be noticed: such writes were lost."""
    x = np.array([2.0, 2, 2, 3, 4, 5, 1])

    def read(x: np.ndarray) -> Any:
        return [half.sum() for half in halves(x[x != 1])]

    def returned(x: np.ndarray) -> Any:
        return halves(x[x != 1])

    def written(x: np.ndarray) -> Any:
        chosen = x[x != 1]
        for half in halves(chosen):
            half[...] += 1
        return chosen

    def read_late(x: np.ndarray) -> Any:
        chosen = x[x != 1]
        views = halves(chosen)
        chosen[...] += 1
        return views[0].sum()

    def with_its_array(x: np.ndarray) -> Any:
        chosen = x[x != 1]
        return chosen, halves(chosen)

    check(read, x)
    check(returned, x)
    for program in (written, read_late, with_its_array):
        with pytest.raises(UnsupportedError, match=r"a view that .* (gives|gave)"):
            fusec.jit(program)(x)


def rolled_set(x: np.ndarray) -> np.ndarray:
    return np.roll(np.setxor1d(x, x), -2, axis=(-1,))


def clipped_booleans(x: np.ndarray) -> np.ndarray:
    return np.clip(x > 1, min=x > 0, out=np.zeros(3), where=x > 0)


def logical_of_a_dtype(x: np.ndarray) -> np.ndarray:
    return np.logical_or(x, x[:2], dtype="u2")


def filled_with_an_array(x: np.ndarray) -> np.ndarray:
    z = x.astype(complex)
    z.fill(x)
    return z


def booleans_filled_with_an_array(x: np.ndarray) -> np.ndarray:
    b = x > 1
    b.fill(x[:1])
    return b


def without_known_places(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    places = np.zeros(2, int)
    return np.delete(x, places), np.insert(x, places, 5.0)


def read_only_view(x: np.ndarray) -> np.ndarray:
    return np.einsum("ij", np.imag(x[:, None]))


@pytest.mark.parametrize("program", [
    rolled_set, clipped_booleans, logical_of_a_dtype, filled_with_an_array,
    booleans_filled_with_an_array, without_known_places, read_only_view,
])
def test_programs_of_november(program: Any) -> None:
    """Seeds 121007733 to 121018041."""
    for x in (np.array([0, 1, 2]), np.array([0.0, 1, 2]), np.zeros(3)):
        check(program, x)


def test_a_known_number_at_a_mask_of_the_run() -> None:
    """Seed 122046640: refused as other scalars at masks are, not as a wrong index."""
    for x in (np.array(1.0), np.float64(3.0)):
        with pytest.raises(UnsupportedError, match="reading a scalar with a boolean mask"):
            fusec.jit(lambda x: np.float64(2.5)[x <= 1])(x)


def test_tiles_of_nothing() -> None:
    """Seed 122018142: they are a view of it."""
    check(lambda x: np.tile(x.diagonal(), (2,)), np.zeros((0, 1)))
    check(lambda x: (x, np.tile(x, (2, 3))), np.zeros((0, 1)))


def test_writing_to_a_known_scalar() -> None:
    """Seed 123021979: NumPy writes to a copy of it."""
    def put(x: np.ndarray) -> np.generic:
        first = np.argmax(x)
        first.put(np.array([0]), x)
        return first

    check(put, np.array(1, "i2"))


def test_a_product_with_a_number_of_a_size_that_data_decides() -> None:
    """Seed 123037006: BLAS multiplies one element, and adds several to zeros."""
    for x in (np.array([1.0, 0, 0]), np.array([1.0, 1, 0]), np.zeros(3)):
        check(lambda x: np.sqrt(x.nonzero()[0]).dot(-1), x)


def test_the_least_of_nan_and_a_first_value() -> None:
    """Seed 124051740: of a scalar that is NaN it is NaN, of an array the first value."""
    for x in (np.float64("nan"), np.float64(3.0), np.array(np.nan), np.array([np.nan])):
        check(lambda x: (np.nanmin(x, initial=-129), np.nanmax(x, initial=5.0)), x)
    check(lambda x: np.nanmin(math.sqrt(x) * math.inf, initial=2), 0.0)


def constants_of_builtins(x: np.ndarray) -> Any:
    first, rest = divmod(np.arange(3), 2)
    size = abs(np.tan([1, 2, 3]))
    size *= first + x
    rest += 1
    return size, rest, copy.deepcopy(x), copy.copy(x)


def transposing_einsum(x: np.ndarray) -> Any:
    turned = np.einsum("ij->ji", x)
    turned[0] = 5
    return turned, x, np.einsum("ji", x) / 2, np.einsum("ij,jk", x, x), np.einsum("ii", x)


def in_order_of_stacks(x: np.ndarray) -> Any:
    table = np.greater.outer(x, x)
    return table @ table, table.T @ table, np.add.outer(x, x) @ x


def clipped_by_numbers_of_all_kinds(x: np.ndarray) -> Any:
    return np.clip(x.astype("u1"), -np.inf, x), np.clip(x.astype("u1"), 0.5, x.astype("f4")), (
        np.clip(x.astype("u1"), -math.inf, x.astype("c8")))


@pytest.mark.parametrize("program", [
    constants_of_builtins, in_order_of_stacks, clipped_by_numbers_of_all_kinds,
    lambda x: np.greater(x, -129, dtype="i1"),
    lambda x: np.nan_to_num(np.broadcast_to(x.astype("c16"), (2, 3))),
    lambda x: np.linalg.tensorinv(x, np.array([0])),
])
def test_programs_of_seeds_124(program: Any) -> None:
    """Seeds 124116147 to 124180088."""
    check(program, np.array([1.0, 2.0, 4.0]))


def test_an_einsum_that_transposes_is_a_view() -> None:
    check(transposing_einsum, np.arange(9.0).reshape(3, 3))


def test_functions_that_call_themselves() -> None:
    """Seed 125000789: the frames of the hooks are no reason for a RecursionError."""
    def folded(x: np.ndarray, n: int) -> np.ndarray:
        return x if n == 0 else folded(x, n - 1) * 0.5 + 1

    # CPython 3.12 bounds the frames of C apart from those of Python, in its first releases tightly.
    depth = 200 if sys.version_info[:2] == (3, 12) else 300
    check(lambda x: folded(x, depth), np.ones(2))
    check(lambda x: np.polyint(x, m=np.array(100)), np.zeros(0, int))


def test_products_in_the_passes_take_any_order() -> None:
    """Seed 124192522: a product of elements written through a transposition."""
    def program(x: np.ndarray, y: np.ndarray) -> Any:
        y[...] = x
        return x.prod()

    x = np.ones((3, 3))
    check(program, x, x.T)
    check(lambda x: np.linalg.tensorinv(x), np.array([1], "u2"))


def index_in_a_test_that_is_false(x: Any, u: Any) -> Any:
    if x[u[0]] > 1 and False:
        return x[1]
    return x[2]


def index_in_a_choice_of_equals(x: Any, u: Any) -> Any:
    return np.where((x[u[0]] > 1) & False, x[1], x[2])


def index_in_a_test_that_is_true(x: Any, u: Any) -> Any:
    if (x[u[0]] > 1) | True:
        return x[3]
    return x[2]


def indices_in_a_loop(x: Any, u: Any) -> Any:
    k = int(u[0])
    for _ in range(20):
        if x[k] > 1 and False:
            pass
        else:
            k = k + 2
    return k


def indices_of_an_array(x: Any, u: Any) -> Any:
    return np.where((x[u] > 1) & False, x[1], x[2])


@pytest.mark.parametrize("program", [
    index_in_a_test_that_is_false, index_in_a_choice_of_equals, index_in_a_test_that_is_true,
    indices_in_a_loop, indices_of_an_array])
def test_indices_that_simplification_drops_are_checked(program: Any) -> None:
    jitted = fusec.jit(program)
    x = np.arange(60.0)
    for first in (3, -3, 30, 70, -70):
        u = np.array([first, 2])
        try:
            want = program(x, u)
        except IndexError:
            with pytest.raises(IndexError, match="out of bounds"):
                jitted(x, u)
        else:
            assert repr(jitted(x, u)) == repr(want)
