"""Where a model comes from, and whether its code may run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unprior.errors import UnpriorError, did_you_mean, format_option

DTYPES = ("auto", "float32", "bfloat16", "float16")
BACKENDS = ("auto", "pil", "torchvision")
"""What can prepare images for a model."""


@dataclass(frozen=True)
class Source:
    """Where a model comes from, and whether Python code that lies beside its weights may run.

    Raises an error for code of a hub model without a full commit: what a branch names can change at any time.
    """

    name: str
    revision: str | None = None
    trust_remote_code: bool = False

    def __post_init__(self) -> None:
        """Refuse code that nobody can have read."""
        if self.trust_remote_code and not self.is_folder and not is_commit(self.revision):
            raise UnpriorError(
                f"model {self.name}: {format_option('trust_remote_code', True)} needs the commit that you have read as "
                f"{format_option('revision')}, all 40 digits; or download the model and give its folder"
            )

    @property
    def is_folder(self) -> bool:
        """Whether it is a local folder rather than a hub id."""
        return Path(self.name).is_dir()

    @property
    def options(self) -> dict[str, Any]:
        """What every ``from_pretrained`` is told; without it the library asks on standard input whether to run code."""
        return {"revision": self.revision, "trust_remote_code": self.trust_remote_code}

    def file(self, name: str) -> Path | None:
        """One of the model's files, if it has it."""
        from transformers.utils import cached_file

        found = cached_file(self.name, name, revision=self.revision, _raise_exceptions_for_missing_entries=False)
        return None if found is None else Path(found)


def check_choices(dtype: str, image_backend: str) -> None:
    """Refuse a precision or an image backend that there is not.

    >>> check_choices("float23", "pil")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    unprior.errors.UnpriorError: dtype='float23' (command line: --dtype float23): no such precision (did you...
    """
    choices = (("dtype", dtype, "precision", DTYPES), ("image_backend", image_backend, "backend", BACKENDS))
    for name, value, what, known in choices:
        if value not in known:
            raise UnpriorError(
                f"{format_option(name, value)}: no such {what}{did_you_mean(value, known)}; choose one of "
                f"{', '.join(known)}"
            )


def is_commit(revision: str | None) -> bool:
    """Whether a revision can only ever mean one state of a repository.

    >>> is_commit("main"), is_commit("0" * 40)
    (False, True)
    """
    return revision is not None and len(revision) == 40 and set(revision.lower()) <= set("0123456789abcdef")
