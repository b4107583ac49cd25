"""The LLVM function of a loop form, by mode: elementwise, row reductions, column reductions."""

from __future__ import annotations

from ...kernels.specialise import MAP_BLOCK, LoopForm
from ..emitter import LlvmEmitter
from .columns import ColumnNest, TiledNest
from .full_reductions import FlatNest
from .nest import NestEmitter
from .rows import RowNest


class MapNest(NestEmitter):
    """Elementwise: a task is a block of the vectorised loop at one point of the others."""

    def _body(self) -> None:
        em, form = self.em, self.form
        loops = [loop for loop in range(form.outer) if loop != form.axis]
        extent = self.extent[form.axis]
        (stage,) = form.nest.stages
        blocks = em.value(f"udiv i64 {em.add(extent, MAP_BLOCK - 1)}, {MAP_BLOCK}")
        with em.loop("%begin", "%end") as task:
            low = "0"
            if loops:
                block = em.value(f"urem i64 {task}, {blocks}")
                task = em.value(f"udiv i64 {task}, {blocks}")
            else:
                block = task
            low = em.mul(block, MAP_BLOCK)
            high = em.minimum(em.add(low, MAP_BLOCK), extent)
            counters = self._decode(task, loops)
            pointers = self._moved(self.base, counters)
            self._axis_loop(stage, low, high, pointers, counters, "0", ())


_MODES: dict[str, type[NestEmitter]] = {
    "map": MapNest, "row": RowNest, "column": ColumnNest, "tiled": TiledNest,
    "flat": FlatNest,
}


def emit_nest(form: LoopForm, name: str, is_noted: bool = False) -> LlvmEmitter:
    """LLVM functions of a form, named ``name`` (and ``name.finish`` for full reductions).

    ``is_noted``: which lines are of which expression is noted in ``origins``.
    """
    nest = _MODES[form.mode](form, name)
    nest.em.origins = {} if is_noted else None
    return nest.emit()
