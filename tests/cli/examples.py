"""Every file in examples/ trains for a few steps as its comment says. The test replaces only sizes and files."""
import pathlib
import re
import shlex
import subprocess

import support

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
FEW = ["train.steps=2", "train.warmup=0", "train.eval_every=0", "train.batch=2", "train.eval_batches=1", "run.dir=runs/example"]
SMALL_TOKENIZER = "data.tokenizer={train: bpe, vocab: 300}"


def finished(space, run="runs/example"):
    lines = support.metrics(space / run)
    assert [m["step"] for m in lines] == [1, 2], lines
    assert (space / run / "report.html").exists()
    return f"loss {lines[-1]['loss']:.3f}"


def every_example_is_here(space):
    names = {p.name for p in EXAMPLES.glob("*.yaml")}
    tested = {"quickstart.yaml", "gpt2-124m.yaml", "finetune.yaml", "bert.yaml", "efficient.yaml", "experts.yaml"}
    assert names == tested, f"examples without a test: {names - tested}; tests without an example: {tested - names}"


def quickstart_and_going_on_from_its_checkpoint(space):
    space.run("train", EXAMPLES / "quickstart.yaml", "data.train=[text.txt]", "data.tokenizer={train: bpe, vocab: 300}",
              "data.separator=null", *FEW)
    first = finished(space)
    overrides = ["data.sequence=128", *(o for o in FEW if not o.startswith("run.dir"))]
    space.run("train", EXAMPLES / "finetune.yaml", "model.from=runs/example", "data.train=[text.txt]", "run.dir=runs/tuned", *overrides)
    return f"{first}; tuned: {finished(space, 'runs/tuned')}"


def what_the_quickstart_suggests(space):
    """Every command that scripts/quickstart shows at its end, on a small text and for few steps."""
    small = ["data.train=[text.txt]", SMALL_TOKENIZER, "data.separator=null", *(o for o in FEW if not o.startswith("run.dir"))]
    script = (EXAMPLES.parent / "scripts/quickstart").read_text()
    commands = re.findall(r"^  build/megalith (.*)$", script, re.MULTILINE)
    assert len(commands) >= 4, commands
    (space / "my.txt").write_text("To be or not to be, that is a question for ships.\n" * 20)
    space.run("train", EXAMPLES / "quickstart.yaml", *small)
    for command in commands:
        command = command.replace("$own", "")
        words = [str(EXAMPLES.parent / w) if w.startswith("examples/") else w for w in shlex.split(command, comments=True)]
        if words[0] == "train":
            words += small
        done = subprocess.run(space.command(*words), cwd=space.root, env=space.environment, input=b"Ba\n", capture_output=True, timeout=300)
        assert done.returncode == 0 and done.stdout, f"{command}: {done.returncode}, {done.stdout!r}{done.stderr!r}"
    return f"{len(commands)} commands"


def gpt2_124m(space):
    space.run("train", EXAMPLES / "gpt2-124m.yaml", "data.train=[text.txt]", SMALL_TOKENIZER, "data.sequence=32", *FEW,
              "checkpoint.every=never", timeout=300)
    return finished(space)


def bert(space):
    space.run("train", EXAMPLES / "bert.yaml", "data.train=[text.txt]", SMALL_TOKENIZER, "data.sequence=32", *FEW,
              "checkpoint.every=never", timeout=300)
    return finished(space)


def efficient(space):
    few = [o for o in FEW if not o.startswith("train.steps")]
    space.run("train", EXAMPLES / "efficient.yaml", "data.train=[text.txt]", SMALL_TOKENIZER, *few, "train.tokens=200",
              "checkpoint.every=never", timeout=300)
    rows = support.metrics(space / "runs/example")
    assert rows[0]["length"] == 64 and rows[0]["kept"] == 64, rows[0]
    assert rows[-1]["tokens"] >= 200 and (space / "runs/example/report.html").exists(), rows
    return f"{len(rows)} short steps, loss {rows[-1]['loss']:.3f}"


def experts(space):
    few = [o for o in FEW if not o.startswith("train.steps")]
    space.run("train", EXAMPLES / "experts.yaml", "data.train=[text.txt]", SMALL_TOKENIZER, *few, "train.tokens=1024",
              "checkpoint.every=never", timeout=300)
    rows = support.metrics(space / "runs/example")
    assert rows[-1]["experts"]["dropped"] == 0, rows[-1]
    return finished(space)


if __name__ == "__main__":
    support.run_cases([every_example_is_here, quickstart_and_going_on_from_its_checkpoint,
                       what_the_quickstart_suggests, gpt2_124m, bert, efficient, experts])
