"""Write `instructions.json`: machine instructions for each element of the kernels of the GPU suite,
and for an iteration of a lane.

Usage: ``python tests/cuda/record_instructions.py``, where a change is meant to change them.  It
needs NVRTC and NVIDIA's disassembler, and no GPU.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from fusec.bench.cases.gpu_figures import every_kernel
from fusec.bench.cases.lane_figures import every_ensemble
from fusec.bench.programs import all_programs

FILE = Path(__file__).parent / "instructions.json"


def counted(dtype: str) -> dict[str, float]:
    """Instructions for each element by program and kernel."""
    counts: dict[str, float] = {}
    seen: Counter[str] = Counter()
    for figures in every_kernel(all_programs([]), [dtype]):
        name = f"{figures.program}: {figures.kernel} {dtype}"
        seen[name] += 1
        counts[f"{name} {seen[name]}" if seen[name] > 1 else name] = round(
            figures.instructions_in_all, 2)
    return counts


def main() -> None:
    counts = counted("float32") | counted("float64") | {
        f.name: f.instructions_in_all for f in every_ensemble(["float32", "float64"])}
    FILE.write_text(json.dumps(counts, indent=1) + "\n")
    print(f"wrote {len(counts)} kernels to {FILE}")


if __name__ == "__main__":
    main()
