"""Arrays that a branch chooses are the arrays themselves, in results and attributes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import optree
import pytest

import fusec
from fusec.errors import UnsupportedError


def one(x: Any, y: Any, c: Any) -> Any:
    return x if c > 0 else y


def view_of_one(x: Any, y: Any, c: Any) -> Any:
    v = x[1:4] if c > 0 else y[::2][:3]
    v[0] = 9
    return v, v[1:], x


def old_or_new(x: Any, y: Any, c: Any) -> Any:
    v = x
    if c > 0:
        v = x + 1
    elif c < -1:
        v = y
    return v, v[::2]


def view_or_none(x: Any, y: Any, c: Any) -> Any:
    best = None
    if c > 0:
        best = x[2:4]
    return best


def exchanged(x: Any, y: Any, c: Any) -> Any:
    if c > 0:
        x, y = y, x
    return x, y


def in_containers(x: Any, y: Any, c: Any) -> Any:
    return {"a": (x if c > 0 else y)[::-1], "b": [x if c > 1 else x * 2]}


def turned(x: Any, y: Any, c: Any) -> Any:
    v = x.reshape(2, 3) if c > 0 else y.reshape(3, 2).T
    return v.T, v[0], v[:, None]


def chosen_twice(x: Any, y: Any, c: Any) -> Any:
    v = x if c > 0 else y
    w = v if c > 2 else x[:3]
    return v, w[:3]


@pytest.mark.parametrize("program", [
    one, view_of_one, old_or_new, view_or_none, exchanged, in_containers, turned])
def test_results_are_what_numpy_returns(program: Any) -> None:
    jitted = fusec.jit(program)
    for c in (1.0, -1.0, -2.0, 3.0):
        eager, own = ([np.arange(6.0), np.arange(6.0) * 10, c] for _ in range(2))
        want, got = program(*eager), jitted(*own)
        assert repr(got) == repr(want)
        assert _relations(got, own) == _relations(want, eager)


def _relations(result: Any, args: list[Any]) -> Any:
    """Which arrays are, or share memory with, which, and how they lie."""
    leaves = [leaf for leaf in optree.tree_leaves(result) if isinstance(leaf, np.ndarray)]
    others = [*args[:2], *leaves]
    return [([np.shares_memory(a, b) for b in others], [a is b for b in others],
             [s for s, n in zip(a.strides, a.shape, strict=True) if n > 1], a.flags.writeable)
            for a in leaves]


def chosen(x: Any, y: Any, z: Any, c: Any) -> Any:
    if c[0] > 0:
        if c[1] > 0:
            return x
        if c[2] > 0:
            return x
        if c[3] > 0:
            return z
    elif c[4] > 0:
        return x
    if c[5] > 0:
        if c[6] > 0:
            return y
        if c[7] > 0:
            return z
        if c[8] > 0:
            return y
    return x


def by_many_branches(x: Any, y: Any, c: Any) -> Any:
    return chosen(x, y, y, c), x


def written_by_many_branches(x: Any, y: Any, c: Any) -> Any:
    v = chosen(x, y, x[::-1], c)
    v[1:] -= v[:-1]
    y *= 2
    return v[::2], x, y


@pytest.mark.parametrize("program", [by_many_branches, written_by_many_branches])
def test_few_arrays_of_many_branches(program: Any) -> None:
    jitted = fusec.jit(program)
    for signs in itertools.product((-1.0, 1.0), repeat=9):
        eager, own = ([np.arange(6.0), np.arange(6.0) * 10, np.array(signs)] for _ in range(2))
        want, got = program(*eager), jitted(*own)
        assert repr((got, own)) == repr((want, eager))
        assert _relations(got, own) == _relations(want, eager)


def view_of_one_in_a_branch(x: Any, y: Any, c: Any) -> Any:
    v = y[1:3]
    if c > 0:
        v = (x if c > 2 else x * 2)[1:3]
    v[0] = 7
    return v, x, y


def new_by_two_names(x: Any, y: Any, c: Any) -> Any:
    v = x
    if c > 0:
        v = y = y * 2
    v[0] = 5
    return v, y, x


def new_by_two_names_on_both_sides(x: Any, y: Any, c: Any) -> Any:
    if c > 0:
        v = y = y * 2
        w = v
    else:
        v = w = y + 1
        y = x * 3
    v[0] = 5
    y[1] = 6
    w[2] = 7
    return v, w, y


def views_of_two_before_a_return(x: Any, y: Any, c: Any) -> Any:
    v = y[4:0:-1]
    if c > 0:
        v = x[1:5] if c > 2 else y[2:]
        if True:
            return v, x
    return v, x


@pytest.mark.parametrize("program", [
    views_of_two_before_a_return, view_of_one_in_a_branch, new_by_two_names,
    new_by_two_names_on_both_sides])
def test_new_arrays_of_a_side(program: Any) -> None:
    test_results_are_what_numpy_returns(program)


def parts_of_new(x: Any, y: Any, c: Any) -> Any:
    v = w = x
    if c > 0:
        v = y * 2
        w = v[::-1]
    return v + w, v, x


def test_parts_of_new_arrays_of_a_side_are_read_only() -> None:
    for c in (1.0, -1.0):
        args = np.arange(6.0), np.ones(6), c
        assert repr(fusec.jit(parts_of_new)(*args)) == repr(parts_of_new(*args))


def row_after_a_return(A: Any, u: Any, c: Any) -> Any:
    v = A[1, ::-1]
    if c[0] > 0:
        return v
    return A[u[0] % 4]


def row_or_column_at_an_index_of_a_branch(A: Any, u: Any, c: Any) -> Any:
    v = A[0]
    if c[0] > 0:
        k = u[0] + 1
        v = A[k] if c[1] > 0 else A[:, k]
    v[2] = 9
    return v, A


def rows_in_a_loop(A: Any, u: Any, c: Any) -> Any:
    v = A[3]
    for i in range(3):
        if c[i] > 0:
            v = A[u[i] + i]
        v[i] += 1
    return v, A


@pytest.mark.parametrize("program", [
    row_after_a_return, row_or_column_at_an_index_of_a_branch, rows_in_a_loop])
def test_views_at_indices_of_a_branch(program: Any) -> None:
    jitted = fusec.jit(program)
    for signs in itertools.product((-1.0, 1.0), repeat=3):
        for u in ((0, 1, 2), (3, 2, 0), (-1, 0, 1), (3, 4, 5)):
            eager, own = (
                [np.arange(16.0).reshape(4, 4), np.array(u), np.array(signs)] for _ in range(2))
            try:
                want = program(*eager)
            except IndexError:
                with pytest.raises(IndexError):
                    jitted(*own)
                continue
            got = jitted(*own)
            assert repr((got, own)) == repr((want, eager))
            assert _relations(got, own) == _relations(want, eager)


def test_arrays_of_other_shapes_are_refused_as_before() -> None:
    with pytest.raises(TypeError, match="different things"):
        fusec.jit(chosen_twice)(np.arange(6.0), np.arange(6.0), 1.0)


class Owner:
    def __init__(self, data: Any) -> None:
        self.data = data


def test_an_attribute_that_is_not_bound_anew_keeps_its_array() -> None:
    buffer = np.arange(8.0)
    owner = Owner(buffer)

    @fusec.jit
    def program(x: Any) -> Any:
        if x[0] > 0:
            owner.data = x[:8]
        return x.sum()

    program(-np.ones(9))
    assert owner.data is buffer
    x = np.ones(9)
    program(x)
    assert np.shares_memory(owner.data, x)
    x[0] = 5
    assert owner.data[0] == 5


def bumped(x: Any) -> Any:
    s = x[3]

    def bump(c: Any) -> Any:
        nonlocal s
        s += c
        return s * 0.5

    if x[0] > 0:
        x[2] = 1
    else:
        x[1] = bump(x[2])
    return s, x


def bumped_on_both_sides(x: Any) -> Any:
    def maker(c: Any) -> Any:
        total = c

        def add(d: Any) -> Any:
            nonlocal total
            total += d
            return total

        return add

    add = maker(x[0])
    if x[1] > 0:
        add(x[2])
    before = add(1.0)
    if x[2] > 0:
        add(2.0)
    else:
        add(3.0)
    return before, add(0.0)


@pytest.mark.parametrize("program", [bumped, bumped_on_both_sides])
def test_nonlocal_names_in_branches(program: Any) -> None:
    jitted, r = fusec.jit(program), np.random.default_rng(0)
    for x in r.standard_normal((6, 4)):
        own = x.copy()
        assert repr(jitted(own)) == repr(program(x))
        np.testing.assert_array_equal(own, x)


def reads_what_is_unbound(x: Any) -> Any:
    s = x.sum()
    while s > 0:
        factor = factor * 0.5  # noqa: F821
        s -= factor
    return s


def raises_for_each(x: Any) -> Any:
    for _ in x[x > 0]:
        raise ValueError(f"not for {len(x)}")
    return x.sum()


def past_the_end(x: Any) -> Any:
    s, numbers = x.sum(), [1, 2]
    while s > 0:
        s -= numbers[5]
    return s


@pytest.mark.parametrize("program", [reads_what_is_unbound, raises_for_each, past_the_end])
def test_loops_that_always_raise_raise_where_they_are_entered(program: Any) -> None:
    jitted = fusec.jit(program)
    assert jitted(-np.ones(3)) == program(-np.ones(3))
    with pytest.raises((UnboundLocalError, ValueError, IndexError)) as eager:
        program(np.ones(3))
    with pytest.raises(type(eager.value), match=str(eager.value)):
        jitted(np.ones(3))


def reads_both(x: Any, y: Any) -> Any:
    return x + 2 * y, y


def test_a_trace_of_one_array_twice_is_not_used_for_two() -> None:
    jitted, q = fusec.jit(reads_both), np.arange(4.0)
    for args in ((q, q), (q, q * 3), (q, q), (q * 5, q)):
        want, got = reads_both(*args), jitted(*args)
        np.testing.assert_array_equal(got[0], want[0])
        assert got[1] is want[1]


def is_one(x: Any, c: Any) -> Any:
    v = x if c > 0 else x * 2
    if v is x:
        v[0] = 10
    return v is not x, x


def test_identity_of_what_was_chosen() -> None:
    jitted = fusec.jit(is_one)
    for c in (1.0, -1.0):
        assert repr(jitted(np.ones(2), c)) == repr(is_one(np.ones(2), c))


def flat_of_one(c: Any) -> Any:
    y = np.arange(6.0)
    v = y.reshape(2, 3) if c > 0 else y.reshape(3, 2).T
    r = v.ravel()
    return r * 2, y


def flat_and_written(c: Any) -> Any:
    y = np.arange(6.0)
    v = y.reshape(2, 3) if c > 0 else y.reshape(3, 2).T
    r = v.ravel()
    r[0] = 99
    return r, y


def test_views_or_copies_by_what_was_chosen_are_read_only() -> None:
    for c in (1.0, -1.0):
        assert repr(fusec.jit(flat_of_one)(c)) == repr(flat_of_one(c))
    with pytest.raises(UnsupportedError, match="writing to an array that is"):
        fusec.jit(flat_and_written)(-1.0)


def bound_together(y: Any) -> Any:
    for k in range(20):
        if k == 0:
            z = np.zeros(3)
            rows = z[1:]
        else:
            rows[0] += y[0]
    return z


def one_array_by_two_names(y: Any) -> Any:
    z = y + 1
    v = z
    for k in range(20):
        if k == 1:
            z = y * 3
            v = z
        elif k == 3:
            v[0] = 50
    return z


@pytest.mark.parametrize("program", [bound_together, one_array_by_two_names])
def test_names_of_one_array_in_loops(program: Any) -> None:
    np.testing.assert_array_equal(fusec.jit(program)(np.ones(5)), program(np.ones(5)))


def raises_one_of_two(x: Any, t: Any) -> Any:
    if x.sum() > t:
        raise KeyError
    raise ValueError


def raises_first_what_comes_first(x: Any, t: Any) -> Any:
    if x[0] > t:
        raise KeyError("first")
    assert len(x) > 99, "always"


@pytest.mark.parametrize("program", [
    raises_one_of_two, raises_first_what_comes_first])
def test_the_first_exception_is_raised(program: Any) -> None:
    jitted = fusec.jit(program)
    for t in (0.5, 9.0):
        with pytest.raises(Exception) as want:
            program(np.ones(3), t)
        with pytest.raises(type(want.value)):
            jitted(np.ones(3), t)


def new_by_all_early_returns(x: Any, y: Any, c: Any) -> Any:
    v = y[4:]
    for i in range(3):
        if c[i] > 0:
            v.fill(c[0])
            x = x * 0.5
            return (y,)
    return None


def test_new_arrays_in_every_exit() -> None:
    jitted = fusec.jit(new_by_all_early_returns)
    for signs in itertools.product((-1.0, 1.0), repeat=3):
        x, own = np.arange(6.0), np.arange(6.0)
        want, got = (f(a, a[::-1], np.array(signs)) for f, a in (
            (new_by_all_early_returns, x), (jitted, own)))
        assert repr((got, own)) == repr((want, x))


def two_of_one_after_a_return(a: Any, k: Any) -> Any:
    s = a
    if k > 4:
        return a, a + 1.0
    if k > 0:
        s = a + 2.0
    return s, s


def test_a_choice_in_two_places_after_a_return() -> None:
    jitted = fusec.jit(two_of_one_after_a_return)
    for k in (0.0, 1.0, 5.0):
        x, own = np.arange(4.0), np.arange(4.0)
        want, got = two_of_one_after_a_return(x, k), jitted(own, k)
        assert repr(got) == repr(want)
        assert [g is own for g in got] == [w is x for w in want]
        assert np.shares_memory(*got) == np.shares_memory(*want)
