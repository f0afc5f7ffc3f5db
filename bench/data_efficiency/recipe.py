"""What the runs of the study are: one small model on books, and what a curriculum and token dropping do in them."""

from pathlib import Path

RESULTS = Path(__file__).resolve().parents[1] / "results" / "data_efficiency"  # a folder a budget, named like 3M: a file a run

MODEL = "{arch: llama, layers: 6, hidden: 192, heads: 6, context: 1024}"  # 4.2M parameters with a vocabulary of 4,096, twice
SEQUENCE = 1024
# Sequences a step, short or long. Taken after 4 a step, where both techniques with half of the tokens did not reach the
# baseline; 8,192 tokens are what the defaults of train.batch and data.sequence make.
BATCH = 8
PEAK_RATE = 0.002  # the best of 0.001, 0.002 and 0.003 for the baseline, by the losses of one seed after two thirds of the run
# Short for long, then quickly longer (the limit grows with progress to the power of 4). As in DeepSpeed's recipe a step has
# as many sequences all the time, so that at first it has few tokens, and the same tokens make more steps. Powers, starts and
# shares were chosen by validation losses of seed 1 (docs/notes/data_efficiency.md).
CURRICULUM = ("{{metric: length, apply: truncate, from: {shortest}, to: 1024, step: 128, over: {over} tokens, "
              "pacing: root 0.25, hold: sequences}}")
# Beside it, common words first: the pair of metrics that the reference found best.
RARITY = "{{metric: rarity, apply: filter, unit: percentile, from: 10, to: 100, over: {over} tokens, pacing: root 2}}"
DROPPING = "{{from: 512, to: 1024, step: 128, over: {over} tokens}}"
# Beside a curriculum the tokens that are kept grow a little later than the sequences, over this share of the run instead of
# 95%: of the tokens of all steps 5% are dropped, or 1%.
DROPPING_BESIDE = "{{from: {shortest}, to: 1024, step: {step}, over: {over} tokens, pacing: root 0.25}}"
BESIDE = {"both": (128, 0.99), "raised": (128, 0.99), "lighter": (64, 0.97)}  # step, share of the run
FRACTIONS = (1.0, 0.67, 0.5)
# Of the data. `raised` is both with a peak rate divided by the fraction, as in DeepSpeed's recipe. `single` is the
# baseline with a single sequence a step, at the better of 0.0005 and 0.001: what smaller steps win without a curriculum.
# `lighter` is both with fewer tokens dropped, `rarity` the curriculum with a second one, by rarity of words.
VARIANTS = {"baseline": FRACTIONS, "curriculum": FRACTIONS, "dropping": FRACTIONS, "both": FRACTIONS,
            "lighter": (0.67,), "rarity": (0.5,), "raised": FRACTIONS[1:], "single": FRACTIONS}
EVALUATIONS = 6  # of a run


def shortest(tokens):
    """Of sequences: what was better for a baseline of so many tokens, 64 or 128."""
    return 64 if tokens < 5_000_000 else 128


def settings(variant, fraction, tokens):
    """Keys of a run file, but for data."""
    budget = int(tokens * fraction)
    batch, rate = (1, 0.001) if variant == "single" else (BATCH, PEAK_RATE / (fraction if variant == "raised" else 1))
    steps = budget // (batch * SEQUENCE)  # full ones, which warm-up and validations are counted in
    keys = {
        "model": MODEL,
        "train": f"{{tokens: {budget}, schedule_by: tokens, batch: {batch}, lr: {rate:.6f}, min_lr: 0.0001, "
                 f"warmup: {max(2, steps // 20)}, eval_every: {max(1, -(-steps // EVALUATIONS))}, eval_batches: 0}}",
    }
    metrics = []
    if variant in ("curriculum", "rarity") or variant in BESIDE:
        metrics.append(CURRICULUM.format(shortest=shortest(tokens), over=int(0.95 * budget)))
    if variant == "rarity":
        metrics.append(RARITY.format(over=int(0.4 * budget)))
    if metrics:
        keys["curriculum"] = f"[{', '.join(metrics)}]"
    if variant == "dropping":
        keys["token_dropping"] = DROPPING.format(over=int(0.8 * budget))
    if variant in BESIDE:
        step, share = BESIDE[variant]
        keys["token_dropping"] = DROPPING_BESIDE.format(shortest=shortest(tokens), step=step, over=int(share * budget))
    return keys
