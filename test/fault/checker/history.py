"""The history of a run: one JSON object on each line, appended by the driver and by the observer.

Times are seconds since 1970 by the clock of the one machine that everything runs on. What takes time has a begin and an end:
it took effect at some moment in between.
"""

import json
import lzma
import os
import threading


class Writer:
    """Appends entries. Each one is a single write, so that writers in several processes do not mix their lines."""

    def __init__(self, path):
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._lock = threading.Lock()

    def write(self, **entry):
        line = (json.dumps(entry, separators=(",", ":")) + "\n").encode()
        with self._lock:
            while line:  # a write to a file is complete unless the disk is full
                line = line[os.write(self._file, line):]


def read(path):
    """Yields the entries of a history, which may be compressed. A last line that was cut off by the end of its writer is left out."""
    with (lzma.open if path.endswith(".xz") else open)(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            if line.endswith("\n"):
                yield json.loads(line)
