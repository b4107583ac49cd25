"""Ops that carry a value from one device, or iteration, to another: made by passes, never by a
program.

``Send`` hands a value to the rendezvous, ``Recv`` takes it there (section 3.2.2 of the TensorFlow
paper).  Without an operand, or a result, they carry a control edge.  A ``Fence`` stands between
iterations of a loop that is written out, while its products are contracted as in the loop.
"""

from __future__ import annotations

from typing import Any

from ..admission.admission import BY_PASSES
from ..registry import Op, Types, register


def infer_recv(types: Any, attrs: Any) -> Types:
    return tuple(attrs["results"])


def _unevaluated(*arrays: Any, **attrs: Any) -> Any:
    raise AssertionError("internal error: a partition is run by its executor")


register(Op(
    name="Send", kind="extern", infer=lambda types, attrs: (), reference=_unevaluated,
    stateful=True, is_transfer=True, admits=BY_PASSES,
    doc="Gives its operand to the rendezvous. attrs: key; target: the device that takes it; lossy: "
        "whether float32 is cut to bfloat16 on the way.",
))
register(Op(
    name="Recv", kind="extern", arity=0, infer=infer_recv, reference=_unevaluated,
    is_transfer=True, admits=BY_PASSES,
    doc="What the Send with the same key gave. attrs: key; source: the device it comes from; "
        "results: its type, if it has a value.",
))
register(Op(
    name="Fence", kind="extern", arity=1, infer=lambda types, attrs: (types[0],),
    reference=lambda x, key, stored: x, is_transfer=True, admits=BY_PASSES,
    doc="Its operand, through which no pass looks. attrs: key: which fence it is; stored: whether "
        "it is stored in blocks.",
))
