"""Whether a graph has to be placed: most need not, and load nothing of what places them."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from . import config
from .ir import Graph

_REGISTRY = "fusec.runtime.devices.registry"


def placer_for(graph: Graph) -> Any:
    """The module that places graphs; None where one device, the only one that is chosen without
    being named, does everything."""
    if config.logical_cpu_devices == 1 and not _constrained(graph):
        registry = sys.modules.get(_REGISTRY)  # not loaded: nobody has registered another type
        if registry is None or sum(d.is_automatic for d in registry.devices()) < 2:
            return None
    return importlib.import_module("fusec.placed")


def _constrained(graph: Graph) -> bool:
    """Whether the program says of any node where it is to run."""
    return any(n.device or any(map(_constrained, n.graphs)) for n in graph.nodes)
