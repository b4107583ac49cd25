"""The placer's model of the machine: its devices, their rates, the nodes that they can run."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fusec.core.records import dataclass, field, replace
from fusec.ir import Node
from fusec.ir.device_names import DeviceName

REMOTE_NS, REMOTE_BYTES_PER_NS = 300_000.0, 1.0  # guesses, of a network between processes


def _runs_everything(node: Node) -> bool:
    return True


def _leaves_nothing(node: Node) -> bool:
    return False


@dataclass(frozen=True, eq=False)
class DeviceModel:
    """One device.  Rates are of one core, all of which a kernel may use; ``launch_ns`` is the cost
    of handing it a step.  Devices with the same ``memory`` read each other's arrays as they are.

    ``is_automatic``: it is chosen without being named.  ``supports`` says whether it has a kernel
    for a node; where it ``runs_kernels_alone``, other nodes run on an automatic device, branches
    and loops that it ``leaves_whole`` with all that is inside.  One that ``is_remote`` is another
    process's, on which Variables may live.
    """

    name: DeviceName
    backend: str = "cpu"
    memory: str = "host"
    is_automatic: bool = True
    cores: int = 1
    bytes_per_ns: float = 24.0
    flops_per_ns: float = 12.0
    launch_ns: float = 30_000.0
    supports: Callable[[Node], bool] = _runs_everything
    leaves_whole: Callable[[Node], bool] = _leaves_nothing
    runs_kernels_alone: bool = False
    is_remote: bool = False

    def __repr__(self) -> str:
        return f"<model of {self.name}>"


@dataclass(frozen=True, eq=False)
class Machine:
    """The devices.  Arguments and results live on the first of them, or on ``residence``.

    ``measured`` are nanoseconds of nodes that have run, by `costs.measured_name`.  ``is_soft``: a
    constraint that nothing can meet is dropped, and reported to ``report``, instead of raised.
    """

    devices: tuple[DeviceModel, ...]
    transfer_bytes_per_ns: float = 6.0
    transfer_ns: float = 5_000.0
    whole: DeviceModel | None = None  # all cores as one device, for graphs that are not divided
    measured: Mapping[str, float] = field(default_factory=dict)
    is_soft: bool = False
    report: Callable[[str], None] = print
    residence: DeviceModel | None = None

    @property
    def home(self) -> DeviceModel:
        return self.residence or self.devices[0]

    def residing(self, name: str) -> Machine:
        """The same with arguments and results on the device of that whole name; empty: as usual."""
        if not name:
            return self
        device = next(d for d in self.devices if str(d.name) == name)
        return replace(self, residence=device, whole=None)

    @property
    def automatic(self) -> tuple[DeviceModel, ...]:
        """The devices that are chosen without being named."""
        return tuple(d for d in self.devices if d.is_automatic)

    def named(self, name: DeviceName) -> DeviceModel:
        return next(d for d in self.devices if d.name == name)

    def admitted(self, name: DeviceName) -> tuple[DeviceModel, ...]:
        """The devices that a name stands for: those of no type are automatic ones, those of no job
        this process's, and those of another process CPUs unless it says otherwise."""
        return tuple(d for d in self.devices if name.admits(d.name) and (
            name.job is not None and (name.type or "CPU") == d.name.type if d.is_remote else
            d.is_automatic or name.type is not None))

    def residence_of(self, node: Node) -> DeviceModel:
        """Where the value of an input is: that of a Variable of another process there."""
        if not node.device or not any(d.is_remote for d in self.devices):
            return self.home
        name = DeviceName.parse(node.device.partition("~")[0].partition("@")[0])
        return next((d for d in self.devices if d.is_remote and d.name == name), self.home)

    def transfer(self, source: DeviceModel, target: DeviceModel, nbytes: float) -> float:
        """Nanoseconds until a value of one device can be read on another."""
        if source is target:
            return 0.0
        if (source.is_remote or target.is_remote) and source.memory != target.memory:
            return REMOTE_NS + nbytes / REMOTE_BYTES_PER_NS
        copied = 0.0 if source.memory == target.memory else nbytes / self.transfer_bytes_per_ns
        return self.transfer_ns + copied
