"""Which of NumPy's functions are compiled: a page made by tracing a call of each of them.

A function is *fused* when the traces of sample calls hold fusec's own ops only, a *library call*
when they hold an op that calls NumPy or SciPy, *plain* when it sees no array (it runs as it is
while tracing), and *refused* otherwise.  ``python -m fusec.inspect.coverage --write PAGE``.
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import fusec
from fusec.core.records import dataclass
from fusec.errors import FusecError, InternalError
from fusec.ops import registry
from fusec.trace import tracer  # noqa: F401 (it fills the tables)
from fusec.trace.facts.refusals import is_compiled
from fusec.trace.values.handlers import FUNCTIONS, TABLE

from .array_api import ARRAY_API
from .coverage_reasons import PLAIN, REFUSED
from .coverage_samples import SAMPLES, generic_samples

FUSED, LIBRARY, PLAIN_CALL, REFUSAL = "fused", "library call", "plain", "refused"
ORDER = (FUSED, LIBRARY, PLAIN_CALL, REFUSAL)


@dataclass(frozen=True)
class CoverageEntry:
    """One function: its name below ``np.``, its class, and the reason where there is one."""

    name: str
    status: str
    reason: str = ""


def numpy_names() -> Iterator[str]:
    """Every public callable of ``np``, ``np.linalg`` and ``np.fft``."""
    for prefix, module in (("", np), ("linalg.", np.linalg), ("fft.", np.fft)):
        for name in sorted(set(dir(module)) & set(module.__all__)):
            if callable(getattr(module, name)):
                yield prefix + name


def find(name: str) -> Any:
    """The object of that name below ``np.``; None when NumPy has none."""
    target: Any = np
    for part in name.split("."):
        target = getattr(target, part, None)
    return target


def classify(name: str) -> CoverageEntry:
    """The class of a function, by tracing sample calls."""
    function = find(name)
    if function is None:
        return CoverageEntry(name, REFUSAL, "NumPy has no function of this name")
    if isinstance(function, type) and issubclass(function, np.generic) and name not in PLAIN:
        return _scalar_type(name, function)
    ops = _traced_ops(name, function)
    if ops is not None:
        kinds = {registry.get(op).kind for op in ops}
        return CoverageEntry(name, LIBRARY if "extern" in kinds else FUSED)
    if name in PLAIN:
        return CoverageEntry(name, PLAIN_CALL, PLAIN[name])
    return CoverageEntry(name, REFUSAL, REFUSED.get(name, "it is not written yet"))


def _scalar_type(name: str, kind: type) -> CoverageEntry:
    """A conversion such as ``np.float32(x)``."""
    if kind in TABLE and is_compiled(np.dtype(kind)):
        return CoverageEntry(name, FUSED)
    reason = REFUSED.get(name, "its dtype is not compiled")
    return CoverageEntry(name, REFUSAL, reason)


def _answers(function: Any) -> bool:
    """Whether calls of the function with traced arrays have a handler.

    Without one it is called with constants or not at all, and sample calls would show nothing.
    """
    if isinstance(function, np.ufunc):
        return True
    return function in FUNCTIONS or function in TABLE


def _traced_ops(name: str, function: Any) -> set[str] | None:
    """The ops of the first sample call that NumPy takes and fusec traces; None if there is none."""
    if not _answers(function) and function is not np.vectorize:  # whose objects answer
        return None
    for call, args in SAMPLES.get(name) or generic_samples(function):
        ops = _ops_of(call, args) if _numpy_takes(call, args) else None
        if ops is not None:
            return ops
    return None


def _numpy_takes(call: Callable[..., Any], args: tuple[Any, ...]) -> bool:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            call(*[np.copy(a) if isinstance(a, np.ndarray) else a for a in args])
        except Exception:  # a generic sample that this function does not take
            return False
    return True


def _ops_of(call: Callable[..., Any], args: tuple[Any, ...]) -> set[str] | None:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            graph = fusec.jit(call).trace(*args).graph
        except InternalError:
            raise
        except FusecError:
            return None
    return {node.op for node in graph.nodes}


# ------------------------------------------------------------------------------------- the page


def entries() -> list[CoverageEntry]:
    """All functions of NumPy's namespaces."""
    return [classify(name) for name in numpy_names()]


def array_api_entries() -> dict[str, list[CoverageEntry]]:
    """The Array API standard's functions by section, under NumPy's names."""
    return {section: [classify(n) for n in names] for section, names in ARRAY_API.items()}


def percentage(rows: list[CoverageEntry]) -> float:
    """How many of the functions are not refused, in percent."""
    return 100 * sum(e.status != REFUSAL for e in rows) / len(rows)


def _count_row(title: str, rows: list[CoverageEntry]) -> str:
    counts = Counter(e.status for e in rows)
    cells = " | ".join(str(counts[status]) for status in ORDER)
    return f"| {title} | {len(rows)} | {cells} | {percentage(rows):.1f} % |"


def _home(entry: CoverageEntry) -> str:
    return entry.name.rpartition(".")[0]


def page() -> str:
    """The page, as Markdown."""
    functions, standard = entries(), array_api_entries()
    parts = [e for section in standard.values() for e in section]
    homes = {"": "`numpy`", "linalg": "`numpy.linalg`", "fft": "`numpy.fft`"}
    lines = [
        "# NumPy coverage", "",
        f"Generated from fusec's tables and NumPy {np.__version__} by",
        "`python -m fusec.inspect.coverage --write docs/numpy-coverage.md`; do not edit.", "",
        "*Fused*: a trace of a sample call holds only ops that fusec compiles.  *Library call*:",
        "it holds a call of NumPy or SciPy.  *Plain*: it sees no array and runs as it is while a",
        "function is traced.  *Refused*: it raises `UnsupportedError`; the reason is in the table.",
        "The last column is the share that is not refused.", "",
        "| | functions | fused | library call | plain | refused | works |",
        "|---|---|---|---|---|---|---|",
        *[_count_row(title, [e for e in functions if _home(e) == home])
          for home, title in homes.items()],
        _count_row("Array API 2024.12", parts),
    ]
    lines += ["", "## Python Array API standard 2024.12", "",
              "Sections and names: <https://data-apis.org/array-api/2024.12/>.", ""]
    for section, members in standard.items():
        lines += [f"### {section.capitalize()}", "", *_table(members), ""]
    for home, title in homes.items():
        lines += [f"## {title}", "", *_table([e for e in functions if _home(e) == home]), ""]
    return "\n".join(lines).rstrip() + "\n"


def _table(rows: list[CoverageEntry]) -> list[str]:
    """One line a function for refusals, one line a class for the rest."""
    lines = []
    for status in (FUSED, LIBRARY):
        names = ", ".join(f"`{e.name}`" for e in rows if e.status == status)
        lines += [f"- **{status}**: {names}"] if names else []
    for status, joint in ((PLAIN_CALL, ", "), (REFUSAL, ", because ")):
        reasons: dict[str, list[str]] = {}
        for e in rows:
            if e.status == status:
                reasons.setdefault(e.reason, []).append(f"`{e.name}`")
        lines += [f"- **{status}**{joint}{reason}: {', '.join(names)}"
                  for reason, names in sorted(reasons.items())]
    return lines


def main() -> None:
    """Print the page, or write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, metavar="PAGE", help="write the page to this file")
    path = parser.parse_args().write
    if path is None:
        print(page(), end="")
    else:
        path.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
