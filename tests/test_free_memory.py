"""The memory that is free: the least that the machine, its groups and its limits leave."""

from __future__ import annotations

import subprocess
import sys

import pytest

from fenchel import free_memory
from fenchel.free_memory import available_memory

GIB = 1 << 30


@pytest.fixture
def system(tmp_path, monkeypatch):
    """A function that writes files of a system: paths, and what is in them."""
    monkeypatch.setattr(free_memory, "PROC", str(tmp_path / "proc"))
    monkeypatch.setattr(free_memory, "CGROUPS", str(tmp_path / "groups"))
    monkeypatch.setattr(free_memory, "resource", None)

    def write(**files):
        for name, text in files.items():
            path = tmp_path / name.replace("__", "/").replace("memory_", "memory.")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{text}\n")

    write(proc__meminfo=f"MemTotal: 99999999 kB\nMemAvailable: {8 * GIB // 1024} kB")
    return write


def test_this_machine_says_what_is_free():
    free = available_memory()
    assert free is None or free > 1 << 20


def test_the_machine_alone(system):
    assert available_memory() == 8 * GIB


@pytest.mark.parametrize("top", ["groups", "groups__unified"])
def test_every_group_above_counts(system, top):
    system(proc__self__cgroup="3:cpu:/other\n0::/batch/job")
    system(**{f"{top}__batch__job__memory_max": "max", f"{top}__batch__job__memory_current": GIB})
    assert available_memory() == 8 * GIB
    system(**{f"{top}__batch__memory_max": 6 * GIB, f"{top}__batch__memory_current": GIB})
    assert available_memory() == 5 * GIB
    system(**{f"{top}__memory_max": 4 * GIB, f"{top}__memory_current": GIB})
    assert available_memory() == 3 * GIB
    # files that were read are given up if need be
    system(**{f"{top}__memory_stat": f"anon 7\ninactive_file {GIB // 2}"})
    assert available_memory() == 3 * GIB + GIB // 2
    system(**{f"{top}__memory_current": 5 * GIB, f"{top}__memory_stat": "anon 7"})
    assert available_memory() == 0


def test_groups_of_the_first_version(system):
    system(proc__self__cgroup="5:cpu,memory:/docker/abc\n1:name=systemd:/docker/abc")
    unlimited = 9223372036854771712
    system(groups__memory__docker__abc__memory_limit_in_bytes=unlimited)
    system(groups__memory__docker__abc__memory_usage_in_bytes=GIB)
    assert available_memory() == 8 * GIB
    # in a container its own group is at the top
    system(groups__memory__memory_limit_in_bytes=2 * GIB)
    system(groups__memory__memory_usage_in_bytes=GIB)
    system(groups__memory__memory_stat=f"total_inactive_file {GIB // 4}\ninactive_file 1")
    assert available_memory() == GIB + GIB // 4


def test_files_that_make_no_sense_are_passed_over(system):
    system(proc__self__cgroup="\n0:\n0::/../x\nnothing", proc__meminfo="MemAvailable: soon")
    system(groups__memory_max="much", groups__memory_current="")
    free = available_memory()
    assert free is None or free > 1 << 20  # what is left to ask, or nothing


def test_limits_of_the_process_count():
    """In a process of its own, of which the limits are low from then on."""
    script = (
        "import resource\n"
        "from fenchel.free_memory import _fields, available_memory\n"
        "for which, used in ((resource.RLIMIT_DATA, 'VmData'), (resource.RLIMIT_AS, 'VmSize')):\n"
        "    known = _fields('/proc/self/status').get(used, 0) * 1024\n"
        "    resource.setrlimit(which, (known + (50 << 20), -1))\n"
        "    assert abs(available_memory() - (50 << 20)) < 5 << 20\n"
        "    resource.setrlimit(which, (-1, -1))\n"
    )
    pytest.importorskip("resource")
    if sys.platform != "linux":
        pytest.skip("others do not tell what is used")
    subprocess.run([sys.executable, "-c", script], check=True)
