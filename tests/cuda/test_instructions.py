"""The static gate: no kernel of the GPU suite takes 5 % more machine instructions than recorded."""

from __future__ import annotations

import json

import pytest
from record_instructions import FILE, counted

from fusec.bench.cases import lane_cases, lane_figures, sass
from fusec.codegen.cuda import disassembly
from fusec.codegen.cuda.driver import nvrtc

MOST_GROWTH = 1.05
SASS = """
        /*0000*/                   S2R R0, SR_TID.X ;
        /*0010*/                   ISETP.GE.AND P0, PT, R0, UR4, PT ;
.L_x_3:
        /*0020*/               @P0 EXIT ;
        /*0030*/              @!P1 BRA `(.L_x_0) ;
        /*0040*/                   LDG.E R2, desc[UR4][R2.64] ;
        /*0050*/                   FADD R2, R2, 1 ;
        /*0060*/                   STG.E desc[UR4][R4.64], R2 ;
        /*0070*/                   EXIT ;
.L_x_0:
        /*0080*/                   LDG.E.128 R4, desc[UR4][R2.64] ;
        /*0090*/                   DFMA R6, R6, R6, R4 ;
        /*00a0*/                   FFMA R4, R4, R4, 1 ;
        /*00b0*/                   STG.E.128 desc[UR4][R8.64], R4 ;
        /*00c0*/                   EXIT ;
.L_x_1:
        /*00d0*/                   BRA `(.L_x_1);
        /*00e0*/                   NOP;
"""
LOOP = """
        /*0000*/                   S2R R0, SR_TID.X ;
.L_x_0:
        /*0010*/                   LDG.E.64 R2, desc[UR4][R2.64] ;
        /*0020*/              @!P1 BRA `(.L_x_1) ;
        /*0030*/                   MUFU.EX2 R2, R2 ;
        /*0040*/                   MUFU.EX2 R3, R3 ;
.L_x_1:
        /*0050*/                   IADD3 R0, R0, 0x1, RZ ;
        /*0060*/               @P0 BRA `(.L_x_0) ;
        /*0070*/                   EXIT ;
"""


@pytest.mark.one_python
@pytest.mark.skipif(disassembly.disassembler() is None or not nvrtc.is_available(),
                    reason="NVRTC and nvdisasm: of the extra test-cuda")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_no_kernel_grows(dtype: str) -> None:
    """Where a change is meant to: ``python tests/cuda/record_instructions.py``."""
    recorded = {k: v for k, v in json.loads(FILE.read_text()).items()
                if f" {dtype}" in k and "of a lane" not in k}
    counts = counted(dtype)
    assert counts.keys() == recorded.keys()
    grown = {name: (recorded[name], count) for name, count in counts.items()
             if count > MOST_GROWTH * recorded[name]}
    assert not grown


@pytest.mark.one_python
@pytest.mark.skipif(disassembly.disassembler() is None or not nvrtc.is_available(),
                    reason="NVRTC and nvdisasm: of the extra test-cuda")
@pytest.mark.parametrize(("case", "dtype"), [
    pytest.param(case, dtype, marks=() if n in (0, 6) else pytest.mark.repeats,
                 id=f"{case.name} {dtype}")
    for n, case in enumerate(lane_cases.CASES) for dtype in case.dtypes])
def test_no_iteration_of_a_lane_grows(case: lane_cases.LaneCase, dtype: str) -> None:
    figures = lane_figures.figures_of(case, dtype)
    assert figures.instructions_in_all <= MOST_GROWTH * json.loads(FILE.read_text())[figures.name]
    assert figures.spilled_bytes == 0


def test_the_way_of_the_widest_accesses() -> None:
    assert sass.instructions(SASS) == {
        "memory": 2, "integer": 1, "float": 1, "double": 1, "branch": 3, "other": 1}


def test_a_loop_counts_once() -> None:
    assert sass.instructions(LOOP) == {
        "memory": 1, "integer": 1, "float": 0, "double": 0, "branch": 2, "other": 0}


@pytest.mark.parametrize(("opcode", "kind"), [
    ("LDG.E.128", "memory"), ("STS", "memory"), ("ULDC", "other"), ("IMAD.WIDE", "integer"),
    ("DFMA", "double"), ("MUFU.EX2", "float"), ("F2F.F64.F32", "float"), ("BSSY", "branch"),
    ("ISETP.GE.AND", "integer"), ("FSEL", "float"), ("S2R", "other")])
def test_classes(opcode: str, kind: str) -> None:
    assert sass.class_of(opcode) == kind
