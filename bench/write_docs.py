"""Writes docs/benchmarks.md and docs/images/benchmarks.svg from bench/results/*.json, which bench/run.py and the other scripts
here write. All measured numbers in the documentation come from these files."""

import json
import sys
from pathlib import Path

BENCH = Path(__file__).resolve().parent
sys.path.insert(0, str(BENCH / "data_efficiency"))
import loss_chart  # noqa: E402
import study_page  # noqa: E402

DOCS = BENCH.parent / "docs"
COLOURS = {
    "Megalith": "#c2410c", "torch.compile": "#475569", "PyTorch eager": "#64748b", "transformers": "#94a3b8",
    "DeepSpeed": "#cbd5e1",
}


def load(name):
    path = BENCH / "results" / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def best_peer(programs):
    return min(((p, r) for p, r in programs.items() if p != "Megalith"), key=lambda item: item[1]["step_s"]["median"])


def chart(workloads):
    """Draws the tokens per second of every program as bars, relative to the best peer."""
    row, group, left, width = 18, 30, 150, 430
    height, y = 12, 12
    bars = []
    for work in workloads:
        best = best_peer(work["programs"])[1]["tokens_per_s"]
        bars.append(f'<text x="0" y="{y + 12}" font-weight="600">{work["workload"]}</text>')
        y += row
        ordered = sorted(work["programs"].items(), key=lambda item: -item[1]["tokens_per_s"])
        for program, r in ordered:
            share = r["tokens_per_s"] / best
            bars.append(f'<text x="{left - 8}" y="{y + 11}" text-anchor="end">{program}</text>')
            bars.append(
                f'<rect x="{left}" y="{y + 1}" width="{share * width / 1.5:.0f}" height="{height}" rx="2" '
                f'fill="{COLOURS.get(program, "#94a3b8")}"/>'
            )
            bars.append(f'<text x="{left + share * width / 1.5 + 6:.0f}" y="{y + 11}">{share:.2f}</text>')
            y += row
        y += group - row
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 60}" height="{y}" '
        'font-family="system-ui, sans-serif" font-size="12">'
        f'<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(bars) + "\n</svg>\n"
    )


def step_section(document):
    rows, notes = [], []
    for work in document["step"]:
        programs, machine = work["programs"], work["machine"]
        ours = programs["Megalith"]
        name, best = best_peer(programs)
        for program, r in sorted(programs.items(), key=lambda item: item[1]["step_s"]["median"]):
            rows.append([
                work["workload"] if r is min(programs.values(), key=lambda x: x["step_s"]["median"]) else "",
                f"**{program}**" if program == "Megalith" else program,
                f"{r['step_s']['median'] * 1e3:.0f} ± {r['step_s']['spread'] * 1e3:.0f}",
                f"{r['tokens_per_s']:.0f}",
                f"{r['tokens_per_s'] / best['tokens_per_s']:.2f}",
                f"{r['flops'] / 1e9:.0f}",
                f"{r['above_state_bytes'] / 2**20:.0f}",
            ])
        eager = programs.get("PyTorch eager")
        memory = f"; memory above the state is {ours['above_state_bytes'] / eager['above_state_bytes']:.2f} of PyTorch eager's" if eager else ""
        notes.append(
            f"- {work['workload']}: {ours['tokens_per_s'] / best['tokens_per_s']:.2f} times the best peer ({name}); "
            f"{ours['flops'] / machine['product_flops']:.0%} of the speed of matrix products in the model's shapes "
            f"({machine['product_flops'] / 1e9:.0f} GFLOP/s; multiply-add peak {machine['peak_flops'] / 1e9:.0f}, memory "
            f"{machine['bandwidth'] / 1e9:.0f} GB/s){memory}."
            + "".join(f" Not measured: {p} ({why})." for p, why in work["missing"].items())
        )
    header = ["work", "program", "step, ms", "tokens/s", "against the best peer", "GFLOP/s", "MiB above state"]
    (DOCS / "images" / "benchmarks.svg").write_text(chart(document["step"]))
    return (
        "## Training steps\nFloat32, AdamW and clipping in every step; all programs use the same shapes and batch. The table has the "
        "median of the steps and half the distance between the quartiles. \"Above state\" is the peak resident memory, minus the "
        "memory of the process before it loads the model, minus 16 bytes per parameter.\n\n"
        "![tokens per second, relative to the best peer](images/benchmarks.svg)\n\n"
        + table(header, rows) + "\n\n" + "\n".join(notes) + "\n"
    )


def startup_section(document):
    ended = document["startup"].get("whole_command")  # older results do not have it
    whole = f" The whole command, with its report, takes {ended['median']:.2f} s." if ended else ""
    rows = [[p, f"{r['median']:.2f} ± {r['spread']:.2f}"] for p, r in document["startup"]["programs"].items()]
    return (
        f"## Start\nThe time from the start of the process to the end of the first step, for {document['startup']['workload']}. For "
        "Megalith, this is the command that users type, with its plan and run directory. It uses the speeds of the machine that an "
        f"earlier run measured.{whole}\n\n" + table(["program", "seconds"], rows) + "\n"
    )


def save_section(document):
    s = document["save"]
    meanwhile = s.get("while_training_s")  # older results do not have it
    training = f", and during training {meanwhile:.2f} s" if meanwhile else ""
    return (
        f"## Checkpoints\nA checkpoint of {s['workload'].split()[0]} with optimizer state has {s['bytes'] / 1e9:.2f} GB. The "
        f"step during which it is written takes {s['delay_s']:.2f} s longer than the usual {s['step_s']['median']:.2f} s "
        f"({s['saves']} saves). That is {s['share_of_200_steps']:.2%} of the default interval of 200 steps. Writing a checkpoint after "
        f"the last step takes {s['alone_s']:.2f} s{training}. A plain loop writes the same bytes durably in "
        f"{s['bytes'] / s['disk_write']:.2f} s ({s['disk_write'] / 1e9:.2f} GB/s), with or without the page cache, whichever is faster.\n"
    )


def kernels_section(document):
    rows = []
    runs = {b["name"].split("/")[0]: b for b in document["benchmarks"]}
    product, copy = runs["Product"]["FLOP/s"], runs["Copy"]["B/s"]
    for name, run in runs.items():
        if name in ("Product", "Copy"):
            continue
        if "FLOP/s" in run:
            rate = f"{run['FLOP/s'] / 1e9:.0f} GFLOP/s, {run['FLOP/s'] / product:.0%} of a product's"
        else:
            rate = f"{run['B/s'] / 1e9:.1f} GB/s, {run['B/s'] / copy:.0%} of plain passes over memory"
        rows.append([name, f"{run['real_time'] / 1e6:.2f}", rate])
    return (
        "## Kernels\nSizes of GPT-2 124M at 4x256 tokens. A kernel can be above 100% if its operands stay in the caches. A product of "
        f"[1024, 768] with [768, 3072] runs at {product / 1e9:.0f} GFLOP/s; sums over 400 MB run at {copy / 1e9:.1f} GB/s.\n\n"
        + table(["kernel", "ms", "speed"], rows) + "\n"
    )


def targets_section(document):
    """The targets, and whether this run reached them."""
    rows = []

    def aim(what, wanted, got, reached):
        rows.append([what, wanted, got, "yes" if reached else "**no**"])

    for work in document["step"]:
        programs = work["programs"]
        ours, (name, best) = programs["Megalith"], best_peer(programs)
        times = ours["tokens_per_s"] / best["tokens_per_s"]
        aim(f"{work['workload']}, tokens/s against the best peer", "1.15", f"{times:.3f} ({name})", times >= 1.15)
        if eager := programs.get("PyTorch eager"):
            share = ours["above_state_bytes"] / eager["above_state_bytes"]
            aim(f"{work['workload']}, memory above the state against PyTorch eager", "0.65 at most", f"{share:.2f}", share <= 0.65)
        if work["workload"] == "gpt2-124m 2x1024":
            share = ours["flops"] / work["machine"]["product_flops"]
            aim(f"{work['workload']}, share of matrix products' speed", "88%", f"{share:.0%}", share >= 0.88)
    if startup := load("startup"):
        seconds = startup["startup"]["programs"]["Megalith"]["median"]
        aim("start to first step", "1.5 s at most", f"{seconds:.2f} s", seconds <= 1.5)
    if save := load("save"):
        s = save["save"]
        for when, seconds in (("alone", s["alone_s"]), ("during training", s.get("while_training_s"))):
            if seconds:
                share = s["bytes"] / seconds / s["disk_write"]
                aim(f"a save's share of the disk's speed, {when}", "80%", f"{share:.0%}", share >= 0.8)
        aim("a save's delay, of 200 steps", "1% at most", f"{s['share_of_200_steps']:.2%}", s["share_of_200_steps"] <= 0.01)
    return (
        "## Targets\n" + table(["what", "target", "this run", "reached"], rows)
        + "\n\n[Notes on speed](notes/speed.md) show where the time of a step goes: nine tenths are matrix products and packing "
        "their operands.\n"
    )


def tokenizers_section(document):
    speed, memory = document["median MB/s"], document["memory MB"]
    rows = [[p, f"{s:.1f}", f"{speed['megalith'] / s:.1f}", f"{memory[p]:.0f}"] for p, s in speed.items()]
    return (
        f"## Tokenizers\nTokenizing {document['bytes'] / 1e6:.0f} MB of books with GPT-2's vocabulary, {document['threads']} threads, in a "
        "new process for each round.\n\n" + table(["program", "MB/s", "speed of Megalith / this", "peak MB"], rows) + "\n"
    )


def generation_section(document):
    speed = document["tokens_per_s"]
    return (
        f"## Generation\n{document['what'].removeprefix('generation, ')}, a prompt of {document['prompt']} tokens and {document['tokens']} new tokens. Megalith: "
        f"{speed['megalith']:.1f} tokens/s. transformers {document['transformers']}: {speed['transformers']:.1f} tokens/s. "
        f"The ratio of speeds is {document['ratio']:.2f}.\n"
    )


def comm_section(document):
    seconds, rows = document["seconds"], []
    for i, size in enumerate(document["bytes"]):
        best = min(seconds[peer][i] for peer in ("OpenMPI", "gloo"))
        rows.append(
            [f"{size / 2**10:.0f} KiB" if size < 2**20 else f"{size / 2**20:.0f} MiB"]
            + [f"{seconds[name][i] * 1e6:.0f}" for name in ("shared", "windows", "OpenMPI", "gloo")]
            + [f"{best / seconds[name][i]:.1f}" for name in ("shared", "windows")]
        )
    header = ["size", "shared, µs", "ordinary memory, µs", "OpenMPI, µs", "gloo, µs", "shared: speed / best peer", "ordinary memory: speed / best peer"]
    return (
        f"## Communication\nAll-reduce of float32 between {document['ranks']} ranks of one host. Our channels use buffers in shared memory "
        "(where parameters and gradients are) or ordinary memory. The peers are OpenMPI's MPI_Allreduce and gloo (PyTorch, over "
        f"loopback), with their default settings. Rounds: {document['rounds']}, programs in turns; the table has medians.\n\n" + table(header, rows) + "\n"
    )


RANK_TARGETS = {"one process, 2 threads": {"data": 0.95, "tensor": 0.85}, "PyTorch DDP, gloo": {"data": 1.3},
                "PyTorch FSDP2, gloo": {"data": 1.3}, "bound": {"pipeline": 0.85}}


def ranks_section(document):
    rows, ratios, notes = [], [], []
    for part, r in document.items():
        for program, p in r["programs"].items():
            title = part if program == next(iter(r["programs"])) else ""
            rows.append([title, program, f"{p['step_s']:.2f}", f"{p['tokens_per_s']:.0f}"])
        for what, times in r["ratios"].items():
            ours, other = what.split(" / ")
            aim = RANK_TARGETS[other][part]
            ratios.append([ours, other, f"{times:.2f}", f"{aim}", "yes" if times >= aim else "**no**"])
        if bound := r.get("bound"):
            notes.append(
                f"\nThe bound of the pipeline is {bound['bound_s']:.2f} s per step. The slower stage has {bound['share']:.0%} of the work of a "
                "step, by the times that one process with one thread needs for its blocks. In addition, it waits until the first of "
                "8 micro-batches has passed the other stage: an eighth of the work of that stage.\n"
            )
    first = next(iter(document.values()))
    return (
        "## Ranks\ngpt2-124m, sequences of 256, AdamW with clipping, float32: two ranks with one thread each. A step has 4 sequences "
        "for data and tensor, and 8 sequences in 8 micro-batches for the pipeline. "
        f"Medians of {first['rounds']} rounds of {first['steps']} steps, programs in turns. Ratios are computed within a round.\n\n"
        + table(["", "program", "step, s", "tokens/s"], rows) + "\n\n"
        + table(["layout", "against", "ratio of speeds", "target", "reached"], ratios) + "\n" + "".join(notes)
    )


def dropping_section(r):
    return (
        "## Token dropping\ngpt2-124m with 1,024 tokens, where all layers except the first and the last drop half of the tokens. A step takes "
        f"{r['step']:.2f} of the time without dropping (target 0.62), a layer that drops takes {r['layer']:.2f} (target 0.55). In theory "
        f"{r['step_by_arithmetic']:.2f} of the multiply-adds remain, because the head and two layers see all tokens. Median of "
        f"{r['rounds']} rounds.\n"
    )


def experts_section(r):
    s, ratios = r["shape"], r["ratios"]
    rows = [["dense model with the same work per token", "0.85", f"{ratios['experts / dense']:.2f}"],
            ["Mixtral in transformers, same shapes, eager or compiled, whichever is faster", "2", f"{ratios['experts / transformers']:.2f}"],
            ["two ranks (expert 2) against one process with two threads", "0.85", f"{ratios['expert 2 / experts']:.2f}"]]
    return (
        f"## Experts\n{s['experts']} experts of width {s['expert']}, {s['top_k']} per token, {s['layers']} layers, hidden {s['hidden']}, "
        f"{s['tokens']} tokens per step, AdamW. The numbers are ratios of speeds.\n\n" + table(["against", "target", "this run"], rows)
        + f"\n\nMedians of {r['rounds']} rounds.\n"
    )


def embeddings_section(r):
    rows = [[f"{run['megalith_s']:.1f}", f"{run['sentence_transformers_s']:.1f}", f"{run['peak_bytes'] / 2**20:.0f} MiB"] for run in r["rounds"]]
    worst = max(difference for loss in r["agreement"].values() for difference in loss.values())
    return (
        f"## Embeddings\nA step of contrastive training: {r['pairs']} pairs of {r['tokens']} tokens, an encoder as large as MiniLM "
        f"(6 layers, hidden 384), float32, {r['micro_batch']} sequences at once, `memory.ram: 1GiB`. sentence-transformers uses its "
        "cached loss with the same number of sequences. Steps alternate.\n\n"
        + table(["Megalith, s", "sentence-transformers, s", "peak of Megalith"], rows)
        + f"\n\nMedian ratio {r['ratio']:.2f} (target 1.3). On 64 pairs, loss and every gradient differ by at most {worst:.0e} from "
        "the plain and the cached loss of sentence-transformers.\n"
    )


def experts_quality_section(r):
    runs = r["runs"]
    rows = {}  # by tokens: a run that ends just after an evaluation has two rows with the same number
    for step in range(len(runs["dense"][0]["curve"])):
        at = [[run["curve"][step] for run in runs[model]] for model in ("dense", "experts")]
        rows[f"{at[0][0]['tokens'] / 1e6:.2f}M"] = [", ".join(f"{p['valid_loss']:.3f}" for p in points) for points in at]
    colours = {"dense": COLOURS["torch.compile"], "experts": COLOURS["Megalith"]}
    lines = [(f"{model}, seed {run['seed']}", colours[model], "", [(p["tokens"], p["valid_loss"]) for p in run["curve"]])
             for model in runs for run in runs[model]]
    loss_chart.draw(DOCS / "images" / "experts_quality.svg", [loss_chart.panel(lines, "tokens", 0)], list(colours.items()))
    even = max(run["evenness"] for run in runs["experts"])
    return (
        "### What they learn\nA llama with 6 layers, hidden 192, on books, against a dense model with the same multiply-adds per token: "
        "validation loss by tokens, for each seed.\n\n" + table(["tokens", "dense", "8 experts, 2 per token"], [[tokens, *losses] for tokens, losses in rows.items()])
        + f"\n\n![validation loss](images/experts_quality.svg)\n\nIn the second half of the runs, the busiest expert had {even:.2f} times the mean number of tokens, in the worst layer (target 1.5).\n"
    )


def experts_memory_section(r):
    rows = [
        [f"{run['parameters'] / 1e6:.0f}M, {run['experts']} experts", f"{run['tokens']}", f"{run['state_over_ram']:.1f}",
         f"{run['in_memory']['tokens_per_s']:.0f}", f"{run['spilled']['tokens_per_s']:.0f}", f"{run['ratio']:.2f}",
         f"{run['disk']['read_bytes'] / run['disk']['planned_read_bytes']:.2f}"]
        for run in [*r["larger"], r["few"]]
    ]
    everything = [*r["larger"], r["few"]]
    same = all(run["losses_identical"] for run in everything)
    within = all(run["within_budget"] and run["spilled"]["oom_kills"] == 0 for run in everything)
    return (
        f"### Larger than memory\nSparse models in a memory cgroup without swap, with full recomputation, against the same binary with "
        f"all state in memory. The target is {r['target']} from 2,048 tokens per step, with a state of at least 8 times the "
        f"budget. Losses are {'bit-identical' if same else 'DIFFERENT'}; resident memory is {'within' if within else 'NOT within'} "
        "the budget. The tokens of the last model choose few of its experts; the others stay on disk.\n\n"
        + table(["model", "tokens per step", "state / budget", "in memory, tokens/s", "spilled, tokens/s", "ratio",
                 "bytes read / bytes of all experts"], rows) + "\n"
    )


def mib(row):
    return f"{row['memory']['peak_bytes'] / 2**20:.0f}"


def spill_budget_section(r):
    rows = [
        [name, f"{r[key]['tokens_per_s']:.1f}", f"{r[key]['step_s']:.2f}", mib(r[key])]
        for name, key in (("everything in memory", "in_memory"), (f"memory.ram: {r['ram_bytes'] / 2**30:g}GiB", "spilled"))
    ]
    return (
        f"## Larger than memory\n{r['parameters'] / 1e6:.0f}M parameters ({16 * r['parameters'] / 1e9:.1f} GB of state), "
        f"{r['tokens']} tokens per step, in a memory cgroup of {r['limit_bytes'] / 2**30:g} GiB without swap, recompute: "
        f"{r['recompute']}. Spilled training reaches {r['ratio']:.1%} of the speed in memory, with {r['spilled']['oom_kills']} kills. "
        f"Resident memory, sampled every 10 ms, is {'within' if r['within_budget'] else 'NOT within'} the budget. Losses of {r['steps']} steps are "
        f"{'bit-identical' if r['losses_identical'] else 'DIFFERENT'}.\n\n"
        + table(["", "tokens/s", "step, s", "peak MiB"], rows) + "\n"
    )


def spill_disk_bound_section(r):
    bandwidth = max(r["fio_before"]["best"], r["fio_after"]["best"])
    return (
        f"### Limited by the disk\nA step of the same model with {r['tokens']} tokens takes {r['step_s']:.2f} s. fio moves "
        f"36 bytes per parameter, reads and writes mixed ({bandwidth / 1e9:.2f} GB/s), in "
        f"{r['bytes_a_step'] / bandwidth:.2f} s. Megalith reaches {r['share']:.0%} of this limit.\n"
    )


def spill_largest_section(r):
    if "ratio" not in r:  # only one side was measured
        return ""
    ours, peer = r["ours"], r["torch"]["best"]
    return (
        f"### The largest model in {ours['limit_bytes'] / 2**30:g} GiB\n{ours['parameters'] / 1e9:.2f}B parameters (hidden "
        f"{ours['hidden']}, {ours['layers']} layers, vocabulary {ours['vocab']}), AdamW in fp32 with clipping, "
        f"{ours['tokens']} tokens per step: {ours['step_s'][-1]:.0f} s per step, {mib(ours)} MiB resident, "
        f"{ours['oom_kills']} kills. The first loss differs by {ours['first_loss_difference']:.0e} from a forward pass without the engine. "
        f"In the same cgroup, a plain PyTorch loop that recomputes every layer trains {peer['parameters'] / 1e6:.0f}M parameters: "
        f"Megalith trains {r['ratio']:.0f} times as many.\n"
    )


def spill_deepspeed_section(r):
    text = "### Against DeepSpeed ZeRO-3 on disk\n"
    for name, work in r["works"].items():
        if "times_as_fast" not in work:  # only one side was measured
            continue
        rows = [
            [program, "–", "–", row["missing"]] if "missing" in row
            else [program, f"{row['tokens_per_s']:.1f}", f"{row['step_s']:.2f}", mib(row)]
            for program, row in work["programs"].items()
        ]
        text += (
            f"{name} ({work['date']}, {work['processor']}): {work['times_as_fast']:.2f} times as fast with "
            f"{work['share_of_memory']:.2f} of its resident memory (targets: 1.9 and 0.2).\n\n"
            + table(["program", "tokens/s", "step, s", "peak MiB"], rows) + "\n\n"
        )
    return text.rstrip("\n") + "\n"


def main():
    parts, machine = [], {}
    for name, section in {
        "step": step_section, "startup": startup_section, "save": save_section, "kernels": kernels_section,
        "tokenizers": tokenizers_section, "generation": generation_section, "comm": comm_section, "ranks": ranks_section,
        "dropping": dropping_section, "experts": experts_section, "experts_quality": experts_quality_section,
        "experts_memory": experts_memory_section, "embeddings": embeddings_section,
        "spill_budget": spill_budget_section,
        "spill_disk_bound": spill_disk_bound_section, "spill_largest": spill_largest_section,
        "spill_deepspeed": spill_deepspeed_section,
    }.items():
        document = load(name)
        if document is None:
            continue
        if "processor" in document or "cpu" in document:
            machine = machine or document
        parts.append(section(document))
    parts.append(study_page.section(table))
    if document := load("step"):
        parts.append(targets_section(document))
    head = (
        "# Benchmarks\nWritten by `make bench` (bench/). The programs run their steps in turn, so that a noisy machine slows all of "
        f"them equally. Only ratios within one run are compared. This run: {machine.get('date', '')}, "
        f"{machine.get('processor', machine.get('cpu', ''))}, {machine.get('threads', 2)} threads.\n"
    )
    (DOCS / "benchmarks.md").write_text(head + "\n" + "\n".join(p for p in parts if p))
    print(f"bench: {DOCS / 'benchmarks.md'}")


if __name__ == "__main__":
    main()
