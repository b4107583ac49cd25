"""The state of a measured function is put back: before it is compared, and in the end."""

from __future__ import annotations

import numpy as np
import pytest

import fusec

pytestmark = pytest.mark.alone  # seconds


def measured(f, *args):
    report = fusec.benchmark(f, *args, repeats=3)
    assert report.equality.equal, report.equality
    return report


def test_variables():
    weights, steps = fusec.Variable(np.arange(3.0)), fusec.Variable(7)

    def step(x):
        steps.assign_add(1)
        weights.assign_sub(0.5 * (weights - x))
        return weights * steps

    for f in (step, fusec.jit(step)):
        measured(f, np.ones(3))
        assert weights.numpy().tolist() == [0.0, 1.0, 2.0] and int(steps) == 7


def test_a_variable_as_argument():
    weights = fusec.Variable(np.arange(3.0))
    measured(fusec.jit(lambda v, x: v.assign_add(x)), weights, 2.0)
    assert weights.numpy().tolist() == [0.0, 1.0, 2.0]


class Keeper:
    def __init__(self):
        self.count, self.mean, self.total = 0, np.zeros(3), np.ones(3)
        self.losses, self.best, self.late = [1.0], {"loss": 2.0}, None
        del self.late

    def add(self, x):
        self.count += 1
        self.mean = self.mean + (x - self.mean) / self.count
        self.total += x
        self.losses.append(x.sum())
        self.best["loss"] = self.best["loss"] + x[0]
        self.late = x * 2.0
        return self.mean * self.best["loss"] + self.total


def test_attributes_and_containers():
    keeper = Keeper()
    measured(fusec.jit(lambda x: keeper.add(x)), np.ones(3))
    assert keeper.count == 0 and keeper.mean.tolist() == [0.0] * 3
    assert keeper.total.tolist() == [1.0] * 3
    assert keeper.losses == [1.0] and keeper.best == {"loss": 2.0} and not hasattr(keeper, "late")


def test_outer_names_and_arrays():
    total, count = np.zeros(3), 0

    @fusec.jit
    def add(x):
        nonlocal count
        count += 1
        total[:] += x
        return total * count

    measured(add, np.ones(3))
    assert total.tolist() == [0.0] * 3 and count == 0


def test_generators():
    rng, twin = np.random.default_rng(3), np.random.default_rng(3)
    measured(fusec.jit(lambda x: x + rng.normal(size=3)), np.ones(3))
    measured(fusec.jit(lambda x, r: x + r.normal(size=3)), np.ones(3), rng)
    assert rng.random() == twin.random()


def test_containers_that_change_otherwise():
    names = [1.0]

    @fusec.jit
    def turned(x):
        names.insert(0, 2.0)
        return x * names[0] / len(names)

    measured(turned, np.ones(3))
    assert names == [1.0]


def test_after_an_error():
    weights = fusec.Variable(np.zeros(3))

    @fusec.jit
    def picky(x):
        weights.assign_add(x)
        if x[0] > 1.0:  # not the arguments, but those of the repeats
            raise RuntimeError("not today")
        return weights * 2.0

    with pytest.raises(RuntimeError, match="not today"):
        fusec.benchmark(picky, np.ones(3), repeats=3)
    assert weights.numpy().tolist() == [0.0] * 3
