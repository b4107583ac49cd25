"""A fixed part of the suite on every supported Python, with the oldest and the newest NumPy.

``make test-versions``, or ``.ci/versions.py --tested PYTHON`` after a whole run of the suite on
PYTHON, whose versions are then left out.  Environments are made under .venv-versions, from the
package index, when pyproject.toml has changed since; two parts run side by side.  An interpreter
that is not found is named; the exit status is 1 when a part fails or nothing ran.  Each
environment runs half of the files, others each day: of one Python the two halves, with two NumPys.
"""

from __future__ import annotations

import argparse
import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / ".venv-versions"
EXTRAS = ("test", "bench", "packages")
LIMIT_SECONDS = 1200
PROBE = ("import sys, venv, ensurepip; "
         "print(*sys.version_info[:2], sep='.'); print(sys.version_info[2])")
VERSIONS = "import platform, numpy; print(f'{platform.python_version()}, {numpy.__version__}')"
PIP = ("-m", "pip", "--disable-pip-version-check", "--quiet", "--retries", "10", "--timeout", "60")
UV = FOLDER / "uv"
installing = Lock()


@functools.cache
def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def supported() -> list[str]:
    """``3.11``, ``3.12``, …: the Pythons that the classifiers name."""
    return re.findall(r"Python :: (3\.\d+)", "\n".join(project()["classifiers"]))


def oldest_numpy() -> str:
    return re.search(r"numpy>=([\d.]+)", "\n".join(project()["dependencies"]))[1]


def candidates(version: str) -> Iterator[str]:
    """Where an interpreter of a version may be: on PATH, and among pyenv's."""
    for folder in os.get_exec_path():
        if found := shutil.which(f"python{version}", path=folder):
            yield found
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    patches = [path for path in pyenv.glob(f"{version}.*") if path.name.split(".")[2].isdigit()]
    for path in sorted(patches, key=lambda path: -int(path.name.split(".")[2])):
        yield str(path / "bin" / "python")


def interpreter(version: str) -> str | None:
    """The first candidate that runs, is of this version and can make environments."""
    for path in candidates(version):
        try:
            done = subprocess.run([path, "-c", PROBE], capture_output=True, text=True, timeout=60)
        except OSError:
            continue
        if done.returncode == 0 and done.stdout.split()[0] == version:
            return path
    return None


@dataclass(frozen=True)
class Environment:
    """One Python with one NumPy: ``newest`` or ``oldest``."""

    version: str
    numpy: str
    base: str
    half: int

    @property
    def folder(self) -> Path:
        return FOLDER / f"{self.version}-{self.numpy}"

    @property
    def python(self) -> str:
        return str(self.folder / "bin" / "python")

    def make(self) -> None:
        """Create and fill it, unless that was done for this pyproject.toml and this Python."""
        stamp = self.folder / "stamp"
        wanted = f"{self.base}\n{(ROOT / 'pyproject.toml').read_text()}"
        if stamp.exists() and stamp.read_text() == wanted:
            return
        run(self.base, "-m", "venv", "--clear", "--without-pip", str(self.folder))
        needs = list(project()["dependencies"])
        needs += [line for extra in EXTRAS for line in project()["optional-dependencies"][extra]]
        pinned = [f"numpy=={oldest_numpy()}"] if self.numpy == "oldest" else []
        self.install(*needs, *pinned)
        with installing:  # two installs of one checkout write the same files
            self.install("--no-deps", "-e", str(ROOT))
        stamp.write_text(wanted)

    def install(self, *what: str) -> None:
        """From the package index, or from what another environment has had from there."""
        run(str(UV / "bin" / "uv"), "pip", "install", "--quiet", "--python", self.python, *what)

    def test(self) -> tuple[bool, str]:
        """Whether the part passed, and what to print about it."""
        start, title = time.monotonic(), f"Python {self.version} with the {self.numpy} NumPy"
        try:
            self.make()
            made = time.monotonic() - start
            versions = run(self.python, "-c", VERSIONS).strip()
            # What measures time or memory needs the machine to itself, and two parts share it.
            text = run(self.python, "-m", "pytest", "--part", "--half", str(self.half),
                       "-m", "not alone", "-o", "addopts=", "--import-mode=importlib",
                       "-p", "no:cacheprovider", "--tb=short")
        except StepFailed as failure:
            return False, f"FAILED: {title}\n{str(failure)[-8000:]}"
        counts = text.strip().splitlines()[-1].strip("= ")
        return True, f"{title} ({versions}): {counts}; {made:.0f} s for its environment"


class StepFailed(Exception):
    """A command's output."""


def run(*command: str) -> str:
    try:
        done = subprocess.run(command, cwd=ROOT, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=LIMIT_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise StepFailed(f"{command}: no end after {LIMIT_SECONDS} s\n{error.stdout}") from None
    if done.returncode:
        raise StepFailed(f"{' '.join(command[:4])} … ended with {done.returncode}\n{done.stdout}")
    return done.stdout


def environments(tested: str | None) -> list[Environment]:
    """All that can be made, those absent named."""
    whole = run(tested, "-c", PROBE).split()[0] if tested else None
    made = []
    for number, version in enumerate(supported()):
        base = interpreter(version)
        if base is None:
            print(f"Python {version}: NOT TESTED, no python{version} on PATH or among pyenv's")
            continue
        made += [Environment(version, numpy, base, (number + other) % 2)
                 for other, numpy in enumerate(("newest", "oldest"))
                 if (version, numpy) != (whole, "newest")]
    # Bytecode that one has written is read by the next of its Python, if that comes later.
    return sorted(made, key=lambda environment: environment.numpy)


def make_uv() -> None:
    """uv takes seconds where pip takes a minute of each environment."""
    if not (UV / "bin" / "uv").exists():
        run(sys.executable, "-m", "venv", "--clear", str(UV))
        run(str(UV / "bin" / "python"), *PIP, "install", "uv>=0.5")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tested", metavar="PYTHON", help="has run the whole suite")
    chosen = environments(parser.parse_args().tested)
    FOLDER.mkdir(exist_ok=True)
    make_uv()
    results = []
    # Machine code is the same under each of them: it is compiled once.
    with tempfile.TemporaryDirectory(prefix="fusec-test-cache-") as cache, \
            ThreadPoolExecutor(2) as pool:
        os.environ["FUSEC_TEST_CACHE"] = cache
        for passed, text in pool.map(Environment.test, chosen):
            print(text, flush=True)
            results.append(passed)
    return 0 if results and all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
