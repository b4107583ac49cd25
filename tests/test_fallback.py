"""``fusec.jit(fallback="eager")``: refused functions run as Python runs them, with one warning."""

from __future__ import annotations

import numpy as np
import pytest

import fusec

LOG: list = []


def opened(x, y):
    LOG.append(1)
    x[0] += 1
    return np.sort(x) + len(y.tobytes()) / 8


def test_a_refused_call_runs_eagerly_with_one_warning():
    LOG.clear()
    f = fusec.jit(opened, fallback="eager")
    with pytest.warns(fusec.FallbackWarning, match="opened runs uncompiled.*tobytes") as seen:
        for _ in range(3):
            x = np.array([3.0, 1.0])
            assert f(x, np.ones(2)).tolist() == [3.0, 6.0]
            assert x.tolist() == [4.0, 1.0]
    assert len(seen) == 1
    assert (f.eager_calls, len(LOG), f.trace_count) == (3, 3, 0)
    with pytest.raises(fusec.FusecError):
        fusec.jit(opened)(np.ones(2), np.ones(2))


def test_other_calls_are_compiled_and_errors_are_the_programs():
    @fusec.jit(fallback="eager")
    def f(x):
        if x.dtype == np.float32:
            return np.float64(len(x.tobytes()) / 8)
        return np.linalg.inv(x) if x.ndim == 2 else x * 2

    with pytest.warns(fusec.FallbackWarning):
        assert f(np.ones(2, np.float32)) == 1.0
    assert (f(np.ones(2)).tolist(), f.eager_calls, f.trace_count) == ([2.0, 2.0], 1, 1)
    with pytest.raises(np.linalg.LinAlgError):
        f(np.zeros((2, 2)))
    assert f.eager_calls == 1


def test_without_source_and_as_a_method():
    space = {"np": np, "fusec": fusec}
    exec(
        "class Model:\n"
        "    n = 0\n"
        "    @fusec.jit(fallback='eager')\n"
        "    def step(self, x):\n"
        "        match x.shape:\n"
        "            case (n,): self.n += n\n"
        "        return x / self.n\n", space)
    model = space["Model"]()
    with pytest.warns(fusec.FallbackWarning, match="has no source"):
        found = [model.step(np.ones(1)).item() for _ in range(3)]
    assert found == [1.0, 1 / 2, 1 / 3]
    assert (model.n, model.step.eager_calls) == (3, 3)


def test_overlapping_arguments_fall_back_too():
    @fusec.jit(fallback="eager")
    def f(x, y):
        x += y
        return x

    base = np.arange(10.0)
    expected = np.arange(10.0)
    expected[::2] += expected[1::3][:1]
    f(base[::2], base[1:2])
    assert (base == expected).all()


def test_an_unknown_fallback_is_named():
    with pytest.raises(ValueError, match="fallback='numpy': expected 'error' or 'eager'"):
        fusec.jit(opened, fallback="numpy")


def test_generators_run_as_python_runs_them():
    def doubled(x):
        for row in x:
            yield row * 2

    f = fusec.jit(doubled, fallback="eager")
    with pytest.warns(fusec.FallbackWarning, match="doubled runs uncompiled.*'yield'") as seen:
        for _ in range(3):
            assert list(f(np.arange(3.0))) == [0.0, 2.0, 4.0]
    assert (len(seen), f.eager_calls) == (1, 3)
    with pytest.raises(fusec.UnsupportedError, match="'yield'"):
        fusec.jit(doubled)
