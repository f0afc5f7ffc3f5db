"""DeepSpeed on one CPU rank: code that both DeepSpeed programs share. Import it first, because DeepSpeed prints during import."""

import os

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
from workloads import BETAS, CLIP, EPS, LR, WEIGHT_DECAY


def serve(work, threads, zero, **more):
    """Steps of the model of torch_step, with these settings of ZeRO and more keys of DeepSpeed's configuration."""
    adam = {"lr": LR, "betas": list(BETAS), "eps": EPS, "weight_decay": WEIGHT_DECAY}
    config = {
        "train_batch_size": work.batch, "train_micro_batch_size_per_gpu": work.batch, "gradient_clipping": CLIP,
        "zero_optimization": zero, "optimizer": {"type": "AdamW", "params": adam}, "steps_per_print": 10**9, **more,
    }
    torch.set_num_threads(threads)

    def prepare():
        torch.manual_seed(0)
        engine, _, _, _ = deepspeed.initialize(model=Model(work), config=config, dist_init_required=True)
        ids, targets = batch_of(work)

        def step():
            loss = engine(ids, targets)
            engine.backward(loss)
            engine.step()
            return loss.item()

        return step

    worker.serve(prepare)
