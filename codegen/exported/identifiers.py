"""Names for generated code."""

from __future__ import annotations

import re

_WORDS = (  # of C and C++
    "auto break case char const continue default do double else enum extern float for goto if "
    "inline int long register restrict return short signed sizeof static struct switch typedef "
    "union unsigned void volatile while bool true false workspace workspace_bytes and or not new "
    "delete class this template operator private public protected namespace using try catch throw "
    "alignas alignof and_eq asm bitand bitor char8_t char16_t char32_t compl concept const_cast "
    "constexpr decltype dynamic_cast explicit export friend mutable noexcept not_eq nullptr or_eq "
    "reinterpret_cast requires static_assert static_cast thread_local typeid typename typeof "
    "virtual wchar_t xor xor_eq NULL DLTensor size_t int8_t int16_t int32_t int64_t uint8_t "
    "uint16_t uint32_t uint64_t "
    # macros of compilers and of their headers
    "linux unix errno I complex imaginary noreturn stdin stdout stderr NAN INFINITY EOF")
RESERVED = frozenset(_WORDS.split())


def identifier(text: str, otherwise: str = "x") -> str:
    """A name in C and Python that is close to the text; ``otherwise`` where nothing is left of it,
    and before a digit."""
    stem = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_") or otherwise
    return f"{otherwise[0]}{stem}" if stem[0].isdigit() else stem


def unused(name: str, taken: set[str], mark: str = "") -> str:
    """The name, with a number behind ``mark`` where it is taken; it is taken from now on."""
    result, count = name, 1
    while result in taken:
        count += 1
        result = f"{name}{mark}{count}"
    taken.add(result)
    return result
