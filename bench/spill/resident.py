"""Samples the resident memory of a process every 10 ms.

The process owns its anonymous and shared memory (RssAnon + RssShmem of /proc/PID/status). Pages of files that it maps (its
libraries) belong to the page cache, which the kernel can free; they are counted separately. Reading these counters takes
about 20 microseconds. smaps_rollup is exact, but the process waits while the kernel walks all page tables. So it is read once
a second, to check the counters."""

import threading
import time


def status(pid):
    """Bytes of RssAnon, RssShmem and RssFile, or None when the process has ended."""
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            fields = dict(line.split(b":", 1) for line in file.read().splitlines() if line.startswith(b"Rss"))
        return {key.decode(): int(value.split()[0]) * 1024 for key, value in fields.items()} or None
    except (OSError, ValueError):
        return None


def rollup(pid):
    """Bytes of anonymous and shared memory, by the page tables."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            lines = file.read().splitlines()[1:]
    except OSError:
        return 0
    fields = {line.split(b":")[0]: int(line.split(b":")[1].split()[0]) * 1024 for line in lines if b":" in line}
    return fields.get(b"Anonymous", 0) + fields.get(b"Pss_Shmem", 0)


class Watch(threading.Thread):
    """Watches a process from now until it ends or stop() is called."""

    def __init__(self, pid, every=0.01):
        super().__init__(daemon=True)
        self.pid, self.every = pid, every
        self.samples = self.peak = self.peak_files = self.peak_rollup = 0
        self.late = 0.0  # the longest time between two samples
        self._end = threading.Event()
        self.start()

    def run(self):
        next_rollup = last = time.monotonic()
        while not self._end.wait(self.every):
            now = status(self.pid)
            if now is None:
                break
            self.samples += 1
            self.peak = max(self.peak, now["RssAnon"] + now["RssShmem"])
            self.peak_files = max(self.peak_files, now["RssFile"])
            moment = time.monotonic()
            self.late = max(self.late, moment - last)
            last = moment
            if moment >= next_rollup:
                self.peak_rollup = max(self.peak_rollup, rollup(self.pid))
                next_rollup = moment + 1

    def stop(self):
        self._end.set()
        self.join()
        return {
            "samples": self.samples, "longest_gap_s": self.late, "peak_bytes": self.peak,
            "peak_bytes_by_page_tables": self.peak_rollup, "peak_mapped_files_bytes": self.peak_files,
        }
