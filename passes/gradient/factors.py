"""Products of arrays and numbers, the numbers apart."""

from __future__ import annotations

from fusec.ops.derivatives import Term
from fusec.ops.derivatives.terms import reciprocal

DEEPEST = 8  # operations that are looked through
Numbers = list[Term | None]  # None: -1


def factored(term: Term, newest: int, depth: int = DEEPEST) -> tuple[Term, Numbers]:
    """An array and numbers whose product the term is; the term itself where there are none.

    Nodes up to number ``newest`` are of the program: their values are taken as they are, since
    they are kept, and their operands may not be.
    """
    node = term.value.node
    if node.id <= newest or not depth or not term.rank:
        return term, []
    operands = [Term(term.builder, v) for v in node.inputs]
    if node.op == "Neg":
        core, numbers = factored(operands[0], newest, depth - 1)
        return core, [*numbers, None]
    if node.op == "Div" and not operands[1].rank:
        core, numbers = factored(operands[0], newest, depth - 1)
        return core, [*numbers, reciprocal(operands[1])]
    if node.op != "Mul":
        return term, []
    for array, number in (operands, operands[::-1]):
        if not number.rank:
            core, numbers = factored(array, newest, depth - 1)
            return core, [*numbers, number]
    (a, of_a), (b, of_b) = (factored(x, newest, depth - 1) for x in operands)
    return (a * b, [*of_a, *of_b]) if of_a or of_b else (term, [])
