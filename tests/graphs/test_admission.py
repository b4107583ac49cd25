"""Graphs that are read in: real ones come back as they were, hostile ones are refused.

More of the same: `hostile_graphs.outcome(mutated(text, random.Random(n)))` for any n.
"""

from __future__ import annotations

import functools
import json
import random
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hostile_graphs import argument, mutated, outcome
from real_graphs import real_graphs

import fusec
from fusec.errors import FusecError, UnsupportedError
from fusec.ir import Graph
from fusec.ir.text.compare import assert_same_graph
from fusec.ops import all_ops, get
from fusec.ops.graphs.admit import Limits, NotAdmittedError, admit
from fusec.ops.graphs.evaluate import evaluate
from tests.programs.corpus import programs

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
LOCAL = ("HostCall", "ScalarCall")  # they call objects of the program


@functools.cache
def seeds() -> list[str]:
    return [g.to_json() for _, g in real_graphs(1) if not g.ops & {*LOCAL}]


def graph(body: str, parameters: str = "x: f64[3]") -> str:
    return f"graph main({parameters}) {{\n{body}\n}}"


# ------------------------------------------------------------------------------------ real graphs


def test_every_row_says_what_is_admitted() -> None:
    assert [row.name for row in all_ops() if row.admits is None] == []
    refused = {row.name for row in all_ops() if row.admits.refused}
    assert refused == {"Fused", "Fold", "NumPy", "Verify", "Send", "Recv", "Fence",
                       *LOCAL}


def test_real_graphs_come_back() -> None:
    """Both forms, of graphs of every row; claims and indices that need checks aside."""
    count = 0
    for name, found in real_graphs(1):
        if found.ops & {*LOCAL}:
            continue
        again, text = admit(found.to_json()), admit(str(found))
        assert again.to_json() == text.to_json(), name
        assert admit(again.to_json()).to_json() == again.to_json(), name
        if not {"Pick", "PickUpdate", "Gather", "Scatter"} & found.ops:
            assert_same_graph(again, found)
        count += 1
    assert count > 200


def test_it_computes_the_same_in_another_process(tmp_path: Path) -> None:
    @fusec.jit
    def f(x, y):
        total = np.exp(-x) * y
        for i in range(200):
            if total[i % 3] > 0.5:
                total[i % 3] *= 0.9
        return total, total.sum()

    x, y = np.linspace(0.0, 1.0, 3), np.array([4.0, 5.0, 6.0])
    expected = f(x, y)
    path = tmp_path / "graph.json"
    path.write_text(f.concrete(x, y).graph.to_json())
    program = f"""
import numpy as np, fusec
f = fusec.admit(open({str(path)!r}).read()).function()
a, b = f(np.linspace(0.0, 1.0, 3), y=np.array([4.0, 5.0, 6.0]))
print(a.tobytes().hex(), b.tobytes().hex())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [part.tobytes().hex() for part in expected]


def test_what_cannot_travel_says_so_with_its_line() -> None:
    rng = np.random.default_rng(0)

    @fusec.jit
    def f(x):
        return x + rng.normal()

    with pytest.raises(UnsupportedError, match="an object of this program") as caught:
        f.concrete(np.ones(3)).graph.to_json()
    assert "rng.normal()" in str(caught.value)


def test_claims_are_dropped() -> None:
    text = graph('  %i = Slice(%k) {starts=(0,), steps=(1,), sizes=(1,)} : i64[1]\n'
                 '  %j = Squeeze(%i) {axes=(0,), kind="scalar"} : i64\n'
                 '  %p = Pick(%x, %j) {axes=(0,), safe=(0,), unchecked=True, kind="scalar"} : f64\n'
                 '  return %p', "x: f64[3], k: i64[1]")
    admitted = admit(text)
    assert dict(admitted["p"].attrs) == {"axes": (0,), "safe": (), "kind": "scalar"}
    with pytest.raises(IndexError):
        admitted.function()(np.arange(3.0), np.array([100]))


def test_indices_that_are_not_proven_are_checked() -> None:
    text = graph('  %g = Gather(%x, %i) {axes=(0,), at=0} : f64[2]\n'
                 '  return %g', "x: f64[3], i: i64[2]")
    function = admit(text).function()
    np.testing.assert_array_equal(function(np.arange(3.0), np.array([2, -1])), [2.0, 2.0])
    with pytest.raises(IndexError, match="index 9 is out of bounds for axis 0 with size 3"):
        function(np.arange(3.0), np.array([0, 9]))


def test_a_result_of_a_library_that_is_not_as_claimed() -> None:
    """It is refused where something needs it, and not in the way of NumPy's error."""
    text = graph('  %c = Compress(%m, %x) {form=("tuple", ("operand", 0), ("operand", 1)), '
                 'named=("tuple",), results=(type(f64[2]),)} : f64[2]\n'
                 '  %g = Gather(%x, %i) {axes=(0,), at=0} : f64[2]\n'
                 '  return %g', "x: f64[3], m: bool[3], i: i64[2]")
    x, m, indices = np.arange(3.0), np.ones(3, bool), np.array([0, 9])
    with pytest.raises(IndexError, match="index 9 is out of bounds"):
        admit(text).function()(x, m, indices)
    needed = admit(text.replace("return %g", "return %c"))
    for function in (needed.function(), lambda *args: evaluate(needed, args)):
        with pytest.raises(UnsupportedError, match="a result of Compress"):
            function(x, m, indices)


def test_places_in_the_source_are_words() -> None:
    """A message never opens the file that a graph names."""
    text = graph("  %s = Sqrt(%x) : f64[3]  # /dev/zero:3:0-4 in f\n  return %s")
    (node,) = (n for n in admit(text).nodes if n.op == "Sqrt")
    assert str(node.loc) == "</dev/zero>:3" and node.loc.col == -1


# ---------------------------------------------------------------------------------- hostile graphs

ATTACKS = {
    "a function that is no array function": (
        '  %a = Numpy(%x) {form=("tuple", "f2py.os.system", "touch FILE"), named=("tuple",), '
        'results=(type(i64~),)} : i64~\n  return %a', "not among the functions"),
    "a method that writes a file": (
        '  %a = Method(%x) {form=("tuple", "dump", ("operand", 0), "FILE"), named=("tuple",), '
        'results=(type(i64~),)} : i64~\n  return %a', "not among the functions"),
    "a function of SciPy that reads files": (
        '  %a = Scipy(%x) {form=("tuple", "io.loadmat", "FILE"), named=("tuple",), '
        'results=(type(i64~),)} : i64~\n  return %a', "not among the functions"),
    "a wrapper of LAPACK": (
        '  %a = Scipy(%x) {form=("tuple", "linalg.blas.dnrm2", ("operand", 0), 1000000), '
        'named=("tuple",), results=(type(f64~),)} : f64~\n  return %a', "not among the functions"),
    "an attribute that is no ufunc": (
        '  %a = Ufunc(%x) {form=("tuple", "memmap", "__call__", "FILE"), named=("tuple",), '
        'results=(type(f64[3]),)} : f64[3]\n  return %a', "is no ufunc"),
    "out=": (
        '  %a = Cumsum(%x) {form=("tuple", ("operand", 0)), named=("tuple", ("tuple", "out", '
        '("operand", 0))), results=(type(f64[3]),)} : f64[3]\n  return %a', "'out' is not"),
    "out by position": (
        '  %a = Cumsum(%x) {form=("tuple", ("operand", 0), 0, None, ("operand", 0)), '
        'named=("tuple",), results=(type(f64[3]),)} : f64[3]\n  return %a', "'out' is not"),
    "out of a ufunc": (
        '  %a = Ufunc(%x) {form=("tuple", "add", "__call__", ("operand", 0), 1.0, ("operand", 0))'
        ', named=("tuple",), results=(type(f64[3]),)} : f64[3]\n  return %a', "at most 2"),
    "a keyword twice": (
        '  %a = Cumsum(%x) {form=("tuple", ("operand", 0)), named=("tuple", ("tuple", "dtype", f64)'
        ', ("tuple", "dtype", f64)), results=(type(f64[3]),)} : f64[3]\n  return %a', "twice"),
    "a write to an argument": (
        '  %a = Put(%x, %x) {form=("tuple", ("operand", 1), 0, 5.0), named=("tuple",), '
        'results=(type(f64[3]),)} : f64[3]\n  return %a', "does not write to its first operand"),
    "a slice beyond its operand": (
        "  %a = Slice(%x) {starts=(1000,), steps=(1,), sizes=(4,)} : f64[4]\n  return %a",
        "not proven to lie in its length 3"),
    "a slice before it": (
        "  %a = Slice(%x) {starts=(0,), steps=(-1,), sizes=(2,)} : f64[2]\n  return %a",
        "not proven"),
    "a region beyond its target": (
        "  %a = SliceUpdate(%x, %x) {starts=(1,), steps=(1,), sizes=(3,)} : f64[3]\n  return %a",
        "not proven"),
    "a shape of negative sizes": (
        "  %a = Reshape(%x) {shape=(-1, -3)} : f64[3]\n  return %a", "shape is not sizes"),
    "an axis that there is not": ("  %a = Sum(%x) {axes=(7,)} : f64[3]\n  return %a", "axes"),
    "a permutation of one axis": (
        "  %y = BroadcastTo(%x) {shape=(9, 3)} : f64[9,3]\n"
        "  %a = Transpose(%y) {perm=(0, 0)} : f64[9,9]\n  return %a", "not different axes"),
    "bits of another size": (
        "  %a = Reinterpret(%x) {dtype=u8} : u8[3]\n  return %a", "the bits of float64"),
    "an extremum of nothing": (
        "  %y = Slice(%x) {starts=(0,), steps=(1,), sizes=(0,)} : f64[0]\n"
        "  %a = Max(%y) {axes=(0,)} : f64\n  return %a", "of nothing"),
    "a wrong type": ("  %a = Exp(%x) : f64[4]\n  return %a", "by the rule of Exp it is f64[3]"),
    "a dtype that NumPy gives otherwise": (
        "  %i = Cast(%x) {dtype=i64} : i64[3]\n  %a = Div(%i, %i) : i64[3]\n  return %a",
        "a Cast is missing"),
    "an op that only passes make": (
        "  %a = Fold(%x) {of=\"Sum\", axes=(0,)} : f64\n  return %a", "made by fusec's own passes"),
    "a product and sum of integers": (
        "  %i = Cast(%x) {dtype=i64} : i64[3]\n  %a = Fma(%i, %i, %i) : i64[3]\n  return %a",
        "Fma does not take"),
    "a product and sum of halves": (
        "  %i = Cast(%x) {dtype=f16} : f16[3]\n  %a = Fma(%i, %i, %i) : f16[3]\n  return %a",
        "Fma does not take"),
    "an attribute that the op has not": (
        "  %a = Exp(%x) {body=1} : f64[3]\n  return %a", "has no attribute 'body'"),
    "more memory than there is": (
        "  %a = Iota {size=1000000000000, dtype=i64} : i64[1000000000000]\n  return %a",
        "more than the"),
    "a size that nothing defines": (
        '  %a = BroadcastTo(%x) {shape=(size("n"), 3)} : f64[n,3]\n  return %a',
        "defines the size"),
    "a size that takes for ever": (
        "  %a = Exp(%x) : f64[" + "(a+b+c+d+e+f+g)*" * 30 + "1]\n  return %a", "expected a type"),
    "an exception that ends the process": (
        '  %c = Const {value=False} : bool~\n'
        '  %a = Check(%c) {error=("SystemExit", (1,))} : bool\n  return %a', "no exception of"),
    "a window that no slice made": (
        '  %f = Const {value=0} : i64~\n  %c = Const {value=900} : i64~\n'
        '  %e:x = Extent {given=(False, False), step=1, limit=3, length="n"} : (i64~, bool[n])\n'
        '  return %f', "no graph"),
    "two updates of one parameter": (
        "  %a = Exp(%x) : f64[3]\n  return\n  update x = %a\n  update x = %a", "twice"),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_attacks_are_refused(name: str, tmp_path: Path) -> None:
    body, message = ATTACKS[name]
    target = tmp_path / "written"
    with pytest.raises(NotAdmittedError, match=re.escape(message)) as caught:
        admit(graph(body.replace("FILE", str(target))))
    assert isinstance(caught.value, FusecError) and isinstance(caught.value, ValueError)
    assert not target.exists()


def test_a_window_is_proven_by_its_extent() -> None:
    """Places of other nodes, or of the extent of a longer axis, are refused."""
    def text(limit: int, first: str) -> str:
        return graph(
            '  %k = Const {value=1} : i64~\n'
            f'  %e = Extent(%k) {{given=(True, False), step=1, limit={limit}, length="n"}} : '
            '(i64~, bool[n])\n'
            '  %s = Size(%e:1) {size=size("n")} : i64~\n'
            f'  %w = Window(%x, {first}, %s) {{axes=(0,), steps=(1,), sizes=(size("n"),)}} : f64[n]'
            '\n  return %w')

    np.testing.assert_array_equal(admit(text(3, "%e")).function()(np.arange(3.0)), [1.0, 2.0])
    for bad in (text(900, "%e"), text(3, "%k")):
        with pytest.raises(NotAdmittedError, match="not proven to lie in the length 3"):
            admit(bad)


def test_a_window_of_known_length_is_checked_where_it_begins() -> None:
    text = graph(
        '  %c = Const {value=2} : i64~\n'
        '  %w = Window(%x, %first, %c) {axes=(0,), steps=(1,), sizes=(2,)} : f64[2]\n'
        '  return %w', "x: f64[3], first: i64")
    function = admit(text).function()
    np.testing.assert_array_equal(function(np.arange(3.0), 1), [1.0, 2.0])
    with pytest.raises(IndexError):
        function(np.arange(3.0), 2)
    with pytest.raises(NotAdmittedError, match="does not fit the length 3"):
        admit(text.replace("=2}", "=9}").replace("(2,)", "(9,)").replace("[2]", "[9]"))


def test_slices_are_proven_case_by_case() -> None:
    text = ('graph main(x: f64[n]) {\n'
            '  %s = Slice(%x) {starts=(size("min(n,1)"),), steps=(1,), sizes=(size("max(n-1,0)"),)}'
            ' : f64[max(n-1,0)]\n  return %s\n}')
    admit(text)
    for bad in (text.replace("min(n,1)", "min(n,2)"), text.replace("max(n-1,0)", "n")):
        with pytest.raises(NotAdmittedError, match="not proven to lie in its length"):
            admit(bad)


@pytest.mark.parametrize("name", [
    "convolution_layer", "csr_transpose", "bilateral_filter", "longstaff_schwartz", "cholesky"])
def test_programs_of_the_corpus_travel(name: str) -> None:
    """Their native loops stay native, and give the same."""
    program = next(p for p in programs() if p.name == name)
    concrete = fusec.jit(program.function).concrete(*program.inputs(program.small))
    function = admit(concrete.graph.to_json()).function()
    given = [argument(v.type, np.random.default_rng(0)) for v in function.graph.inputs]
    there = [argument(v.type, np.random.default_rng(0)) for v in function.graph.inputs]
    found, expected = _answer(function, given), _answer(concrete.graph.function(), there)
    np.testing.assert_equal(found, expected)
    np.testing.assert_equal(given, there)
    native = [step.run.is_native for step in function._compiled().call_plan.externs
              if step.run is not None]
    assert native == [control.is_native for control in concrete.control]


def _answer(function, given):
    try:
        return function(*given)
    except Exception as error:
        return type(error), error.args


@pytest.mark.parametrize("text", [
    "", "{", "[]", "{}", '{"format": "fusec graph"}', "graph", "graph main(", "(" * 5000,
    "graph main() { return " + "%" * 500, '{"format": "fusec graph", "version": 2}',
    '{"a":' * 5000, "graph main(x: f64[3]) {\n  %a = Exp(%x) {a=" + "(" * 5000,
    "graph main(x: f64[" + "9" * 5000 + "]) {\n  return %x\n}",
    "graph main(x: f64[3]) {\n  %a = Const {value=i8(1e400)} : i8\n  return %a\n}",
    "graph main(x: f64[n//m]) {\n  return %x\n}", "\0", "graph main(x: f64[3]) {return %x:7}",
], ids=lambda text: text[:24])
def test_what_is_no_graph(text: str) -> None:
    with pytest.raises(NotAdmittedError):
        admit(text)


def test_what_is_no_text() -> None:
    with pytest.raises(NotAdmittedError, match="a bytes is no graph"):
        admit(b"graph")


def test_limits() -> None:
    text = graph("\n".join(f"  %a{i} = Exp(%x) : f64[3]" for i in range(20)) + "\n  return %a0")
    assert len(admit(text).nodes) == 21
    with pytest.raises(NotAdmittedError, match="more than 10 nodes"):
        admit(text, Limits(nodes=10))
    with pytest.raises(NotAdmittedError, match="more than the 16 of this machine"):
        admit(text, Limits(value_bytes=16))


@pytest.mark.parametrize("part", range(8))
def test_mutated_graphs(part: int) -> None:
    """A refusal of fusec's, or the interpreter's result; a hang would end the test."""
    found = []
    for number in range(60 * part, 60 * part + 60):
        rng = random.Random(number)
        text = rng.choice(seeds())
        start = time.perf_counter()
        with _at_most(60):
            found.append(outcome(mutated(text, rng), number))
        assert time.perf_counter() - start < 60
    assert {"refused", "right"} <= set(found)


class _Hang(BaseException):
    """Nobody takes it for an exception of the graph's own."""


class _at_most:
    """An error after so many seconds, where there are such signals."""

    def __init__(self, seconds: int) -> None:
        self.seconds = seconds

    def __enter__(self) -> None:
        if hasattr(signal, "SIGALRM"):
            self.before = signal.signal(signal.SIGALRM, _ring)
            signal.alarm(self.seconds)

    def __exit__(self, *error: object) -> None:
        if hasattr(signal, "SIGALRM"):
            signal.alarm(0)
            signal.signal(signal.SIGALRM, self.before)


def _ring(number: int, frame: object) -> None:
    raise _Hang("a hostile graph takes too long")


def test_a_wrong_type_of_a_library_call_is_no_defect_of_ours() -> None:
    """In a branch it was called one: a library's result is compared with the type in the text."""
    text = graph('''  %s = Sum(%x) {axes=(0,)} : f64
  %zero = Const {value=f64(0.0)} : f64
  %t = Greater(%s, %zero) : bool
  %c = Cond(%t, %x, %i) {then=graph then(x: f64[3], i: i64[2]) {
    %a = Sort(%i) {FORM, results=(type(f64[3]),)} : f64[3]
    return %a
  }, orelse=graph orelse(x: f64[3], i: i64[2]) {
    %b = Exp(%x) : f64[3]
    return %b
  }, changed=0} : f64[3]
  return %c'''.replace("FORM", 'form=("tuple", ("operand", 0)), named=("tuple",)'),
                 "x: f64[3], i: i64[2]")
    with pytest.raises(UnsupportedError, match=r"of a result of .* depends on the data"):
        admit(text).function()(np.ones(3), np.array([2, 1]))


def test_tests_of_branches_and_loops_are_one_bool() -> None:
    """LLVM refused the code of others."""
    def program(x):
        for k in range(40):
            x[k % 2] += k
        return x * 2 if x.sum() > 3 else x

    text = fusec.jit(program).concrete(np.ones(4)).graph.to_json()
    form = json.loads(text)
    control = {node["op"]: node for node in form["nodes"] if node["op"] in ("Loop", "Cond")}
    admit(text)
    assert set(control) == {"Loop", "Cond"}
    test = control["Loop"]["attrs"]["test"]["graph"]
    test["outputs"] = [f"{next(n['name'] for n in test['nodes'] if n['op'] == 'Const')}:0"]
    with pytest.raises(ValueError, match="its test does not give one bool"):
        admit(json.dumps(form))
    form = json.loads(text)
    cond = next(node for node in form["nodes"] if node["op"] == "Cond")
    cond["inputs"][0] = next(f"{n['name']}:0" for n in form["nodes"] if n["op"] == "Const")
    with pytest.raises(ValueError, match=r"its test is .*, not one bool"):
        admit(json.dumps(form))


def test_a_loop_without_end_is_ended_by_its_timeout() -> None:
    text = graph("""
  %t = Const {value=True} : bool~
  %l = Loop(%x) {carried=1, test=graph test(x: f64[3]) {
    %t = Const {value=True} : bool~
    return %t
  }, body=graph body(x: f64[3]) {
    %y = Sqrt(%x) : f64[3]
    return
    update x = %y
  }} : f64[3]
  return %l""")
    function = admit(text).function()
    with pytest.raises(TimeoutError, match="did not end within"):
        function.run(np.ones(3), options=fusec.RunOptions(timeout=0.3))


def test_a_graph_by_hand_is_admitted_too() -> None:
    """`admit` takes graphs, too, and gives the same kind of graph back."""
    made = fusec.jit(lambda x: np.sin(x) + 1).concrete(np.ones(3)).graph
    admitted = admit(made)
    assert isinstance(admitted, Graph) and admitted is not made
    assert get("Sin").admits is not None


def test_results_of_formulas_are_scalars_where_their_operands_are() -> None:
    """As those of all elementwise operations, which they become."""
    text = """graph f(x: f32[4] {{path="x"}}) {{
  %b = Const {{value=f32(0.5)}} : f32
  %a = Const {{value=f32(2.0)}} : f32[]
  %e = Entr(%a, %b) : {type}
  return %e
}}"""
    assert fusec.GraphFunction(admit(text.format(type="f32")))(np.ones(4, np.float32)) == 2
    with pytest.raises(NotAdmittedError, match="by the rule of Entr it is f32"):
        admit(text.format(type="f32[]"))


def test_python_ints_of_many_bits_are_not_computed() -> None:
    """They took all memory while constants were folded: an internal error."""
    function = fusec.GraphFunction(admit("""graph f(x: i64~ {path="x"}) {
  %three = Const {value=3} : i64~
  %many = Const {value=1099511627776} : i64~
  %y = ShiftLeft(%three, %many) : i64~
  %z = Mod(%x, %y) : i64~
  return %z
}"""))
    begin = time.process_time()
    with pytest.raises(OverflowError, match="3 << 1099511627776, does not fit into 64 bit"):
        evaluate(function.graph, [5])
    with suppress(ArithmeticError):
        function(5)
    assert time.process_time() - begin < 5
