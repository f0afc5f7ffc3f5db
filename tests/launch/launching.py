"""What the tests of the launcher share: runs without training (fake_run), and what they must not leave behind."""

import os
import pathlib
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).parent.parent / "cli"))
from support import BINARY, Result, run_cases, wait_for  # noqa: E402, F401


class Run:
    """fake_run in a directory of its own."""

    def __init__(self, space, *arguments, ranks=2, environment=None, name="run", **popen):
        self.dir = space / name
        self.out = space / f"{name}.out"
        self.err = space / f"{name}.err"
        command = [str(BINARY), "--dir", str(self.dir), "--ranks", str(ranks), *map(str, arguments)]
        self.mark = f"--dir {self.dir} "
        with open(self.out, "wb") as out, open(self.err, "wb") as err:
            self.process = subprocess.Popen(
                command, stdout=out, stderr=err, env={**os.environ, **(environment or {})}, **popen
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

    def end(self, expect, seconds=60):
        """Waits for the end; returns what it said. Nothing of it may be left."""
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError(f"did not end\n{self.said()}")
        assert code == expect, f"exit code {code}, expected {expect}\n{self.said()}"
        nothing_left(self.mark)
        return Result(code, self.out.read_text(), self.said())


def processes(mark):
    """Those whose command line holds a text."""
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


def shared_files():
    """What runs leave in memory and for OpenMPI, of any run."""
    found = []
    for folder, patterns in (
        ("/dev/shm", ("megalith-[0-9]*", "vader*", "osc*", "sm_segment*", "ompi*")),
        ("/tmp", ("ompi.*", "megalith-[0-9]*")),
    ):
        for pattern in patterns:
            found += [p for p in pathlib.Path(folder).glob(pattern)]
    return {str(p) for p in found}


BEFORE = shared_files()


def nothing_left(mark):
    wait_for(lambda: not processes(mark), f"the end of {processes(mark)}", 10)
    wait_for(lambda: not (shared_files() - BEFORE), f"left: {shared_files() - BEFORE}", 10)
