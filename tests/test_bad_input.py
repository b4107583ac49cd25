"""Programs that are wrong, or that fusec does not take: the errors for their authors."""

from __future__ import annotations

import math
import os
import random
import re
import secrets
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fusec
from fusec import ConcreteValueError, FusecError, TraceError, UnsupportedError, config

X, V = np.ones((3, 4)), np.ones(7)
WEIGHTS, SWAPPED, MATRIX = np.ones(7), np.ones(4, ">f8"), np.asmatrix(np.ones((1, 4)))
KEPT: list[Any] = []


def failure(fn: Callable[..., Any], *args: Any, **options: Any) -> Exception:
    """The exception of a call of the jitted function; every frame shown must be the user's."""
    with pytest.raises(Exception) as caught:
        fusec.jit(fn, **options)(*args)
    files = [f.filename for f in traceback.extract_tb(caught.value.__traceback__)]
    tests = Path(__file__).parent
    assert all(Path(f).parent == tests or "/fusec/" not in f for f in files), files
    return caught.value


def text(error: Exception) -> str:
    """The message with this file's name and line numbers taken out."""
    name = re.escape(Path(__file__).name)
    shown = str(error).replace(__file__, "prog.py")
    return re.sub(rf"({name}|prog\.py):\d+", "prog.py", shown)


# --- shapes and dtypes: NumPy's exception, both operands, the line, the cure ---------------------


def test_shapes_that_do_not_broadcast() -> None:
    def f(x, v):
        y = x + 1
        return y * 2 + v

    error = failure(f, X, V)
    assert isinstance(error, ValueError) and isinstance(error, FusecError)
    assert text(error) == """\
operands could not be broadcast together with shapes (3,4) (7,)
  left:  f64[3,4], from `y * 2` (prog.py)
  right: f64[7], argument v
  cure: make the shapes equal from the right, or insert axes of length 1 with np.newaxis
  at prog.py in f
    return y * 2 + v
           ^^^^^^^^^"""


NUMPYS_ERRORS: dict[str, tuple[Callable[..., Any], np.ndarray]] = {
    "broadcast": (lambda x: x + np.ones(7), X),
    "reshape": (lambda x: x.reshape(5, 5), X),
    "reshape text": (lambda x: x.reshape("a"), X),
    "index": (lambda x: x[5], X),
    "indices": (lambda x: x[0, 0, 0], X),
    "index type": (lambda x: x[1.5], X),
    "bound": (lambda x: x[:1.0], X),
    "bound of data": (lambda x: x[x.sum():], X),
    "step": (lambda x: x[::np.float64(2)], X),
    "step of data": (lambda x: x[::x[0, 0]], X),
    "array as a bound": (lambda x: x[:x[0]], X),
    "bound in a store": (lambda x: x.__setitem__(slice(1.0), 0), X),
    "ellipses": (lambda x: x[..., ...], X),
    "axis": (lambda x: x.sum(axis=3), X),
    "axes twice": (lambda x: x.sum(axis=(0, 0)), X),
    "axes": (lambda x: x.transpose(0, 0, 0), X),
    "argument": (lambda x: np.sum(x, axiss=1), X),
    "method argument": (lambda x: x.sum(axiss=1), X),
    "ufunc argument": (lambda x: np.exp(x, foo=3), X),
    "dtype name": (lambda x: x.sum(dtype="zz"), X),
    "bits of floats": (lambda x: x & 1, X),
    "assignment": (lambda x: x.__setitem__(0, np.ones(3)), X),
    "concatenate": (lambda x: np.concatenate([x, x[:, :2]]), X),
    "concatenate ranks": (lambda x: np.concatenate([x, x[0]]), X),
    "stack": (lambda x: np.stack([x, x[0]]), X),
    "empty maximum": (lambda x: x[:0].max(), X),
    "empty argmax": (lambda x: x[:0].argmax(), X),
    "squeeze": (lambda x: x.squeeze(0), X),
    "broadcast_to": (lambda x: np.broadcast_to(x, (4, 3)), X),
    "out dtype": (lambda x: np.exp(x, out=np.empty((3, 4), int)), X),
    "in place": (lambda x: x.__iadd__(1.5), X.astype(int)),
    "power": (lambda x: x ** -1, X.astype(int)),
    "uint8": (lambda x: x + 300, X.astype(np.uint8)),
    "delete": (lambda x: x.__delitem__(0), X),
    "attribute": (lambda x: x.foo, X),
    "scalar length": (lambda x: len(x.sum()), X),
    "scalar loop": (lambda x: list(x.sum()), X),
    "unpack": (lambda x: (lambda a, b: a)(*x), X),
    "call": (lambda x: x(3), X),
    "truth": (lambda x: x and 3, X),
    "float of an array": (lambda x: float(x), X),
    "math of an array": (lambda x: math.sqrt(x), X),
    "round of an array": (lambda x: round(x), X),
    "plus text": (lambda x: x + "a", X),
    "plus None": (lambda x: x + None, X),
    "hash": (lambda x: {x: 1}, X),
    "read-only": (lambda x: np.broadcast_to(x, (2, 3, 4)).__setitem__(0, 1), X),
}
SAME_TEXT = set(NUMPYS_ERRORS) - {
    "unpack", "plus text", "plus None", "truth", "in place", "power", "math of an array",
}


@pytest.mark.parametrize("name", NUMPYS_ERRORS)
def test_the_exception_is_numpys(name: str) -> None:
    fn, x = NUMPYS_ERRORS[name]
    before = x.copy()
    with pytest.raises(Exception) as plain:
        fn(x)
    error = failure(fn, x)
    public = next(c for c in type(plain.value).__mro__ if not c.__module__.startswith("numpy._"))
    assert isinstance(error, public)
    np.testing.assert_array_equal(x, before)
    if name in SAME_TEXT:
        first = str(error).partition("\n")[0]
        assert first == str(plain.value).partition("\n")[0].rstrip()


def test_matrices_that_do_not_align() -> None:
    error = failure(lambda x, y: x @ y, X, X + 1)
    assert isinstance(error, ValueError)
    assert "left:  f64[3,4], argument x\n  right: f64[3,4], argument y" in str(error)
    assert "cure: make these two sizes equal, or transpose an operand" in str(error)


def test_both_sides_of_an_assignment() -> None:
    def f(x):
        x[0] = np.ones(3)

    assert text(failure(f, X)) == """\
could not broadcast input array from shape (3,) into shape (4,)
  value: f64[3], from `np.ones(3)` (prog.py)
  array: f64[3,4], argument x
  cure: assign a number, or an array whose shape equals the target's from the right
  at prog.py in f
    x[0] = np.ones(3)
    ^^^^^^^^^^^^^^^^^"""


def test_both_sides_of_an_in_place_operation() -> None:
    def f(n):
        n += 1.5

    shown = text(failure(f, np.arange(3)))
    assert "  result: f64[3], from `n += 1.5` (prog.py)\n  target: i64[3], argument n\n" in shown
    assert "cure: write x = x + y, which makes a new array" in shown


def test_operands_from_outside_are_named() -> None:
    def inner():
        held = V
        return lambda x: x + held

    class Model:
        weights = np.ones(5)

        @fusec.jit
        def apply(self, x):
            return x + self.weights

    assert "right: f64[7], global WEIGHTS" in str(failure(lambda x: x + WEIGHTS, X))
    assert "right: f64[7], closure variable held" in str(failure(inner(), X))
    with pytest.raises(ValueError, match=r"right: f64\[5\], attribute Model\.weights"):
        Model().apply(X)


def test_lines_in_helpers_lambdas_and_nested_functions() -> None:
    def helper(a, b):
        return a - b

    def outer(x, v):
        def nested(a):
            return helper(a, v)

        return list(map(lambda a: nested(a), [x]))  # noqa: C417

    shown = text(failure(outer, X, V))
    assert shown.endswith("helper\n    return a - b\n           ^^^^^")
    lines = traceback.format_exception(failure(outer, X, V))
    assert sum("return a - b" in line for line in lines) >= 1


# --- values that only the compiled code knows ---------------------------------------------------

NEEDS_A_VALUE: dict[str, tuple[Callable[..., Any], str, str]] = {
    "sorted": (lambda x: sorted([x.sum(), 1]), "a truth value", "np.where"),
    "range": (lambda x: list(range(int(x.sum()))), "an index or a length", "static argument"),
    "slice": (lambda x: [1, 2][: x.argmax()], "an index or a length", "static argument"),
    "size": (lambda x: x.reshape(int(x.sum()), -1), "an index or a length", "static argument"),
    "f-string": (lambda x: f"{x.sum():.3f}", "text", "after the call"),
    "f-string !r": (lambda x: f"{x!r}", "text", "after the call"),
    "str": (lambda x: str(x.sum()), "text", "after the call"),
    "repr": (lambda x: repr(x.sum()), "text", "after the call"),
    "percent": (lambda x: "%s" % x.sum(), "text", "after the call"),  # noqa: UP031
    "format": (lambda x: "{}".format(x.sum()), "text", "after the call"),  # noqa: UP032
    "key": (lambda x: {x.sum(): 1}, "a hash", "before the call"),
    "look-up": (lambda x: {1: 1}[x.sum()], "a hash", "before the call"),
    "set": (lambda x: {x[0, 0]}, "a hash", "before the call"),
    "tolist": (lambda x: x[x > 0].tolist(), "a list of more than 128 numbers",
               ".tolist() on the result"),
    "complex": (lambda x: {complex(x.sum())}, "a hash", "before the call"),
}


@pytest.mark.parametrize("name", NEEDS_A_VALUE)
def test_a_value_that_python_needs(name: str) -> None:
    fn, wanted, cure = NEEDS_A_VALUE[name]
    error = failure(fn, X)
    assert isinstance(error, ConcreteValueError) and isinstance(error, TypeError)
    first, *_ = str(error).splitlines()
    assert first.startswith(f"{wanted} ") and first.endswith(
        "is needed while <lambda> is traced, but this value is only known when the compiled code "
        "runs")
    assert cure in str(error) and "^^^" in str(error)


def test_a_length_of_data_has_arrays_of_that_length_as_its_cure() -> None:
    error = failure(lambda x: np.broadcast_to(x[0], (int((x > 1).sum()), 4)), X)
    assert "np.broadcast_to needs a length while" in str(error)
    assert "cure: make an array of the length: np.full(n, number), or np.ones((n, 1)) * row" in str(
        error)
    x = np.arange(4.0)
    got = fusec.jit(lambda x: np.ones((int((x > 1).sum()), 1)) * x)(x)
    np.testing.assert_array_equal(got, [x, x])


def test_the_way_out_names_the_argument() -> None:
    def f(a):
        names = ["zero", "one", "two", "three", "four"]
        return names[int(a)]

    assert text(failure(f, 3.0)) == """\
an index or a length is needed while f is traced, but this value is only known when the compiled \
code runs
  value: int, from `int(a)` (prog.py)
  cure: make a static, fusec.jit(static=('a',)): one trace for each value
  at prog.py in f
    return names[int(a)]
           ^^^^^^^^^^^^^"""
    assert fusec.jit(f, static="a")(4.0) == "four"


def test_a_loop_that_changes_a_shape_names_the_variable_and_both_types() -> None:
    def f(x):
        while x.sum() > 0:
            x = np.concatenate([x, x - 1])
        return x

    assert text(failure(f, X)) == """\
the loop variable 'x' changes its type
  before the loop:    f64[3,4]
  after an iteration: f64[6,4]
  cure: give it its final shape and kind before the loop
  at prog.py in f
    while x.sum() > 0:
    ^^^^^^^^^^^^^^^^^^"""


def test_sides_of_a_branch_that_disagree() -> None:
    def f(x):
        if x.sum() > 0:  # noqa: SIM108
            y = x
        else:
            y = x[0]
        return y

    shown = text(failure(f, X))
    lines = [line for line in shown.splitlines() if line.startswith(("  then", "  else"))]
    assert shown.startswith("the sides of a branch leave different things in 'y'")
    assert [re.sub(r"\d+(?=:)", "N", line) for line in lines] == [
        "  then, to line N: f64[3,4]", "  else, to line N: f64[4]"]
    assert "if x.sum() > 0:" in shown

    def g(x):
        if x.sum() > 0:
            return x
        return "nothing"

    assert "the sides of a branch return different things" in text(failure(g, X))


def branch_in_a_helper(x, flag):
    if flag:
        z = x.reshape(-1)
        z = z * 2
    else:
        z = x
    return z


class Stepper:
    def step(self, x):
        if x.max() > 2:  # noqa: SIM108
            out = (x, 1.0)
        else:
            out = (x,)
        return out


def sides_in_a_loop(x):
    s = 0.0
    for v in x[0]:
        if v > 3:  # noqa: SIM108
            s = x
        else:
            s = v
    return s


def early_return(x):
    if x.sum() > 0:
        return x, 1
    return x


def loop_with_else(x):
    for v in x[0]:
        if v > 100:
            r = v
            break
    else:
        r = x
    return r


@pytest.mark.parametrize(("f", "lines", "sides"), [
    (lambda x: branch_in_a_helper(x, x[0, 0] > 0), (3, 5), ("f64[12]", "f64[3,4]")),
    (Stepper().step, (2, 4), ("(f64[3,4], 1.0)", "(f64[3,4],)")),
    (sides_in_a_loop, (4, 6), ("f64[3,4]", "f64")),
    (early_return, (2, 3), ("(f64[3,4], 1)", "f64[3,4]")),
    (loop_with_else, (1, 6), ("f64", "f64[3,4]")),
], ids=["helper", "method", "loop", "return", "else"])
def test_both_lines_of_a_branch_are_named(
    f: Callable[..., Any], lines: tuple[int, int], sides: tuple[str, str]
) -> None:
    """The last line of each side, from the function's ``def``, and its variables."""
    found = re.findall(r"(?:then|else), to line (\d+): (.*)", text(failure(f, X)))
    owner = branch_in_a_helper if f.__name__ == "<lambda>" else f
    first = owner.__code__.co_firstlineno
    assert [found[0][1], found[1][1]] == list(sides)
    if f is not loop_with_else:
        assert [int(n) - first for n, _ in found] == list(lines)


def test_a_variable_that_only_one_side_binds() -> None:
    """Python's error where the other side was taken and it is read; none where it is not."""
    def f(x, limit):
        if x.sum() > limit:
            y = x * 2
        return y

    def g(x, limit):
        if x.sum() > limit:
            y = x * 2
        x = x + 1
        if x.sum() > limit + 12:
            x = x + y
        return x

    def h(x, limit):
        s = 0.0
        for k in range(40):
            if x[0, 0] + k > limit:
                y = k
            s += y
        return s

    for function in (f, g, h):
        jitted = fusec.jit(function)
        np.testing.assert_array_equal(jitted(X, -1.0), function(X, -1.0))
        if function is g:
            np.testing.assert_array_equal(jitted(X, 1e9), function(X, 1e9))
            continue
        with pytest.raises(UnboundLocalError) as python:
            function(X, 1e9)
        with pytest.raises(UnboundLocalError) as found:
            jitted(X, 1e9)
        assert found.value.args == python.value.args


def test_try_in_a_loop_on_data() -> None:
    def f(x):
        k = 0
        while x[0, k] < 2 and k < 2:
            try:
                k += int(x[0, k]) + 1
            except ValueError:
                k += 1
        return k

    assert fusec.jit(f)(X) == f(X)


def test_a_loop_that_changes_a_tuple_shows_its_parts() -> None:
    def f(x):
        t = (x, x[0])
        while x.sum() > 3:
            t, x = (*t, x), x / 2
        return t

    shown = text(failure(f, X))
    assert "the loop variable 't' changes its type" in shown
    assert "before the loop:    (f64[3,4], f64[4])\n" in shown
    assert "after an iteration: (f64[3,4], f64[4], f64[3,4])" in shown


def test_a_list_changed_in_a_branch_or_loop_on_data() -> None:
    def branch(x):
        found = []
        if x.sum() > 0:
            found.append(x)
        return found

    def loop(x):
        table = {}
        while x.sum() > 0:
            table["x"] = x
            x = x - 1
        return table

    assert "list.append in a branch or loop that data decides" in text(failure(branch, X))
    assert "item of a container in a branch or loop" in text(failure(loop, X))


def test_raising_with_a_traced_value_in_a_branch_on_data() -> None:
    def f(x):
        if x.sum() > 0:
            raise ValueError("too large", x.sum())
        return x

    error = failure(f, X)
    assert type(error) is ValueError and error.args == ("too large", "{x.sum()}")
    assert fusec.jit(f)(-X) is not None


def test_an_index_out_of_range_in_a_native_loop() -> None:
    def f(x):
        for i in range(len(x)):
            x[i] = x[i + 1]
        return x

    with pytest.raises(IndexError, match="index 20 is out of bounds for axis 0 with size 20"):
        fusec.jit(f)(np.arange(20.0))


def test_print_of_a_traced_value() -> None:
    with pytest.warns(fusec.SideEffectWarning, match="fusec.print prints the values of every"):
        fusec.jit(lambda x: print(x.sum()))(X)


def test_values_that_no_argument_decides_are_known() -> None:
    def f(x):
        if np.zeros(3).sum() == 0:
            x = x + [10, 20, 30][np.ones(3).argmax()]
        return x + np.cumsum(np.ones(4)) + np.linalg.inv(2 * np.eye(4))[0] + np.ones(4).cumsum()

    np.testing.assert_array_equal(fusec.jit(f)(X), f(X))


# --- what fusec does not have -------------------------------------------------------------------

UNSUPPORTED: dict[str, tuple[Callable[..., Any], str, str]] = {
    "function": (lambda x: np.linalg.eigvals(x), "np.linalg.eigvals", "before or after"),
    "near function": (lambda x: np.linalg.eig(x), "np.linalg.eig", "depends on the data"),
    "method": (lambda x: x.tobytes(), "ndarray.tobytes", "after the call"),
    "scalar method": (lambda x: x.sum().is_integer(), "np.float64.is_integer", "before or after"),
    "unknown size": (lambda x: np.trim_zeros(x), "np.trim_zeros", "depends on data"),
    "argument": (lambda x: x.view(np.int32), "a view of another item size", "astype"),
    "math": (lambda x: math.gamma(x.sum()), "math.gamma", "before or after"),
    "swapped": (lambda x: x + np.ones(4, ">f8"), "an array of dtype >f8", "native byte order"),
    "attribute": (lambda x: x.ctypes, "ndarray.ctypes", "before or after"),
    "file": (lambda x: np.save("never-written", x), "np.save", "save the result after"),
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_what_is_not_supported_is_named(name: str) -> None:
    fn, what, hint = UNSUPPORTED[name]
    error = failure(fn, X)
    assert isinstance(error, UnsupportedError) and isinstance(error, NotImplementedError)
    assert str(error).startswith(f"{what} is not supported inside a fusec.jit function\n")
    assert hint in str(error) and "^^^" in str(error)


def test_assignment_to_the_shape() -> None:
    def f(x):
        x.shape = (4, 3)

    assert "cure: write x = x.reshape(...)" in str(failure(f, X))


@pytest.mark.parametrize("draw", [
    lambda: random.random(), lambda: random.Random(3).uniform(0, 1),
    lambda: secrets.randbelow(3), lambda: os.urandom(2)[0],
])
def test_random_numbers_are_not_frozen(draw: Callable[[], Any]) -> None:
    error = failure(lambda x: x + draw(), X)
    assert str(error).startswith("drawing random numbers is not supported")
    assert "use np.random or a np.random.Generator" in str(error)


# --- arrays that cannot be held -----------------------------------------------------------------

ARRAYS: dict[str, tuple[Any, str, str]] = {
    "object": (np.array([1, None]), "has dtype object", "x.astype(float)"),
    "structured": (np.zeros(3, "i4,f4"), "has dtype [('f0'", "x['name']"),
    "datetime": (np.zeros(3, "M8[s]"), "has dtype datetime64[s]", "x.astype('i8')"),
    "timedelta scalar": (np.timedelta64(3, "s"), "has dtype timedelta64[s]", "x.astype('i8')"),
    "longdouble": (np.zeros(3, np.longdouble), "has dtype", "x.astype(np.float64)"),
    "long complex": (np.zeros(3, np.clongdouble), "has dtype", "x.astype(np.complex128)"),
    "text": (np.array(["a"]), "has dtype <U1", "use numbers"),
    "swapped": (np.zeros(3, ">f8"), "has dtype '>f8', whose byte order", "x.astype('<f8')"),
    "swapped ints": (np.zeros(3, ">i2"), "has dtype '>i2', whose byte order", "x.astype('<i2')"),
    "matrix": (np.asmatrix(X), "is a numpy.matrix", "np.asarray(x)"),
    "masked": (np.ma.masked_array(X, X > 2), "is a numpy.ma.MaskedArray", "x.filled(value)"),
    "record": (np.rec.array([(1, 2.0)]), "is a numpy.rec.recarray", "np.asarray(x)"),
    "set": ({1, 2}, "is a set", "tuples, lists and dicts"),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arguments_are_named_by_path(name: str) -> None:
    value, what, cure = ARRAYS[name]
    for fn, args, path in (
        (lambda x: x, (value,), "x"),
        (lambda p: p, ({"w": [X, value]},), "p['w'][1]"),
    ):
        error = failure(fn, *args)
        assert isinstance(error, TypeError) and isinstance(error, FusecError)
        assert str(error).startswith(f"argument {path} {what}") and cure in str(error)


def test_memory_mapped_files(tmp_path: Path) -> None:
    mapped = np.memmap(tmp_path / "data", dtype="f8", mode="w+", shape=(3,))
    np.testing.assert_array_equal(fusec.jit(lambda x: x + 1)(mapped), np.ones(3))

    @fusec.jit
    def fill(x):
        x[:] = 2.0

    fill(np.asarray(mapped))
    assert mapped[0] == 2.0


def test_captured_arrays_are_named() -> None:
    assert str(failure(lambda x: x + SWAPPED, X)).startswith("global SWAPPED has dtype '>f8'")
    assert str(failure(lambda x: x * MATRIX, X)).startswith("global MATRIX is a numpy.matrix")
    made = failure(lambda x: x + np.array([None] * 4), X)
    assert str(made).startswith("an array made in the function has dtype object")
    made = failure(lambda x: x + np.asmatrix(np.asarray([1.0, 2, 3, 4])), X)
    assert str(made).startswith("an array made in the function is a numpy.matrix")


# --- memory -------------------------------------------------------------------------------------


@pytest.mark.parametrize("write", [
    lambda x: x.__setitem__(0, 5), lambda x: np.exp(x, out=x), lambda x: x.fill(3),
    lambda x: np.copyto(x, 1.0), lambda x: x.__iadd__(1),
])
def test_read_only_arguments(write: Callable[..., Any]) -> None:
    x = X.copy()
    x.flags.writeable = False
    error = failure(write, x)
    assert isinstance(error, ValueError) and "read-only" in str(error)
    assert "argument x" in str(error) and "x.copy()" in str(error)
    np.testing.assert_array_equal(x, X)


def test_an_exception_leaves_arguments_untouched() -> None:
    def f(x):
        x[0] = 7
        x *= 2
        return x + np.ones(9)

    x = X.copy()
    failure(f, x)
    np.testing.assert_array_equal(x, X)


@pytest.mark.parametrize("shape", [(0,), (0, 4), (3, 0), (2, 0, 3)])
def test_empty_arrays(shape: tuple[int, ...]) -> None:
    def f(x):
        y = np.exp(x) * 2 + 1
        y[...] = y - 1
        return y, y.sum(), y.sum(axis=0), y.prod(axis=-1), y.reshape(-1), y.T

    x = np.zeros(shape)
    for got, want in zip(fusec.jit(f)(x), f(x), strict=True):
        assert type(got) is type(want) and got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)


# --- the user's own exceptions ------------------------------------------------------------------


def test_own_exceptions_pass_through() -> None:
    mine = ValueError("mine")

    def f(x):
        raise mine

    def chained(x):
        try:
            return x + np.ones(9)
        except ValueError as error:
            raise RuntimeError("mine") from error

    assert failure(f, X) is mine
    error = failure(chained, X)
    assert type(error) is RuntimeError and isinstance(error.__cause__, ValueError)
    assert isinstance(failure(lambda x: undefined_name + x, X), NameError)  # noqa: F821
    assert isinstance(failure(lambda x: {}["k"] + x, X), KeyError)
    assert isinstance(failure(lambda x: x + 1 / 0, X), ZeroDivisionError)


def test_handled_exceptions_are_no_matter() -> None:
    def f(x):
        try:
            return x + np.ones(9)
        except ValueError:
            return x - 1, hasattr(x, "foo"), getattr(x, "bar", 3)

    result, *rest = fusec.jit(f)(X)
    assert rest == [False, 3] and result[0, 0] == 0


def test_endless_recursion() -> None:
    def f(x):
        return f(x)

    assert isinstance(failure(f, X), RecursionError)

    def g(x):
        return g(x / 2) if x.sum() > 1 else x

    error = failure(g, X)
    assert isinstance(error, fusec.UnsupportedError)
    assert "a function that calls itself until data ends it" in str(error)
    assert "put fusec.jit on the function that calls itself" in str(error)
    assert "return g(x / 2) if" in str(error)


def test_verbose_errors_keep_all_frames() -> None:
    with config.override(verbose_errors=True), pytest.raises(ValueError) as caught:
        fusec.jit(lambda x: x + np.ones(9))(X)
    assert any("/fusec/" in f.filename for f in traceback.extract_tb(caught.value.__traceback__))


def test_stages_are_as_short() -> None:
    function = fusec.jit(lambda x: x + np.ones(9))
    for stage in (function.trace, function.lower, function.concrete):
        with pytest.raises(ValueError) as caught:
            stage(X)
        assert [f.filename for f in traceback.extract_tb(caught.value.__traceback__)] == [
            __file__, __file__]


def test_defects_say_so_and_keep_their_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise KeyError("surprise")

    monkeypatch.setattr("fusec.placement.placers.run_pipeline", broken)
    with pytest.raises(fusec.InternalError, match="could not be compiled: KeyError") as caught:
        fusec.jit(lambda x: x + 1)(X)
    assert "report it" in str(caught.value) and isinstance(caught.value.__cause__, KeyError)
    assert any("/fusec/" in f.filename for f in traceback.extract_tb(caught.value.__traceback__))


# --- tracers that survive -----------------------------------------------------------------------


def test_a_tracer_used_later_names_where_it_was_made() -> None:
    KEPT.clear()
    names: dict[str, Any] = {"__name__": "llvmlite.part"}
    exec("def unseen(kept, new): kept.extend(new)", names)  # of a package that is not converted
    unseen = names["unseen"]

    @fusec.jit
    def keep(x):
        y = x * 2
        unseen(KEPT, [y, x])
        return x

    keep(X)
    for use in (lambda t: t + 1, lambda t: t > 0, lambda t: t.shape, np.sin, np.sum, bool, len):
        with pytest.raises(TraceError) as caught:
            use(KEPT[0])
        shown = text(caught.value)
        assert shown.startswith("a traced value is used after its trace ended; it was made in keep")
        assert "from `x * 2` (prog.py)" in shown and shown.endswith("y = x * 2\n        ^^^^^")
    with pytest.raises(TraceError, match="argument x"):
        KEPT[1] + 1
    with pytest.raises(TraceError, match="it was made in keep"):
        fusec.jit(lambda x: x + KEPT[0])(X)
    assert repr(KEPT[0]).startswith("<traced f64[3,4] of a finished trace")


def test_a_traced_value_in_an_attribute_is_an_array_after_the_call() -> None:
    class Store:
        value = None

    store = Store()

    def f(x):
        store.value = x * 2
        return x

    fusec.jit(f)(X)
    np.testing.assert_array_equal(store.value, X * 2)


# --- texts that say what there is ---------------------------------------------------------------


def test_what_writes_files_is_for_the_result() -> None:
    for f in (lambda x: np.save("never", x), lambda x: np.savetxt("never", x),
              lambda x: x.tofile("never")):
        assert "cure: save the result after the call" in text(failure(f, X))
    assert "cure: format the result" in text(failure(lambda x: np.array2string(x), X))


def test_slices_that_data_chooses_are_shown() -> None:
    def branch(x):
        if x[0, 0] > 5:  # noqa: SIM108
            s = slice(0, 3)
        else:
            s = slice(1, 4)
        return x[s]

    def loop(x):
        s, total = slice(0, 1), 0.0
        while total < x[0, 0]:
            total, s = total + x[s].sum(), slice(1, 3, None)
        return total

    for f, what in ((branch, "slice(1, 4, None)"), (loop, "slice(1, 3, None)")):
        shown = text(failure(f, X))
        assert what in shown and "x[start:stop]" in shown


def test_super_in_a_branch_on_data() -> None:
    class Base:
        def f(self, x):
            return x + 1

    class Derived(Base):
        def f(self, x, times=2):
            if x[0, 0] > 0:
                x = super().f(x)
            for _ in range(times):
                if x.sum() > 0:
                    x = super().f(x) * super().f(x)
            return x

    for x in (X, -X):
        np.testing.assert_array_equal(fusec.jit(Derived().f)(x), Derived().f(x))
