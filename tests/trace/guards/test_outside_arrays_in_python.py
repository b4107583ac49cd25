"""Arrays from outside that Python functions get: read at each call, or refused, never kept."""

from __future__ import annotations

import linecache
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.errors import FusecError

HEAD = """
import copy, functools, itertools, math, operator
import numpy as np
LIST = [np.ones(3), np.arange(3.0)]
DICT = {"a": np.ones(3), "b": np.arange(3.0)}
A = np.arange(3.0)
"""
READ = (
    "sum(DICT.values())", "sum(LIST)", "sum(v for v in DICT.values())", "sum(LIST + LIST)",
    "sum(LIST * 2)", "(LIST + LIST)[2]", "functools.reduce(np.add, LIST)",
    "functools.reduce(operator.add, DICT.values())", "sum(map(np.sum, LIST))",
    "np.stack([*DICT.values()])", "np.concatenate([*LIST])", "sum(dict(DICT).values())",
    "copy.deepcopy(LIST)[0]", "[*map(lambda v: v.sum(), LIST)][0]", "sum(itertools.chain(*LIST))",
    "np.array(list(itertools.chain(*LIST)))", "list(A)[1] * x", "tuple(A)[0] * x", "max(*A)",
    "np.sum(list(A))", "np.array([*A])", "next(iter(A)) * x", "operator.mul(LIST[0], 2)",
    "list(zip(LIST[0], LIST[1]))[1][0] * x", "dict(zip('ab', LIST))['a']", "{**DICT}['a']",
    "[*LIST][0]", "list(reversed(LIST))[0]", "list(enumerate(LIST))[0][1]",
    "operator.itemgetter(0)(LIST)", "list(itertools.accumulate(LIST))[1]", "math.sqrt(A[1]) * x",
    "sum(map(operator.mul, A, x))", "A.tolist()[1] * x", "pow(A, 2)", "divmod(A, 2)[1]",
    "(lambda v=LIST[0]: v * 1)()", "[A.sum() for _ in range(2)][1] * x",
)
TEXTS = ("str(A)", "f'{A}'", "'{}'.format(A)")
REFUSED = ("math.fsum(A) * x", "memoryview(A)[1] * x",
           "bytes(A)", "hash(A.tobytes())")
WRITES = "    LIST[0][:] = x; DICT['a'][:] = x; A[:] = x\n"


def module_of(expression: str, before: str) -> dict[str, Any]:
    source = f"{HEAD}\ndef program(x):\n{before}    return {expression}\n"
    name = f"<outside arrays {expression} {len(before)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    module: dict[str, Any] = {"__name__": "arrays"}
    exec(compile(source, name, "exec"), module)
    return module


def results(expression: str, before: str, compiled: bool) -> list[Any]:
    module = module_of(expression, before)
    program = fusec.jit(module["program"]) if compiled else module["program"]
    found = []
    for k in range(3):
        found.append(np.asarray(program(np.array([0.5, 1.0, 2.0]) * (k + 1))).tolist())
        module["LIST"][0][:2] += k + 1
        module["DICT"]["a"][0] += 1
        module["A"] += 1
    return found


@pytest.mark.parametrize("before", ["", WRITES], ids=["read", "written"])
@pytest.mark.parametrize("expression", READ)
def test_they_are_read_at_each_call(expression: str, before: str) -> None:
    assert results(expression, before, True) == results(expression, before, False)


@pytest.mark.parametrize("expression", TEXTS)
def test_text_is_of_the_call(expression: str) -> None:
    assert results(expression, "", True) == results(expression, "", False)


@pytest.mark.parametrize(("expression", "before"), [
    *((expression, "") for expression in REFUSED),
    *((expression, WRITES) for expression in (*REFUSED, *TEXTS))])
def test_or_refused(expression: str, before: str) -> None:
    module = module_of(expression, before)
    with pytest.raises((FusecError, TypeError)):
        fusec.jit(module["program"])(np.ones(3))
