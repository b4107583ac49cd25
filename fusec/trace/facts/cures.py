"""Cures for NumPy's errors: the first row whose words are in the message."""

from __future__ import annotations

_CURES = (
    ("operands could not be broadcast",
     "make the shapes equal from the right, or insert axes of length 1 with np.newaxis"),
    ("could not broadcast input array",
     "assign a number, or an array whose shape equals the target's from the right"),
    ("non-broadcastable output", "pass an out= of the result's shape"),
    ("do not align", "make these two sizes equal, or transpose an operand that has two axes"),
    ("Cannot cast ufunc", "write x = x + y, which makes a new array, or convert with .astype"),
    ("Cannot cast", "convert with .astype, or pass casting='unsafe'"),
    ("cannot reshape", "the new sizes must multiply to the old ones; one of them may be -1"),
    ("truth value of an array",
     "reduce it with .any() or .all(), or select elements with np.where(condition, a, b)"),
    ("read-only", "copy it first: y = x.copy()"),
    ("which has no identity", "test x.size before"),
    ("of an empty sequence", "test x.size before"),
    ("negative integer powers", "convert the base to float: x.astype(float) ** n"),
    ("not supported for the input types", "convert the operands: bits and shifts need integers"),
    ("dimensions except for the concatenation axis", "make the other axes equal, or join along "
     "another axis"),
    ("only 0-dimensional arrays", "take one element, x[0], or keep the array: x.astype(float)"),
    ("only length-1 arrays", "take one element, x[0], or keep the array: x.astype(float)"),
    ("out of bounds for uint", "convert the array to a wider or signed dtype first"),
    ("out of bounds for int", "convert the array to a wider dtype first"),
)


def cure_for(message: str) -> str:
    """The cure for an error with this message; empty when there is nothing helpful to say."""
    return next((cure for words, cure in _CURES if words in message), "")
