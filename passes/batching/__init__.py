"""A graph of one lane as one of all lanes: `fusec.vmap`.  The rules are in `fusec.ops.batching`."""

from .engine import Batched, batch

__all__ = ["Batched", "batch"]
