"""DeepSpeed on one CPU rank: ZeRO 1, its own vectorised Adam, the model of torch_step.  deepspeed_step.py WORKLOAD THREADS"""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.path.insert(0, str(Path(__file__).parent))
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
from workloads import BETAS, CLIP, EPS, LR, WEIGHT_DECAY, WORKLOADS


def main():
    work, threads = WORKLOADS[sys.argv[1]], int(sys.argv[2])
    torch.set_num_threads(threads)

    def prepare():
        torch.manual_seed(0)
        adam = {"lr": LR, "betas": list(BETAS), "eps": EPS, "weight_decay": WEIGHT_DECAY}
        engine, _, _, _ = deepspeed.initialize(
            model=Model(work),
            config={
                "train_batch_size": work.batch, "train_micro_batch_size_per_gpu": work.batch,
                "gradient_clipping": CLIP, "zero_optimization": {"stage": 1, "offload_optimizer": {"device": "cpu"}},
                "optimizer": {"type": "AdamW", "params": adam}, "steps_per_print": 10**9,
            },
            dist_init_required=True,
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
