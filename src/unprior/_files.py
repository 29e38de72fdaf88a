"""Files that are either whole or not there, and errors that name them."""

from __future__ import annotations

import codecs
import errno
import hashlib
import json
import os
import platform
import re
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import Any

from unprior._locks import fcntl  # None on Windows: leftovers stay there, for nobody can tell whether they are in use
from unprior.errors import UnpriorError, wrong_type

MAX_BYTES = 1 << 28
"""Of a file, or a line, that is read into memory as one piece; whatever is larger is no JSON of ours."""
_SECONDS_OF_A_DAY = 86_400
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
_LEFTOVER = re.compile(r"\..*\.unprior-(?P<host>[0-9a-f]{8})-[a-z0-9_]{8}\.tmp", re.DOTALL)
_tidied: set[Path] = set()


def kind_of_file(mode: int) -> str | None:
    """What a path is in words if it is not a regular file, from the mode that ``stat`` gives.

    >>> kind_of_file(Path(os.devnull).stat().st_mode)
    'a device'
    """
    return None if stat.S_ISREG(mode) else _KINDS.get(stat.S_IFMT(mode), "no regular file")


def as_path(name: str, value: object) -> Path:
    """The path that an argument gives; whatever is no path is refused by the argument's name.

    >>> as_path("out", "run").name
    'run'
    """
    if not isinstance(value, str | os.PathLike):
        raise wrong_type(name, value, "a path")
    return Path(value)


def is_file(path: Path) -> bool:
    """Whether there is a regular file of that name; names that no file can have (too long, or with NUL) are none.

    >>> is_file(Path("x" * 1000))
    False
    """
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def exists(path: Path) -> bool:
    r"""Whether there is anything of that name; see :func:`is_file`.

    >>> exists(Path("a\0b"))
    False
    """
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def parse_json(text: str | bytes | bytearray) -> Any:
    """Parse JSON; whatever is wrong with it, nesting without end included, is a :class:`ValueError`.

    >>> parse_json('{"a": 1}')
    {'a': 1}
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


@contextmanager
def open_to_read(path: Path) -> Iterator[BufferedReader]:
    """Open a file or a pipe for reading; what is missing or unreadable is the user's to mend, so say so plainly."""
    try:
        kind = kind_of_file(path.stat().st_mode)
        if kind not in (None, "a pipe"):  # a device may never end
            raise UnpriorError(f"{path}: this is {kind}, a file is needed")
        stream = path.open("rb")
    except FileNotFoundError:
        raise UnpriorError(f"{path}: no such file; check the path") from None
    except OSError as error:
        raise UnpriorError(f"{path}: cannot be read ({error.strerror or error})") from None
    with stream:
        try:
            yield stream
        except OSError as error:
            raise UnpriorError(f"{path}: cannot be read ({error.strerror or error})") from None


def read_whole(path: Path) -> bytes:
    """The content of a file that is read as one piece."""
    with open_to_read(path) as stream:
        content = stream.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise UnpriorError(f"{path}: larger than {MAX_BYTES >> 20} MB, which no file of this kind is; check the path")
    return content


def read_lines(stream: BufferedReader, path: Path) -> Iterator[tuple[int, bytes]]:
    """Number and content of every line that is not blank; a pipe that never ends a line is refused."""
    number = 0
    while line := stream.readline(MAX_BYTES + 1):
        number += 1
        line = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
        if len(line) > MAX_BYTES:
            raise UnpriorError(
                f"{path}, line {number}: longer than {MAX_BYTES >> 20} MB; JSON lines hold one object per line"
            )
        if line.strip():
            yield number, line


def is_parquet(stream: BufferedReader) -> bool:
    """Look at the first bytes without consuming them, so that a pipe loses nothing."""
    return stream.peek(4)[:4] == b"PAR1"


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary name to write to; it takes the place of ``path`` only when all went well.

    A symbolic link stays, and what it points to is replaced. Devices, pipes and folders are refused. Who removes the
    temporary file leaves ``path`` as it was. A process that is killed leaves its temporary file behind; the next one
    that writes into the folder removes it.
    """
    try:
        target, mode = _target(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        _tidy(target.parent)
        lock, temporary = _temporary(target)
    except (OSError, ValueError) as error:
        raise _not_written(path, error) from None
    try:
        yield temporary
        if not temporary.exists():
            return
        temporary.chmod(mode)
        temporary.replace(target)
    except OSError as error:
        raise _not_written(path, error) from None
    finally:
        if lock is not None:
            os.close(lock)
        temporary.unlink(missing_ok=True)


def check_output_file(path: Path) -> None:
    """Refuse a file that cannot be written, before any work is done for it; nothing is made yet."""
    try:
        target, _ = _target(path)
        _check_writable(target.parent)
    except (OSError, ValueError) as error:
        raise _not_written(path, error) from None


def check_output_folder(folder: Path) -> None:
    """Refuse a folder that no file can be written to, before any work is done for it; nothing is made yet.

    >>> check_output_folder(Path(os.devnull))
    Traceback (most recent call last):
        ...
    unprior.errors.UnpriorError: /dev/null: cannot be written (Not a directory); choose another path
    """
    try:
        _check_writable(folder)
    except (OSError, ValueError) as error:
        raise _not_written(folder, error) from None


def _check_writable(folder: Path) -> None:
    """Look at the folder, or at the first one above it that exists."""
    for place in (folder, *folder.parents):
        try:
            if not stat.S_ISDIR(place.stat().st_mode):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        except FileNotFoundError:
            continue
        if not os.access(place, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return


def _not_written(path: Path, error: OSError | ValueError) -> UnpriorError:
    if isinstance(error, UnpriorError):
        return error
    return UnpriorError(f"{path}: cannot be written ({getattr(error, 'strerror', None) or error}); choose another path")


def refuse_overwriting(out: Path, *inputs: Path) -> None:
    """Refuse an output that would replace one of its inputs."""
    for path in inputs:
        if out.exists() and path.exists() and out.samefile(path):
            raise UnpriorError(f"{out}: this would overwrite its own input; choose another name")


def _target(path: Path) -> tuple[Path, int]:
    """Where a path leads, and the permissions the new file gets: those of the old one, or the usual ones."""
    target = Path(os.path.realpath(path))
    here = path
    for _ in range(40):
        # /dev/stdout may lead to a regular file, but one that somebody else writes to at the same time.
        if os.path.realpath(here.parent).startswith("/proc/"):
            raise _not_replaceable(path, "a stream of this process")
        if not here.is_symlink():
            break
        here = here.parent / here.readlink()
    try:
        found = path.stat().st_mode
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return target, 0o666 & ~mask
    if kind := kind_of_file(found):
        raise _not_replaceable(path, kind)
    return target, stat.S_IMODE(found)


def _not_replaceable(path: Path, kind: str) -> UnpriorError:
    return UnpriorError(f"{path}: cannot be written, because this is {kind}; give the name of a file")


def _temporary(target: Path) -> tuple[int | None, Path]:
    """A new file beside the target, and the handle that locks it: by the lock others know that it is in use."""
    name = target.name.encode("utf-8", "surrogateescape")[:150].decode("utf-8", "ignore")  # names have 255 bytes
    while True:
        handle, made = tempfile.mkstemp(dir=target.parent, prefix=f".{name}.unprior-{_host()}-", suffix=".tmp")
        if fcntl is None:
            os.close(handle)
            return None, Path(made)
        with suppress(OSError):  # a file system without locks: then nobody else can lock, and remove, it either
            fcntl.flock(handle, fcntl.LOCK_EX)
        if os.fstat(handle).st_nlink:  # not removed before it was locked
            return handle, Path(made)
        os.close(handle)


def _tidy(folder: Path) -> None:
    """Remove what killed processes left in a folder; once per process, for some folders hold many files."""
    if fcntl is None or folder in _tidied:
        return
    _tidied.add(folder)
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            found = _LEFTOVER.fullmatch(entry.name)
            if found and entry.is_file(follow_symlinks=False):
                _remove_if_abandoned(Path(entry.path), same_host=found["host"] == _host())


def _remove_if_abandoned(path: Path, *, same_host: bool) -> None:
    with suppress(OSError):
        handle = os.open(path, os.O_RDWR)
        try:
            # Locks do not reach other machines on every file system, so their files are given a day.
            age = time.time() - os.fstat(handle).st_mtime
            if same_host or age > _SECONDS_OF_A_DAY:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
        finally:
            os.close(handle)


def _host() -> str:
    return hashlib.sha256(platform.node().encode()).hexdigest()[:8]
