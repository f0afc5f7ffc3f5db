"""Trains twenty steps with every precision, optimizer and option: the loss falls, and an interrupted run resumes to the same
numbers. precision.py BINARY"""

import shutil

from support import assert_same_run, checkpoints, metrics, run_cases

STEPS = 20


def falls_and_resumes(space, arch="gpt2", train="", drop=0.3, **sections):
    more = f", {train}" if train else ""
    settings = f"{{steps: {STEPS}, batch: 8, lr: 0.01, warmup: 2, eval_every: 0, threads: 1{more}}}"
    space.yaml("whole", arch, train=settings, every=7, **sections)
    space.train("whole", "checkpoint.keep=9")
    losses = [m["loss"] for m in metrics(space / "runs/whole")]
    start, end = sum(losses[:3]) / 3, sum(losses[-3:]) / 3
    assert end < start - drop, f"the loss does not fall: {start:.3f} to {end:.3f}"
    # As if killed after the save of step 7: the rest must follow from that checkpoint alone.
    shutil.copytree(space / "runs/whole", space / "runs/broken")
    for name in checkpoints(space / "runs/whole")[1:]:
        shutil.rmtree(space / "runs/broken/checkpoints" / name)
    assert "resuming at step 7" in space.train("whole", "run.dir=runs/broken").stderr
    assert_same_run(space / "runs/broken", space / "runs/whole", "after the break")
    return f"loss {start:.3f} to {end:.3f}"


def adamw(space):
    return falls_and_resumes(space)


def bf16(space):
    return falls_and_resumes(space, "llama", "precision: bf16")


def fp16(space):
    """The loss scale must adapt, and checkpoints contain it."""
    said = falls_and_resumes(space, "llama", "precision: fp16")
    assert all("loss_scale" in m for m in metrics(space / "runs/whole")), "no loss scale in metrics.jsonl"
    return said


def adafactor(space):
    return falls_and_resumes(space, "llama", "optimizer: adafactor")


def lion(space):
    return falls_and_resumes(space, "llama", "optimizer: lion, weight_decay: 0.01")


def sgd(space):
    return falls_and_resumes(space, "gpt2", "optimizer: sgd, momentum: 0.9, min_lr: 0.01", drop=0.02)


def prefix(space):
    return falls_and_resumes(space, "gpt2", objective="prefix")


def masked(space):
    return falls_and_resumes(space, "bert", drop=0.1)


def masked_whole_words(space):
    return falls_and_resumes(
        space, "bert", objective="{kind: masked, whole_words: true, mask_fraction: 0.2}", drop=0.1
    )


def dropout(space):
    said = []
    for arch, model in (
        ("gpt2", "{arch: gpt2, layers: 2, hidden: 32, heads: 2, context: 32, %s}"),
        ("llama", "{arch: llama, layers: 2, hidden: 32, heads: 4, kv_heads: 2, ffn: 64, context: 32, %s}"),
    ):
        shutil.rmtree(space / "runs", ignore_errors=True)
        said.append(
            falls_and_resumes(
                space, arch, model=model % "dropout: {embedding: 0.1, residual: 0.1, attention: 0.1}"
            )
        )
    return ", ".join(said)


def accumulation(space):
    return falls_and_resumes(space, "llama", "micro_batch: 2")


def other_decays(space):
    said = []
    for decay in ("constant", "inverse_sqrt", "linear"):
        shutil.rmtree(space / "runs", ignore_errors=True)
        said.append(falls_and_resumes(space, "gpt2", f"decay: {decay}"))
    return ", ".join(said)


run_cases(
    [
        adamw,
        bf16,
        fp16,
        adafactor,
        lion,
        sgd,
        prefix,
        masked,
        masked_whole_words,
        dropout,
        accumulation,
        other_decays,
    ]
)
