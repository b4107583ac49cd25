"""The types of devices, and the devices of this process by name."""

from __future__ import annotations

from collections.abc import Callable

from fusec import config
from fusec.ir.device_names import JOB, TASK, DeviceName

from .device import Device

Driver = Callable[[], list[Device]]  # the devices of one type that there are now
_drivers: dict[str, Driver] = {}
_devices: dict[str, list[Device]] = {}


def register(type_: str, driver: Driver) -> None:
    """Let ``/device:TYPE:n`` be the n-th device that the driver gives."""
    _drivers[type_.upper()] = driver
    _devices.pop(type_.upper(), None)


def devices() -> list[Device]:
    """Every device of this process, those that placement may choose first."""
    for type_, driver in _drivers.items():
        if type_ not in _devices:
            _devices[type_] = driver()
    return sorted((d for each in _devices.values() for d in each), key=lambda d: not d.is_automatic)


def matching(name: DeviceName) -> list[Device]:
    """The devices that a partial name stands for."""
    return [device for device in devices() if name.admits(device.name)]


def _logical_cpus() -> list[Device]:
    return [Device(DeviceName(JOB, TASK, "CPU", i), "cpu")
            for i in range(config.logical_cpu_devices)]


def _oracle(type_: str) -> Driver:
    return lambda: [Device(DeviceName(JOB, TASK, type_, 0), type_.lower(), is_automatic=False)]


def _forget_cpus(count: int) -> None:
    _devices.pop("CPU", None)


register("CPU", _logical_cpus)
register("REFERENCE", _oracle("REFERENCE"))
register("NULL", _oracle("NULL"))
config.on_change("logical_cpu_devices", _forget_cpus)
