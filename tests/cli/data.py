"""Turns text into tokens as a user does: many kinds of files, interrupted and killed, inspected, blended.
data.py BINARY"""

import gzip
import json
import signal

from support import metrics, run_cases, text, wait_for


def tokenizer(space):
    space.run("tokenizer", "train", "--vocab", 400, "--out", "tok", "text.txt")
    return "tok/tokenizer.json"


def shard(space, prefix):
    return (space / f"{prefix}.bin").read_bytes(), (space / f"{prefix}.idx").read_bytes()


def every_kind_of_file(space):
    """The same documents give the same tokens: as separated text, as text with separator tokens and as JSON lines, compressed
    or not."""
    tok = tokenizer(space)
    documents = [text(50 + 200 * (i % 5), seed=i) + "\n" for i in range(30)]
    space.write("lines.txt", "".join(d + "###\n" for d in documents))
    space.write("token.txt", "<|endoftext|>".join(documents))
    space.write("a.jsonl", "".join(json.dumps({"id": i, "body": d}) + "\n" for i, d in enumerate(documents)))
    (space / "b.jsonl.gz").write_bytes(gzip.compress((space / "a.jsonl").read_bytes()))
    for i, document in enumerate(documents):
        space.write(f"many/{i:02}.txt", document)
    runs = {
        "lines": ["--separator", "###", "lines.txt"],
        "token": ["--separator-token", "<|endoftext|>", "token.txt"],
        "json": ["--text-field", "body", "a.jsonl"],
        "packed": ["--text-field", "body", "b.jsonl.gz"],
        "glob": ["many/*.txt"],
        "one_thread": ["--threads", "1", "many/*.txt"],
    }
    for name, arguments in runs.items():
        done = space.run("tokenize", "--tokenizer", tok, "--out", f"out/{name}", *arguments)
        assert "30 documents" in done.stdout, done.stdout
        assert shard(space, f"out/{name}") == shard(space, "out/lines"), f"{name} differs"
    facts = space.run("--json", "shards", "out/glob.bin").json
    assert facts["documents"] == 30 and facts["type"] == "uint16", facts
    shown = space.run("shards", "out/glob", "--document", 7, "--tokenizer", tok, "--tokens", 100000).stdout
    assert shown == documents[7] + "<|endoftext|>\n", shown[:200]
    both = ["--separator", "a", "--separator-token", "b", "token.txt"]
    said = space.run("tokenize", "--tokenizer", tok, "--out", "x", *both, expect=2).stderr
    assert "--separator" in said and "excludes" in said, said
    said = space.run("tokenize", "--tokenizer", tok, "--out", "out/", "token.txt", expect=2).stderr
    assert "--out: expected a prefix of file names, got the folder out/; add a name, such as out/train" in said, said
    said = space.run("shards", "out/glob", "--document", 30, expect=2).stderr
    assert "--document: expected a number below 30 (documents count from 0), got 30" in said, said


def interrupted_and_killed(space):
    tok = tokenizer(space)
    once = text(20000)
    space.write("a.txt", once * 60)
    space.write(
        "b.jsonl",
        "".join(json.dumps({"text": once[i : i + 3000]}) + "\n" for i in range(0, len(once), 3000)) * 30,
    )
    (space / "c.txt.gz").write_bytes(gzip.compress((once * 40).encode(), 1))
    arguments = ["tokenize", "--tokenizer", tok, "a.txt", "b.jsonl", "c.txt.gz", "--out"]
    space.run(*arguments, "whole")
    journal = space / "part.partial.json"
    places = []
    for which in (signal.SIGKILL, signal.SIGINT, signal.SIGKILL, signal.SIGTERM):
        before = journal.read_text() if journal.exists() else ""
        process = space.start(*arguments, "part")
        wait_for(
            lambda: process.poll() is not None
            or (journal.exists() and journal.read_text() not in ("", before)),
            "some text to be done",
        )
        assert process.poll() is None, "it was too late to interrupt"
        process.send_signal(which)
        code = process.wait(60)
        assert code == (-signal.SIGKILL if which == signal.SIGKILL else 130), code
        assert not (space / "part.idx").exists()
        places.append(json.loads(journal.read_text())["tokens"])
    assert places == sorted(set(places)), f"no progress: {places}"
    said = (space / "started.txt").read_text()
    assert "the finished part is kept" in said, said
    assert "run the same command again to resume" in said, said
    other = space.run("tokenize", "--tokenizer", tok, "a.txt", "--out", "other")
    assert "resuming" not in other.stderr, other.stderr
    done = space.run(*arguments, "part")
    assert "resuming tokenization" in done.stderr, done.stderr
    assert shard(space, "part") == shard(space, "whole"), "the shards differ"
    left = sorted(p.name for p in space.root.glob("*partial*"))
    assert left == [], left


def training_resumes_with_its_tokens(space):
    """`train` tokenizes text in data.train. After Ctrl-C the finished part is kept, and the next run continues there."""
    space.write("long.txt", text(20000) * 100)
    tok = tokenizer(space)
    space.yaml("run", steps=2, data=f"{{train: long.txt, tokenizer: {tok}, sequence: 32}}")
    process = space.start("train", "run.yaml")
    partial = lambda: list((space / "runs/run").glob("data/*.partial.json"))
    wait_for(lambda: partial() or process.poll() is not None, "some text to be done")
    assert process.poll() is None, "it was too late to interrupt"
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    done = space.train("run")
    assert "resuming tokenization" in done.stderr, done.stderr
    assert [m["step"] for m in metrics(space / "runs/run")] == [1, 2]


def blended_by_weight(space):
    space.write("a.txt", text(4000, seed=1))
    space.write("b.txt", text(8000, seed=2))
    tok = tokenizer(space)
    space.yaml(
        "run",
        steps=40,
        data=f"{{train: [{{path: a.txt, weight: 3}}, {{path: b.txt, weight: 1}}], tokenizer: {tok}, sequence: 32}}",
    )
    space.train("run")
    epochs = [m["epochs"] for m in metrics(space / "runs/run")]
    tokens = space.run("--json", "tokenize", "--tokenizer", tok, "--out", "a", "a.txt").json["tokens"]
    samples = (tokens - 2) // 32
    samples -= max(1, round(samples / 100))
    assert abs(epochs[-1][0] * samples - 120) <= 2, f"{epochs[-1][0] * samples} of 160 samples from a.txt"
    assert all(a <= b for a, b in zip(epochs, epochs[1:]))
    space.yaml("plain", steps=2)
    space.train("plain")
    assert metrics(space / "runs/plain")[-1]["epoch"] > 0
    kept = (space / "runs/run/config.yaml").read_text()
    assert "train: [{path: a.txt, weight: 3}, {path: b.txt, weight: 1}]" in kept, kept


def flip(path, where):
    content = bytearray(path.read_bytes())
    content[int(len(content) * where)] ^= 0x10
    path.write_bytes(content)


def a_flipped_bit_is_found(space):
    """In a shard of the user, the run ends and names the shard. Cached tokens are made again, and the losses stay the same."""
    tok = tokenizer(space)
    space.run("tokenize", "--tokenizer", tok, "--out", "tokens/a", "text.txt")
    assert (space / "tokens/a.sums").exists()
    space.yaml("own", steps=2, data=f"{{train: tokens/a, tokenizer: {tok}, sequence: 32}}")
    assert "checksums" not in space.train("own").stderr
    flip(space / "tokens/a.bin", 0.4)
    said = space.run("train", "own.yaml", "run.dir=runs/damaged", expect=2).stderr
    assert "tokens/a.bin: bytes 0 to " in said and "create it again with `megalith tokenize`" in said, said
    (space / "tokens/a.sums").unlink()
    said = space.train("own", "run.dir=runs/unchecked").stderr
    told = [line for line in said.splitlines() if "token shards without checksums" in line]
    assert len(told) == 1 and told[0].endswith("tokens/a"), said

    space.yaml("text", steps=2, data=f"{{train: text.txt, tokenizer: {tok}, sequence: 32}}")
    space.train("text", "data.cache=cache", "run.dir=runs/good")
    good = [m["loss"] for m in metrics(space / "runs/good")]
    prefix = next((space / "cache").glob("*.idx")).with_suffix("")
    whole = shard(space, prefix)
    for ending in (".bin", ".idx", ".sums"):
        flip(prefix.with_suffix(ending), 0.4)
        said = space.train("text", "data.cache=cache", f"run.dir=runs/again{ending}").stderr
        assert "the tokens of text.txt are damaged on disk, and the text must be tokenized again" in said, said
        assert "tokenized text.txt" in said, said
        assert [m["loss"] for m in metrics(space / f"runs/again{ending}")] == good
        assert shard(space, prefix) == whole


run_cases(
    [
        every_kind_of_file,
        interrupted_and_killed,
        training_resumes_with_its_tokens,
        blended_by_weight,
        a_flipped_bit_is_found,
    ]
)
