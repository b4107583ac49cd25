"""The tables of ``docs/gradients.md``: the derivative of each row of the registry.

``python tests/gradients/rule_tables.py`` writes them into the page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from fusec.ops import Op, all_ops
from fusec.ops.derivatives import Refused, Zero
from fusec.ops.derivatives.arrays.moves import MOVES
from fusec.ops.derivatives.elements.ufuncs import PARTIALS
from fusec.ops.derivatives.scipy.scipy_calls import RULES

DOCS = Path(__file__).parents[2] / "docs" / "gradients.md"
START, END = "<!-- rules: tests/gradients/rule_tables.py -->", "<!-- end of rules -->"
# Rows that hold graphs, and calls of users' functions: the engine's own affair.
OF_GRAPHS = {"Cond", "Loop", "Call", "Recursion", "CheckedRecursion", "GivenDerivative"}


def kind_of(row: Op) -> str:
    """``rule``, ``zero``, ``refused``, ``graph``, or ``none`` where nobody has said anything."""
    rules = [rule for rule in (row.partials, row.vjp, row.jvp) if rule is not None]
    if row.name in OF_GRAPHS:
        return "graph"
    if not rules:
        return "none"
    if any(isinstance(rule, Refused) for rule in rules):
        return "refused"
    return "zero" if any(isinstance(rule, Zero) for rule in rules) else "rule"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


def _reasons() -> Iterator[str]:
    reasons: dict[str, list[str]] = {}
    for row in all_ops():
        for rule in {id(r): r for r in (row.partials, row.vjp) if isinstance(r, Refused)}.values():
            reasons.setdefault(rule.reason, []).append(row.name)
    for reason, names in reasons.items():
        yield f"| {_listed(names)} | {reason} |"


def tables() -> str:
    """Markdown: rows by their kind of rule, library functions by name, reasons."""
    rows = list(all_ops())
    by_kind = {kind: [r.name for r in rows if kind_of(r) == kind]
               for kind in ("rule", "zero", "refused")}
    special = [name.removeprefix("special.") for name in PARTIALS]
    return "\n".join((
        f"Of {len(rows)} rows {len(by_kind['rule'])} have a rule, {len(by_kind['zero'])} are zero "
        f"by nature, {len(by_kind['refused'])} are refused; the others hold graphs, whose nodes "
        "are rows.", "",
        f"- **A rule**: {_listed(by_kind['rule'])}.",
        f"- **Zero by nature**: {_listed(by_kind['zero'])}.",
        f"- **SciPy's functions** (row `Scipy`): {_listed(RULES)}.",
        f"- **Ufuncs without a row** (row `Ufunc`; of SciPy's those in `scipy.special`): "
        f"{_listed(special)}.",
        f"- **Functions and methods called by name** (rows `Numpy`, `Method`): {_listed(MOVES)}.",
        "", "| refused | because |", "|---|---|", *_reasons()))


def main() -> None:
    page = DOCS.read_text(encoding="utf-8")
    before, after = page.split(START)[0], page.split(END)[1]
    DOCS.write_text(f"{before}{START}\n{tables()}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
