"""A graph that was read in does not show other programs' data in memory:
unwritten items are zeros, or those of the interpreter."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

import fusec

LEFT = 123.25


def leave_behind(count: int) -> None:
    """Fill memory that is free afterwards."""
    arrays = [np.full(count, LEFT) for _ in range(40)]
    del arrays


def test_a_loop_that_writes_less_than_it_reserved() -> None:
    def looped(x: Any) -> Any:
        s = x.sum()
        for i in range(30):
            s = np.sin(s) * x[i % 3]
        return s

    text = str(fusec.jit(fusec.value_and_grad(looped)).trace(np.ones(3)).graph)
    assert "Reserve" in text
    trips = re.search(r"%(Const_\d+) = Const \{value=30\} : i64~", text)
    zero = re.search(r"%(Const_\d+) = Const \{value=f64\(0\.0\)\} : f64", text)
    assert trips is not None and zero is not None
    hostile = text.replace(trips.group(), trips.group().replace("30", "1"))
    hostile = re.sub(
        r"\n  return ([^\n]*)\n\}\s*$",
        rf"\n  %Tape = Add(%Loop_1:3, %{zero[1]}) : f64[30]\n  return \1, %Tape\n}}\n", hostile)
    hostile = hostile.replace("f64[30]", "f64[3000]").replace("shape=(30,)", "shape=(3000,)")
    function = fusec.admit(hostile).function()
    for _ in range(5):
        leave_behind(3000)
        tape = function(np.ones(3))[-1]
        assert tape.shape == (3000,) and not tape[1:].any()


def test_a_kernel_that_reads_what_nobody_wrote() -> None:
    function = fusec.admit("""graph f(x: f64[0]) {
  %a = Reserve(%x) {shape=(300,)} : f64[300]
  %b = Add(%a, %a) : f64[300]
  return %b
}""").function()
    leave_behind(300)
    np.testing.assert_array_equal(function(np.zeros(0)), np.zeros(300))
