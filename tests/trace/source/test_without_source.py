"""300 small functions with source, from standard input and through `exec`: as NumPy's, or refused;
and messages where there is no source."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import small_programs

import fusec

WAYS = {  # how the text is run, how many of the programs must run compiled
    "file": (lambda file: ([str(file)], None), 294),
    "file on standard input": (lambda file: (["-"], file), 294),
    "pipe on standard input": (lambda file: (["-"], "pipe"), 245),
    "-c": (lambda file: (["-c", f"exec(open({str(file)!r}).read())"], None), 245),
}


@pytest.mark.repeats
@pytest.mark.parametrize("way", WAYS)
def test_300_small_functions_are_numpys_or_refused(way, tmp_path):
    text = small_programs.script()
    file = tmp_path / "programs.py"
    file.write_text(text)
    (arguments, given), least = WAYS[way][0](file), WAYS[way][1]
    with open(file) as opened:
        given = {"input": text} if given == "pipe" else {"stdin": opened} if given else {}
        done = subprocess.run(
            [sys.executable, *arguments], capture_output=True, text=True, **given)
    assert done.returncode == 0, done.stderr
    *wrong, summary = done.stdout.splitlines()
    assert not wrong, "\n".join(wrong)
    same, refused, count = map(int, summary.split())
    assert same + refused == count >= 300
    assert same >= least


def _made(text, name="f"):
    space = {"np": np, "fusec": fusec, "__name__": "__main__"}
    exec(text, space)
    return space[name]


def test_the_text_of_a_command_is_source():
    text = ("import numpy as np, fusec\n"
            "def f(x):\n"
            "    with np.errstate(all='ignore'):\n"
            "        return x / 0 + np.ones(9)\n"
            "fusec.jit(f)(np.ones(2))\n")
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert "at <string>:4 in f" in done.stderr
    assert "could not be broadcast" in done.stderr


def test_print_keeps_its_warning():
    f = _made("def f(x):\n    print('traced')\n    return x * 2\n")
    with pytest.warns(fusec.SideEffectWarning, match="print happens while f is traced"):
        fusec.jit(f)(np.ones(2))


def test_a_refusal_names_the_cures_and_leaves_nothing_behind():
    space = {"np": np, "kept": []}
    exec("def helper(x):\n"
         "    kept.append(x)\n"
         "    match x.shape:\n"
         "        case (n,): return x + n\n"
         "def f(x):\n"
         "    kept.append(x)\n"
         "    return helper(x)\n", space)
    with pytest.raises(fusec.FusecError) as caught:
        fusec.jit(space["f"])(np.ones(2))
    shown = str(caught.value)
    assert "'helper' has no source" in shown and "at <string>:7 in f" in shown
    assert "put the function in a file or in a notebook's cell" in shown
    assert space["kept"] == []
