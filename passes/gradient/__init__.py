"""Derivatives, graph to graph: the nodes that give tangents or cotangents of a graph's values.

They are ordinary nodes beside those that they are the derivative of, made with the same builder:
one graph is traced, optimised, fused, placed and differentiated again.
"""

from . import branches, calls, given_rules, tangent_branches
from .forward_mode import push
from .loops import loops, tangent_loops
from .reverse_mode import pull

__all__ = ["branches", "calls", "given_rules", "loops", "pull", "push", "tangent_branches",
           "tangent_loops"]
