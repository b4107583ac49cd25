"""Minima and maxima of integers in lanes: no jumps where they are the next step of a recurrence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusec
from fusec.bench.cases.lane_cases import _levenshtein
from fusec.codegen.cpu.loops import program
from fusec.codegen.machine_code.llvm import compile_ir, target_machine
from fusec.codegen.machine_code.unpredictable import MARK

distance = _levenshtein(0.0)


def extrema(x: Any, least: Any, most: Any) -> Any:
    low, high = x[0], x[0]
    for k in range(len(x)):
        low, high = min(low, x[k]), max(high, x[k])
        least[k], most[k] = min(x[k], x[k - 1]), max(x[k] ^ x[k - 1], low)
    return low, high


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64])
def test_of_each_type(dtype: Any) -> None:
    info = np.iinfo(dtype)
    x = np.random.default_rng(1).integers(info.min, info.max, (9, 6), dtype, endpoint=True)
    x[0, :2] = info.min, info.max
    want, got = ([np.empty_like(x) for _ in range(2)] for _ in range(2))
    ends = [extrema(*lane) for lane in zip(x, *want, strict=True)]
    low, high = fusec.vmap(extrema)(x, *got)
    np.testing.assert_array_equal(np.stack([low, high], 1), ends)
    np.testing.assert_array_equal(got, want)


def test_a_recurrence_has_no_jumps(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = []

    def compiled(text: str, speed: int, links: Any) -> Any:
        code = compile_ir(text, speed, links)
        if MARK in text:
            codes.append(code)
        return code

    monkeypatch.setattr(program, "compile_ir", compiled)
    program.clear_cache()
    pairs = np.random.default_rng(2).integers(0, 4, (2, 20, 32))
    got = fusec.vmap(distance)(*pairs)
    np.testing.assert_array_equal(got, [distance(a, b) for a, b in zip(*pairs, strict=True)])
    (code,) = codes
    marks = code.llvm_ir.count("!unpredictable")
    assert marks >= 2
    if str(target_machine().triple).startswith("x86_64"):
        moves = code.assembly.count("\tcmovl") + code.assembly.count("\tcmovg")
        assert moves >= marks
