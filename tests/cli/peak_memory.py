"""Measures the peak memory of a process with counters of the kernel: private and shared memory, without the page cache."""

import pathlib
import subprocess
import threading
import time


def resident_bytes(pid):
    fields = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line)
    return sum(int(fields.get(key, "0 kB").split()[0]) for key in ("RssAnon", "RssShmem")) << 10


def run_and_watch(space, *arguments):
    """Runs the binary to its end. Returns its exit code, stderr and peak in bytes, measured every 2 ms."""
    process = subprocess.Popen(space.command(*arguments), cwd=space.root, env=space.environment,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    said = []
    reader = threading.Thread(target=lambda: said.append(process.stderr.read()))
    reader.start()
    peak = 0
    while process.poll() is None:
        try:
            peak = max(peak, resident_bytes(process.pid))
        except OSError:
            pass  # it has ended
        time.sleep(0.002)
    reader.join()
    return process.returncode, said[0].decode(errors="replace"), peak
