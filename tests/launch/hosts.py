"""Tests two hosts with two ranks each: network namespaces that are connected by a cable, with different host names, and TCP.
hosts.py FAKE_RUN MEGALITH"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import two_hosts
from launching import BINARY, Run, listening, run_cases, skip, wait_for
from support import assert_same_run

try:
    two_hosts.check_rights()
except two_hosts.NoHosts as why:
    skip(why)


class Hosts(two_hosts.Hosts):
    """A run on both hosts, with the environment that mpirun needs to reach the other host."""

    def __enter__(self):
        try:
            return super().__enter__()
        except two_hosts.NoHosts as why:
            skip(why)

    def run(self, space, *arguments, **options):
        return Run(
            space, "--hosts", "a:2,b:2", *arguments, ranks=4, before=self.on("a"),
            environment={"OMPI_MCA_plm_rsh_agent": str(self.agent)}, **options,
        )  # fmt: skip

    def train(self, space, *arguments, expect=0):
        words = [*self.on("a"), sys.argv[2], "train", "run.yaml", *arguments, "--ranks", 4, "--hosts", "a:2,b:2"]
        done = subprocess.run(
            [str(word) for word in words], cwd=space.root, capture_output=True, text=True, timeout=300,
            env={**space.environment, "OMPI_MCA_plm_rsh_agent": str(self.agent)},
        )  # fmt: skip
        assert done.returncode == expect, f"exit code {done.returncode}, expected {expect}\n{done.stderr}"
        return done.stderr


# Sends its argument to the supervisor's port, and waits until the connection is closed.
STRANGER = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2])), 30) as line:
    line.settimeout(30)
    try:
        line.sendall(sys.argv[3].encode() + b"\\n")
        while line.recv(65536):
            pass
    except (ConnectionResetError, BrokenPipeError):
        pass
print("closed")
"""


def environment_of(pid, name):
    for word in pathlib.Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0"):
        if word.startswith(f"{name}="):
            return word.partition("=")[2]
    raise AssertionError(f"process {pid} has no {name}")


def on_host(pid):
    """Name of the host of a process, from its UTS namespace."""
    return subprocess.run(
        ["nsenter", "--uts", f"--target={pid}", "hostname"], capture_output=True, text=True, check=True
    ).stdout.strip()


def four_ranks_on_two_hosts(space):
    with Hosts(space) as hosts:
        run = hosts.run(space, "--steps", 40)
        run.wait_for_step(2)
        assert [on_host(run.pid(r)) for r in range(4)] == ["a", "a", "b", "b"]
        result = run.end(0)
        assert "beginning at step 0 on 4 ranks" in result.stderr and result.stdout == '{"steps": 40}\n', result.stderr


def only_the_hosts_of_the_run_are_let_in(space):
    """Sockets are on the hosts' network, the secret is on no command line, and unknown connections are refused."""
    with Hosts(space) as hosts:
        run = hosts.run(space, "--steps", 100000, "--every", 1000000)
        run.wait_for_step(3)
        mine = [pid for host in "ab" for pid in hosts.pids(host)]
        names = {pathlib.Path(f"/proc/{pid}/comm").read_text().strip() for pid in mine}
        assert {"mpirun", "orted", BINARY.name} <= names, names
        addresses = listening(mine)
        assert set(addresses) - {"127.0.0.1", "::1"} == set(hosts.addresses.values()), addresses
        supervisor = environment_of(run.pid(3), "MEGALITH_SUPERVISOR")
        settings = json.loads(supervisor)
        assert len(settings["secret"]) == 64 and settings["address"] == hosts.addresses["a"], "no secret for ranks of host b"
        for pid in mine:
            line = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
            assert settings["secret"] not in line, line
        for file in (*run.dir.iterdir(), run.err, run.out):
            assert settings["secret"] not in file.read_text(errors="replace"), file
        for words in ('{"token": 5}', '{"host": "b", "challenge": 1, "proof": []}', "x" * 100000):
            said = subprocess.run(
                [*hosts.on("b"), sys.executable, "-c", STRANGER, settings["address"], str(settings["port"]), words],
                capture_output=True, text=True, timeout=60,
            )  # fmt: skip
            assert said.stdout == "closed\n", said
        steps = run.steps()[-1]
        run.wait_for_step(steps + 5)
        run.process.terminate()
        run.end(130)


def a_named_network_is_used(space):
    with Hosts(space) as hosts:
        run = hosts.run(space, "--interface", "cable")
        run.end(0)
        run = hosts.run(space, "--interface", "eth7", name="none")
        said = run.end(2).stderr
        assert "--interface" in said and "cable (10.201.77.1)" in said, said


def training_gives_the_numbers_of_one_host(space):
    space.yaml("run", every=5, parallel="{tensor: 2, zero: 2}")
    one = [sys.argv[2], "train", "run.yaml", "run.dir=runs/one", "--ranks", "4"]
    subprocess.run(one, cwd=space.root, env=space.environment, check=True, capture_output=True, timeout=300)
    with Hosts(space) as hosts:
        said = hosts.train(space, "run.dir=runs/two")
    assert said.count("training gpt2") == 1, f"one line for all ranks:\n{said}"
    assert_same_run(space / "runs/two", space / "runs/one", "two hosts")


def hosts_without_a_shared_file_system(space):
    """The second host sends its parts of checkpoints to the first host, and gets the files that a resume reads."""
    space.yaml("run", every=4, parallel="{tensor: 2, zero: 3}", memory=f"{{spill: {space / 'spill'}}}")
    one = [sys.argv[2], "train", "run.yaml", "run.dir=straight/one", "--ranks", "4"]
    subprocess.run(one, cwd=space.root, env=space.environment, check=True, capture_output=True, timeout=300)
    with Hosts(space, private=["runs", "spill"]) as hosts:
        said = hosts.train(space, "run.dir=runs/two")
        assert "send their parts of checkpoints to rank 0" in said, said
        assert_same_run(space / "runs-a/two", space / "straight/one", "two hosts that share nothing")
        shutil.rmtree(space / "runs-a/two/checkpoints/step-00000012")
        shutil.rmtree(space / "runs-b/two", ignore_errors=True)  # not needed for resuming
        said = hosts.train(space, "run.dir=runs/two")
        assert "resuming at step 8" in said, said
    assert_same_run(space / "runs-a/two", space / "straight/one", "two hosts that share nothing, resumed")
    assert not list((space / "runs-b").glob("**/*.safetensors")), "checkpoints are on the first host"
    verify = [sys.argv[2], "checkpoint", "verify", str(max((space / "runs-a/two/checkpoints").iterdir()))]
    subprocess.run(verify, check=True, capture_output=True, timeout=60)


def a_rank_that_dies_on_the_other_host(space):
    with Hosts(space) as hosts:
        run = hosts.run(space, "--steps", 60)
        run.wait_for_step(12)
        os.kill(run.pid(3), signal.SIGKILL)
        result = run.end(0)
        assert "rank 3 on b was killed by signal 9 (Killed) at step" in result.stderr, result.stderr
        assert "restarting on 4 ranks" in result.stderr, result.stderr


def a_rank_that_is_stopped_on_the_other_host(space):
    with Hosts(space) as hosts:
        run = hosts.run(space, "--fault", "2:7:stop", "--watchdog", 2)
        result = run.end(3)
        assert "rank 2 on b (pid " in result.stderr and "is stopped" in result.stderr, result.stderr
        rows = [line.split()[:2] for line in result.stderr.splitlines() if line[:1] in ("0", "1", "2", "3")]
        assert rows == [["0", "a"], ["1", "a"], ["2", "b"], ["3", "b"]], result.stderr


def ctrl_c_reaches_the_other_host(space):
    with Hosts(space) as hosts:
        run = hosts.run(space, "--steps", 100000, "--every", 1000000)
        run.wait_for_step(3)
        run.process.send_signal(signal.SIGINT)
        run.end(130)
        assert int((run.dir / "checkpoint").read_text()) == run.steps()[-1]


def a_cut_link_names_the_host_and_the_rest_goes_on(space):
    with Hosts(space) as hosts:
        run = hosts.run(space, "--steps", 100)
        run.wait_for_step(12)
        hosts.cut()
        result = run.end(0, patience=60)  # the other side waits before it gives up
        assert "host b no longer answers; restarting on 2 ranks" in result.stderr, result.stderr
        assert run.steps()[-1] == 100


def a_layout_that_cannot_shrink_stops(space):
    with Hosts(space) as hosts:
        run = hosts.run(space, "--steps", 1000, "--least-ranks", 4)
        run.wait_for_step(12)
        hosts.cut()
        result = run.end(3, patience=60)
        assert "host b no longer answers; the layout needs more than the 2 ranks that are left" in result.stderr


def a_killed_supervisor_leaves_nothing_on_either_host(space):
    with Hosts(space) as hosts:
        run = hosts.run(space, "--steps", 100000)
        run.wait_for_step(3)
        wait_for(lambda: run.folders(), "the folder")
        run.process.kill()
        run.process.wait()
        run.nothing_left(60)


run_cases(
    [
        four_ranks_on_two_hosts,
        only_the_hosts_of_the_run_are_let_in,
        a_named_network_is_used,
        training_gives_the_numbers_of_one_host,
        hosts_without_a_shared_file_system,
        a_rank_that_dies_on_the_other_host,
        a_rank_that_is_stopped_on_the_other_host,
        ctrl_c_reaches_the_other_host,
        a_cut_link_names_the_host_and_the_rest_goes_on,
        a_layout_that_cannot_shrink_stops,
        a_killed_supervisor_leaves_nothing_on_either_host,
    ]
)
