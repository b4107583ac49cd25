"""The types of devices, and the devices of this process by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fusec import config
from fusec.core import gpus, locks, machine
from fusec.ir.device_names import JOB, TASK, DeviceName

from .device import Device

Driver = Callable[[], list[Device]]  # the devices of one type that there are now
_drivers: dict[str, Driver] = {}
_devices: dict[str, list[Device]] = {}
_known: dict[tuple[int, tuple[int, ...]], list[Device]] = {}  # CPUs, by how many, of which cores
_changing = locks.Lock()


def register(type_: str, driver: Driver) -> None:
    """Let ``/device:TYPE:n`` be the n-th device that the driver gives."""
    with _changing:
        _drivers[type_.upper()] = driver
        _devices.pop(type_.upper(), None)


def devices() -> list[Device]:
    """Every device of this process, those that placement may choose first."""
    with _changing:
        for type_, driver in _drivers.items():
            if type_ not in _devices:
                _devices[type_] = driver()
        every = [device for each in _devices.values() for device in each]
    return sorted(every, key=lambda device: not device.is_automatic)


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
        return [Device(names[0], "cpu", cpus)]
    return [Device(name, "cpu", cores, threads=threads) for name, cores, threads in zip(
        names, machine.shared_out(cpus, count), _thread_shares(cpus, count), strict=True)]


def _thread_shares(cpus: Sequence[int], count: int) -> list[int]:
    """Threads of each device's kernels: its part of those that kernels may use, and at most one a
    core of its own."""
    shares = machine.shared_out(range(config.num_threads), count)
    cores = machine.shared_out(cpus, count)
    return [max(1, min(len(own), len(part))) for own, part in zip(cores, shares, strict=True)]


def _oracle(type_: str) -> Driver:
    return lambda: [Device(DeviceName(JOB, TASK, type_, 0), type_.lower(), is_automatic=False)]


def _cuda_host() -> list[Device]:
    return [Device(DeviceName(JOB, TASK, "CUDAHOST", 0), "cudahost", memory="cudahost:0",
                   is_automatic=False, runs_kernels_alone=True,
                   memory_bytes=machine.emulated_memory)]


def _gpus() -> list[Device]:
    """The first one: a back end has the driver of one."""
    return [Device(DeviceName(JOB, TASK, "GPU", number), "cuda", memory=f"gpu:{number}",
                   is_automatic=False, runs_kernels_alone=True, memory_bytes=gpus.memory)
            for number in range(min(gpus.count(), 1))]


def _forget_cpus(count: int) -> None:
    with _changing:
        old = _devices.pop("CPU", [])
    for device in old:
        device.close()


def _resize_cpus(threads: int) -> None:
    _share(_devices.get("CPU", []), machine.usable_cpus())


def _share(devices: Sequence[Device], cpus: Sequence[int]) -> None:
    """Give each its part of the threads that kernels may use."""
    if len(devices) > 1:
        shares = _thread_shares(cpus, len(devices))
        for device, share in zip(devices, shares, strict=True):
            if device.threads != share:
                device.resize(share)


register("CPU", _logical_cpus)
register("REFERENCE", _oracle("REFERENCE"))
register("NULL", _oracle("NULL"))
register("CUDAHOST", _cuda_host)
register("GPU", _gpus)
config.on_change("logical_cpu_devices", _forget_cpus)
config.on_change("num_threads", _resize_cpus)
