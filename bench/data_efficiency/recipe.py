"""What the runs of the study are: one small model on books, and what a curriculum and token dropping do in them."""

from pathlib import Path

RESULTS = Path(__file__).resolve().parents[1] / "results" / "data_efficiency"  # a file a run

MODEL = "{arch: llama, layers: 6, hidden: 192, heads: 6, context: 1024}"  # 4.2M parameters with a vocabulary of 4,096, twice
SEQUENCE = 1024
PEAK_RATE = 0.001  # of the baseline; others have it divided by their fraction of the data, as DeepSpeed's recipe does
CURRICULUM = "[{{metric: length, apply: truncate, from: 64, to: 1024, step: 64, over: {over} tokens, hold: tokens}}]"
DROPPING = "{{from: 512, to: 1024, step: 64, over: {over} tokens}}"
SHARE = 0.7  # of the budget over which both go from their first limit to their last
VARIANTS = ("baseline", "curriculum", "dropping", "both")
FRACTIONS = (1.0, 0.67, 0.5)
EVALUATIONS = 16  # of a run


def settings(variant, fraction, tokens, batch):
    """Keys of a run file, but for data."""
    budget = int(tokens * fraction)
    steps = budget // (batch * SEQUENCE)  # full ones
    keys = {
        "model": MODEL,
        "train": f"{{tokens: {budget}, schedule_by: tokens, batch: {batch}, lr: {PEAK_RATE / fraction:.6f}, min_lr: 0.0001, "
                 f"warmup: {max(2, steps // 20)}, eval_every: {max(1, steps // EVALUATIONS)}, eval_batches: 0}}",
    }
    if variant in ("curriculum", "both"):
        keys["curriculum"] = CURRICULUM.format(over=int(SHARE * budget))
    if variant in ("dropping", "both"):
        keys["token_dropping"] = DROPPING.format(over=int(SHARE * budget))
    return keys
