"""DeepSpeed's own scheduler and index files against ours, through `megalith config from-deepspeed`.

    deepspeed_agreement.py MEGALITH PACING_MAIN

Exit code 77: the package is not there.
"""
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import types

try:
    import numpy
    import torch
    from deepspeed.runtime.data_pipeline.curriculum_scheduler import CurriculumScheduler
    from deepspeed.runtime.data_pipeline.data_routing.scheduler import RandomLTDScheduler
    from deepspeed.runtime.data_pipeline.data_sampling import data_sampler
    from deepspeed.runtime.data_pipeline.data_sampling.indexed_dataset import MMapIndexedDataset, MMapIndexedDatasetBuilder
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

MEGALITH, PACING = sys.argv[1:3]
STEPS = 400


def schedules():
    yield "fixed_linear", 64, 1024, {"total_curriculum_step": 300, "difficulty_step": 8}
    yield "fixed_linear", 16, 1008, {"total_curriculum_step": 77, "difficulty_step": 16}
    for root in (2, 3, 5):
        yield "fixed_root", 8, 1024, {"total_curriculum_step": 300, "difficulty_step": 8, "root_degree": root}
    yield "fixed_root", 1, 100, {"total_curriculum_step": 123, "difficulty_step": 1, "root_degree": 2}
    yield "fixed_discrete", 8, 1024, {"difficulty": [8, 64, 512, 1024], "max_step": [5, 10, 200]}
    yield "fixed_discrete", 8, 1024, {"difficulty": [8, 64, 1024], "max_step": [0, 1]}


def difficulties_of_their_run(tree, steps):
    """Yields the difficulty that DeepSpeed's sampler uses for each batch of a run."""
    data_sampler.dist = types.SimpleNamespace(barrier=lambda group: None, broadcast=lambda *_, **__: None)  # one rank
    data_sampler.logger.setLevel("ERROR")
    sampler = data_sampler.DeepSpeedDataSampler(tree, 100, 2, 0, 1, None, 1, 0)
    for _ in range(steps):
        sampler.get_next_global_batch()
        yield sampler.current_difficulties["seqlen"]


def translated(folder, tree, steps):
    """Returns the output of from-deepspeed, and the limits of the steps of our run."""
    (folder / "ds.json").write_text(json.dumps(tree))
    out = json.loads(subprocess.run([MEGALITH, "--json", "config", "from-deepspeed", folder / "ds.json"], check=True,
                                    capture_output=True, text=True).stdout)
    model = "model: {arch: gpt2, layers: 4, hidden: 8, heads: 2}\ndata: {sequence: 1024}\n"
    (folder / "run.yaml").write_text(model + out["yaml"])
    lines = subprocess.run([PACING, "pacing", folder / "run.yaml", str(steps)], check=True, capture_output=True, text=True)
    return out, [json.loads(line)[0] for line in lines.stdout.splitlines()]


def compare_token_dropping(folder):
    for low, high, steps, by in ((128, 1024, 300, 16), (16, 512, 77, 8)):
        dropping = {"enabled": True, "total_layer_num": 4, "random_ltd_layer_num": 2, "random_ltd_layer_id": [1, 2],
                    "global_batch_size": 8, "layer_token_lr_schedule": {"enabled": False},
                    "random_ltd_schedule": {"min_value": low, "max_value": high, "schedule_type": "fixed_linear",
                                            "schedule_config": {"require_steps": steps, "seq_per_step": by}}}
        _, ours = translated(folder, {"data_efficiency": {"enabled": True, "data_routing": {
            "enabled": True, "random_ltd": dropping}}}, STEPS)
        reference = RandomLTDScheduler(dropping)
        for step in range(STEPS):
            reference.update_seq(step)  # as DeepSpeed's engine does before each forward pass, from 0
            assert ours[step] == reference.get_current_seq(), (low, high, step, ours[step], reference.get_current_seq())
        print(f"token dropping {low} to {high}: {STEPS} steps equal")


def compare_schedules(folder):
    for kind, low, high, settings in schedules():
        metric = {"min_difficulty": low, "max_difficulty": high, "schedule_type": kind, "schedule_config": settings,
                  "difficulty_type": "value", "clustering_type": "single_cluster"}
        tree = {"train_batch_size": 8, "data_efficiency": {"enabled": True, "seed": 5, "data_sampling": {
            "enabled": True, "num_epochs": 3, "curriculum_learning": {
                "enabled": True, "data_cluster_path": str(folder / "clusters"), "curriculum_metrics": {"seqlen": metric}}}}}
        out, ours = translated(folder, tree, STEPS)
        assert any("train_batch_size" in note for note in out["notes"]) and "seed: 5" in out["yaml"], out
        theirs = list(difficulties_of_their_run(tree["data_efficiency"], STEPS))
        # DeepSpeed's first step is number 1, ours is number 0. A table is shifted by one. A formula is not shifted: it
        # begins with its minimum and reaches DeepSpeed's values one step later, as the note says.
        late = kind != "fixed_discrete"
        assert any("begins one step later" in note for note in out["notes"]) == late, out["notes"]
        expected = [low, *theirs][:STEPS] if late else theirs
        for step in range(STEPS):
            assert ours[step] == expected[step], (kind, settings, step, ours[step], expected[step])
        print(f"{kind} {settings}: {STEPS} steps of a run equal{', one step later' if late else ''}")
    # Known differences, if the minimum is not a multiple of the step: DeepSpeed began at 0 if it was below one step, and
    # later versions begin at the next multiple. We begin at the minimum. If the maximum is not a multiple, DeepSpeed
    # does not reach it at total_curriculum_step.
    odd = {"min_difficulty": 10, "max_difficulty": 100, "schedule_type": "fixed_linear",
           "schedule_config": {"total_curriculum_step": 90, "difficulty_step": 64}}
    assert CurriculumScheduler(odd).get_difficulty(0) in (0, 64) and CurriculumScheduler(odd).get_difficulty(90) == 64


def read_by_us(prefix, samples):
    return json.loads(subprocess.run([PACING, "values", prefix, str(samples)], check=True, capture_output=True, text=True).stdout)


def write_by_them(prefix, dtype, items):
    builder = MMapIndexedDatasetBuilder(str(prefix) + ".bin", dtype=dtype)
    for item in items:
        builder.add_item(torch.tensor(item, dtype=torch.int64))
    builder.end_document()
    builder.finalize(str(prefix) + ".idx")


def compare_index_files(folder):
    rng = random.Random(4)
    for kind, values in (("int", [rng.randrange(50) for _ in range(300)]), ("float", [rng.randrange(5000) / 64 for _ in range(300)])):
        subprocess.run([PACING, "index", folder, kind], input=json.dumps(values), check=True, text=True)
        for name in ("sample_to_metric", "index_to_metric", "index_to_sample"):
            assert read_by_us(folder / f"{kind}_{name}", 300) == values, (kind, name)
        if kind == "float":  # DeepSpeed's files cannot hold floats
            values = [int(v * 1_000_000) for v in values]
        read = MMapIndexedDataset(str(folder / f"{kind}_sample_to_metric"), skip_warmup=True)
        assert [read[i].tolist() for i in range(len(read))] == [[v] for v in values]
        distinct = MMapIndexedDataset(str(folder / f"{kind}_index_to_metric"), skip_warmup=True)
        samples = MMapIndexedDataset(str(folder / f"{kind}_index_to_sample"), skip_warmup=True)
        assert [distinct[i].tolist()[0] for i in range(len(distinct))] == sorted(set(values))
        for i in range(len(distinct)):
            assert samples[i].tolist() == [s for s, v in enumerate(values) if v == distinct[i].tolist()[0]]
    for dtype in (numpy.uint8, numpy.int16, numpy.int32, numpy.int64, numpy.uint16, numpy.uint32):
        values = [rng.randrange(100) for _ in range(200)]
        distinct = sorted(set(values))
        name = f"theirs_{numpy.dtype(dtype).name}"
        write_by_them(folder / f"{name}_sample_to_metric", dtype, [[value] for value in values])
        write_by_them(folder / f"{name}_index_to_metric", dtype, [[value] for value in distinct])
        write_by_them(folder / f"{name}_index_to_sample", numpy.uint8, [[s for s, v in enumerate(values) if v == value] for value in distinct])
        for file in ("sample_to_metric", "index_to_metric", "index_to_sample"):
            assert read_by_us(folder / f"{name}_{file}", 200) == values, (dtype, file)
    print("index files: ours read by theirs, theirs by ours, equal")


with tempfile.TemporaryDirectory() as name:
    compare_schedules(pathlib.Path(name))
    compare_token_dropping(pathlib.Path(name))
    compare_index_files(pathlib.Path(name))
