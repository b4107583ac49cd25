"""State in libraries for C: Variables and attributes in a struct; results of sizes that data
decide."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fusec

from .c_program import needs_compiler
from .calling import CFunction
from .test_c_library import SPEC, V3, told
from .test_c_library import pytestmark as needs_v3

pytestmark = needs_v3
rng = np.random.default_rng(41)


class Filter:
    def __init__(self) -> None:
        self.memory = np.zeros(3)
        self.mean = np.zeros(())
        self.calls = 0

    def step(self, x: Any) -> Any:
        self.memory = 0.5 * self.memory + x[:3]
        self.mean[...] = self.memory.mean()
        self.calls += 1
        return x + self.mean * self.calls


def library(folder: Path) -> tuple[Any, Any, Any, Any, Any]:
    weight, own = fusec.Variable(np.arange(4.0), name="weight"), Filter()

    def learn(x: Any, rate: Any) -> Any:
        weight.assign_sub(rate * (weight - x))
        return (weight * weight).sum()

    def predict(x: Any) -> Any:
        return x * weight

    made = fusec.export_c({
        "learn": (learn, (SPEC((4,)), 0.1)), "predict": (predict, (SPEC((4,)),)),
        "filtered": (own.step, (SPEC((None,)),))}, folder / "trained", V3)
    return made, fusec.jit(learn), fusec.jit(predict), fusec.jit(own.step), own


def test_functions_share_a_state(tmp_path: Path) -> None:
    made, learn, predict, step, _ = library(tmp_path)
    assert {f.name for f in made.fields} == {
        "weight", "Filter_memory", "Filter_mean", "Filter_calls"}
    handle = ctypes.CDLL(str(made.shared))
    first = CFunction(handle, made.functions[0])
    called = {f.name: CFunction(handle, f, first.state) for f in made.functions}
    first.reset("trained")
    for n in (5, 9, 9):
        x, y = rng.random(4), rng.random(n)
        assert called["learn"]([x, 0.25])[1][0][0] == learn(x, 0.25)
        assert np.array_equal(called["predict"]([x])[1][0], predict(x))
        assert np.array_equal(called["filtered"]([y])[1][0], step(y))
    before = called["predict"]([np.ones(4)])[1][0].copy()
    first.reset("trained")
    assert np.array_equal(called["predict"]([np.ones(4)])[1][0], np.arange(4.0))
    assert not np.array_equal(before, np.arange(4.0))


C_PROGRAM = """
#include <stdio.h>
#include "trained.h"
int main(void) {
    double x[4] = {1, 2, 3, 4}, out[4], loss;
    size_t bytes;
    char memory[4096];
    if (learn_sizes(NULL, &bytes) || bytes > sizeof memory) return 1;
    trained_state *state = trained_new(), copy = *state;
    for (int i = 0; i < 3; i++)
        if (learn(x, 0.25, &loss, state, memory, sizeof memory)) return 2;
    for (int i = 0; i < 4; i++) printf("%a %a ", state->weight[i], copy.weight[i]);
    if (predict(x, out, &copy, memory, sizeof memory)) return 3;
    printf("%d %d %d", (int)out[3], learn(x, 0.25, &loss, NULL, memory, sizeof memory),
           learn(x, 0.25, &loss, (trained_state *)memory, memory, sizeof memory));
    trained_free(state);
    return 0;
}
"""


@needs_compiler
def test_the_struct_is_cs(tmp_path: Path) -> None:
    made, *_ = library(tmp_path)
    (tmp_path / "main.c").write_text(C_PROGRAM)
    subprocess.run(["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{made.folder}",
                    tmp_path / "main.c", made.static, "-lm", "-o", tmp_path / "main"], check=True)
    shown = subprocess.run([tmp_path / "main"], check=True, capture_output=True, text=True)
    *numbers, out, null, overlapping = shown.stdout.split()
    want, x = np.arange(4.0), np.array([1.0, 2.0, 3.0, 4.0])
    for _ in range(3):
        want -= 0.25 * (want - x)
    assert [float.fromhex(n) for n in numbers[::2]] == [*want]
    assert [float.fromhex(n) for n in numbers[1::2]] == [0.0, 1.0, 2.0, 3.0]
    assert (out, null) == ("12", "-4")
    assert int(overlapping) in (-3, -4)


def test_what_no_struct_can_hold_is_refused(tmp_path: Path) -> None:
    class Grows:
        def __init__(self) -> None:
            self.last, self.total = None, 0.0

        def step(self, x: Any) -> Any:
            self.last = x * 2
            self.total = self.total + x.sum()
            return x

    with pytest.raises(fusec.UnsupportedError) as caught:
        fusec.export_c({"f": (Grows().step, (SPEC((None,)),))}, tmp_path / "grows", V3)
    assert "Grows.last" in str(caught.value) and "Grows.total" in str(caught.value)


# -- sizes that data decide

def until(x: Any, limit: Any) -> Any:
    n, total = 0, 0.0
    y = np.zeros((len(x), 2))
    while n < len(x) and total < limit:
        total += x[n]
        y[n, 0], y[n, 1] = total, x[n]
        n += 1
    return y[:n], y[n - 1::-1, 0], y[1:n:2]


@pytest.mark.parametrize("n", [1, 2, 7, 50, 300])
@pytest.mark.parametrize("limit", [-1.0, 1.1, 1e9])
def test_the_size_is_a_result(sized: Any, n: int, limit: float) -> None:
    x = rng.random(n)
    code, results, _ = sized([x, limit])
    assert code == 0
    for result, want in zip(results, fusec.jit(until)(x, limit), strict=True):
        assert np.array_equal(result, want)


@pytest.fixture(scope="module")
def sized(tmp_path_factory: Any) -> CFunction:
    made = fusec.export_c({"until": (until, (SPEC((None,)), 1.0))},
                          tmp_path_factory.mktemp("c") / "sized", V3)
    text = made.header.read_text()
    assert "int until_shapes(" in text and "int64_t *out0_0" in text
    return CFunction(ctypes.CDLL(str(made.shared)), made.functions[0])


def test_codes_of_the_state_are_told(tmp_path: Path) -> None:
    made, *_ = library(tmp_path)
    function = CFunction(ctypes.CDLL(str(made.shared)), made.functions[0])
    assert b"state" in told(function, -4).text
