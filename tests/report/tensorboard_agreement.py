"""TensorBoard's own reader against our event files: tensorboard_agreement.py WRITE_EVENTS"""
import math
import subprocess
import sys
import tempfile

try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
except ImportError:
    print("skipped: the tensorboard package is not installed")
    sys.exit(77)

with tempfile.TemporaryDirectory() as folder:
    subprocess.run([sys.argv[1], folder], check=True)
    events = EventAccumulator(folder, size_guidance={"scalars": 0, "tensors": 0})
    events.Reload()

tags = events.Tags()
want = {"loss/train", "loss/valid", "lr", "grad_norm", "tokens_per_s", "mem_peak_bytes", "save_s", "experts/load",
        "disk/read_bytes"}
assert set(tags["scalars"]) == want, tags

# Steps 21..30 of the killed process are forgotten, those of the resumed one count.
train = events.Scalars("loss/train")
assert [e.step for e in train] == list(range(1, 26)), [e.step for e in train]
for e in train:
    expected = 10 / e.step + (100 if e.step > 20 else 0)
    assert math.isclose(e.value, expected, rel_tol=1e-6), e
    assert e.wall_time > 1.7e9, e
for e in events.Scalars("lr"):
    assert math.isclose(e.value, 1e-3 / e.step, rel_tol=1e-6), e
assert [e.step for e in events.Scalars("loss/valid")] == [10, 20]
norms = events.Scalars("grad_norm")
assert all(math.isnan(e.value) == (e.step == 7) for e in norms), norms
assert [(e.step, e.value) for e in events.Scalars("save_s")] == [(10, 0.25), (20, 0.25)]
assert all(e.value == 1.5 for e in events.Scalars("experts/load"))
assert all(e.value == 3 * 2**30 for e in events.Scalars("mem_peak_bytes"))

assert tags["tensors"] == ["sample"], tags
assert events.SummaryMetadata("sample").plugin_data.plugin_name == "text"
texts = {e.step: e.tensor_proto.string_val[0].decode() for e in events.Tensors("sample")}
# (Of steps done again this reader forgets scalars but no texts: its accumulated_attrs has no tensors.)
assert set(texts) >= {10, 20}, texts
assert all(t == f"    step {s}\n    <b>naïve</b>" for s, t in texts.items()), texts
print("TensorBoard reads", len(train), "steps as written")
