"""``np.from_dlpack``, which does not ask arguments for their type."""

from __future__ import annotations

from typing import Any

import numpy as np

from fusec.core.code_roles import ON_BEHALF

from ..numpy.methods import call_function
from ..objects.tracing_hooks import TracingHooks
from ..values.array import TracedArray
from ..values.handlers import everywhere

FUSEC_ROLE = ON_BEHALF


@everywhere(np.from_dlpack)
def _seen_through_dlpack(hooks: TracingHooks, x: Any, /, **options: Any) -> Any:
    """A view whose base knows its memory, as that of a capsule does not."""
    if type(x) is TracedArray:
        return call_function(hooks.trace, np.from_dlpack, (x,), options)
    view = np.from_dlpack(x, **options)
    if type(x) is not np.ndarray or not np.may_share_memory(x, view):
        return view
    shown = x[...]
    shown.flags.writeable = view.flags.writeable
    return shown
