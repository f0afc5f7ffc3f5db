"""What the runs of the study are: one small model on books, and what a curriculum and token dropping do in them."""

from pathlib import Path

RESULTS = Path(__file__).resolve().parents[1] / "results" / "data_efficiency"  # a file a run

MODEL = "{arch: llama, layers: 6, hidden: 192, heads: 6, context: 1024}"  # 4.2M parameters with a vocabulary of 4,096, twice
SEQUENCE = 1024
PEAK_RATE = 0.001
# Short for long, then quickly longer (the limit grows with progress to the power of 2.5): a step has as many tokens all the
# time, at first from sixteen places of the books. Staying short longer than a straight line does was worth 0.01 in a try.
CURRICULUM = ("[{{metric: length, apply: truncate, from: 64, to: 1024, step: 64, over: {most} tokens, pacing: root 0.4, "
              "hold: tokens}}]")
DROPPING = "{{from: 512, to: 1024, step: 64, over: {most} tokens}}"
DROPPING_BESIDE = "{{from: 64, to: 1024, step: 64, over: {nearly} tokens, pacing: root 0.4}}"  # two thirds of what is there
FRACTIONS = (1.0, 0.67, 0.5)
# Of the data. `raised` is both with a peak rate divided by the fraction, as in DeepSpeed's recipe.
VARIANTS = {"baseline": FRACTIONS, "curriculum": FRACTIONS, "dropping": FRACTIONS, "both": FRACTIONS,
            "raised": FRACTIONS[1:]}
EVALUATIONS = 8  # of a run


def settings(variant, fraction, tokens, batch):
    """Keys of a run file, but for data."""
    budget = int(tokens * fraction)
    steps = budget // (batch * SEQUENCE)  # full ones
    rate = PEAK_RATE / (fraction if variant == "raised" else 1)
    keys = {
        "model": MODEL,
        "train": f"{{tokens: {budget}, schedule_by: tokens, batch: {batch}, lr: {rate:.6f}, min_lr: 0.0001, "
                 f"warmup: {max(2, steps // 20)}, eval_every: {max(1, steps // EVALUATIONS)}, eval_batches: 0}}",
    }
    if variant in ("curriculum", "both", "raised"):
        keys["curriculum"] = CURRICULUM.format(most=int(0.8 * budget))
    if variant == "dropping":
        keys["token_dropping"] = DROPPING.format(most=int(0.8 * budget))
    if variant in ("both", "raised"):
        keys["token_dropping"] = DROPPING_BESIDE.format(nearly=int(0.95 * budget))
    return keys
