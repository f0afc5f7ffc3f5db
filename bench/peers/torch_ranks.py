"""PyTorch on two ranks over gloo, one thread each: DDP or FSDP2.  torch_ranks.py ddp|fsdp RANK PORT STEPS FILE
Rank 0 writes the seconds of STEPS steps after the first to FILE."""

import json
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import torch
import torch.distributed as dist
from batches import batch_of
from loop import step_of
from torch_step import Model
from workloads import WORKLOADS


def main():
    kind, rank, port, steps, file = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), sys.argv[5]
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port, GLOO_SOCKET_IFNAME="lo")
    dist.init_process_group("gloo", rank=rank, world_size=2)
    work = WORKLOADS["gpt2-124m 4x256"]
    torch.manual_seed(0)
    model = Model(work)
    if kind == "ddp":
        run = torch.nn.parallel.DistributedDataParallel(model)
    else:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        mesh = init_device_mesh("cpu", (2,))
        for layer in model.layers:
            fully_shard(layer, mesh=mesh)
        run = fully_shard(model, mesh=mesh)
    ids, targets = batch_of(work)
    half = ids.size(0) // 2
    mine = slice(rank * half, (rank + 1) * half)
    step = step_of(run, lambda: run(ids[mine], targets[mine]))
    step()
    seconds = []
    for _ in range(steps):
        begin = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - begin)
    if rank == 0:
        Path(file).write_text(json.dumps(seconds))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
