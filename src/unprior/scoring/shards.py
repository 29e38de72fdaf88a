"""Work and results of a distributed job, as files in a folder that all its workers reach.

The queue holds what is to be computed, in batches. A worker writes the results of a batch as one Parquet shard, whole
or not at all, under a name made of the batch's keys: whoever is given the same batch again finds it done. The store
takes the shards in; keys are the same everywhere, so it does not matter how many workers there were.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from unprior._files import parse_json, replacing
from unprior._locks import lock_at_once
from unprior.errors import UnpriorError, format_option
from unprior.scoring.plan import Job
from unprior.scoring.store import ScoreStore, StoredResult

_TRIES = ".tries"
_LOCK = "lock"
_MAX_DEATHS = 2
_DEADLY = "the worker crashed on it more than once, perhaps for lack of memory; check the image, or use fewer workers"
_JOB = pa.schema(
    [
        ("key", pa.string()),
        ("text", pa.string()),
        ("labels", pa.list_(pa.string())),
        ("image", pa.string()),
        ("view", pa.string()),
    ]
)
_RESULT = pa.schema([("key", pa.string()), ("value", pa.string()), ("failure", pa.string())])


class BusyError(UnpriorError):
    """Another job is working in the folder."""


class ShardFolder:
    """The files of one job.

    Parameters
    ----------
    folder
        Where they are; made if it is not there.

    >>> import tempfile
    >>> job = Job("k", "Is it red?", ("yes", "no"), Path("a.png"), None)
    >>> with tempfile.TemporaryDirectory() as place, ScoreStore(f"{place}/store.sqlite") as store:
    ...     shards = ShardFolder(Path(place) / "shards")
    ...     with shards.locked():
    ...         shards.write_queue([[job]])
    ...         name = shards.write_shard(shards.read_batch(0), [StoredResult("k", {"scores": [-0.1, -2.4]})])
    ...         shards.merge(store)
    ...     store.get(["k"])["k"].value
    1
    1
    {'scores': [-0.1, -2.4]}
    """

    def __init__(self, folder: Path) -> None:
        """Name the folder."""
        self.folder = folder.absolute()
        # A name of its own: a worker that outlives its job must not take the batches of the next one for its own.
        self._queue = self.folder / f"queue-{secrets.token_hex(8)}.arrow"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other jobs away; the lock goes when the process does, however that ends."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            stream = (self.folder / _LOCK).open("w")
        except OSError as error:
            raise UnpriorError(f"{self.folder}: cannot be written ({error.strerror or error})") from None
        with stream:
            try:
                lock_at_once(stream)
            except OSError as error:
                if not isinstance(error, BlockingIOError):
                    raise UnpriorError(
                        f"{self.folder}: files cannot be locked there ({error.strerror or error}); give "
                        f"{format_option('shards')}, a folder on another file system"
                    ) from None
                raise BusyError(
                    f"{self.folder}: another job is working here; wait for it, or give this one another folder, "
                    f"{format_option('shards')}"
                ) from None
            yield

    def write_queue(self, batches: Iterable[Sequence[Job]]) -> int:
        """Write what is to be computed, batch by batch; returns the number of batches."""
        count = 0
        with replacing(self._queue) as temporary, pa.ipc.new_file(temporary, _JOB) as writer:
            for batch in batches:
                rows = [
                    {
                        "key": job.key,
                        "text": job.text,
                        "labels": job.labels,
                        "image": str(job.image.absolute()),
                        "view": job.view,
                    }
                    for job in batch
                ]
                writer.write_batch(pa.RecordBatch.from_pylist(rows, _JOB))
                count += 1
        return count

    def read_batch(self, index: int) -> list[Job]:
        """Read one batch of the queue, wherever this runs."""
        try:
            with pa.OSFile(str(self._queue)) as stream:
                rows = pa.ipc.open_file(stream).get_batch(index).to_pylist()
        except FileNotFoundError:
            raise UnpriorError(
                f"{self.folder} is not there on one of the machines; give "
                f"{format_option('shards')}, a folder that all of them reach"
            ) from None
        return [Job(row["key"], row["text"], tuple(row["labels"]), Path(row["image"]), row["view"]) for row in rows]

    def shard_name(self, batch: Sequence[Job]) -> str:
        """The file of a batch's results."""
        return hashlib.sha256("".join(job.key for job in batch).encode()).hexdigest()[:32] + ".parquet"

    def has_shard(self, batch: Sequence[Job]) -> bool:
        """Whether somebody did the batch already."""
        return (self.folder / self.shard_name(batch)).exists()

    def compute(self, batch: Sequence[Job], work: Callable[[Sequence[Job]], list[StoredResult]]) -> str:
        """Do a batch, unless that was done already, and write its shard; returns the name of the file.

        A job that kills its worker must not kill all workers for ever. So every try is noted: after one that ended in
        the middle jobs are done alone, and one that was begun twice and never ended counts as failed.
        """
        if self.has_shard(batch):
            return self.shard_name(batch)
        notes = self.folder / (self.shard_name(batch) + _TRIES)
        tried = notes.read_text(encoding="ascii").split() if notes.exists() else []
        with notes.open("a", encoding="ascii") as stream:

            def note(what: str) -> None:
                stream.write(f"{what}\n")
                stream.flush()

            if not tried:
                note("together")
                results = work(batch)
            else:
                results = []
                for job in batch:
                    if tried.count(f"begun:{job.key}") - tried.count(f"ended:{job.key}") >= _MAX_DEATHS:
                        results.append(StoredResult(job.key, failure=_DEADLY))
                        continue
                    note(f"begun:{job.key}")
                    results += work([job])
                    note(f"ended:{job.key}")
        name = self.write_shard(batch, results)
        notes.unlink(missing_ok=True)
        return name

    def write_shard(self, batch: Sequence[Job], results: Iterable[StoredResult]) -> str:
        """Write the results of a batch; returns the name of the file."""
        rows = [
            {
                "key": result.key,
                "value": None if result.value is None else json.dumps(result.value, allow_nan=False),
                "failure": None if result.failure is None else result.failure.encode(errors="replace").decode(),
            }
            for result in results
        ]
        name = self.shard_name(batch)
        with replacing(self.folder / name) as temporary:
            pq.write_table(pa.Table.from_pylist(rows, _RESULT), temporary)
        return name

    def ingest(self, name: str, store: ScoreStore) -> tuple[int, int]:
        """Put the results of a shard into a store; returns how many there are, and how many of them failed."""
        try:
            rows = pq.read_table(self.folder / name, schema=_RESULT).to_pylist()
        except (pa.ArrowException, OSError) as error:
            raise UnpriorError(f"{self.folder / name}: not a shard of results ({error}); move it away") from None
        store.put(
            StoredResult(row["key"], None if row["value"] is None else parse_json(row["value"]), row["failure"])
            for row in rows
        )
        return len(rows), sum(row["failure"] is not None for row in rows)

    def merge_leftovers(self, store: ScoreStore) -> int:
        """Take in what a job left that was stopped, unless there is none or another job is working."""
        if not self.folder.is_dir():
            return 0
        try:
            with self.locked():
                return self.merge(store)
        except BusyError:
            return 0

    def merge(self, store: ScoreStore) -> int:
        """Take in all shards and then remove them; returns their number."""
        names = sorted(path.name for path in self.folder.glob("*.parquet"))
        for name in names:
            self.ingest(name, store)
        for name in names:  # a failure must be tried again by the next job, so it must not find the batch done
            (self.folder / name).unlink(missing_ok=True)
        for left in (*self.folder.glob("queue-*.arrow"), *self.folder.glob(f"*{_TRIES}")):
            left.unlink(missing_ok=True)
        return len(names)
