"""Wrong programs as the terminal shows them, and those whose source nobody has."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_bad_input import X, failure

# --- as the terminal shows it -------------------------------------------------------------------

PROGRAM = """\
import numpy as np
import fusec

def scale(x, w):
    return x * w

@fusec.jit
def f(x):
    return scale(x, np.ones(7))

f(np.ones((3, 4)))
"""


def test_the_whole_traceback(tmp_path: Path) -> None:
    path = tmp_path / "prog.py"
    path.write_text(PROGRAM)
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True)
    lines = [line.rstrip() for line in done.stderr.replace(str(path), "prog.py").splitlines()
             if not set(line.strip()) <= set("^~")]
    assert lines == """\
Traceback (most recent call last):
  File "prog.py", line 11, in <module>
    f(np.ones((3, 4)))
  File "prog.py", line 9, in f
    return scale(x, np.ones(7))
  File "prog.py", line 5, in scale
    return x * w
fusec.errors.FusecValueError: operands could not be broadcast together with shapes (3,4) (7,)
  left:  f64[3,4], argument x
  right: f64[7], from `np.ones(7)` (prog.py:9)
  cure: make the shapes equal from the right, or insert axes of length 1 with np.newaxis
  at prog.py:5 in scale
    return x * w""".splitlines()


def test_without_source_the_line_is_still_known() -> None:
    scope: dict[str, Any] = {"np": np}
    exec(compile("def f(x):\n    y = x + 1\n    return y + np.ones(9)\n", "<typed in>", "exec"),
         scope)
    shown = str(failure(scope["f"], X))
    assert "at <typed in>:3 in f" in shown and "f64[3,4], made at <typed in>:2" in shown


@pytest.mark.parametrize(("body", "words"), [
    ("return np.full(3, x.sum())", "an ndarray is needed"),
    ("return float(x.sum())", "a float is needed"),
    ("return x + None", "at <typed in>:2 in f"),
])
def test_without_source_conversions_name_the_cause(body: str, words: str) -> None:
    scope: dict[str, Any] = {"np": np}
    exec(compile(f"def f(x):\n    {body}\n", "<typed in>", "exec"), scope)
    shown = str(failure(scope["f"], X))
    assert words in shown
    assert "source is not at hand" in shown or "unsupported operand" in shown


@pytest.mark.parametrize("draw", ["np.random.rand(4)", "random.random()", "rng.normal()"])
def test_without_source_random_numbers_are_not_frozen(draw: str) -> None:
    scope: dict[str, Any] = {"np": np, "random": random, "rng": np.random.default_rng(0)}
    exec(compile(f"def f(x):\n    return x + {draw}\n", "<typed in>", "exec"), scope)
    shown = str(failure(scope["f"], X))
    assert shown.startswith("drawing random numbers is not supported")
    assert "at <typed in>:1 in f" in shown


def test_without_source_a_helpers_generator_is_not_frozen() -> None:
    scope: dict[str, Any] = {"rng": np.random.default_rng(0)}
    exec(compile("def helper(x):\n    return x + rng.normal()\n", "<typed in>", "exec"), scope)
    helper = scope["helper"]
    shown = str(failure(lambda x: helper(x) * 2, X))
    assert shown.startswith("drawing random numbers is not supported")
