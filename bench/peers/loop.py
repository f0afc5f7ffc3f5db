"""The training step that users write by hand: loss, backward, clip, AdamW."""

import torch
from workloads import BETAS, CLIP, EPS, LR, WEIGHT_DECAY


def step_of(model, loss_of):
    """A function that makes one step of `model` and returns its loss, as `loss_of()` gives it."""
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=LR, betas=BETAS, eps=EPS, weight_decay=WEIGHT_DECAY, fused=True
    )

    def step():
        loss = loss_of()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.item()

    return step
