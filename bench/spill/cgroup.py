"""A temporary memory cgroup, version 1 or 2, in which a measured process starts. Needs root."""

import os
import subprocess
import time
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")


class NoCgroup(RuntimeError):
    pass


class MemoryCgroup:
    """with MemoryCgroup(limit) as group: group.start([...]) ... group.oom_kills()"""

    def __init__(self, limit):
        self.limit = limit
        name = f"megalith-bench-{os.getpid()}-{time.monotonic_ns()}"
        self.version = 1 if (ROOT / "memory").is_dir() else 2
        self.path = (ROOT / "memory" if self.version == 1 else ROOT) / name

    def __enter__(self):
        try:
            if self.version == 2:
                (ROOT / "cgroup.subtree_control").write_text("+memory")
            self.path.mkdir()
        except OSError as error:
            raise NoCgroup(f"cannot create {self.path}: {error}; this measurement needs root") from error
        try:
            if self.version == 1:
                self.write("memory.limit_in_bytes", self.limit)
                self.write("memory.swappiness", 0)
                if (self.path / "memory.memsw.limit_in_bytes").exists():  # memory and swap together: no swap
                    self.write("memory.memsw.limit_in_bytes", self.limit)
            else:
                self.write("memory.max", self.limit)
                if (self.path / "memory.swap.max").exists():
                    self.write("memory.swap.max", 0)
        except OSError:
            self.path.rmdir()
            raise
        return self

    def __exit__(self, *_):
        for _ in range(100):  # a process that has just ended leaves in a moment
            try:
                self.path.rmdir()
                return
            except OSError:
                time.sleep(0.05)

    def write(self, name, value):
        (self.path / name).write_text(f"{value}\n")

    def start(self, command, **options):
        """Starts a process that is in the cgroup before its program begins."""

        def enter():
            with open(self.path / "cgroup.procs", "w") as procs:
                procs.write(str(os.getpid()))

        return subprocess.Popen([str(c) for c in command], preexec_fn=enter, **options)

    def oom_kills(self):
        """How often the kernel killed a process in this cgroup because memory ran out."""
        name = "memory.oom_control" if self.version == 1 else "memory.events"
        for line in (self.path / name).read_text().splitlines():
            field, value = line.split()
            if field == "oom_kill":
                return int(value)
        raise NoCgroup(f"{self.path / name} does not count kills")

    def times_at_limit(self):
        """How often an allocation reached the limit, so that the kernel first had to free pages, usually page cache."""
        if self.version == 1:
            counters = [self.path / "memory.failcnt", self.path / "memory.memsw.failcnt"]
            return max(int(counter.read_text()) for counter in counters if counter.exists())
        for line in (self.path / "memory.events").read_text().splitlines():
            field, value = line.split()
            if field == "max":
                return int(value)
        return 0
