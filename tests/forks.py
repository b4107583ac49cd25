"""Forked children of tests: whatever one raises, it ends there and is no second test process."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable


def ends_well(work: Callable[[], object]) -> int:
    """A child that ends with 0 where ``work`` gives a true value; its process number."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if work() else 1
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(code)
    return child


def does_well(work: Callable[[], object]) -> bool:
    """Whether such a child has ended with 0."""
    return os.waitstatus_to_exitcode(os.waitpid(ends_well(work), 0)[1]) == 0
