"""The cost of a new size of a known function: ``python -m tests.bench.new_sizes``.

A row a program, in ms of processor time: the first call, the second size ever (its trace gets
symbols), the third, the tenth, and the least of the sizes after it.  Each row runs in a process of
its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import fusec

SIZES = (1000, 1013, 960, 1100, 777, 1250, 903, 1171, 1029, 843, 1301, 689, 1444, 1507, 723, 1666)
Call = Callable[[int], Any]


def ten_operations(x: Any, y: Any) -> Any:
    z = np.sqrt(x * x + 0.5)
    z = np.sin(z * y) + x
    z = np.exp(-z * 0.1) + y
    return z * 0.9


def chain(operations: int) -> Callable[[Any, Any], Any]:
    """A function of that many operations, without a loop."""
    def run(x: Any, y: Any) -> Any:
        for _ in range(operations // 10):
            x = ten_operations(x, y)
        return x
    return run


def vectors(n: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(n)
    return random.random(n), random.random(n)


def plain(operations: int) -> Call:
    f = fusec.jit(chain(operations))
    return lambda n: f(*vectors(n))


def loop(operations: int) -> Call:
    """A loop over the elements, which a native function runs."""
    body = chain(operations)

    @fusec.jit
    def f(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        out = np.zeros_like(x)
        state = 0.5
        for i in range(len(x)):
            state = body(state * 0.5, y[i]) * 1e-3
            out[i] = state + x[i]
        return out
    return lambda n: f(*vectors(n))


def gradient(operations: int) -> Call:
    """Of a sum over such a chain."""
    body = chain(operations)
    f = fusec.value_and_grad(lambda x, y: np.sum(body(x, y)))
    return lambda n: f(*vectors(n))


def logistic(_: int) -> Call:
    """The loss of a logistic regression, and its derivative by the weights."""
    def loss(w: np.ndarray, x: np.ndarray, y: np.ndarray) -> Any:
        z = x @ w
        return np.mean(np.log1p(np.exp(-np.abs(z))) + np.maximum(z, 0.0) - y * z) + (
            1e-3 * np.sum(w * w))

    f = fusec.value_and_grad(loss)
    w = np.linspace(-1.0, 1.0, 20)
    return lambda n: f(w, *batch(n))


def batch(n: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(n)
    return random.standard_normal((n, 20)), (random.random(n) > 0.5).astype(float)


def loop_gradient(operations: int) -> Call:
    """Of a native loop."""
    body = chain(operations)

    def last(x: np.ndarray, y: np.ndarray) -> Any:
        state = 0.5 * x[0]
        for i in range(len(x)):
            state = body(state * 0.5, y[i]) * 1e-3 + x[i]
        return state

    f = fusec.value_and_grad(last)
    return lambda n: f(*vectors(n))


class Network:
    """Layers of Variables, their moments, and an Adam step."""

    def __init__(self, layers: int, width: int = 20) -> None:
        random = np.random.default_rng(0)
        shapes = [(width, width)] * layers + [(width, 1)]
        self.weights = [fusec.Variable(random.standard_normal(s) / np.sqrt(s[0])) for s in shapes]
        self.first = [fusec.Variable(np.zeros(s)) for s in shapes]
        self.second = [fusec.Variable(np.zeros(s)) for s in shapes]
        self.steps = fusec.Variable(0.0)

    def loss(self, x: np.ndarray, y: np.ndarray) -> Any:
        for w in self.weights[:-1]:
            x = np.tanh(x @ w)
        z = (x @ self.weights[-1])[:, 0]
        return np.mean(np.log1p(np.exp(-np.abs(z))) + np.maximum(z, 0.0) - y * z)

    def train(self, x: np.ndarray, y: np.ndarray) -> Any:
        value, slopes = fusec.value_and_grad(self.loss, wrt=self.weights)(x, y)
        steps = self.steps.assign_add(1.0)
        for w, m, v, slope in zip(self.weights, self.first, self.second, slopes, strict=True):
            mean = m.assign(0.9 * m + 0.1 * slope)
            square = v.assign(0.999 * v + 0.001 * slope * slope)
            scaled = mean / (1.0 - 0.9**steps) / (np.sqrt(square / (1.0 - 0.999**steps)) + 1e-8)
            w.assign_sub(1e-3 * scaled)
        return value


def training_step(operations: int) -> Call:
    """Adam on a network: one layer of weights has some 10 operations, with the way back."""
    network = Network(layers=operations // 20)
    step = fusec.jit(network.train)
    return lambda n: step(*batch(n))


PROGRAMS: dict[str, tuple[Callable[[int], Call], int]] = {
    f"{name} {operations}": (make, operations)
    for name, make, counts in (
        ("plain", plain, (10, 100)), ("loop", loop, (10, 100)),
        ("gradient", gradient, (10, 100, 600)), ("logistic gradient", logistic, (10,)),
        ("gradient of a loop", loop_gradient, (10, 100)),
        ("training step", training_step, (10, 100)))
    for operations in counts
}


def measured(name: str) -> list[float]:
    """Milliseconds of processor time of the first call at each size, beyond that of a later one."""
    make, operations = PROGRAMS[name]
    call, times = make(operations), []
    for n in SIZES:
        start = time.process_time()
        call(n)
        first = time.process_time() - start
        times.append(1e3 * (first - min(_again(call, n) for _ in range(5))))
    return times


def _again(call: Call, n: int) -> float:
    start = time.process_time()
    call(n)
    return time.process_time() - start


def row(name: str, times: list[float]) -> str:
    shown = [*times[:3], times[9], min(times[10:])]
    return f"| {name} | {' | '.join(f'{ms:.1f}' for ms in shown)} |"


def rows(names: list[str]) -> Iterator[str]:
    """Each measured three times in a process of its own; the least of each figure.

    BLAS has one thread: others that wait for work count as processor time.
    """
    alone = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    for name in names:
        runs = [subprocess.run([sys.executable, "-m", "tests.bench.new_sizes", "--one", name],
                               capture_output=True, text=True, check=True, env=alone).stdout
                for _ in range(3)]
        yield row(name, [min(map(float, same)) for same in zip(*map(str.split, runs), strict=True)])


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--one"]:
        print(*measured(arguments[1]))
        return
    print("| program, operations | first call | second size | third | tenth | later |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for line in rows(arguments or list(PROGRAMS)):
        print(line, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
