"""What every measured process does: says that it is ready, then runs as many steps as a line of its standard input
asks for and prints their seconds, until the input ends; then it prints its memory."""

import json
import os
import sys
import time

# Standard output is for answers alone: whatever libraries print goes to standard error.
ANSWERS = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)


def status(field):
    """Bytes of a line of /proc/self/status."""
    with open("/proc/self/status") as lines:
        for line in lines:
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
    return 0


def say(**values):
    print(json.dumps(values), file=ANSWERS, flush=True)


def serve(prepare):
    """`prepare` builds the model and returns a function that makes one step and returns the loss. It is called after
    the imports: what is resident before it is the process's base."""
    base = status("VmRSS")
    step = prepare()
    say(ready=True)
    for line in sys.stdin:
        seconds, loss = [], None
        for _ in range(int(line)):
            begin = time.perf_counter()
            loss = step()
            seconds.append(time.perf_counter() - begin)
        say(seconds=seconds, loss=loss)
    say(base_bytes=base, peak_bytes=status("VmHWM"))
