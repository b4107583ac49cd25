"""The digits classifier of `examples`, trained here, predicts in a C program."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fusec

from .c_program import needs_compiler
from .test_c_library import SPEC, V3
from .test_c_library import pytestmark as needs_v3

pytestmark = needs_v3
EXAMPLE = Path(__file__).parents[2] / "examples/digits.py"
PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include "digits.h"
int main(int argc, char **argv) {
    static double images[360 * 64];
    static int64_t labels[360];
    FILE *file = fopen(argv[argc - 1], "rb");
    if (!file || fread(images, sizeof *images, 360 * 64, file) != 360 * 64) return 1;
    size_t bytes;
    if (predict_sizes(360, NULL, &bytes)) return 2;
    void *memory = malloc(bytes);
    digits_state *state = digits_new();
    int code = predict(360, images, labels, state, memory, bytes);
    if (code) return 3;
    for (int i = 0; i < 360; i++) printf("%d ", (int)labels[i]);
    digits_free(state);
    free(memory);
    return 0;
}
"""


@needs_compiler
def test_all_test_images(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    spec = importlib.util.spec_from_file_location("digits_example", EXAMPLE)
    assert spec is not None and spec.loader is not None
    example: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    model, (x, y) = example.Classifier(), example.digits()
    for i in range(0, 1400, 100):
        model.train(x[i: i + 100], y[i: i + 100])

    def predict(images: Any) -> Any:
        return model.scores(images).argmax(axis=1)

    made = fusec.export_c({"predict": (predict, (SPEC((None, 64)),))}, tmp_path / "digits", V3)
    images, labels = example.digits(test=True)
    (tmp_path / "main.c").write_text(PROGRAM)
    subprocess.run(["cc", "-std=c11", "-Wall", "-Werror", f"-I{made.folder}", tmp_path / "main.c",
                    made.static, "-lm", "-o", tmp_path / "main"], check=True)
    images.tofile(tmp_path / "images")
    shown = subprocess.run([tmp_path / "main", tmp_path / "images"], check=True,
                           capture_output=True, text=True).stdout
    predicted = np.array(shown.split(), int)
    assert np.array_equal(predicted, fusec.jit(predict)(images))
    assert len(images) == 360 and np.mean(predicted == labels) > 0.8
