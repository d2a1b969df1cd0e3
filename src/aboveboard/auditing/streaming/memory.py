"""How much memory this process may still take."""

from pathlib import Path

import psutil

__all__ = ["available_memory"]


def available_memory() -> int:
    """Return the bytes that can still be had: of the machine, of the container, and under the process's own limit."""
    return max(min(psutil.virtual_memory().available, _left_in_container(), _left_to_process()), 0)


def _left_in_container() -> int:
    """Return what the control group (version 2) leaves; what it holds as file cache can be had too."""
    try:
        group = Path("/proc/self/cgroup").read_text().strip().rpartition(":")[2]
        folder = Path("/sys/fs/cgroup") / group.lstrip("/")
        limit = (folder / "memory.max").read_text().strip()
        if limit == "max":
            return 2**62
        used = int((folder / "memory.current").read_text())
        stat = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        return int(limit) - used + int(stat.get("inactive_file", 0))
    except (OSError, ValueError):  # no such group, or another system
        return 2**62


def _left_to_process() -> int:
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return 2**62
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return 2**62 if limit == resource.RLIM_INFINITY else limit - psutil.Process().memory_info().vms
