"""The machine as placement sees it, made from the devices that there are."""

from __future__ import annotations

from fusec.codegen import backends
from fusec.inspect import log
from fusec.passes.placement.machine import DeviceModel, Machine
from fusec.records import replace
from fusec.runtime.devices import node_times, registry
from fusec.runtime.devices.device import Device

from . import config

_cached: tuple[tuple[Device, ...], Machine] | None = None


def machine() -> Machine:
    """The devices that there are, as placement sees them."""
    devices = tuple(registry.devices())
    return replace(_machine(devices), measured=node_times.known(devices),
                   is_soft=config.soft_placement)


def _machine(devices: tuple[Device, ...]) -> Machine:
    global _cached
    if _cached is None or _cached[0] != devices:
        models = tuple(map(_model, devices))
        automatic = [m for m in models if m.is_automatic]
        home = automatic[0]
        whole = DeviceModel(home.name, home.backend, home.memory, True,
                            sum(m.cores for m in automatic if m.memory == home.memory),
                            home.bytes_per_ns, home.flops_per_ns, 0.0)
        _cached = devices, Machine(models, whole=whole, report=_warn)
    return _cached[1]


def _model(device: Device) -> DeviceModel:
    return DeviceModel(
        device.name, device.backend, device.memory, device.is_automatic,
        max(len(device.cores), 1),
        supports=lambda node: backends.backend(device.backend).has_kernel(node))


def _warn(text: str) -> None:
    log.write(log.WARN, text)


