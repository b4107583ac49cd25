"""Rules of splitting: how a row's results are computed block by block.

They fill the column ``split`` when this package is imported, which only calls with arrays in
blocks do.  A rule says of each axis of each operand which axis of the result it goes along
(`Read`), or that an element of the result needs all of it (``None``), and makes the row's node for
a *box* of the result: an interval for each axis.  ``None`` in the column says that nobody has
written the rule: such a node is computed whole, and refused where an operand is in blocks.
"""

from . import gathers, library_calls, rules
from .protocol import BlockSite, Box, Interval, Read, SplitRule, declare, links_of

__all__ = ["BlockSite", "Box", "Interval", "Read", "SplitRule", "declare", "gathers",
           "library_calls", "links_of", "rules"]
