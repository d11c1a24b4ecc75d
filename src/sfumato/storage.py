"""Files that are whole or absent, whatever happens meanwhile."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from sfumato.errors import SfumatoError


@contextmanager
def reserved(path: Path, size: int = 0) -> Iterator[BinaryIO]:
    """Open a file for writing that appears at `path`, durably, only when the block ends well.

    Room for `size` bytes is taken at once, so that a full disk is noticed before the block runs.
    """
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(descriptor, "wb") as file:
            if size and hasattr(os, "posix_fallocate"):
                os.posix_fallocate(descriptor, 0, size)
            yield file
            file.truncate()
            file.flush()
            os.fsync(descriptor)
        os.chmod(temporary, 0o666 & ~_umask())  # a temporary file is private, this one is not
        os.replace(temporary, path)
        temporary = None
        _sync_folder(path.parent)
    except OSError as error:
        raise SfumatoError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        if temporary:
            Path(temporary).unlink(missing_ok=True)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file at once."""
    with reserved(path) as file:
        file.write(content)


def next_of(path: Path) -> Path:
    """Name the file in which the next content of `path` waits; nobody else may read it."""
    return path.with_name(f".{path.name}.next")


Publish = Callable[[bytes, Callable[[], None]], None]
"""Makes a content a file's, with a word from elsewhere before it can be seen."""


@contextmanager
def slot(path: Path, size: int) -> Iterator[Publish]:
    """Take room for the next content of a file; what the block is given publishes it.

    To publish, the content is made durable under another name that only its owner may read; then
    `agree` is called; then it takes the file's place. If `agree` refuses, or the block ends without
    publishing, nothing is left. After a crash, what `agree` was told of is on disk: under its own
    name, or as the one that waits.
    """
    waiting, agreed = next_of(path), False
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(os.open(waiting, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            if size and hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)

            def publish(content: bytes, agree: Callable[[], None]) -> None:
                nonlocal agreed
                file.write(content)
                file.truncate()
                file.flush()
                os.fsync(file.fileno())
                agree()
                agreed = True
                take_place(path)

            yield publish
    except OSError as error:
        raise SfumatoError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        if not agreed:
            waiting.unlink(missing_ok=True)


def take_place(path: Path) -> None:
    """Let the content that waits take the file's place, for all to see."""
    os.chmod(next_of(path), 0o666 & ~_umask())
    os.replace(next_of(path), path)
    _sync_folder(path.parent)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a file for this process alone, until the block ends or the process does.

    It spares a second run its work. That one payment gives one answer is seen to by the ledger,
    also on a system that cannot lock files.
    """
    try:
        from fcntl import LOCK_EX, LOCK_NB, flock
    except ImportError:
        yield
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path.with_name(f".{path.name}.lock"), "wb") as file:
            try:
                flock(file, LOCK_EX | LOCK_NB)
            except BlockingIOError:
                raise SfumatoError(f"{path} is in use by another run: wait for it") from None
            yield
    except OSError as error:
        raise SfumatoError(f"cannot write {path}: {error.strerror or error}") from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _sync_folder(folder: Path) -> None:
    """Make a rename durable, where the system lets a folder be synced."""
    if hasattr(os, "O_DIRECTORY"):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
