"""The names of scopes within scopes."""

from __future__ import annotations

WHOLE = "/job:localhost/task:0/device:CPU:1"
MERGED = [  # outer, inner, what holds inside
    ("/device:CPU:1", "", "/device:CPU:1"),
    ("", "/device:CPU:1", "/device:CPU:1"),
    ("/device:CPU:0", "/device:CPU:1", "/device:CPU:1"),
    ("/device:CPU:1", "/device:CPU:*", "/device:CPU:1"),
    ("/device:CPU:1", "/job:localhost", "/job:localhost/device:CPU:1"),
    ("/job:localhost/task:0", "/cpu:1", WHOLE),
    ("/device:CPU:*", "/device:*:1", "/device:CPU:1"),
    ("/device:CPU:1", "/device:REFERENCE", "/device:REFERENCE:*"),  # 1 is a number of CPUs
    ("/device:*:0", "/device:REFERENCE", "/device:REFERENCE:0"),
    (WHOLE, "/device:NULL", "/job:localhost/task:0/device:NULL:*"),
    ("/device:NULL:0", "/device:*:0", "/device:NULL:0"),
]
