"""Files that are whole or absent, whatever happens meanwhile."""

from __future__ import annotations

import glob
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO

from sfumato.errors import SfumatoError


def local(path: str | Path) -> Path:
    """Give a path on this machine. An address is refused: it would pass for folders of that name.

    >>> local(Path("s3://bucket/o.csv"))
    Traceback (most recent call last):
    ...
    sfumato.errors.SfumatoError: s3://…: name a file on this machine; only tables may lie \
elsewhere, at duckdb://, sqlite:// or postgresql://
    """
    scheme = re.match(r"[A-Za-z][A-Za-z0-9+.-]+:(?=/)", str(path))  # paths keep one slash of two
    if scheme:
        raise SfumatoError(
            f"{scheme.group()}//…: name a file on this machine; only tables may lie elsewhere, at "
            "duckdb://, sqlite:// or postgresql://"
        )
    return Path(path)


def writable(path: str | Path, asked: str = "") -> Path:
    """Give a path on this machine where nothing lies that a file could not take the place of."""
    path = local(path)
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise SfumatoError(f"{path}{asked} is a device, a pipe or a socket: name a file")
    return path


@contextmanager
def reserved(path: Path, size: int = 0, private: bool = False) -> Iterator[BinaryIO]:
    """Open a file for writing that appears at `path`, durably, only when the block ends well.

    Room for `size` bytes is taken at once, so that a full disk is noticed before the block runs.
    Nobody but its owner may read a `private` one.
    """
    try:
        writable(path)
        with unfinished(path) as temporary:
            with temporary.open("wb") as file:
                if size and hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(file.fileno(), 0, size)
                yield file
                file.truncate()
                file.flush()
                os.fsync(file.fileno())
            if not private:
                os.chmod(temporary, 0o666 & ~_umask())  # as any file; temporary ones are private
            os.replace(temporary, path)
            _sync_folder(path.parent)
    except OSError as error:
        raise SfumatoError(f"cannot write {path}: {error.strerror or error}") from None


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Give a folder to write into that appears at `path` only when the block ends well."""
    try:
        writable(path)
        with unfinished(path, folder=True) as temporary:
            yield temporary
            temporary.chmod(0o777 & ~_umask())
            os.replace(temporary, path)
            _sync_folder(path.parent)
    except OSError as error:
        raise SfumatoError(f"cannot write {path}: {error.strerror or error}") from None


@contextmanager
def unfinished(path: Path, folder: bool = False) -> Iterator[Path]:
    """Give a new file, or folder, beside `path` that is gone after the block unless it was moved.

    What others have left of theirs, whose process died meanwhile, goes first.
    """
    beginning = f".{path.name}.part-"
    path.parent.mkdir(parents=True, exist_ok=True)
    sweep(path.parent, beginning)
    made, hold = new_held(path.parent, beginning, folder)
    try:
        yield made
    finally:
        remove(made)
        let_go(hold)


Hold = int | None
"""What keeps others from sweeping; nothing where the system cannot lock."""


def new_held(parent: Path, beginning: str, folder: bool = False) -> tuple[Path, Hold]:
    """Make a file or a folder, by a name of its own, that is held until it is let go of.

    The system lets go of it when this process dies, however it dies. Nobody else may read it.
    """
    while True:
        if folder:
            made = Path(tempfile.mkdtemp(dir=parent, prefix=beginning))
        else:
            descriptor, name = tempfile.mkstemp(dir=parent, prefix=beginning)
            os.close(descriptor)
            made = Path(name)
        with suppress(FileNotFoundError):
            hold = _hold(made)
            if made.exists():
                return made, hold
            let_go(hold)  # it was swept before it was held


def let_go(hold: Hold) -> None:
    """Let others sweep."""
    if hold is not None:
        os.close(hold)


def sweep(parent: Path, beginning: str) -> None:
    """Remove files and folders of this beginning that no living process holds."""
    for name in glob.glob(f"{glob.escape(beginning)}*", root_dir=parent):
        with suppress(OSError):  # it is held, or another sweeps it, or it is none of ours
            hold = _hold(parent / name, wait=False)
            try:
                remove(parent / name)
            finally:
                let_go(hold)


def _hold(path: Path, wait: bool = True) -> Hold:
    """Lock a file or a folder; one that another holds is waited for, or refused."""
    if find_spec("fcntl") is None:
        return None
    from fcntl import LOCK_EX, LOCK_NB, flock

    access = os.O_RDONLY if path.is_dir() else os.O_RDWR  # which disks of others ask for
    hold = os.open(path, access | os.O_NOFOLLOW)
    try:
        flock(hold, LOCK_EX if wait else LOCK_EX | LOCK_NB)
    except BlockingIOError:
        let_go(hold)
        raise
    except OSError:
        pass  # a disk that knows no locks
    return hold


def remove(path: Path) -> None:
    """Remove a file, or a folder in which others may be about to open files, if it is there."""
    if path.is_dir() and not path.is_symlink():
        gone = path.with_name(f"{path.name}-")
        os.replace(path, gone)  # whoever knows its name opens nothing in it any more
        shutil.rmtree(gone)
    else:
        path.unlink(missing_ok=True)


def refuse_overwriting(
    outputs: Mapping[str, Path | None],
    inputs: Iterable[Any],
    force: bool,
    folder: Path | None = None,
) -> None:
    """Refuse outputs that cannot be written, or would overwrite an input or one another.

    Outputs are given by what asks for them; existing ones need `force`. The one that may be a
    `folder` is named. Inputs that are no paths cannot be overwritten. Nothing is left behind.
    """
    taken = [(Path(each), "an input") for each in inputs if each and isinstance(each, str | Path)]
    for asked, path in outputs.items():
        if path is None:
            continue
        writable(path, f" ({asked})")
        for other, what in taken:
            if _same(path, other) or other.resolve() in path.resolve().parents:
                raise SfumatoError(f"{path} ({asked}) would overwrite {what}: name another file")
        if path.is_dir() and (path != folder or path.suffix):
            raise SfumatoError(f"{path} ({asked}) is a folder: name a file")
        if path.is_file() and not force:
            raise SfumatoError(f"{path} ({asked}) exists: name another file, or use --force")
        _try_to_write(path)
        taken.append((path, f"what {asked} writes"))


def check_folder(path: Path) -> None:
    """Refuse a folder in which nothing can be written, or that is none. Nothing is left behind."""
    if local(path).exists() and not path.is_dir():
        raise SfumatoError(f"{path} is not a folder: name one for what is paid for")
    _try_to_write(path / "releases")


def _try_to_write(path: Path) -> None:
    """Write a file as large as a byte beside `path`, or where its folder would be made."""
    place = next(folder for folder in path.parents if folder.exists())
    try:
        with unfinished(place / path.name) as file:
            file.write_bytes(b"1")
    except OSError as error:
        raise SfumatoError(f"cannot write {path}: {error.strerror or error}") from None


def _same(one: Path, other: Path) -> bool:
    if one.exists() and other.exists():
        return one.samefile(other)  # also where two names are links to one file
    return one.resolve() == other.resolve()


def write_whole(path: Path, content: bytes, private: bool = False) -> None:
    """Write a file at once."""
    with reserved(path, private=private) as file:
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
    publishing, nothing is left. After a crash, or an interruption meanwhile, what `agree` was told
    of is on disk: under its own name, or as the one that waits.
    """
    waiting, told = next_of(path), False
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(os.open(waiting, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            if size and hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)

            def publish(content: bytes, agree: Callable[[], None]) -> None:
                nonlocal told
                file.write(content)
                file.truncate()
                file.flush()
                os.fsync(file.fileno())
                told = True  # whoever is interrupted from here on cannot know what became of it
                try:
                    agree()
                except SfumatoError:
                    told = False
                    raise
                take_place(path)

            yield publish
    except OSError as error:
        raise SfumatoError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        if not told:
            waiting.unlink(missing_ok=True)


def take_place(path: Path) -> None:
    """Let the content that waits take the file's place, for all to see."""
    os.chmod(next_of(path), 0o666 & ~_umask())
    os.replace(next_of(path), path)
    _sync_folder(path.parent)


@contextmanager
def locked(path: Path, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold a file for this process alone, until the block ends or the process does.

    Whoever comes second waits, and says so. The system lets go of a lock when its process dies,
    however it dies. Folders that are made for the lock go with it, unless something lies there by
    then. A system that cannot lock files has to do without: that one payment gives one answer is
    seen to by the ledger in any case.
    """
    if find_spec("fcntl") is None:
        yield
        return
    lock = path.with_name(f".{path.name}.lock")
    made = [folder for folder in lock.parents if not folder.exists()]
    file = None
    try:
        file = _lock_file(lock, waiting)
        yield
    finally:
        if file is not None:
            lock.unlink(missing_ok=True)
            file.close()
        for folder in made:
            with suppress(OSError):
                folder.rmdir()


def _lock_file(lock: Path, waiting: Callable[[], None]) -> BinaryIO:
    """Open a file that nobody else holds, and hold it until it is closed."""
    from fcntl import LOCK_EX, LOCK_NB, flock

    while True:
        try:
            lock.parent.mkdir(parents=True, exist_ok=True)
            file = open(lock, "wb")  # noqa: SIM115
        except FileNotFoundError:
            continue  # whoever made its folder is just removing it
        except OSError as error:
            raise SfumatoError(f"cannot write {lock}: {error.strerror or error}") from None
        try:
            flock(file, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            waiting()
            flock(file, LOCK_EX)
        # Whoever held it before has removed it: then another file of this name counts.
        if lock.exists() and os.path.samestat(os.fstat(file.fileno()), lock.stat()):
            return file
        file.close()


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
