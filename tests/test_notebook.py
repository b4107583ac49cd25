"""In notebooks: reports as HTML, ``%load_ext fusec`` and ``%%fusec``."""

from __future__ import annotations

import linecache
import subprocess
import sys
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest

import fusec
from fusec.core.display.notebook import escape, table


class Balanced(HTMLParser):
    """Checks that each tag is closed; collects the text."""

    def __init__(self):
        super().__init__()
        self.open, self.text = [], ""

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def text_of(html):
    parser = Balanced()
    parser.feed(html)
    assert not parser.open
    return parser.text


class Shell:
    """The part of IPython's shell that the extension uses."""

    def __init__(self):
        self.user_ns, self.magics, self.count = {"np": np, "fusec": fusec}, {}, 0

    def register_magic_function(self, function, magic_kind, magic_name):
        self.magics[magic_kind, magic_name] = function

    def run_cell(self, cell):
        self.count += 1
        name = f"<cell {self.count}>"
        linecache.cache[name] = len(cell), None, cell.splitlines(True), name
        try:
            exec(compile(cell, name, "exec"), self.user_ns)
        except Exception:
            return SimpleNamespace(success=False)
        return SimpleNamespace(success=True)


@pytest.fixture
def shell():
    made = Shell()
    fusec.load_ipython_extension(made)
    return made


CELL = """
@fusec.jit
def scaled(x, k=2.0):
    return np.exp(-x) * k < 0.5

@fusec.jit
def unused(x):
    return x

small = scaled(np.arange(100.0))
smaller = scaled(np.arange(50.0), k=3.0)
"""


def test_the_cell_magic_times_each_jitted_function_of_the_cell(shell):
    found = shell.magics["cell", "fusec"]("0.05", CELL)
    report, = found.reports
    assert report.name == "scaled"
    assert report.equality.equal
    assert shell.user_ns["small"].shape == (100,)  # names stay, as with %%time
    assert shell.user_ns["smaller"].shape == (50,)
    assert "fusec is" in str(found) or "NumPy is" in str(found) or "No measurable" in str(found)
    assert "scaled" in text_of(found._repr_html_())
    assert fusec.Function.__call__.__module__ == "fusec.dispatch.function"


def test_a_cell_without_jitted_calls_or_with_an_error(shell):
    magic = shell.magics["cell", "fusec"]
    assert "no jitted function was called" in str(magic("", "x = 1"))
    assert "no jitted function was called" in text_of(magic("", "x = 1")._repr_html_())
    assert magic("", "1 / 0") is None
    assert fusec.Function.__call__.__module__ == "fusec.dispatch.function"


def test_reports_have_html_and_text():
    @fusec.jit
    def f(x):
        return np.where(x < 1, x, 2 & 3)

    x = np.linspace(0, 2, 1000)
    f(x)
    shown = [fusec.explain(f, x), fusec.benchmark(f, x, time_budget_s=0.05), fusec.history()]
    for report in shown:
        bundle = report._repr_mimebundle_()
        assert bundle == {"text/plain": str(report), "text/html": report._repr_html_()}
        assert text_of(bundle["text/html"]).strip()
    explained, measured, launches = (text_of(r._repr_html_()) for r in shown)
    assert "f: 1 kernel" in explained and "plan" in explained
    assert shown[1].verdict in measured and "compiled, " in measured
    assert "build ms" in launches


def test_markup_in_what_is_shown_is_escaped():
    assert escape('<a href="x">&') == "&lt;a href=&quot;x&quot;&gt;&amp;"
    assert text_of(table(["<b>"], [["<i>"]], [True])) == "<b><i>"


def test_dir_lists_public_names_only():
    assert dir(fusec) == sorted(fusec.__all__)
    assert all(hasattr(fusec, name) for name in dir(fusec))


@pytest.mark.parametrize(("arguments", "said"), [
    ([], 'work(x, rate, *, k=1): what becomes of it depends on its arguments'),
    (["--args", "1"], "with --args '1' missing a required argument: 'rate'"),
])
def test_explain_says_what_to_give(arguments, said, tmp_path):
    (tmp_path / "prog.py").write_text("def work(x, rate, *, k=1):\n    return x * rate\n")
    command = [sys.executable, "-m", "fusec", "explain", "prog:work", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert '--args "np.ones(1000), np.ones(1000)"' in done.stderr


def test_lines_of_a_cell_are_named_as_ipython_names_them(monkeypatch):
    title = {"/tmp/ipykernel_1/77.py": ("Cell", "In[3]")}
    shell = SimpleNamespace(compile=SimpleNamespace(format_code_name=title.get))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    text = "@fusec.jit\ndef f(x):\n    y = x[:-1] + x[1:]\n    return np.exp(y).sum(axis=2)\n"
    linecache.cache["/tmp/ipykernel_1/77.py"] = len(text), None, text.splitlines(True), "77"
    scope = {"np": np, "fusec": fusec}
    exec(compile(text.replace("axis=2", "axis=0"), "/tmp/ipykernel_1/77.py", "exec"), scope)
    scope["f"](np.arange(4.0))
    assert "Cell In[3]:3-4" in text_of(scope["f"]._repr_html_())
    assert "Cell In[3]:3-4" in str(fusec.explain(scope["f"], np.arange(4.0)))
    exec(compile(text, "/tmp/ipykernel_1/77.py", "exec"), scope)
    with pytest.raises(np.exceptions.AxisError, match=r"at Cell In\[3\]:4 in f"):
        scope["f"](np.arange(4.0))
    assert str(fusec.core.locations.Loc("prog.py", 3)) == "prog.py:3"


class OnlyShell:
    """Answers as IPython does, whose classes keep the one object that there is."""

    instance = None
    compile = SimpleNamespace(format_code_name=lambda file: ("Cell", "In[3]"))

    @classmethod
    def get_ipython(cls):
        cls.instance = cls.instance or cls()
        return cls.instance


class HashedByName:
    """A class with code of its own: where it is met, calls of the rest of a trace are watched."""

    def __init__(self, name):
        self.name = name

    def __hash__(self):
        return hash(self.name)


def steps_of(x, k):
    n = 0
    while n < k:
        n += 1
    return x * n + len({HashedByName('a')})


def test_what_ipython_runs_for_the_name_of_a_cell_is_not_the_program_s(monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", OnlyShell)
    asked = OnlyShell.get_ipython
    counts = []
    monkeypatch.setattr(OnlyShell, "get_ipython", lambda: (counts.append(1), asked())[1])
    x = np.arange(3.0)
    found = fusec.jit(lambda x: fusec.vmap(steps_of)(x, np.arange(3)))(x)
    np.testing.assert_array_equal(found, [1.0, 2.0, 5.0])
    assert counts
