"""Tests the memory of parameters and gradients of ranks on one host. Each rank owns memory that the other rank maps. It is
counted once, stays within memory.ram, and disappears when the ranks are killed.  shared_state.py MEGALITH"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RAM = 600 << 20  # bytes for both ranks together
PARAMETER_BYTES = 4


def ranks_of(run):
    """Processes of this run that share their state. Not the supervisor, its monitor or mpirun."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            trains = str(run).encode() in (process / "cmdline").read_bytes().split(b"\0")
            if trains and f"megalith-state-{process.name} " in (process / "maps").read_text():
                found.append(int(process.name))
        except OSError:
            continue
    return found


def mappings(pid):
    """Returns the resident bytes of the shared state of every rank in this process, by process id. Also all resident bytes
    without files, with shared pages divided equally."""
    state, owner = {}, None
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        if not line[0].isupper():
            name = line.split("/memfd:megalith-state-")
            owner = int(name[1].split()[0]) if len(name) == 2 else None
        elif owner is not None and line.startswith("Rss:"):
            state[owner] = state.get(owner, 0) + 1024 * int(line.split()[1])
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    resident = sum(1024 * int(line.split()[1]) for line in rollup if line.startswith(("Pss_Anon:", "Pss_Shmem:")))
    return state, resident


def main():
    program = sys.argv[1]
    before = set(os.listdir("/dev/shm"))
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        (folder / "text.txt").write_text("\n".join(f"Line {i} of many that stand here." for i in range(4000)))
        yaml = folder / "run.yaml"
        yaml.write_text(
            f"run: {{dir: {folder}/run, restarts: 0}}\n"
            "model: {arch: gpt2, layers: 4, hidden: 512, heads: 4, context: 32}\n"
            f"data: {{train: [{folder}/text.txt], tokenizer: {{train: bpe, vocab: 300}}, sequence: 32, valid_fraction: 0}}\n"
            "train: {steps: 100000, batch: 4, eval_every: 0, threads: 1}\ncheckpoint: {every: never}\n"
            f"memory: {{ram: {RAM >> 20}MiB}}\n"
        )
        started = subprocess.Popen([program, "train", str(yaml), "--ranks", "2"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            metrics = folder / "run/metrics.jsonl"
            while not metrics.exists() or metrics.read_text().count("\n") < 4:
                assert started.poll() is None, started.stdout.read().decode()
                time.sleep(0.05)
            pids = ranks_of(yaml)
            assert len(pids) == 2, pids
            seen = {pid: mappings(pid) for pid in pids}
            plan = json.loads((folder / "run/plan.json").read_text())
            wanted = 2 * PARAMETER_BYTES * plan["model"]["parameters"]  # parameters and gradients
            for pid in pids:
                state, _ = seen[pid]
                assert set(state) == set(pids), (pid, state)
                # Biases and norms are in the buffer of their block. Tables and layers are all large here.
                assert 0.9 * wanted < state[pid] < 1.1 * wanted, (pid, state, wanted)
                other = state[next(p for p in pids if p != pid)]
                assert 0 < other < 1.1 * wanted, (pid, state, wanted)
            together = sum(resident for _, resident in seen.values())
            assert together < RAM, together
            os.kill(pids[1], signal.SIGKILL)
            assert started.wait(timeout=60) != 0
            assert not ranks_of(yaml)
        finally:
            if started.poll() is None:
                started.terminate()
                started.wait(timeout=60)
    left = {name for name in set(os.listdir("/dev/shm")) - before if str(started.pid) in name}
    assert not left, left
    print("1 passed, 0 failed")


if __name__ == "__main__":
    main()
