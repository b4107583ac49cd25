"""The text form: exact, parses back, and says where it is wrong."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusec.ir import Graph, Loc, Node, TensorType
from fusec.ir.text.compare import assert_same_graph, graphs_equal
from fusec.ir.text.parse import GraphSyntaxError, parse_graph
from fusec.ir.text.text import print_attr, print_graph
from fusec.ir.types import DTYPE_NAMES

CANONICAL = """\
graph main(x: f64[3,4], s: f64~) {
  %Mul = Mul(%x, %x) : f64[3,4]                                 # file.py:12:4-9 in <lambda>
  %c = Const {value=2.0} : f64~
  %layer1/Sum = Sum(%Mul, ^c) {axes=(1,)} @"/device:CPU:0" : f64[3]
  %"p['w']" = Fused(%x) {body=graph fused_0(x: f64[3,4]) {
    %y = Neg(%x) : f64[3,4]                                       # user file.py:3
    return %y, %x
  }} : (f64[3,4], f64[3,4])
  %Print = Print(%s, ^Mul) : ()
  return %layer1/Sum, %"p['w']":1
  update x = %Mul
}"""


def test_canonical_text_parses_back() -> None:
    graph = parse_graph(CANONICAL)
    assert print_graph(graph) == CANONICAL == str(graph)
    assert_same_graph(parse_graph(print_graph(graph)), graph)


def test_every_part_is_read() -> None:
    graph = parse_graph(CANONICAL)
    assert graph["Mul"].loc == Loc("file.py", 12, 4, "<lambda>", 9)
    assert graph["layer1/Sum"].control_inputs == (graph["c"],)
    assert graph["layer1/Sum"].device == "/device:CPU:0"
    assert graph["layer1/Sum"].attrs["axes"] == (1,)
    assert graph["c"].attrs == {"value": 2.0, "kind": "weak"}
    assert graph.inputs[1].type == TensorType(np.dtype("f8"), (), "weak")
    assert graph.outputs[1] == graph["p['w']"].out(1)
    assert graph.updates == ((0, graph["Mul"].out()),)
    body = graph["p['w']"].attrs["body"]
    assert body["y"].loc == Loc("user file.py", 3)
    assert graph["Print"].types == ()


def test_comments_and_layout_are_free() -> None:
    text = """
    # a comment of its own
    graph g(  # the parameters
      x: f64[3],
    ) { %y =
        Neg(%x)
        : f64[3]  return %y }
    """
    assert print_graph(parse_graph(text)) == (
        "graph g(x: f64[3]) {\n  %y = Neg(%x) : f64[3]\n  return %y\n}"
    )


def test_long_parameter_lists_take_a_line_each() -> None:
    inputs = ", ".join(f"parameter_{i}: f64[3]" for i in range(8))
    text = print_graph(parse_graph(f"graph main({inputs}) {{ return %parameter_0 }}"))
    assert text.startswith("graph main(\n    parameter_0: f64[3],\n")
    assert print_graph(parse_graph(text)) == text


def test_printing_does_not_recurse_over_depth() -> None:
    kind = TensorType(np.dtype("f8"), (3,))
    value = Node("Input", (), (kind,), name="x").out()
    start = value
    for i in range(5000):
        value = Node("Neg", (value,), (kind,), name=f"n{i}").out()
    graph = Graph.build([start], [value])
    assert graphs_equal(parse_graph(print_graph(graph)), graph)


# --- attributes

bits64 = st.integers(0, 2**64 - 1).map(lambda b: struct.unpack("<d", struct.pack("<Q", b))[0])
floats = st.one_of(bits64, st.floats(), st.sampled_from([0.0, -0.0, math.nan, math.inf]))
dtypes = st.sampled_from(list(DTYPE_NAMES.values()))


def scalars(dtype: np.dtype) -> st.SearchStrategy[np.generic]:
    """Every bit pattern of the dtype (both bools)."""
    if dtype.kind == "b":
        return st.booleans().map(np.bool_)
    raw = st.binary(min_size=dtype.itemsize, max_size=dtype.itemsize)
    return raw.map(lambda data: np.frombuffer(data, dtype)[0])


plain = st.one_of(
    st.none(), st.booleans(), st.integers(), floats, st.builds(complex, floats, floats),
    st.text(), dtypes, dtypes.flatmap(scalars),
    st.builds(TensorType, dtypes, st.sampled_from([(), (3, 0)])),
)
attributes = st.recursive(plain, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=8)


def identical(a: object, b: object) -> bool:
    """Equal in type and bits."""
    if type(a) is not type(b):
        return False
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(identical, a, b))
    if isinstance(a, (float, complex, np.generic)):
        return np.asarray(a).tobytes() == np.asarray(b).tobytes()
    return a == b


@settings(max_examples=300, deadline=None, derandomize=True)
@given(attributes)
def test_attributes_are_exact(value: object) -> None:
    node = Node("Const", (), (TensorType(np.dtype("f8"), ()),), {"value": value}, name="c")
    graph = Graph((), (node.out(),), (), (node,))
    assert identical(parse_graph(print_graph(graph))["c"].attrs["value"], value)


@pytest.mark.parametrize("name", ["inf", "f64", "graph", "return", "self.u", "a b", 'q"', "-", ""])
def test_any_name_survives(name: str) -> None:
    kind = (TensorType(np.dtype("f8"), (3,)),)
    start = Node("Input", (), kind, name=name or "in")
    node = Node("Neg", (start.out(),), kind, name=f"{name}/x")
    graph = Graph((start.out(),), (node.out(),), (), (start, node), name=name)
    parsed = parse_graph(print_graph(graph))
    assert [n.name for n in parsed.nodes] == [start.name, node.name]
    assert parsed.name == name


def test_an_attribute_without_text_form_is_an_internal_error() -> None:
    with pytest.raises(TypeError, match=r"internal error: an attribute of type list \(\[1\]\)"):
        print_attr([1])


# --- syntax errors

ERRORS = {
    "graph main(x: f64[3]) {\n  %y = Neg(%z) : f64[3]\n  return %y\n}": "'z' is read before",
    "graph main(x: f64[3]) {\n  %x = Neg(%x) : f64[3]\n  return %x\n}": "'x' is defined twice",
    "graph main(x: f63[3]) { return %x }": "expected a type such as f64",
    "graph main(x: f64[3]) { return %x:1 }": "'x' has 1 outputs, no output 1",
    "graph main(x: f64[3]) { return %x update y = %x }": "an update must name a parameter",
    "graph main(x: f64[3]) { return %x } }": "expected the end of the text",
    "graph main(x: f64[3]) { return %x": "expected '}', found 'the end of the text'",
    "graph main(x: f64[3]) {\n  %y = Neg(%x) {a=foo} : f64[3] return %y }": "an attribute value",
    "graph main(x: f64[3]) { ! }": "unexpected character '!'",
}


@pytest.mark.parametrize("text", ERRORS)
def test_syntax_errors_show_the_place(text: str) -> None:
    with pytest.raises(GraphSyntaxError) as info:
        parse_graph(text)
    message = str(info.value)
    assert ERRORS[text] in message
    assert message.rstrip().endswith("^")
