"""Fixed speeds in place of measured ones. Plans are chosen by predicted times, so a recording needs the same speeds each time.
Measurements are kept by name in calibration.json; this script gives every name a fixed value for its kind."""

import fcntl
import json

SPEEDS = (  # beginning of a name, and the value of such names
    ("memory", 1e10),
    ("disk write", 1e9),
    ("spill read", 2e9),
    ("spill write", 1.5e9),
    ("spill mixed", 2e9),
    ("spill core", 1e-10),
    ("spill kernel", 3e-11),
    ("spill", None),  # "... wait" and "... rate" of an op
    ("buffers of", 2 << 20),
    ("layer of", 2e-3),
    ("head of", 1e-3),
    ("link", None),  # "... wait" and "... rate" of an axis
)


def speed(name):
    for begin, value in SPEEDS:
        if name.startswith(begin):
            wait, rate = (1e-5, 5e9) if begin == "link" else (1e-4, 1e9)
            return value if value is not None else wait if " wait," in name else rate
    raise AssertionError(f"a measurement of unknown kind: {name}")


class Calibration:
    """The cache of one workspace; names that were measured once are kept in `store`."""

    def __init__(self, store, workspace):
        self.store, self.file = store, workspace / "cache/megalith/calibration.json"
        self.known = json.loads(store.read_text()) if store.exists() else {}
        self.write()

    def write(self):
        self.file.parent.mkdir(parents=True, exist_ok=True)
        values = {machine: {name: speed(name) for name in names} for machine, names in self.known.items()}
        self.file.write_text(json.dumps(values))

    def fix(self):
        """Gives new measurements their fixed values. Returns True if there were any: then the last command used other speeds."""
        found = {machine: sorted(names) for machine, names in json.loads(self.file.read_text()).items()}
        if all(set(names) <= set(self.known.get(machine, [])) for machine, names in found.items()):
            return False
        self.store.parent.mkdir(parents=True, exist_ok=True)
        with open(self.store.with_suffix(".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            stored = json.loads(self.store.read_text()) if self.store.exists() else {}
            for names in (self.known, found):
                for machine, them in names.items():
                    stored[machine] = sorted(set(stored.get(machine, [])) | set(them))
            new = self.store.with_suffix(".new")
            new.write_text(json.dumps(stored, indent=0))
            new.replace(self.store)
        self.known = stored
        self.write()
        return True
