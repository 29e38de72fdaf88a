"""Calibrators as folders with a card, here or on the Hugging Face hub."""

from __future__ import annotations

import os
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

from unprior._files import as_path, check_output_file, check_output_folder, exists, read_whole, replacing
from unprior._version import __version__
from unprior.calibration.state import FittedState
from unprior.errors import UnpriorError, format_option, require_type
from unprior.tables.model import Table

if TYPE_CHECKING:
    from huggingface_hub import HfApi

FILE = "calibrator.json"
CARD = "README.md"
_MARK, _FRONT_BYTES = b"library_name: unprior", 1000
"""What tells a card from other files of its name, and where."""


class HasChanges(Protocol):
    """What a card tells of an evaluation."""

    @property
    def changes_table(self) -> Table:
        """Changes with their intervals, repairs and harms."""


def _tables(results: HasChanges | None) -> list[Table]:
    return [] if results is None else [results.changes_table]


class Pretrained(ABC):
    """Moving a fitted calibrator with its card: into a folder, to the hub, and back."""

    @property
    @abstractmethod
    def state_(self) -> FittedState:
        """All that was fitted."""

    @classmethod
    @abstractmethod
    def load(cls, path: str | Path) -> Self:
        """Read a calibrator file."""

    def save_pretrained(self, folder: str | Path, results: HasChanges | None = None) -> None:
        """Write a folder: the calibrator file, and its card (``README.md``).

        Parameters
        ----------
        folder
            Where both go; a calibrator and a card that are there are replaced, other files of these names are refused.
        results
            An evaluation on rows that had no part in fitting, see :func:`unprior.evaluate`; without it the card says
            that repairs and harms on such rows are not known.
        """
        save_folder(self.state_, as_path("folder", folder), _tables(results))

    @classmethod
    def from_pretrained(
        cls,
        place: str | Path,
        revision: str | None = None,
        *,
        token: str | bool | None = None,
        cache_dir: str | Path | None = None,
        local_files_only: bool = False,
    ) -> Self:
        """Read a calibrator from a folder of :meth:`save_pretrained`, a file, or a repository of the hub.

        Whether it fits a model is compared where it is used: ``ask``, ``apply`` and ``serve`` refuse a calibrator that
        was fitted on scores of another model, or on scores made in another way; see :meth:`differences`.

        Parameters
        ----------
        place
            A folder, a file, or the name of a repository, ``owner/name``; what is there as a file comes first.
        revision
            Branch, tag or commit of the repository.
        token, cache_dir, local_files_only
            As huggingface_hub takes them.

        >>> import tempfile
        >>> from unprior import SelectivePriorCalibrator, synthesize
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     SelectivePriorCalibrator().fit(synthesize(seed=0)).save_pretrained(folder)
        ...     SelectivePriorCalibrator.from_pretrained(folder).candidate_counts_
        (2, 4)
        """
        as_path("place", place)
        options = {"token": token, "cache_dir": cache_dir, "local_files_only": local_files_only}
        return cls.load(find_file(place, revision, **options))

    def push_to_hub(
        self,
        repo_id: str,
        results: HasChanges | None = None,
        *,
        revision: str | None = None,
        private: bool | None = None,
        token: str | bool | None = None,
        commit_message: str = "Upload calibrator",
        create_pr: bool = False,
    ) -> str:
        """Write the calibrator and its card into a repository of the hub, made if it is not there.

        Parameters
        ----------
        repo_id
            The repository, ``owner/name``.
        results
            As in :meth:`save_pretrained`.
        revision
            A branch, made if it is not there; by default the main one.
        private, token, commit_message, create_pr
            As huggingface_hub takes them.

        Returns
        -------
        str
            The address of the commit, or of the pull request.
        """
        require_type("repo_id", repo_id, str, "the name of a repository, owner/name")
        return push_folder(
            self.state_, repo_id, _tables(results), revision=revision, private=private, token=token,
            commit_message=commit_message, create_pr=create_pr,
        )  # fmt: skip


def check_folder(folder: Path) -> None:
    """Refuse a folder that cannot be written to, or that has other files of the names that are written."""
    from unprior.calibration.storage import load_state

    check_output_folder(folder)
    for each in (FILE, CARD):
        check_output_file(folder / each)
    if exists(folder / CARD) and _MARK not in read_whole(folder / CARD)[:_FRONT_BYTES]:
        raise UnpriorError(
            f"{folder / CARD}: this is no card of a calibrator, and would be replaced; choose another folder"
        )
    if exists(folder / FILE):
        try:
            load_state(folder / FILE)
        except UnpriorError:
            raise UnpriorError(
                f"{folder / FILE}: this is no calibrator that can be read, and would be replaced; choose another folder"
            ) from None


def save_folder(
    state: FittedState, folder: Path, results: Sequence[Table] = (), *, name: str | None = None, about: str = ""
) -> None:
    """Write a calibrator and its card into a folder."""
    from unprior.calibration.card import calibration_card
    from unprior.calibration.storage import save_state

    check_folder(folder)
    save_state(state, folder / FILE)
    content = (folder / FILE).read_bytes()
    text = calibration_card(state, results, name=name or folder.name, about=about, content=content)
    with replacing(folder / CARD) as temporary:
        temporary.write_text(text, encoding="utf-8")


def find_file(place: str | os.PathLike[str], revision: str | None = None, **options: Any) -> Path:
    """The file of a calibrator: the path itself, the one in a folder, or one that is fetched from the hub.

    >>> find_file("calibrator.json").name
    'calibrator.json'
    """
    from unprior.calibration.card import HUB_NAME

    path = Path(place)
    if not exists(path) and path.suffix != ".json" and HUB_NAME.fullmatch(path.as_posix()):
        return _fetch(path.as_posix(), revision, options)
    if revision is not None:
        raise UnpriorError(
            f"{format_option('revision', revision)} is for repositories of the hub (owner/name), {path} is none"
        )
    if exists(path) and path.is_dir():
        if not exists(path / FILE):
            raise UnpriorError(f"{path}: no {FILE} in this folder; `unprior fit SCORES --out {path}/` makes one")
        return path / FILE
    return path


def push_folder(
    state: FittedState,
    repo_id: str,
    results: Sequence[Table] = (),
    *,
    revision: str | None = None,
    private: bool | None = None,
    token: str | bool | None = None,
    commit_message: str = "Upload calibrator",
    create_pr: bool = False,
) -> str:
    """Write a calibrator and its card into a repository of the hub; gives the address of the commit."""
    from unprior.calibration.card import HUB_NAME

    if HUB_NAME.fullmatch(repo_id) is None:
        raise UnpriorError(f"{repo_id}: no repository of the hub has such a name; write owner/name")
    api = _hub(token)
    with tempfile.TemporaryDirectory() as temporary, _explained(repo_id, revision, "cannot be written to"):
        save_folder(state, Path(temporary), results, name=repo_id)
        api.create_repo(repo_id, private=private, exist_ok=True)
        if revision is not None and not create_pr:
            api.create_branch(repo_id, branch=revision, exist_ok=True)
        commit = api.upload_folder(
            repo_id=repo_id, folder_path=temporary, revision=revision, commit_message=commit_message,
            create_pr=create_pr, allow_patterns=[FILE, CARD],
        )  # fmt: skip
    return str(commit.pr_url or commit.commit_url)


def _fetch(repo_id: str, revision: str | None, options: dict[str, Any]) -> Path:
    api = _hub(options.pop("token", None))
    with _explained(repo_id, revision, "no such file or folder here, and not to be had from the hub"):
        return Path(api.hf_hub_download(repo_id, FILE, revision=revision, **options))


def _hub(token: str | bool | None) -> HfApi:
    try:
        from huggingface_hub import HfApi
    except ImportError:
        raise UnpriorError(
            "calibrators on the hub need huggingface_hub, which is not installed: pip install huggingface_hub"
        ) from None
    return HfApi(
        endpoint=os.environ.get("HF_ENDPOINT") or None, token=token, library_name="unprior", library_version=__version__
    )


@contextmanager
def _explained(repo_id: str, revision: str | None, told: str) -> Iterator[None]:
    """Errors of the hub in our words; it raises many kinds, those of the network included."""
    from huggingface_hub import errors

    place = repo_id if revision is None else f"{repo_id} at {revision}"
    try:
        yield
    except UnpriorError:
        raise
    except errors.RepositoryNotFoundError:
        reason = "no such repository, or a private one: log in with `hf auth login`, or set HF_TOKEN"
    except errors.RevisionNotFoundError:
        reason = "the repository has no such revision"
    except errors.LocalEntryNotFoundError:
        reason = "the hub cannot be reached, and no copy is in the cache"
    except errors.EntryNotFoundError:
        reason = f"the repository has no {FILE}, so it holds no calibrator"
    except errors.LocalTokenNotFoundError:
        reason = "log in with `hf auth login`, or set HF_TOKEN"
    except Exception as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
    else:
        return
    raise UnpriorError(f"{place}: {told} ({reason})")
