"""Blocks are computed on a simulated device that is too small for all of them. The run must give the same numbers, with its
state in host memory or on disk, and must never use more device memory than there is.  device.py BINARY"""

import json
import re
import signal

from support import assert_same_run, lines_of, metrics, prepare_small_llama, run_cases, wait_for

BANDWIDTH = "memory.simulated_device.bandwidth=8GB"


def least(space, key, *options):
    """Returns the MiB that the program asks for when it refuses an impossible budget."""
    said = space.train("run", "run.dir=runs/refused", f"{key}=1MiB", *options, expect=2).stderr
    assert key in said, said
    amount, unit = re.search(r"at least ([\d.]+) (MiB|GiB)", said).groups()
    return int(float(amount) * (1024 if unit == "GiB" else 1)) + 1


MODES = {
    "least of the device": [],
    "window 1, full recompute": ["memory.window=1", "memory.recompute=full"],
    "window 3": ["memory.window=3", "memory.recompute=none"],
    "device and disk": ["memory.spill=spill"],
}


def every_mode_is_as_in_memory(space):
    said = []
    for micro_batch in (1, 2):
        prepare_small_llama(space, micro_batch=micro_batch)
        for name, options in MODES.items():
            run = f"runs/{name.split(',')[0].replace(' ', '-')}-{micro_batch}"
            device = least(space, "memory.device", BANDWIDTH, *options) + 2
            options = [f"memory.device={device}MiB", BANDWIDTH, *options]
            if "disk" in name:
                options.append(f"memory.ram={least(space, 'memory.ram', *options) + 8}MiB")
            result = space.train("run", f"run.dir={run}", *options)
            assert "simulated device" in result.stderr and "on the device" in result.stderr, result.stderr
            assert ("on disk" in result.stderr) == ("disk" in name), result.stderr
            assert_same_run(space / run, space / "runs/memory", name)
            measured = json.loads((space / run / "summary.json").read_text())["measured"]
            plan = json.loads((space / run / "plan.json").read_text())
            assert 0 < measured["device_peak_bytes"] <= device << 20, (name, measured["device_peak_bytes"], device)
            assert plan["predicted"]["device_peak_bytes"] <= device << 20, name
            if "disk" in name:
                peak = max(m["mem_peak_bytes"] for m in metrics(space / run))
                assert peak <= int(re.search(r"=(\d+)MiB", options[-1]).group(1)) << 20, f"{name}: {peak} of {options[-1]}"
                assert plan["strategy"]["blocks_away"] > 0, plan["strategy"]
            said.append(f"{device}")
        (space / "runs").rename(space / f"runs-{micro_batch}")
    return "device MiB: " + ", ".join(said)


def kills(space):
    prepare_small_llama(space, steps=20, every=4)
    options = [f"memory.device={least(space, 'memory.device', BANDWIDTH) + 2}MiB", BANDWIDTH, "memory.spill=spill"]
    options.append(f"memory.ram={least(space, 'memory.ram', *options) + 8}MiB")
    hits = 0
    for steps in (5, 10, 14):  # more each time: the run resumes from its last checkpoint
        process = space.start("train", "run.yaml", "run.dir=runs/killed", *options)
        wait_for(lambda: lines_of(space / "runs/killed/metrics.jsonl") >= steps or process.poll() is not None, f"step {steps}")
        hits += process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert hits == 3, (space / "started.txt").read_text()
    # Resumes after the last kill without the device: a resumed run may compute its blocks elsewhere.
    space.train("run", "run.dir=runs/killed", "memory.ram=auto")
    assert_same_run(space / "runs/killed", space / "runs/memory", f"after {hits} kills")
    return f"{hits} kills"


def shown_and_refused(space):
    prepare_small_llama(space)
    device = least(space, "memory.device", BANDWIDTH) + 2
    options = [f"memory.device={device}MiB", BANDWIDTH]
    shown = space.run("memory", "run.yaml", *options).stdout
    assert "on device" in shown and f"{device}.0 MiB" in shown, shown
    table = space.run("memory", "run.yaml", *options, "--json").json
    assert table["fits"] and 0 < table["device_bytes"] <= table["device_most_bytes"] <= device << 20, table
    assert table["device"]["optimizer"] == 0 and table["device"]["parameters"] > 0, table["device"]
    refused = space.run("memory", "run.yaml", "memory.device=8MiB", BANDWIDTH, expect=2).stdout
    assert "does not fit the device" in refused and "memory.device=" in refused, refused
    figures = space.run("simulate", "run.yaml", *options).stdout
    assert re.search(r"device .* MiB; .* uploaded, .* downloaded", figures), figures
    assert "upload" in figures and "download" in figures, figures
    # The plan shows a slow transfer before anything runs.
    fast = space.run("simulate", "run.yaml", *options, "--json").json
    slow = space.run("simulate", "run.yaml", options[0], "memory.simulated_device.bandwidth=50MB", "--json").json
    assert slow["predicted"]["step_s"] > 2 * fast["predicted"]["step_s"], (slow["predicted"]["step_s"], fast["predicted"]["step_s"])
    # Without a simulation this machine has no device. Settings of a device are refused without memory.device.
    said = space.train("run", "run.dir=runs/no", "memory.device=512MiB", expect=2).stderr
    assert "memory.device" in said and "GPUs are not supported" in said, said
    said = space.train("run", "run.dir=runs/no", BANDWIDTH, expect=2).stderr
    assert "memory.simulated_device.bandwidth" in said and "memory.device is given" in said, said
    said = space.train("run", "run.dir=runs/no", *options, "--ranks", "2", expect=2).stderr
    assert "memory.device" in said and "one rank" in said, said


run_cases([every_mode_is_as_in_memory, kills, shown_and_refused])
