"""The loop of every measured process. It reports that it is ready. Each line of its standard input is a number of steps: it
runs them and prints their seconds. When the input ends, it prints its memory."""

import json
import os
import sys
import time

# Standard output is only for answers. Output of libraries goes to standard error.
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
    the imports. Memory that is resident before the call is the base of the process."""
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
