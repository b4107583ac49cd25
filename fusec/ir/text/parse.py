"""The parser of the text form: `parse_graph` is the inverse of `fusec.ir.text.text.print_graph`.

A hand-written recursive-descent parser over a regular-expression tokeniser; it recurses only into
sub-graphs and nested tuples.  The grammar is on the page ``docs/ir.md``.
"""

from __future__ import annotations

import functools
import json
import re
import struct
from bisect import bisect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..graph import Graph, Loc, Node, Value
from ..types import DTYPE_NAMES, TensorType, dtype_from_name, parse_type
from .parse_dims import parse_dim

T = TypeVar("T")
MOST_SHOWN = 200  # characters of a line in a message


class GraphSyntaxError(ValueError):
    """Text that is not a graph; the message shows the line with a caret under the fault."""


class Token(NamedTuple):
    kind: str
    text: str
    start: int


_TOKEN = re.compile(
    r"""(?P<space>\s+)
      | (?P<comment>\#[^\n]*)
      | (?P<string>"(?:[^"\\\n]|\\.)*")
      | (?P<type>(?:bool|[iufc]\d+)(?:~|\[[^\]\n]*\]))
      | (?P<number>-?(?:inf(?![\w./-])|0x[0-9a-f]+|\d+(?:\.\d+)?(?:e[+-]?\d+)?))
      | (?P<name>[A-Za-z_][\w./-]*)
      | (?P<punct>[%^@(){}=,:])
    """,
    re.VERBOSE,
)
_LOC = re.compile(
    r"#\s*(?P<file>.+?):(?P<line>\d+)(?::(?P<col>\d+)(?:-(?P<end>\d+))?)?(?: in (?P<fn>.+))?\Z"
)
_NUMBERS = (*DTYPE_NAMES, "float", "complex")
_TYPED = {*_NUMBERS, *(f"{name}.bits" for name in _NUMBERS)}
_WORDS: dict[str, Any] = {"None": None, "True": True, "False": False, "nan": float("nan")}


def parse_graph(text: str) -> Graph:
    """The graph ``text`` describes, with names and locations.

    Raises `GraphSyntaxError` with the line and a caret.  Types are taken as written: run
    `fusec.ops.graphs.verify.verify` to check them.
    """
    return parse_with_lines(text)[0]


def parse_with_lines(text: str) -> tuple[Graph, dict[int, int]]:
    """The graph as `parse_graph` gives it, and the number of the line of each node, by its id."""
    def read(parser: _Parser) -> tuple[Graph, dict[int, int]]:
        graph, ends = parser.graph(), [at for at, letter in enumerate(text) if letter == "\n"]
        return graph, {id_: bisect(ends, at) + 1 for id_, at in parser.places.items()}

    return _whole(text, read)


_FLOAT = re.compile(r"(f32|f64)\((-?[0-9]{1,20}\.[0-9]{1,20})\)")
_PLAIN_TYPE = re.compile(r"[a-z]{1,8}[0-9]{0,3}(~|\[[0-9,]{0,40}\])?")


@functools.lru_cache(maxsize=256)
def _plain_type(text: str) -> TensorType:
    """A type of known sizes: a graph has a few, each many times."""
    return _whole(text, lambda parser: parser.type())


def attribute_of(text: str) -> Any:
    """The attribute of this text form, such as ``f32(0.1)``; raises `GraphSyntaxError`."""
    match = _FLOAT.fullmatch(text)  # most of those of a graph
    if match is not None:
        return dtype_from_name(match[1]).type(float(match[2]))
    return _whole(text, lambda parser: parser.attr_value())


def type_of(text: Any) -> TensorType:
    """The type of this text form, such as ``f64[3]``; raises `GraphSyntaxError`."""
    if type(text) is str and _PLAIN_TYPE.fullmatch(text):
        return _plain_type(text)
    return _whole(text if type(text) is str else "", lambda parser: parser.type())


def _whole(text: str, read: Callable[[_Parser], T]) -> T:
    """The result of ``read`` for the text; raises `GraphSyntaxError` where it leaves some of it."""
    parser = _Parser(text)
    try:
        result = read(parser)
    except GraphSyntaxError:
        raise
    except (ValueError, TypeError, LookupError, ArithmeticError) as error:
        parser.fail(f"{type(error).__name__}: {error}", parser.tokens[max(parser.at - 1, 0)])
    if parser.peek().kind != "end":
        parser.fail("expected the end of the text")
    return result


def _tokens(text: str) -> list[Token]:
    """The tokens of ``text``; a comment after other text on its line is a ``loc`` token."""
    tokens, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise GraphSyntaxError(_excerpt(text, at, f"unexpected character {text[at]!r}"))
        kind = str(match.lastgroup)
        if kind == "comment" and text[text.rfind("\n", 0, at) + 1 : at].strip():
            kind = "loc"
        if kind not in ("space", "comment"):
            tokens.append(Token(kind, match[0], at))
        at = match.end()
    tokens.append(Token("end", "", at))
    return tokens


def _excerpt(text: str, at: int, message: str) -> str:
    start = text.rfind("\n", 0, at) + 1
    line = text[start:].split("\n", 1)[0]
    number = text.count("\n", 0, at) + 1
    if at - start > MOST_SHOWN:
        line, start = f"...{text[at - 40:at]}{text[at:at + 40]}".split("\n")[0], at - 43
    return (f"{message}, on line {number} of the graph:\n  {line[:MOST_SHOWN]}\n  "
            f"{' ' * (at - start)}^")


class _Scope:
    """The nodes of the graph being parsed, by name, in order."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = _tokens(text)
        self.at = 0
        self.places: dict[int, int] = {}  # where each node is defined, by its id

    # Tokens ---------------------------------------------------------------------------------

    def peek(self) -> Token:
        """The next token, past comments: only `loc` reads those."""
        while self.tokens[self.at].kind == "loc":
            self.at += 1
        return self.tokens[self.at]

    def next(self) -> Token:
        token = self.peek()
        self.at += 1
        return token

    def sees(self, text: str) -> bool:
        return self.peek().text == text

    def accept(self, text: str) -> bool:
        if self.sees(text):
            self.at += 1
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.accept(text):
            self.fail(f"expected {text!r}, found {self.peek().text or 'the end of the text'!r}")

    def fail(self, message: str, token: Token | None = None) -> Any:
        raise GraphSyntaxError(_excerpt(self.text, (token or self.peek()).start, message))

    def many(self, item: Callable[[], T], end: str) -> list[T]:
        """Comma-separated items up to ``end``, which is consumed; a trailing comma is allowed."""
        items: list[T] = []
        while not self.accept(end):
            items.append(item())
            if not self.sees(end):
                self.expect(",")
        return items

    # Graphs and nodes -----------------------------------------------------------------------

    def graph(self) -> Graph:
        self.expect("graph")
        name = self.name()
        self.expect("(")
        scope = _Scope()
        inputs = [node.out() for node in self.many(lambda: self.parameter(scope), ")")]
        self.expect("{")
        while self.sees("%"):
            self.node(scope)
        outputs = self.returned(scope)
        updates = self.updates(scope, inputs)
        self.expect("}")
        nodes = tuple(scope.nodes.values())
        return Graph(tuple(inputs), tuple(outputs), tuple(updates), nodes, name)

    def parameter(self, scope: _Scope) -> Node:
        token, name = self.peek(), self.name()
        self.expect(":")
        kind = self.type()
        implied = {"type": kind, "index": len(scope.nodes), "path": name}
        attrs, device = implied | self.attrs(), self.device()
        node = Node("Input", (), (kind,), attrs, name=name, device=device)
        return self.define(scope, token, node)

    def node(self, scope: _Scope) -> None:
        self.expect("%")
        token, name = self.peek(), self.name()
        self.expect("=")
        op = self.name()
        inputs, control = self.operands(scope)
        attrs, device = self.attrs(), self.device()
        self.expect(":")
        types, loc = self.types(), self.loc()
        if op == "Const" and types:
            attrs = {"kind": types[0].kind} | attrs
        node = Node(op, inputs, types, attrs, name=name, loc=loc, control_inputs=control,
                    device=device)
        self.define(scope, token, node)

    def define(self, scope: _Scope, token: Token, node: Node) -> Node:
        if node.name in scope.nodes:
            self.fail(f"the name {node.name!r} is defined twice", token)
        scope.nodes[node.name] = node
        self.places[node.id] = token.start
        return node

    def operands(self, scope: _Scope) -> tuple[list[Value], list[Node]]:
        if not self.accept("("):
            return [], []
        items = self.many(lambda: self.operand(scope), ")")
        values = [v for v in items if isinstance(v, Value)]
        return values, [n for n in items if isinstance(n, Node)]

    def operand(self, scope: _Scope) -> Value | Node:
        return self.node_ref(scope) if self.accept("^") else self.value(scope)

    def node_ref(self, scope: _Scope) -> Node:
        token, name = self.peek(), self.name()
        if name not in scope.nodes:
            self.fail(f"{name!r} is read before it is defined", token)
        return scope.nodes[name]

    def value(self, scope: _Scope) -> Value:
        self.expect("%")
        token, node = self.peek(), self.node_ref(scope)
        index = self.integer() if self.accept(":") else 0
        if index >= len(node.types):
            self.fail(f"{node.name!r} has {len(node.types)} outputs, no output {index}", token)
        return node.out(index)

    def returned(self, scope: _Scope) -> list[Value]:
        self.expect("return")
        outputs = [self.value(scope)] if self.sees("%") else []
        while self.accept(","):
            outputs.append(self.value(scope))
        return outputs

    def updates(self, scope: _Scope, inputs: list[Value]) -> list[tuple[int, Value]]:
        positions = {v.node.name: i for i, v in enumerate(inputs)}
        updates = []
        while self.accept("update"):
            token, name = self.peek(), self.name()
            if name not in positions:
                self.fail(f"an update must name a parameter, {name!r} is none", token)
            self.expect("=")
            updates.append((positions[name], self.value(scope)))
        return updates

    # Small parts ----------------------------------------------------------------------------

    def name(self) -> str:
        token = self.next()
        if token.kind == "string":
            return json.loads(token.text)
        # Words such as ``inf`` or ``f64`` are names where a name is expected.
        return token.text if token.kind in ("name", "number") else self.fail(
            f"expected a name, found {token.text!r}", token)

    def integer(self) -> int:
        token = self.next()
        return int(token.text) if token.text.isdigit() else self.fail("expected an integer", token)

    def types(self) -> tuple[TensorType, ...]:
        return tuple(self.many(self.type, ")")) if self.accept("(") else (self.type(),)

    def type(self) -> TensorType:
        token = self.next()
        try:
            return parse_type(token.text)
        except ValueError:
            return self.fail(f"expected a type such as f64[3,4], found {token.text[:60]!r}", token)

    def device(self) -> str:
        return json.loads(self.next().text) if self.accept("@") else ""

    def loc(self) -> Loc | None:
        token = self.tokens[self.at]
        match = _LOC.match(token.text) if token.kind == "loc" else None
        if match is None:
            return None
        col, end = (int(match[k]) if match[k] else -1 for k in ("col", "end"))
        return Loc(match["file"], int(match["line"]), col, match["fn"] or "", end)

    def attrs(self) -> dict[str, Any]:
        return dict(self.many(self.attr, "}")) if self.accept("{") else {}

    def attr(self) -> tuple[str, Any]:
        name = self.name()
        self.expect("=")
        return name, self.attr_value()

    def attr_value(self) -> Any:
        if self.sees("graph"):
            return self.graph()
        if self.accept("("):
            return tuple(self.many(self.attr_value, ")"))
        token = self.next()
        if token.kind == "number":
            return _number(token.text)
        if token.kind == "string":
            return json.loads(token.text)
        if token.text in _WORDS:
            return _WORDS[token.text]
        return self.typed_value(token)

    def typed_value(self, token: Token) -> Any:
        """``f64``, ``type(f64[3])``, ``size("n")``, ``f32(1.5)``, ``float.bits(0x…)`` and so on."""
        if token.text == "type":
            return self.one(self.type)
        if token.text == "size":
            return parse_dim(self.one(self.name))
        if token.text not in _TYPED:
            self.fail(f"expected an attribute value, found {token.text!r}", token)
        if token.text in DTYPE_NAMES and not self.sees("("):
            return dtype_from_name(token.text)
        self.expect("(")
        return _number_of(token.text, self.numbers(token))

    def one(self, item: Callable[[], T]) -> T:
        """An item in parentheses."""
        self.expect("(")
        value = item()
        self.expect(")")
        return value

    def numbers(self, token: Token) -> list[Any]:
        """The parts of a number with a dtype: a number, two for a complex one, or its bits."""
        parts = self.many(self.number, ")")
        kinds = (int,) if token.text.endswith(".bits") else (bool, int, float)
        most = 2 if token.text in ("complex", "c64", "c128") else 1
        if not 1 <= len(parts) <= most or token.text == "float" or (
                not all(type(part) in kinds for part in parts)):
            what = "an integer" if kinds == (int,) else "a number" if most == 1 else "two numbers"
            self.fail(f"{token.text} takes {what}", token)
        return parts

    def number(self) -> Any:
        token, value = self.peek(), self.attr_value()
        return value if type(value) in (bool, int, float) else self.fail("expected a number", token)


def _number(text: str) -> int | float:
    if text.startswith("0x"):
        return int(text, 16)
    return float(text) if set(text) & set(".en") else int(text)


def _number_of(kind: str, parts: Sequence[Any]) -> Any:
    """``f32(1.5)``, ``f32.bits(0x…)``, ``complex(1.0, 2.0)``."""
    name, _, bits = kind.partition(".")
    if bits:
        return _from_bits(name, parts[0])
    if name not in DTYPE_NAMES:
        return complex(*parts)
    dtype = dtype_from_name(name)
    return dtype.type(complex(*parts) if dtype.kind == "c" else parts[0])


def _from_bits(name: str, bits: int) -> Any:
    if name in DTYPE_NAMES:
        dtype = dtype_from_name(name)
        return np.frombuffer(bits.to_bytes(dtype.itemsize, "little"), dtype)[0]
    size = 1 if name == "float" else 2
    parts = struct.unpack(f"<{size}d", bits.to_bytes(8 * size, "little"))
    return parts[0] if name == "float" else complex(*parts)
