"""Compares our token shards with Megatron's own reader and builder, in both directions.  megatron_agreement.py SHARD_MAIN

shard_main (tests/text/tools) reads and writes shards with Megalith's classes, as JSON."""

import importlib.util
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import types

SKIPPED = 77  # ctest's SKIP_RETURN_CODE


def indexed_dataset():
    """Imports only this module of Megatron. Importing the package would load its models and optimizers."""
    found = importlib.util.find_spec("megatron")
    if found is None:
        print("skipped: the package megatron-core is not installed")
        sys.exit(SKIPPED)
    root = pathlib.Path(list(found.submodule_search_locations)[0])
    for name in ("megatron", "megatron.core", "megatron.core.datasets"):
        package = types.ModuleType(name)
        package.__path__ = [str(root / "/".join(name.split(".")[1:]))]
        sys.modules[name] = package
    utils = types.ModuleType("megatron.core.utils")
    utils.log_single_rank = lambda *arguments, **options: None
    sys.modules["megatron.core.utils"] = utils
    import megatron.core.datasets.indexed_dataset as module

    return module


def ours(*arguments, given=None, code=0):
    done = subprocess.run(
        [sys.argv[1], *map(str, arguments)], input=given, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == code, f"{arguments}: exit code {done.returncode}\n{done.stderr}"
    return json.loads(done.stdout) if code == 0 and done.stdout else done.stderr


def some_documents(chance, vocab, many):
    """Returns lists of sequences; some documents and sequences are empty."""
    documents = []
    for _ in range(many):
        sequences = []
        for _ in range(chance.choice((1, 1, 1, 2, 5))):
            sequences.append([chance.randrange(vocab) for _ in range(chance.choice((0, 1, 3, 40, 700)))])
        documents.append(sequences)
    return documents


def joined(sequences):
    return [token for sequence in sequences for token in sequence]


def they_read_what_we_write(megatron, folder, chance):
    import numpy

    for vocab, dtype in ((65499, numpy.uint16), (1 << 30, numpy.int32)):
        documents = [joined(d) for d in some_documents(chance, vocab, 40)] + [[], [1], []]
        prefix = folder / f"ours_{dtype.__name__}"
        ours("write", prefix, dtype.__name__, given=json.dumps(documents))
        for mmap in (True, False):
            data = megatron.IndexedDataset(str(prefix), mmap=mmap)
            assert data.index.dtype == dtype, data.index.dtype
            assert list(data.document_indices) == list(range(len(documents) + 1)), "a sequence a document"
            read = [data[i].tolist() for i in range(len(data))]
            assert read == documents, "tokens differ"
            assert data.get(0, offset=0, length=len(documents[0])).tolist() == documents[0]


def we_read_what_they_write(megatron, folder, chance):
    import numpy
    import torch

    for dtype in (numpy.uint16, numpy.int32):
        for multimodal in (False, True):
            documents = some_documents(chance, 65499, 40) + [
                [[]],
                [[1]],
                [],
            ]  # the last document has no sequence
            prefix = folder / f"theirs_{dtype.__name__}_{multimodal}"
            builder = megatron.IndexedDatasetBuilder(f"{prefix}.bin", dtype=dtype, multimodal=multimodal)
            for number, sequences in enumerate(documents):
                if number % 2:
                    tokens = torch.tensor(joined(sequences), dtype=torch.int64)
                    builder.add_document(tokens, [len(s) for s in sequences], [0] * len(sequences))
                else:
                    for sequence in sequences:
                        builder.add_item(torch.tensor(sequence, dtype=torch.int64))
                    builder.end_document()
            builder.finalize(f"{prefix}.idx")
            got = ours("read", prefix)
            assert got["type"] == dtype.__name__, got["type"]
            assert got["documents"] == [joined(d) for d in documents], "documents differ"


def merged_by_them_is_read(megatron, folder, chance):
    """Merges our shards with Megatron's tool, and checks that we read the result."""
    import numpy

    parts = [[joined(d) for d in some_documents(chance, 65499, 10)] for _ in range(3)]
    builder = megatron.IndexedDatasetBuilder(str(folder / "merged.bin"), dtype=numpy.uint16)
    for number, documents in enumerate(parts):
        ours("write", folder / f"part{number}", "uint16", given=json.dumps(documents))
        builder.add_index(str(folder / f"part{number}"))
    builder.finalize(str(folder / "merged.idx"))
    assert ours("read", folder / "merged")["documents"] == [d for part in parts for d in part]


def what_is_not_tokens_is_refused(megatron, folder, chance):
    import numpy
    import torch

    for dtype in (numpy.float32, numpy.int64, numpy.uint8):
        prefix = folder / dtype.__name__
        builder = megatron.IndexedDatasetBuilder(f"{prefix}.bin", dtype=dtype)
        builder.add_document(torch.arange(10), [10])
        builder.finalize(f"{prefix}.idx")
        said = ours("read", prefix, code=2)
        assert "type of the ids: expected 4 (int32) or 8 (uint16)" in said, said
    prefix = folder / "images"
    builder = megatron.IndexedDatasetBuilder(f"{prefix}.bin", dtype=numpy.int32, multimodal=True)
    builder.add_item(torch.arange(10), mode=0)
    builder.add_item(torch.arange(10), mode=1)
    builder.end_document()
    builder.finalize(f"{prefix}.idx")
    said = ours("read", prefix, code=2)
    assert "mode of sequence 1: expected 0 (text), got 1" in said, said


def main():
    megatron = indexed_dataset()
    chance = random.Random(4)
    for case in (
        they_read_what_we_write,
        we_read_what_they_write,
        merged_by_them_is_read,
        what_is_not_tokens_is_refused,
    ):
        with tempfile.TemporaryDirectory(prefix="megalith-shards-") as folder:
            case(megatron, pathlib.Path(folder), chance)
        print("ok   ", case.__name__.replace("_", " "))


main()
