"""`grad`, `value_and_grad`, `vjp`, `jvp`: their arguments, results and refusals."""

from __future__ import annotations

import dataclasses
import pickle
import re
from functools import partial
from typing import Any

import numpy as np
import pytest

import fusec

X, Y = np.arange(3.0) + 1, np.array([2.0, -1.0, 0.5])


def f(x: Any, y: Any) -> Any:
    return ((x * y - x) * x).sum()


def test_gradients_by_one_argument_and_by_several() -> None:
    np.testing.assert_array_equal(fusec.grad(f)(X, Y), 2 * X * (Y - 1))
    by_x, by_y = fusec.grad(f, (0, -1))(X, Y)
    np.testing.assert_array_equal(by_x, 2 * X * (Y - 1))
    np.testing.assert_array_equal(by_y, X * X)
    np.testing.assert_array_equal(fusec.grad(f, np.int64(1))(X, Y), X * X)
    value, (by_y,) = fusec.value_and_grad(f, (1,))(X, Y)
    assert value == f(X, Y)
    np.testing.assert_array_equal(by_y, X * X)


def test_a_gradient_is_of_the_kind_of_its_argument() -> None:
    cube = fusec.grad(lambda x: x * x * x)
    assert (cube(2.0), type(cube(2.0))) == (12.0, float)
    assert type(cube(np.float32(2))) is np.float32
    assert cube(np.array(2.0)).shape == () and type(cube(np.array(2.0))) is np.ndarray
    assert fusec.grad(f)(X.astype(np.float32), Y.astype(np.float32)).dtype == np.float32


def test_trees_and_auxiliary_results() -> None:
    def loss(parameters: Any, x: Any) -> Any:
        y = parameters["w"] * x + parameters["b"][0]
        return (y * y).sum(), {"y": y}

    parameters = {"w": Y, "b": (0.5,)}
    (value, others), gradient = fusec.value_and_grad(loss, has_aux=True)(parameters, X)
    y = Y * X + 0.5
    assert value == pytest.approx((y * y).sum())
    np.testing.assert_allclose(others["y"], y)
    np.testing.assert_allclose(gradient["w"], 2 * y * X)
    assert gradient["b"] == (pytest.approx(2 * y.sum()),)
    gradient, others = fusec.grad(loss, has_aux=True)(parameters, X)
    np.testing.assert_allclose(gradient["w"], 2 * y * X)


def test_what_is_none_in_a_tree_has_none_for_a_gradient() -> None:
    def layer(parameters: Any, x: Any) -> Any:
        y = parameters["w"] * x
        return (y * y).sum() if parameters["b"] is None else (y + parameters["b"]).sum()

    parameters = {"w": Y, "b": None}
    gradient = fusec.grad(layer)(parameters, X)
    assert gradient["b"] is None
    np.testing.assert_allclose(gradient["w"], 2 * Y * X * X)
    np.testing.assert_allclose(fusec.jacobian(layer)(parameters, X)["w"], 2 * Y * X * X)
    _, tangent = fusec.jvp(lambda p: layer(p, X), (parameters,), ({"w": Y, "b": None},))
    assert tangent == pytest.approx(2 * (Y * X) @ (Y * X))
    with pytest.raises(TypeError, match="no float"):
        fusec.grad(layer)(None, X)


def test_gradients_of_gradients_in_and_around_compiled_functions() -> None:
    cube = fusec.jit(lambda x: x * x * x)
    assert fusec.grad(fusec.grad(cube))(2.0) == 12.0
    assert fusec.jit(fusec.grad(cube))(2.0) == 12.0

    @fusec.jit
    def outer(x: Any) -> Any:
        inner = fusec.grad(lambda y: (y * x * x).sum())
        return inner(x) + fusec.value_and_grad(lambda y: (y * y).sum())(x)[1]

    np.testing.assert_array_equal(outer(X), X * X + 2 * X)
    np.testing.assert_allclose(fusec.grad(lambda x: outer(x).sum())(X), 2 * X + 2)


class Model:
    def __init__(self) -> None:
        self.weights, self.shift = np.arange(1.0, 4.0), 0.5

    @fusec.jit
    def loss(self, x: Any) -> Any:
        return ((self.weights * x + self.shift) ** 2).sum()

    @fusec.jit(static=("power",))
    def powers(self, x: Any, power: int) -> Any:
        return (self.weights * x ** power).sum()

    @fusec.jit
    def gradient(self, x: Any) -> Any:
        return fusec.grad(self.loss)(x)


def test_jitted_methods() -> None:
    """Of an instance, whose attributes may change, and of the class."""
    model, x = Model(), np.array([0.3, 0.7, 1.1])
    gradient = fusec.grad(model.loss)
    for shift in (0.5, 2.0):
        model.shift = shift
        want = 2 * model.weights * (model.weights * x + shift)
        for got in (gradient(x), fusec.grad(Model.loss, 1)(model, x), model.gradient(x)):
            np.testing.assert_allclose(got, want)
    np.testing.assert_allclose(fusec.grad(model.powers)(x, 3), 3 * model.weights * x**2)
    np.testing.assert_allclose(fusec.hessian(Model().loss)(x), np.diag(2 * model.weights**2))


def test_one_array_as_two_arguments_is_two_variables() -> None:
    np.testing.assert_array_equal(fusec.grad(lambda a, b: (a * b).sum())(X, X), X)

    @fusec.jit
    def outer(x: Any) -> Any:
        return fusec.grad(lambda y: (y * x).sum())(x)

    np.testing.assert_array_equal(outer(X), X)


def test_arguments_are_written_as_in_a_plain_call() -> None:
    def written(x: Any, y: Any) -> Any:
        x[0] = 5 * x[1]
        y *= 2
        return (x * y).sum()

    x, y = X.copy(), Y.copy()
    gradient = fusec.grad(written)(x, y)
    np.testing.assert_array_equal(x, [10, 2, 3])
    np.testing.assert_array_equal(y, 2 * Y)
    np.testing.assert_array_equal(gradient, [0, 2 * (5 * Y[0] + Y[1]), 2 * Y[2]])


def test_writing_by_another_name_is_refused() -> None:
    def written(x: Any, y: Any) -> Any:
        y[0] = 1.0
        return (x * y).sum()

    with pytest.raises(fusec.UnsupportedError, match="by another name"):
        fusec.grad(written)(*[X.copy()] * 2)
    with pytest.raises(fusec.UnsupportedError, match="shares memory"):
        fusec.grad(written, (0, 1))(*[X.copy()] * 2)


def test_variables() -> None:
    w, b = fusec.Variable(Y, name="w"), fusec.Variable(0.5, name="b")

    def loss(x: Any) -> Any:
        y = w * x + b
        return (y * y).sum()

    y = Y * X + 0.5
    np.testing.assert_allclose(fusec.grad(loss, wrt=w)(X), 2 * y * X)
    step = fusec.value_and_grad(loss, wrt={"w": w, "b": b})
    for _ in range(2):
        value, gradients = step(X)
        assert value == pytest.approx((y * y).sum())
        np.testing.assert_allclose(gradients["b"], 2 * y.sum())
        w.assign_sub(0.1 * gradients["w"])
        y = w.numpy() * X + 0.5
    assert step.trace_count == 1 and fusec.value_and_grad(loss, wrt={"w": w, "b": b}) is step

    def assigned(x: Any) -> Any:
        before = w.read_value()
        w.assign(w * x)
        return (w * before).sum()

    start = w.numpy()
    np.testing.assert_allclose(fusec.grad(assigned, wrt=w)(X), 2 * start * X)
    np.testing.assert_allclose(w.numpy(), start * X)


def test_variables_in_compiled_functions() -> None:
    """Whichever way `grad` is called there, it is by the Variable, and not by its value."""
    w = fusec.Variable(Y, name="w")

    def loss(x: Any) -> Any:
        return (w * x**2).sum()

    made_outside = fusec.grad(loss, wrt=w)

    @fusec.jit
    def inside(x: Any) -> Any:
        return (fusec.grad(loss, wrt=w)(x), fusec.value_and_grad(loss, 0, False, w)(x)[1],
                fusec.grad(loss, wrt=[w])(x)[0], partial(fusec.grad, wrt=w)(loss)(x),
                made_outside(x))

    @fusec.jit
    def descend(x: Any) -> Any:
        w.assign_sub(0.1 * fusec.grad(loss, wrt=w)(x))

    for gradient in inside(X):
        np.testing.assert_allclose(gradient, X**2)
    descend(X)
    np.testing.assert_allclose(w.numpy(), Y - 0.1 * X**2)
    for wrong in (X, [w, 2.0]):
        with pytest.raises(TypeError, match="wrt is no Variable"):
            fusec.grad(loss, wrt=wrong)(X)


class Layer:
    def __init__(self, w: Any) -> None:
        self.w, self.rates = w, {"b": np.array(0.5), "c": 3.0}

    def loss(self, x: Any) -> Any:
        y = self.w * x + self.rates["b"]
        self.w *= 0.5
        return (y * y).sum()


def test_arrays_that_objects_hold_by_their_paths() -> None:
    layers = [Layer(Y.copy()), Layer(X.copy())]

    def loss(models: Any, x: Any) -> Any:
        return models[0].loss(x) + models[1].loss(x)

    gradient = fusec.grad(loss, wrt={"w": "models[1].w", "b": "models[0].rates['b']"})
    assert fusec.grad(loss, wrt={"w": "models[1].w", "b": "models[0].rates['b']"}) is gradient
    for k in range(2):
        found = gradient(layers, X)
        np.testing.assert_allclose(found["w"], 2 * (X * X / 2 ** k + 0.5) * X)
        np.testing.assert_allclose(found["b"], 2 * (Y * X / 2 ** k + 0.5).sum())
        np.testing.assert_array_equal(layers[0].w, Y / 2 ** (k + 1))  # as in a plain call
    assert gradient.trace_count == 1
    layer = Layer(Y.copy())
    np.testing.assert_allclose(
        fusec.grad(layer.loss, wrt="self.w")(X), 2 * (Y * X + 0.5) * X)


@pytest.mark.parametrize(("path", "error", "text"), [
    ("layer.rates[c]", TypeError, "is a number.*\n.*make it an array"),
    ("model.w", ValueError, "begins with no parameter.*\n.*layer, x"),
    ("layer..w", ValueError, "no path"), ("layer.v", AttributeError, "'v'"),
    ("layer.rates", TypeError, "no float")])
def test_what_is_no_path_of_an_array(path: str, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        fusec.grad(lambda layer, x: layer.loss(x), wrt=path)(Layer(Y.copy()), X)


def test_vjp_and_jvp() -> None:
    def g(x: Any, y: Any) -> Any:
        return {"a": x * y, "b": x[1:] * 3.0}

    ct = {"a": np.array([1.0, 2.0, 3.0]), "b": np.array([1.0, -1.0])}
    x = X.copy()
    result, pull = fusec.vjp(g, x, Y)
    np.testing.assert_array_equal(result["a"], X * Y)
    x[:] = 0
    by_x, by_y = pull(ct)
    np.testing.assert_array_equal(by_x, ct["a"] * Y + [0, 3, -3])
    np.testing.assert_array_equal(by_y, ct["a"] * X)
    result, tangent = fusec.jvp(g, (X, Y), (ct["a"], np.zeros(3)))
    np.testing.assert_array_equal(tangent["a"], ct["a"] * Y)
    np.testing.assert_array_equal(tangent["b"], 3 * ct["a"][1:])

    @fusec.jit
    def inside(x: Any, y: Any) -> Any:
        result, pull = fusec.vjp(g, x, y)
        return pull(result), fusec.jvp(g, (x, y), (x, y))[1]

    (by_x, _), tangent = inside(X, Y)
    np.testing.assert_allclose(by_x, X * Y * Y + [0, 9 * X[1], 9 * X[2]])
    np.testing.assert_allclose(tangent["a"], 2 * X * Y)


def test_a_pull_of_another_state_is_refused() -> None:
    """Outside of a compiled function it computes forwards anew: the derivative of another result.
    """
    w, table, rng = fusec.Variable(Y), Y.copy(), np.random.default_rng(0)

    def counted(x: Any) -> Any:
        w.assign_add(np.ones(3))
        return x * w

    _, by_variable = fusec.vjp(lambda x: x * w, X)
    _, by_array = fusec.vjp(lambda x: x * table, X)
    _, of_itself = fusec.vjp(lambda v: v**2, w)
    for pull in (by_variable, by_array):
        np.testing.assert_array_equal(pull(np.ones(3))[0], Y)
    np.testing.assert_array_equal(of_itself(np.ones(3))[0], 2 * Y)
    w.assign(2 * Y)
    table[0] = 7.0
    _, assigning = fusec.vjp(counted, X)
    for pull in (by_variable, by_array, of_itself, assigning):
        with pytest.raises(RuntimeError, match="has changed since"):
            pull(np.ones(3))
    with pytest.raises(fusec.UnsupportedError, match="drawing random numbers"):
        fusec.vjp(lambda x: x * rng.normal(size=3), X)

    @fusec.jit
    def inside(x: Any) -> Any:
        result, pull = fusec.vjp(lambda a: a * rng.normal(size=3), x)
        return result - pull(np.ones(3))[0] * x

    np.testing.assert_allclose(inside(X), 0.0, atol=1e-15)


def test_a_branch_that_was_not_taken_does_not_matter() -> None:
    x = np.array([0.0, 1.0, 4.0])
    gradient = fusec.grad(lambda x: np.where(x > 0, 1 / x, 3 * x).sum())(x)
    np.testing.assert_array_equal(gradient, [3, -1, -1 / 16])
    second = fusec.grad(lambda x: fusec.grad(
        lambda x: np.where(x > 0, 1 / x, 3 * x).sum())(x).sum())(x)
    np.testing.assert_array_equal(second, [0, 2, 2 / 64])


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda: fusec.grad(f)(np.arange(3), Y), TypeError, "no float"),
    (lambda: fusec.grad(f, 2)(X, Y), TypeError, "argument 2 of a call with 2"),
    (lambda: fusec.grad(f, "x"), TypeError, "no position"),
    (lambda: fusec.grad(f, (0, "x")), TypeError, "no position"),
    (lambda: fusec.grad(f, (0, -2))(X, Y), TypeError, "one argument twice"),
    (lambda: fusec.grad(lambda x: None)(X), TypeError, "result: None"),
    (lambda: fusec.grad(lambda x: int(x[0]))(X), TypeError, "result: a Python int"),
    (lambda: fusec.jvp(np.sin, X, Y), TypeError, "primals must be a tuple"),
    (lambda: fusec.hvp(np.sum, (X,), Y), TypeError, "tangents must be a tuple"),
    (lambda: fusec.check_grads(np.sin, X), TypeError, "args must be a tuple"),
    (lambda: fusec.grad(lambda x: x * 2)(X), TypeError, "not one float"),
    (lambda: fusec.grad(lambda x: (x > 1).sum())(X), TypeError, "not one float"),
    (lambda: fusec.grad(lambda x: (x, x))(X), TypeError, "not one float"),
    (lambda: fusec.grad(f, has_aux=True)(X, Y), TypeError, "returns no pair"),
    (lambda: fusec.grad(3), TypeError, "needs a function"),
    (lambda: fusec.jvp(f, (X, Y), (X, Y[:2])), ValueError, "another shape"),
    (lambda: fusec.jvp(f, (X, Y), (X,)), ValueError, r"(?s)another structure.*values: *\(\*, \*\)"),
    (lambda: fusec.vjp(f, X, Y)[1](X), ValueError, "another shape"),
])
def test_misuse_says_what_is_wrong(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_what_has_no_derivative_is_refused_with_the_line() -> None:
    with pytest.raises(fusec.UnsupportedError, match=r"(?s)derivative of.*test_api"):
        fusec.grad(lambda x: x.view(np.int64).view(float).sum())(X)


def test_a_cached_call_takes_the_short_way() -> None:
    def f(x: Any) -> Any:
        return (x * x).sum()

    gradient = fusec.grad(f)
    gradient(X)
    assert len(gradient._fast.positional) == 1
    assert fusec.grad(f) is gradient


def at_the_top(x: Any) -> Any:
    return (x * x * x).sum()


def test_derivatives_are_pickled_as_what_they_are_of() -> None:
    for function in (fusec.grad(at_the_top), fusec.hessian(fusec.jit(at_the_top))):
        again = pickle.loads(pickle.dumps(function))
        np.testing.assert_array_equal(again(X), function(X))
    assert pickle.loads(pickle.dumps(fusec.grad(at_the_top))) is fusec.grad(at_the_top)


def test_a_function_that_has_a_gradient_goes_by_value() -> None:
    cloudpickle = pytest.importorskip("cloudpickle")
    square = lambda x: (x * x).sum()  # noqa: E731
    gradient = fusec.grad(square)(X)
    again = cloudpickle.loads(cloudpickle.dumps(square))
    assert again(X) == square(X)
    np.testing.assert_array_equal(fusec.grad(again)(X), gradient)
    np.testing.assert_array_equal(
        cloudpickle.loads(cloudpickle.dumps(fusec.grad(square)))(X), gradient)


def test_tokens_tell_derivatives_apart() -> None:
    tokens = [repr(f.__dask_tokenize__()) for f in (
        fusec.grad(at_the_top), fusec.grad(f), fusec.grad(f, 1), fusec.jacobian(f))]
    assert len(set(tokens)) == 4


def test_tangents_that_are_the_primals_are_read_before_these_are_written() -> None:
    def f(x: Any) -> Any:
        x *= 2
        return (x ** 2).sum()

    for tangent, expected in ((lambda x: x, 40.0), (lambda x: x[::-1], 32.0)):
        x = np.array([1.0, 2.0])
        assert fusec.jvp(f, (x,), (tangent(x),)) == (20.0, expected)
        np.testing.assert_array_equal(x, [2.0, 4.0])
    x = np.array([1.0, 2.0])
    np.testing.assert_array_equal(fusec.hvp(f, (x,), (x,))[0], [8.0, 16.0])
    compiled = fusec.jit(lambda x: fusec.jvp(f, (x,), (x,)))
    assert compiled(np.array([1.0, 2.0])) == (20.0, 40.0)


def test_derivatives_have_no_version_to_be_benchmarked_against() -> None:
    with pytest.raises(TypeError, match="measure the function itself"):
        fusec.benchmark(fusec.grad(lambda x: (x ** 3).sum()), np.ones(10))


class Holder:
    def __init__(self) -> None:
        self.w = np.ones(2)


@dataclasses.dataclass
class Parameters:
    a: np.ndarray


@pytest.mark.parametrize(("call", "cure"), [
    (lambda: fusec.jvp(lambda x: x * 2, (2,), (1,)), r"x.astype\(float\)\)$"),
    (lambda: fusec.check_grads(lambda x, n: x.sum(), (X, 3)), "inside of a function"),
    (lambda: fusec.grad(lambda p: (p.a ** 2).sum())(Parameters(X)), 'wrt="params.weights"'),
    (lambda: fusec.grad(lambda m: m.w.sum(), wrt="m")(Holder()), 'wrt="m.weights"'),
    (lambda: fusec.grad(lambda x: None)(X), "return the number"),
    (lambda: fusec.grad(lambda x: (x.sum(), x))(X), "has_aux=True"),
    (lambda: fusec.jacobian(lambda x: x > 0)(X), "return floats"),
])
def test_errors_say_what_to_do(call: Any, cure: str) -> None:
    with pytest.raises(TypeError) as caught:
        call()
    (line,) = (x for x in str(caught.value).splitlines() if x.strip().startswith("cure:"))
    assert re.search(cure, line)


def test_an_operand_of_a_size_that_data_decide() -> None:
    with pytest.raises(fusec.UnsupportedError, match="a size that only the run knows"):
        fusec.grad(lambda x: x[x > 0.2] @ np.ones(2))(np.array([0.1, 0.5, 0.9]))
