"""Versions of fusec and of its dependencies, read from package metadata without importing."""

from __future__ import annotations

import os
import platform
import re
import sys
from typing import Any

from . import checkout
from .records import dataclass, replace

FOUNDATIONS = ("numpy", "numba", "llvmlite")
_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)\s*(?:\[[^]]*\])?\s*\(?(?P<bounds>[^;)]*)\)?")
_EXTRA = re.compile(r"extra\s*==\s*['\"](?P<extra>[\w.-]+)['\"]")
_BOUND = re.compile(r"(>=|<=|==|!=|<|>)\s*([\d.]+)")


def _metadata() -> Any:
    """``importlib.metadata``, which takes milliseconds to import, and which few programs need."""
    from importlib import metadata

    return metadata


def version_of(package: str) -> str | None:
    """The installed version of a distribution, or None; of fusec the version that runs."""
    if package == "fusec":  # a checkout has no metadata, an editable install those of its day
        return sys.modules["fusec"].__version__
    metadata = _metadata()
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def summary() -> str:
    """``fusec 0.1.0, Python 3.11.7, numpy 2.4.6, numba 0.68.1, llvmlite 0.50.0, Linux x86_64``."""
    packages = ", ".join(f"{n} {version_of(n) or 'missing'}" for n in ("fusec", *FOUNDATIONS))
    ours, _, rest = packages.partition(", ")
    system = f"{platform.system()} {platform.machine()}"
    return f"{ours}, Python {platform.python_version()}, {rest}, {system}"


@dataclass(frozen=True)
class Requirement:
    """One line of the package metadata: distribution, bounds such as ``>=2.1,<3``, extra or ''."""

    package: str
    bounds: str
    extra: str

    @property
    def installed(self) -> str | None:
        return version_of(self.package)

    @property
    def satisfied(self) -> bool:
        return self.installed is not None and within(self.installed, self.bounds)

    def __str__(self) -> str:
        return f"{self.package}{self.bounds}"


def parse_requirement(line: str) -> Requirement:
    """Read a ``Requires-Dist`` line; raises ``ValueError`` when it is not one."""
    match = _REQUIREMENT.match(line)
    if match is None:
        raise ValueError(f"not a requirement: {line!r}")
    extra = _EXTRA.search(line)
    return Requirement(match["name"], match["bounds"].strip(), extra["extra"] if extra else "")


def requirements() -> list[Requirement]:
    """Requirements of fusec and its extras, of the installed package's metadata or the checkout."""
    metadata = _metadata()
    try:
        return [parse_requirement(line) for line in metadata.requires("fusec") or ()]
    except metadata.PackageNotFoundError:
        project = _checkout_project()
        extras = {"": project["dependencies"], **project["optional-dependencies"]}
        return [replace(parse_requirement(line), extra=extra)
                for extra, lines in extras.items() for line in lines]


def install_command(extra: str, options: str = "") -> str:
    """The pip command that installs an extra's requirements, package by package.

    The packages are named, not ``fusec[extra]``: that name is only known to an index that has a
    release of fusec.
    """
    needed = " ".join(f"'{need}'" for need in requirements() if need.extra == extra)
    return " ".join(part for part in ("pip install", options, needed) if part)


def python_bounds() -> str:
    """The Pythons that fusec is tested with, such as ``>=3.11,<3.14``."""
    metadata = _metadata()
    try:
        return metadata.metadata("fusec")["Requires-Python"]
    except metadata.PackageNotFoundError:
        return _checkout_project()["requires-python"]


def _checkout_project() -> dict[str, Any]:
    import tomllib

    root = checkout.root_of(sys.modules["fusec"].__path__[0])
    if root is None:
        raise _metadata().PackageNotFoundError("fusec")
    with open(os.path.join(root, "pyproject.toml"), "rb") as file:
        return tomllib.load(file)["project"]


def _numbers(version: str) -> tuple[int, ...]:
    release = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(part) for part in release[0].split(".")) if release else ()


def within(version: str, bounds: str) -> bool:
    """Whether the release numbers of a version lie within comma-separated bounds."""
    return all(_holds(version, op, limit) for op, limit in _BOUND.findall(bounds))


def _holds(version: str, op: str, limit: str) -> bool:
    left, right = _numbers(version), _numbers(limit)
    width = max(len(left), len(right))
    left, right = (side + (0,) * (width - len(side)) for side in (left, right))
    return {
        ">=": left >= right, "<=": left <= right, "==": left == right,
        "!=": left != right, "<": left < right, ">": left > right,
    }[op]
