"""Uses of values: the nodes that read them, how often, where for the last time."""

from __future__ import annotations

from fusec.ir.text.parse import parse_graph
from fusec.ir.uses import readers, readers_of_memory, use_counts, values_read

GRAPH = parse_graph("""graph main(x: f64[3,2]) {
  %t = Transpose(%x) {axes=(1, 0)} : f64[2,3]
  %u = Transpose(%t) {axes=(1, 0)} : f64[3,2]
  %a = Mul(%x, %x) : f64[3,2]
  %b = Add(%a, %u) : f64[3,2]
  %c = Exp(%x) : f64[3,2]
  return %b, %b
}""")
X, T, U, A, B, C = (GRAPH.value(name) for name in "xtuabc")


def is_view(node) -> bool:
    return node.op == "Transpose"


def named(table) -> dict[str, list[str]]:
    return {value.node.name: [n.name for n in nodes] for value, nodes in table.items()}


def test_readers_are_in_order_once_for_each_operand() -> None:
    assert named(readers(GRAPH.nodes)) == {
        "x": ["t", "a", "a", "c"], "t": ["u"], "a": ["b"], "u": ["b"]}


def test_readers_of_memory_are_those_of_its_views_too() -> None:
    assert named(readers_of_memory(GRAPH.nodes, is_view)) == {
        "x": ["c", "a", "a", "t", "u", "b"], "t": ["u", "b"], "a": ["b"], "u": ["b"]}


def test_counts_are_of_operands_and_of_roots() -> None:
    assert use_counts(GRAPH.nodes) == {X: 4, T: 1, A: 1, U: 1}
    assert use_counts(GRAPH.nodes, GRAPH.roots) == {X: 4, T: 1, A: 1, U: 1, B: 2}
    assert use_counts(GRAPH.nodes)[B] == 0


def test_values_read_end_where_they_are_known() -> None:
    assert values_read([B]) == {B, A, U, T, X}
    assert values_read([B], {U, X}.__contains__) == {B, A, U, X}
    assert values_read([X]) == {X} and values_read([]) == set()
