"""Shared helpers for tests of the binary: a workspace with a small text, a small run, and a way to run the
program.

Every script takes the binary as its first argument, writes only below a temporary directory and removes it.
"""

import contextlib
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

# No test may wait for a network. Thread pools of the reference libraries would only disturb the timing.
os.environ.update(
    HF_HUB_OFFLINE="1",
    TRANSFORMERS_VERBOSITY="error",
    TOKENIZERS_PARALLELISM="false",
    OMP_NUM_THREADS="2",
    TF_CPP_MIN_LOG_LEVEL="3",
    TQDM_DISABLE="1",
)

SKIPPED = 77  # ctest's SKIP_RETURN_CODE
BINARY = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else None
LONG = "--long" in sys.argv

MODELS = {
    "gpt2": "{arch: gpt2, layers: 2, hidden: 32, heads: 2, context: 32}",
    "llama": "{arch: llama, layers: 2, hidden: 32, heads: 4, kv_heads: 2, ffn: 64, context: 32}",
    "bert": "{arch: bert, layers: 2, hidden: 32, heads: 2, context: 32}",
}


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def text(words, seed=0):
    """Returns sentences of invented words with a skewed distribution, which a model can learn. They are the same on every
    machine."""
    chance = random.Random(seed)
    syllables = [a + b for a in "bdfglmnprst" for b in ("a", "e", "i", "o", "u", "an", "el", "or")]
    lexicon = [
        "".join(chance.choice(syllables) for _ in range(chance.choice((1, 1, 2, 2, 3)))) for _ in range(200)
    ]
    out, length = [], 0
    for _ in range(words):
        word = lexicon[min(int(chance.expovariate(0.04)), len(lexicon) - 1)]
        out.append(word.capitalize() if length == 0 else word)
        length += 1
        if length > 4 and chance.random() < 0.2:
            out[-1] += ".\n" if chance.random() < 0.3 else "."
            length = 0
    return " ".join(out)


class Result:
    """How a command ended."""

    def __init__(self, code, stdout, stderr):
        self.code, self.stdout, self.stderr = code, stdout, stderr

    @property
    def json(self):
        return json.loads(self.stdout)


class Workspace:
    """A temporary directory with text.txt in it; commands run with it as current directory."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        # Measurements of the machine are stored here, not in the user's cache. Each script measures once.
        self.environment = dict(os.environ, XDG_CACHE_HOME=str(self.root / "cache"))
        (self.root / "text.txt").write_text(text(20000))

    def __truediv__(self, name):
        return self.root / name

    def write(self, name, content):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        return path

    def command(self, *arguments):
        return [str(BINARY), *map(str, arguments)]

    def run(self, *arguments, expect=0, timeout=120):
        """Runs the binary to its end; `expect` is the expected exit code (None: any)."""
        done = subprocess.run(
            self.command(*arguments),
            cwd=self.root,
            env=self.environment,
            capture_output=True,
            timeout=timeout,
        )
        result = Result(
            done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
        )
        if expect is not None and result.code != expect:
            raise AssertionError(
                f"{' '.join(map(str, arguments))}: exit code {result.code}, expected {expect}\n"
                f"{result.stdout}{result.stderr}"
            )
        return result

    def start(self, *arguments):
        """Starts the binary and leaves it running; its output goes to a file in the workspace."""
        with open(self.root / "started.txt", "ab") as out:
            return subprocess.Popen(
                self.command(*arguments), cwd=self.root, env=self.environment, stdout=out, stderr=out
            )

    def yaml(self, name, arch="gpt2", steps=12, every=3, **sections):
        """Writes NAME.yaml: a tiny run of about a second. Sections given replace or add lines. One
        thread: with models this small, a second one would only wait, and long on a busy machine."""
        lines = {
            "model": MODELS[arch],
            "data": "{train: text.txt, tokenizer: {train: bpe, vocab: 300}, sequence: 32}",
            "train": f"{{steps: {steps}, batch: 4, lr: 0.003, warmup: 2, eval_every: 5, eval_batches: 2, "
            "threads: 1}",
            "checkpoint": f"{{every: {every}}}",
        }
        if arch == "bert":
            lines["objective"] = "masked"
        lines.update(sections)
        return self.write(f"{name}.yaml", "".join(f"{k}: {v}\n" for k, v in lines.items() if v is not None))

    def train(self, name, *overrides, **options):
        return self.run("train", f"{name}.yaml", *overrides, **options)


@contextlib.contextmanager
def workspace():
    root = tempfile.mkdtemp(prefix="megalith-cli-")
    try:
        yield Workspace(root)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def metrics(run):
    """Returns the objects in metrics.jsonl, one per step."""
    return [json.loads(line) for line in (pathlib.Path(run) / "metrics.jsonl").read_text().splitlines()]


# These keys must not depend on interruptions. The other keys are times and memory.
EXACT = ("step", "loss", "lr", "grad_norm", "tokens", "valid_loss", "sample", "loss_scale", "skipped")


def numbers(run):
    """Returns the part of every line that must be the same bit by bit, as text."""
    return [json.dumps({k: m[k] for k in EXACT if k in m}) for m in metrics(run)]


def checkpoints(run):
    """Returns the names of the checkpoints of a run, oldest first, without leftovers of interrupted saves."""
    folder = pathlib.Path(run) / "checkpoints"
    return sorted(p.name for p in folder.iterdir() if ".tmp-" not in p.name) if folder.exists() else []


def tensors(checkpoint):
    """Returns every tensor of a checkpoint, weights and optimizer state, as bytes. NumPy's reader does not support all types."""
    out = {}
    for path in sorted(pathlib.Path(checkpoint).glob("*.safetensors")):
        content = path.read_bytes()
        begin = 8 + int.from_bytes(content[:8], "little")
        for name, entry in json.loads(content[8:begin]).items():
            if name != "__metadata__":
                first, end = entry["data_offsets"]
                out[f"{path.name}:{name}"] = (entry["shape"], entry["dtype"], content[begin + first : begin + end])
    assert out, f"no tensors in {checkpoint}"
    return out


def assert_same_run(run, reference, what):
    """Asserts that two runs have the same losses, line by line, and the same last checkpoint, tensor by tensor."""
    got, expected = numbers(run), numbers(reference)
    for a, b in zip(got, expected):
        assert a == b, f"{what}: differs\n  {a}\n  {b}"
    assert len(got) == len(expected), f"{what}: {len(got)} steps, expected {len(expected)}"
    last = checkpoints(reference)[-1]
    assert checkpoints(run)[-1] == last, f"{what}: last checkpoint is {checkpoints(run)[-1]}, expected {last}"
    assert tensors(pathlib.Path(run) / "checkpoints" / last) == tensors(
        pathlib.Path(reference) / "checkpoints" / last
    ), f"{what}: tensors of {last} differ"


def prepare_small_llama(space, steps=8, every=3, micro_batch=1):
    """Writes run.yaml with about 7.6 million parameters: 29 MiB, or 116 MiB of state. A process itself takes about 90 MiB.
    Trains it in memory, in runs/memory."""
    space.yaml(
        "run",
        model="{arch: llama, layers: 6, hidden: 320, heads: 4, ffn: 896, context: 64}",
        data="{train: text.txt, tokenizer: {train: bpe, vocab: 500}, sequence: 64}",
        train=f"{{steps: {steps}, batch: 4, micro_batch: {micro_batch}, lr: 0.001, warmup: 2, eval_every: 4, eval_batches: 2, "
        "sample_tokens: 4, threads: 1}",
        checkpoint=f"{{every: {every}}}",
    )
    space.train("run", "run.dir=runs/memory")


def wait_for(condition, what, seconds=60):
    """Polls until `condition()` is true."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"waited {seconds} s for {what}")
        time.sleep(0.005)


def lines_of(path):
    try:
        return pathlib.Path(path).read_text(errors="replace").count("\n")
    except FileNotFoundError:
        return 0


def run_cases(cases):
    """Runs functions that each take a workspace. Prints one line for each, and fails at the end if one of them
    failed."""
    failed = []
    for case in cases:
        name = case.__name__.replace("_", " ")
        began = time.monotonic()
        try:
            with workspace() as space:
                said = case(space)
            print(f"ok    {name}{': ' + said if said else ''} ({time.monotonic() - began:.1f} s)", flush=True)
        except Exception as error:  # run the other cases, too
            failed.append(name)
            print(f"FAIL  {name}: {error}", flush=True)
    if failed:
        sys.exit(f"{len(failed)} of {len(cases)} failed: {', '.join(failed)}")
