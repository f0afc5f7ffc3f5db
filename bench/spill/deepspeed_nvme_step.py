"""DeepSpeed ZeRO-3 on one CPU rank, optimizer state on disk; optionally parameters too. Runs steps on request, like the
other peers.  deepspeed_nvme_step.py LAYERS HIDDEN HEADS VOCAB BATCH SEQUENCE THREADS FOLDER optimizer|parameters"""

import sys
from pathlib import Path

BENCH = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(BENCH), str(BENCH / "peers")]
import deepspeed_rank
from workloads import Workload


def zero_of(work, folder, parameters):
    # Its buffers must hold the largest parameter, the token table. Larger buffers would only use more memory.
    largest = work.vocab * work.hidden
    on_disk = {"device": "nvme", "nvme_path": folder, "pin_memory": False}
    zero = {"stage": 3, "offload_optimizer": dict(on_disk, buffer_count=4), "sub_group_size": largest}
    if parameters:
        zero["offload_param"] = dict(on_disk, buffer_count=5, buffer_size=int(1.01 * largest))
    return zero


def main():
    layers, hidden, heads, vocab, batch, sequence, threads = map(int, sys.argv[1:8])
    folder, what = sys.argv[8:10]
    work = Workload("gpt", "gpt2", layers, hidden, heads, 4 * hidden, vocab, batch, sequence)
    disk = {"block_size": 1 << 20, "queue_depth": 16, "single_submit": False, "overlap_events": True}
    deepspeed_rank.serve(work, threads, zero_of(work, folder, what == "parameters"), aio=disk)


if __name__ == "__main__":
    main()
