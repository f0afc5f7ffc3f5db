"""Tests ranks that die, stop, hang or fail: the supervisor notices, names and restarts them, and leaves nothing behind.
faults.py FAKE_RUN"""

import os
import pathlib
import signal
import subprocess
import time

from launching import BINARY, Run, below, listening, processes, run_cases, shared_files, wait_for


def it_runs(space):
    run = Run(space, ranks=3)
    result = run.end(0)
    assert run.steps() == list(range(1, 21)), run.steps()
    assert result.stdout == '{"steps": 20}\n', result.stdout  # exactly the output of rank 0
    assert result.stderr.count("rank 0 is here") == 1 and "rank 1" not in result.stderr, result.stderr
    for rank in (1, 2):
        assert f"rank {rank} is here" in (run.dir / f"log-{rank}.txt").read_text()


def a_killed_rank_is_noticed_and_the_run_goes_on(space):
    for rank in (0, 1):
        run = Run(space, "--steps", 60, name=f"killed{rank}")
        run.wait_for_step(12)
        os.kill(run.pid(rank), signal.SIGKILL)
        began = time.monotonic()
        wait_for(lambda: "restarting on" in run.said(), "the restart")
        assert time.monotonic() - began < 5, "it took too long to notice"  # users may rely on this time
        result = run.end(0)
        assert f"rank {rank} on " in result.stderr and "was killed by signal 9 (Killed) at step" in result.stderr, result.stderr
        assert "(restart 1 of 3)" in result.stderr and f"from {run.dir}/checkpoint" in result.stderr, result.stderr
        again = run.steps().index(next(b for a, b in zip(run.steps(), run.steps()[1:]) if b <= a), 1)
        assert (run.steps()[again] - 1) % 5 == 0, f"did not begin at a checkpoint: {run.steps()}"
        assert run.steps()[-1] == 60


def all_shared_memory_is_in_the_folder_that_goes(space):
    run = Run(space, "--steps", 1000)
    run.wait_for_step(3)
    for rank in (0, 1):
        files = shared_files(run.pid(rank))
        assert len(files) > 1, f"not even pages and segments: {files}"  # otherwise the test looks in the wrong place
        for path in files:
            assert any(path.startswith(f"{folder}/") for folder in run.folders()), path
    run.process.terminate()
    run.end(130)


def nothing_is_open_to_others(space):
    """A run is not reachable for other hosts and other users."""
    run = Run(space, "--steps", 1000)
    run.wait_for_step(3)
    addresses = listening(below(run.process.pid))
    assert "mpirun" in addresses.values(), f"not even mpirun: {addresses}"  # otherwise the test looks in the wrong place
    assert set(addresses) <= {"127.0.0.1", "::1"}, addresses
    for folder in run.folders():
        for path in (folder, *folder.iterdir()):
            assert path.stat().st_mode & 0o777 == 0o700, f"{path} has mode {path.stat().st_mode:o}"
        files = [path for path in (folder / os.uname().nodename).iterdir() if path.is_file()]
        assert len(files) > 3, f"no lock, pages and segments: {files}"
        for path in files:
            assert path.stat().st_mode & 0o777 == 0o600, f"{path} has mode {path.stat().st_mode:o}"
    run.process.terminate()
    run.end(130)


def without_a_checkpoint_it_begins_anew(space):
    run = Run(space, "--fault", "1:2:segv")
    result = run.end(0)
    assert "signal 11 (Segmentation fault)" in result.stderr, result.stderr
    assert "from step 0, because there is no checkpoint yet" in result.stderr, result.stderr
    assert run.steps() == [1, 2, *range(1, 21)], run.steps()


def restarts_are_counted(space):
    run = Run(space, "--fault", "1:7:kill!", "--restarts", 2)
    result = run.end(3)
    assert "(restart 2 of 2)" in result.stderr and "(restart 3" not in result.stderr, result.stderr
    assert "the limit of 2 restarts is reached (run.restarts); run the same command again to resume from" in result.stderr
    assert result.stderr.count("beginning at step") == 3
    run = Run(space, "--fault", "1:2:kill!", "--restarts", 0, name="none")
    assert "there is no checkpoint to resume from" in run.end(4).stderr


def a_process_that_just_ends_is_a_crash(space):
    run = Run(space, "--fault", "1:7:exit", "--restarts", 1)
    result = run.end(0)
    assert "(restart 1 of 1)" in result.stderr, result.stderr


def errors_are_said_once_with_their_rank_and_not_tried_again(space):
    for kind, code, words in (
        ("user", 2, "run.yaml:3: train.lr: expected a number above 0, got -1"),
        ("bug", 1, "as told"),
        ("fault", 3, "the disk is full, as told"),
    ):
        run = Run(space, "--fault", f"1:7:{kind}!", name=kind)
        result = run.end(code)
        assert result.stderr.count(words) == 1 and "rank 1: " in result.stderr, result.stderr
        assert "restarting on" not in result.stderr and "mpirun" not in result.stderr, result.stderr
        assert words in (run.dir / "log-1.txt").read_text()
        run = Run(space, *(word for r in range(3) for word in ("--fault", f"{r}:2:{kind}!")), ranks=3, name=f"{kind}-all")
        result = run.end(4 if kind == "fault" else code)
        assert result.stderr.count(words) == 1, result.stderr


def ctrl_c_saves_and_leaves(space):
    for which in (signal.SIGINT, signal.SIGTERM):
        run = Run(space, "--steps", 100000, "--every", 1000000, name=f"run{which}")
        run.wait_for_step(3)
        run.process.send_signal(which)
        run.end(130)
        assert int((run.dir / "checkpoint").read_text()) == run.steps()[-1], "what was done is not saved"
        assert "stopping after this step; saving a checkpoint" in run.said()
        on = Run(space, "--steps", run.steps()[-1] + 2, name=f"run{which}")
        on.end(0)


def a_second_one_stops_at_once(space):
    run = Run(space, "--steps", 1000, "--fault", "1:3:spin", "--watchdog", 600)
    run.wait_for_step(3)
    run.process.send_signal(signal.SIGINT)
    wait_for(lambda: "Press Ctrl-C again to stop now" in run.said(), "the first to be seen")
    assert run.process.poll() is None
    run.process.send_signal(signal.SIGINT)
    run.end(130)


def a_hang_is_named(space):
    """The others wait inside MPI for the rank that does not continue."""
    for kind, words in (
        ("stop", "is stopped (by SIGSTOP or a debugger), in backward of block 3, micro-batch 1, at step 7"),
        ("spin", "makes no progress, in backward of block 3, micro-batch 1, at step 7"),
        ("absent", "did not reach the operation that the others wait in"),
    ):
        run = Run(space, "--fault", f"1:7:{kind}", "--watchdog", 2, ranks=3, name=kind)
        result = run.end(3)
        assert f"rank 1 on {os.uname().nodename}" in result.stderr and words in result.stderr, result.stderr
        table = [line.split() for line in result.stderr.splitlines() if line[:1] in "012" and "norm, all-reduce" in line]
        assert [row[0] for row in table] == ["0", "2"], result.stderr
        assert all("rank" in row[-5] + row[-4] + row[-3] for row in table), result.stderr
        assert "rank  host" in (run.dir / "log.txt").read_text(), "no table in the log"
        assert "restarting on" not in result.stderr


def mpirun_that_hangs_does_not_matter(space):
    run = Run(space, "--steps", 1000)
    run.wait_for_step(6)
    mpirun = next(pid for pid, line in processes(run.mark).items() if "mpirun" in line.split()[0])
    os.kill(mpirun, signal.SIGSTOP)
    os.kill(run.pid(1), signal.SIGKILL)
    wait_for(lambda: "restarting on" in run.said(), "the restart")
    run.process.send_signal(signal.SIGTERM)
    run.end(130)


def a_killed_mpirun_is_a_crash(space):
    run = Run(space, "--steps", 40)
    run.wait_for_step(6)
    mpirun = next(pid for pid, line in processes(run.mark).items() if "mpirun" in line.split()[0])
    os.kill(mpirun, signal.SIGKILL)
    assert "mpirun was killed by signal 9" in run.end(0).stderr


def a_killed_supervisor_leaves_nothing(space):
    """No processes and no files are left, even if a rank is stopped."""
    for kind in ("none", "stop"):
        run = Run(space, "--steps", 100000, "--fault", f"1:7:{kind}", name=kind)
        run.wait_for_step(6)
        run.process.kill()
        run.process.wait()
        run.nothing_left()


def without_mpirun_it_says_what_to_install(space):
    empty = space / "empty"
    empty.mkdir()
    run = Run(space, environment={"PATH": str(empty)})
    result = run.end(2)
    assert "expected OpenMPI's mpirun in PATH" in result.stderr and "openmpi-bin" in result.stderr, result.stderr


def mpirun_that_cannot_start_says_why(space):
    run = Run(space, "--hosts", "no-such-host.invalid:2", environment={"OMPI_MCA_plm_rsh_agent": "/bin/false"})
    result = run.end(2)
    assert "mpirun ended with exit code" in result.stderr, result.stderr


def under_the_users_own_mpirun_it_joins(space):
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    directory = space / "joined"
    directory.mkdir()
    command = ["mpirun", "-np", "2", "--oversubscribe", str(BINARY), "--dir", str(directory)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout == '{"steps": 20}\n', done
    assert "beginning at step 0 on 2 ranks" in done.stderr and "rank 1" not in done.stderr, done.stderr
    (directory / "checkpoint").unlink()
    done = subprocess.run([*command, "--fault", "0:2:user!", "1:2:user!"], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and done.stderr.count("expected a number above 0") == 1, done.stderr
    assert "megalith: rank 0: run.yaml:3" in done.stderr

    # No supervisor, but a hang is reported.
    hung = [*command, "--fault", "1:3:stop", "--watchdog", "2"]
    done = subprocess.run(hung, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0 and "rank 1 on " in done.stderr and "is stopped" in done.stderr, done.stderr
    assert "rank  host" in (directory / "log.txt").read_text()
    wait_for(lambda: not processes(f"--dir {directory}"), "the end of all")
    wait_for(lambda: not list(pathlib.Path("/dev/shm").glob("megalith-*-joined-*")), "the pages to go")


run_cases(
    [
        it_runs,
        a_killed_rank_is_noticed_and_the_run_goes_on,
        all_shared_memory_is_in_the_folder_that_goes,
        nothing_is_open_to_others,
        without_a_checkpoint_it_begins_anew,
        restarts_are_counted,
        a_process_that_just_ends_is_a_crash,
        errors_are_said_once_with_their_rank_and_not_tried_again,
        ctrl_c_saves_and_leaves,
        a_second_one_stops_at_once,
        a_hang_is_named,
        mpirun_that_hangs_does_not_matter,
        a_killed_mpirun_is_a_crash,
        a_killed_supervisor_leaves_nothing,
        without_mpirun_it_says_what_to_install,
        mpirun_that_cannot_start_says_why,
        under_the_users_own_mpirun_it_joins,
    ]
)
