"""The argument block of a nest with symbols, made once; a plan fills in its sizes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fusec.core.records import dataclass, replace
from fusec.ir.sizes.instantiate import Instantiation

from ..kernels.loop_ir import Param
from ..kernels.specialise import LoopForm, count_tasks
from ..machine_code.native_nest import NONE, NestBlock


@dataclass(frozen=True, eq=False)
class OpenBlock:
    """``block`` of a form with symbols, whose words are 0 where sizes decide them.

    ``slots`` take ``sizes``; ``params``: the slots of constants that follow from sizes.
    """

    form: LoopForm
    block: NestBlock
    slots: list[int]
    sizes: tuple[Any, ...]
    params: tuple[tuple[int, Param], ...]
    bits: Callable[[np.dtype, Any], int]

    def at_sizes(self, to: Instantiation) -> NestBlock:
        """The block of these sizes, with words of its own."""
        block, form, data = self.block, self.form, to.data
        words = block.words.copy()
        if self.slots:
            words[self.slots] = data(self.sizes)
        for slot, param in self.params:
            words[slot] = self.bits(param.dtype, data(param.value))
        extents = data(form.extents)
        if block.task_count != NONE:
            words[block.task_count] = count_tasks("flat", extents, 0, 0)
        return NestBlock(
            words, tuple((slot, buffer, data(offset)) for slot, buffer, offset in block.pointers),
            (), count_tasks(form.mode, extents, form.outer, form.axis), math.prod(extents),
            block.ns, block.sequential, block.in_order, block.together, block.status,
            block.partials, block.task_count, block.partial_bytes)


def form_at(to: Instantiation, form: LoopForm) -> LoopForm:
    """The form; its nest, of which only the structure is read from here on, stays open."""
    return replace(form, extents=to.data(form.extents), params=to.data(form.params),
                   operands=tuple(replace(
                       o, offset=to.data(o.offset), strides=to.data(o.strides),
                       gathered=to.data(o.gathered)) for o in form.operands))


def params_at(to: Instantiation, params: tuple[Param, ...]) -> tuple[Param, ...]:
    return tuple(Param(p.dtype, to.data(p.value)) for p in params)


__all__ = ["OpenBlock", "form_at", "params_at"]
