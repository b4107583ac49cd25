"""A fixed sample of random programs: `differentiated_programs` makes more."""

from __future__ import annotations

from collections import Counter

from differentiated_programs import judged, program_of

SAMPLE = 120


def test_derivatives_of_random_programs() -> None:
    """None is wrong, and of most both directions are judged."""
    verdicts: Counter[str] = Counter()
    for seed in range(SAMPLE):
        program = program_of(seed)
        try:
            verdicts[judged(program, seed).partition(":")[0]] += 1
        except Exception as error:
            error.add_note(f"\n# ---- seed {seed}: run this\n{program.runnable}")
            raise
    assert verdicts["right"] > SAMPLE // 3, verdicts
    assert verdicts["refused"] < SAMPLE // 6, verdicts
