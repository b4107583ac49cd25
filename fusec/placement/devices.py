"""`fusec.devices`: the devices of this process, and how fast they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

from fusec.codegen import backends
from fusec.core import device_rates
from fusec.core.device_rates import Rates
from fusec.core.display.tables import Column, Tabular
from fusec.ir.device_names import JOB, TASK, DeviceName
from fusec.runtime.devices import calibration, registry
from fusec.runtime.devices.blas import blas_threads
from fusec.runtime.devices.device import Device

_GIGA = 1e9


class DeviceInfo:
    """One device.  How fast it is is measured when that is asked for the first time on this
    machine (some 0.2 s a device), and kept in the folder ``fusec.config.cache_dir``.
    """

    def __init__(self, device: Device) -> None:
        self._device = device

    @property
    def name(self) -> str:
        """The whole name, as ``/job:localhost/task:0/device:CPU:0``."""
        return str(self._device.name)

    @property
    def shown_name(self) -> str:
        """The same, for tables: without the job and task where these are this process's."""
        own = DeviceName(JOB, TASK).admits(self._device.name)
        return f"/device:{self.type}:{self.index}" if own else self.name

    @property
    def type(self) -> str:
        """``CPU``, ``REFERENCE`` (the oracle: NumPy, op by op), ``NULL`` (computes nothing) or
        ``CUDAHOST`` (CUDA kernels, emulated)."""
        return self._device.name.type or ""

    @property
    def index(self) -> int:
        """Its number among those of its type."""
        return self._device.name.index or 0

    @property
    def cores(self) -> tuple[int, ...]:
        """The numbers of the CPUs that its threads keep to."""
        return self._device.cores

    @property
    def threads(self) -> int:
        """How many of them a kernel uses at once; 0 where it has none of its own."""
        if self._device.is_remote:
            return self._device.threads or 0
        return calibration.threads_of(self._device) if self.cores else 0

    @property
    def memory_bytes(self) -> int:
        """Bytes of the memory that it uses, which devices of the host share; 0: not known.
        CUDAHOST takes at most half of theirs."""
        return self._device.memory_bytes()

    @property
    def bandwidth(self) -> float | None:
        """Bytes per second that a kernel reads and writes, from and to memory beyond the caches;
        None for devices whose kernels are not compiled."""
        return self._rate("bytes_per_ns")

    @property
    def flops(self) -> float | None:
        """Operations on doubles per second, in registers; a fused multiply-add counts two."""
        return self._rate("flops_per_ns")

    @property
    def transfer_bandwidth(self) -> float | None:
        """Bytes per second in which it copies memory that another device has written."""
        return self._rate("transfer_bytes_per_ns")

    def __eq__(self, other: object) -> bool:
        return self.name == other.name if isinstance(other, DeviceInfo) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.name)

    def _rate(self, name: str) -> float | None:
        if not calibration.is_measurable(self._device):
            return None
        rate: float = getattr(calibration.rates(self._device), name)
        return _GIGA * rate

    def __repr__(self) -> str:
        return f"<{self.name}>"


def _listed(cores: Sequence[int]) -> str:
    """``0-3,8`` for 0, 1, 2, 3 and 8."""
    runs: list[list[int]] = []
    for core in sorted(cores):
        if runs and core == runs[-1][-1] + 1:
            runs[-1].append(core)
        else:
            runs.append([core])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)


def _in_giga(rate: float | None) -> str:
    return "" if rate is None else f"{rate / _GIGA:.1f}"


_COLUMNS = (
    Column("device", lambda d: d.shown_name, left=True),
    Column("cores", lambda d: _listed(d.cores), left=True),
    Column("threads", lambda d: str(d.threads or "")),
    Column("memory GB", lambda d: _in_giga(d.memory_bytes or None)),
    Column("GB/s", lambda d: _in_giga(d.bandwidth)),
    Column("GFLOP/s", lambda d: _in_giga(d.flops)),
    Column("transfer GB/s", lambda d: _in_giga(d.transfer_bandwidth)),
)


class Devices(Tabular, Sequence[DeviceInfo]):
    """The devices, those that placement may choose first; prints as a table."""

    title = "fusec devices"

    def __init__(self, devices: Sequence[Device]) -> None:
        self._rows = tuple(map(DeviceInfo, devices))

    @overload
    def __getitem__(self, at: int) -> DeviceInfo: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[DeviceInfo]: ...

    def __getitem__(self, at: int | slice) -> DeviceInfo | Sequence[DeviceInfo]:
        return self._rows[at]

    def __len__(self) -> int:
        return len(self._rows)

    def columns(self) -> Sequence[Column]:
        return _COLUMNS

    def shown_rows(self) -> Sequence[DeviceInfo]:
        return self._rows

    def notes(self) -> list[str]:
        users: dict[int, list[str]] = {}
        for device in self._rows:
            for core in device.cores:
                users.setdefault(core, []).append(f"{device.type}:{device.index}")
        shared = [f"core {core} is shared by {', '.join(names)}"
                  for core, names in sorted(users.items()) if len(names) > 1]
        return [*([f"({'; '.join(shared)})"] if shared else []), *self._library_notes(),
                *(f"({note})" for kind in backends.KINDS.values() for note in kind.notes())]

    def _library_notes(self) -> list[str]:
        """The causes of slow library calls that run on several devices at once."""
        cpus = [device for device in self._rows if device.cores]
        used = blas_threads() or 0
        if len(cpus) < 2 or used <= min(device.threads for device in cpus):
            return []
        return [f"(NumPy's linear algebra uses {used} threads, more than a device has: start "
                f"Python with OPENBLAS_NUM_THREADS=1, or MKL_NUM_THREADS=1)"]

    def __repr__(self) -> str:
        return str(self)


def _measured(name: str) -> Rates | None:
    """The rates of the device with that short name, if it was measured."""
    found = [d for d in registry.devices() if d.name.short == name]
    return calibration.measured(found[0]) if found else None


device_rates.rates_of = _measured


def devices() -> Devices:
    """The devices of this process: the logical CPU devices (``fusec.config.logical_cpu_devices``),
    ``REFERENCE:0``, ``NULL:0`` and ``CUDAHOST:0``.

        >>> fusec.devices()[0].name
        '/job:localhost/task:0/device:CPU:0'

    Printed, it is a table; rates are measured when they are first asked for, which printing does.
    """
    return Devices(registry.devices())
