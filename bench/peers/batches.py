"""The same ids and targets for every peer."""

import torch
from workloads import MASK_EVERY, MASK_PLACES

MASK_ID = 103


def batch_of(work):
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(0, work.vocab, (work.batch, work.sequence + 1), generator=generator)
    if work.arch != "bert":
        return ids[:, :-1].contiguous(), ids[:, 1:].contiguous()
    ids = ids[:, :-1].contiguous()
    place = torch.arange(work.sequence) % MASK_EVERY
    chosen = sum((place == p) for p in MASK_PLACES).bool().expand_as(ids)
    targets = torch.where(chosen, ids, torch.full_like(ids, -100))
    return torch.where(chosen, torch.full_like(ids, MASK_ID), ids), targets
