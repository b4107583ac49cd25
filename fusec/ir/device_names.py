"""Names of devices, whole or in part: ``/job:localhost/task:0/device:CPU:1``.

After section 3.2.1 of the TensorFlow paper: a name says the job, the task in it, the type of the
device and its number; parts that a partial name leaves out may be anything.
"""

from __future__ import annotations

import re
from functools import cache

from fusec.core.records import dataclass, replace

JOB, TASK = "localhost", 0
_LONGEST = 200  # letters of a name
LOSSY = "bfloat16"  # what a constraint says of values that may lose bits on their way
_ALIASES = {"CUDA": "GPU"}  # as other libraries call it
_OF_CUDA = ("GPU", "CUDAHOST")  # types of devices that run CUDA's kernels
_PARTS = (
    r"(?:/job:(?P<job>[A-Za-z][\w-]*|\*))?"
    r"(?:/(?:replica:0/)?task:(?P<task>\d+|\*))?"
    r"(?:/?(?:device:)?(?P<type>[A-Za-z_]\w*|\*)(?::(?P<index>\d+|\*))?)?\Z")


@dataclass(frozen=True, slots=True)
class DeviceName:
    """A device, or with fields that are None any of several; ``type`` is in capitals."""

    job: str | None = None
    task: int | None = None
    type: str | None = None
    index: int | None = None

    @classmethod
    def parse(cls, text: str) -> DeviceName:
        """``/job:localhost/task:0/device:CPU:1``, ``/device:CPU:*``, ``/cpu:1``, ``CPU`` or ``""``.

        Raises ``ValueError`` for a malformed name.
        """
        found = _pattern().match(text) if len(text) <= _LONGEST else None
        if found is None or (found["type"] or "").lower() in ("job", "task", "device"):
            shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
            raise ValueError(f"{shown!r} is no name of a device: write \"/device:CPU:0\"")
        job, task, kind, index = found.group("job", "task", "type", "index")
        return cls(None if job == "*" else job, _number(task),
                   _type(kind), _number(index))

    @property
    def is_whole(self) -> bool:
        """Whether it names one device."""
        return None not in (self.job, self.task, self.type, self.index)

    def under(self, outer: DeviceName) -> DeviceName:
        """The name in a scope: parts that it leaves out are the scope's.

        The number of a device of one type says nothing of another type's, so it is not taken over
        where the types differ.
        """
        same_type = self.type is None or outer.type in (None, self.type)
        return DeviceName(
            outer.job if self.job is None else self.job,
            outer.task if self.task is None else self.task,
            outer.type if self.type is None else self.type,
            outer.index if self.index is None and same_type else self.index)

    def admits(self, device: DeviceName) -> bool:
        """Whether the whole name ``device`` is one of those that this stands for."""
        return all(mine in (None, its) for mine, its in (
            (self.job, device.job), (self.task, device.task), (self.type, device.type),
            (self.index, device.index)))

    def whole(self) -> DeviceName:
        """With this process as its job and task where none is named, and number 0."""
        return replace(self, job=self.job or JOB, task=TASK if self.task is None else self.task,
                       type=self.type or "CPU", index=self.index or 0)

    def __str__(self) -> str:
        parts = [f"/job:{self.job}" if self.job is not None else "",
                 f"/task:{self.task}" if self.task is not None else ""]
        if self.type is not None or self.index is not None:
            parts.append(f"/device:{self.type or '*'}:{'*' if self.index is None else self.index}")
        return "".join(parts)

    @property
    def short(self) -> str:
        """``CPU:1``, for tables."""
        return f"{self.type or '*'}:{'*' if self.index is None else self.index}"


@cache
def runs_cuda(constraint: str) -> bool:
    """Whether nodes with this constraint (see `fusec.passes.placement.constraints`) are for a
    device that runs CUDA's kernels, and no other."""
    return _type_in(constraint) in _OF_CUDA


@cache
def emulates_cuda(constraint: str) -> bool:
    """Whether that device runs them on this machine's CPU."""
    return _type_in(constraint) == _OF_CUDA[1]


def _type_in(constraint: str) -> str | None:
    name = constraint.partition("~")[0].partition("@")[0]
    return DeviceName.parse(name).type if name else None


@cache
def _pattern() -> re.Pattern[str]:
    """Compiled for the first name that is read: most processes read none."""
    return re.compile(_PARTS, re.ASCII)


def _type(text: str | None) -> str | None:
    """``GPU`` for ``gpu`` and for ``cuda``."""
    return None if text in (None, "*") else _ALIASES.get(text.upper(), text.upper())


def _number(text: str | None) -> int | None:
    return None if text in (None, "*") else int(text)
