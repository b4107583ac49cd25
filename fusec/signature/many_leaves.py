"""A warning for calls of so many numbers and arrays that their first call takes long."""

from __future__ import annotations

from collections import Counter

from fusec.core import log
from fusec.errors import FirstCallWarning
from fusec.trace.call.flat_call import FlatCall

from .jitted_methods import Target

MANY = 2_000  # inputs; code that reads one takes about a millisecond
MANY_CONSTANTS = 50_000


def warn_of_leaves(target: Target, call: FlatCall) -> None:
    """Warn, before the call is traced, at the line of the function, and name the argument."""
    few = len(call.leaves) < MANY_CONSTANTS and len(call.leaves) - sum(call.is_static) < MANY
    if few or target.line is None:
        return
    path, count = Counter(path.partition("[")[0] for path in call.paths).most_common(1)[0]
    file, _, line = target.line.rpartition(":")
    log.warn(
        f"the argument {path} of {target.name} holds {count:,} numbers, arrays or other values, "
        "and each is an input or a constant of the program by itself: the first call takes up to a "
        "millisecond for each. Lists of numbers of one type, in rows of one length, are one input, "
        f"however long; pass others as arrays (np.array({path}), np.stack({path}))",
        FirstCallWarning, file, int(line))
