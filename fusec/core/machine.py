"""The machine's share for this process: cores, memory, a folder.  Imports nothing of fusec."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

_GROUPS = Path("/sys/fs/cgroup")
_MEMBERSHIP = Path("/proc/self/cgroup")
_CPUS = Path("/sys/devices/system/cpu")
_MAX_MEMORY_CAP = 1 << 30


def usable_cores() -> int:
    """Cores left to this process by affinity and control-group quota (rounded up), at least 1."""
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    quota = cgroup_cores()
    return max(1, cores if math.isinf(quota) else min(cores, math.ceil(quota)))


def usable_cpus() -> tuple[int, ...]:
    """The numbers of the CPUs that affinity leaves to this process.

    Those of one socket lie side by side, and in it those of one core, so that parts of the tuple
    share as little as can be.
    """
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(os.getpid()), key=_place))
    return tuple(range(os.cpu_count() or 1))


def _place(cpu: int) -> tuple[int, int, int]:
    """A CPU's socket and core, where this system says, and its number."""
    topology = _CPUS / f"cpu{cpu}" / "topology"
    socket, core = (int(words[0]) if words else 0 for words in (
        _words(topology / name) for name in ("physical_package_id", "core_id")))
    return socket, core, cpu


def shared_out(items: Sequence[int], count: int) -> list[tuple[int, ...]]:
    """In ``count`` parts of nearly the same size, without gaps; where there are fewer items than
    parts, each part has one, which others have, too."""
    size = len(items)
    if size < count:
        return [(items[i % size],) for i in range(count)]
    return [tuple(items[i * size // count:(i + 1) * size // count]) for i in range(count)]


def cgroup_cores(root: Path = _GROUPS, membership: Path = _MEMBERSHIP) -> float:
    """The least CPU quota, in cores, of this process's control groups and their parents.

    Infinity where there is no limit, or no control groups.  Lines of ``/proc/self/cgroup`` read
    ``0::/path`` in version 2 and ``4:cpu,cpuacct:/path`` in version 1.
    """
    return min((_quota(base / part) for base, path in _cpu_groups(root, membership)
                for part in (path, *path.parents)), default=math.inf)


def _cpu_groups(root: Path, membership: Path) -> Iterator[tuple[Path, Path]]:
    """The hierarchies that count CPU time, and this process's group in each."""
    for line in _words(membership):
        _, controllers, group = line.split(":", 2)
        if not controllers or "cpu" in controllers.split(","):
            yield root / "cpu" if controllers else root, Path(group.lstrip("/"))


def _quota(folder: Path) -> float:
    """Version 2 keeps "quota period" in one file, with "max" for none; version 1 has two files."""
    words = _words(folder / "cpu.max") or (
        _words(folder / "cpu.cfs_quota_us") + _words(folder / "cpu.cfs_period_us")
    )
    if len(words) != 2 or words[0] == "max" or int(words[0]) <= 0:
        return math.inf
    return int(words[0]) / int(words[1])


def stopped_by_quota(root: Path = _GROUPS, membership: Path = _MEMBERSHIP) -> float:
    """Seconds for which CPU quotas have stopped this process's control group, or a parent of it;
    0 where there are none."""
    return max((_stopped(base / part) for base, path in _cpu_groups(root, membership)
                for part in (path, *path.parents)), default=0.0)


def _stopped(folder: Path) -> float:
    """Version 2 counts microseconds, version 1 nanoseconds."""
    words = _words(folder / "cpu.stat")
    counts = dict(zip(words[::2], map(int, words[1::2]), strict=False))
    return counts.get("throttled_usec", 0) / 1e6 + counts.get("throttled_time", 0) / 1e9


def _words(path: Path) -> list[str]:
    """The words of one of the kernel's small files; none when this kernel has no such file."""
    return path.read_text().split() if path.is_file() else []


def default_threads(environ: Mapping[str, str] = os.environ) -> int:
    """``OMP_NUM_THREADS`` (its first level) where it names a number, but no more than the cores."""
    text = environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    cores = usable_cores()
    return min(int(text), cores) if text.isdecimal() and int(text) > 0 else cores


def default_memory_cap() -> int:
    """Bytes of freed results kept for reuse: an eighth of the memory, at most 1 GiB."""
    memory = physical_memory()
    return min(_MAX_MEMORY_CAP, memory // 8) if memory else _MAX_MEMORY_CAP


def default_gradient_memory() -> int:
    """Bytes that loops may keep for gradients: a quarter of the memory, or 4 GiB."""
    return physical_memory() // 4 or 4 << 30


def physical_memory() -> int:
    """Bytes of memory of this machine; 0 where the system does not say."""
    if not hasattr(os, "sysconf"):
        return 0
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def usable_memory(root: Path = _GROUPS, membership: Path = _MEMBERSHIP) -> int:
    """Bytes of memory that control groups leave to this process, 0 where nothing says."""
    limits = [physical_memory()]
    for line in _words(membership):
        _, controllers, group = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        base = root / "memory" if controllers else root
        path = Path(group.lstrip("/"))
        for part in (path, *path.parents):
            words = _words(base / part / "memory.max") + _words(
                base / part / "memory.limit_in_bytes")
            limits += [int(word) for word in words if word.isdecimal()]
    return min((limit for limit in limits if limit > 0), default=0)


def emulated_memory() -> int:
    """Bytes that the emulated CUDA device may use: half of the process's; 0 where nothing says."""
    return usable_memory() // 2


def default_cache_dir(environ: Mapping[str, str] = os.environ) -> str:
    """Where this platform wants a user's caches; ``off`` when the user has no home folder."""
    if sys.platform == "win32":
        base = environ.get("LOCALAPPDATA", "")
        return str(Path(base) / "fusec" / "Cache") if base else "off"
    home = environ.get("HOME") or _home_of_user()
    if not os.path.isabs(home):
        return "off"
    if sys.platform == "darwin":
        return str(Path(home) / "Library" / "Caches" / "fusec")
    base = environ.get("XDG_CACHE_HOME", "")  # its specification: relative paths are ignored
    return str((Path(base) if os.path.isabs(base) else Path(home) / ".cache") / "fusec")


def _home_of_user() -> str:
    """The home folder that the system's own list of users names, "" where it names none."""
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:  # a container's user without an entry
        return ""
