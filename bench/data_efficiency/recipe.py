"""The runs of the study: one small model on books, with curricula and token dropping."""

from pathlib import Path

RESULTS = Path(__file__).resolve().parents[1] / "results" / "data_efficiency"  # one folder for each budget, such as 3M; one file for each run

MODEL = "{arch: llama, layers: 6, hidden: 192, heads: 6, context: 1024}"  # 4.2M parameters with two tables of 4,096 tokens
SEQUENCE = 1024
# Sequences per step, short or long. We tried 4 first, but both techniques with half of the tokens did not reach the baseline.
# 8,192 tokens are the product of the defaults of train.batch and data.sequence.
BATCH = 8
PEAK_RATE = 0.002  # the best of 0.001, 0.002, 0.003 for the baseline, by one seed after two thirds of the run
# Sequences stay short for long, and then become longer quickly (the limit grows with progress to the power of 4). As in
# DeepSpeed's recipe, all steps have the same number of sequences. So early steps have few tokens, and there are more steps.
# Powers, starts and shares were chosen by validation losses of seed 1 (docs/notes/data_efficiency.md).
CURRICULUM = ("{{metric: length, apply: truncate, from: {shortest}, to: 1024, step: 128, over: {over} tokens, "
              "pacing: root 0.25, hold: sequences}}")
# In addition, common words first. The reference found this pair of metrics best.
RARITY = "{{metric: rarity, apply: filter, unit: percentile, from: 10, to: 100, over: {over} tokens, pacing: root 2}}"
DROPPING = "{{from: 512, to: 1024, step: 128, over: {over} tokens}}"
# With a curriculum, the kept tokens grow a little later than the sequences: over this share of the run instead of 95%. Then
# 5% of the tokens of all steps are dropped, or 1%.
DROPPING_BESIDE = "{{from: {shortest}, to: 1024, step: {step}, over: {over} tokens, pacing: root 0.25}}"
BESIDE = {"both": (128, 0.99), "raised": (128, 0.99), "lighter": (64, 0.97)}  # step, share of the run
FRACTIONS = (1.0, 0.67, 0.5)
# Fractions of the data for each variant. `raised` uses both techniques, with the peak rate divided by the fraction, as in
# DeepSpeed's recipe. `single` is the baseline with one sequence per step, at the better rate of 0.0005 and 0.001. It shows
# what smaller steps gain without a curriculum. `lighter` uses both techniques and drops fewer tokens. `rarity` has a second
# curriculum, by rarity of words.
VARIANTS = {"baseline": FRACTIONS, "curriculum": FRACTIONS, "dropping": FRACTIONS, "both": FRACTIONS,
            "lighter": (0.67,), "rarity": (0.5,), "raised": FRACTIONS[1:], "single": FRACTIONS}
EVALUATIONS = 6  # of a run


def shortest(tokens):
    """Shortest sequence: the better of 64 and 128 for a baseline with this number of tokens."""
    return 64 if tokens < 5_000_000 else 128


def settings(variant, fraction, tokens):
    """Keys of a run file, without `data`."""
    budget = int(tokens * fraction)
    batch, rate = (1, 0.001) if variant == "single" else (BATCH, PEAK_RATE / (fraction if variant == "raised" else 1))
    steps = budget // (batch * SEQUENCE)  # full steps, the unit of warm-up and validations
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
