"""What one native call of a plan needs, as JSON's data, and back.

That is sizes of memory, places, the words of argument blocks, and which kept machine code runs on
them; statements, kernels and graphs are made anew when somebody reads them (`kept_plan`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from fusec.core.records import replace

from ..backend import Backend
from ..machine_code.native_backend import NativeBackend
from ..machine_code.native_nest import NativeNest, NestBlock
from ..plan.call_plan import CallPlan, Traffic
from ..structured.kernel_statements import NestToRun
from ..structured.memory import Memory, View, is_zero

Form = dict[str, Any]
_BLOCK = ("pointers", "tasks", "points", "ns", "sequential", "in_order", "together", "status",
          "partials", "task_count", "partial_bytes")  # all of a block of known sizes but its words


class NotKeptError(Exception):
    """Why a plan is not kept for other processes; raised and caught here."""


def plan_form(call_plan: CallPlan) -> Form | None:
    """The plan as JSON's data; None where it is not one native call of kernels of known sizes, or
    its machine code is not kept."""
    try:
        return _plan_form(call_plan)
    except NotKeptError:
        return None


def _plan_form(call_plan: CallPlan) -> Form:
    is_plain = type(call_plan) is CallPlan and not (
        call_plan.externs or call_plan.arrays or call_plan.divide or call_plan.executable)
    _require(is_plain and isinstance(call_plan.backend, NativeBackend))
    _require(all(step.is_static for step in call_plan.kernels))
    memories: dict[Memory, int] = {}
    nests = [_nest_form(nest, memories) for nest in call_plan.nests_to_run()]
    temps = [_view_form(view, memories) for view in call_plan.temps]
    outputs = [_view_form(view, memories) for view in call_plan.outputs]
    return {
        "cells": call_plan.cells, "nests": nests, "temps": temps, "outputs": outputs,
        "memories": [[m.nbytes, m.dtype.str, m.origin, m.position] for m in memories],
        "traffic": [list(part) if type(part) is tuple else part for part in call_plan.traffic],
        "may_fail": call_plan.may_fail}


def _require(holds: Any) -> None:
    if not holds:
        raise NotKeptError


def _view_form(view: Any, memories: dict[Memory, int]) -> list[Any]:
    _require(isinstance(view, View) and view.is_static and not view.views
             and is_zero(view.offset) and is_zero(view.element))
    number = memories.setdefault(view.memory, len(memories))
    return [number, [int(n) for n in view.shape], [int(n) for n in view.strides], view.dtype.str]


def _nest_form(nest: NestToRun, memories: dict[Memory, int]) -> list[Any]:
    block, code = nest.block, nest.code
    _require(isinstance(code, NativeNest) and code.code.key and code.code.is_plain
             and not block.open)
    fields = [getattr(block, name) for name in _BLOCK]
    return [code.code.key, code.symbol, code.finish != 0, block.words.tolist(), fields,
            [_view_form(place, memories) for place in nest.places]]


# ------------------------------------------------------------------------------------- reading


class PlanParts:
    """The parts of a plan by the data of `plan_form`.  Raises any exception for data of another
    form, `NotKeptError` where the machine code is gone."""

    def __init__(self, form: Form, backend: Backend) -> None:
        _require(isinstance(backend, NativeBackend))
        memories = [Memory(number, nbytes, np.dtype(dtype), origin, position)
                    for number, (nbytes, dtype, origin, position) in enumerate(form["memories"])]
        self.temps = [_view(row, memories) for row in form["temps"]]
        self.outputs = [_view(row, memories) for row in form["outputs"]]
        self._nests = [_nest(row, memories, backend) for row in form["nests"]]
        self.cells, self.may_fail = int(form["cells"]), bool(form["may_fail"])
        points, operations, nbytes, work = form["traffic"]
        self.traffic = Traffic(tuple(points), operations, tuple(nbytes), tuple(work))

    def nests_to_run(self) -> Iterable[NestToRun]:
        """Its nests, with blocks that the caller may write to."""
        return (nest._replace(block=replace(nest.block, words=nest.block.words.copy()))
                for nest in self._nests)


def _view(row: Sequence[Any], memories: Sequence[Memory]) -> View:
    number, shape, strides, dtype = row
    return View(memories[number], tuple(shape), tuple(strides), np.dtype(dtype))


def _nest(row: Sequence[Any], memories: Sequence[Memory], backend: Any) -> NestToRun:
    key, symbol, has_finish, words, fields, places = row
    code = backend.nest_on_disk(key, symbol, has_finish)
    _require(code is not None)
    given = dict(zip(_BLOCK, fields, strict=True))
    given["pointers"] = tuple(map(tuple, given["pointers"]))
    block = NestBlock(words=np.array(words, np.int64), open=(), **given)
    return NestToRun(block, code, [_view(place, memories) for place in places])
