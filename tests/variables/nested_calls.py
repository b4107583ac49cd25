"""Random programs of jitted functions that call one another, some after they have been called by
themselves: compiled, and by plain Python.

    python tests/variables/nested_calls.py 1000 [first seed]
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import numpy as np

import fusec

Jit = Callable[[Any], Any]
Callee = Callable[[Any], Any]  # given an array, or a Variable


class Plan(NamedTuple):
    """A callee: its kind, which Variable it uses, a factor, how often it is called beforehand."""

    kind: str
    variable: int
    factor: float
    calls: int


def reads(jit: Jit, w: Any, c: float) -> Callee:
    f = jit(lambda: w * c)
    return lambda a: f()


def assigns(jit: Jit, w: Any, c: float) -> Callee:
    def step() -> Any:
        w.assign_add(np.ones(3) * c)
        return w * c

    f = jit(step)
    return lambda a: f()


def takes_an_array(jit: Jit, w: Any, c: float) -> Callee:
    return jit(lambda a: a * c + 1)


def takes_a_number(jit: Jit, w: Any, c: float) -> Callee:
    f = jit(lambda k: w * k)
    return lambda a: f(c)


def takes_a_tree(jit: Jit, w: Any, c: float) -> Callee:
    f = jit(lambda t: t["a"] * t["k"] + t["b"][0])
    return lambda a: f({"a": a, "k": c, "b": [w]})


def gradient(jit: Jit, w: Any, c: float) -> Callee:
    """By the argument."""
    if jit is fusec.jit:
        return fusec.grad(lambda a: (np.sin(a * 0.1) * w * c).sum())
    return lambda a: np.cos(np.asarray(a) * 0.1) * 0.1 * w.numpy() * c


def gradient_by_variable(jit: Jit, w: Any, c: float) -> Callee:
    if jit is fusec.jit:
        return fusec.grad(lambda a: (w * w * a * c).sum(), wrt=w)
    return lambda a: 2 * w.numpy() * np.asarray(a) * c


def method(jit: Jit, w: Any, c: float) -> Callee:
    class Model:
        weights = w

        @jit
        def scaled(self) -> Any:
            return self.weights * c

    model = Model()
    return lambda a: model.scaled()


def calls_another(jit: Jit, w: Any, c: float) -> Callee:
    inner = jit(lambda: w + c)
    return jit(lambda a: inner() * a)


KINDS = {f.__name__: f for f in (
    reads, assigns, takes_an_array, takes_a_number, takes_a_tree, gradient, gradient_by_variable,
    method, calls_another)}


def results(jit: Jit, plans: list[Plan], order: list[tuple[int, str]]) -> list[np.ndarray]:
    """The results of three calls of the program, and the values of its Variables in the end."""
    variables = [fusec.Variable(np.arange(3.0) + 1), fusec.Variable(np.full(3, 2.0))]
    callees = [KINDS[p.kind](jit, variables[p.variable], p.factor) for p in plans]
    for plan, callee in zip(plans, callees, strict=True):
        for number in range(plan.calls):
            callee(np.ones(3) * number)

    def program(x: Any, n: Any) -> Any:
        s = x * 1.0
        for which, way in order:
            call, plan = callees[which], plans[which]
            if way == "constant":
                s = s + call(np.ones(3) * 0.5) * 0.1
            elif way == "variable" and "gradient" not in plan.kind:  # that is by its other use, too
                s = s * 0.5 + call(variables[plan.variable]) * 0.1
            elif way == "loop":
                for _ in range(n[0]):
                    s = s * 0.5 + call(np.ones(3)) * 0.1
            elif way == "branch":
                s = s + call(s) * 0.1 if n[0] > 1 else s - 1
            else:
                s = s * 0.5 + call(s) * 0.1
        return s

    compiled, found = jit(program), []
    for k in (1, 2, 3):
        found.append(np.array(compiled(np.arange(3.0) * k, np.array([k]))))
        variables[0].assign(variables[0].numpy() * 0.5 + k)
    return [*found, *(v.numpy().copy() for v in variables)]


def difference(seed: int) -> str:
    """Of the program of this seed; empty where there is none."""
    random = Random(seed)
    plans = [Plan(random.choice([*KINDS]), random.randint(0, 1), random.choice([0.5, 2.0, -1.0]),
                  random.randint(0, 4)) for _ in range(random.randint(2, 4))]
    ways = ("constant", "traced", "variable", "loop", "branch")
    order = [(random.randrange(len(plans)), random.choice(ways))
             for _ in range(random.randint(2, 5))]
    got, want = results(fusec.jit, plans, order), results(lambda f: f, plans, order)
    if all(np.allclose(a, b, rtol=1e-10, atol=1e-10) for a, b in zip(got, want, strict=True)):
        return ""
    return f"seed {seed}: {plans} {order}: got {got}, want {want}"


def main() -> int:
    count, first = [*map(int, sys.argv[1:]), 0][:2]
    wrong = [text for seed in range(first, first + count) if (text := difference(seed))]
    print(*wrong, f"{count} programs, {len(wrong)} wrong", sep="\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
