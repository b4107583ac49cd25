"""Which threads trace at this moment.

A cached call takes plans that run at once; a call of a function that is being traced must become a
part of the graph, whatever its arguments are.  To ask whether a list is empty costs a cached call a
hundredth of its time.
"""

from __future__ import annotations

TRACERS: list[int] = []  # by `threading.get_ident`, once for each trace that is in progress
