"""Downloads: resumed after a broken connection, checked against published checksums, complete or not there."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from unprior._files import parse_json, replacing
from unprior.benchmarks.entry import Entry
from unprior.benchmarks.schema import Benchmark
from unprior.benchmarks.sources import Listing, RemoteFile, Source, checksum_of, hub_address
from unprior.errors import UnpriorError, format_option

MANIFEST = "download.json"
"""What was downloaded, from which commit, with which checksums; beside the files."""
_ATTEMPTS = 4
_TIMEOUT = 30.0
_PAUSE = 1.0
"""Seconds to wait after the first break; after every further one, longer."""
_BLOCK = 1 << 16
_MAX_BYTES = 1 << 28
"""Of a file whose size is not published (an image), and of a list of files after decompression."""
_RANGE_BEYOND_END = 416


@dataclass(frozen=True, slots=True)
class Fetched:
    """How far a download is."""

    file: str
    number: int
    """Place of the file among all."""
    files: int
    done: int
    """Bytes of the file that are there."""
    size: int | None


Watch = Callable[[Fetched], None]


class _UnreachableError(UnpriorError):
    """There is no connection to a server; another place may do."""


def download(entry: Entry, folder: Path, watch: Watch | None = None) -> list[Listing]:
    """Get all files of a benchmark into a folder; those that are there and whole are not fetched again."""
    if not entry.sources:
        raise UnpriorError(f"{entry.card.name}: there is nothing to download ({entry.card.published})")
    try:
        return _download(entry, folder, watch)
    except _UnreachableError as error:
        raise UnpriorError(f"{error}. {entry.card.name} is published in: {entry.card.published}") from None


def _download(entry: Entry, folder: Path, watch: Watch | None) -> list[Listing]:
    listings = []
    with httpx.Client(timeout=_TIMEOUT, follow_redirects=True, auth=_HubToken()) as client:
        for source in entry.sources:
            listing = _list(source, client, lambda: entry.load(folder))
            if not listing.files:
                raise UnpriorError(
                    f"{listing.origin}: none of the expected files is there; it may have been reorganised"
                )
            for number, file in enumerate(listing.files, start=1):
                fetch(client, file, folder, _counted(watch, file, number, len(listing.files)))
            listings.append(listing)
            _write_manifest(folder, entry.card.name, listings)
    return listings


def _list(source: Source, client: httpx.Client, benchmark: Callable[[], Benchmark]) -> Listing:
    try:
        return source.listing(lambda url: _get_json(client, url), benchmark)
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UnpriorError(f"{source}: the list of files is not as expected ({error!r}); try again later") from None


def fetch(
    client: httpx.Client, file: RemoteFile, folder: Path, report: Callable[[int, int | None], None] | None = None
) -> None:
    """Get one file; a part that an earlier attempt left behind is continued."""
    target = _target(folder, file.path)
    if target.is_file() and file.matches(target):
        return
    part = target.with_name(f"{target.name}.part")
    try:
        part.parent.mkdir(parents=True, exist_ok=True)
        _complete(client, file, part, report or (lambda done, size: None))
        if file.checksum is not None:
            found = checksum_of(part, file.checksum.partition(":")[0])
            if found != file.checksum:
                part.unlink()
                raise UnpriorError(
                    f"{file.url}: the checksum is {found}, but {file.checksum} was published; the download was thrown "
                    f"away, try again, and if that repeats, the file on the server is damaged"
                )
        part.replace(target)
    except OSError as error:
        raise UnpriorError(f"{target}: cannot be written ({error.strerror or error})") from None


def _complete(client: httpx.Client, file: RemoteFile, part: Path, report: Callable[[int, int | None], None]) -> None:
    """Read until the end, starting again behind the last byte whenever the connection breaks."""
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            _read(client, file, part, report)
            return
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise _unreachable(file.url, error) from None
        except (httpx.TooManyRedirects, httpx.DecodingError, httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
            raise _senseless(file.url, error) from None  # it would be the same again
        except httpx.TransportError as error:
            if attempt == _ATTEMPTS:
                kept = part.stat().st_size if part.exists() else 0
                raise UnpriorError(
                    f"{file.url}: the connection broke {attempt} times ({error}); {kept:,} bytes are kept, and the "
                    f"same command goes on from there"
                ) from None
            time.sleep(_PAUSE * attempt)


def _read(client: httpx.Client, file: RemoteFile, part: Path, report: Callable[[int, int | None], None]) -> None:
    have = part.stat().st_size if part.exists() else 0
    if file.size is not None and have > file.size:  # of another version
        part.unlink()
        have = 0
    if have and have == file.size:
        return
    # Compressed transfer would make bytes on the way differ from bytes of the file, and ranges meaningless.
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    with client.stream("GET", file.url, headers=headers) as response:
        if response.status_code == _RANGE_BEYOND_END:
            part.unlink(missing_ok=True)
            raise httpx.ReadError("the part did not fit the file and is fetched anew")
        _check_status(response, file.url)
        continued = response.status_code == httpx.codes.PARTIAL_CONTENT
        done = have if continued else 0
        most = _MAX_BYTES if file.size is None else file.size
        with part.open("ab" if continued else "wb") as stream:
            for block in response.iter_bytes(_BLOCK):
                done += len(block)
                if done > most:
                    break
                stream.write(block)
                report(done, file.size)
    if done > most:
        part.unlink()
        raise UnpriorError(
            f"{file.url}: the file is longer than the {most:,} bytes of the one that was published; the download was "
            f"thrown away, try again, and if that repeats, the file on the server is another one"
        )
    if file.size is not None and done < file.size:
        raise httpx.ReadError(f"{done:,} of {file.size:,} bytes came")


def _get_json(client: httpx.Client, url: str) -> tuple[Any, str | None]:
    content = bytearray()
    try:
        with client.stream("GET", url) as response:
            _check_status(response, url)
            for block in response.iter_bytes(_BLOCK):
                content += block
                if len(content) > _MAX_BYTES:
                    raise UnpriorError(
                        f"{url}: the list of files is longer than {_MAX_BYTES >> 20} MB; try again later"
                    )
            following = response.links.get("next", {}).get("url")
    except (httpx.TooManyRedirects, httpx.DecodingError, httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
        raise _senseless(url, error) from None
    except httpx.TransportError as error:
        raise _unreachable(url, error) from None
    if following is not None and _origin(following) != _origin(url):
        raise UnpriorError(f"{url}: the list of files goes on at {following}, which is another server; try again later")
    try:
        return parse_json(content), following
    except (ValueError, RecursionError):
        raise UnpriorError(f"{url}: the answer is not JSON; a proxy or a login page may stand in between") from None


class _HubToken(httpx.Auth):
    """The user's token for the hub, which datasets with terms of use ask for; no other server is sent it."""

    @cached_property
    def _token(self) -> str | None:
        return hub_token()

    def auth_flow(self, request: httpx.Request) -> Iterator[httpx.Request]:  # type: ignore[override]
        """Add the token to requests to the hub; redirected requests to other servers do not get it either."""
        if _origin(str(request.url)) == _origin(hub_address()) and self._token:
            request.headers["Authorization"] = f"Bearer {self._token}"
        yield request


def hub_token() -> str | None:
    """The token of ``HF_TOKEN``, or of ``hf auth login`` where huggingface_hub is installed."""
    token = os.environ.get("HF_TOKEN", "").strip()
    if not token:
        with suppress(ImportError):
            from huggingface_hub import get_token

            token = get_token() or ""
    return token if token.isascii() and token.isprintable() else None


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc


def _senseless(url: str, error: Exception) -> UnpriorError:
    return UnpriorError(f"{url}: the server's answer makes no sense ({error}); try again later")


def _check_status(response: httpx.Response, url: str) -> None:
    if response.is_success:
        return
    remedies = {
        401: "it wants a login; accept its terms on its page, then log in by `hf auth login`, or set HF_TOKEN",
        403: "access is refused, or too many requests were made; accept its terms on its page, or try again later",
        404: "it is not there; the benchmark may have moved",
        429: "too many requests were made; try again later",
    }
    remedy = remedies.get(response.status_code, "try again later")
    raise UnpriorError(f"{url}: the server answered {response.status_code} {response.reason_phrase}; {remedy}")


def _unreachable(url: str, error: Exception) -> _UnreachableError:
    host = urlsplit(url).netloc
    return _UnreachableError(
        f"{host} cannot be reached ({error}); this machine may be offline. What was downloaded so far is kept. Or get "
        f"the files on another machine and name their folder by {format_option('data_dir')} or UNPRIOR_DATA"
    )


def _target(folder: Path, path: str) -> Path:
    """Where a file goes; links must not lead out of the folder."""
    target = folder / path
    if not target.resolve().is_relative_to(folder.resolve()):
        raise UnpriorError(f"{path}: this name leads out of {folder}; the list of files is not to be trusted")
    return target


def _counted(
    watch: Watch | None, file: RemoteFile, number: int, files: int
) -> Callable[[int, int | None], None] | None:
    if watch is None:
        return None
    return lambda done, size: watch(Fetched(file.path, number, files, done, size))


def _write_manifest(folder: Path, name: str, listings: list[Listing]) -> None:
    record = {"benchmark": name, "sources": [asdict(listing) for listing in listings]}
    with replacing(folder / MANIFEST) as temporary:
        temporary.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read_manifest(folder: Path) -> list[RemoteFile]:
    """The files that were downloaded into a folder; none if it was filled by hand."""
    path = folder / MANIFEST
    if not path.is_file():
        return []
    try:
        record = parse_json(path.read_text(encoding="utf-8"))
        return [RemoteFile(**file) for source in record["sources"] for file in source["files"]]
    except (OSError, ValueError, KeyError, TypeError):
        raise UnpriorError(f"{path}: cannot be read; `unprior data get` writes it again") from None
