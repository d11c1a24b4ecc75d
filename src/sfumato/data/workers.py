"""Work on the parts of a data set, in several processes where there are several parts."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor
from contextlib import contextmanager
from itertools import chain, islice
from typing import TypeVar

from sfumato.errors import SfumatoError

PART_BYTES = 1 << 24
"""Files are read in parts of about this size. What is found never depends on how many workers read
them, nor, as all sums are exact, on the size."""
WORTH = 4
"""So many parts make a worker worth its start, which takes about as long as reading them."""
_TURNS = 8  # in which each worker does its parts, so that all end at about the same time
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

Part = TypeVar("Part")
Result = TypeVar("Result")


def divided(
    work: Callable[[Sequence[Part]], Result], parts: Sequence[Part], workers: int | None
) -> list[Result]:
    """Do all parts, some of them at a time, and give what was found each time, in any order.

    This process is one of the workers: it begins while others start, and takes what they have not
    begun. None stands for all cores.

    >>> divided(sum, [1, 2, 3], workers=1)
    [6]
    """
    most = len(parts) // WORTH
    count = min(_count(workers), most) if most > 1 else 1
    if count == 1:
        return [work(parts)]
    turns = min(_TURNS * count, len(parts))
    shares = [parts[first::turns] for first in range(turns)]
    with _processes(count - 1, count) as pool:
        waiting = [pool.submit(work, share) for share in shares]
        back = zip(reversed(waiting), reversed(shares), strict=True)
        own = [work(share) for future, share in back if future.cancel()]
        return own + [future.result() for future in waiting if not future.cancelled()]


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
    with _processes(count, count) as pool:
        waiting = deque(pool.submit(work, part) for part in islice(left, 2 * count))
        while waiting:
            yield waiting.popleft().result()
            waiting.extend(pool.submit(work, part) for part in islice(left, 1))


def _count(workers: int | None) -> int:
    """Give the number of processes: as asked, else one for each core that we may use."""
    return _cores() if workers is None else workers


def _cores() -> int:
    from joblib import cpu_count  # which also knows the limits of containers

    return int(cpu_count())


@contextmanager
def _processes(started: int, working: int) -> Iterator[Executor]:
    """Give a pool of processes, which are kept for the next time unless something goes wrong.

    They need no guard in the script that is run. Cores are shared by all that are working.
    """
    from joblib.externals.loky import get_reusable_executor

    threads = str(max(1, _cores() // working))
    own = {name: os.environ.get(name, threads) for name in _THREADS}
    pool = get_reusable_executor(started, env=own)
    try:
        yield pool
    except BaseException as error:
        pool.shutdown(kill_workers=True)  # nobody waits for what is still being done
        if isinstance(error, BrokenExecutor):
            raise SfumatoError(
                "a worker process was ended from outside, perhaps for want of memory: use fewer "
                "(--workers)"
            ) from None
        raise
