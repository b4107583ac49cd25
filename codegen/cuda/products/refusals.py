"""What libraries that are called directly raise."""

from __future__ import annotations

from typing import Protocol


class DirectLibrary(Protocol):
    """``refused`` says why it is called no more."""

    refused: str


class LibraryRefusedError(RuntimeError):
    """A library has refused a call; from then on its work is CuPy's."""

    def __init__(self, name: str, library: DirectLibrary) -> None:
        super().__init__(library.refused)
        self.name, self.library = name, library
