"""What LLVM refuses of generated code."""

from __future__ import annotations


class InternalCompilerError(RuntimeError):
    """LLVM refused code that fusec generated; please report it with the text shown."""


def explained(text: str, error: RuntimeError) -> str:
    """What LLVM says, and the text with the numbers of its lines."""
    lines = text.splitlines()
    numbered = "\n".join(f"{i + 2:5} {line}" for i, line in enumerate(lines[:400]))
    return f"internal error: LLVM refused generated code: {error}\n{numbered}"
