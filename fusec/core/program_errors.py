"""Exceptions that name something outside of this process: classes of a saved program, workers."""

from __future__ import annotations

from typing import Any

from fusec.errors import FusecError


class SavedProgramError(FusecError):
    """An exception of a saved program whose class only the program had.

    ``class_name`` is the class's full name, ``arguments`` are those of the exception, plain data.
    Exceptions that are Python's own keep their class.
    """

    def __init__(self, class_name: str, *arguments: Any) -> None:
        text = ", ".join(map(str, arguments))
        super().__init__(f"{class_name}: {text}" if text else class_name)
        self.class_name, self.arguments = class_name, arguments

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.class_name, *self.arguments)


class WorkerLostError(FusecError, ConnectionError):
    """A worker of a cluster does not answer, or is another process than it was; what lay there
    alone is lost.  ``task`` and ``worker`` are its number and name, None where there is none."""

    task: int | None = None
    worker: str | None = None


__all__ = ["SavedProgramError", "WorkerLostError"]
