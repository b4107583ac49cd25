"""The finder by which a checkout is imported as it lies, without having been installed.

Its folders `passes`, `codegen` and `runtime` belong below `fusec`; an installed package has them
there, and its dependencies were installed with it.  Importing this module does it.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from collections.abc import MutableSequence

LOADED_NS = time.time_ns()  # when this process began to load fusec
DEPENDENCIES = ("numpy", "numba", "llvmlite", "optree", "rich")


def root_of(package: str) -> str | None:
    """The checkout that the package's folder lies in, None for an installed one."""
    root = os.path.dirname(os.path.abspath(package))
    return root if os.path.exists(os.path.join(root, "pyproject.toml")) else None


def join_folders(path: MutableSequence[str]) -> None:
    """Let the package's search path find the folders beside it.

    Raises ``ModuleNotFoundError`` with the command to run when a dependency is not installed.
    """
    root = root_of(path[0])
    if root is None:
        return
    absent = [name for name in DEPENDENCIES if importlib.util.find_spec(name) is None]
    if absent:
        raise ModuleNotFoundError(
            f"fusec needs {', '.join(absent)}, which {sys.executable} has not installed; run: "
            f"{sys.executable} -m pip install -e {root}", name=absent[0])
    if root not in path:
        path.append(root)


join_folders(sys.modules["fusec"].__path__)
