"""What runs a schedule: on one device, or over several."""

from __future__ import annotations

from fusec.codegen.schedule import Schedule

from .call_spec import CallSpec
from .executor import Executable


def executable_of(schedule: Schedule, spec: CallSpec) -> Executable:
    """The compiled schedule, ready to be called."""
    if schedule.is_partitioned:
        from .partitions.plan import PartitionedExecutable  # few programs are divided

        return PartitionedExecutable(schedule, spec)  # type: ignore[arg-type]
    return Executable(schedule, spec)
