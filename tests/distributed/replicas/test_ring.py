"""The ring: its order of summation, the bytes that members send, and that nothing else decides."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest

ring_module = pytest.importorskip("fusec.distributed.replicas.ring")
SumRing, RingMember = ring_module.SumRing, ring_module.RingMember


def shared_out(pieces: int, members: int) -> tuple[int, ...]:
    return tuple(k * pieces // members for k in range(members + 1))


def stated(pieces: np.ndarray, ufunc: np.ufunc = np.add) -> np.ndarray:
    """The order that the documentation states, written anew."""
    count, size = pieces.shape
    total = np.empty_like(pieces[0])
    for j in range(count):
        part = slice(j * size // count, (j + 1) * size // count)
        up = pieces[0, part]
        for piece in pieces[1:j + 1, part]:
            up = ufunc(up, piece)
        if j + 1 < count:
            down = pieces[-1, part]
            for piece in pieces[j + 1:-1, part][::-1]:
                down = ufunc(down, piece)
            up = ufunc(up, down)
        total[part] = up
    return total


def run(ring: SumRing, pieces: np.ndarray, seed: int = 0) -> list[RingMember]:
    """All members in one process; messages between two of them keep their order, others none."""
    rng = np.random.default_rng(seed)
    members = [RingMember(ring, k, list(pieces[ring.starts[k]:ring.starts[k + 1]]))
               for k in range(ring.members)]
    waiting = [{*member.expected} for member in members]
    lines: dict[tuple[int, int], deque] = {}

    def post(source: int, transfers) -> None:
        for transfer in transfers:
            assert transfer.values.nbytes <= ring_module.MESSAGE_BYTES
            own = transfer._replace(values=transfer.values.copy())
            lines.setdefault((source, transfer.target), deque()).append(own)

    for member in members:
        post(member.member, member.begin())
    while lines:
        source, target = line = list(lines)[rng.integers(len(lines))]
        transfer = lines[line].popleft()
        if not lines[line]:
            del lines[line]
        waiting[target].remove((transfer.phase, transfer.number, source))
        post(target, members[target].take(transfer.phase, transfer.number, transfer.values))
    assert not any(waiting)
    assert all(member.is_done for member in members)
    return members


def test_64_members_have_the_same_bits_as_any_other_number() -> None:
    pieces = np.random.default_rng(1).standard_normal((64, 64 * 100)).astype(np.float32)
    want = stated(pieces)
    for count in (1, 2, 3, 5, 8, 31, 64):
        for member in run(SumRing(shared_out(64, count)), pieces, seed=count):
            np.testing.assert_array_equal(member.total, want)
    np.testing.assert_allclose(want, pieces.astype(float).sum(axis=0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("count", [2, 3, 4, 8, 16, 64])
def test_a_member_sends_the_least_there_is(count: int) -> None:
    size = 64 * 3 * 50  # equal shares for all of these counts
    pieces = np.ones((192, size))
    for member in run(SumRing(shared_out(192, count)), pieces):
        assert member.sent_bytes * count == 2 * (count - 1) * size * 8


def test_messages_are_at_most_a_megabyte() -> None:
    pieces = np.random.default_rng(0).standard_normal((3, 500_000))
    members = run(SumRing((0, 2, 3)), pieces)
    assert len(members[0]._messages) == 3 + 2
    for member in members:
        np.testing.assert_array_equal(member.total, stated(pieces))


def test_vectors_of_fewer_elements_than_pieces_and_of_none() -> None:
    for size in (0, 1, 3):
        pieces = np.random.default_rng(0).standard_normal((8, size))
        for member in run(SumRing(shared_out(8, 4)), pieces):
            np.testing.assert_array_equal(member.total, stated(pieces))


@pytest.mark.parametrize(("join", "dtype"), [
    ("maximum", float), ("minimum", np.int32), ("mul", float), ("add", complex), ("or", bool)])
def test_other_joins(join: str, dtype: type) -> None:
    pieces = np.random.default_rng(0).integers(0, 2, (6, 40)).astype(dtype)
    for member in run(SumRing(shared_out(6, 4), join), pieces):
        np.testing.assert_array_equal(member.total, stated(pieces, ring_module.JOINS[join]))


def test_bfloat16_is_half_the_bytes_and_the_same_on_all_members() -> None:
    pieces = np.random.default_rng(0).standard_normal((8, 8000)).astype(np.float32)
    exact, lossy = (run(SumRing(shared_out(8, 4), is_lossy=x), pieces) for x in (False, True))
    for before, after in zip(exact, lossy, strict=True):
        assert 2 * after.sent_bytes == before.sent_bytes
        np.testing.assert_array_equal(after.total, lossy[0].total)
        assert 0 < np.abs(after.total - before.total).max() < 0.1
    for dtype in (np.float64, np.int64):  # these are never cut
        own = run(SumRing(shared_out(8, 4), is_lossy=True), pieces.astype(dtype))
        np.testing.assert_array_equal(own[0].total, stated(pieces.astype(dtype)))


def test_rounding_to_bfloat16() -> None:
    one = np.array([1.0, 1 + 2.0**-8, 1 + 3 * 2.0**-8, -np.inf, np.nan, 0.0, 3.4e38], np.float32)
    one[4:5].view(np.uint32)[:] = 0x7F800001  # of its lower bits alone
    got = ring_module._whole(ring_module._halves(one))
    np.testing.assert_array_equal(got, np.array(
        [1.0, 1.0, 1 + 2.0**-6, -np.inf, np.nan, 0.0, np.inf], np.float32))
