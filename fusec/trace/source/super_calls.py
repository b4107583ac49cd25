"""Writes out the two arguments of ``super()``: Python looks for them in the caller's frame, and
conversion moves parts of a method into functions with frames of their own."""

from __future__ import annotations

import ast

from .source import Source


def write_out(source: Source) -> None:
    """Change ``super()`` to ``super(__class__, self)`` in the tree, nested functions left out."""
    arguments = source.node.args
    first = next(iter([*arguments.posonlyargs, *arguments.args]), None)
    if first is not None and "__class__" in source.code.co_freevars:
        writer = _Writer(first.arg)
        body = source.node.body
        for part in body if isinstance(body, list) else [body]:
            writer.visit(part)


class _Writer(ast.NodeVisitor):
    def __init__(self, first: str) -> None:
        self.first = first

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Skipped: it has another first argument."""

    def visit_Lambda(self, node: ast.Lambda) -> None:
        """Skipped likewise."""

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Skipped: it has another ``__class__``."""

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "super" and not (
                node.args or node.keywords):
            node.args = [ast.copy_location(ast.Name(name, ast.Load()), node)
                         for name in ("__class__", self.first)]
