"""Shared by the tests of the launcher: runs without training (fake_run), and checks that they leave nothing behind."""

import contextlib
import os
import pathlib
import socket
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).parent.parent / "cli"))
from support import BINARY, LONG, Result, run_cases, skip, wait_for  # noqa: E402, F401


class Run:
    """fake_run in a new directory. `before`: words before the command."""

    def __init__(self, space, *arguments, ranks=2, environment=None, name="run", before=()):
        self.dir = space / name
        self.out = space / f"{name}.out"
        self.err = space / f"{name}.err"
        command = [*before, BINARY, "--dir", self.dir, "--ranks", ranks, *arguments]
        self.mark = f"--dir {self.dir} "
        with open(self.out, "wb") as out, open(self.err, "wb") as err:
            self.process = subprocess.Popen(
                [str(word) for word in command], stdout=out, stderr=err, env={**os.environ, **(environment or {})}
            )

    def wait_for_step(self, step):
        def reached():
            if self.process.poll() is not None:
                raise AssertionError(f"ended with {self.process.returncode}\n{self.said()}")
            return self.steps() and self.steps()[-1] >= step

        wait_for(reached, f"step {step}")

    def steps(self):
        """Steps that rank 0 finished, in order; a restart repeats some."""
        try:
            return [int(line) for line in (self.dir / "steps").read_text().split()]
        except FileNotFoundError:
            return []

    def pid(self, rank):
        return int((self.dir / f"pid-{rank}").read_text())

    def said(self):
        return self.err.read_text(errors="replace")

    def end(self, expect, patience=10):
        """Waits for the end and returns the output. After at most `patience` seconds, nothing of the run may be left."""
        try:
            code = self.process.wait(120)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError(f"did not end\n{self.said()}")
        assert code == expect, f"exit code {code}, expected {expect}\n{self.said()}"
        self.nothing_left(patience)
        return Result(code, self.out.read_text(), self.said())

    def nothing_left(self, patience=10):
        wait_for(lambda: not processes(self.mark), f"the end of {processes(self.mark)}", patience)
        wait_for(lambda: not self.folders(), f"the end of {self.folders()}", patience)

    def folders(self):
        return folders(self.process.pid)


def folders(supervisor):
    """Folders that a supervisor names after itself. They contain all files of the run outside of the run directory."""
    return [p for base in ("/dev/shm", "/tmp") for p in pathlib.Path(base).glob(f"megalith-*-{supervisor}-*")]


def shared_files(pid):
    """Files in shared or temporary memory that a process has mapped or open."""
    found = {line.split(maxsplit=5)[5] for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines() if line.count("/")}
    for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        found.add(os.readlink(entry))
    return {p for p in found if p.startswith(("/dev/shm/", "/tmp/ompi", "/tmp/pmix")) and not p.endswith(" (deleted)")}


def below(root):
    """A process and all its descendants."""
    parents = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    found = [root]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found


def listening(pids):
    """Addresses that processes listen on, as {address: name of the process}, like `ss -ltnp`."""
    found = {}
    for pid in pids:
        with contextlib.suppress(OSError):  # the process has ended
            inodes = {os.readlink(fd) for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir()}
            name = pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
            for file, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
                for line in pathlib.Path(f"/proc/{pid}/net/{file}").read_text().splitlines()[1:]:
                    words = line.split()
                    if words[3] != "0A" or f"socket:[{words[9]}]" not in inodes:  # 0A: listening
                        continue
                    words_of_host_order = bytes.fromhex(words[1].split(":")[0])
                    address = b"".join(words_of_host_order[i : i + 4][::-1] for i in range(0, len(words_of_host_order), 4))
                    found[socket.inet_ntop(family, address)] = name
    return found


def processes(mark):
    """Processes whose command line contains a text."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if mark in line:
            found[int(entry.name)] = line
    return found
