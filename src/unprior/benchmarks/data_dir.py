"""The folder that downloaded benchmarks live in, one folder each."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from unprior.errors import UnpriorError, format_option

VARIABLE = "UNPRIOR_DATA"


def data_directory(chosen: Path | None = None) -> Path:
    """The chosen folder, else ``UNPRIOR_DATA``, else a folder in the platform's cache; never inside the package.

    >>> data_directory(Path("here")).name
    'here'
    """
    named = os.environ.get(VARIABLE)
    folder = chosen or (Path(named) if named else platform_cache() / "unprior" / "data")
    folder = folder.expanduser()
    package = Path(__file__).resolve().parents[1]
    if "\0" in str(folder):
        raise UnpriorError(f"{str(folder)!r}: no folder has such a name; choose another by {format_option('data_dir')}")
    if folder.resolve().is_relative_to(package):
        raise UnpriorError(
            f"{folder}: this is inside the package; choose another folder by {format_option('data_dir')} or {VARIABLE}"
        )
    return folder


def platform_cache() -> Path:
    """Where programs of this platform keep what can be had again."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
