"""All-reduce of float32 between 2 ranks of one host: our channels, plain OpenMPI and gloo (PyTorch), side by side.

    .venv-bench/bin/python bench/comm/collectives.py [--program build/bench_all_reduce] [--rounds 5]

Every round starts each program again, in turns, with 2 processes. A process reports the median of its calls. The table has the
median of the rounds. "shared" are buffers in a region that the ranks share, like gradients and parameters. "windows" is
ordinary memory. OpenMPI and gloo run with default settings on ordinary memory, gloo over loopback.
Prints a table, and writes bench/results/comm.json.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SIZES = [4 << 10, 1 << 20, 16 << 20, 256 << 20]
LOOPBACK = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_oob_tcp_if_include": "lo",
    "OMPI_MCA_btl_tcp_if_include": "lo", "OMP_NUM_THREADS": "1",
}


def gloo(rank, port):
    """One of two processes; rank 0 prints the median seconds of every size, measured as bench/comm/all_reduce.cpp does."""
    import torch
    import torch.distributed as dist
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), GLOO_SOCKET_IFNAME="lo")
    dist.init_process_group("gloo", rank=rank, world_size=2)
    medians = []
    for size in SIZES:
        values = torch.ones(size // 4)
        dist.all_reduce(values)
        assert values[0] == 2 and values[-1] == 2, "wrong sum"
        batch = min(max((4 << 20) // size, 1), 200)
        batches = min(max((1 << 30) // (size * batch), 3), 25)
        dist.all_reduce(values)
        seconds = []
        for _ in range(batches):
            begin = time.perf_counter()
            for _ in range(batch):
                dist.all_reduce(values)
            seconds.append((time.perf_counter() - begin) / batch)
        medians.append(statistics.median(seconds))
    if rank == 0:
        print(json.dumps(medians))
    dist.destroy_process_group()


def run_gloo(port):
    environment = {**os.environ, **LOOPBACK}
    both = [
        subprocess.Popen([sys.executable, __file__, "--gloo", str(rank), str(port)], stdout=subprocess.PIPE, text=True, env=environment)
        for rank in range(2)
    ]
    texts = [process.communicate()[0] for process in both]
    assert all(process.returncode == 0 for process in both), "gloo failed"
    return json.loads(texts[0].strip().splitlines()[-1])


def run_mpi(program, kind):
    command = ["mpirun", "-n", "2", "--oversubscribe"] + (["--bind-to", "none"] if kind != "openmpi" else [])
    command += [program, kind, *map(str, SIZES)]
    environment = {**os.environ, **LOOPBACK}
    return json.loads(subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default=str(ROOT / "build" / "bench_all_reduce"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--gloo", nargs=2, type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.gloo:
        return gloo(*options.gloo)
    programs = {
        "shared": lambda i: run_mpi(options.program, "shared"),
        "windows": lambda i: run_mpi(options.program, "windows"),
        "OpenMPI": lambda i: run_mpi(options.program, "openmpi"),
        "gloo": lambda i: run_gloo(29600 + i),
    }
    seconds = {name: [] for name in programs}
    for i in range(options.rounds):
        for name, run in programs.items():
            seconds[name].append(run(i))
    medians = {name: [statistics.median(column) for column in zip(*rounds)] for name, rounds in seconds.items()}
    document = {"ranks": 2, "rounds": options.rounds, "cores": os.cpu_count(), "bytes": SIZES, "seconds": medians}
    (ROOT / "bench" / "results").mkdir(exist_ok=True)
    (ROOT / "bench" / "results" / "comm.json").write_text(json.dumps(document, indent=1) + "\n")
    for i, size in enumerate(SIZES):
        best = min(medians["OpenMPI"][i], medians["gloo"][i])
        row = "  ".join(f"{name} {values[i] * 1e6:10.1f} µs" for name, values in medians.items())
        print(f"{size >> 10:7d} KiB  {row}  shared {best / medians['shared'][i]:.2f}, windows {best / medians['windows'][i]:.2f} of the best")


if __name__ == "__main__":
    main()
