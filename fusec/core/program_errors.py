"""`SavedProgramError`: stands for exceptions of a program's own classes, where it was saved."""

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


__all__ = ["SavedProgramError"]
