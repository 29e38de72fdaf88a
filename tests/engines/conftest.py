"""Models to test with."""

from collections.abc import Iterator

import httpx
import pytest

from engine_fixtures import engine, images, llava, model_folder  # noqa: F401


@pytest.fixture(autouse=True, scope="session")
def _certificates_once() -> Iterator[None]:
    """Read the certificates once: no server of these tests has any."""
    certificates = httpx.create_ssl_context()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("unprior.engines.openai.client.httpx.create_ssl_context", lambda: certificates)
        yield
