"""What is said of loops that can neither run in blocks nor be written out."""

from __future__ import annotations

from fusec.errors import UnsupportedError, unsupported
from fusec.ir import Node

from .regions import SplitRegion

MOST_ITERATIONS = 1_000  # of a loop that is written out
MOST_NODES = 20_000  # of all that are


def or_rechunk(refusal: UnsupportedError) -> str:
    cure = refusal.diagnostic.cure
    return f"; or {cure}" if "rechunk" in cure else ""


def too_many(
    region: SplitRegion, refusal: UnsupportedError, are_decided: bool
) -> UnsupportedError:
    """The error of a loop of many iterations, or of one that no known number ends."""
    bound = f"{MOST_ITERATIONS:,} iterations and {MOST_NODES:,} operations"
    what = "which data end" if are_decided else "of more iterations than are written out"
    return impossible(
        region, refusal, what, "give it a number of iterations that the call knows, "
        f"for _ in range(n), of at most {bound}" + or_rechunk(refusal))


def impossible(
    region: SplitRegion, refusal: UnsupportedError, what: str, cure: str
) -> UnsupportedError:
    """The error of a branch or loop that cannot be written out; the refusal says why it must."""
    cause = refusal.diagnostic
    where = "" if cause.loc is None else f" at {cause.loc}"
    title = cause.title.replace(" is not supported inside a fusec.jit function", "")
    return unsupported(
        f"{region.title} that needs other blocks, {what},", loc=region.node.loc, cure=cure,
        notes=[f"it needs them for {title}{where}"])


def check_sizes(node: Node) -> None:
    """Raise for a node of an iteration that is written out whose size only the run knows."""
    for type_ in node.types:
        if not type_.is_static:
            raise unsupported(
                f"a size that only the run knows ({type_}) in a loop that needs other blocks",
                loc=node.loc, cure="keep the size with np.where, or compute that part outside")
