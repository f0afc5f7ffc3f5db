"""`memory` and `simulate` predict what a run does, and leave no files behind.  outlook.py BINARY"""

import json
import pathlib
import xml.etree.ElementTree as xml

from peak_memory import run_and_watch
from support import run_cases

MODEL = "{arch: gpt2, layers: 6, hidden: 384, heads: 4, context: 64}"
DATA = "{train: text.txt, tokenizer: {train: bpe, vocab: 300}, sequence: 64}"
TRAIN = "{steps: 3, batch: 8, micro_batch: 8, eval_every: 0, threads: 1}"


def write_run(space):
    space.yaml("run", model=MODEL, data=DATA, train=TRAIN, checkpoint="{every: never}")


def files(space):
    return sorted(str(p.relative_to(space.root)) for p in space.root.rglob("*") if "cache" not in p.parts)


def memory(space, *overrides, expect=0):
    return space.run("memory", "run.yaml", *overrides, "--json", expect=expect).json


def sum_of(kinds):
    return sum(v for k, v in kinds.items())


def nothing_is_left_behind(space):
    write_run(space)
    before = files(space)
    memory(space)
    memory(space, "memory.spill=spill", "memory.ram=130MiB", expect=None)
    space.run("simulate", "run.yaml", "memory.spill=spill")
    assert files(space) == before, files(space)


def the_table_adds_up_and_is_the_run_s(space):
    write_run(space)
    table = memory(space)
    assert table["fits"] and table["disk_bytes"] == 0 and table["strategy"] == "", table
    assert sum_of(table["planned"]) == table["planned_bytes"] <= table["most_bytes"], table
    assert table["planned"] == table["unadapted"], table
    # 12 · 384² and a bit a layer, 4 bytes a parameter; gradients as much, Adam's moments twice.
    parameters = table["planned"]["parameters"]
    assert abs(parameters / (4 * (6 * 12 * 384 * 384 + 364 * 384)) - 1) < 0.02, table
    assert table["planned"]["gradients"] == parameters and table["planned"]["optimizer"] == 2 * parameters, table
    space.train("run")
    predicted = json.loads((space / "runs/run/plan.json").read_text())["predicted"]["memory"]
    assert predicted["parameters"] == parameters, (predicted, table)
    assert predicted["workspace"] == table["planned"]["workspace"], (predicted, table)


def what_does_not_fit_is_told_with_settings_that_help(space):
    write_run(space)
    whole = memory(space)["unadapted_bytes"]
    ram = f"memory.ram={int(whole - 0.25 * (whole - memory(space)['planned']['process'])) >> 20}MiB"
    short = memory(space, ram, "memory.recompute=none", expect=2)
    assert not short["fits"] and short["most_bytes"] > short["budget_bytes"], short
    ways = [w["setting"] for w in short["ways"]]
    assert "memory.spill=DIRECTORY" in ways, ways
    for way in ways:
        settings = [ram, way.replace("DIRECTORY", "spill")]
        if not way.startswith("memory.recompute"):
            settings.append("memory.recompute=none")
        then = memory(space, *settings, expect=None)
        assert then["fits"] and then["most_bytes"] <= then["budget_bytes"], (way, then)
    said = space.run("memory", "run.yaml", ram, "memory.recompute=none", expect=2).stdout
    assert "does not fit" in said and "memory.spill=DIRECTORY" in said, said
    # train refuses for the same reason.
    refused = space.train("run", ram, "memory.recompute=none", expect=2).stderr
    assert "memory.ram" in refused and "memory.spill=DIRECTORY" in refused, refused
    # For a started run, the program suggests only settings that the run may still change.
    space.train("run", "checkpoint.every=3")
    begun = [w["setting"] for w in memory(space, ram, "memory.recompute=none", "checkpoint.every=3", expect=2)["ways"]]
    fixed = {"train.optimizer_state=int8", "memory.activations=int8", "train.optimizer=adafactor"}
    assert fixed & set(ways) and begun == [way for way in ways if way not in fixed], (ways, begun)
    refused = space.train("run", ram, "memory.recompute=none", "checkpoint.every=3", expect=2).stderr
    assert "memory.spill=DIRECTORY" in refused and "optimizer" not in refused.split("to make it fit")[1], refused
    return ", ".join(ways)


def spilled_state_is_counted_once(space):
    write_run(space)
    whole = memory(space)
    process = whole["planned"]["process"]
    ram = f"memory.ram={int(process + 0.7 * (whole['unadapted_bytes'] - process) + (24 << 20)) >> 20}MiB"
    table = memory(space, ram, "memory.spill=spill", "memory.recompute=none")
    assert table["disk_bytes"] > 0 and table["strategy"], table
    # Moments are either on disk or in memory. Chunks of 1 MiB add some padding.
    both = table["planned"]["optimizer"] + table["disk"]["optimizer"]
    assert whole["planned"]["optimizer"] <= both <= whole["planned"]["optimizer"] + 16 * (1 << 20), table
    said = space.train("run", ram, "memory.spill=spill", "memory.recompute=none").stderr
    plan = json.loads((space / "runs/run/plan.json").read_text())
    assert plan["strategy"]["summary"] and plan["strategy"]["summary"] in said, (plan["strategy"], said)


def memory_and_train_admit_by_one_bound(space):
    """At the bound both commands accept the run; one MiB below, both refuse it. The run stays within the bound. budgets.py
    tests thirty budgets."""
    write_run(space)
    settings = ["memory.recompute=none", "train.eval_every=2", "train.eval_batches=1", "checkpoint.every=2"]
    least = -(-memory(space, "memory.ram=1MiB", *settings, expect=2)["most_bytes"] // (1 << 20))
    fits, short = f"memory.ram={least}MiB", f"memory.ram={least - 1}MiB"
    memory(space, short, *settings, expect=2)
    assert "memory.ram" in space.train("run", short, *settings, expect=2).stderr
    assert not (space / "runs").exists(), "a refused run left a directory"
    bound = memory(space, fits, *settings)
    space.run("simulate", "run.yaml", *settings)  # measures the machine, which takes memory of its own
    code, said, peak = run_and_watch(space, "train", "run.yaml", fits, *settings)
    assert code == 0, said
    assert peak <= bound["most_bytes"] <= peak + max(0.1 * peak, 12 << 20), (peak, bound)
    assert bound["most_bytes"] >= bound["planned_bytes"] + sum(bound["beyond_peak"].values()), bound
    return f"peak {peak >> 20} MiB, bound {bound['most_bytes'] >> 20} MiB"


def a_dry_run_checks_and_writes_nothing(space):
    write_run(space)
    before = files(space)
    said = space.run("train", "run.yaml", "--dry-run")
    for part in ("wrote nothing", "at most", "tokenizer of 300 tokens", "text.txt", "train steps 1 to 3"):
        assert part in said.stdout, said.stdout
    assert "training a tokenizer" not in said.stderr, said.stderr
    shown = space.run("train", "run.yaml", "--dry-run", "--json", "--ranks", 2, "train.micro_batch=auto").json
    assert shown["dry_run"] and shown["memory"]["host_ranks"] == 2 and len(shown["would"]) == 3 and shown["assumed"], shown
    space.run("train", "run.yaml", "--dry-run", "data.valid=absent.txt", expect=2)
    space.run("train", "run.yaml", "--dry-run", "memory.ram=1MiB", expect=2)
    space.run("train", "run.yaml", "--dry-run", "run.dir=text.txt/below", expect=2)
    refused = space.run("train", "run.yaml", "--dry-run", "--ranks", 3, "--json", expect=2)
    assert "train.batch" in refused.json["error"], refused.stdout
    assert files(space) == before, files(space)
    space.train("run", "checkpoint.every=3")
    before = files(space)
    said = space.run("train", "run.yaml", "--dry-run", "train.steps=5", "checkpoint.every=3").stdout
    assert "train steps 4 to 5" in said and "This assumes:\n  - the text" in said, said
    assert files(space) == before, files(space)


def simulate_draws_one_step(space):
    write_run(space)
    settings = ["memory.spill=spill", "memory.recompute=full", "memory.window=2"]
    least = memory(space, "memory.ram=1MiB", *settings, expect=2)["most_bytes"]
    settings.append(f"memory.ram={int(least * 1.1) >> 20}MiB")
    done = space.run("simulate", "run.yaml", *settings, "--svg", "step.svg", "--trace", "step.json", "--json")
    figures = done.json
    assert figures["strategy"]["blocks_away"] > 0, figures["strategy"]
    for text in ("compute |", "read    |", "write   |", "step time", "bound by", "peak memory", "read  lane"):
        assert text in done.stderr, done.stderr
    picture = xml.parse(space / "step.svg").getroot()
    titles = [t.text for t in picture.iter("{http://www.w3.org/2000/svg}title")]
    assert any(t.startswith("recompute of layer") or "ops of recompute" in t for t in titles), titles[:20]
    trace = json.loads((space / "step.json").read_text())["traceEvents"]
    ops = [e for e in trace if e["ph"] == "X"]
    assert len(ops) == sum(o["count"] for o in figures["ops"]), len(ops)
    last = max(e["ts"] + e["dur"] for e in ops) / 1e6
    assert abs(last / figures["predicted"]["step_s"] - 1) < 1e-6, (last, figures["predicted"])
    assert 0 <= figures["predicted"]["peak_at_s"] <= last
    assert figures["limits"]["bound_by"] in figures["limits"]["seconds"], figures["limits"]
    for key in ("read_bytes", "written_bytes"):
        moved = sum(lane[key] for lane in figures["disk_bytes_by_lane"].values())
        assert moved == figures["strategy"]["disk_" + key], (key, figures)
    assert not pathlib.Path(space / "runs").exists()


run_cases(
    [
        nothing_is_left_behind,
        the_table_adds_up_and_is_the_run_s,
        what_does_not_fit_is_told_with_settings_that_help,
        spilled_state_is_counted_once,
        memory_and_train_admit_by_one_bound,
        a_dry_run_checks_and_writes_nothing,
        simulate_draws_one_step,
    ]
)
