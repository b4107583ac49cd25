"""Branches in loops that change arrays whose sizes only the run knows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusec

A = np.random.default_rng(3).normal(size=(23, 19))
V = A[0] + 0.0


def one_element(a: Any) -> Any:
    out = np.zeros(19)
    for k in range(19):
        v = a[k:, k].copy()
        if v[0] > 0:
            v[0] += 3.0
        else:
            v[0] -= 5.0
        out[k] = (v * v).sum()
    return out


def all_of_it(a: Any) -> Any:
    out = np.zeros(19)
    for k in range(19):
        v = a[k:, k] * 1.0
        if v[-1] > 0:
            v[:] = v[::-1] + 1.0
        out[k] = v[0] - v[-1]
    return out


def two_that_change_places(a: Any) -> Any:
    out = np.zeros((19, 2))
    for k in range(19):
        v, w = a[k:, k] * 1.0, a[k:, 0] * 2.0
        if v[0] > w[0]:
            t = v.copy()
            v[:] = w
            w[:] = t
        out[k] = v.sum(), (w * w).sum()
    return out


def a_row_of_two(a: Any) -> Any:
    for k in range(19):
        part = a[k:, k:] + 0.0
        if part[0, 0] > 0:
            part[0] *= 2.0
            part[:, 0] += part[0, 0]
        a[k:, k:] = part * 0.5
    return a


def the_memory_of_another(a: Any) -> Any:
    """A side that writes a view: the rows of an array not of the run's size change too."""
    for k in range(1, 19):
        row = a[k, k:]
        if a[k, 0] > 0:
            row[0] = row[-1] * 0.5
            a[0, k] = row.sum()
    return a


def in_a_branch(v: Any) -> Any:
    total = 0.0
    for k in range(19):
        w = v[k:] * 1.0
        if v[k] > 0:
            if v[0] > 0:
                w[0] = 1.0
            else:
                w[-1] = 2.0
            w *= 2.0
        total += w.sum()
    return total


@pytest.mark.parametrize("f, x", [
    (one_element, A), (all_of_it, A), (two_that_change_places, A), (a_row_of_two, A),
    (the_memory_of_another, A), (in_a_branch, V), (in_a_branch, -V)],
    ids=lambda x: getattr(x, "__name__", ""))
def test_as_numpy_does_and_native(f: Any, x: Any) -> None:
    jitted, got, want = fusec.jit(f), x.copy(), x.copy()
    np.testing.assert_allclose(jitted(got), f(want), rtol=1e-12)
    np.testing.assert_allclose(got, want, rtol=1e-12)
    assert all(c.is_native for c in jitted.traces[0].control), jitted.traces[0].control
