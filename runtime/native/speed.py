"""Two kernels that measure cores, as LLVM IR text: streaming memory, and multiplying and adding.

Both are nests, ``void (ptr args, i64 begin, i64 end)`` over tasks.  A task of ``triad`` computes
``a[i] = b[i] * 3 + c[i]`` for ``BLOCK`` doubles; one of ``multiply_add`` makes `chain_flops`
operations on doubles in registers, so many at a time that no core waits for the one before.
"""

from __future__ import annotations

import functools

from fusec.codegen.machine_code import llvm
from fusec.runtime.native import compile_forever

BLOCK = 4096  # doubles of a task of the triad
TURNS = 1 << 14
_CHAINS = 12  # with a factor and a summand they fit into the 16 registers that most CPUs have
_LANES = {"+avx512f": 8, "+avx": 4}

_TRIAD = """
define void @triad(ptr %args, i64 %begin, i64 %end) {
entry:
  %at.b = getelementptr ptr, ptr %args, i64 1
  %at.c = getelementptr ptr, ptr %args, i64 2
  %a = load ptr, ptr %args
  %b = load ptr, ptr %at.b
  %c = load ptr, ptr %at.c
  %first = mul i64 %begin, BLOCK
  %last = mul i64 %end, BLOCK
  br label %loop
loop:
  %i = phi i64 [ %first, %entry ], [ %next, %loop ]
BODY
  %next = add i64 %i, 32
  %more = icmp slt i64 %next, %last
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""

_TRIAD_STEP = """
  %i.N = add i64 %i, OFFSET
  %pb.N = getelementptr double, ptr %b, i64 %i.N
  %pc.N = getelementptr double, ptr %c, i64 %i.N
  %pa.N = getelementptr double, ptr %a, i64 %i.N
  %b.N = load <8 x double>, ptr %pb.N, align 8
  %c.N = load <8 x double>, ptr %pc.N, align 8
  %m.N = fmul <8 x double> %b.N, splat (double 3.0)
  %s.N = fadd <8 x double> %m.N, %c.N
  store <8 x double> %s.N, ptr %pa.N, align 8"""

_CHAIN = """
declare <LANES x double> @llvm.fmuladd.vLANESf64(<LANES x double>, <LANES x double>,
                                                 <LANES x double>)

define void @multiply_add(ptr %args, i64 %begin, i64 %end) {
entry:
  %tasks = sub i64 %end, %begin
  %turns = mul i64 %tasks, TURNS
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
BODY
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %turns
  br i1 %more, label %loop, label %done
done:
USES
  ret void
}
"""

_CHAIN_HEAD = "  %x.N = phi <LANES x double> [ splat (double N.5), %entry ], [ %y.N, %loop ]"
_CHAIN_STEP = """  %y.N = call <LANES x double> @llvm.fmuladd.vLANESf64(<LANES x double> %x.N,
      <LANES x double> splat (double 0.5), <LANES x double> splat (double 1.0))"""
# The results must be wanted by something, or the loop would be dropped as dead.
_CHAIN_USE = """  %e.N = extractelement <LANES x double> %y.N, i32 0
  store volatile double %e.N, ptr %args"""


def _lanes() -> int:
    features = llvm.host_features().split(",")
    return next((lanes for name, lanes in _LANES.items() if name in features), 2)


def chain_flops() -> int:
    """Operations of a task of ``multiply_add``; a multiplication with its addition counts two."""
    return 2 * _lanes() * _CHAINS * TURNS


def _repeated(text: str, count: int) -> str:
    return "\n".join(text.replace("N", str(k)) for k in range(count))


def source() -> str:
    """The kernels as LLVM IR text."""
    steps = "".join(_TRIAD_STEP.replace("OFFSET", str(8 * k)).replace("N", str(k))
                    for k in range(4))
    triad = _TRIAD.replace("BODY", steps).replace("BLOCK", str(BLOCK))
    lanes = str(_lanes())
    head, step, use = (_repeated(text.replace("LANES", lanes), _CHAINS)
                       for text in (_CHAIN_HEAD, _CHAIN_STEP, _CHAIN_USE))
    chain = _CHAIN.replace("LANES", lanes).replace("TURNS", str(TURNS))
    return triad + chain.replace("BODY", f"{head}\n{step}").replace("USES", use)


@functools.cache
def code() -> llvm.NativeCode:
    """Their machine code, compiled at first use."""
    return compile_forever(source(), {})
