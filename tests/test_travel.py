"""Jitted functions in other processes: by name, by value, once a worker; and Dask's tokens."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest

import fusec

X = np.linspace(1.0, 2.0, 4)


@fusec.jit
def at_the_top(x: Any) -> Any:
    return x * 2 if x[0] > 0 else x


class Model:
    def __init__(self, w: float) -> None:
        self.w = np.full(4, w)

    @fusec.jit(fp="strict")
    def step(self, x: Any) -> Any:
        self.w += x
        return self.w * 2

    def __reduce__(self) -> Any:
        return Model, (float(self.w[0]),)


def made(k: Any) -> Any:
    return fusec.jit(lambda x: x * k if x[0] > 0 else x, fp="strict", static=())


def there_and_back(x: Any) -> Any:
    return pickle.loads(pickle.dumps(x))


def test_by_name() -> None:
    assert there_and_back(at_the_top) is at_the_top
    assert there_and_back(Model.step) is Model.step
    assert there_and_back({"f": [at_the_top]})["f"][0] is at_the_top
    assert len(pickle.dumps(at_the_top)) < 200


def test_copies_are_the_function() -> None:
    local = made(2.0)
    for f in (at_the_top, local, Model(1.0).step):
        assert copy.copy(f) is f
    assert copy.deepcopy({"f": local})["f"] is local


def test_methods_bring_their_instance() -> None:
    method = there_and_back(Model(3.0).step)
    np.testing.assert_array_equal(method(X), (3.0 + X) * 2)
    np.testing.assert_array_equal(method.__self__.w, 3.0 + X)
    assert there_and_back(Model(3.0).step.function).fp == "strict"


@pytest.mark.parametrize("k", [3.0, np.arange(4.0), [1.0, 2.0, 3.0, 4.0]])
def test_by_value(k: Any) -> None:
    f = made(k)
    g = there_and_back(f)
    assert g.options == f.options and g.__name__ == f.__name__
    np.testing.assert_array_equal(g(X), f(X))
    assert there_and_back(f) is g and there_and_back(made(k)) is g  # interned
    assert g.trace_count == 1
    assert cloudpickle.loads(cloudpickle.dumps(f)) is g


def test_other_contents_are_another_function() -> None:
    held = [2.0]
    f = fusec.jit(lambda x: x * held[0])
    first = there_and_back(f)
    held[0] = 5.0
    second = there_and_back(f)
    np.testing.assert_array_equal(first(X), X * 2)
    np.testing.assert_array_equal(second(X), X * 5)


def test_functions_that_name_each_other() -> None:
    @fusec.jit
    def even(x: Any, n: int) -> Any:
        return x if n == 0 else odd(x + 1, n - 1)

    @fusec.jit
    def odd(x: Any, n: int) -> Any:
        return x * 10 if n == 0 else even(x + 1, n - 1)

    for f in (even, odd):
        g = there_and_back(f)
        np.testing.assert_array_equal(g(X, 3), f(X, 3))
        assert there_and_back(f) is g


def test_callable_objects_and_options() -> None:
    class Scale:
        def __init__(self, k: float) -> None:
            self.k = k

        def __call__(self, x: Any, n: int) -> Any:
            return x * self.k * n

    f = fusec.jit(Scale(3.0), static="n", check_indices=False, reduce_retracing=False)
    g = there_and_back(f)
    assert g.options == f.options and g.__name__ == "Scale"
    np.testing.assert_array_equal(g(X, 2), X * 6)


def test_without_cloudpickle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    assert there_and_back(at_the_top) is at_the_top
    with pytest.raises(pickle.PicklingError, match="install cloudpickle"):
        pickle.dumps(made(2.0))


def test_a_name_that_means_something_else(monkeypatch: pytest.MonkeyPatch) -> None:
    f = at_the_top
    monkeypatch.setattr(sys.modules[__name__], "at_the_top", None)
    g = there_and_back(f)
    assert g is not f
    np.testing.assert_array_equal(g(X), X * 2)


SCRIPT = '''
import multiprocessing, os, sys
from concurrent.futures import ProcessPoolExecutor
import numpy as np, fusec

SCALE = 3.0

@fusec.jit
def f(x):
    if x[0] > 0:
        x = x * SCALE
    return x + helper(x)

def helper(x):
    return x.sum() if x[1] > 0 else x[0]

def task(fn, x):
    return os.getpid(), fn(x)[0], fn.trace_count

def made(k):
    return fusec.jit(lambda x: x * k if x[0] > 0 else x)

if __name__ == "__main__":
    x = np.ones(4)
    functions = [f, made(2.0)]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        if sys.argv[0] == "-c":  # whose functions no worker finds by name
            print([pool.submit(g, x).result()[0] for g in functions])
        else:
            for g in functions:
                found = list(pool.map(task, [g] * 6, [x] * 6))
                print(sorted({(value, count) for _, value, count in found}))
            with context.Pool(1) as other:
                print(other.map(f, [x, x])[1][0])
'''


def ran(*command: Any, **options: Any) -> str:
    done = subprocess.run([sys.executable, *map(str, command)], capture_output=True, text=True,
                          timeout=120, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_pools_that_spawn(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    assert ran(script).split("\n")[:3] == [
        "[(np.float64(15.0), 1)]", "[(np.float64(2.0), 1)]", "15.0"]


def test_a_program_without_a_file() -> None:
    """Its functions go by value, with their text: branches on data are compiled there."""
    assert ran("-c", SCRIPT) == "[np.float64(15.0), np.float64(2.0)]\n"


TOKENS = '''
import sys, fusec, numpy as np
sys.path.insert(0, sys.argv[1])
from mod import f
G = [1, {"a", "b", "c"}]
@fusec.jit
def g(x): return x * k(x) + len(G)
def k(x): return {"a", "b"} and g
print(repr(f.__dask_tokenize__()))
print(g.__dask_tokenize__()[:4])
'''


def test_tokens_are_the_same_in_every_process(tmp_path: Path) -> None:
    (tmp_path / "mod.py").write_text(
        "import fusec\nS = 2.0\n@fusec.jit\ndef f(x, n={'a': 1}):\n"
        "    return [y for y in x if y in {1, 2}] if n else lambda: x * S\n")
    (tmp_path / "main.py").write_text(TOKENS)
    found = {ran(tmp_path / "main.py", tmp_path, env={"PYTHONHASHSEED": str(seed)})
             for seed in (1, 2)}
    assert len(found) == 1


def test_tokens_tell_functions_apart() -> None:
    tokens = [repr(f.__dask_tokenize__()) for f in (
        made(2.0), made(3.0), at_the_top, Model.step, fusec.jit(made(2.0)._fn, fp="fast"))]
    assert len(set(tokens)) == len(tokens)
    assert repr(made(2.0).__dask_tokenize__()) == tokens[0]


def summed(weights: Any) -> Callable[[Any], Any]:
    return lambda x: x * weights.sum()


def by_default(weights: Any) -> Callable[[Any], Any]:
    def f(x: Any, own: Any = weights) -> Any:
        return x * own.sum()

    return f


def of_another(weights: Any) -> Callable[[Any], Any]:
    inner = summed(weights)
    return lambda x: inner(x) + 1.0


class Scaled:
    def __init__(self, weights: Any) -> None:
        self.weights = weights

    def __call__(self, x: Any) -> Any:
        return x * self.weights.sum()

    def step(self, x: Any) -> Any:
        return x * self.weights.sum()


@pytest.mark.parametrize("transform", [
    fusec.jit, fusec.vmap, fusec.grad, lambda f: fusec.jit(fusec.vmap(f)),
    lambda f: fusec.vmap(fusec.jit(f)), lambda f: fusec.vmap(fusec.grad(f))])
@pytest.mark.parametrize("make", [
    summed, by_default, of_another, Scaled, lambda w: Scaled(w).step])
def test_tokens_tell_what_functions_hold_apart(make: Any, transform: Any) -> None:
    """Dask took the text of an array, without its middle; of lanes and derivatives it was told the
    code alone."""
    tokenize = pytest.importorskip("dask.base").tokenize
    weights = np.zeros(5000)
    other = weights.copy()
    other[2500] = 1.0
    one, same, another = (
        tokenize(transform(make(w))) for w in (weights, weights.copy(), other))
    assert one == same != another


def test_tokens_tell_axes_apart() -> None:
    tokenize = pytest.importorskip("dask.base").tokenize
    f = summed(np.ones(2))
    tokens = {tokenize(fusec.vmap(f, axes, out)) for axes in (0, -1, (0,), (None,))
              for out in (0, 1, None)}
    assert len(tokens) == 12
