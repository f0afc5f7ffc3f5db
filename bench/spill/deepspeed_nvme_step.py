"""DeepSpeed ZeRO-3 on one CPU rank, optimizer state on disk; optionally parameters too. Serves steps as the other
peers do.  deepspeed_nvme_step.py LAYERS HIDDEN HEADS VOCAB BATCH SEQUENCE THREADS FOLDER optimizer|parameters"""

import os
import sys
from pathlib import Path

BENCH = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(BENCH), str(BENCH / "peers")]
for name, value in {
    "DS_ACCELERATOR": "cpu", "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "LOCAL_SIZE": "1",
    "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(20000 + os.getpid() % 20000),
}.items():
    os.environ.setdefault(name, value)
import worker  # before what prints
import deepspeed
import torch
from batches import batch_of
from torch_step import Model
from workloads import BETAS, CLIP, EPS, LR, WEIGHT_DECAY, Workload


def config_of(work, folder, parameters):
    # Its buffers must hold the largest parameter, the token table; larger ones only cost it memory.
    largest = work.vocab * work.hidden
    on_disk = {"device": "nvme", "nvme_path": folder, "pin_memory": False}
    zero = {"stage": 3, "offload_optimizer": dict(on_disk, buffer_count=4), "sub_group_size": largest}
    if parameters:
        zero["offload_param"] = dict(on_disk, buffer_count=5, buffer_size=int(1.01 * largest))
    return {
        "train_batch_size": work.batch, "train_micro_batch_size_per_gpu": work.batch, "gradient_clipping": CLIP,
        "zero_optimization": zero, "steps_per_print": 10**9,
        "aio": {"block_size": 1 << 20, "queue_depth": 16, "single_submit": False, "overlap_events": True},
        "optimizer": {
            "type": "AdamW", "params": {"lr": LR, "betas": list(BETAS), "eps": EPS, "weight_decay": WEIGHT_DECAY}
        },
    }


def main():
    layers, hidden, heads, vocab, batch, sequence, threads = map(int, sys.argv[1:8])
    folder, what = sys.argv[8:10]
    work = Workload("gpt", "gpt2", layers, hidden, heads, 4 * hidden, vocab, batch, sequence)
    torch.set_num_threads(threads)

    def prepare():
        torch.manual_seed(0)
        engine, _, _, _ = deepspeed.initialize(
            model=Model(work), config=config_of(work, folder, what == "parameters"), dist_init_required=True
        )
        ids, targets = batch_of(work)

        def step():
            loss = engine(ids, targets)
            engine.backward(loss)
            engine.step()
            return loss.item()

        return step

    worker.serve(prepare)


if __name__ == "__main__":
    main()
