"""Files that are either whole or not there, and errors that name them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

from unprior.errors import UnpriorError


@contextmanager
def open_to_read(path: Path) -> Iterator[BufferedReader]:
    """Open a file for reading; a missing or unreadable file is the user's to mend, so say so plainly."""
    try:
        stream = path.open("rb")
    except FileNotFoundError:
        raise UnpriorError(f"{path}: no such file; check the path") from None
    except IsADirectoryError:
        raise UnpriorError(f"{path}: this is a folder, a file is needed") from None
    except OSError as error:
        raise UnpriorError(f"{path}: cannot be read ({error.strerror or error})") from None
    with stream:
        try:
            yield stream
        except OSError as error:
            raise UnpriorError(f"{path}: cannot be read ({error.strerror or error})") from None


def is_parquet(stream: BufferedReader) -> bool:
    """Look at the first bytes without consuming them, so that a pipe loses nothing."""
    return stream.peek(4)[:4] == b"PAR1"


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary name to write to; it takes the place of ``path`` only when all went well.

    Who removes the temporary file leaves ``path`` as it was.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    except OSError as error:
        raise UnpriorError(f"{path}: cannot be written ({error.strerror or error})") from None
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        if not temporary.exists():
            return
        # mkstemp makes a private file; give it the rights an ordinary new file would have.
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        temporary.replace(path)
    except OSError as error:
        raise UnpriorError(f"{path}: cannot be written ({error.strerror or error})") from None
    finally:
        temporary.unlink(missing_ok=True)
