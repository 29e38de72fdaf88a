"""What stands before every route: who calls, by which name, from which page, and an id for the request."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import socket
from collections.abc import Iterable

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from unprior.serving.errors import RequestError
from unprior.serving.settings import ServeSettings

OPEN_ROUTES = ("/health",)
PAGE_ROUTES = ("/", "/assets/", "/examples/")
"""What a browser asks for by itself; it cannot send a Bearer key, and asks a person for a password instead."""
_SECURITY = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
}


class Guard:
    """Refuses requests that the routes should not see, and marks every reply with an id of its own."""

    def __init__(self, app: ASGIApp, settings: ServeSettings) -> None:
        """Stand before ``app``."""
        self._app, self._max_body = app, settings.max_body
        self._keys = [_digest(key) for key in settings.keys]
        self._any_host = "*" in settings.allowed_hosts
        self._hosts = {name.casefold() for name in (*_own_names(settings.host), *settings.allowed_hosts)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check, then pass on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = secrets.token_hex(8)
        scope.setdefault("state", {})["request_id"] = request_id

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["x-request-id"] = request_id
                for name, value in _SECURITY.items():
                    headers[name] = value
            await send(message)

        try:
            scope["state"]["caller"] = self._check(Headers(scope=scope), scope["method"], scope["path"])
        except RequestError as error:
            reply = JSONResponse(error.body(), error.status, headers=error.headers)
            if error.status == 401 and (scope["path"] == "/" or scope["path"].startswith(PAGE_ROUTES[1:])):
                reply.headers.append("WWW-Authenticate", 'Basic realm="unprior", charset="UTF-8"')
            await reply(scope, receive, marked)
            return
        await self._app(scope, receive, marked)

    def _check(self, headers: Headers, method: str, path: str) -> str:
        """Who calls: a digest of the key, empty where none is needed. What may not pass is refused."""
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not (self._any_host or _name(hosts[0]) in self._hosts):
            told = "this server is not called by that name; start it with --allowed-host NAME"
            raise RequestError(400, told, code="wrong_host")
        origin = headers.get("origin")
        if (origin is not None and origin.partition("://")[2].casefold() != hosts[0].casefold()) or (
            headers.get("sec-fetch-site", "none") not in {"none", "same-origin"}
            and not _follows_link(headers, method, path)
        ):
            raise RequestError(403, "pages of other origins may not use this server", code="wrong_origin")
        if "transfer-encoding" in headers and "content-length" in headers:
            told = "give either Content-Length or Transfer-Encoding: others read such a request differently"
            raise RequestError(400, told, code="two_lengths", headers={"Connection": "close"})
        size = headers.get("content-length", "0")
        if size.isdigit() and int(size) > self._max_body:
            told = f"the body has more than {self._max_body:,} bytes; send a smaller image"
            raise RequestError(413, told, code="body_too_large", headers={"Connection": "close"})
        if not self._keys or path in OPEN_ROUTES:
            return ""
        given = _digest(_given_key(headers.get("authorization", "")))
        matches = [hmac.compare_digest(given, key) for key in self._keys]  # all of them: the time tells nothing
        if not any(matches):
            told = "give a key of this server as header Authorization: Bearer …"
            raise RequestError(401, told, code="invalid_api_key", headers={"WWW-Authenticate": "Bearer"})
        return given


def _follows_link(headers: Headers, method: str, path: str) -> bool:
    """Whether a person came to the page by a link elsewhere, which shows that page nothing."""
    kind = (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest"))
    return kind == ("navigate", "document") and (method, path) == ("GET", "/")


def _given_key(header: str) -> str:
    """The key in a header ``Authorization``: a bearer's, or the password of any user.

    >>> _given_key("Bearer abc"), _given_key("Basic bWU6YWJj"), _given_key("Digest abc")
    ('abc', 'abc', '')
    """
    kind, _, given = header.partition(" ")
    if kind.casefold() == "bearer":
        return given.strip()
    if kind.casefold() != "basic":
        return ""
    try:
        return base64.b64decode(given.strip(), validate=True).decode().partition(":")[2]
    except (binascii.Error, ValueError):
        return ""


def _digest(key: str) -> str:
    """What a key is compared and remembered by."""
    return hashlib.sha256(key.encode()).hexdigest()


def _own_names(host: str) -> Iterable[str]:
    yield from ("localhost", "127.0.0.1", "[::1]")
    if host not in {"0.0.0.0", "::"}:
        yield f"[{host}]" if ":" in host else host
    else:
        yield socket.gethostname()


def _name(host: str) -> str:
    """A host without its port.

    >>> _name("localhost:8077"), _name("[::1]:8077"), _name("[::1]")
    ('localhost', '[::1]', '[::1]')
    """
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdigit() else host).casefold()
