"""The streaming kernel really reads and writes, and its figures make sense."""

from __future__ import annotations

import numpy as np
import pytest

from fusec.bench.measuring import limit


@pytest.mark.parametrize(("reads", "writes"), [(1, 1), (3, 2), (0, 1)])
@pytest.mark.parametrize("nontemporal", [False, True])
def test_kernel_adds_its_inputs_and_writes_every_output(reads, writes, nontemporal):
    _, kernel = limit._kernel(reads, writes, nontemporal)
    arrays = [limit.aligned(3 * limit.BLOCK) for _ in range(reads + writes)]
    for i, a in enumerate(arrays):
        a[:] = i + 1
    table = np.array([a.ctypes.data for a in arrays], dtype=np.uintp)
    kernel(table.ctypes.data, 2, 1)
    for out in arrays[reads:]:
        assert (out[:2 * limit.BLOCK] == sum(range(1, reads + 1))).all()
        assert (out[2 * limit.BLOCK:] != sum(range(1, reads + 1))).all() or reads == 0
    kernel(table.ctypes.data, 2, 3)
    assert arrays[-1][0] == sum(range(1, reads + 1)) + 2  # the third turn is number two


def test_aligned():
    for n in (1, 8, 100):
        a = limit.aligned(n)
        assert a.ctypes.data % 64 == 0 and a.size == n


def test_streaming_time_is_plausible_and_grows_with_size():
    small = limit.streaming_seconds(1, 1, 1 << 14)
    large = limit.streaming_seconds(1, 1, 1 << 22)
    assert 0 < small < large
    # Between a floppy disk and a register file.
    assert 1e8 < limit.streaming_limit(1, 1, 1 << 22) < 1e13


def test_no_traffic_takes_no_time():
    assert limit.streaming_seconds(0, 0, 100) == 0.0
    assert limit.streaming_seconds(2, 1, 0) == 0.0


def test_sizes_are_rounded_up_by_less_than_an_eighth():
    for n in (1, 255, 1000, 12_345, 10_000_000):
        rounded = limit.round_size(n)
        assert rounded >= n and (rounded <= n * 1.13 or n < 256)


def test_many_streams_are_measured_as_fewer(monkeypatch):
    asked = []
    monkeypatch.setattr(limit, "_measured", lambda *a: asked.append(a) or 1.0)
    limit.streaming_seconds(20, 12, 1 << 20)
    (reads, writes, nbytes, _), = asked
    assert reads + writes == limit.MAX_STREAMS and nbytes >= 2 << 20
