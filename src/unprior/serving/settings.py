"""How a server is set up: where it listens, who may ask, what it takes, and how long it works on it."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from unprior.errors import UnpriorError, format_option
from unprior.serving.fetch import Origin
from unprior.serving.images import ImageLimits

Mode = Literal["observe", "enforce"]
MODES: tuple[Mode, ...] = get_args(Mode)
ON_ERROR = ("original", "error")
KEY_VARIABLE = "UNPRIOR_SERVE_KEY"
"""Environment variable with the keys that clients must show, separated by commas or spaces."""
_SHORTEST_KEY = 16
_LARGEST = 2**31 - 1


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """Everything but the model and its calibrators."""

    host: str = "127.0.0.1"
    port: int = 8077
    mode: Mode = MODES[0]
    """``observe`` tells what it would do and lets the original answer out; ``enforce`` does it."""
    on_error: str = ON_ERROR[0]
    """What goes out where the scores cannot be had: the ``original`` answer with the reason, or an ``error``."""
    key: str | None = field(default=None, repr=False)
    """One of them must be shown by every client; as in the environment, so it may hold several."""
    allowed_hosts: tuple[str, ...] = ()
    """Names that clients may call this server by, besides those of this machine; ``*`` for any."""
    max_body: int = 24 << 20
    """Bytes of a request."""
    image: ImageLimits = field(default_factory=ImageLimits)
    image_hosts: tuple[str, ...] = ()
    """Hosts that images are fetched from; none by default."""
    concurrency: int = 16
    """Requests that are worked on at once."""
    queue: int = 256
    """Requests that may wait; more are told to come back later."""
    deadline: float = 60.0
    """Seconds for a request, waiting included."""
    prior_cache: int = 10_000
    """Priors that are kept."""
    log: Path | None = None
    """File of decisions."""

    @property
    def keys(self) -> tuple[str, ...]:
        """Every key by itself."""
        return tuple(dict.fromkeys(filter(None, re.split(r"[\s,]+", self.key or ""))))

    def check(self) -> None:
        """Refuse what cannot work or would be open to everyone.

        >>> ServeSettings(host="::").check()
        Traceback (most recent call last):
            ...
        unprior.errors.UnpriorError: host='::' (command line: --host ::): others could reach the server, so ...
        """
        if self.mode not in MODES:
            raise UnpriorError(f"{format_option('mode', self.mode)}: choose {' or '.join(MODES)}")
        if self.on_error not in ON_ERROR:
            raise UnpriorError(f"{format_option('on_error', self.on_error)}: choose {' or '.join(ON_ERROR)}")
        if not 0 <= self.port <= 65535:
            raise UnpriorError(f"{format_option('port', self.port)}: give a number from 0 to 65535")
        for name in ("max_body", "concurrency", "deadline"):
            if not 0 < getattr(self, name) <= _LARGEST:
                raise UnpriorError(
                    f"{format_option(name, getattr(self, name))}: give a number above 0, at most {_LARGEST:,}"
                )
        if not self.host:
            raise UnpriorError("the host is empty; give an address to listen on, such as 127.0.0.1 (--host)")
        for name in ("queue", "prior_cache"):
            if getattr(self, name) < 0:
                raise UnpriorError(f"{format_option(name, getattr(self, name))}: give 0 or more")
        if (self.key is not None and not self.keys) or not all(
            len(key) >= _SHORTEST_KEY and key.isascii() and key.isprintable() for key in self.keys
        ):
            raise UnpriorError(
                f"every key in {KEY_VARIABLE} needs at least {_SHORTEST_KEY} plain characters; several are separated "
                f"by commas or spaces"
            )
        for text in self.image_hosts:
            Origin.from_option(text)
        if self.key is None and not is_loopback(self.host):
            raise UnpriorError(
                f"{format_option('host', self.host)}: others could reach the server, so it needs a key; put one into "
                f"the environment variable {KEY_VARIABLE}, or listen on 127.0.0.1"
            )
        if self.key is None and "*" in self.allowed_hosts:
            raise UnpriorError(f"any host name is allowed only with a key in {KEY_VARIABLE}")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address.

    >>> is_loopback("localhost"), is_loopback("127.0.0.2"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
