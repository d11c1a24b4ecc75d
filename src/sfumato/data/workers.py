"""Work on the parts of a data set, in several processes where there are several parts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from itertools import chain, islice
from threading import Thread
from time import sleep
from typing import Any, TypeVar

from sfumato.errors import SfumatoError

PART_BYTES = 1 << 24
"""Files are read in parts of about this size. What is found never depends on how many workers read
them, nor, as all sums are exact, on the size."""
WORTH = 4
"""So many parts make a worker worth its start, which takes about as long as reading them."""

Part = TypeVar("Part")
Result = TypeVar("Result")


def divided(
    work: Callable[[Sequence[Part]], Result], parts: Sequence[Part], workers: int | None
) -> list[Result]:
    """Let each worker do all of its parts, every nth of them, and give what each of them found.

    What the work needs besides is sent once to each worker. None stands for all cores.

    >>> divided(sum, [1, 2, 3], workers=1)
    [6]
    """
    most = len(parts) // WORTH
    count = min(_count(workers), most) if most > 1 else 1
    if count == 1:
        return [work(parts)]
    return list(_in_processes(work, [parts[first::count] for first in range(count)], count))


def in_order(
    work: Callable[[Part], Result], parts: Iterable[Part], workers: int | None
) -> Iterator[Result]:
    """Do parts in any order and give the results in theirs, a few at a time: memory is bounded."""
    left = iter(parts)
    first = list(islice(left, 2 * WORTH))
    count = _count(workers) if len(first) == 2 * WORTH else 1
    left = chain(first, left)
    if count == 1:
        yield from map(work, left)
        return
    while some := list(islice(left, 2 * count)):
        yield from _in_processes(work, some, count)


def _count(workers: int | None) -> int:
    """Give the number of processes: as asked, else one for each core that we may use."""
    if workers is not None:
        return workers
    from joblib import cpu_count  # which also knows the limits of containers

    return int(cpu_count())


def _in_processes(
    work: Callable[[Part], Result], parts: Sequence[Part], workers: int
) -> Iterator[Result]:
    from joblib import delayed

    # No argument goes through files.
    pool = pool_of(workers, max_nbytes=None, batch_size=1)
    try:
        yield from pool(delayed(work)(part) for part in parts)
    except BrokenExecutor:
        raise SfumatoError(
            "a worker process was ended from outside, perhaps for want of memory: use fewer "
            "(--workers)"
        ) from None


def pool_of(workers: int, **settings: Any) -> Any:
    """Give a pool of processes, which end when this one does, however it ends.

    They are kept for the next time, and need no guard in the script that is run.
    """
    from joblib import Parallel

    return Parallel(
        workers, backend="loky", return_as="generator",
        initializer=_end_with, initargs=(os.getpid(),), **settings,
    )  # fmt: skip


def _end_with(parent: int) -> None:
    """Let this process, a worker, end with its parent, at work or idle."""
    Thread(target=_end_after, args=(parent,), daemon=True).start()


def _end_after(parent: int) -> None:
    # Nobody tells: a signal of Linux (PDEATHSIG) would come when the thread ends that began the
    # worker, which may be long before its process. On Windows the worker's pipe breaks.
    while os.getppid() == parent:
        sleep(0.2)
    os._exit(1)
