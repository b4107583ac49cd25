"""The machine as placement sees it, made from the devices that there are."""

from __future__ import annotations

from typing import Any

from fusec import config
from fusec.codegen import backends
from fusec.core import log
from fusec.core.records import replace
from fusec.passes.placement.machine import DeviceModel, Machine
from fusec.runtime.devices import calibration, node_times, registry
from fusec.runtime.devices.device import Device

# What a kernel reaches of the multiplications with additions that a core can do in registers.
_PART_OF_FLOPS = 0.1
_cached: tuple[tuple[Any, ...], Machine] | None = None


def machine() -> Machine:
    """The devices that there are, as placement sees them."""
    devices = tuple(registry.devices())
    return replace(_machine(devices), measured=node_times.kept_times(devices),
                   is_soft=config.soft_placement)


def _machine(devices: tuple[Device, ...]) -> Machine:
    global _cached
    rates = tuple(map(calibration.measured, devices))
    if _cached is None or _cached[0] != (devices, rates):
        models = tuple(map(_model, devices, rates))
        automatic = [m for m in models if m.is_automatic]
        home = automatic[0]
        whole = DeviceModel(home.name, home.backend, home.memory, True,
                            sum(m.cores for m in automatic if m.memory == home.memory),
                            home.bytes_per_ns, home.flops_per_ns, 0.0)
        machine = Machine(models, whole=whole, report=_warn)
        of_home = rates[models.index(home)]
        if of_home is not None:
            machine = replace(machine, transfer_bytes_per_ns=of_home.transfer_bytes_per_ns)
        _cached = (devices, rates), machine
    return _cached[1]


def _model(device: Device, rates: calibration.MeasuredRates | None) -> DeviceModel:
    """The device with usual rates, or with those that `fusec.devices` has measured."""
    model = DeviceModel(
        device.name, device.backend, device.memory, device.is_automatic,
        max(len(device.cores), 1),
        supports=lambda node: backends.backend(device.backend).has_kernel(node),
        leaves_whole=lambda node: backends.backend(device.backend).leaves_whole(node),
        runs_kernels_alone=device.runs_kernels_alone, is_remote=device.is_remote)
    if rates is None:
        return model
    threads = calibration.threads_of(device)
    return replace(model, bytes_per_ns=rates.bytes_per_ns / threads,
                   flops_per_ns=_PART_OF_FLOPS * rates.flops_per_ns / threads,
                   launch_ns=rates.launch_ns)


def _warn(text: str) -> None:
    log.write(log.WARN, text)


