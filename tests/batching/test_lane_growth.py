"""How the work of a first call grows with a lane's branches in branches."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.passes.batching import masks


def returns(path: Path, count: int) -> Callable[..., Any]:
    """A function of so many early returns, each in the other side of the one before."""
    lines = [f"    if x < {k}:\n        return x * {k} + 1.5" for k in range(count)]
    source = "\n".join(["def f(x):", *lines, "    return x"])
    file = path / f"returns_{count}.py"
    file.write_text(source)
    scope: dict[str, Any] = {}
    exec(compile(source, str(file), "exec"), scope)
    f: Callable[..., Any] = scope["f"]
    return f


def test_early_returns_are_looked_at_once_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = 0
    is_pure = masks._is_pure

    def counted(node: Any) -> bool:
        nonlocal seen
        seen += 1
        return is_pure(node)

    monkeypatch.setattr(masks, "_is_pure", counted)
    x, counts = np.linspace(-1.0, 130.0, 9), []
    for count in (30, 60):
        f, seen = returns(tmp_path, count), 0
        np.testing.assert_array_equal(fusec.vmap(f)(x), [f(v) for v in x])
        counts.append(seen)
    assert 0 < counts[1] < 3 * counts[0]
