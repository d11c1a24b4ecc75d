"""One thread for each learner: whole learners run side by side instead."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep numeric libraries to one thread.

    Their threads wait for one another by spinning, so that on a busy machine boosting a few hundred
    rows can take a minute instead of a tenth of a second.
    """
    with threadpool_limits(1):
        yield
