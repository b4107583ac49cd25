"""Calls with arrays of a GPU: CuPy's, and those of others who say where theirs lie.

Such a call runs on that GPU, as in ``with fusec.device("/device:GPU:0")`` around it, on the memory
that the arrays have, and its arrays are CuPy's.  Imported at the first one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fusec.codegen import backends
from fusec.core.gpus import is_on_gpu
from fusec.errors import user_error
from fusec.placement.device_scopes import DeviceScope, name_of
from fusec.trace.call import placement_settings
from fusec.trace.call.placement_settings import Placing

DEVICE = "/job:localhost/task:0/device:GPU:0"


def lent(leaves: Sequence[Any]) -> list[Any]:
    """A call's leaves with arrays of a GPU as plans take them.

    Raises ``TypeError`` where arrays of NumPy are beside them, `NoGpuError` without CuPy.
    """
    for leaf in leaves:
        if isinstance(leaf, np.ndarray):
            raise user_error(
                TypeError, "an argument is an array of NumPy, and another is on a GPU",
                cure="pass cupy.asarray(x): nothing is copied to a GPU that was not told to be",
                values=[("array", f"{leaf.dtype}{list(leaf.shape)}")])
    gpu: Any = backends.backend("gpu").arrays  # `ResidentArrays`
    return [gpu.lent(leaf) if is_on_gpu(leaf) else leaf for leaf in leaves]


def placing_in(scope: Any) -> Placing | None:
    """How such a call is placed in this scope: on the GPU where that says nothing."""
    return placement_settings.placing_in(scope or DeviceScope((name_of(DEVICE),)), DEVICE)
