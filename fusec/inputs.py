"""How examples come to a computation: read ahead by a thread, or through queues.

    for images, labels in fusec.inputs.prefetch(batches(), size=4):
        model.step(images, labels)

Shuffling, batches, shards and files are the business of libraries such as Grain; whatever they give
can be iterated over here.
"""

from .api.training.handover import Prefetched, prefetch
from .api.training.queues import ClosedQueueError, FIFOQueue, ShufflingQueue

__all__ = ["ClosedQueueError", "FIFOQueue", "Prefetched", "ShufflingQueue", "prefetch"]
