"""The tables that ``fusec.runtime.launching.launch`` packs and the native launcher reads.

Every record is a run of 64-bit words in the order of the tuples below.  The launcher's text uses
the names (``arg.kind``, ``arg.SIZE``); nothing else knows the numbers.
"""

from __future__ import annotations

PLAN = ("busy", "status", "nargs", "flags", "args", "nrelations", "relations", "nouts", "outs",
        "ntemps", "temps", "nsteps", "steps", "results", "scratch", "nwords", "words", "nholds",
        "holds")
ARG = ("kind", "type", "descr", "ndim", "dims", "strides", "mask", "wanted", "low", "high",
       "nstores", "stores")
STORE = ("slot", "mode", "offset")
RELATION = ("kind", "first", "second", "low1", "high1", "low2", "high2")
OUT = ("kind", "object", "ndim", "dims", "strides", "nbytes", "source", "offset", "nstores",
       "stores")
WORD = ("address", "expected")
HOLD = ("words", "writes")
TEMP = ("nbytes", "nstores", "stores")
STEP = ("function", "arguments", "ntasks", "grain", "parallel")
RECORDS = {"plan": PLAN, "arg": ARG, "store": STORE, "relation": RELATION, "out": OUT,
           "temp": TEMP, "step": STEP, "word": WORD, "hold": HOLD}

# Kinds of arguments, outputs and stores; flags of plans.
ARG_OBJECT, ARG_ARRAY, ARG_RAW, ARG_INT, ARG_BOOL = range(5)
(OUT_ARRAY, OUT_VIEW, OUT_ARGUMENT, OUT_OBJECT, OUT_SCALAR, OUT_FLOAT, OUT_INT, OUT_BOOL,
 OUT_COMPLEX) = range(9)
STORE_RAW, STORE_F64_AS_F32, STORE_INT_AS_F64, STORE_INT_AS_F32 = range(4)
RELATION_DISJOINT, RELATION_SAME = range(2)
FLAG_RELEASE_GIL, FLAG_TUPLE, FLAG_PARALLEL = 1, 2, 4
ANY_STRIDE = -(1 << 63)

_PREFIXES = ("ARG_", "OUT_", "STORE_", "RELATION_", "FLAG_", "ANY_")
# What each name in the launcher's text stands for.
CONSTANTS = (
    {f"{record}.{name}": index
     for record, fields in RECORDS.items() for index, name in enumerate(fields)}
    | {f"{record}.SIZE": len(fields) for record, fields in RECORDS.items()}
    | {name: value for name, value in globals().items() if name.startswith(_PREFIXES)})
