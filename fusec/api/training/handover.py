"""Examples that a thread reads ahead, while others compute."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

from .queues import ClosedQueueError, FIFOQueue

T = TypeVar("T")
_LONGEST = 5.0  # seconds that a read is waited for at the end


class Prefetched(Generic[T]):
    """See `prefetch`."""

    def __init__(self, items: Iterable[T], size: int) -> None:
        self._queue: FIFOQueue[T] = FIFOQueue(size)
        self._thread = threading.Thread(
            target=_produce, args=(items, self._queue), name="fusec prefetch", daemon=True)
        # Who lets go of it has no use for what the thread would still read.
        self._end = weakref.finalize(self, self._queue.close, cancel_pending=True)
        self._thread.start()

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        return self.take()

    def take(self, timeout: float | None = None) -> T:
        """The next item; raises ``TimeoutError`` where there is none within so many seconds, and
        ``StopIteration`` after the last one."""
        try:
            return self._queue.dequeue(timeout)
        except ClosedQueueError:
            raise StopIteration from None

    def wait(self, timeout: float) -> bool:
        """Whether `take` gives or raises something at once, after so many seconds at most."""
        return self._queue.wait(timeout)

    def close(self) -> None:
        """End the thread, after what it reads now (waits for that, 5 s at most); items that were
        read ahead are lost."""
        self._end()
        if self._thread is not threading.current_thread():
            self._thread.join(_LONGEST)

    def __enter__(self) -> Prefetched[T]:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()


def prefetch(items: Iterable[T], size: int = 2) -> Prefetched[T]:
    """An iterator over ``items``, of which a thread reads up to ``size`` ahead.

    The thread waits where that many are read and not taken, so memory does not grow; reading, which
    mostly waits or is in compiled code, overlaps what the consumer computes.  An error of reading
    is raised here, after the items before it.  ``close()``, or a ``with`` block, ends the thread.

    Raises ``ValueError`` for a size below 1.
    """
    return Prefetched(items, size)


def _produce(items: Iterable[T], queue: FIFOQueue[T]) -> None:
    """It knows the queue alone: nobody has to hold the iterator for the thread to end."""
    try:
        for item in items:
            queue.enqueue(item)
            del item  # the consumer's alone
        queue.close()
    except ClosedQueueError as error:
        if not queue.is_closed:  # another queue, which ``items`` reads
            queue.fail(error)
    except BaseException as error:
        queue.fail(error)
    finally:
        close = getattr(items, "close", None)
        if close is not None and isinstance(items, Iterator):
            close()
