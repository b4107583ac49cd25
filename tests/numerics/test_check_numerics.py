"""`fusec.config.check_numerics`: the first infinity or NaN of a call, by node, line and index."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from fake_cupy import as_gpu

import fusec
from fusec.runtime.executor import Executable
from tests.numerics.planted import ONLY_FUSED, PLANTED, OnlyFused, Planted
from tests.programs.corpus import Program, programs
from tests.programs.expected_failures import EXPECTED_FAILURES

PROGRAMS = programs()

DEVICES = ["/device:CPU:0", "/device:CUDAHOST:0"]


@pytest.fixture(autouse=True)
def raising() -> Iterator[None]:
    with fusec.config.override(check_numerics="raise"):
        yield


def found(call: Any, *args: Any) -> FloatingPointError:
    with pytest.raises(FloatingPointError) as caught:
        call(*args)
    return caught.value


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("planted", PLANTED, ids=lambda p: p.name)
def test_planted(planted: Planted, device: str) -> None:
    with fusec.device(device):
        error: Any = found(fusec.jit(planted.program), *planted.arguments())
    title = error.diagnostic.title
    assert error.loc.line == planted.line, error
    where = f" at [{', '.join(map(str, planted.index))}]" if planted.index else ""
    assert title.endswith((f"made NaN{where}", f"made an infinity{where}")), error
    assert ("in the derivative of this line" in title) == planted.of_gradient, error


def test_what_joins_elements_is_named_as_numpy_names_it() -> None:
    x = np.full(3, 1e308)
    for made, program in [
            ("np.cumsum", np.cumsum), ("np.cumprod", np.cumprod),
            ("np.subtract.at", lambda x: _subtracted(x, np.array([1, 0, 1])))]:
        error: Any = found(fusec.jit(lambda x, program=program: program(x)), x)
        assert f": {made} (node" in error.diagnostic.title, error


def _subtracted(x: np.ndarray, at: np.ndarray) -> np.ndarray:
    y = np.zeros(2)
    np.subtract.at(y, at, x)
    return y


@pytest.mark.parametrize("planted", PLANTED[:3] + PLANTED[9:11], ids=lambda p: p.name)
def test_planted_where_arrays_are_a_gpus(
    planted: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    with as_gpu(monkeypatch) as cupy:
        given = [cupy.asarray(x) for x in planted.arguments()]
        error: Any = found(fusec.jit(planted.program), *given)
        assert error.loc.line == planted.line, error
        for x, before in zip(given, planted.arguments(), strict=True):
            np.testing.assert_array_equal(x.get(), before)


# ---------------------------------------------------------------------------------- what is silent


def masked(x: np.ndarray) -> Any:
    return np.where(x > 0, np.log(x), 0.0)[::-1] + np.exp(-1 / np.abs(x))


def minimum(x: np.ndarray) -> Any:
    best = np.inf
    for i in range(len(x)):
        best = min(best, x[i])
    return best


def softmax_with_a_mask(x: np.ndarray) -> Any:
    y = np.where(x > 2, x, -np.inf)
    e = np.exp(y - y.max())
    return y, e / e.sum()


def unwritten(x: np.ndarray) -> Any:
    y = np.empty(len(x))
    y[:3] = x[:3]
    return y[:3] * 2


@pytest.mark.parametrize("program", [masked, minimum, softmax_with_a_mask, unwritten])
def test_what_no_result_holds_or_the_program_gives_is_no_error(program: Any) -> None:
    x = np.arange(-3.0, 6.0)
    for got, wanted in zip(np.atleast_2d(fusec.jit(program)(x)), np.atleast_2d(program(x)),
                           strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-15)


def test_the_side_of_a_result_that_data_leaves_out_is_no_result() -> None:
    """Of a result that is one of two arrays, or an array or None, the caller gets one."""
    def either(x: np.ndarray) -> Any:
        y = 1 / x
        if x[0] > 0:
            y = x * 2
        return y

    def maybe(x: np.ndarray) -> Any:
        best = None
        if x[0] > 0:
            best = np.log(x)
        return {"best": best, "x": x * 2, "y": either(x)}

    good, bad = np.array([1.0, 2.0]), np.array([-1.0, 0.0])
    f, g = fusec.jit(either), fusec.jit(maybe)
    np.testing.assert_array_equal(f(good * [1, 0]), [2.0, 0.0])
    assert "at [1]" in found(f, bad).diagnostic.title
    assert "np.log" in found(g, good * [1, 0]).diagnostic.title
    got = g(bad - 1)
    assert got["best"] is None
    np.testing.assert_array_equal(got["y"], 1 / (bad - 1))
    assert "np.divide" in found(g, bad).diagnostic.title


def test_arguments_may_hold_infinities_and_nan() -> None:
    x = np.array([1.0, np.nan, np.inf, -np.inf])
    f = fusec.jit(lambda x: (np.sqrt(np.abs(x)) * 2, x.sum(axis=0), x[::-1]))
    with pytest.raises(FloatingPointError, match=r"x.sum|np.sum|Sum"):
        f(np.array([1.0, np.inf, -np.inf]))  # inf - inf
    f(x)
    f(x[:3])


def test_a_nan_of_infinities_that_are_given_is_the_nodes_own() -> None:
    error: Any = found(fusec.jit(lambda x, y: x - y), np.array([1.0, np.inf]),
                       np.array([1.0, np.inf]))
    assert "np.subtract" in error.diagnostic.title and "NaN at [1]" in error.diagnostic.title
    assert dict(error.diagnostic.values)["x"] == "inf"


@pytest.mark.repeats
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_no_program_of_the_corpus_is_suspected(program: Program) -> None:
    try:
        fusec.jit(program.function)(*program.inputs(program.small))
    except FloatingPointError as error:  # NumPy has to say so, too
        with np.errstate(invalid="raise", divide="raise", over="raise"), (
                pytest.raises(FloatingPointError)):
            program.function(*program.inputs(program.small))
        raise AssertionError("a program of the corpus is wrong") from error
    except fusec.UnsupportedError:
        assert program.name in EXPECTED_FAILURES


# ------------------------------------------------------------------------------- only when fused


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("planted", ONLY_FUSED, ids=lambda p: p.name)
def test_what_only_the_fused_form_makes_is_said(planted: OnlyFused, device: str) -> None:
    with fusec.device(device):
        error: Any = found(fusec.jit(planted.program), *planted.arguments())
        strict = fusec.jit(planted.program, fp="strict")
        with fusec.config.override(check_numerics="off"):
            of_strict = strict(*planted.arguments())
    part = f" of the sub-graph {planted.part!r}" if planted.part else ""
    assert f"only the fused form makes it, from the pass {planted.by!r}{part} on" in str(error)
    assert error.loc.line == planted.line, error
    # The cure says the truth: fp="strict" helps, or has the pass, too.
    assert ('fusec.jit(f, fp="strict")' in str(error)) == bool(np.isfinite(of_strict).all())


def test_the_pass_is_named_at_symbolic_sizes_and_of_graphs_as_functions() -> None:
    x, y, z = ONLY_FUSED[0].arguments()
    f = fusec.jit(ONLY_FUSED[0].program)
    with fusec.config.override(check_numerics="off"):
        graph = f.concrete(x, y, z).graph.function()
        for size in (7, 9, 11):
            f(x[:size], y[:size], z[:size])
    for call in (f, graph):
        assert "from the pass 'fma' on" in str(found(call, x, y, z))
    assert len(f.traces) == 1  # of all sizes


def test_what_only_the_kernel_makes_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    f = fusec.jit(lambda x: np.exp(x) * 2)
    run = Executable.run_unchecked

    def wrong(*args: Any) -> list[Any]:  # stands for a kernel with a defect
        results = run(*args)
        results[0][2] = np.nan
        return results

    monkeypatch.setattr(Executable, "run_unchecked", wrong)
    error: Any = found(f, np.arange(4.0))
    assert "kernel" in error.diagnostic.title and "NaN at [2]" in error.diagnostic.title
    assert dict(error.diagnostic.values)["node by node"] == repr(float(np.exp(2.0) * 2))


# ---------------------------------------------------------------------------- what a call leaves


class Model:
    def __init__(self) -> None:
        self.w = fusec.Variable(np.arange(4.0))
        self.steps = 0

    @fusec.jit
    def step(self, x: np.ndarray, rng: np.random.Generator) -> Any:
        self.steps += 1
        self.w[...] = self.w / (x + 0 * rng.random(4))
        fusec.print("a step")
        return self.w.sum()


def test_a_call_that_raises_leaves_all_as_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    model, rng, again = Model(), np.random.default_rng(3), np.random.default_rng(3)
    model.step(np.ones(4), rng)
    model.step(np.ones(4), rng)
    again.random(8)
    found(model.step, np.array([1.0, 0.0, 1.0, 1.0]), rng)
    np.testing.assert_array_equal(model.w, np.arange(4.0))
    assert model.steps == 2 and rng.random() == again.random()
    assert capsys.readouterr().out.count("a step") == 3


def test_a_warning_keeps_the_results() -> None:
    f = fusec.jit(lambda x: 1 / x)
    x = np.array([1.0, 0.0])
    with fusec.config.override(check_numerics="warn"):
        for _ in range(3):
            with pytest.warns(RuntimeWarning, match=r"np.divide .* made an infinity at \[1\]"):
                np.testing.assert_array_equal(f(x), [1.0, np.inf])


def test_off_is_what_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    f = fusec.jit(lambda x: 1 / x)
    found(f, np.array([0.0]))
    with fusec.config.override(check_numerics="off"):
        f(np.ones(1))
        f(np.ones(1))
        monkeypatch.setattr(Executable, "run", None)  # the recent plans answer
        np.testing.assert_array_equal(f(np.zeros(1)), [np.inf])
    assert not f._fast.positional


def test_graphs_as_functions() -> None:
    f = fusec.jit(lambda x: np.log(x) + 1)
    with fusec.config.override(check_numerics="off"):
        g = f.concrete(np.ones(3)).graph.function()
    assert "NaN at [1]" in str(found(g, np.array([1.0, -1.0, 1.0])))


def test_other_values_are_refused() -> None:
    with pytest.raises(ValueError, match="expected 'off', 'warn' or 'raise'"):
        fusec.config.check_numerics = "rase"
    with pytest.raises(TypeError, match="expected 'off', 'warn' or 'raise', got bool"):
        fusec.config.check_numerics = True
