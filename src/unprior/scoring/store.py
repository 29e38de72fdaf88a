"""The score store: results are kept as they are made, so that a run can stop at any moment and go on later.

It is one SQLite file in WAL mode, from the standard library. A commit is atomic, so a killed process leaves whole
batches and nothing else; the primary key is an index for free; several processes may write, SQLite queues them; and
readers never wait for writers. Append-only JSONL would need care for a torn last line, an index of its own, and locking
by hand. The price: WAL needs a local disk (its shared memory does not work over NFS or SMB), and while a store is open
``-wal`` and ``-shm`` files lie beside it that belong to it, so copy it when it is closed.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from unprior.errors import UnpriorError

_APPLICATION_ID = 0x756E7072  # "unpr", in the header of the file
_FORMAT = 1
_PATIENCE = 60.0  # seconds to wait for other writers
_KEYS_PER_QUERY = 900  # older SQLite allows 999 parameters
_TABLES = (
    "CREATE TABLE result (key TEXT NOT NULL PRIMARY KEY, value TEXT, failure TEXT)",
    "CREATE TABLE info (name TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL)",
    f"PRAGMA application_id = {_APPLICATION_ID}",
    f"PRAGMA user_version = {_FORMAT}",
)
# Application, format, number of tables and indices: all zero in a new file.
_HEADER = "SELECT *, (SELECT count(*) FROM sqlite_master) FROM pragma_application_id, pragma_user_version"
# A stored success stays; a stored failure gives way to whatever comes later.
_PUT = (
    "INSERT INTO result (key, value, failure) VALUES (?, ?, ?) ON CONFLICT (key) DO UPDATE"
    " SET value = excluded.value, failure = excluded.failure WHERE result.value IS NULL"
)
_SCORED = "scored"
_DAMAGED = "this score store is damaged; move it away and run again, or restore a copy"
_UNREADABLE = "the stored result is damaged; the same command computes it again"
_NOT_A_STORE = "this is not a score store; choose another path, or move the file away"
_NEWER = "this score store was made by a newer version of unprior; upgrade unprior, or choose another path"
_NOT_WRITABLE = "cannot be opened for writing; check the rights of the file and its folder, or choose another path"
_REFUSED = "SQLite refuses; open the score store again, give keys as valid text, move the file away if it is damaged"
_REMEDIES = {
    sqlite3.SQLITE_BUSY: "another process has kept the score store locked; run again when it has finished",
    sqlite3.SQLITE_FULL: "the disk is full; make room and run again, what was stored before is safe",
    sqlite3.SQLITE_NOTADB: _NOT_A_STORE,
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_CANTOPEN: _NOT_WRITABLE,
    sqlite3.SQLITE_READONLY: _NOT_WRITABLE,
    sqlite3.SQLITE_IOERR: "the disk does not read or write as it should; check it (a score store needs a local disk)",
}


@dataclass(frozen=True, slots=True)
class StoredResult:
    """What is known under a key: a value, or the reason why there is none."""

    key: str
    """Names everything the result depends on; made by the caller."""
    value: Any | None = None
    """Anything JSON can hold (tuples come back as lists), ``None`` when it failed."""
    failure: str | None = None
    """The reason, ``None`` when it succeeded."""

    def __post_init__(self) -> None:
        """Either a value or a failure: with both or neither nobody could tell whether it is missing."""
        if (self.value is None) == (self.failure is None):
            raise UnpriorError(f"result {self.key!r}: give either a value or the reason of a failure")


class ScoreStore(AbstractContextManager["ScoreStore"]):
    """Results by key in one file; made if it is not there, shared by any number of threads and processes.

    What ``put`` has returned from survives the death of the process. After a fork the child must open a store of its
    own: SQLite connections do not survive forks, and using one that did is refused.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, ScoreStore(f"{folder}/scores.sqlite") as store:
    ...     store.put([StoredResult("a", [-0.1, -2.5]), StoredResult("b", failure="the image is truncated")])
    ...     store.missing(["c", "b", "a", "c"])
    ...     store.put([StoredResult("b", [-0.7, -0.7])])
    ...     store.get(["b"])["b"].value, store.counts()
    ['c', 'b']
    ([-0.7, -0.7], (2, 0))
    """

    def __init__(self, path: str | Path) -> None:
        """Open the store at ``path``, or make it and its folder."""
        self.path = Path(path)
        self.damaged: set[str] = set()
        """Keys whose stored values are unreadable: they count as missing, and what is put replaces them."""
        self._lock = threading.Lock()
        self._process = os.getpid()
        file = self.path.absolute()  # ":memory:" means something else to SQLite
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            if file.exists() and not (file.is_file() and os.access(file, os.W_OK)):  # SQLite would open it to read
                raise UnpriorError(f"{path}: a file with the right to write is needed, not a folder or a device")
        except OSError as error:
            raise UnpriorError(f"{path}: {_NOT_WRITABLE} ({error.strerror})") from None
        with self._explained():  # transactions are begun by hand; the lock makes it safe to share between threads
            self._connection = sqlite3.connect(file, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
            # Strictly decoded, one damaged value would make SQLite refuse all that are read together with it.
            self._connection.text_factory = lambda content: content.decode("utf-8", "surrogateescape")
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise

    def get(self, keys: Iterable[str]) -> dict[str, StoredResult]:
        """Return what is known of ``keys``, failures included, as of one moment."""
        rows = self._select("SELECT key, value, failure FROM result WHERE key IN", list(dict.fromkeys(keys)))
        return {key: self._result(key, value, failure) for key, value, failure in rows}

    def missing(self, keys: Iterable[str]) -> list[str]:
        """Return the keys without a success, in the order given and each once; failures are to be tried again."""
        wanted = list(dict.fromkeys(keys))
        rows = self._select("SELECT key, value FROM result WHERE value IS NOT NULL AND key IN", wanted)
        done = {key for key, value in rows if self._result(key, value, None).failure is None}
        return [key for key in wanted if key not in done]

    def put(self, results: Iterable[StoredResult]) -> None:
        """Store all results or none; a success that is already there stays, a failure there is replaced."""
        rows = [self._row(result) for result in results]
        unreadable = [(row[0],) for row in rows if row[0] in self.damaged]
        with self._transaction("IMMEDIATE") as connection:
            connection.executemany("DELETE FROM result WHERE key = ?", unreadable)
            connection.executemany(_PUT, rows)

    def discard(self, keys: Iterable[str]) -> None:
        """Forget what is stored under some keys, so that it is computed again."""
        with self._transaction("IMMEDIATE") as connection:
            connection.executemany("DELETE FROM result WHERE key = ?", [(key,) for key in keys])

    def counts(self) -> tuple[int, int]:
        """Return the number of successes and of failures."""
        with self._transaction() as connection:
            successes, failures = connection.execute("SELECT count(value), count(failure) FROM result").fetchone()
        return successes, failures

    def set_info(self, info: Mapping[str, str]) -> None:
        """Note where the results come from (model, versions); other names keep their values."""
        with self._transaction("IMMEDIATE") as connection:
            connection.executemany("REPLACE INTO info (name, value) VALUES (?, ?)", list(info.items()))

    def note_date(self) -> None:
        """Note that results were computed now; a table that is only written again keeps the earlier date."""
        self.set_info({_SCORED: datetime.now(UTC).isoformat(timespec="seconds")})

    @property
    def date(self) -> str | None:
        """When results were computed last, in UTC; stores of version 0.1.0 do not say."""
        return self.info().get(_SCORED)

    def info(self) -> dict[str, str]:
        """Return the notes on where the results come from, by name."""
        with self._transaction() as connection:
            return dict(connection.execute("SELECT name, value FROM info ORDER BY name").fetchall())

    def close(self) -> None:
        """Close the file; doing so twice does no harm."""
        with self._lock:
            self._connection.close()

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self.close()

    def _prepare(self) -> None:
        """Make the tables in an empty file, refuse what is not a score store, and choose how to write."""
        # Begun as a write even to look, for two processes may be making the same file.
        with self._transaction("IMMEDIATE") as connection:
            if connection.execute(_HEADER).fetchone() == (0, 0, 0):
                for statement in _TABLES:
                    connection.execute(statement)
            application, version, _ = connection.execute(_HEADER).fetchone()
            if application != _APPLICATION_ID or version > _FORMAT:
                raise UnpriorError(f"{self.path}: {_NEWER if application == _APPLICATION_ID else _NOT_A_STORE}")
        with self._explained():
            if _switch_to_wal(connection) != "wal":
                raise UnpriorError(f"{self.path}: a score store does not work on this file system; use a local disk")
            # A killed process loses nothing committed; only a power cut may take the last commits, never the file.
            connection.execute("PRAGMA synchronous = NORMAL")
            # Damage is better found now than in the middle of a long run; this takes 0.1 s for 200,000 results.
            if connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
                raise UnpriorError(f"{self.path}: {_DAMAGED}")

    def _select(self, query: str, keys: list[str]) -> list[Any]:
        rows: list[Any] = []
        with self._transaction() as connection:
            for start in range(0, len(keys), _KEYS_PER_QUERY):
                chunk = keys[start : start + _KEYS_PER_QUERY]
                rows += connection.execute(f"{query} ({','.join('?' * len(chunk))})", chunk)
        return rows

    @contextmanager
    def _transaction(self, kind: str = "DEFERRED") -> Iterator[sqlite3.Connection]:
        """All or nothing, seen from one moment; ``IMMEDIATE`` to write, so that writers queue instead of failing."""
        if os.getpid() != self._process:
            raise UnpriorError(f"{self.path}: the score store was opened before a fork; open it again in this process")
        with self._lock, self._explained(), self._connection as connection:  # commits, or rolls back on an error
            connection.execute(f"BEGIN {kind}")
            yield connection

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn what SQLite says into the file and the remedy."""
        try:
            yield
        except (sqlite3.Error, UnicodeEncodeError) as error:
            remedy = _REMEDIES.get(getattr(error, "sqlite_errorcode", 0) & 0xFF, _REFUSED)
            raise UnpriorError(f"{self.path}: {remedy} ({error})") from None

    def _result(self, key: str, value: Any, failure: str | None) -> StoredResult:
        """A row as it was stored; one whose value cannot be read counts as a failure, which is tried again."""
        if value is None and failure is not None:
            return StoredResult(key, failure=failure.encode("utf-8", "backslashreplace").decode())
        try:
            value.encode()  # text that is not UTF-8 has lone surrogates here
            return StoredResult(key, json.loads(value))
        except (ValueError, AttributeError, RecursionError):  # an UnpriorError, too: null is no value
            self.damaged.add(key)
            return StoredResult(key, failure=_UNREADABLE)

    def _row(self, result: StoredResult) -> tuple[str, str | None, str | None]:
        if result.failure is not None:
            # A strange file name brings lone surrogates into a message; that must not stop the run.
            return result.key, None, result.failure.encode("utf-8", "backslashreplace").decode()
        try:  # floats get the shortest digits that give the same float again
            return result.key, json.dumps(result.value, allow_nan=False, separators=(",", ":")), None
        except (ValueError, TypeError, RecursionError) as error:
            what = f"the value of {result.key!r} cannot be stored as JSON; store a failure instead"
            raise UnpriorError(f"{self.path}: {what} ({error})") from None


class SeenKeys(AbstractContextManager["SeenKeys"]):
    """Keys that were seen; they are kept in a temporary file, so that memory does not grow with them.

    >>> with SeenKeys() as seen:
    ...     seen.add(["a", "b", "a"]), seen.add(["c", "b"])
    (['a', 'b'], ['c'])
    """

    def __init__(self) -> None:
        """Begin with none."""
        self._connection = sqlite3.connect("", isolation_level=None)  # a file without a name, gone when closed
        self._connection.execute("CREATE TABLE seen (key TEXT NOT NULL PRIMARY KEY) WITHOUT ROWID")

    def add(self, keys: Iterable[str]) -> list[str]:
        """Add keys and return those that were not there, each once."""
        self._connection.execute("BEGIN")
        insert = self._connection.cursor()
        new = [key for key in keys if insert.execute("INSERT OR IGNORE INTO seen VALUES (?)", (key,)).rowcount]
        self._connection.execute("COMMIT")
        return new

    def __exit__(self, *_: object) -> None:
        """Forget all."""
        self._connection.close()


def _switch_to_wal(connection: sqlite3.Connection) -> str:
    """Unlike other statements this one does not wait for a lock by itself: others may be opening the new file too."""
    give_up = time.monotonic() + _PATIENCE
    while True:
        try:
            return str(connection.execute("PRAGMA journal_mode = WAL").fetchone()[0])
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > give_up:
                raise
        time.sleep(0.01)
