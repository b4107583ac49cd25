"""Every scalar op in every dtype: machine code, reference, source and NumPy on extreme values."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_harness import build, check, run_graph, run_on_cpu, run_source

from fusec.codegen.cpu.scalars.scalar_ops import supports
from fusec.codegen.kernels.reference import run_kernel
from fusec.ops import Builder, all_ops
from fusec.ops.registry import Op

DTYPES = [np.dtype(c) for c in ("?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8")]
SIZES = (0, 1, 7, 8, 9, 33, 1000)
# Rewritten into other scalar ops while lowering.
DERIVED = {"square", "reciprocal", "deg2rad", "rad2deg", "pos"}
# NumPy itself returns either zero, depending on the vector unit it runs on.
ANY_ZERO = {"maximum", "minimum", "fmax", "fmin"}
each_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)


def extremes(dtype: np.dtype) -> np.ndarray:
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind == "f":
        info = np.finfo(dtype)
        values = [0.0, 1.0, 0.5, 1.5, 2.5, 3.0, info.tiny, info.smallest_subnormal, info.max,
                  1e10, 2.0**31, 2.0**63, np.inf]
        return np.array([*values, *(-v for v in values), np.nan], dtype)
    info = np.iinfo(dtype)
    values = {0, 1, 2, 3, 7, 8, 31, 63, 64, info.max, info.max - 1, info.min, info.min + 1}
    values |= {-1, -2, -7, -64} if dtype.kind == "i" else set()
    return np.array(sorted(values), dtype)


def operands_of(dtype: np.dtype, count: int) -> list[np.ndarray]:
    """All combinations of extremes, flat."""
    grids = np.meshgrid(*[extremes(dtype)] * count, indexing="ij")
    return [np.ascontiguousarray(g.ravel()) for g in grids]


def takes(row: Op, dtype: np.dtype) -> bool:
    """Whether NumPy has a loop for this dtype on both sides and the back end knows the op."""
    if row.ufunc is None or not (row.scalar in DERIVED or supports(row.scalar or "", dtype)):
        return False
    try:
        found = row.ufunc.resolve_dtypes((*[dtype] * row.ufunc.nin, None))
    except TypeError:
        return False
    wanted = dtype if row.infer.__name__ != "infer_bool" else np.dtype(bool)
    if any(d != dtype for d in found[:-1]) or found[-1] != wanted:
        return False
    # Tracing casts the operands of logical ops to bool.
    return dtype.kind == "b" or not row.name.startswith("Logical")


def is_math(row: Op) -> bool:
    return row.cost >= 14 and row.scalar not in ("fmod",)


def rows_for(dtype: np.dtype, arity: int, math: bool = False) -> list[Op]:
    return [
        r for r in all_ops()
        if r.kind == "elementwise" and r.arity == arity and is_math(r) == math and takes(r, dtype)
    ]


def emit_all(rows: list[Op]):
    return lambda b, *values: [b.emit(r.name, *values) for r in rows]


def assert_equal_results(rows: list[Op], got: list, want: list, args: list, engine: str) -> None:
    for row, a, b in zip(rows, got, want, strict=True):
        b = np.asarray(b)
        assert a.dtype == b.dtype, (engine, row.name)
        bad = ~((a == b) | ((a != a) & (b != b)))
        if a.dtype.kind == "f" and row.scalar not in ANY_ZERO:
            bad |= (np.signbit(a) != np.signbit(b)) & (a == a)
        where = np.flatnonzero(bad)[:5]
        shown = [([x[i] for x in args], a[i], b[i]) for i in where]
        assert not shown, f"{engine} {row.name}: (operands, got, wanted) {shown}"


@pytest.mark.parametrize("arity", [1, 2])
@each_dtype
def test_ops_give_numpys_results(dtype: np.dtype, arity: int) -> None:
    rows = rows_for(dtype, arity)
    args = operands_of(dtype, arity)
    for part in (rows[:14], rows[14:]):  # modest kernels compile faster than one huge one
        if not part:
            continue
        graph = build(emit_all(part), *args)
        with np.errstate(all="ignore"):
            want = [r.reference(*args) for r in part]
        for engine, run in (("reference", run_kernel), ("cpu", run_on_cpu), ("source", run_source)):
            assert_equal_results(part, run_graph(graph, args, run), want, args, engine)


@pytest.mark.repeats
@pytest.mark.parametrize("dtype", ["i1", "u4", "i8", "u8", "f4", "f8"])
def test_source_compiles_to_the_same_results(dtype: str) -> None:
    for arity in (1, 2):
        args = operands_of(np.dtype(dtype), arity)
        rows = rows_for(np.dtype(dtype), arity)
        graph = build(emit_all(rows), *args)
        want = run_graph(graph, args, run_kernel)
        got = run_graph(graph, args, lambda k, b: run_source(k, b, njit=True))
        assert_equal_results(rows, got, want, args, "njit")


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_math_functions_agree_with_numpy(dtype: str) -> None:
    """Special values exactly, others to a few ulp; bounds are tested with the functions."""
    for arity in (1, 2):
        args = operands_of(np.dtype(dtype), arity)
        for row in rows_for(np.dtype(dtype), arity, math=True):
            graph = build(emit_all([row]), *args)
            rtol = 8 * float(np.finfo(dtype).eps)
            with np.errstate(all="ignore"):
                want = row.reference(*args)
                if row.scalar in ("sin", "cos", "tan"):  # NumPy's own are off for huge float32
                    args_ok = np.abs(args[0]) < 1e5
                    want = np.where(args_ok, want, run_graph(graph, args, run_kernel)[0])
            out = run_graph(graph, args, run_on_cpu)[0]
            np.testing.assert_allclose(out, want, rtol=rtol, atol=0, err_msg=row.name)


@pytest.mark.parametrize("size", SIZES)
@each_dtype
def test_any_length_gives_the_same_bits(dtype: np.dtype, size: int) -> None:
    """Tails run as single elements: their bits are those of the vector body."""
    rng = np.random.default_rng(5)
    whole = rng.choice(extremes(dtype), (2, 1100))
    rows = [r for r in rows_for(dtype, 2) if r.scalar in ("add", "and", "div", "mod", "lt")]
    graph = build(emit_all(rows), *whole)
    full = run_graph(graph, list(whole), run_on_cpu)
    args = [x[3: 3 + size] for x in whole]
    part = run_graph(build(emit_all(rows), *args), args, run_on_cpu)
    for row, a, b in zip(rows, part, full, strict=True):
        assert a.tobytes() == b[3: 3 + size].tobytes(), row.name


@pytest.mark.parametrize("target", DTYPES, ids=str)
def test_casts(target: np.dtype) -> None:
    """Every dtype to this one: floats out of range too."""
    args = [extremes(d) for d in DTYPES]
    for arg in args:
        if arg.dtype.kind == "f":
            arg = np.concatenate([arg, np.array(
                [127.5, 128, -129, 300, 65536, -0.9, 2**31 - 1, 2**32, -2.0**31 - 0.5, 1.9e19,
                 3.7e9, -3.7e9, 1e19], arg.dtype)])
        (got,) = check(build(lambda b, x: b.emit("Cast", x, dtype=target), arg), arg)
        with np.errstate(all="ignore"):
            want = arg.astype(target)
            # NumPy's vectors and its single elements differ for uint32 out of range.
            same = (got == want) | (got != got) & (want != want)
            if target == np.uint32 and arg.dtype.kind == "f":
                same |= ~((arg > -(2.0**31)) & (arg < 2.0**32))
        assert same.all(), (arg[~same], got[~same], want[~same])


@each_dtype
def test_select_and_its_condition(dtype: np.dtype) -> None:
    a = np.resize(extremes(dtype), 100)
    condition = np.arange(100) % 3 == 0
    graph = build(lambda b, c, x, y: b.emit("Where", c, x, y), condition, a, a[::-1])
    check(graph, condition, a, a[::-1], want=[np.where(condition, a, a[::-1])])


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_fma_rounds_once(dtype: str) -> None:
    rng = np.random.default_rng(2)
    kind = np.dtype(dtype)
    many = [rng.standard_normal(4000).astype(kind) for _ in range(3)]
    many[2][::2] = -(many[0] * many[1])[::2]  # cancellation shows the exact product
    edge = [np.concatenate([m, e]) for m, e in zip(many, operands_of(kind, 3), strict=True)]
    graph = build(lambda b, x, y, z: b.emit("Fma", x, y, z), *edge)
    got = run_graph(graph, edge, run_on_cpu)[0]
    want = run_graph(graph, edge, run_kernel)[0]
    np.testing.assert_array_equal(got, want)


def test_constants_become_parameters_or_immediates() -> None:
    x = np.linspace(-2, 2, 37)

    def body(b: Builder, v):
        y = b.emit("Mul", v, b.const(np.float64(1.25)))
        return b.emit("Add", y, b.const(np.float64(-0.0))), b.emit("Sub", y, b.const(np.float64(1)))

    check(build(body, x), x, want=[x * 1.25 + -0.0, x * 1.25 - 1], njit=True)
