"""Views and pieces: the same, beside one more axis before the others."""

from __future__ import annotations

from collections.abc import Iterable

from fusec.ir import Value

from .protocol import LaneSite, declare


def later(axes: Iterable[int]) -> tuple[int, ...]:
    """Axes of a lane as axes of all lanes."""
    return tuple(axis + 1 for axis in axes)


def _slice(site: LaneSite) -> list[Value]:
    return site.again(*site.given, **_region(site))


def _region(site: LaneSite) -> dict[str, tuple[object, ...]]:
    attrs = site.attrs
    return {"starts": (0, *attrs["starts"]), "steps": (1, *attrs["steps"]),
            "sizes": (site.lanes, *attrs["sizes"])}


def _slice_update(site: LaneSite) -> list[Value]:
    return site.again(site.whole(0), site.whole(1), **_region(site))


def _transpose(site: LaneSite) -> list[Value]:
    return site.again(*site.given, perm=(0, *later(site.attrs["perm"])))


def _broadcast(site: LaneSite) -> list[Value]:
    shape = site.attrs["shape"]
    return site.again(site.aligned(0, len(shape)), shape=(site.lanes, *shape))


def _reshape(site: LaneSite) -> list[Value]:
    return site.again(*site.given, shape=(site.lanes, *site.attrs["shape"]))


def _axes(site: LaneSite) -> list[Value]:
    """Of views, reductions and their like whose attribute ``axes`` names axes."""
    attrs = {k: x for k, x in site.attrs.items() if k != "kind"}
    return [site.emit(site.node.op, *site.given, **{**attrs, "axes": later(attrs["axes"])})]


def _concat(site: LaneSite) -> list[Value]:
    return site.again(*map(site.whole, range(len(site.given))), axis=site.attrs["axis"] + 1)


declare(_slice, "Slice")
declare(_slice_update, "SliceUpdate")
declare(_transpose, "Transpose")
declare(_broadcast, "BroadcastTo")
declare(_reshape, "Reshape")
declare(_concat, "Concat")
declare(_axes, "ExpandDims", "Squeeze", "Diagonal")
declare(_axes, "Sum", "Prod", "Max", "Min", "Any", "All", "ArgMax", "ArgMin", "Fold", "Scan",
        "Mean", "Var", "Std")
