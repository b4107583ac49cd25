"""Graphs that were admitted by an earlier process: the same graph without the proofs, and no other
one."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fusec
from fusec import config
from fusec.codegen.machine_code import disk_cache
from fusec.compiled.kept import kept_entries, known_graphs
from fusec.compiled.kept.graph_identity import NoIdentityError, identity
from fusec.ir.graph import Graph, Loc, Node
from fusec.ir.text.json_form import graph_from_json
from fusec.ir.types import TensorType
from fusec.ops.graphs.admit import NotAdmittedError, admit
from fusec.ops.graphs.remade import remade
from tests.programs.corpus import programs

X = np.linspace(0.5, 2.0, 100)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path) -> Iterator[Path]:
    disk_cache._State.warned = False
    with config.override(cache_dir=str(tmp_path / "cache")):
        yield tmp_path / "cache"


def graph_of(function: Callable[..., Any], *args: Any) -> Graph:
    """As it stands in a folder: read, and not admitted."""
    return graph_from_json(fusec.jit(function).concrete(*args).graph.to_json())


def test_the_second_time_nothing_is_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = graph_of(lambda x: np.where(x > 1.0, np.exp(x), x[::-1]).sum(), X)
    first = known_graphs.admitted(graph)
    monkeypatch.setattr(known_graphs, "admit", None)
    second = known_graphs.admitted(graph)
    assert str(second) == str(first) and identity(second) == identity(first)
    assert all(new.loc is None or new.loc.file.startswith("<") for new in second.nodes)
    with pytest.raises(TypeError):  # it has another name: a proof is asked for
        known_graphs.admitted(graph.rename("other"))


@pytest.mark.repeats
@pytest.mark.parametrize("program", [*programs()], ids=lambda program: program.name)
def test_graphs_of_the_corpus_are_remade_as_admitted(program: Any) -> None:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            graph = graph_of(program.function, *program.inputs(program.small))
            made = admit(graph)
        except (fusec.FusecError, TypeError):
            pytest.skip("it cannot be saved")
    try:
        mine = identity(remade(graph))
    except NoIdentityError:
        pytest.skip("it has sizes that only the run knows")
    known = known_graphs.admitted(graph)
    assert identity(known) == identity(made)
    if mine == identity(made):
        assert identity(known_graphs.admitted(graph)) == mine


def test_a_graph_whose_indices_are_checked_is_never_known(cache: Path) -> None:
    graph = graph_of(lambda x, i: x[i], X, np.array([1, 2]))
    unchecked = json.loads(graph.to_json())
    check = next(node for node in unchecked["nodes"] if node["op"] == "CheckIndex")
    unchecked["nodes"].remove(check)
    text = json.dumps(unchecked).replace(f'"{check["name"]}:0"', f'"{check["inputs"][0]}"')
    for _ in range(2):
        made = known_graphs.admitted(graph_from_json(text))
        assert any(node.op == "CheckIndex" for node in made.nodes)
    assert not [file for file in cache.glob("??/*.fusec-object")
                if b'"data": "admitted"' in file.read_bytes()]


def test_claims_are_dropped_when_it_is_remade() -> None:
    graph = graph_of(lambda x: np.exp(x) + 1.0, X)
    nodes = [n.with_(attrs={**n.attrs, "safe": True}) if n.op == "Exp" else n for n in graph.nodes]
    assert len(nodes) == len(graph.nodes)
    with pytest.raises(NotAdmittedError):
        known_graphs.admitted(replace(graph, nodes=tuple(nodes)))


DATA = [1, True, 1.0, -0.0, 0.0, "1", "1.0", "None", None, (), (1,), (True,), ((),), b"1",
        1j, complex(0.0, -0.0), float("nan"), -float("nan"), np.float64(1.0), np.float32(1.0),
        np.array(1.0), np.array([1.0]), np.array([[1.0]]), np.dtype(np.float64),
        np.dtype(np.int64), "<f8",
        ("dtype", "<f8"), TensorType(np.dtype(np.float64), (3,)),
        ("type", "array", ("dtype", "<f8"), ("tuple", 3)), ("tuple",), ("tuple", 1),
        ("complex", b"1"), Loc("a", 1, 2, "f", 3), ("a", 1, 2, "f", 3),
        ("place", "a", 1, 2, "f", 3)]


def of_attribute(value: Any) -> Graph:
    type_ = TensorType(np.dtype(np.float64), ())
    node = Node("Const", (), (type_,), {"value": value}, name="c")
    return Graph((), (node.out(),), (), (node,), "main")


def test_no_two_attributes_have_one_identity() -> None:
    inner = of_attribute(1)
    texts = [identity(of_attribute(value)) for value in [*DATA, inner, of_attribute(inner)]]
    assert len(set(texts)) == len(texts)
    assert texts == [identity(of_attribute(value)) for value in [*DATA, inner, of_attribute(inner)]]


@pytest.mark.parametrize("value", [
    object(), [1], {"a": 1}, np.dtype([("a", "f8")]), np.array([None]), type("S", (str,), {})("x"),
    type("I", (int,), {})(1), np.dtype(">f8"), np.ma.array([1.0])])
def test_objects_of_the_process_have_none(value: Any) -> None:
    with pytest.raises(NoIdentityError):
        identity(of_attribute(value))


def test_every_part_of_a_node_counts() -> None:
    graph = graph_of(lambda x: np.exp(x) + 1.0, X)
    node = next(n for n in graph.nodes if n.op == "Exp")
    others = [node.with_(op="Log"), node.with_(name="other"), node.with_(device="/device:CPU:0"),
              node.with_(loc=None), node.with_(types=[TensorType(np.dtype(np.float32), (100,))]),
              node.with_(attrs={"a": 1}), node.with_(control_inputs=[graph.nodes[0]])]
    texts = {identity(graph)}
    for other in others:
        nodes = {n.id: n for n in graph.nodes} | {node.id: other}
        new: dict[int, Node] = {}
        for key, n in nodes.items():
            new[key] = n.with_(inputs=[new[v.node.id].out(v.index) for v in n.inputs],
                               control_inputs=[new[c.id] for c in n.control_inputs])
        texts.add(identity(Graph(
            tuple(new[v.node.id].out() for v in graph.inputs),
            tuple(new[v.node.id].out(v.index) for v in graph.outputs), (), tuple(new.values()),
            graph.name)))
    assert len(texts) == len(others) + 1


def test_a_hostile_graph_is_refused_with_a_cache_of_its_neighbour(tmp_path: Path) -> None:
    graph = graph_of(lambda x: x[10:20] * 2.0, X)
    known_graphs.admitted(graph)
    known_graphs.admitted(graph)
    text = graph.to_json()
    for old, new in (('"starts": [10]', '"starts": [95]'), ('"sizes": [10]', '"sizes": [91]'),
                     ('"types": ["f64[10]"]', '"types": ["f64[90]"]'), ("f64[100]", "f64[15]")):
        assert old in text
        with pytest.raises(NotAdmittedError):
            known_graphs.admitted(graph_from_json(text.replace(old, new)))


@pytest.mark.parametrize("data", ["admitted ", "", True, 1, None, ["admitted"], {"admitted": 1}])
def test_another_word_in_the_entry_is_no_admission(
    monkeypatch: pytest.MonkeyPatch, data: Any
) -> None:
    graph = graph_of(lambda x: x * 2.0, X)
    key = known_graphs._key(graph)
    assert key is not None
    kept_entries.write(key, data)
    asked = []
    monkeypatch.setattr(known_graphs, "admit", lambda graph: asked.append(1) or admit(graph))
    known_graphs.admitted(graph)
    known_graphs.admitted(graph)
    assert len(asked) == 1  # and then it is known


def test_sources_that_change_under_the_process_keep_nothing(
    monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    monkeypatch.setattr(kept_entries, "_states", {})
    monkeypatch.setattr(kept_entries.checkout, "LOADED_NS", 0)
    known_graphs.admitted(graph_of(lambda x: x * 3.0, X))
    assert kept_entries._states == {} and not [
        file for file in cache.glob("??/*.fusec-object") if b'"data"' in file.read_bytes()]
