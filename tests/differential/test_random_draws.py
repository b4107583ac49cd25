"""NumPy's random numbers in compiled functions: values and the generators' states are NumPy's."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from harness import is_of_one_device
from own_order import settled
from tolerance import EXACT

import fusec
from fusec.errors import ConcreteValueError, FusecError, UnsupportedError

X = np.linspace(0.5, 2.0, 6)
KINDS = (np.random.default_rng, np.random.RandomState)


def state(generator: Any) -> str:
    found = generator.bit_generator.state if hasattr(generator, "bit_generator") else (
        generator.get_state(legacy=False))
    with np.printoptions(threshold=10_000):
        return str(found)


def check(f: Callable[..., Any], generator: Any, *args: Any, calls: int = 3) -> Any:
    """Several calls give NumPy's results, types included, and leave the same states."""
    eager, ours = copy.deepcopy(generator), copy.deepcopy(generator)
    compiled = fusec.jit(f, fp="strict")
    for _ in range(calls):
        mine, theirs = (tuple(copy.deepcopy(args)) for _ in range(2))
        expected, found = f(eager, *theirs), compiled(ours, *mine)
        same(expected, found)
        same(theirs, mine)
        assert state(eager) == state(ours)
    assert compiled.trace_count == 1
    return compiled


def same(a: Any, b: Any) -> None:
    assert type(a) is type(b)
    if isinstance(a, (tuple, list)):
        for x, y in zip(a, b, strict=True):
            same(x, y)
    else:
        np.testing.assert_array_equal(a, b, strict=True)


# --- every method -------------------------------------------------------------------------------

METHODS: dict[str, tuple[Any, ...]] = {
    "beta": (1.5, X), "binomial": (10, 0.3, 4), "chisquare": (X,), "choice": (X, 3),
    "dirichlet": ([1.0, 2.0], 3), "exponential": (X,), "f": (2.0, 3.0, 4), "gamma": (X, 2.0),
    "geometric": (0.3, (2, 3)), "gumbel": (X, 1.0), "hypergeometric": (5, 4, 3, 6),
    "laplace": (X,), "logistic": (X, 0.5), "lognormal": (X,), "logseries": (0.4, 3),
    "multinomial": (10, [0.2, 0.8], 2), "multivariate_normal": ([0.0, 1.0], np.eye(2), 3),
    "negative_binomial": (3, 0.4, 2), "noncentral_chisquare": (2.0, X),
    "noncentral_f": (2.0, 3.0, X), "normal": (X, 0.1), "pareto": (X,), "permutation": (X,),
    "poisson": (X, (2, 6)), "power": (X,), "rayleigh": (X,), "standard_cauchy": (3,),
    "standard_exponential": ((2, 2),), "standard_gamma": (X,), "standard_normal": (5,),
    "standard_t": (X,), "triangular": (-1.0, 0.0, X), "uniform": (X, 3.0), "vonmises": (X, 1.0),
    "wald": (X, 1.0), "weibull": (X,), "zipf": (X + 1,), "random": (4,),
}
OWN: dict[Any, dict[str, tuple[Any, ...]]] = {
    np.random.default_rng: {
        "integers": (3, 9, (2, 2)), "multivariate_hypergeometric": ([3, 4], 2, 3),
        "permuted": (X,)},
    np.random.RandomState: {
        "rand": (2, 3), "randn": (3,), "randint": (2, 7, 4), "random_sample": (3,),
        "tomaxint": (2,)},
}
CASES = [(make, name, args) for make in KINDS for name, args in (METHODS | OWN[make]).items()]


@pytest.mark.parametrize(("make", "name", "args"), CASES, ids=[
    f"{make.__name__}.{name}" for make, name, _ in CASES])
def test_every_method(make: Callable[..., Any], name: str, args: tuple[Any, ...]) -> None:
    def known(rng: Any, x: Any) -> Any:
        drawn = getattr(rng, name)(*args)
        return drawn, drawn + x[0], rng.random()

    check(known, make(3), X)
    arrays = [a for a in args if isinstance(a, np.ndarray)]
    if arrays:
        def traced(rng: Any, x: Any) -> Any:
            given = [x * 1.0 if a is arrays[0] else a for a in args]
            return getattr(rng, name)(*given), rng.random()

        check(traced, make(3), arrays[0])


def test_the_scalar_results_have_numpys_kinds() -> None:
    def f(rng: Any, x: Any) -> Any:
        return rng.normal(), rng.normal(x[0]), rng.integers(10), rng.integers(x.size), rng.random(
            dtype=np.float32), rng.permutation(5), rng.choice(7)

    check(f, np.random.default_rng(1), X)


# --- where generators come from -----------------------------------------------------------------

SHARED = np.random.default_rng(11)


def walk(steps: Any) -> Any:
    return np.cumsum(steps + SHARED.standard_normal(steps.shape))


def test_a_global_generator_goes_on_and_may_be_replaced() -> None:
    global SHARED
    compiled = fusec.jit(walk)
    for seed in (1, 2):
        SHARED = np.random.default_rng(seed)
        expected = [walk(X), walk(X)]
        after = state(SHARED)
        SHARED = np.random.default_rng(seed)
        found = [compiled(X), compiled(X)]
        near = settled(compiled, EXACT)  # a device's scan has an order of its own
        for got, want in zip(found, expected, strict=True):
            near.check(got, want, None, "walk")
        assert state(SHARED) == after


def test_closures_attributes_and_the_legacy_functions() -> None:
    class Walker:
        def __init__(self, seed: int) -> None:
            self.rng, self.x = np.random.RandomState(seed), np.zeros(3)

        def step(self, scale: float) -> Any:
            self.x = self.x + scale * self.rng.randn(3)
            return self.x * np.random.uniform()

    def results(step: Callable[..., Any], walker: Walker) -> tuple[Any, ...]:
        np.random.seed(4)
        found = [step(walker, s) for s in (1.0, 0.5, 0.5)]
        return found, state(walker.rng), np.random.uniform()

    assert str(results(Walker.step, Walker(5))) == str(results(fusec.jit(Walker.step), Walker(5)))


def test_the_legacy_seed_is_in_order_too() -> None:
    def f(x: Any, k: int) -> Any:
        before = np.random.rand(2)
        np.random.seed(k)
        return before, x + np.random.normal(size=3), np.random.sample()

    np.random.seed(0)
    expected = [f(X[:3], k) for k in (1, 2, 3)]
    after = state(np.random.mtrand._rand)
    np.random.seed(0)
    compiled = fusec.jit(f)
    same([compiled(X[:3], k) for k in (1, 2, 3)], expected)
    assert state(np.random.mtrand._rand) == after


def test_a_generator_made_inside_is_made_at_each_call() -> None:
    def f(x: Any, seed: int) -> Any:
        rng = np.random.default_rng(seed)
        other = np.random.Generator(np.random.PCG64(7))
        legacy = np.random.RandomState(seed + 1)
        again = np.random.default_rng(rng)
        return x + rng.normal(size=6), other.random(3), legacy.rand(2), again.random()

    compiled = fusec.jit(f)
    for seed in (3, 3, 4, 5):
        same(compiled(X, seed), f(X, seed))


def test_one_generator_passed_twice() -> None:
    def f(a: Any, b: Any, x: Any) -> Any:
        return a.random(3) + x, b.normal(), a.random()

    rng = np.random.default_rng(0)
    other = np.random.default_rng(0)
    same(fusec.jit(f)(rng, rng, 1.0), f(other, other, 1.0))
    assert state(rng) == state(other)


def test_another_generator_of_the_kind_is_no_retrace() -> None:
    compiled = fusec.jit(lambda rng, x: x + rng.normal(size=6))
    for seed in range(3):
        same(compiled(np.random.default_rng(seed), X),
             X + np.random.default_rng(seed).normal(size=6))
    assert compiled.trace_count == 1


# --- control flow -------------------------------------------------------------------------------


def gibbs(rng: Any, n: int, rho: float) -> Any:
    """Casella & George, 'Explaining the Gibbs sampler', The American Statistician 46 (1992)."""
    x = y = 0.0
    kept = np.zeros((n, 2))
    for i in range(n):
        x = rng.normal(rho * y, np.sqrt(1 - rho * rho))
        y = rng.normal(rho * x, np.sqrt(1 - rho * rho))
        kept[i, 0] = x
        kept[i, 1] = y
    return kept


def metropolis(rng: Any, x: float, n: int) -> Any:
    accepted, total = 0, 0.0
    for _ in range(n):
        proposal = x + rng.uniform(-1.0, 1.0)
        if proposal * proposal < x * x or rng.random() < np.exp(x * x - proposal * proposal):
            x = proposal
            accepted += 1
        total += x
    return total, accepted


def until_absorbed(rng: Any, start: int) -> Any:
    position, steps = start, 0
    while 0 < position < 6:
        position += 2 * rng.integers(0, 2) - 1
        steps += 1
    return position, steps


def drawn_in_the_test(rng: Any, n: int) -> Any:
    count = total = 0
    while rng.random() < 0.9 and total < n:
        count += 1
        if rng.random() > 0.98:
            break
        total += rng.integers(0, 5)
    return count, total, rng.random()


def short_circuits(rng: Any, x: Any) -> Any:
    if (x.sum() > 0 and rng.random() > 0.5) or rng.random() > 0.9:
        return rng.normal()
    return 0.0 if rng.random() < x[0] else 1.0


def nested(rng: Any, x: Any) -> Any:
    total = 0.0
    for v in x:
        for _ in range(30):
            u = rng.random()
            if u > 0.9:
                break
            total += u * v
    return total


def counted(rng: Any, x: Any) -> Any:
    bins = np.zeros(10)
    for i in range(200):
        bins[rng.integers(10)] += rng.choice(x)
        if rng.random() > 0.99:
            return bins, i
    return bins, -1


def drawn_on_one_side(rng: Any, x: Any) -> Any:
    if x.sum() > rng.random() * 8:
        y = x + rng.normal(size=x.shape)
    else:
        y = x - rng.exponential(size=x.shape) * rng.random()
    return y, rng.random()


def rejection(rng: Any, n: int) -> Any:
    kept = np.zeros(n)
    count = 0
    for _ in range(10 * n):
        u = rng.random(2)
        if u[0] * u[0] + u[1] * u[1] > 1:
            continue
        kept[count] = u[0]
        count += 1
        if count == n:
            break
    return kept, count


@pytest.mark.parametrize(("f", "args"), [
    (gibbs, (60, 0.4)), (gibbs, (3, 0.4)), (metropolis, (0.1, 80)), (until_absorbed, (3,)),
    (short_circuits, (X,)), (nested, (X,)), (counted, (X,)),
    (drawn_in_the_test, (60,)), (drawn_in_the_test, (5,)),
    (drawn_on_one_side, (X,)), (rejection, (25,)),
])
@pytest.mark.parametrize("seed", [0, 1])
def test_draws_in_branches_and_loops(f: Callable[..., Any], args: Any, seed: int) -> None:
    compiled = check(f, np.random.default_rng(seed), *args)
    concrete = compiled.traces[0]
    for control in concrete.control if is_of_one_device(concrete) else ():
        assert control.is_native
        assert "calls Python" not in control.reason


def with_arrays(rng: Any, x: Any, n: int) -> Any:
    total = np.zeros(5)
    for i in range(n):
        z = rng.normal(x[::-1], 2.0)
        if z[0] > 0:
            total += z * rng.random()
        rng.shuffle(x)
        total = total + rng.permutation(x) * i + rng.integers(0, 9, 5)
    return total, x.copy()


def test_arrays_in_native_loops() -> None:
    check(with_arrays, np.random.default_rng(5), np.arange(5.0), 40)


def test_an_error_in_a_native_loop() -> None:
    def f(rng: Any, x: float, n: int) -> Any:
        for _ in range(n):
            x = rng.normal(0.0, x) + x - 0.3
        return x

    eager, ours = np.random.default_rng(0), np.random.default_rng(0)
    with pytest.raises(ValueError, match="scale < 0"):
        f(eager, 1.0, 1000)
    with pytest.raises(ValueError, match="scale < 0") as found:
        fusec.jit(f)(ours, 1.0, 1000)
    assert state(eager) == state(ours)
    assert "in f" in "".join(getattr(found.value, "__notes__", ()))


def test_a_shuffle_in_place_and_through_a_view() -> None:
    def f(rng: Any, x: Any, y: Any) -> Any:
        rng.shuffle(x)
        rng.shuffle(y[1:, ::2], axis=0)
        return x.sum()

    check(f, np.random.default_rng(2), np.arange(9.0), np.arange(20.0).reshape(5, 4))


def test_out_is_filled() -> None:
    def f(rng: Any, x: Any) -> Any:
        y = np.zeros((3, 4))
        rng.standard_normal(out=y)
        rng.random(out=x)
        return y * 2

    check(f, np.random.default_rng(2), np.zeros(5))


def test_sizes_that_the_run_decides() -> None:
    def f(rng: Any, x: Any) -> Any:
        chosen = x[x > rng.random() * 2]
        return chosen + rng.normal(size=len(chosen)), rng.uniform(chosen, 5.0), rng.random(
            (2, chosen.size))

    check(f, np.random.default_rng(8), np.linspace(0, 2, 50))


def test_unused_and_equal_draws_are_made() -> None:
    def f(rng: Any, x: Any) -> Any:
        rng.random(5)
        return x * rng.random() + x * rng.random()

    check(f, np.random.default_rng(8), X)


def test_an_error_leaves_the_generator_as_numpy_would() -> None:
    def f(rng: Any, x: Any, i: Any) -> Any:
        noise = rng.normal(size=x.shape)
        return (x + noise)[i] * 2.0 + rng.random()

    def scale(rng: Any, x: Any, s: float) -> Any:
        return x + rng.normal(), rng.normal(0.0, s), rng.random()

    for function, bad in ((f, np.array([0, 9])), (scale, -1.0)):
        eager, ours = np.random.default_rng(0), np.random.default_rng(0)
        with pytest.raises((IndexError, ValueError)) as expected:
            function(eager, X, bad)
        with pytest.raises(expected.type, match=str(expected.value)[:20]):
            fusec.jit(function)(ours, X, bad)
        assert state(eager) == state(ours)


def test_nothing_is_drawn_while_tracing() -> None:
    rng = np.random.default_rng(0)
    fusec.jit(lambda rng, x: x + rng.normal(size=6)).concrete(rng, X)
    assert state(rng) == state(np.random.default_rng(0))


# --- bad input ----------------------------------------------------------------------------------

BAD: dict[str, tuple[Callable[..., Any], type[Exception], str]] = {
    "a legacy name": (lambda rng, x: rng.rand(3), AttributeError, "a Generator has random"),
    "no such method": (lambda rng, x: rng.gaussian(3), AttributeError, "has no attribute"),
    "spawn": (lambda rng, x: rng.spawn(2), UnsupportedError, "spawn before the call"),
    "bytes": (lambda rng, x: rng.bytes(2), UnsupportedError, "draw integers"),
    "the state": (lambda rng, x: rng.bit_generator.state, UnsupportedError, "outside the compiled"),
    "a bad argument": (lambda rng, x: rng.normal(x, -1.0), ValueError, "scale < 0"),
    "shapes": (lambda rng, x: rng.normal(x, size=4), ValueError, "size"),
    "a size of data": (lambda rng, x: rng.normal(size=int(x[0])), ConcreteValueError,
                       "is needed while"),
    "a list": (lambda rng, x: rng.shuffle([1, 2, 3]), UnsupportedError, "make it an array"),
    "returned": (lambda rng, x: rng, TypeError, "leave it out of the result"),
    "set_state": (lambda rng, x: np.random.set_state(None), UnsupportedError, "before the call"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name: str) -> None:
    f, kind, words = BAD[name]
    with pytest.raises(kind, match=words) as found:
        fusec.jit(f)(np.random.default_rng(0), X)
    assert isinstance(found.value, FusecError)
    assert name == "returned" or "^^^" in str(found.value)
