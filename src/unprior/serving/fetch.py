"""Images at addresses: fetched from hosts that were allowed by name, and from nowhere else.

An address is read strictly and must have an allowed beginning; nothing is looked up or connected to before that. The
name is resolved once. Should one of its addresses lead into a private network, none is asked; otherwise the connection
goes to the very address that was checked, under the name's own certificate.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

import httpx

from unprior._version import __version__
from unprior.errors import UnpriorError
from unprior.serving.errors import RequestError, refuse

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Addresses of a name, as texts."""
_IP = ipaddress.IPv4Address | ipaddress.IPv6Address
_LONGEST = 2_048
_PORTS = {"https": 443, "http": 80}
_HIGHEST_PORT = 65535
_NAME = re.compile(r"(?=.{1,253}\Z)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9])?\.)*[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?")
_ORIGIN = re.compile(
    r"(?P<scheme>https?)://(?P<host>[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::(?P<port>[1-9][0-9]{0,4}))?",
    re.IGNORECASE | re.ASCII,
)
_TARGET = re.compile(r"(?P<path>(?:/[\w.~!$&'()*+,;=:@%-]*)*)(?:\?[\w.~!$&'()*+,;=:@%/?-]*)?", re.ASCII)
_DOTS = re.compile(r"/(?:\.|%2e){1,2}(?:/|\Z)", re.IGNORECASE)
# Python's own list of private networks differs between its versions.
_INNER = tuple(
    ipaddress.ip_network(network)
    for network in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
        "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
        "224.0.0.0/3", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
    )
)  # fmt: skip
_GLOBAL, _NAT64 = ipaddress.IPv6Network("2000::/3"), ipaddress.IPv6Network("64:ff9b::/96")


@dataclass(frozen=True, slots=True)
class Origin:
    """Where images may come from: scheme, host and port."""

    scheme: str
    host: str
    port: int

    @classmethod
    def from_option(cls, text: str) -> Origin:
        """Read a host of ``--image-host``; a bare name means https.

        >>> Origin.from_option("Images.example.com")
        Origin(scheme='https', host='images.example.com', port=443)
        """
        found = _ORIGIN.fullmatch(text if "://" in text else f"https://{text}")
        origin = None if found is None else cls.from_match(found)
        if origin is None or not (origin.ip or _NAME.fullmatch(origin.host)):
            raise UnpriorError(
                f"--image-host {text}: give the name of a host, such as images.example.com, or http://NAME:PORT where "
                f"no certificate is meant; each by itself, without a path or *"
            )
        return origin

    @classmethod
    def from_match(cls, found: re.Match[str]) -> Origin | None:
        """The beginning of an address; None where no port has such a number."""
        scheme = found["scheme"].lower()
        port = int(found["port"] or _PORTS[scheme])
        return cls(scheme, found["host"].lower(), port) if port <= _HIGHEST_PORT else None

    @property
    def ip(self) -> _IP | None:
        """The address, if the host is one in its usual form."""
        text = self.host.strip("[]")
        try:
            found = ipaddress.ip_address(text)
        except ValueError:
            return None
        is_bracketed = self.host.startswith("[")
        return found if str(found) == text and is_bracketed == (found.version == 6) else None

    @property
    def netloc(self) -> str:
        """Host and port, as in the header ``Host``."""
        return self.host if self.port == _PORTS[self.scheme] else f"{self.host}:{self.port}"


def is_public(ip: _IP) -> bool:
    """Whether an address is one of the internet, and of nothing behind it.

    >>> [is_public(ipaddress.ip_address(each)) for each in ("93.184.215.14", "10.0.0.1", "64:ff9b::a00:1", "::1")]
    [True, False, False, False]
    """
    if isinstance(ip, ipaddress.IPv6Address):
        if ip in _NAT64:  # made from an address of the older kind, which is where it leads
            return is_public(ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF))
        if ip not in _GLOBAL:
            return False
    return not any(ip in network for network in _INNER)


async def resolve(name: str, port: int) -> list[str]:
    """Ask the system for the addresses of a name."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class ImageFetcher:
    """Fetches images from allowed hosts."""

    def __init__(
        self,
        hosts: Iterable[str],
        max_bytes: int,
        *,
        resolve: Resolve = resolve,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """``hosts``: as on the command line; ``transport`` opens connections, to addresses and never to names."""
        self._allowed = {Origin.from_option(text) for text in hosts}
        self._literal = {(origin.ip, origin.port) for origin in self._allowed if origin.ip is not None}
        self._max_bytes, self._resolve = max_bytes, resolve
        self._transport = transport
        if self._allowed and transport is None:
            # One connection for each image: those of two names at one address must not be mixed up. A transport knows
            # no cookies, redirects, passwords or proxies.
            limits = httpx.Limits(max_keepalive_connections=0)
            self._transport = httpx.AsyncHTTPTransport(verify=httpx.create_ssl_context(), limits=limits)

    async def fetch(self, address: str, param: str) -> bytes:
        """The bytes of an image; ``param``: where the address stands in the request."""
        origin, target = self._check(address, param)
        assert self._transport is not None
        pinned = await self._pin(origin, param)
        host = f"[{pinned}]" if pinned.version == 6 else str(pinned)
        request = httpx.Request(
            "GET",
            f"{origin.scheme}://{host}:{origin.port}{target}",
            headers={
                "Host": origin.netloc,
                "User-Agent": f"unprior/{__version__}",
                "Accept": "image/png, image/jpeg, image/webp, image/gif",
                "Accept-Encoding": "identity",
                "Connection": "close",
            },
            extensions={"sni_hostname": origin.host.strip("[]")},
        )
        try:
            response = await self._transport.handle_async_request(request)
            try:
                return await self._read(response, param)
            finally:
                await response.aclose()
        except (httpx.TransportError, httpx.InvalidURL, OSError):
            raise _not_had(param) from None

    async def close(self) -> None:
        """Give up the connections."""
        if self._transport is not None:
            await self._transport.aclose()

    def _check(self, address: str, param: str) -> tuple[Origin, str]:
        """Where an address leads, and the rest of it; refused unless exactly this beginning is allowed."""
        found = _ORIGIN.match(address) if len(address) <= _LONGEST else None
        target = None if found is None else _TARGET.fullmatch(address, found.end())
        origin = None if found is None or target is None else Origin.from_match(found)
        if origin is None or target is None or origin not in self._allowed:
            told = "an image at this address is not fetched; send the image itself as data:image/png;base64,…"
            raise _refused(param, f"{told}, or have its host allowed (--image-host)")
        if _DOTS.search(target["path"]):
            raise _refused(param, "an address with . or .. in its path is not fetched; give the path itself")
        return origin, target[0] if target["path"] else f"/{target[0]}"

    async def _pin(self, origin: Origin, param: str) -> _IP:
        """The one address that is connected to."""
        if origin.ip is not None:
            return origin.ip  # allowed as such
        try:
            found = [ipaddress.ip_address(text) for text in await self._resolve(origin.host, origin.port)]
        except (OSError, ValueError):
            raise _not_had(param) from None
        if not found:
            raise _not_had(param)
        if not all(is_public(ip) or (ip, origin.port) in self._literal for ip in found):
            raise _refused(param, "the host of this address is not a public one, so it is not fetched")
        return found[0]

    async def _read(self, response: httpx.Response, param: str) -> bytes:
        if 300 <= response.status_code < 400:
            raise _refused(param, "the address sends on to another one; give that one, if its host is allowed")
        if response.status_code != 200 or response.headers.get("content-encoding", "identity") != "identity":
            raise _not_had(param)
        content = bytearray()
        async for part in response.aiter_raw():
            content += part
            if len(content) > self._max_bytes:
                raise _refused(param, f"the image has more than {self._max_bytes:,} bytes; make it smaller")
        return bytes(content)


def _refused(param: str, told: str) -> RequestError:
    return refuse(f"{param}: {told}", code="remote_image", param=param)


def _not_had(param: str) -> RequestError:
    """One message for everything, for what a host answers is not the client's to know."""
    return _refused(param, "the image could not be fetched; check its address")
