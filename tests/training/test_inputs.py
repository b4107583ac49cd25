"""`fusec.inputs`: reading ahead, and queues between threads."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from fusec import inputs


def wait_until(condition: Any) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_prefetch_reads_so_many_ahead() -> None:
    read: list[int] = []

    def numbers() -> Iterator[int]:
        for k in range(100):
            read.append(k)
            yield k

    with inputs.prefetch(numbers(), size=3) as ahead:
        wait_until(lambda: len(read) == 4)
        time.sleep(0.05)
        assert len(read) == 4, "three wait, one is about to"
        assert next(ahead) == 0
        wait_until(lambda: len(read) == 5)
        assert [*ahead] == [*range(1, 100)]
    assert [*ahead] == []


def test_an_error_comes_after_the_items_before_it() -> None:
    def numbers() -> Iterator[int]:
        yield 1
        raise KeyError("gone")

    ahead = inputs.prefetch(numbers())
    assert next(ahead) == 1
    for _ in range(2):
        with pytest.raises(KeyError, match="gone"):
            next(ahead)


@pytest.mark.parametrize("how", ["close", "let go"])
def test_who_stops_early_ends_the_thread(how: str) -> None:
    """And the generator, whose ``finally`` runs."""
    ended = threading.Event()

    def numbers() -> Iterator[np.ndarray]:
        try:
            while True:
                yield np.zeros(3)
        finally:
            ended.set()

    ahead = inputs.prefetch(numbers())
    next(ahead)
    if how == "close":
        ahead.close()
    else:
        del ahead
        gc.collect()
    assert ended.wait(30)


def test_items_are_the_consumers_alone() -> None:
    """Memory does not grow with what was read."""
    class Item:
        pass

    ahead, seen = inputs.prefetch((Item() for _ in range(20)), size=2), []
    for item in ahead:
        seen.append(weakref.ref(item))
    del item
    wait_until(lambda: gc.collect() is not None and not any(ref() for ref in seen))


def test_first_in_first_out() -> None:
    queue: inputs.FIFOQueue[int] = inputs.FIFOQueue(3)
    queue.enqueue_many([1, 2, 3])
    with pytest.raises(TimeoutError, match="full"):
        queue.enqueue(4, timeout=0.01)
    assert queue.dequeue() == 1 and len(queue) == 2
    queue.close()
    with pytest.raises(inputs.ClosedQueueError, match="nothing can be put there"):
        queue.enqueue(5)
    assert queue.dequeue_many(5) == [2, 3]
    with pytest.raises(inputs.ClosedQueueError, match="nothing is left"):
        queue.dequeue()
    assert [*queue] == []


def test_close_may_cancel_what_is_there() -> None:
    queue: inputs.FIFOQueue[int] = inputs.FIFOQueue(3)
    queue.enqueue_many([1, 2])
    queue.close(cancel_pending=True)
    assert [*queue] == [] and queue.is_closed
    with pytest.raises(TimeoutError, match="empty"):
        inputs.FIFOQueue(1).dequeue(timeout=0.01)


def test_several_producers_and_consumers() -> None:
    queue: inputs.FIFOQueue[int] = inputs.FIFOQueue(2)
    taken: list[int] = []
    producers = [threading.Thread(target=queue.enqueue_many, args=(range(k, 300, 3),))
                 for k in range(3)]
    consumers = [threading.Thread(target=lambda: taken.extend(queue)) for _ in range(3)]
    for thread in producers + consumers:
        thread.start()
    for thread in producers:
        thread.join(60)
    queue.close()
    for thread in consumers:
        thread.join(60)
    assert sorted(taken) == [*range(300)]


def test_a_shuffling_queue() -> None:
    def order(seed: int) -> list[int]:
        queue: inputs.ShufflingQueue[int] = inputs.ShufflingQueue(100, 20, seed)
        queue.enqueue_many(range(100))
        first = [queue.dequeue() for _ in range(80)]
        with pytest.raises(TimeoutError):
            queue.dequeue(timeout=0.01)
        queue.close()
        return [*first, *queue]

    assert sorted(order(0)) == [*range(100)] and order(0) == order(0) != order(1)
    assert order(0) != [*range(100)]


@pytest.mark.parametrize(("make", "said"), [
    (lambda: inputs.FIFOQueue(0), "room for one item or more"),
    (lambda: inputs.ShufflingQueue(3, 3), "gives none"),
    (lambda: inputs.prefetch([1], 0), "room for one item or more")])
def test_sizes_that_do_not_fit(make: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make()
