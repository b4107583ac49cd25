"""Questions that a trace asked of sizes, as conditions."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from fusec.ir.sizes.size_questions import Computed, Question

from ..emitter import LlvmEmitter, LlvmValue
from ..size_text import NoTextError, SizeText

_SIGNS = {operator.lt: ("slt", "olt"), operator.le: ("sle", "ole"), operator.eq: ("eq", "oeq"),
          operator.gt: ("sgt", "ogt"), operator.ge: ("sge", "oge"), operator.ne: ("ne", "une")}


def holds(sizes: SizeText, question: Question) -> str:
    """The i1 that says whether the question has its answer.  Raises `NoTextError`."""
    asked, answer = question
    if isinstance(asked, Computed) and asked.fn in _SIGNS and type(answer) is bool:
        text = _compared(sizes, asked.fn, *asked.args)
    elif type(answer) is bool:
        text = _compared(sizes, operator.ne, asked, 0)
    elif isinstance(answer, (int, float, np.integer, np.floating)):
        return _compared(sizes, operator.eq, asked, answer)
    else:
        raise NoTextError(f"the question {question}")
    return text if answer else sizes.em.value(f"xor i1 {text}, true")


def _compared(sizes: SizeText, fn: Any, a: Any, b: Any) -> str:
    x, y = sizes.computed(a), sizes.computed(b)
    is_float = "f" in (x.dtype.kind, y.dtype.kind)
    if is_float:
        x, y = (_as_double(sizes, v) for v in (x, y))
    signed, ordered = _SIGNS[fn]
    word = f"fcmp {ordered}" if is_float else f"icmp {signed}"
    return sizes.em.value(f"{word} {x}, {y.text}")


def _as_double(sizes: SizeText, x: LlvmValue) -> LlvmValue:
    double = np.dtype(np.float64)
    if x.dtype == double:
        return x
    word = "fpext" if x.dtype.kind == "f" else "sitofp"
    return LlvmValue(sizes.em.value(f"{word} {x} to double"), double, 1)


def without_text(questions: Sequence[Question]) -> list[Question]:
    """Those that no text can ask."""
    refused = []
    for question in questions:
        try:
            holds(SizeText(LlvmEmitter(), lambda name: f"%{name}"), question)
        except NoTextError:
            refused.append(question)
    return refused
