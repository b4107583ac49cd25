"""A kernel's text as a function of the device, for kernels that are made of several.

Where a thread is, and the grid that it is in, comes from an argument.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_HEAD = re.compile(r'extern "C" __global__ void __launch_bounds__\(\d+, \d+\) (\w+)\(')


def as_function(text: str, params: str, words: Mapping[str, str]) -> str:
    """The kernel as a function of these parameters and its own; ``words`` of CUDA become those."""
    text = _HEAD.sub(rf"__device__ __forceinline__ void \1({params}, ", text, count=1)
    head, brace, body = text.partition("{\n")
    for word, name in words.items():
        body = body.replace(word, name)
    return head + brace + body
