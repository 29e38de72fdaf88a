"""The HTTP server under the routes: requests must arrive in time, and those in flight are answered before it ends."""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
from typing import Any, ClassVar

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from unprior.serving.app import build_app
from unprior.serving.service import Service

HEAD_SECONDS = 10.0
"""For the head of a request, which is small."""
_GRACE = 1.0  # a body that is late is told so first


class TimelyProtocol(H11Protocol):
    """Hangs up on clients whose requests drip in.

    Uvicorn itself has a limit only for connections on which nothing comes between two requests.
    """

    seconds: ClassVar[float]
    """For the body of a request."""
    _timer: asyncio.TimerHandle | None = None
    _awaited: tuple[Any, Any] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        self._set_timer()

    def data_received(self, data: bytes) -> None:
        """Read on."""
        super().data_received(data)
        self._set_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Finish."""
        super().connection_lost(exc)
        if self._timer is not None:
            self._timer.cancel()

    def _set_timer(self) -> None:
        """Begin to count with every head and every body; more bytes of the same do not begin anew."""
        state = self.conn.their_state
        awaited = (state, self.cycle) if state in {h11.IDLE, h11.SEND_BODY} else None
        if awaited == self._awaited:
            return
        self._awaited = awaited
        if self._timer is not None:
            self._timer.cancel()
        if awaited is not None:
            seconds = min(HEAD_SECONDS, self.seconds) if state is h11.IDLE else self.seconds + _GRACE
            self._timer = self.loop.call_later(seconds, self.transport.abort)


def build_server(service: Service) -> uvicorn.Server:
    """A server for a service; ``run(sockets=[…])`` starts it."""
    seconds = service.settings.deadline
    return uvicorn.Server(
        uvicorn.Config(
            build_app(service),
            http=type("Protocol", (TimelyProtocol,), {"seconds": seconds}),
            ws="none",
            proxy_headers=False,
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=int(seconds) + 2,
            timeout_keep_alive=30,
        )
    )


def run_server(service: Service, listening: socket.socket) -> None:
    """Serve until a signal asks to end; requests in flight are answered first."""
    if threading.current_thread() is threading.main_thread():
        # Uvicorn sends itself the signal again once it has ended in order; that is a success.
        signal.signal(signal.SIGTERM, lambda *_: None)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # whoever rotates logs sends it; ours finds its new file itself
    build_server(service).run(sockets=[listening])
