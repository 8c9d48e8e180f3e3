"""How much memory is free: the least that the machine and every limit on this process leave."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import accumulate

try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None  # type: ignore[assignment]

PROC, CGROUPS = "/proc", "/sys/fs/cgroup"

#: What version 1 calls no limit is about this many bytes.
UNLIMITED = 1 << 60

#: Files of a control group, by version: the limit, what is used of it, and the line of
#: ``memory.stat`` with what of that is a cache of files, which the system gives up if need be.
GROUP_FILES = {
    1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    2: ("memory.max", "memory.current", "inactive_file"),
}


def available_memory() -> int | None:
    """Bytes of memory that are free, or None where the system does not say.

    The least of what the machine has, what control groups leave (containers, batch systems), and
    what ``ulimit -v`` and ``ulimit -d`` leave.
    """
    known = [*_of_machine(), *_of_groups(), *_of_limits()]
    return max(0, min(known)) if known else None


def _of_machine() -> Iterator[int]:
    found = _fields(f"{PROC}/meminfo").get("MemAvailable")
    if found is not None:
        yield found * 1024
        return
    try:
        yield os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return


def _of_groups() -> Iterator[int]:
    """What each control group of this process leaves, and each that these are in.

    Within a container the paths may be those outside of it: what is not there is passed over, and
    its own group is at the top.
    """
    for line in _lines(f"{PROC}/self/cgroup"):
        _, controllers, path = (*line.rstrip().split(":", 2), "", "")[:3]
        if not controllers:
            version, tops = 2, [CGROUPS, f"{CGROUPS}/unified"]
        elif "memory" in controllers.split(","):
            version, tops = 1, [f"{CGROUPS}/memory"]
        else:
            continue
        above = ["", *accumulate(f"/{name}" for name in path.split("/") if name)]
        for top in tops:
            for group in above:
                yield from _of_group(top + group, version)


def _of_group(folder: str, version: int) -> Iterator[int]:
    limit_file, used_file, cached = GROUP_FILES[version]
    limit = _number(f"{folder}/{limit_file}")
    if limit is None or limit >= UNLIMITED:
        return
    used = _number(f"{folder}/{used_file}") or 0
    yield limit - used + _fields(f"{folder}/memory.stat").get(cached, 0)


def _of_limits() -> Iterator[int]:
    """What the limits on addresses and on data leave, or are where their use is not known."""
    if resource is None:
        return
    for name, used in (("RLIMIT_AS", "VmSize"), ("RLIMIT_DATA", "VmData")):
        which = getattr(resource, name, None)
        limit = resource.RLIM_INFINITY if which is None else resource.getrlimit(which)[0]
        if limit != resource.RLIM_INFINITY:
            yield limit - _fields(f"{PROC}/self/status").get(used, 0) * 1024


def _lines(path: str) -> list[str]:
    """The lines of a file of the system: none where it cannot be read."""
    try:
        with open(path) as file:
            return file.readlines()
    except (OSError, ValueError):
        return []


def _number(path: str) -> int | None:
    """The number in a file: None where there is none, such as "max"."""
    text = "".join(_lines(path)).strip()
    return int(text) if text.isdecimal() else None


def _fields(path: str) -> dict[str, int]:
    """Lines of a name and a number, with or without a colon and a unit."""
    words = (line.replace(":", " ").split() for line in _lines(path))
    return {word[0]: int(word[1]) for word in words if len(word) > 1 and word[1].isdecimal()}
