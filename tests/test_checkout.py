"""``import fusec`` from the root of a checkout, where nothing was installed."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

from fusec.core import checkout
from fusec.core.versions import parse_requirement

ROOT = Path(__file__).parents[1]
# What is left of an installed environment when fusec itself was never installed into it.
UNINSTALLED = ("import sys; sys.meta_path = [f for f in sys.meta_path if 'editable' not in "
               "f'{f}'.lower()]; sys.path = [p for p in sys.path if '__editable__' not in p]\n")


def run(code: str, *flags: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *flags, "-c", code], cwd=ROOT, capture_output=True,
                          text=True)


def test_a_checkout_works_without_being_installed() -> None:
    done = run(f"{UNINSTALLED}import fusec, numpy as np\n"
               "print(fusec.jit(lambda x: np.exp(x) + 1)(np.zeros(3)), fusec.runtime.__file__)")
    assert done.stdout.startswith("[2. 2. 2.]"), done.stderr
    assert str(ROOT / "runtime") in done.stdout


def test_without_its_dependencies_it_says_what_to_run() -> None:
    """``-S`` hides the site-packages."""
    done = run("import fusec", "-S")
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ModuleNotFoundError: fusec needs ")
    assert "numpy" in last and f"-m pip install -e {ROOT}" in last


def test_the_dependencies_are_those_of_the_project_file() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = tuple(parse_requirement(line).package for line in project["dependencies"])
    assert names == checkout.DEPENDENCIES


def test_doctor_reads_the_project_file_of_a_checkout() -> None:
    """As if no distribution of that name had been found."""
    hidden = ("from importlib import metadata\n"
              "def absent(name): raise metadata.PackageNotFoundError(name)\n"
              "metadata.requires = metadata.metadata = absent\n")
    done = run(f"{UNINSTALLED}{hidden}import fusec.__main__ as m\n"
               "raise SystemExit(m.main(['doctor']))")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "fusec itself: complete" in done.stdout
