"""Measures a disk with fio, an independent program, with the mix of reads and writes of a spilled step."""

import json
import subprocess
from pathlib import Path

from runs import GIB, need

READ_BYTES, WRITTEN_BYTES = 20, 16  # a parameter and step: in p m v g, again p; out p m v, g


def run(arguments):
    common = [
        "fio", "--output-format=json", "--bs=1m", "--direct=1", "--ioengine=io_uring", "--time_based",
        "--group_reporting=0",
    ]
    out = subprocess.run([*common, *arguments], check=True, capture_output=True, text=True).stdout
    jobs = json.loads(out[out.index("{"):])["jobs"]
    return sum(j["read"]["bw_bytes"] for j in jobs), sum(j["write"]["bw_bytes"] for j in jobs)


def mixed(folder, seconds=10, size=4 * GIB, depth=16):
    """Bytes per second, reads and writes together, in requests of 1 MiB. Returns the better of two ways: one queue with reads
    and writes in random order, and two queues, one for each, like our lanes."""
    need("fio", "fio")
    files = [Path(folder) / "fio_a", Path(folder) / "fio_b"]
    half = size // 2
    try:
        # Write the file once before measuring: the first writes of a file are slower than later ones.
        for file in files:
            lay = ["fio", "--name=lay", f"--filename={file}", f"--size={half}", "--rw=write", "--bs=1m", "--direct=1",
                   "--ioengine=io_uring", "--iodepth=8", "--refill_buffers"]
            subprocess.run(lay, check=True, capture_output=True)
        share = round(100 * READ_BYTES / (READ_BYTES + WRITTEN_BYTES))
        read, written = run([
            "--name=mixed", f"--filename={files[0]}", f"--size={half}", "--rw=rw", f"--rwmixread={share}",
            f"--iodepth={2 * depth}", f"--runtime={seconds}",
        ])
        one = read + written
        read, written = run([
            f"--iodepth={depth}", f"--runtime={seconds}", f"--size={half}",
            "--name=read", f"--filename={files[0]}", "--rw=read",
            "--name=write", f"--filename={files[1]}", "--rw=write",
        ])
        two = (READ_BYTES + WRITTEN_BYTES) / max(READ_BYTES / read, WRITTEN_BYTES / written)
    finally:
        for file in files:
            file.unlink(missing_ok=True)
    return {"one_queue": one, "two_queues": two, "best": max(one, two)}
