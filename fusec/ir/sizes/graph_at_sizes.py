"""A graph of symbolic sizes at other ones, made when somebody looks at its nodes."""

from __future__ import annotations

from fusec.core import locks

from ..graph import Graph
from ..later_graphs import LaterGraph
from ..types import TensorType
from .instantiate import Instantiation

_making = locks.Lock()


class GraphAtSizes(LaterGraph):
    """``of`` with its symbols substituted.

    Graphs of one `Instantiation` share nodes, which are numbered as they are made: those of
    ``before`` come first.
    """

    _of: Graph
    _found: Instantiation
    _before: Graph | None
    _made: Graph | None

    def __init__(
        self, of: Graph, instantiation: Instantiation, before: Graph | None = None
    ) -> None:
        self.__dict__.update(name=of.name, _of=of, _found=instantiation, _before=before, _made=None,
                             _index={})

    @property
    def made(self) -> Graph:
        """The graph itself."""
        if self._before is not None:
            self._before.made  # noqa: B018
        with _making:  # two threads would make the nodes that graphs share twice
            graph = self._made
            if graph is None:
                graph = self.__dict__["_made"] = self._found.graph(self._of)
        return graph

    @property
    def input_types(self) -> tuple[TensorType, ...]:
        return tuple(map(self._found.type, self._of.input_types))

    @property
    def output_types(self) -> tuple[TensorType, ...]:
        return tuple(map(self._found.type, self._of.output_types))

    @property
    def updated(self) -> tuple[int, ...]:
        return self._of.updated
