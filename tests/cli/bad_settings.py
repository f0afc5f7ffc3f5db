"""Wrong settings and command lines. The program must refuse each one and name it (refusals.py).  bad_settings.py BINARY"""

import os
import resource
import subprocess

from refusals import refused
from support import run_cases


def model_shapes(space):
    space.yaml("run")
    refused(
        space,
        "train",
        "run.yaml",
        "model.heads=5",
        says=["model.heads", "divisor of model.hidden (32)", "got 5", "use"],
    )
    space.yaml("preset", model="{preset: gpt2-124}")
    refused(space, "train", "preset.yaml", says=["preset.yaml:1", "model.preset", "gpt2-124m"])
    refused(
        space,
        "train",
        "run.yaml",
        "data.sequence=64",
        says=["data.sequence", "at most model.context (32)", "got 64", "raise model.context"],
    )
    refused(space, "train", "run.yaml", "model.kv_heads=1", says=["model.kv_heads", "gpt2"])
    space.yaml("half", model="{arch: gpt2, layers: 2}")
    refused(space, "train", "half.yaml", says=["model.hidden", "nothing", "model.preset"])
    space.yaml("nothing", model="{layers: 2}")
    refused(space, "train", "nothing.yaml", says=["model", "preset", "arch", "from"])
    space.yaml("bert", arch="bert", objective=None)
    refused(space, "train", "bert.yaml", says=["objective", "masked", "bert", "causal"])
    refused(space, "train", "run.yaml", "objective=masked", says=["objective", "gpt2", "masked"])
    refused(
        space,
        "train",
        "run.yaml",
        "model.vocab=280",
        says=["data.tokenizer.vocab", "at most model.vocab (280)", "got 300"],
    )


def training_settings(space):
    space.yaml("run")
    refused(space, "train", "run.yaml", "train.lr=-1", says=["command line", "train.lr", "above 0", "got -1"])
    refused(
        space,
        "train",
        "run.yaml",
        "train.min_lr=1",
        says=["train.min_lr", "at most train.lr (0.003)", "got 1"],
    )
    refused(
        space,
        "train",
        "run.yaml",
        "train.micro_batch=3",
        says=["train.micro_batch", "divisor of train.batch (4)", "use"],
    )
    refused(space, "train", "run.yaml", "train.warmup=13", says=["train.warmup", "at most train.steps (12)"])
    refused(space, "train", "run.yaml", "train.tokens=512", "train.warmup=5",
            says=["train.warmup", "at most the run's 4 steps, counted in full batches of 128 tokens", "got 5"])
    refused(space, "train", "run.yaml", "train.steps=many", says=["train.steps", "many"])
    space.yaml("both", train="{steps: 3, tokens: 1k}")
    refused(
        space,
        "train",
        "both.yaml",
        says=["both.yaml:3", "either train.steps or train.tokens", "both", "remove one"],
    )
    refused(space, "train", "run.yaml", "train.optimizer=adam", says=["train.optimizer", "adamw", "got adam"])
    refused(space, "train", "run.yaml", "train.momentum=0.5", says=["train.momentum", "sgd"])
    refused(
        space,
        "train",
        "run.yaml",
        "memory.ram=1MiB",
        says=["memory.ram", "at least", "parameters", "got 1.00 MiB"],
    )
    assert not (space / "runs").exists(), "a refused run left a directory"


def experts_of_a_dense_model(space):
    space.yaml("run")
    refused(space, "train", "run.yaml", "--ranks", "2", "parallel.expert=2", says=["parallel.expert", "the model has no experts", "got 2"], quiet=False)


def one_rank_shares_nothing(space):
    space.yaml("run")
    refused(space, "train", "run.yaml", "parallel.expert=2", says=["parallel.expert", "a divisor of parallel.data (1)", "got 2"])
    assert not (space / "runs").exists(), "a refused run left a directory"


def layouts(space):
    space.yaml("run")
    for axis in ("data", "tensor", "pipeline", "context"):
        refused(space, "train", "run.yaml", f"parallel.{axis}=2", says=["parallel", "a layout of 1 rank", f"{axis} 2", "--ranks 2"])
    several = ("train", "run.yaml", "--ranks")
    refused(space, *several, "4", "parallel.tensor=3", says=["command line: parallel: expected a layout of 4 ranks (from --ranks): data 4", "tensor 3 per replica", "start a multiple of 3 ranks"], quiet=False)
    refused(space, *several, "3", "train.batch=8", says=["train.batch", "a multiple of parallel.data (3, from --ranks)", "got 8", "use 6 or 9"], quiet=False)
    refused(
        space, *several, "2", "parallel.zero=1", "train.optimizer=adafactor",
        says=["train.optimizer", "parallel.zero", "got adafactor"], quiet=False,
    )
    refused(space, *several, "3", "parallel.tensor=3", "train.batch=6", says=["parallel.tensor", "got 3"], quiet=False)


def experts(space):
    space.yaml("sparse", model="{arch: llama, layers: 2, hidden: 32, heads: 4, context: 32, experts: {count: 4}}")
    several = ("train", "sparse.yaml", "--ranks", "2", "train.batch=8")
    refused(space, *several, "parallel.expert=2", "model.experts.count=5",
            says=["parallel.expert", "a divisor of model.experts.count (5)", "got 2", "use 1 or 5"], quiet=False)
    refused(space, *several, "parallel.expert=2", "parallel.tensor=2", says=["parallel.expert", "a divisor of parallel.data (1)", "got 2"], quiet=False)
    refused(space, *several, "parallel.expert=2", "train.optimizer=adafactor", says=["train.optimizer", "parallel.expert", "got adafactor"], quiet=False)
    refused(space, *several, "parallel.expert=2", "train.optimizer_state=int8", says=["train.optimizer_state", "parallel.expert", "got int8"], quiet=False)
    refused(space, *several, "parallel.tensor=2", "model.experts.ffn=33",
            says=["parallel.tensor", "a divisor of model.experts.ffn (33)", "got 2", "use 1"], quiet=False)
    refused(space, *several, "parallel.zero=2", "model.experts.share_layers=true", says=["model.experts.share_layers", "zero above 1"], quiet=False)
    refused(space, "train", "sparse.yaml", "model.experts.top_k=5", says=["model.experts.top_k", "at most", "got 5"])
    refused(space, "train", "sparse.yaml", "model.experts.capacity=0", says=["model.experts.capacity", "above 0", "got 0"])
    refused(space, "train", "sparse.yaml", "model.experts.router=expert_choice", says=["model.experts.router", "across"])


def yaml_mistakes(space):
    space.yaml("typo", train="{steps: 12, learning_rate: 0.1}")
    refused(space, "train", "typo.yaml", says=["typo.yaml:3", "train.learning_rate"])
    space.yaml("near", train="{steps: 12, weight_decy: 0.1}")
    refused(space, "train", "near.yaml", says=["near.yaml:3", "train.weight_decy", "train.weight_decay"])
    space.yaml("section", modle="{layers: 2}")
    refused(space, "train", "section.yaml", says=["section.yaml:5", "modle", "model"])
    space.yaml("type", train="{steps: [1, 2]}")
    refused(space, "train", "type.yaml", says=["type.yaml:3", "train.steps", "expected", "[1, 2]"])
    space.yaml("scalar", train="12")
    refused(
        space, "train", "scalar.yaml", says=["scalar.yaml:3", "train", "mapping", "megalith config train"]
    )
    space.write("malformed.yaml", "model: {arch: gpt2\ndata: ]\n")
    refused(space, "train", "malformed.yaml", says=["malformed.yaml:"])
    space.write("tabs.yaml", "model:\n\tarch: gpt2\n")
    refused(space, "train", "tabs.yaml", says=["tabs.yaml:2", "begins with a tab"])
    space.write("twice.yaml", "train: {steps: 1}\ntrain: {steps: 2}\n")
    refused(space, "train", "twice.yaml", says=["twice.yaml:2", "train"])
    space.write("blank.yaml", "")
    refused(space, "train", "blank.yaml", says=["blank.yaml", "model"])
    (space / "bytes.yaml").write_bytes(b"model: \xff\xfe\n")
    refused(space, "train", "bytes.yaml", says=["bytes.yaml"])
    refused(space, "train", "absent.yaml", says=["absent.yaml"])
    refused(space, "train", ".", says=[".: expected the file with the settings of a run, got a folder"])
    space.yaml("first")
    (space / "first").mkdir()
    refused(space, "train", "first", says=["got a folder; give its settings: first.yaml"])


def command_lines(space):
    space.yaml("run")
    refused(space, "train", "run.yaml", "train.lr", says=["command line", "key=value", "train.lr"])
    refused(space, "train", "run.yaml", "=3", says=["command line", "key=value"])
    refused(space, "train", "run.yaml", "train.lr=[", says=["command line"])
    refused(space, "train", "run.yaml", "train.stepz=3", says=["command line", "train.stepz", "train.steps"])
    refused(
        space,
        "trian",
        "run.yaml",
        says=["command line", "expected a command", "got trian", "did you mean train?"],
    )
    refused(space, "xyz", says=["command line", "expected a command", "got xyz", "--help"])
    refused(space, "train", says=["command line", "RUN.yaml"])
    refused(space, "train", "run.yaml", "--fast", says=["command line", "--fast"])
    refused(
        space,
        "generate",
        "x",
        "--tokens",
        "-3",
        says=["command line", "--tokens", "expected a whole number from 0, got -3"],
    )
    refused(space, "generate", "x", "--tokens", "few", says=["command line", "--tokens", "got few"])
    refused(space, "generate", "x", "--top-p", "2", says=["command line", "--top-p", "from 0 to 1, got 2"])
    refused(space, "export", "x", "--out", "y", "--dtype", "int8", says=["command line", "--dtype", "bf16"])
    refused(space, "tokenizer", says=["command line", "for example: megalith tokenizer train"])
    refused(space, "config", "train.stepz", says=["train.stepz", "train.steps"])


def options_in_the_wrong_place(space):
    space.yaml("run")
    for words, says in (
        (("--ranks", "2", "train", "run.yaml"), "expected the command first, got --ranks; write megalith train --ranks 2 run.yaml"),
        (("run.yaml", "train.steps=3"), "expected the command first, got run.yaml; write megalith train run.yaml train.steps=3"),
        (("train", "run.dir=x", "run.yaml"), "the file with the settings before all key=value, got run.dir=x; write run.yaml run.dir=x"),
        (("train", "run.yaml", "--train.lr=1e-3"), "--train.lr: unknown option; write train.lr=1e-3 without dashes"),
        (("train", "run.yaml", "--train.lr", "1e-3"), "write train.lr=1e-3 without dashes"),
        (("train", "run.yaml", "--steps", "3"), "--steps: unknown option; write train.steps=3 without dashes"),
        (("train", "--learning-rate", "1e-3", "run.yaml"), "write train.lr=1e-3 without dashes"),
        (("train", "run.yaml", "--epochs", "3"), "Megalith counts steps"),
        (("train", "run.yaml", "--rank", "2"), "did you mean --ranks?"),
        (("train", "run.yaml", "--num_gpus=2"), "use --ranks"),
        (("generate", "runs/run", "--max-new-tokens", "9"), "use --tokens"),
        (("tokenizer", "train", "text.txt", "--vocab-size", "300", "--out", "tok"), "use --vocab"),
        (("finetune", "run.yaml"), "did you mean train?"),
        (("train", "--config", "run.yaml"), "--config: unknown option; use the settings file without an option: megalith train RUN.yaml"),
        (("train", "run.yaml", "--set", "train.lr=1"), "use key=value without an option"),
        (("memory", "--config=run.yaml"), "use the settings file without an option"),
        (("train",), "RUN.yaml is required; for example: megalith train first.yaml"),
        (("generate", "--prompt", "x"), "CKPT is required; for example: megalith generate runs/first"),
        (("checkpoint", "list", "runs/run"), "expected verify after checkpoint, got list; for example: megalith checkpoint verify runs/first"),
        (("tokenizer",), "expected train after tokenizer, got nothing"),
    ):
        refused(space, *words, says=["command line: ", says])


def all_wrong_values_at_once(space):
    space.yaml("run", train="{lr: fast, batch: 0, epochs: 3, weight_decy: 1}", memory="{ram: 4}", traning="{log_every: 2}")
    message = refused(
        space, "train", "run.yaml", "model.heads=two",
        says=["7 mistakes:", "run.yaml:3: train.lr: expected", "run.yaml:3: train.batch: expected", "model.heads: expected",
              "did you mean 4GiB?", "epochs: unknown key; Megalith counts steps", "so set train.steps to ",
              "run.yaml:3: train.weight_decy: unknown key; did you mean train.weight_decay?"],
    )
    assert len(message.splitlines()) == 8, message


def alternatives_on_the_command_line(space):
    """One alternative on the command line replaces the other one in the file. Both at once are refused."""
    space.yaml("run")
    both = ["train.steps=3", "train.tokens=384"]
    for words in (both, both[::-1]):
        refused(space, "train", "run.yaml", *words, says=["either train.steps or train.tokens, got both"])
    space.train("run", "train.tokens=384")


def parts_of_a_curriculum(space):
    space.yaml("run")
    for key in ("curriculum[0].from=3", "curriculum.from=3"):
        refused(space, "train", "run.yaml", key, says=["the whole list", "curriculum=[{"])
    rest = "from: 8, to: 32, over"
    refused(space, "train", "run.yaml", f"curriculum=[{{metric: length, {rest}: 10}}]", says=["did you mean 10 steps?"])
    refused(space, "train", "run.yaml", f"curriculum=[{{metric: loss, {rest}: 10 steps}}]",
            says=["curriculum[0].checkpoint", "the model that computes the loss"])


def peak_of(space, *arguments):
    """Runs the binary. Returns exit code, stderr and largest resident memory in KiB."""
    out = space / "out.txt"
    with open(out, "wb") as file:
        child = subprocess.Popen(space.command(*arguments), cwd=space.root, env=space.environment, stdout=file, stderr=file)
    # Without this limit, a faulty run would take all memory of the machine.
    resource.prlimit(child.pid, resource.RLIMIT_CPU, (60, 60))
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return child.returncode, out.read_text(errors="replace"), usage.ru_maxrss


def sizes_that_no_plan_can_count(space):
    """For every size, the answer takes little time and memory: at most 2.7 times that of a tiny model, and at most 300 MiB."""
    space.yaml("run", train="{steps: 3, batch: 4, eval_every: 0, threads: 1}")
    experts = "{arch: llama, layers: 2, hidden: 32, heads: 4, context: 32, experts: {count: 4}}"
    space.yaml("sparse", model=experts, train="{steps: 3, batch: 4, eval_every: 0, threads: 1}")
    least = peak_of(space, "memory", "run.yaml")[2]
    longest = ["model.context=1000000000", "data.sequence=1000000000"]
    widest = ["model.hidden=1000000", "model.heads=1000000"]
    cases = [
        ("run", widest, "memory.ram"),
        ("run", [*widest, "model.layers=5000"], "memory.ram"),
        ("run", ["model.layers=100000"], "model.layers"),
        ("run", ["train.batch=1000000000"], "train.batch"),
        ("run", ["train.batch=1000000000", "train.micro_batch=1000000000", *longest, *widest], "train.steps"),
        ("run", ["train.batch=100000000", "train.micro_batch=100000000"], "memory.ram"),
        ("run", [*widest, "memory.spill=spill"], "memory.spill"),
        ("sparse", ["model.experts.count=100000"], "model.experts.count"),
        ("sparse", ["model.layers=20000", "parallel.pipeline=2", "parallel.interleave=10000", "parallel.schedule=interleaved",
                    "--ranks", "2"], "model.layers"),
    ]
    peaks = []
    for number, (name, settings, key) in enumerate(cases):
        for command in ("memory", *(["simulate", "train"] if number % 4 == 0 else [])):
            code, said, peak = peak_of(space, command, f"{name}.yaml", *settings)
            assert code == 2, f"{command} {settings}: {code}\n{said}"
            assert key in said or "does not fit" in said, f"{command} {settings}: {said}"
            assert peak < 2.7 * least, f"{command} {settings}: {peak >> 10} MiB"
            peaks.append(peak >> 10)
    return f"{len(peaks)} answers, at most {max(peaks)} MiB"


def json_says_it_too(space):
    space.yaml("run")
    result = space.run("--json", "train", "run.yaml", "train.lr=-1", expect=2)
    assert result.json["exit_code"] == 2 and "train.lr" in result.json["error"], result.stdout
    assert result.stderr.startswith("megalith: ") and result.json["error"] in result.stderr


run_cases(
    [
        model_shapes,
        training_settings,
        one_rank_shares_nothing,
        experts_of_a_dense_model,
        layouts,
        experts,
        yaml_mistakes,
        command_lines,
        options_in_the_wrong_place,
        all_wrong_values_at_once,
        alternatives_on_the_command_line,
        parts_of_a_curriculum,
        sizes_that_no_plan_can_count,
        json_says_it_too,
    ]
)
