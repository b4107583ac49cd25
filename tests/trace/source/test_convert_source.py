"""The source converter: finding source, refusing functions without, the cache and its cost."""

from __future__ import annotations

import ast
import gc
import linecache
import subprocess
import sys
import time

import numpy as np
import pytest

import fusec
from fusec.errors import FusecError
from fusec.trace.convert import cache as cache_module
from fusec.trace.convert.cache import convert, converted_code
from fusec.trace.convert.constructs import check_supported
from fusec.trace.convert.hooks import Hooks
from fusec.trace.source import source
from fusec.trace.source.errors import SourceUnavailable, UnsupportedConstruct
from fusec.trace.source.source import find_source

# -- lambdas --------------------------------------------------------------------------------------


def test_each_lambda_of_a_line_is_found():
    fs = [lambda x: x + 1, lambda x: x - 1, lambda x: lambda x: x, lambda y: y + 1, lambda x: "é"]
    found = [ast.unparse(_source(f).node.body) for f in fs]
    assert found == ["x + 1", "x - 1", "lambda x: x", "y + 1", "'é'"]
    assert ast.unparse(_source(fs[2](0)).node) == "lambda x: x"


def test_lambdas_of_a_line_are_told_apart_without_columns(tmp_path):
    file = tmp_path / "bare.py"
    file.write_text(
        "from fusec.trace.convert.cache import convert\n"
        "from fusec.trace.convert.hooks import Hooks\n"
        "k = 3\n"
        "fs = [lambda x: x + 1, lambda x: x - 1, lambda x: k, lambda: (lambda x: 7), lambda x: 8]\n"
        "print([convert(f, Hooks())(5) for f in (*fs[:3], fs[3](), fs[4])])\n"
    )
    command = [sys.executable, "-X", "no_debug_ranges", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "[6, 4, 3, 7, 8]\n"


TABLE = [
    pytest.param(lambda x: x + 1,
                 id="one"),
    pytest.param(lambda x: x + 2, id="two"),
]


def test_a_text_is_read_once_for_lambdas_in_a_table(monkeypatch):
    read = []
    parse = source._parse_file
    monkeypatch.setattr(source, "_parse_file", lambda lines: read.append(1) or parse(lines))
    functions = [row.values[0] for row in TABLE]
    found = [find_source(f.__code__, globals()).node for f in functions * 2]
    assert [ast.unparse(node.body) for node in found] == ["x + 1", "x + 2"] * 2
    assert len(read) <= 1 and found[0] is not found[2]  # who rewrites one does not rewrite all


def _source(fn):
    return find_source(fn.__code__, fn.__globals__)


# -- refusals -------------------------------------------------------------------------------------


def generator(x):
    y = x + 1
    yield y


async def coroutine(x):
    return x


def nested_generator(x):
    def inner():
        yield from x

    return list(inner())


def generator_expression(x):
    return sum(v for v in x)


@pytest.mark.parametrize(
    ("fn", "construct", "offset"),
    [(generator, "'yield'", 2), (coroutine, "'async def'", 0)],
)
def test_generators_and_coroutines_are_refused_at_their_line(fn, construct, offset):
    refusing = [check_supported, lambda f: convert(f, Hooks())]
    for refuse in refusing[: 1 if fn is generator else 2]:
        with pytest.raises(UnsupportedConstruct) as info:
            refuse(fn)
        line = fn.__code__.co_firstlineno + offset
        assert info.value.construct == construct
        assert (info.value.loc.file, info.value.loc.line) == (__file__, line)
        assert "cure:" in str(info.value)
        assert f"{__file__}:{line}" in str(info.value)
    assert isinstance(info.value, FusecError)
    assert isinstance(info.value, NotImplementedError)


def test_what_is_no_generator_passes():
    check_supported(generator_expression)
    check_supported(np.sin)
    assert convert(generator_expression, Hooks())([1, 2]) == 3
    assert convert(nested_generator, Hooks())([1, 2]) == [1, 2]
    assert list(convert(generator, Hooks())(2)) == [3]


def _counting():
    count = 0

    def inner():  # the name of a generator in `nested_generator`
        nonlocal count
        count += 1

    inner()
    return count


def test_a_nested_function_of_the_same_name_has_nonlocal_variables():
    assert _counting() == 1
    assert fusec.jit(lambda x: sum(nested_generator([x, 2 * x])))(2.0) == 6.0


MATCH = "def f(x):\n    match x:\n        case (a, *b): return a\n"


def test_missing_source_says_why():
    space: dict = {}
    exec(MATCH, space)
    with pytest.raises(SourceUnavailable, match=r"'f' has no source.*<string>.*exec"):
        convert(space["f"], Hooks())
    with pytest.raises(SourceUnavailable, match="not a Python function"):
        convert(np.sin, Hooks())
    exec(compile(MATCH, "/nowhere/gone.py", "exec"), space)
    with pytest.raises(SourceUnavailable, match=r"'/nowhere/gone\.py' cannot be read"):
        convert(space["f"], Hooks())


def _load(path, text):
    path.write_text(text)
    space = {"__name__": "user_module"}
    exec(compile(text, str(path), "exec"), space)
    return space


def test_source_edited_after_the_import_is_not_used(tmp_path):
    file = tmp_path / "edited.py"
    text = "def f(x):\n    return x + 1\n\ndef g(x):\n    return x + 2\n\n"
    text += MATCH.replace("f(", "h(")
    space = _load(file, text)
    file.write_text(text.replace("x + 1", "x + 3").replace("def g", "\ndef g").replace(
        "return a", "return x"))
    linecache.clearcache()
    assert convert(space["f"], Hooks())(1) == 2  # from the bytecode
    hooks = Hooks()
    assert convert(space["g"], hooks)(1) == 3  # only its lines are others
    assert hooks.where[1] == 6
    with pytest.raises(SourceUnavailable, match="has changed since it was imported"):
        convert(space["h"], hooks)


def test_a_notebook_cell_is_source(tmp_path):
    name, text = "<ipython-input-7-abc>", "k = 3\ndef cell(x):\n    return x * k\n"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space: dict = {"__name__": "__main__"}
    exec(compile(text, name, "exec"), space)
    hooks = Hooks()
    assert convert(space["cell"], hooks)(2) == 6
    assert hooks.where == (name, 3, 11, "cell", 16)
    del linecache.cache[name]


@pytest.mark.parametrize("text", [
    "class A:\n\n    def f(self):\n        s = '''\nnot indented'''\n        return s\n    k = 1\n",
    "class A:\n\tdef f(self):\n\t\treturn 2\n\t\tif 0:\n\t\t\ty = '''\nx'''\n\tk = 2\n",
    "class A:\n    @property\n    # why\n    def f(self): return (1,\n2)\n    f = f.fget\n",
    "class A:\n    f = lambda self: (\n  3 +\n 4)\n",
    "import math\nclass A:\n    def f(self): return math.floor(2.5)",
    "class A:\n    def f(self):\n        'docstring'\n\n    # comment\n    def g(self): pass\n",
    "class _A:\n    def f(self):\n        self.__x = 1\n        return vars(self)\nA = _A\n",
    "class A:\n    def f(self): return A.__name__, __name__\n",
])
def test_odd_layouts(tmp_path, text):
    namespace = _load(tmp_path / "odd.py", text)
    obj = namespace["A"]()
    assert convert(obj.f, Hooks())() == obj.f()


# -- the cache and its cost -----------------------------------------------------------------------


def test_conversion_happens_once_per_code_object(monkeypatch):
    def make(k):
        def f(x):
            return x + k
        return f

    a, b = make(1), make(2)
    first, second = convert(a, Hooks()), convert(b, Hooks())
    assert first.__code__ is second.__code__
    assert (first(1), second(1)) == (2, 3)


def test_the_cache_does_not_keep_functions_alive(tmp_path):
    space = _load(tmp_path / "gone.py", "def f(x):\n    return x + 1\n")
    key = id(space["f"].__code__)
    convert(space["f"], Hooks())
    assert key in cache_module._codes
    space.clear()
    gc.collect()
    assert key not in cache_module._codes


def _best(function):
    """Seconds of the fastest of a few runs, of this process alone."""
    times = []
    for _ in range(7):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times)


def test_converting_takes_little_more_than_compiling(tmp_path):
    body = "".join(f"    x[{i}] = np.sin(x[{i}:] + y * {i}.5).sum() / (a if y > 0 else -a)\n"
                   for i in range(30))
    text = f"import numpy as np\ndef f(x, y, a):\n{body}    return x"
    space = _load(tmp_path / "long.py", text)
    code = space["f"].__code__

    def anew():
        cache_module._codes.pop(id(code), None)
        converted_code(code, space)

    # Measured: 21 times. There are ten hooks a line, and the result is compiled too.
    assert _best(anew) < 60 * _best(lambda: compile(text, "long.py", "exec"))
