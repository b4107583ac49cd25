"""``is`` of arrays that are reached in several ways, at each call anew."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import fusec

A, B = np.array([1.0, 2.0]), np.array([1.0, 2.0])
S = SimpleNamespace(a=A, b=A, c=B, d=A[1:])


def by_attributes(x):
    return S.a is S.b, S.a is S.c, S.a is not S.b, S.a is A, A is B, S.d is S.a, S.d is S.d


def written_by_one(x):
    S.a[0] += x[0]
    return S.a is S.b, S.a is not S.c, S.b[0]


def by_a_branch(x):
    return S.a * 2 if S.a is S.b else S.a + S.b * x[0]


@pytest.mark.parametrize("f", [by_attributes, written_by_one, by_a_branch])
def test_arrays_from_outside(f):
    compiled, x = fusec.jit(f), np.ones(2)
    for b in (A, A, A.copy(), A):
        S.b = b
        want, before = f(x), A.copy()
        A[:] = [1.0, 2.0]
        got = compiled(x)
        assert np.array_equal(got, want) and np.array_equal(A, before)
        A[:] = [1.0, 2.0]
    S.b = A


def test_arguments():
    @fusec.jit
    def f(x, y):
        return x is y, x is not y, x is x, x.sum() + y.sum()

    for _ in range(2):
        for x, y in ((A, A), (A, B), (A, A), (A[:1], A), (A[1:], A[:1]), (A, A.astype(int))):
            assert f(x, y)[:3] == (x is y, x is not y, True)

    @fusec.jit
    def in_a_list(x, items):
        return [item is x for item in items]

    assert in_a_list(A, [B, A, B]) == [False, True, False]
    assert in_a_list(A, [A, B, B]) == [True, False, False]


def test_an_argument_and_an_array_from_outside_are_refused():
    with pytest.raises(fusec.UnsupportedError, match="pass both"):
        fusec.jit(lambda x: x is S.a)(A)
    assert fusec.jit(lambda x: x is S.a)(np.ones(3)) is False


def whole_views(x):
    y = x + 1.0
    return (x, x[:], x[: x.size], x.T, x.reshape(-1), x.view(), np.ravel(x), x[::-1][::-1],
            np.asarray(x), x.astype(float, copy=False), x.squeeze(), np.float64(x), x.real, y, y[:],
            A, A[...])


def chosen(x, k):
    r = None
    for i in range(5):
        if i == k:
            r = x
    a, b = x, x + 1.0
    if k > 0:
        a, b = b, a
    return r, a, b


def test_a_view_of_a_whole_array_is_another_one():
    def shown(f, *args):
        results = f(*args)
        return [[a is b for b in (*args, A, *results)] for a in results]

    for x in (np.ones(2), np.ones(3), np.ones(3)):
        assert shown(fusec.jit(whole_views), x) == shown(whole_views, x)
        assert shown(fusec.jit(chosen), x, 2.0) == shown(chosen, x, 2.0)
    x = np.arange(3.0)
    view = fusec.jit(lambda x: x[:3])(x)
    view.shape, view[0] = (3, 1), 7.0
    assert x.shape == (3,) and x[0] == 7.0
