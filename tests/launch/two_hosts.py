"""Two hosts on this machine: network namespaces that are connected by a cable, with different host names. Needs root."""

import contextlib
import itertools
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import threading


class NoHosts(Exception):
    """This machine cannot create network namespaces."""


def check_rights():
    if os.geteuid() != 0:
        raise NoHosts("network namespaces need root")
    for program in ("ip", "unshare"):
        if not shutil.which(program):
            raise NoHosts(f"no {program} (Debian: apt install iproute2 util-linux)")


def ip(*words):
    subprocess.run(["ip", *map(str, words)], check=True, capture_output=True)


# mpirun calls this instead of ssh. It passes HOST COMMAND to the test. If it started the process itself, the process
# would be a child of the supervisor, as no process on another host is.
AGENT = """#!{python}
import socket, sys
with socket.socket(socket.AF_UNIX) as line:
    line.connect("{door}")
    line.sendall("\\0".join(sys.argv[1:]).encode())
    line.shutdown(socket.SHUT_WR)
    line.recv(1)
"""


class Hosts:
    """Hosts a and b, connected by a cable. Each host has its own version of the folders in `private`. The test sees them as
    FOLDER-a and FOLDER-b."""

    numbers = itertools.count()  # several pairs may exist at once

    def __init__(self, space, private=()):
        number = next(self.numbers)
        self.private = [space / folder for folder in private]
        for folder in self.private:
            folder.mkdir()
            for host in "ab":
                folder.with_name(f"{folder.name}-{host}").mkdir()
        self.spaces = {host: f"megalith-{os.getpid()}-{number}-{host}" for host in "ab"}
        self.addresses = {"a": "10.201.77.1", "b": "10.201.77.2"}
        self.started = []
        self.door = socket.socket(socket.AF_UNIX)
        self.door.bind(str(space / "door"))
        self.door.listen()
        threading.Thread(target=self.serve, daemon=True).start()
        self.agent = space / "agent"
        self.agent.write_text(AGENT.format(python=sys.executable, door=space / "door"))
        self.agent.chmod(0o755)

    def serve(self):
        with contextlib.suppress(OSError):  # closed at the end
            while True:
                line, _ = self.door.accept()
                with line:
                    words = b"".join(iter(lambda: line.recv(65536), b"")).decode().split("\0")
                    command = [*self.on(words[0]), "sh", "-c", " ".join(words[1:])]
                    self.started.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, cwd="/"))

    def on(self, host):
        """Words before a command that make it run on a host."""
        words = ["ip", "netns", "exec", self.spaces[host], "unshare", "--uts", "--mount", "sh", "-c"]
        mounts = "".join(f"mount --bind {folder}-{host} {folder} && " for folder in self.private)
        return [*words, f'hostname {host}; {mounts} exec "$0" "$@"']

    def __enter__(self):
        try:
            for name in self.spaces.values():
                ip("netns", "add", name)
                ip("-n", name, "link", "set", "lo", "up")
                files = pathlib.Path("/etc/netns") / name
                files.mkdir(parents=True)
                (files / "hosts").write_text(
                    "127.0.0.1 localhost\n" + "".join(f"{a} {h}\n" for h, a in self.addresses.items())
                )
            a, b = self.spaces.values()
            ip("link", "add", "cable", "netns", a, "type", "veth", "peer", "name", "cable", "netns", b)
            for host, name in self.spaces.items():
                ip("-n", name, "address", "add", f"{self.addresses[host]}/24", "dev", "cable")
                ip("-n", name, "link", "set", "cable", "up")
        except subprocess.CalledProcessError as error:
            self.__exit__()
            raise NoHosts(f"no network namespaces here: {error.stderr.decode().strip()}") from error
        return self

    def __exit__(self, *_):
        self.door.close()
        for process in self.started:
            process.wait(60)
        for name in self.spaces.values():
            subprocess.run(["ip", "netns", "delete", name], capture_output=True)
            shutil.rmtree(f"/etc/netns/{name}", ignore_errors=True)

    def pids(self, host):
        done = subprocess.run(["ip", "netns", "pids", self.spaces[host]], capture_output=True, text=True, check=True)
        return [int(word) for word in done.stdout.split()]

    def cut(self):
        ip("-n", self.spaces["a"], "link", "set", "cable", "down")

    def join(self):
        ip("-n", self.spaces["a"], "link", "set", "cable", "up")
