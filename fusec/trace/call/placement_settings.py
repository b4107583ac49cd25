"""Settings beside a call's arguments that decide placement: traces are kept for each of these."""

from __future__ import annotations

from typing import Any, NamedTuple

from fusec import config
from fusec.state.device_context import entered


class Placing(NamedTuple):
    """The device scope around a call (None: none), how many devices the CPU is, whether a
    constraint that nothing can meet is left out, and the device in whose memory arguments and
    results are (empty: the host's)."""

    scope: Any
    cpus: int
    is_soft: bool
    residence: str = ""


USUAL = Placing(None, 1, False)


class PlacementKey(NamedTuple):
    """The first part of the key of a trace that is placed in another than the usual way."""

    placing: Placing
    structure: Any


def placing_in(scope: Any, residence: str = "") -> Placing | None:
    """How calls in this scope are placed now; None: as usual."""
    placing = Placing(scope, config.logical_cpu_devices, config.soft_placement, residence)
    return None if placing == USUAL else placing


def trace_key(call: Any) -> tuple:
    """The key of the traces for a `FlatCall`: the key of its arguments, and its placing."""
    key: tuple = call.key
    return key if call.placing is None else (PlacementKey(call.placing, key[0]), *key[1:])


def parts_of(key: tuple) -> tuple[Placing, tuple]:
    """The placing in such a key, and the key of the arguments."""
    first = key[0]
    return (first.placing, (first.structure, *key[1:])) if type(first) is PlacementKey else (
        USUAL, key)


def difference(before: Placing, now: Placing) -> str:
    """How two placings differ, in words; empty where they do not."""
    rows = (("device scope", before.scope or "none", now.scope or "none"),
            ("config.logical_cpu_devices", before.cpus, now.cpus),
            ("config.soft_placement", before.is_soft, now.is_soft),
            ("memory", before.residence or "the host's", now.residence or "the host's"))
    return "; ".join(f"{what}: {old} before, {new} now" for what, old, new in rows if old != new)


def scope_now() -> Any:
    """The device scope that this context is in."""
    return entered().scope
