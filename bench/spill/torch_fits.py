"""Trains a GPT with a plain PyTorch loop that uses as little memory as PyTorch allows: one sequence at a time with
accumulated gradients, recomputation of every layer, fused AdamW. Prints what it trained, unless the kernel kills it.
torch_fits.py LAYERS HIDDEN HEADS VOCAB BATCH SEQUENCE THREADS STEPS"""

import sys
import time
from pathlib import Path

BENCH = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(BENCH), str(BENCH / "peers")]
import worker  # answers on standard output, everything else on standard error
import torch
from batches import batch_of
from torch.utils.checkpoint import checkpoint
from torch_step import Model
from workloads import BETAS, CLIP, EPS, LR, WEIGHT_DECAY, Workload


class Recomputed(torch.nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return checkpoint(self.layer, x, use_reentrant=False)


def main():
    layers, hidden, heads, vocab, batch, sequence, threads, steps = map(int, sys.argv[1:9])
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    work = Workload("gpt", "gpt2", layers, hidden, heads, 4 * hidden, vocab, batch, sequence)
    model = Model(work)
    model.layers = torch.nn.ModuleList(Recomputed(layer) for layer in model.layers)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=LR, betas=BETAS, eps=EPS, weight_decay=WEIGHT_DECAY, fused=True
    )
    ids, targets = batch_of(work)
    losses, seconds = [], []
    for _ in range(steps):
        begin, total = time.perf_counter(), 0.0
        for row in range(batch):
            loss = model(ids[row:row + 1], targets[row:row + 1]) / batch
            loss.backward()
            total += loss.item()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(total)
        seconds.append(time.perf_counter() - begin)
    worker.say(parameters=sum(p.numel() for p in model.parameters()), losses=losses, seconds=seconds)


if __name__ == "__main__":
    main()
