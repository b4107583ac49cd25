"""Which of several exceptions is raised: the first in the program's order."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec


def index_behind_a_guard(x: Any, i: Any) -> Any:
    if i[0] > 2:
        raise KeyError("far")
    return x[i[0]], x[i]


def asserted(x: Any, i: Any) -> Any:
    assert i[0] < 3, "out of the grid"
    x[i[0]] += 1
    return x


def division(x: Any, i: Any) -> Any:
    b = float(x[0] - 1)
    if b == 0:
        raise ValueError("empty class")
    return 1.0 / b + i[0]


def library_call(x: Any, i: Any) -> Any:
    if i[0] > 2:
        raise KeyError("singular")
    return np.linalg.inv(np.eye(2) * (3 - i[0])) + x[0]


def counted(x: Any, i: Any) -> Any:
    if (i - 3 > 0).any():
        raise OverflowError("large")
    return np.bincount(2 - i)


def in_a_loop(x: Any, i: Any) -> Any:
    s = 0.0
    for k in i:
        if k > 2:
            raise KeyError("far")
        s += x[k]
    return s


def in_a_while_loop(x: Any, i: Any) -> Any:
    s, k = 0.0, 0
    while k < len(i):
        if i[k] > 2:
            raise KeyError("far")
        s += x[i[k]]
        k += 1
    return s


def unrolled(x: Any, i: Any) -> Any:
    for k in i[:3]:
        if x[k] > 4:
            raise ValueError("large")
    return x


def behind_a_return(x: Any, i: Any) -> Any:
    if i[0] < 0:
        return 0
    if i[0] > 2:
        raise KeyError(1)
    if x[0] > 1:
        raise IndexError(2)
    raise ValueError(3)


def behind_a_break(x: Any, i: Any) -> Any:
    for k in i:
        if k < 0:
            break
        if k > 2:
            raise KeyError(2)
    raise IndexError(3)


def one_of_three(x: Any, i: Any) -> Any:
    if x[0] > 0:
        if i[0] > 2:
            raise KeyError(1)
        if i[1] > 2:
            raise IndexError(2)
        raise ValueError(3)
    return x.sum()


def one_of_two_in_a_loop(x: Any, i: Any) -> Any:
    k, total = 0, 0.0
    while k < len(i):
        if i[k] > 2:
            if i[k] > 5:
                raise KeyError("a")
            raise ValueError("b")
        total += x[i[k]]
        k += 1
    return total


def a_body_that_always_raises(x: Any, i: Any) -> Any:
    k = 0
    while i[k] > 1:
        if x[k] > 1:
            raise KeyError("k")
        raise ValueError("v")
    return k


def a_costly_check_first(x: Any, i: Any) -> Any:
    k = math.sqrt(i[0])
    if x[1:].sum() > k:
        raise ValueError("sum")
    if i[0] > 1:
        raise KeyError("first")
    return k


PROGRAMS = [
    index_behind_a_guard, asserted, division, library_call, counted, in_a_loop, in_a_while_loop,
    unrolled, behind_a_return, behind_a_break, one_of_three, one_of_two_in_a_loop,
    a_body_that_always_raises, a_costly_check_first]
INDICES = ([0, 1, 2, 1], [3, 1, 0, 0], [1, 9, 3, 0], [2, -1, 3, 7], [-1, 5, 0, 1], [6, 3, 0, 0])


def outcome(function: Callable[..., Any], *args: Any) -> Any:
    try:
        result = function(*args)
    except Exception as error:
        kinds = (KeyError, IndexError, ZeroDivisionError, OverflowError, np.linalg.LinAlgError,
                 AssertionError, ValueError)
        return next(k for k in kinds if isinstance(error, k))
    return np.asarray(result[0] if isinstance(result, tuple) else result).tolist()


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_as_in_python(program: Callable[..., Any]) -> None:
    jitted = fusec.jit(program)
    for first in (1.0, 5.0, -1.0):
        for i in INDICES:
            x = np.array([first, 0.5, 2.0])
            want = outcome(program, x.copy(), np.array(i))
            assert outcome(jitted, x, np.array(i)) == want, (first, i)


def test_a_guard_before_a_loop_that_would_not_end() -> None:
    def countdown(n: Any) -> Any:
        if n < 0:
            raise ValueError("negative")
        k = 0
        while n != 0:
            n, k = n - 1, k + 1
        return k

    jitted = fusec.jit(countdown)
    assert jitted(np.int64(5)) == 5
    with pytest.raises(ValueError, match="negative"):
        jitted(np.int64(-1))


def test_nothing_is_drawn_behind_a_guard() -> None:
    def program(x: Any, rng: Any) -> Any:
        if x[0] > 1:
            raise KeyError("far")
        return rng.random()

    rng = np.random.default_rng(1)
    with pytest.raises(KeyError):
        fusec.jit(program)(np.full(2, 2.0), rng)
    assert rng.random() == np.random.default_rng(1).random()


class NotConverged(Exception):
    def __init__(self, text: str, steps: Any = 0) -> None:
        super().__init__(text)
        self.steps = steps


@pytest.mark.parametrize(("made", "shown"), [
    (lambda x: ValueError("bad row %d of %s" % (x.argmax(), "A")),  # noqa: UP031
     "bad row {x.argmax()} of A"),
    (lambda x: ValueError("pivot %(p).3g%%" % {"p": x[0]}),  # noqa: UP031
     "pivot {x[0]}%"),
    (lambda x: ValueError(f"bad {x[0]:.3f} {2}"), "bad {x[0]} 2"),
    (lambda x: ValueError("bad {:.3f} {n}".format(x[0], n=2)), "bad {x[0]} 2"),  # noqa: UP032
    (lambda x: ValueError("bad " + str(x[0])), "bad {x[0]}"),
    (lambda x: KeyError(x.sum()), "'{x.sum()}'"),
    (lambda x: NotConverged("no", x.min()), "no"),
])
def test_texts_with_values_of_the_run(made: Callable[..., Any], shown: str) -> None:
    """The expression stands for the value, as in f-strings."""
    def program(x: Any) -> Any:
        if x[0] > 5:
            raise made(x)
        return x * 2

    jitted = fusec.jit(program)
    np.testing.assert_array_equal(jitted(np.ones(3)), [2, 2, 2])
    with pytest.raises(type(made(np.ones(2)))) as raised:
        jitted(np.full(3, 7.0))
    assert str(raised.value) == shown
    assert getattr(raised.value, "steps", "{x.min()}") == "{x.min()}"


KNOWN = {"1.0": 5}


def as_a_key(x: Any) -> Any:
    return x * KNOWN.get(str(x[0]), 7) if x[0] > 0 else x


def compared(x: Any) -> Any:
    if x[0] > 0:
        name = f"{x[0]:.1f}"
        if name == "1.0":
            return x * 2
    return x


def looked_up(x: Any) -> Any:
    return 1.0 if x[0] > 0 and "%g" % x[0] in KNOWN else 0.0  # noqa: UP031


@pytest.mark.parametrize("program", [as_a_key, compared, looked_up])
def test_such_texts_are_for_exceptions_only(program: Callable[..., Any]) -> None:
    with pytest.raises(fusec.errors.ConcreteValueError):
        fusec.jit(program)(np.ones(2))


def test_of_an_element_to_be_written_where_the_next_to_be_read_is_missing_too() -> None:
    """The node that passes make of the first is newer than the one they leave of the other."""
    def program(x: Any, t: Any) -> None:
        w = x * 2
        for _ in range(25):
            w = w[::-1][1:]
            for _ in range(9):
                w[0] = t
                for _ in x:
                    t = w[-1]

    with pytest.raises(IndexError, match="index 0 is out of bounds for axis 0 with size 0"):
        fusec.jit(program)(np.arange(12.0), 1.0)


def list_of_indices(x: Any) -> Any:
    n = 1
    x[[n, 0]]  # of which nothing needs the elements
    return math.sqrt(n - 2)


def written_and_read(x: Any) -> Any:
    x[0] = 3
    x[[0, 2]]
    return x.reshape(7)


@pytest.mark.parametrize("program", [list_of_indices, written_and_read])
def test_an_index_before_what_raises_whatever_the_data(program: Callable[..., Any]) -> None:
    compiled = fusec.jit(program)
    for n in (5, 3, 2, 1, 6, 7):
        seen = []
        for f in (program, compiled):
            x = np.arange(1.0, n + 1)
            try:
                seen.append(f(x).shape)
            except (ValueError, IndexError) as error:
                words = str(error).splitlines()[0]
                seen.append((isinstance(error, IndexError), words, x.tolist()))
        assert seen[0] == seen[1]


class CodedError(ValueError):
    """Keeps more than its arguments, some of it in a slot."""

    __slots__ = ("code",)

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.code, self.also = code, text


def flipped_after_a_check(x):
    return np.flip(np.take(x, [1, 1]), 1)


def coded(x):
    if x[0] > 1.0:
        raise CodedError("a", 3)
    return x


def test_an_exception_of_the_run_has_its_attributes():
    with pytest.raises(np.exceptions.AxisError, match="axis 1 is out of bounds") as raised:
        fusec.jit(flipped_after_a_check)(np.ones(3))
    assert (raised.value.axis, raised.value.ndim) == (1, 1)
    with pytest.raises(CodedError, match="a") as own:
        fusec.jit(coded)(np.full(3, 5.0))
    assert (own.value.code, own.value.also) == (3, "a")


def test_an_index_before_lengths_that_are_negative():
    def program(x):
        x[[1, 0]]
        return x, np.ndindex(x.size - 1, 2)

    with pytest.raises(IndexError, match="index 1 is out of bounds"):
        fusec.jit(program)(np.zeros(0))


def missing_file(x: Any) -> Any:
    if x[1] > 0:
        raise FileNotFoundError(2, "no file", "data.txt")
    return x


def renamed(x: Any) -> Any:
    if x[1] > 0:
        raise OSError(13, "not allowed", "a", None, "b")
    return x


def missing_module(x: Any) -> Any:
    if x[1] > 0:
        raise ImportError("none", name="m", path="p")
    return x


@pytest.mark.parametrize("f", [missing_file, renamed, missing_module])
def test_what_classes_keep_beside_their_arguments(f: Any) -> None:
    """The file's name was lost."""
    x, found = np.ones(3), []
    for g in (f, fusec.jit(f)):
        with pytest.raises((OSError, ImportError)) as caught:
            g(x)
        error = caught.value
        found.append((type(error), str(error), error.args, *(
            getattr(error, name, None) for name in ("filename", "filename2", "name", "path"))))
    assert found[0] == found[1]
