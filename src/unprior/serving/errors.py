"""What a client is told when a request cannot be answered, in the shape of OpenAI's errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}


class RequestError(Exception):
    """A request that is refused or failed, with its status and what to do.

    >>> RequestError(400, "no image", code="no_image", param="input").body()["error"]["type"]
    'invalid_request_error'
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """``code``: a short name for programs; ``param``: the field at fault."""
        super().__init__(message)
        self.status, self.message, self.code, self.param = status, message, code, param
        self.headers = dict(headers or {})

    def body(self) -> dict[str, Any]:
        """The JSON of the reply."""
        kind = _TYPES.get(self.status, "server_error" if self.status >= 500 else "invalid_request_error")
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}}


def refuse(message: str, *, code: str, param: str | None = None) -> RequestError:
    """A request that the client must change (400)."""
    return RequestError(400, message, code=code, param=param)
