"""Requests to busy or faulty servers: limited in time and size, retried, and checked."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
import re
import time
import zlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

import httpx

from unprior.engines.openai.exchanges import record
from unprior.engines.openai.images import write_body
from unprior.engines.openai.secrets import Mask
from unprior.errors import UnpriorError, format_option

KEY_VARIABLES = ("UNPRIOR_API_KEY", "OPENAI_API_KEY")
"""Environment variables that may hold the API key, the first one set counts."""
_PASSING = (408, 409, 425, 429)  # besides 5xx: the same request may succeed later
_MAX_MESSAGE = 300
_HIGHEST_PORT = 65535
_EXAMPLE = "http://localhost:8000"
_MAX_OTHER_PROMPTS = 2
_MAX_BYTES = 16 * 2**20  # of one reply; the tokens of a prompt of a million tokens take half of it
_SILENCE = 3.0  # seconds without a reply in which a server can have been started anew
_MAX_OF_A_MESSAGE = 2**16  # of an error's text that is looked at

# Tests put their own clock here.
_sleep = asyncio.sleep
_time_limit = asyncio.timeout

Checked = TypeVar("Checked")


class RefusedError(UnpriorError):
    """The server does not accept the request; trying again would not help."""


class UnreachableError(UnpriorError):
    """The server did not answer although it was asked again and again."""


class BrokenServerError(UnreachableError):
    """The server answered every time that something inside it went wrong."""


class OtherPromptError(UnpriorError):
    """The server read another prompt than the one that was meant."""


class WrongAnswerError(Exception):
    """An answer that is not what was asked for; it is asked for again and never used."""


class WrongPromptError(WrongAnswerError):
    """An answer to another prompt; asked for once more only, because a chat template does not change its mind."""


class TransientError(Exception):
    """A fault that may pass; the server may say how long to wait."""

    def __init__(self, reason: str, wait: float = 0.0) -> None:
        """Keep the reason and the wait in seconds."""
        super().__init__(reason)
        self.wait = wait


class _SilenceError(TransientError):
    """Nobody answers; the server should be left alone for a while."""


class _InnerError(TransientError):
    """The server says that something inside it went wrong."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long to wait, and how often to try again.

    >>> RetryPolicy().delay(3, chance=1.0)
    4.0
    """

    max_attempts: int = 8
    """Tries of one request altogether."""
    first_delay: float = 0.5
    """Longest pause before the second try in seconds; it doubles with every further one."""
    max_delay: float = 30.0
    """No pause of our own is longer."""
    max_wait: float = 600.0
    """No pause that a server asks for (Retry-After) is longer."""
    timeout: float = 300.0
    """Seconds that one request may take altogether, from connecting to the last byte of the answer."""
    cooldown: float = 30.0
    """Seconds that a server which cannot be reached is left alone, where there are others."""

    def delay(self, tries: int, chance: float | None = None) -> float:
        """Seconds to wait after so many tries; drawn by lot, so that many clients do not come back at once."""
        longest = min(self.first_delay * 2.0**tries, self.max_delay)
        return longest * (random.uniform(0.5, 1.0) if chance is None else chance)


class HttpClient:
    """JSON requests to one or several equal servers; what one cannot do, the next is asked for.

    Parameters
    ----------
    base_urls
        Servers with the same model; ``/v1`` at the end may be left out.
    retry_policy
        Timeouts and retries.
    """

    def __init__(self, base_urls: Sequence[str], retry_policy: RetryPolicy, system: str = "") -> None:
        """Check the addresses and take the key from the environment; ``system`` opens every conversation."""
        if not base_urls:
            raise UnpriorError(
                f"a server needs an address, e.g. {format_option('base_urls', [_EXAMPLE], flag='--base-url')}"
            )
        self.base_urls = tuple(_checked_url(url) for url in base_urls)
        self.retry_policy = retry_policy
        self._opening = [{"role": "system", "content": system}] if system else []
        self.requests = 0
        """Requests sent so far, repeated ones included."""
        self.interruptions = 0
        """Connections that failed or broke so far, and long silences: a server may have been started anew since."""
        self._last_reply = time.monotonic()
        self._key = _key_of_environment()
        self.mask = Mask(self._key)
        """Takes the key out of what servers say."""
        self._turns, self._others = itertools.count(), itertools.count()
        self._cools_until = [0.0] * len(self.base_urls)
        self._certificates = httpx.create_ssl_context()  # shared: loading them takes longer than many requests
        self._clients: list[httpx.AsyncClient] = []
        self._free: list[httpx.AsyncClient] = []

    async def close(self) -> None:
        """Give up the connections."""
        for client in self._clients:
            await client.aclose()

    def turn(self) -> int:
        """A server for the next query: all get equally many, those that cool down get none."""
        available = self._available()
        return available[next(self._turns) % len(available)]

    async def get(self, path: str, check: Callable[[Any], Checked], *, server: int, attempts: int) -> Checked:
        """Ask one server for something; ``check`` turns the answer into what is used, or says that it is wrong."""
        return await self._ask("GET", path, None, check, server, attempts, attempts, only=server)

    async def post(
        self,
        path: str,
        body: dict[str, Any],
        check: Callable[[Any], Checked],
        *,
        image: bytes | None = None,
        server: int | None = None,
        only: int | None = None,
        max_wrong: int | None = None,
        attempts: int | None = None,
    ) -> Checked:
        """Send something that may be sent again, and check the answer; so many wrong ones are enough.

        Requests that share an image go to one ``server``, which has then read it already; without, to any. Retries go
        to the next, unless ``only`` one server is meant.
        """
        if "messages" in body:
            body = {**body, "messages": [*self._opening, *body["messages"]]}
        content, attempts = write_body(body, image), attempts or self.retry_policy.max_attempts
        if only is not None:
            server = only
        first = next(self._others) % len(self.base_urls) if server is None else server
        return await self._ask("POST", path, content, check, first, attempts, max_wrong or attempts, only=only)

    async def _ask(
        self,
        method: str,
        path: str,
        body: bytes | None,
        check: Callable[[Any], Checked],
        server: int,
        attempts: int,
        max_wrong: int,
        *,
        only: int | None = None,
    ) -> Checked:
        wrong, other_prompts, refused, inner = 0, 0, set[int](), 0
        last: type[UnpriorError]
        for tries in itertools.count(1):
            available = [only] if only is not None else self._available(refused)
            server = next((other for other in available if other >= server), available[0])
            url = self.base_urls[server] + path
            try:
                return _checked(check, await self._send(method, url, body))
            except TransientError as error:
                reason, wait = str(error), error.wait
                inner += isinstance(error, _InnerError)
                last = BrokenServerError if inner == tries else UnreachableError
                if isinstance(error, _SilenceError):
                    self._cools_until[server] = time.monotonic() + self.retry_policy.cooldown
            except RefusedError:
                refused.add(server)
                if only is not None or len(refused) == len(self.base_urls):
                    raise
                continue  # perhaps only this one does not know the key or the model
            except WrongAnswerError as error:
                reason, wait, last = f"a wrong answer: {error}", 0.0, UnpriorError
                wrong += 1
                if isinstance(error, WrongPromptError):
                    last, other_prompts = OtherPromptError, other_prompts + 1
            if tries >= attempts or wrong >= max_wrong or other_prompts >= _MAX_OTHER_PROMPTS:
                told = self.mask(f"{url}: {reason}")
                raise last(f"{told} (try {tries} of {attempts}); check the server and run again")
            await _sleep(max(self.retry_policy.delay(tries - 1), min(wait, self.retry_policy.max_wait)))
            server += 1
        raise AssertionError("the loop above ends")

    def _open_client(self) -> httpx.AsyncClient:
        """A client for one request at a time; there are as many as the caller has requests in flight.

        A shared one compares all idle connections with each other whenever a request begins or ends (httpcore 1.0),
        which at 64 connections takes several times as long as the request itself.
        """
        client = httpx.AsyncClient(
            headers={"Content-Type": "application/json", "Accept-Encoding": "identity"}
            | ({} if self._key is None else {"Authorization": f"Bearer {self._key}"}),
            # `_time_limit` limits the request as a whole.
            timeout=httpx.Timeout(None, connect=min(10.0, self.retry_policy.timeout)),
            verify=self._certificates,
        )
        self._clients.append(client)
        return client

    def _available(self, refused: Collection[int] = ()) -> list[int]:
        """Servers that do not cool down and have not refused; those that cool down when there are no others."""
        now = time.monotonic()
        willing = [server for server in range(len(self.base_urls)) if server not in refused]
        return [server for server in willing if self._cools_until[server] <= now] or willing

    async def _send(self, method: str, url: str, body: bytes | None) -> Any:
        self.requests += 1
        client = self._free.pop() if self._free else self._open_client()
        try:
            async with _time_limit(self.retry_policy.timeout), client.stream(method, url, content=body) as response:
                content = await _read(response)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            self.interruptions += 1
            raise _SilenceError(f"the connection failed ({type(error).__name__})") from None
        except (httpx.TimeoutException, TimeoutError):
            raise _SilenceError(f"no whole answer within {self.retry_policy.timeout:g} seconds") from None
        except httpx.TransportError as error:
            self.interruptions += 1
            raise TransientError(f"the connection failed ({type(error).__name__})") from None
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            raise TransientError(f"the answer cannot be read ({type(error).__name__})") from None
        finally:
            self._free.append(client)
        now = time.monotonic()
        self.interruptions += now - self._last_reply > _SILENCE
        self._last_reply = now
        status = response.status_code
        if status in _PASSING or status >= 500:
            wait = _asked_to_wait(response.headers.get("Retry-After"))
            raise (_InnerError if status == 500 else TransientError)(f"status {status}", wait)
        if status != 200:
            record(body or b"", content, None)
            message = self.mask(_message(content) or response.reason_phrase)
            if response.is_redirect:
                message = f"it sends requests on to {self.mask(response.headers['Location'])}; give the last address"
            raise RefusedError(f"{self.mask(url)}: status {status}: {message[:_MAX_MESSAGE]}")
        try:
            told = json.loads(content)
        except (ValueError, RecursionError):
            raise TransientError("the answer is not whole or not JSON") from None
        record(body or b"", content, told)
        return told


async def _read(response: httpx.Response) -> bytes:
    """What a reply holds, unpacked; never more than is sensible, whatever the server packed or promised."""
    parts, size = [], 0
    async for part in response.aiter_raw():
        size += len(part)
        if size > _MAX_BYTES:
            raise TransientError(f"the answer is larger than {_MAX_BYTES // 2**20} MB")
        parts.append(part)
    content = parts[0] if len(parts) == 1 else b"".join(parts)
    packed = response.headers.get("Content-Encoding", "identity").strip().lower()
    if packed in {"identity", ""}:
        return content
    if packed not in {"gzip", "x-gzip", "deflate"}:  # nothing was asked for; these can be unpacked within a limit
        raise TransientError("the answer is packed in a way that was not asked for")
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 32)
    try:
        content = unpacker.decompress(content, _MAX_BYTES)
    except zlib.error:
        raise TransientError("the answer cannot be unpacked") from None
    if unpacker.unconsumed_tail:
        raise TransientError(f"the answer is larger than {_MAX_BYTES // 2**20} MB")
    return content


def _checked(check: Callable[[Any], Checked], answer: Any) -> Checked:
    """What a check makes of an answer; one that it cannot make sense of at all is wrong, too."""
    try:
        return check(answer)
    except (WrongAnswerError, UnpriorError):
        raise
    except Exception as error:
        raise WrongAnswerError(f"it is not understood ({type(error).__name__})") from None


def _key_of_environment() -> str | None:
    for name in KEY_VARIABLES:
        key = os.environ.get(name)
        if key and not (key.isascii() and key.isprintable()):
            raise UnpriorError(f"{name} holds characters that no key has, such as a line end; set it again")
        if key:
            return key
    return None


def _checked_url(url: str) -> str:
    """The address without ``/v1``; one that holds a secret would end up in records and messages.

    >>> _checked_url("http://localhost:8000/v1/")
    'http://localhost:8000'
    """
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        parsed = httpx.URL("")
    if parsed.scheme not in {"http", "https"} or not parsed.host or (parsed.port or 0) > _HIGHEST_PORT:
        # Without what may be a password or a key, even where it is not a proper address.
        shown = re.sub(r"^([a-z]+://)?.*@", r"\1***@", re.split(r"[?#]", url)[0], flags=re.IGNORECASE)
        raise UnpriorError(f"{shown!r} is no server; give an address such as {_EXAMPLE}")
    if parsed.userinfo or parsed.query or parsed.fragment:
        raise UnpriorError(
            f"{parsed.host}: leave passwords and keys out of the address; the key is read from {KEY_VARIABLES[0]}"
        )
    return url.rstrip("/").removesuffix("/v1")


def _asked_to_wait(header: str | None) -> float:
    """Seconds of a Retry-After header, which gives a number or a date.

    >>> _asked_to_wait("7"), _asked_to_wait(None), _asked_to_wait("soon")
    (7.0, 0.0, 0.0)
    """
    if not header:
        return 0.0
    if header.isascii() and header.strip().isdigit():
        return float(header)
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    except (ValueError, OverflowError, TypeError, IndexError, OSError):  # dates have many ways to be wrong
        return 0.0


def _message(content: bytes) -> str:
    """What the server says about it, on one line and fit for a terminal.

    >>> _message(b'{"error": {"message": "no such  model"}}')
    'no such model'
    """
    text = content[:_MAX_OF_A_MESSAGE].decode(errors="replace")
    try:
        told = json.loads(text)
        error = told.get("error", told) if isinstance(told, dict) else told
        text = str(error.get("message", error) if isinstance(error, dict) else error)
    except (ValueError, RecursionError):
        pass
    return "".join(sign if sign.isprintable() else "?" for sign in " ".join(text.split()))
