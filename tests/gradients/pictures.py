"""The pictures of docs/gradients.md, of the examples' findings:

    python tests/gradients/pictures.py docs

writes gradients-diffusivity.svg, gradients-digits.svg and gradients-epidemic.svg to that folder.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

EXAMPLES = Path(__file__).parents[2] / "examples"
# Text stays text, and the same figures make the same file.
STYLE: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "fusec"}


def diffusivity(figure: Figure, example: Any) -> None:
    k, start = example.plate(48)
    maps = {"diffusivity": k, "last photograph": example.photographs(k, start, 60)[-1],
            "found": example.found(k, start, 60)}
    figure.set_size_inches(8, 2.6)
    for axes, (title, values) in zip(figure.subplots(1, len(maps)), maps.items(), strict=True):
        limits = None if "photograph" in title else (0.1, 1.1)
        figure.colorbar(axes.imshow(values, clim=limits), ax=axes)
        axes.set(title=title, xticks=[], yticks=[])


def digits(figure: Figure, example: Any) -> None:
    """The test images that are read wrongly."""
    x, labels = example.digits(test=True)
    seen = np.argmax(example.main()[0].scores(x), axis=1)
    wrong = np.flatnonzero(seen != labels)
    figure.set_size_inches(1.25 * len(wrong), 1.6)
    for axes, i in zip(figure.subplots(1, len(wrong)), wrong, strict=True):
        axes.imshow(x[i].reshape(8, 8), cmap="gray_r")
        axes.set(xticks=[], yticks=[])
        axes.set_title(f"{labels[i]}, read as {seen[i]}", fontsize="small")


def epidemic(figure: Figure, example: Any) -> None:
    logs, _ = example.fitted()
    days = len(example.IN_BED)
    figure.set_size_inches(6, 2.8)
    axes = figure.subplots()
    axes.plot(np.arange(days + 5), example.course(logs, days + 5), label="model")
    axes.plot(np.arange(days), example.IN_BED, "o", label="boys in bed")
    axes.set(xlabel="day", ylabel="boys")
    axes.legend()


def main(folder: str) -> None:
    sys.path.insert(0, str(EXAMPLES))
    for draw in (diffusivity, digits, epidemic):
        with rc_context(STYLE):
            figure = Figure(layout="constrained")
            draw(figure, importlib.import_module(draw.__name__))
            figure.savefig(Path(folder) / f"gradients-{draw.__name__}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main(*sys.argv[1:])
