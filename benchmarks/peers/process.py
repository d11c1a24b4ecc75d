"""A script run from outside: how long it took, how much memory, and whether it ended."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

from peers.environment import last_line


def watched(command: list[str | Path], log: Path, minutes: float) -> dict[str, Any]:
    """Run a command for at most so many minutes, with its output in a file.

    `state` is "done", "failed" or "not finished". Memory is the peak of its largest process,
    processor time that of all that it has waited for.
    """
    begun = time.perf_counter()
    with log.open("w") as output:
        process = subprocess.Popen(
            [str(part) for part in command],
            stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    late = threading.Event()

    def stop() -> None:
        late.set()
        os.killpg(process.pid, signal.SIGKILL)

    timer = threading.Timer(60 * minutes, stop)
    timer.start()
    _, status, used = os.wait4(process.pid, 0)
    timer.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    outcome: dict[str, Any] = {
        "state": "done" if process.returncode == 0 else "failed",
        "seconds": round(time.perf_counter() - begun, 1),
        "processor_seconds": round(used.ru_utime + used.ru_stime, 1),
        "peak_megabytes": round(used.ru_maxrss / 1024),
    }
    if late.is_set():
        outcome |= {"state": "not finished", "minutes": minutes}
    elif process.returncode:
        outcome["error"] = last_line(log.read_text())
    return outcome
