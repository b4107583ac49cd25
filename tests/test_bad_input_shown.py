"""Wrong programs as the terminal shows them, and those whose source nobody has."""

from __future__ import annotations

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


def test_without_source_types_are_python_s_too() -> None:
    scope: dict[str, Any] = {"np": np}
    exec(compile("def f(x):\n    return x + None\n", "<typed in>", "exec"), scope)
    assert "at <typed in>:2 in f" in str(failure(scope["f"], X))


UNREADABLE = "def f(x):\n    match x.shape:\n        case (n, *_):\n            return x + n\n"


@pytest.mark.parametrize("jitted", [lambda f: f, lambda f: lambda x: f(x) * 2])
def test_what_has_no_source_and_cannot_be_rebuilt_is_refused(jitted: Any) -> None:
    scope: dict[str, Any] = {"np": np}
    exec(compile(UNREADABLE, "<typed in>", "exec"), scope)
    shown = str(failure(jitted(scope["f"]), X))
    assert shown.startswith("'f' has no source: its code was compiled from text (<typed in>)")
    assert "cure: put the function in a file or in a notebook's cell" in shown
    assert 'fallback="eager"' in shown
