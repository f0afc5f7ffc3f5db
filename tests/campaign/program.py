"""Runs the program as a user does, within limits of time and memory."""

import os
import pathlib
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass

MEMORY = 4 << 30  # bytes of private memory; more is a fault of the program, not of the case
SECONDS = 60      # seconds: ten times the duration of a command on a busy machine


@dataclass
class Ended:
    """How a command ended. The code is None if the command did not end in time."""

    command: str
    code: int | None
    stdout: str
    stderr: str
    seconds: float

    def __str__(self):
        return f"$ {self.command[:1000]}\nexit code {self.code}\n{self.stdout[-500:]}\n{self.stderr[-1500:]}"


class Program:
    """The binary. `preload` is the library that makes calls fail."""

    def __init__(self, binary, preload, cache):
        self.binary = pathlib.Path(binary).resolve()
        self.preload = pathlib.Path(preload).resolve()
        # The machine is measured once, and the measurements are in a folder of the campaign. Idle threads must not spin.
        self.environment = {**os.environ, "XDG_CACHE_HOME": str(cache), "OMP_NUM_THREADS": "2", "OMP_WAIT_POLICY": "passive",
                            "HF_HUB_OFFLINE": "1"}

    def words(self, words, before=(), memory=MEMORY):
        return ["prlimit", "--core=0", f"--data={memory}", *map(str, before), str(self.binary), *map(str, words)]

    def start(self, *words, cwd, environment=None, before=(), memory=MEMORY, out=subprocess.DEVNULL):
        return subprocess.Popen(self.words(words, before, memory), cwd=cwd, env={**self.environment, **(environment or {})},
                                stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True)

    def run(self, *words, cwd, seconds=SECONDS, environment=None, before=(), memory=MEMORY):
        command, began = self.words(words, before, memory), time.monotonic()
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = subprocess.Popen(command, cwd=cwd, env={**self.environment, **(environment or {})}, stdout=out, stderr=err,
                                       stdin=subprocess.DEVNULL, start_new_session=True)
            try:
                code = process.wait(seconds)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                code = None
            said = []
            for file in (out, err):
                file.seek(0)
                said.append(file.read(1 << 22).decode(errors="replace"))
        shown = " ".join(map(repr, map(str, words)))
        changes = " ".join(f"{k}={v}" for k, v in (environment or {}).items())
        return Ended(f"cd {cwd}; {changes} megalith {shown}", code, *said, time.monotonic() - began)


def processes_with(mark):
    """Returns the processes whose command line contains a text."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if mark in (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"):
                    found.append(int(entry.name))
            except OSError:
                pass
    return [pid for pid in found if pid != os.getpid()]
