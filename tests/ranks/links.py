"""Tests that the first run of a layout measures the links between ranks, and that later runs and simulate use the result.
links.py BINARY"""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
from support import MODELS, run_cases  # noqa: E402

UNMEASURED = "exchanges between ranks have not been measured on this machine"


def measured(space):
    """Names and values of all measurements of links."""
    machines = json.loads((space / "cache/megalith/calibration.json").read_text())
    return {name: value for names in machines.values() for name, value in names.items() if name.startswith("link ")}


def write_run(space, name, model="gpt2", **parallel):
    space.yaml(name, model=MODELS[model], parallel=json.dumps(parallel),
               train="{steps: 2, batch: 8, micro_batch: 2, threads: 1, eval_every: 0}", checkpoint="{every: never}")


def plan(space, name):
    return json.loads((space / f"runs/{name}/plan.json").read_text())


def simulate(space, name, *words):
    return space.run("simulate", f"{name}.yaml", "--ranks", 2, "run.dir=runs/none", *words)


def are_measured_by_the_first_run_and_known_to_simulate(space):
    write_run(space, "data", data=2)
    assert UNMEASURED in simulate(space, "data").stdout
    space.train("data", "--ranks", 2)
    first = measured(space)
    assert set(first) == {"link data wait, data 2", "link data rate, data 2"}, first
    links = plan(space, "data")["machine"]["links"]
    assert list(links) == ["data"] and links["data"]["bytes_per_s"] > 1e7 and links["data"]["latency_s"] < 0.1, links
    assert UNMEASURED not in simulate(space, "data").stdout
    space.train("data", "--ranks", 2, "run.dir=runs/again")
    assert plan(space, "again")["machine"]["links"] == links
    write_run(space, "tensor", tensor=2)
    assert UNMEASURED in simulate(space, "tensor").stdout
    return f"{links['data']['bytes_per_s'] / 1e9:.1f} GB/s, {links['data']['latency_s'] * 1e6:.0f} µs"


def are_measured_on_every_axis_of_a_layout(space):
    for name, axes, parallel in (
        ("tensor", {"tensor"}, dict(tensor=2)),
        ("ring", {"context", "data"}, dict(context=2)),
        ("ulysses", {"context", "data"}, dict(context=2, context_form="ulysses")),
        ("pipeline", {"pipeline"}, dict(pipeline=2)),
    ):
        write_run(space, name, **parallel)
        space.train(name, "--ranks", 2)
        assert set(plan(space, name)["machine"]["links"]) == axes, (name, plan(space, name)["machine"])
    space.yaml("experts", model=MODELS["llama"][:-1] + ", experts: {count: 4}}", parallel="{data: 2, expert: 2}",
               train="{steps: 2, batch: 8, micro_batch: 2, threads: 1, eval_every: 0}", checkpoint="{every: never}")
    space.train("experts", "--ranks", 2)
    assert set(plan(space, "experts")["machine"]["links"]) == {"data", "expert"}
    return f"{len(measured(space)) // 2} links"


run_cases([are_measured_by_the_first_run_and_known_to_simulate, are_measured_on_every_axis_of_a_layout])
