"""Graphs that a stranger might hand over: real ones, changed in one or a few places.

`mutated` changes the JSON of a graph at random; `outcome` admits, compiles and runs it, and says
whether the answer is a refusal of fusec's, or the reference interpreter's result.
"""

from __future__ import annotations

import copy
import json
import random
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fusec.compiled.graph_function import GraphFunction
from fusec.compiled.run_metadata import RunOptions
from fusec.errors import FusecError, InternalError
from fusec.ir import Graph
from fusec.ir.types import BEYOND_64_BITS, TensorType
from fusec.ops import all_ops
from fusec.ops.graphs.admit import Limits, admit
from fusec.ops.graphs.carve import carve
from fusec.ops.graphs.evaluate import evaluate_all

OPS = [row.name for row in all_ops()]
NUMBERS = (0, 1, -1, 2, 3, 5, 7, 100, -100, 10**6, -(10**6), 2**31, 2**40, 2**63, -(2**63), 2**64,
           10**30)
TYPES = ("f64[3]", "f64[]", "f64", "f64~", "i64[4]", "bool[2,2]", "i64", "f64[n]", "f64[n-5]",
         "f64[1000000000000]", "f32[4,5]", "c128[3]", "i8[4,5]", "f64[0]", "f64[2*n,m]",
         "f64[max(n,m)//2]", "u8[3,3,3]")
TEXTS = ("", "x", "f2py.os.system", "dump", "tofile", "load", "n", "echo hello > /tmp/hostile",
         "../../etc/passwd", "__call__", "at", "Add", "LogicalAnd", "%", '"', "\0", "a" * 5000,
         "array", "weak", "object", "linalg.inv", "__import__('os').system('true')", "out",
         "overwrite_a", "io.loadmat", "raise", "SystemExit", "ValueError")
ATTRS = ({"attr": "inf"}, {"attr": "nan"}, {"attr": "f64"}, {"attr": "u8"}, {"attr": "f32(0.5)"},
         {"attr": 'size("n")'}, {"attr": 'size("n-7")'}, {"attr": "type(f64[3])"}, [], [0], [1, 0],
         [0, 0], [-1], [2, 1, 0], None, True, False, 0.5, ["operand", 0], ["operand", 9],
         ["list", 0, 0, 0, 0, 0, 0, 0, 0], ["slice", None, None, -1], ["ellipsis"], {"attr": "((("},
         {"graph": {}}, ["tuple", ["tuple", "out", ["operand", 0]]],
         ["tuple", ["tuple", "dtype", "object"]])
Path = tuple[Any, ...]


def places(form: Any, path: Path = ()) -> Iterator[Path]:
    """The paths of everything in a tree of JSON."""
    items = form.items() if isinstance(form, dict) else enumerate(form) if isinstance(
        form, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from places(value, (*path, key))


def mutated(text: str, rng: random.Random) -> str:
    """The graph with one to three changes."""
    form = json.loads(text)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        where = [p for p in places(form) if p[0] not in ("format", "version")]
        if where:
            rng.choice(CHANGES)(form, rng.choice(where), rng)
    return json.dumps(form)


def _parent(form: Any, path: Path) -> tuple[Any, Any]:
    for key in path[:-1]:
        form = form[key]
    return form, path[-1]


def _value(form: Any, path: Path, rng: random.Random) -> None:
    """Another value of the same sort."""
    parent, key = _parent(form, path)
    old = parent[key]
    if key == "op":
        parent[key] = rng.choice(OPS)
    elif type(old) is int and not isinstance(old, bool):
        parent[key] = rng.choice((*NUMBERS, old + 1, old - 1, -old, old * 2))
    elif type(old) is str and "[" in old:
        parent[key] = rng.choice((*TYPES, old.replace("[", "[1,"), old.replace("4", "5")))
    elif type(old) is str:
        parent[key] = rng.choice((*TEXTS, *TYPES, *names(form)))
    else:
        parent[key] = copy.deepcopy(rng.choice(ATTRS))


def _other_sort(form: Any, path: Path, rng: random.Random) -> None:
    parent, key = _parent(form, path)
    parent[key] = copy.deepcopy(rng.choice((*ATTRS, *NUMBERS, *TEXTS)))


def _dropped(form: Any, path: Path, rng: random.Random) -> None:
    parent, key = _parent(form, path)
    del parent[key]


def _doubled(form: Any, path: Path, rng: random.Random) -> None:
    parent, key = _parent(form, path)
    if isinstance(parent, list):
        parent.insert(rng.randrange(len(parent) + 1), copy.deepcopy(parent[key]))


def _moved(form: Any, path: Path, rng: random.Random) -> None:
    parent, key = _parent(form, path)
    if isinstance(parent, list):
        parent.insert(rng.randrange(len(parent)), parent.pop(key))


def _rewired(form: Any, path: Path, rng: random.Random) -> None:
    """An operand, output or update reads another value."""
    nodes = form.get("nodes", [])
    nodes = nodes if isinstance(nodes, list) else []
    lists = [n["inputs"] for n in nodes if isinstance(n, dict) and isinstance(
        n.get("inputs"), list) and n["inputs"]]
    if lists and names(form):
        operands = rng.choice(lists)
        operands[rng.randrange(len(operands))] = f"{rng.choice(names(form))}:{rng.choice('0012')}"


def _typed_anew(form: Any, path: Path, rng: random.Random) -> None:
    """A parameter of another type: everything behind it is wrong, or happens to fit."""
    inputs = form.get("inputs")
    if isinstance(inputs, list) and inputs and isinstance(inputs[0], dict):
        rng.choice(inputs)["type"] = rng.choice(TYPES)


def _nested(form: Any, path: Path, rng: random.Random) -> None:
    parent, key = _parent(form, path)
    for _ in range(rng.choice((3, 40, 200))):
        parent[key] = [parent[key]]


CHANGES: tuple[Callable[..., None], ...] = (
    _value, _value, _value, _value, _other_sort, _dropped, _doubled, _moved, _rewired, _rewired,
    _typed_anew, _nested)


def names(form: Any) -> list[str]:
    return [n["name"] for part in ("inputs", "nodes") if isinstance(form.get(part), list)
            for n in form[part] if isinstance(n, dict) and isinstance(n.get("name"), str)]


# ------------------------------------------------------------------------------------ what it does


def argument(type_: TensorType, rng: np.random.Generator) -> Any:
    """Small numbers of this type."""
    values = rng.integers(0, 4, type_.shape)
    array = np.asarray(values).astype(type_.dtype)
    if type_.kind == "array":
        return array
    return array[()] if type_.kind == "scalar" else array.item()


def outcome(text: str, seed: int = 0) -> str:
    """``refused``, ``right``, ``raises`` (as the interpreter does), ``endless`` (ended by its
    timeout), ``wraps`` (a Python int, where the interpreter raises); raises where it is none."""
    try:
        graph = admit(text, Limits(value_bytes=1 << 28))
    except FusecError as error:
        assert not isinstance(error, InternalError), error
        assert str(error)
        return "refused"
    assert admit(graph.to_json()).to_json() == graph.to_json()
    try:
        function = GraphFunction(graph, fp="strict")
    except FusecError:
        return "refused"
    rng = np.random.default_rng(seed)
    given = [argument(v.type, rng) for v in graph.inputs]
    expected, raised = _interpreted(graph, copy.deepcopy(given))
    try:
        result, _ = function.run(*given, options=RunOptions(timeout=20.0))
    except TimeoutError:
        return "endless"
    except (InternalError, SystemError):
        raise
    except Exception as error:
        if raised is None and not _is_told(error):
            raise
        return "raises"
    if isinstance(raised, OverflowError) and BEYOND_64_BITS in str(raised):
        return "wraps"  # what checks a Python int in a traced graph is a node of its own
    if raised is not None:
        raise AssertionError(f"the interpreter raises {raised!r}, compiled code gives {result!r}")
    found = result if len(graph.outputs) != 1 else (result,)
    _compare(found, expected[0])
    _compare([given[i] for i, _ in expected[1]], [v for _, v in expected[1]])
    return "right"


def _is_told(error: Exception) -> bool:
    """Whether it names the misfit: a library's answer, whose type the graph claimed."""
    return isinstance(error, (FusecError, MemoryError))


def _interpreted(graph: Graph, given: list[Any]) -> tuple[Any, Exception | None]:
    try:
        return evaluate_all(carve(graph), given), None  # without what nothing needs
    except Exception as error:
        return None, error


def _compare(found: Any, expected: Any) -> None:
    for one, two in zip(found, expected, strict=True):
        one, two = np.asarray(one), np.asarray(two)
        assert (one.dtype, one.shape) == (two.dtype, two.shape), f"{one!r} is not {two!r}"
        np.testing.assert_allclose(one, two, rtol=1e-5 if one.dtype.itemsize <= 4 else 1e-9,
                                   atol=1e-6, equal_nan=True)


# ------------------------------------------------------------------------------------- bad things

WATCHED = ("os.system", "subprocess.Popen", "os.exec", "os.posix_spawn", "os.fork", "socket.",
           "shutil.", "os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link",
           "os.symlink", "os.truncate", "pickle.find_class")


def watch(allowed: tuple[str, ...]) -> None:
    """From now on an act that no graph may do ends the process with status 77.

    ``allowed``: folders of fusec's own, in which it may write.
    """
    import os

    def hook(event: str, args: Any) -> None:
        paths = [a for a in args if isinstance(a, str)]
        bad = event.startswith(WATCHED) and not (paths and all(
            p.startswith(allowed) for p in paths))
        if event == "open" and isinstance(args[0], str):
            flags = args[2] if isinstance(args[2], int) else 0
            writes = bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
            bad = writes and not args[0].startswith((*allowed, "/dev/null"))
        if bad:
            os.write(2, f"a graph did {event} {args}\n".encode())
            os._exit(77)

    sys.addaudithook(hook)
