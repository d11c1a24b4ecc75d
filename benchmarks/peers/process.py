"""A script run from outside: how long it took, how much memory, and whether it ended."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

from peers.environment import last_line

_PATIENCE = 6
"""A machine may be shared, so wall time is let run to this many times the limit."""


def watched(command: list[str | Path], log: Path, minutes: float) -> dict[str, Any]:
    """Run a command for at most so many minutes of processor time, with its output in a file.

    `state` is "done", "failed" or "not finished". Memory is the peak of its largest process,
    processor time that of all that it has waited for.
    """
    begun, limit = time.perf_counter(), round(60 * minutes)
    with log.open("w") as output:
        process = subprocess.Popen(
            [str(part) for part in command],
            stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 60)),
        )  # fmt: skip
    late = threading.Event()

    def stop() -> None:
        late.set()
        os.killpg(process.pid, signal.SIGKILL)

    timer = threading.Timer(60 * minutes * _PATIENCE, stop)
    timer.start()
    try:
        _, status, used = os.wait4(process.pid, 0)
    except BaseException:  # we are stopped ourselves
        stop()
        raise
    finally:
        timer.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    outcome: dict[str, Any] = {
        "state": "failed" if process.returncode else "done",
        "seconds": round(time.perf_counter() - begun, 1),
        "processor_seconds": round(used.ru_utime + used.ru_stime, 1),
        "peak_megabytes": round(used.ru_maxrss / 1024),
    }
    if process.returncode == 0:
        return outcome
    if late.is_set() or process.returncode == -signal.SIGXCPU:
        outcome |= {"state": "not finished", "minutes": minutes}
    else:
        said = last_line(log.read_text())
        outcome["error"] = f"exit code {process.returncode}: {said}"
    return outcome
