"""Elements and parts at indices, which may differ from lane to lane."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fusec.ir import Value

from .moves import later
from .protocol import Alone, AloneError, LaneSite, declare

_INDEX = np.dtype(np.int64)


def _differ(site: LaneSite, first: int) -> bool:
    """Whether indices, the operands from ``first`` on, differ from lane to lane."""
    return any(site.has_lanes[first:])


def _lane_numbers(site: LaneSite, rank: int) -> Value:
    """The number of each lane, beside indices of this rank."""
    counter = site.emit("Iota", size=site.lanes, dtype=_INDEX)
    return site.emit("ExpandDims", counter, axes=later(range(rank))) if rank else counter


def _transposed(site: LaneSite, value: Value, perm: Sequence[int]) -> Value:
    same = tuple(perm) == tuple(range(len(perm)))
    return value if same else site.emit("Transpose", value, perm=tuple(perm))


def _gather(site: LaneSite) -> list[Value]:
    axes, at = site.attrs["axes"], site.attrs["at"]
    if not _differ(site, 1):
        return [site.emit("Gather", *site.given, axes=later(axes), at=at + 1)]
    return [_gathered(site, site.given[0], site.has_lanes[0], axes, at,
                      range(1, len(site.given)))]


def _gathered(
    site: LaneSite, source: Value, has_lanes: bool, axes: Sequence[int], at: int,
    numbers: Sequence[int],
) -> Value:
    """Elements at indices that differ from lane to lane: operands of these numbers."""
    rank = max(site.node.inputs[k].type.rank for k in numbers)
    indices = [site.aligned(k, rank) for k in numbers]
    if has_lanes:
        indices, axes = [_lane_numbers(site, rank), *indices], (0, *later(axes))
    part = site.emit("Gather", source, *indices, axes=tuple(axes), at=0)
    rest = range(1 + rank, part.type.rank)  # axes that no index names
    return _transposed(site, part, (0, *rest[:at], *range(1, 1 + rank), *rest[at:]))


def _scatter(site: LaneSite) -> list[Value]:
    axes, at = site.attrs["axes"], site.attrs["at"]
    if not _differ(site, 2):
        return site.again(site.whole(0), site.whole(1), *site.given[2:],
                          axes=later(axes), at=at + 1)
    return [_scattered(site, axes, at, range(2, len(site.given)))]


def _scattered(
    site: LaneSite, axes: Sequence[int], at: int, numbers: Sequence[int],
) -> Value:
    """Operand 0 with operand 1 at indices that differ from lane to lane."""
    rank = max(site.node.inputs[k].type.rank for k in numbers)
    indices = [_lane_numbers(site, rank), *(site.aligned(k, rank) for k in numbers)]
    value = site.whole(1)
    own = range(1 + at, 1 + at + rank)  # the axes of indices in it
    rest = [d for d in range(1, value.type.rank) if d not in own]
    shape = tuple(value.shape[d] for d in own)
    indices[0] = site.emit("BroadcastTo", indices[0], shape=(site.lanes, *shape))
    value = _transposed(site, value, (0, *own, *rest))
    attrs = {"combine": site.attrs["combine"]} if site.attrs.get("combine") else {}
    return site.emit("Scatter", site.whole(0), value, *indices, axes=(0, *later(axes)), at=0,
                     **attrs)


def _checked(site: LaneSite, first: int) -> LaneSite:
    """The site with indices that are in range, or raise."""
    given = list(site.given)
    shape = site.lane_shape(0)
    for k, axis in enumerate(site.attrs["axes"], first):
        if axis in site.attrs.get("safe", ()):
            continue
        if not isinstance(shape[axis], int):  # sizes of arguments count as ints
            raise AloneError("the run decides the size of the axis")
        size = site.builder.const(shape[axis])
        lanes = {"lanes": 1} if site.has_lanes[k] else {}
        given[k] = site.emit("CheckIndex", given[k], size, axis=axis, **lanes)
    return LaneSite(site.builder, site.node, site.lanes, tuple(given), site.has_lanes)


def _pick(site: LaneSite) -> list[Value]:
    axes = site.attrs["axes"]
    if not _differ(site, 1):
        return [site.emit("Pick", *site.given, axes=later(axes),
                          safe=later(site.attrs.get("safe", ())), **_unchecked(site))]
    checked = _checked(site, 1)
    return [_gathered(checked, site.given[0], site.has_lanes[0], axes, 0,
                      range(1, len(site.given)))]


def _pick_update(site: LaneSite) -> list[Value]:
    axes = site.attrs["axes"]
    if not _differ(site, 2):
        return [site.emit("PickUpdate", site.whole(0), site.whole(1), *site.given[2:],
                          axes=later(axes), safe=later(site.attrs.get("safe", ())),
                          **_unchecked(site))]
    return [_scattered(_checked(site, 2), axes, 0, range(2, len(site.given)))]


def _unchecked(site: LaneSite) -> dict[str, bool]:
    return {"unchecked": True} if site.attrs.get("unchecked") else {}


declare(_gather, "Gather")
declare(_scatter, "Scatter")
declare(_pick, "Pick")
declare(_pick_update, "PickUpdate")
declare(Alone("a lane's data decide where the part lies, and how long it is"),
        "Extent", "Window", "WindowUpdate", "Reserve", "Fill", "Size")
