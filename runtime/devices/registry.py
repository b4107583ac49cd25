"""The devices of this process by name, and those of others that it has been lent."""

from __future__ import annotations

from collections.abc import Sequence

from fusec import config
from fusec.codegen import backends
from fusec.codegen.backends import DeviceKind
from fusec.core import locks, machine
from fusec.ir.device_names import JOB, TASK, DeviceName

from .device import Device

_CPU = "cpu"
_devices: dict[tuple[str, DeviceKind], list[Device]] = {}
_known: dict[tuple[int, tuple[int, ...]], list[Device]] = {}  # CPUs, by how many, of which cores
_remote: list[Device] = []
_changing = locks.Lock()


def devices() -> list[Device]:
    """Every device of this process, those that placement may choose first."""
    with _changing:
        every = [device for type_, kind in backends.KINDS.items() for device in _of(type_, kind)]
        every += _remote
    return sorted(every, key=lambda device: not device.is_automatic)


def replace_remote(devices: Sequence[Device]) -> None:
    """Have these devices, of other processes, and no others of such."""
    with _changing:
        _remote[:] = devices


def forget(type_: str) -> list[Device]:
    """Ask the kind anew, next time, how many there are; the devices that there were."""
    with _changing:
        keys = [key for key in _devices if key[0] == type_]
        return [device for key in keys for device in _devices.pop(key)]


def _of(type_: str, kind: DeviceKind) -> list[Device]:
    if (type_, kind) not in _devices:
        _devices[type_, kind] = _logical_cpus() if type_ == _CPU else [
            Device(DeviceName(JOB, TASK, type_.upper(), i)) for i in range(kind.count())]
    return _devices[type_, kind]


def matching(name: DeviceName) -> list[Device]:
    """The devices that a partial name stands for."""
    return [device for device in devices() if name.admits(device.name)]


def _logical_cpus() -> list[Device]:
    """One device that is the whole process, or several that share its cores among them.

    For a number that there has been before they are the same: compiled functions hold them.
    """
    count, cpus = config.logical_cpu_devices, machine.usable_cpus()
    known = _known.get((count, cpus))
    if known is None:
        known = _known[count, cpus] = _new_cpus(count, cpus)
    _share(known, cpus)
    return known


def _new_cpus(count: int, cpus: tuple[int, ...]) -> list[Device]:
    names = [DeviceName(JOB, TASK, "CPU", i) for i in range(count)]
    if count == 1:
        return [Device(names[0], cpus)]
    return [Device(name, cores, threads) for name, cores, threads in zip(
        names, machine.shared_out(cpus, count), _thread_shares(cpus, count), strict=True)]


def _thread_shares(cpus: Sequence[int], count: int) -> list[int]:
    """Threads of each device's kernels: its part of those that kernels may use, and at most one a
    core of its own."""
    shares = machine.shared_out(range(config.num_threads), count)
    cores = machine.shared_out(cpus, count)
    return [max(1, min(len(own), len(part))) for own, part in zip(cores, shares, strict=True)]


def _forget_cpus(count: int) -> None:
    for device in forget(_CPU):
        device.close()


def _resize_cpus(threads: int) -> None:
    _share(_devices.get((_CPU, backends.KINDS[_CPU]), []), machine.usable_cpus())


def _share(devices: Sequence[Device], cpus: Sequence[int]) -> None:
    """Give each its part of the threads that kernels may use."""
    if len(devices) > 1:
        shares = _thread_shares(cpus, len(devices))
        for device, share in zip(devices, shares, strict=True):
            if device.threads != share:
                device.resize(share)


config.on_change("logical_cpu_devices", _forget_cpus)
config.on_change("num_threads", _resize_cpus)
